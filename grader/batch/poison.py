"""Find which operations of a program matter: a runner changes their values, and this module compares the results.

To *poison* an operation, a runner replaces the operation's values by other values of similar size. The operation
matters if a result then changes by more than a bound. The bound is twice the default tolerance of ``expect_close``, but
at most a thousandth of the result's largest value. The bound for integers and booleans is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

from grader.batch.cost import Cost
from grader.batch.remembering import POISON, Matters, Store
from grader.batch.replies import run_fault
from grader.common import dependency
from grader.common.observation import Fault, Observation, Sharded
from grader.expect.values import lets_pass
from grader.sandbox.worker import WorkerDied
from grader.wire.frames import is_inexact

MOST_DEATHS = 2  # If more changed operations than this make the program crash or hang, the result is a fault.
FAILED = (KeyError, TypeError, ValueError, IndexError)


@dataclass
class Poisoned:
    """Finds the operations of one program that matter (see the module).

    Only the results of the program's first run, which has inputs that are not hidden, are compared.

    Args:
        observation: what the runner observed of the program.
        run_changed: replaces the values of numbered operations of a kind, one operation at a time, and returns how much
            the program's results change (see ``runner.poison.moved``), or a fault. Raises WorkerDied.
        cost: the submission's cost, to which the trials add.
        store: a cache that keeps the answers from one run of the grader to the next.
        run_key: the cache key of the run without changes.
    """

    observation: Observation
    run_changed: Callable[[str, list[int]], Mapping[str, Any] | Fault]
    cost: Cost
    store: Store
    run_key: bytes = b""
    found: dict[str, Matters] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def matter(self, what: str) -> list[bool] | Fault:
        """Return whether each operation of the kind ``what`` matters; a fault if running a changed program fails."""
        with self.lock:
            if what not in self.found:
                key = self.store.keys.poison(self.run_key, what)
                kept = self.store.find(POISON, key)
                if kept is None or not self.cost.fits(kept.seconds):
                    before = self.cost.running
                    tried = self._tried(what)
                    kept = self.store.keep(POISON, key, replace(tried, seconds=self.cost.running - before))
                else:
                    self.cost.running += kept.seconds
                self.found[what] = kept
            found = self.found[what]
            return found.fault or list(found.each)

    @property
    def lasting(self) -> bool:
        """True if ``matter`` has returned no fault so far. A fault may not repeat in a new run of the grader."""
        return not any(found.fault for found in self.found.values())

    def _tried(self, what: str) -> Matters:
        """Return which operations matter. An operation also matters if its change ends the process."""
        alive = self._alive(what)
        left, matters = [n for n, lives in enumerate(alive) if lives], set[int]()
        while left:
            try:
                answer = self.run_changed(what, left)
            except WorkerDied as died:
                phase, _, number = died.phase.partition(" ")
                if phase != "poisoning" or died.ours or len(matters) == MOST_DEATHS:
                    return Matters(fault=run_fault(died, self.cost.limits.run_seconds))
                matters.add(int(number))
                left.remove(int(number))
                continue
            if isinstance(answer, Fault):
                return Matters(fault=answer)
            if (found := _without_distances(answer, alive)) is not None:
                return found
            try:
                matters |= {
                    n for n, far in zip(left, answer["moved"], strict=True) if self._moves(far, answer["largest"])
                }
            except FAILED as error:
                why = f"the grader cannot read the result that its own process sent: {type(error).__name__}: {error}"
                return Matters(fault=Fault("broken", why))
            break
        return Matters([n in matters for n in range(len(alive))])

    def _alive(self, what: str) -> list[bool]:
        if self.observation.operations is not None:
            return dependency.alive(self.observation.operations, what)
        collectives = self.observation.collectives if what == dependency.COLLECTIVES else ()
        numbers = [c.number for c in collectives if c.number is not None]
        return [True] * (max(numbers, default=-1) + 1)

    def _moves(self, far: Sequence[float], largest: Sequence[float]) -> bool:
        """Return True if a result changed by more than its bound. ``far`` has the largest change of each result."""
        results = [result for step in self.observation.outputs for result in step][: len(largest)]
        return any(moved > _bound(result) * most for result, moved, most in zip(results, far, largest, strict=True))


def _without_distances(answer: Mapping[str, Any], alive: list[bool]) -> Matters | None:
    """Return the answer for all operations if the changed program did not run; None if it ran."""
    if "broken" in answer:
        why = f"the grader failed while it changed this program: {str(answer['broken'])[:400]}"
        return Matters(fault=Fault("broken", why))
    if (fault := answer.get("fault")) is None:
        return None
    # The changed program did not run, because it needs too much memory. So the trial shows nothing about the operation.
    if fault["kind"] == "refused":
        return Matters(fault=Fault("refused", str(fault["message"])[:400], ran=True))
    # XLA cannot compile the changed program. That is not the learner's fault, so assume that each operation with True
    # in ``alive`` matters.
    return Matters(alive)


def _bound(result: Sharded) -> float:
    """Return the bound for the change of a result (see the module), as a fraction of the result's largest value."""
    return min(2 * lets_pass(result.dtype), dependency.LARGEST_BOUND) if is_inexact(result.dtype) else 0.0
