"""Check whether operations wait for other operations, or can run at the same time.

Checks name operations as StableHLO does ("dot_general"), by a collective's kind ("permute"), or "matmul" for any
matmul. Operations that no result needs are left out, because the compiler drops them.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NoReturn

from grader.common.dependency import MATMUL, Dependency
from grader.common.observation import Seen
from grader.expect.failure import Failure, place, prefix
from grader.expect.mattering import idle_ones
from grader.wire.operations import KINDS, Operations

MAX_PAIRS = 1_000_000


def expect_not_waiting(seen: Seen, what: str, *, on: str = MATMUL, rounds: Literal["any", "same"] = "any") -> None:
    """Check that no operation named ``what`` waits for an operation named ``on``, whichever branches run.

    ``expect_not_waiting(seen, "permute", on="matmul")`` checks that no permute waits for a matmul. With
    ``rounds="same"``, the check looks only for waits inside one round of the innermost loop. An operation may then wait
    for matmuls of earlier rounds.
    """
    graph, those = _those(seen, what)
    sources = _sources(graph, on)
    for number in sorted(those):
        loop = _loop(graph, number) if rounds == "same" else None
        waited = sources & graph.before(number, within=loop)
        if waited:
            why = "must be able to start without it" + (" in the same round" if loop is not None else "")
            _fail(graph, number, f"waits for {_name(graph, min(waited))}, but {why}")


def expect_beside(seen: Seen, what: str, of: str = MATMUL) -> None:
    """Check that every operation named ``what`` can run at the same time as an operation named ``of``.

    ``expect_beside(seen, "permute")`` checks that each permute of a ring can overlap with a matmul. Neither operation
    may wait for the other. In a loop, both must run in one round of the innermost loop. Operations named ``of`` count
    only if their values change a result (see ``mattering``).
    """
    graph, those = _those(seen, what)
    sources = _sources(graph, of)
    idle = idle_ones(seen, of)
    sources -= idle
    for number in sorted(those):
        if not _is_beside(graph, sources, number):
            where = "in its round of the loop" if _loop(graph, number) is not None else "in the program"
            why = (
                f"has no {of} beside it: each {of} {where} waits for this {what} or must end before this {what} starts"
            )
            if idle:
                why += f"; {_name(graph, min(idle))} is not counted: no result of the task depends on its values"
            _fail(graph, number, why)


def can_overlap(operations: Operations, kind: str) -> bool:
    """Return True if a collective of this kind can run at the same time as a matmul on which a result depends.

    Also return True if this is not known: there are no matmuls, or too many operations.
    """
    graph = Dependency(operations)
    those, sources = graph.named(kind), graph.named(MATMUL)
    unknown = not sources or len(those) * len(graph.places) > MAX_PAIRS
    return unknown or any(_is_beside(graph, sources, n) for n in those)


def _is_beside(graph: Dependency, sources: Collection[int], number: int) -> bool:
    """Return True if one of the operations ``sources`` can run at the same time as the operation ``number``."""
    loop = _loop(graph, number)
    near = {n for n in sources if n != number and _runs_with(graph, n, number)}
    tied = near & (graph.before(number, within=loop) | graph.may(graph.results({number}), within=loop))
    again = {_made_of(graph, n) for n in tied}  # the compiler merges equal operations into one operation
    return any(_made_of(graph, n) not in again for n in near - tied)


def _those(seen: Seen, what: str) -> tuple[Dependency, set[int]]:
    """Return the program's dependency graph, and the indices of the operations named ``what`` in it.

    If ``seen`` is limited to a part of the program, such as the backward pass, collectives of other parts are left out.
    Raises Failure if no operation is left, or if the grader cannot judge the order of the operations.
    """
    if seen.operations is None:
        raise Failure("the program is too large for the order of its operations to be judged; use lax.fori_loop")
    graph = Dependency(seen.operations)
    found = graph.named(what)
    if what in KINDS:
        chosen = [c for c in seen.collectives if c.kind == what]
        if any(c.place is None for c in chosen):
            raise Failure(f"the program does not show what the {what} waits for, because the compiler added the {what}")
        found &= {c.place for c in chosen if c.place is not None}
    if not found:
        raise Failure(f"no result of the program depends on any {what}{' ' if seen.part else ''}{seen.part}")
    if len(found) * len(graph.places) > MAX_PAIRS:
        raise Failure(
            f"the program has too many operations named {what} for their order to be judged; use lax.fori_loop"
        )
    return graph, found


def _sources(graph: Dependency, name: str) -> set[int]:
    found = graph.named(name)
    if not found:
        raise Failure(f"no result of the program depends on any {name}, so this check has nothing to judge")
    return found


def _loop(graph: Dependency, number: int) -> int | None:
    return graph.places[number].loops[-1] if graph.places[number].loops else None


def _runs_with(graph: Dependency, other: int, number: int) -> bool:
    """Return True if ``other`` runs whenever ``number`` runs, in the same round of ``number``'s innermost loop."""
    loop, place = _loop(graph, number), graph.places[other]
    return (loop is None or loop in place.loops) and place.doubts <= graph.places[number].doubts


def _made_of(graph: Dependency, number: int) -> tuple[str, tuple[int, ...]]:
    op = graph.places[number].op
    return op.name, op.operands


def _fail(graph: Dependency, number: int, why: str) -> NoReturn:
    op = graph.places[number].op
    text = f"{prefix(op.file, op.line)}{_name(graph, number, line=False)} {why}"
    raise Failure(text, where=place(op.file, op.line))


def _name(graph: Dependency, number: int, *, line: bool = True) -> str:
    """Describe an operation in words such as ``permute of float32[16, 24] over x in line 7``."""
    op = graph.places[number].op
    arrays = [graph.program.values[v] for v in op.operands[:1]]
    about = op.communication
    kind, axes = (about.kind, f" over {' and '.join(about.axes)}") if about and about.axes else (op.name, "")
    at = f" in {place(op.file, op.line)}" if line and op.line else ""
    return f"{kind}{''.join(f' of {a.dtype}{list(a.shape)}' for a in arrays)}{axes}{at}"
