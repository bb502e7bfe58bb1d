"""Trees: nested dicts, lists and tuples of leaves, like the trees of ``jax.tree``.

The keys of dicts are strings, and a dict's branches are in the order of its sorted keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from grader.wire.frames import is_spec


class Misfit(Exception):
    """A value does not have the expected tree structure: ``a tuple of 2 at [1], expected {'w1', 'w2'}``."""


def is_tree(value: Any) -> bool:
    """Return whether a value has branches. A PartitionSpec counts as a leaf, even if its class is a tuple."""
    return isinstance(value, Mapping | list | tuple) and not is_spec(value)


def branches(tree: Any) -> list[tuple[Any, Any]]:
    """Return (key or position, subtree) for each branch, in order."""
    return sorted(tree.items()) if isinstance(tree, Mapping) else list(enumerate(tree))


def leaves(tree: Any, name: str = "") -> list[tuple[str, Any]]:
    """Return a pair (name, leaf) for every leaf: ``{"w1": [a]}`` named ``params`` has ``("params['w1'][0]", a)``."""
    if not is_tree(tree):
        return [(name, tree)]
    return [leaf for key, part in branches(tree) for leaf in leaves(part, f"{name}[{key!r}]")]


def flat(tree: Any) -> list[Any]:
    """Return the leaves of a tree, without their names."""
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
    """Return the tree with each leaf replaced by the name that ``leaves`` gives it."""
    return rebuilt(tree, [leaf for leaf, _ in leaves(tree, name)])


def fitted(found: Any, like: Any, *, prefix: bool = False, at: str = "") -> list[Any]:
    """Return the leaves of the tree ``found``, in order, if it has the structure of the tree ``like``.

    A list and a tuple of equal lengths count as equal. Raises Misfit for any other structure.

    Args:
        prefix: whether ``found`` may have a leaf where ``like`` has a tree, such as one spec for several arrays. The
            leaf is then returned once for each leaf of that tree.
        at: the place of ``found`` and ``like`` in a larger tree, for the message.
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
    """Return a description of a value for messages: ``a tuple of 2``, ``a dict of 'w1', 'w2'`` or ``one array``."""
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return f"a dict of {', '.join(sorted(map(repr, value))) or 'nothing'}"[:200]
    if isinstance(value, list | tuple):
        return f"a {'list' if isinstance(value, list) else 'tuple'} of {len(value)}"
    return "one array" if hasattr(value, "shape") else f"of type {type(value).__name__}"


def shown(tree: Any) -> str:
    """Return a tree of names as text for messages: ``(loss, {'w1', 'w2'})``."""
    if isinstance(tree, Mapping):
        parts = [f"{key!r}: {shown(part)}" if is_tree(part) else repr(key) for key, part in branches(tree)]
        return "{" + ", ".join(parts) + "}"
    if is_tree(tree):
        parts = [shown(part) for part in tree]
        return f"[{', '.join(parts)}]" if isinstance(tree, list) else f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    return str(tree)
