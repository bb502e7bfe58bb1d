"""Compare trees of arrays leaf by leaf; a failure names the leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.common.observation import Sharded
from grader.expect.failure import Failure
from grader.wire.trees import Misfit, fitted, flat, is_tree, mapped


def leaf_by_leaf(expect: Callable[[Any, Any], None], got: Any, want: Any, *, prefix: bool = False) -> None:
    """Call ``expect(got, want)`` for every result in ``got``, with the part of ``want`` at the same place.

    ``prefix``: whether a leaf of ``want`` may apply to a whole subtree of ``got``.

    Raises:
        Failure: the failure of the first leaf that fails, with the leaf's name; ``others`` has the failures of other
            leaves.
        ValueError: ``got`` and ``want`` have different structures, which is a mistake of the check's author.
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
        raise ValueError(f"the expected value is {misfit}") from None


def _declared(got: Any) -> bool:
    """Return True if the author declared a structure for the results, so that each result has a name."""
    results = flat(got) if is_tree(got) else []
    return bool(results) and all(isinstance(one, Sharded) and one.name for one in results)
