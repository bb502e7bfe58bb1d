"""Trees: nested dicts, lists and tuples of leaves. The grader and the learner's process flatten them in the same order.

Keys are strings in sorted order, as in ``jax.tree``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from grader.wire.frames import is_spec


class Misfit(Exception):
    """Something is not the tree that was expected: ``a tuple of 2 at [1], expected {'w1', 'w2'}``."""


def is_tree(value: Any) -> bool:
    """Whether it has branches; a PartitionSpec has none, whatever its class is."""
    return isinstance(value, Mapping | list | tuple) and not is_spec(value)


def branches(tree: Any) -> list[tuple[Any, Any]]:
    """(key or position, subtree) of each, in order."""
    return sorted(tree.items()) if isinstance(tree, Mapping) else list(enumerate(tree))


def leaves(tree: Any, name: str = "") -> list[tuple[str, Any]]:
    """Every leaf with its name: ``{"w1": [a, b]}`` named ``params`` has ``params['w1'][0]`` and ``params['w1'][1]``."""
    if not is_tree(tree):
        return [(name, tree)]
    return [leaf for key, part in branches(tree) for leaf in leaves(part, f"{name}[{key!r}]")]


def flat(tree: Any) -> list[Any]:
    """The leaves alone."""
    return [leaf for _, leaf in leaves(tree)]


def rebuilt(like: Any, values: Iterable[Any]) -> Any:
    """The tree ``like`` with these leaves, in order, in place of its own."""
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
    """The same tree with ``fn`` of each leaf."""
    return rebuilt(tree, map(fn, flat(tree)))


def named(tree: Any, name: str) -> Any:
    """The same tree with the name of each leaf in its place."""
    return rebuilt(tree, [leaf for leaf, _ in leaves(tree, name)])


def fitted(found: Any, like: Any, *, prefix: bool = False, at: str = "") -> list[Any]:
    """The parts of ``found`` that stand where ``like`` has leaves, in order; a list may stand for a tuple.

    Args:
        prefix: a leaf of ``found`` may stand for all leaves below its place, as one spec may for a tree.
        at: where both are in their trees, for the message.

    Raises:
        Misfit: its branches are others.
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
    """``a tuple of 2``, ``a dict of 'w1' and 'w2'``, ``one array``."""
    if value is None:
        return "None"
    if isinstance(value, Mapping):
        return f"a dict of {', '.join(sorted(map(repr, value))) or 'nothing'}"[:200]
    if isinstance(value, list | tuple):
        return f"a {'list' if isinstance(value, list) else 'tuple'} of {len(value)}"
    return "one array" if hasattr(value, "shape") else f"of type {type(value).__name__}"


def shown(tree: Any) -> str:
    """A tree of names as a reader would write it: ``(loss, {'w1', 'w2'})``."""
    if isinstance(tree, Mapping):
        parts = [f"{key!r}: {shown(part)}" if is_tree(part) else repr(key) for key, part in branches(tree)]
        return "{" + ", ".join(parts) + "}"
    if is_tree(tree):
        parts = [shown(part) for part in tree]
        return f"[{', '.join(parts)}]" if isinstance(tree, list) else f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    return str(tree)
