"""Pair each timed program with the small one whose values are judged; a timed program that differs is not judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grader.common.observation import Fault, Observation
from grader.common.substitution import substitution
from grader.exercise import Call
from grader.exercise.timings import mesh_beside
from grader.judging.plan import Ask
from grader.judging.same_program import difference
from grader.judging.seen import Answered, Finding
from grader.wire.operations import Operations

OTHER = "the program that is timed is not the one whose values are judged"
MEND = "Write one program for all sizes: decide nothing by a shape"
TOO_LARGE = (
    "the program has too many operations to be compared with the one that is timed; use lax.fori_loop or lax.scan"
)


def paired(answered: Sequence[Answered]) -> list[Answered]:
    """Return the answers; a timed program that is not the judged one at other sizes becomes a Fault.

    Which operations of a timed program matter is known from the judged one. An answer that was paired before is not
    compared again.
    """
    found = []
    for answer in answered:
        call, seen = answer.ask.of, answer.finding
        if isinstance(call, Call) and call.timing and isinstance(seen, Observation) and not seen.paired:
            judged = partner(answer.ask, answered)
            answer = replace(answer, finding=_fault(answer, judged) or _with_poison(seen, judged.finding))
        found.append(answer)
    return found


def _with_poison(timed: Observation, judged: Finding) -> Observation:
    return replace(timed, poison=judged.poison if isinstance(judged, Observation) else None, paired=True)


def partner(ask: Ask, answered: Sequence[Answered]) -> Answered:
    """Return the answer to the value call that a timing call is of, at the sizes that belong to these.

    Raises:
        LookupError: the plan did not ask for it; ``plan`` always does.
    """
    call = ask.of
    assert isinstance(call, Call) and call.timed is not None
    mesh = mesh_beside(call.timed, ask.mesh)
    due = dict(mesh), call.timed.sizes(mesh, hidden=ask.hidden), ask.check_vma, False
    for other in answered:
        if other.ask.of is call.timed and due == _key(other.ask):
            return other
    raise LookupError(f"{ask.task} is timed, and no values of it are judged")


def _key(ask: Ask) -> tuple:
    return dict(ask.mesh), dict(ask.dims), ask.check_vma, ask.secret


def _fault(timed: Answered, judged: Answered) -> Fault | None:
    large, small = timed.finding, judged.finding
    assert isinstance(large, Observation)
    if isinstance(small, Fault):
        return small
    if not isinstance(small, Observation) or small.operations is None or large.operations is None:
        return Fault("refused", TOO_LARGE, ran=True)
    return _difference(timed.ask, judged.ask, small.operations, large.operations)


def _difference(timed: Ask, judged: Ask, small: Operations, large: Operations) -> Fault | None:
    sizes = substitution(judged.dims, timed.dims, judged.mesh, timed.mesh)
    found = difference(small, large, sizes)
    if found is None:
        return None
    return Fault("refused", f"{OTHER}: {found.message}. {MEND}", found.line, found.file, ran=True)
