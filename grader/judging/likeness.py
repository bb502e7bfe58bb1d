"""Compare two programs by their collectives, their matmuls and their results.

A *finding* is what the grader makes of the reply to one request, such as an observation of a program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from grader.common.observation import Collective, Observation, Outcome
from grader.expect import same_outcome
from grader.judging.seen import AskFinding, Finding
from grader.wire.frames import wide

Pairs = Sequence[tuple[Finding, Finding | None]]
"""The findings of two programs, in pairs. The second finding is None if the second program got no equal request."""


def findings_of(task: str, one: Iterable[AskFinding], other: Iterable[AskFinding]) -> Pairs:
    """Pair the findings of two programs for each request about a task.

    The second finding of a pair is None if the second program got no equal request.
    """
    others = {answer.ask.answer_key: answer.finding for answer in other}
    return [(a.finding, others.get(a.ask.answer_key)) for a in one if a.ask.task == task]


def likeness(pairs: Pairs) -> tuple[bool, ...]:
    """Return whether two programs have (equal collectives, equal matmuls, equal results)."""
    if plain := _outcome_pairs(pairs):
        return True, True, all(same_outcome(x, y, 1e-6) for x, y in plain)
    seen = _observed(pairs)
    sent = all(_traffic(a.collectives) == _traffic(b.collectives) for a, b in seen)
    return sent, all(_matmuls(a) == _matmuls(b) for a, b in seen), all(_results(a, b) for a, b in seen)


def shared_traffic(pairs: Pairs) -> float:
    """Return the fraction of all collectives that occur in both programs; 1 if neither program has collectives."""
    shared = every = 0
    for one, other in _observed(pairs):
        a, b = _traffic(one.collectives), _traffic(other.collectives)
        shared, every = shared + 2 * (a & b).total(), every + a.total() + b.total()
    return shared / every if every else 1.0


def _observed(pairs: Pairs) -> list[tuple[Observation, Observation]]:
    return [(a.observation, b.observation) for a, b in pairs if a.observation and b and b.observation]


def _outcome_pairs(pairs: Pairs) -> list[tuple[Outcome, Outcome]]:
    lists = [(a.outcomes, b.outcomes) for a, b in pairs if a.outcomes and b and b.outcomes]
    return [pair for a, b in lists for pair in zip(a, b, strict=True)]


def _traffic(collectives: Sequence[Collective]) -> Counter[tuple]:
    """Return how often collectives of each description run.

    A collective in a loop of N rounds counts as N collectives. An unknown number of rounds counts as one.
    """
    found: Counter[tuple] = Counter()
    for c in collectives:
        of = (c.kind, c.over, c.bytes, c.shift, c.by_compiler, c.count.exact, c.count.known)
        found[of] += int(c.count.most) if c.count.known else 1
    return found


def _matmuls(seen: Observation) -> list[int]:
    return sorted(op.flops for op in seen.operations.walk() if op.flops) if seen.operations else []


def _results(a: Observation, b: Observation) -> bool:
    pairs = [(x, y) for of, other in zip(a.outputs, b.outputs, strict=False) for x, y in zip(of, other, strict=False)]
    shards = [(wide(s), wide(t)) for x, y in pairs for s, t in zip(x.shards, y.shards, strict=False)]
    return all(s.shape == t.shape and _close(s, t) for s, t in shards)


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    size = np.max(np.abs(b), initial=0, where=np.isfinite(b))
    return np.allclose(a, b, rtol=0, atol=1e-3 * size, equal_nan=True)
