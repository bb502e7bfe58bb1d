"""Words that look at arrays look at trees of them, leaf by leaf; a failure says which leaf it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.common.observation import Sharded
from grader.expect.failure import Failure
from grader.wire.trees import Misfit, fitted, flat, is_tree, mapped


def leaf_by_leaf(expect: Callable[[Any, Any], None], got: Any, want: Any, *, prefix: bool = False) -> None:
    """``expect(got, want)`` for every result in ``got``, with what stands in the same place of ``want``.

    Args:
        prefix: a leaf of ``want`` may stand for all leaves below its place.

    Raises:
        Failure: of the first leaf that fails, with its name in front; it has those of other leaves with it.
        ValueError: the trees have not the same branches, which is the check's mistake.
    """
    failures: list[Failure] = []
    for one, wanted in _pairs(got, want, prefix):
        try:
            expect(one, wanted)
        except Failure as failure:
            failures.append(failure.about(one.name if isinstance(one, Sharded) else ""))
    if failures:
        failures[0].others = failures[1:]
        raise failures[0] from None


def _pairs(got: Any, want: Any, prefix: bool) -> list[tuple[Any, Any]]:
    if not _declared(got):
        return [(got, want)]
    names = mapped(lambda result: result.name, got)
    try:
        return list(zip(flat(got), fitted(want, names, prefix=prefix), strict=True))
    except Misfit as misfit:
        raise ValueError(f"what results are compared with is {misfit}") from None


def _declared(got: Any) -> bool:
    """Whether this is a tree of the structure that its call declares; of several results, these alone have names."""
    results = flat(got) if is_tree(got) else []
    return bool(results) and all(isinstance(one, Sharded) and one.name for one in results)
