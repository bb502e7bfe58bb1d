"""Declared results of a call: a tree of names. A result can become an argument of the program's next run (step)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader import declared
from grader.declared import AuthorError
from grader.exercise.arguments import Array
from grader.wire.trees import branches, flat, is_tree, leaves, mapped


@dataclass(frozen=True)
class Like:
    """A part of the declared result that has the structure of an argument; the function ``like`` makes it."""

    argument: str
    name: str


@declared.spelt("like")
def like(argument: str, name: str = "") -> Like:
    """Declare a result with the structure of an argument: ``returns=("loss", like("params", "grads"))``.

    Args:
        argument: the name of the argument.
        name: the result's name; by default the argument's name. In a program of several steps, a result with an
            argument's name becomes this argument in the next step.
    """
    for word, value in (("argument", argument), ("name", name)):
        if not isinstance(value, str) or not (value or "_").isidentifier():
            raise AuthorError(f"like: `{word}` is {declared.a(value)}, not a name")
    return Like(argument, name or argument)


@dataclass(frozen=True)
class CallResult:
    """One array of a call's result.

    Attributes:
        name: the array's name, such as ``grads['w1']``.
        dtype: the dtype that the array must have. An array that is declared by ``like`` or by an argument's name has
            the argument's dtype. "" for other arrays, which must have ``Call.dtype``.
        feeds: the array of an argument that this array replaces in the next step, as a position in the list of all
            arguments' arrays. None if this array replaces none.
    """

    name: str
    dtype: str = ""
    feeds: int | None = None


def results_tree(returns: Any, args: Mapping[str, Any]) -> Any:
    """Return the declared tree with a ``CallResult`` for each leaf.

    Raises AuthorError if a name occurs twice, if ``like`` names no argument, or if a result with an argument's name has
    another structure.
    """
    place = {name: at for at, (name, _) in enumerate(leaf for a in args for leaf in leaves(args[a], a))}

    def build(part: Any) -> Any:
        if isinstance(part, Like):
            if part.argument not in args:
                raise AuthorError(
                    f"`like` names {part.argument!r}, not an argument{declared.nearest(part.argument, args)}"
                )
            return _like(args[part.argument], part.name, place)
        if isinstance(part, str) and part.isidentifier():
            return CallResult(part, args[part].dtype if isinstance(args.get(part), Array) else "", place.get(part))
        if not is_tree(part) or not part:
            raise AuthorError(f'`returns` has {declared.a(part)}, not a name such as "loss" or like("params")')
        if isinstance(part, Mapping):
            return {
                name: build(inner) for name, inner in declared.mapping("`returns`", part, '{"loss": "loss"}').items()
            }
        return type(part)(map(build, part))

    found = build(returns)
    names = [result.name for result in flat(found)]
    for name in names:
        if names.count(name) > 1:
            raise AuthorError(
                f"`returns` has two results that are called {name}: "
                'give one of them another name, as in like("params", "grads")'
            )
    return _fed_whole(found, args)


def _like(tree: Any, name: str, place: Mapping[str, int]) -> Any:
    if not is_tree(tree):
        return CallResult(name, tree.dtype, place.get(name))
    parts = {key: _like(part, f"{name}[{key!r}]", place) for key, part in branches(tree)}
    return parts if isinstance(tree, Mapping) else type(tree)(parts.values())


def _fed_whole(found: Any, args: Mapping[str, Any]) -> Any:
    """Return ``found``. Raises AuthorError if a result with an argument's name lacks leaves of the argument."""
    names = {result.name for result in flat(found)}
    for argument, tree in args.items():
        due = {name for name, _ in leaves(tree, argument)}
        if any(name.split("[")[0] == argument for name in names) and not due <= names:
            raise AuthorError(
                f"`returns` has only some arrays of the argument {argument}; to return all, write `like({argument!r})`"
            )
    return found


def names_of(tree: Any) -> Any:
    """Return the tree with the results' names in place of the results."""
    return mapped(lambda result: result.name, tree)
