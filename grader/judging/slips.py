"""Whether a submission does what a known wrong solution does."""

from __future__ import annotations

import re

import numpy as np

from grader.common.observation import Collective, Fault, Observation, Sharded
from grader.common.result import Result
from grader.exercise import Call, Misconception
from grader.expect import Failure, laid_out, same_outcome
from grader.judging.seen import Answered, Finding


def matches(submitted: list[Answered], mistaken: list[Answered], reference: list[Answered]) -> int:
    """How well a submission fits a misconception on the same asks: 0 not, 1 by its results, 2 by its traffic too.

    Results decide only where the misconception's are wrong; where they are right, what it sends must fit.
    A program that could not be traced fits one that fails with the same error.
    """
    if not submitted or len(submitted) != len(mistaken):
        return 0
    pairs = list(zip(submitted, mistaken, strict=True))
    if not all(_same_finding(a.finding, b.finding) for a, b in pairs):
        return 0
    if all(_same_traffic(a.finding, b.finding) and _same_time(a, b) for a, b in pairs):
        return 2
    if any(isinstance(a.ask.of, Call) and a.ask.of.timing for a, _ in pairs):
        return 0  # there are no results to fit
    right = all(_same_finding(a.finding, b.finding) for a, b in zip(mistaken, reference, strict=True))
    return 0 if right else 1


def _same_finding(a: Finding, b: Finding) -> bool:
    if isinstance(a, Fault) or isinstance(b, Fault):
        # a missing or unfinished task is nobody's misconception
        return isinstance(a, Fault) and isinstance(b, Fault) and a.kind == b.kind == "raised" and _gist(a) == _gist(b)
    if isinstance(a, Observation) and isinstance(b, Observation):
        return len(a.outputs) == len(b.outputs) and all(
            len(x) == len(y) and all(_same_array(s, t) for s, t in zip(x, y, strict=True))
            for x, y in zip(a.outputs, b.outputs, strict=True)
        )
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same_outcome(x, y, 1e-6) for x, y in zip(a, b, strict=True))
    return False


def _gist(fault: Fault) -> tuple[str, str]:
    """An error's type and the part of its message before anything that names shapes or lines."""
    return fault.type, re.sub(r"[\d\W_]+", " ", fault.message)[:60]


def _same_array(a: Sharded, b: Sharded) -> bool:
    if a.shape != b.shape or a.slices != b.slices:
        return False
    if "c" in (a.dtype.kind, b.dtype.kind):
        return False  # no misconception of ours is complex
    pairs = [(s.astype(np.float64), t.astype(np.float64)) for s, t in zip(a.shards, b.shards, strict=True)]
    size = max((float(np.max(np.abs(t[np.isfinite(t)]), initial=0.0)) for _, t in pairs), default=0.0)
    return all(np.allclose(s, t, rtol=0.0, atol=1e-3 * size, equal_nan=True) for s, t in pairs)


def _same_traffic(a: Finding, b: Finding) -> bool:
    if not (isinstance(a, Observation) and isinstance(b, Observation)):
        return True

    def traffic(cs: list[Collective]) -> list:
        return sorted((c.kind, c.over, c.bytes, str(c.count), str(c.shift), c.by_compiler) for c in cs)

    return a.mapped == b.mapped and traffic(a.collectives) == traffic(b.collectives)


def _same_time(a: Answered, b: Answered) -> bool:
    """Of timing calls: the same collectives are hidden, and the step is as long, up to a twentieth."""
    if not (isinstance(a.ask.of, Call) and a.ask.of.timing):
        return True
    found = []
    for one in (a, b):
        if not isinstance(one.finding, Observation):
            return True
        try:
            line = laid_out(one.finding.operations, a.ask.of.timing)
        except Failure as failure:
            found.append(failure.reason)
        else:
            found.append({"step": line.step} | {kind: share.hidden for kind, share in line.shares().items()})
    first, second = found
    if isinstance(first, str) or isinstance(second, str):
        return first == second
    near = max(first["step"], second["step"]) // 20
    return first.keys() == second.keys() and all(abs(first[k] - second[k]) <= near for k in first)


def with_hint(result: Result, slip: Misconception) -> Result:
    return result.model_copy(update={"hint": slip.hint, "misconception": slip.name})
