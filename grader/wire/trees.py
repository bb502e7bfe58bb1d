"""Trees: nested dicts, lists and tuples of leaves. The grader and the learner's process flatten a tree in one order.

The keys of dicts are strings in sorted order, as in ``jax.tree``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from grader.wire.frames import is_spec


class Misfit(Exception):
    """A value does not have the expected tree: ``a tuple of 2 at [1], expected {'w1', 'w2'}``."""


def is_tree(value: Any) -> bool:
    """Return whether a value has branches. A PartitionSpec has no branches, even if its class is a tuple."""
    return isinstance(value, Mapping | list | tuple) and not is_spec(value)


def branches(tree: Any) -> list[tuple[Any, Any]]:
    """Return (key or position, subtree) for each branch, in order."""
    return sorted(tree.items()) if isinstance(tree, Mapping) else list(enumerate(tree))


def leaves(tree: Any, name: str = "") -> list[tuple[str, Any]]:
    """Return every leaf with its name: ``{"w1": [a]}`` named ``params`` has the leaf ``params['w1'][0]``."""
    if not is_tree(tree):
        return [(name, tree)]
    return [leaf for key, part in branches(tree) for leaf in leaves(part, f"{name}[{key!r}]")]


def flat(tree: Any) -> list[Any]:
    """Return the leaves without names."""
    return [leaf for _, leaf in leaves(tree)]


def rebuilt(like: Any, values: Iterable[Any]) -> Any:
    """Return the tree ``like`` with its leaves replaced by ``values``, in order."""
    rest = iter(values)

    def build(part: Any) -> Any:
        if not is_tree(part):
            return next(rest)
        built = {key: build(inner) for key, inner in branches(part)}
        if isinstance(part, Mapping):
            return {key: built[key] for key in part}
        return type(part)(built.values()) if type(part) in (list, tuple) else tuple(built.values())

    return build(like)


def mapped(fn: Callable[[Any], Any], tree: Any) -> Any:
    """Return the tree with ``fn`` applied to each leaf."""
    return rebuilt(tree, map(fn, flat(tree)))


def named(tree: Any, name: str) -> Any:
    """Return the tree with each leaf replaced by its name."""
    return rebuilt(tree, [leaf for leaf, _ in leaves(tree, name)])


def fitted(found: Any, like: Any, *, prefix: bool = False, at: str = "") -> list[Any]:
    """Return the parts of ``found`` at the leaves of ``like``, in order. A list may replace a tuple.

    Args:
        prefix: a leaf of ``found`` may stand for all leaves below its place, like one spec for a tree.
        at: the place of ``found`` and of ``like`` in their trees, for the message.

    Raises:
        Misfit: ``found`` has other branches than ``like``.
    """
    if not is_tree(like):
        if is_tree(found):
            raise Misfit(f"{kind_of(found)}{at and f' at {at}'}, expected one array{like and f', {like}'}")
        return [found]
    if prefix and not is_tree(found):
        return [found] * len(flat(like))
    if not _has_branches_of(found, like):
        raise Misfit(f"{kind_of(found)}{at and f' at {at}'}, expected {shown(like)}")
    parts = [fitted(found[key], part, prefix=prefix, at=f"{at}[{key!r}]") for key, part in branches(like)]
    return [leaf for part in parts for leaf in part]


def _has_branches_of(found: Any, like: Any) -> bool:
    if isinstance(like, Mapping):
        return isinstance(found, Mapping) and found.keys() == like.keys()
    return is_tree(found) and not isinstance(found, Mapping) and len(found) == len(like)


def kind_of(value: Any) -> str:
    """Return a description: ``a tuple of 2``, ``a dict of 'w1' and 'w2'``, ``one array``."""
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return f"a dict of {', '.join(sorted(map(repr, value))) or 'nothing'}"[:200]
    if isinstance(value, list | tuple):
        return f"a {'list' if isinstance(value, list) else 'tuple'} of {len(value)}"
    return "one array" if hasattr(value, "shape") else f"of type {type(value).__name__}"


def shown(tree: Any) -> str:
    """Return a tree of names in readable form: ``(loss, {'w1', 'w2'})``."""
    if isinstance(tree, Mapping):
        parts = [f"{key!r}: {shown(part)}" if is_tree(part) else repr(key) for key, part in branches(tree)]
        return "{" + ", ".join(parts) + "}"
    if is_tree(tree):
        parts = [shown(part) for part in tree]
        return f"[{', '.join(parts)}]" if isinstance(tree, list) else f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    return str(tree)
