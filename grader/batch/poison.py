"""Which operations of a program matter: asked of a runner when a check wants to know, and judged here.

A result moves when it moves farther than wrong values can lie within its tolerance, or by a thousandth of its largest value where
the tolerance is wider, as for 16 bits. Other values lie at most twice as far from an operation's own as those are large
(``runner.others``), so what is added to a float32 result within its tolerance moves it by no more than twice that, and never
counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from grader.batch.findings import run_fault
from grader.common import poison
from grader.common.observation import Fault, Observation, Sharded
from grader.expect.values import lets_pass
from grader.sandbox.worker import WorkerDied
from grader.wire.frames import is_inexact

MOST = 1e-3  # of the largest value: in no dtype it takes more. A step of training moves parameters by little
MOST_DEATHS = 2  # operations without which the program ends its process, or itself never ends
FAILED = (KeyError, TypeError, ValueError, IndexError)

Moved = Callable[[str, list[int]], Mapping[str, Any] | Fault]
"""What ``runner.poison.moved`` says of these operations of a kind, or why it is not asked. Raises WorkerDied."""


class Kept(Protocol):
    """What is remembered over runs."""

    def get(self, what: str) -> list[bool] | None: ...

    def put(self, what: str, found: list[bool]) -> None: ...


@dataclass
class Poisoned:
    """The poison of one program on one mesh, on the inputs of its first run that is no secret.

    Args:
        seen: what the program came to.
        moved: asks a runner.
        seconds: that a run may take.
        recalled, kept: what was found out before, and where it is kept, by kind.
    """

    seen: Observation
    moved: Moved
    seconds: float
    recalled: Kept | None = None
    kept: Kept | None = None
    found: dict[str, list[bool] | Fault] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def matter(self, what: str) -> list[bool] | Fault:
        with self.lock:
            if what not in self.found:
                known = self.recalled.get(what) if self.recalled else None
                self.found[what] = found = self._tried(what) if known is None else known
                if self.kept and known is None and not isinstance(found, Fault):
                    self.kept.put(what, found)
            return self.found[what]

    @property
    def lasting(self) -> bool:
        """Whether what was found out is the same every time."""
        return not any(isinstance(found, Fault) for found in self.found.values())

    def _tried(self, what: str) -> list[bool] | Fault:
        """First what no result waits for is left out; what the process dies of when it is changed was needed."""
        alive = self._alive(what)
        left, matters = [n for n, lives in enumerate(alive) if lives], set()
        while left:
            try:
                answer = self.moved(what, left)
            except WorkerDied as died:
                phase, _, number = died.phase.partition(" ")
                if phase != "poisoning" or died.ours or len(matters) == MOST_DEATHS:
                    return run_fault(died, self.seconds)
                matters.add(int(number))
                left.remove(int(number))
                continue
            if isinstance(answer, Fault):
                return answer
            if "broken" in answer:
                return Fault(
                    "broken", f"the grader failed while it changed this program: {str(answer['broken'])[:400]}"
                )
            if (fault := answer.get("fault")) is not None:
                if fault["kind"] == "refused":  # it needs more than programs may: nothing counts unseen
                    return Fault("refused", str(fault["message"])[:400], ran=True)
                return alive  # XLA takes the program and not the changed one: then it is not the learner's
            try:
                matters |= {
                    n for n, far in zip(left, answer["moved"], strict=True) if self._moves(far, answer["largest"])
                }
            except FAILED as error:
                return Fault("broken", f"the grader cannot read its own answer: {type(error).__name__}: {error}")
            break
        return [n in matters for n in range(len(alive))]

    def _alive(self, what: str) -> list[bool]:
        if self.seen.operations is not None:
            return poison.alive(self.seen.operations, what)
        numbers = (
            [c.number for c in self.seen.collectives if c.number is not None] if what == poison.COLLECTIVES else []
        )
        return [True] * (max(numbers, default=-1) + 1)

    def _moves(self, far: Sequence[float], largest: Sequence[float]) -> bool:
        """``far``: how far each result of the first run moves, step by step."""
        results = [result for step in self.seen.outputs for result in step][: len(largest)]
        return any(moved > _bound(result) * most for result, moved, most in zip(results, far, largest, strict=True))


def _bound(result: Sharded) -> float:
    """How far a result may move, as a part of its largest value."""
    return min(2 * lets_pass(result.dtype), MOST) if is_inexact(result.dtype) else 0.0
