"""What the reference and the misconceptions of an exercise come to: hints compare submissions with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from grader.batch.workers import Workers
from grader.course.reference import reference_source
from grader.exercise import Exercise, Misconception, Question
from grader.intake.submission import Chunk, Source
from grader.judging.misconceptions import Shown
from grader.judging.plan import Ask
from grader.judging.seen import Answered, Finding


@dataclass
class Found:
    """What one program of the author's comes to, by ``Ask.same``. A thread that adds findings holds the lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    findings: dict[tuple, Finding] = field(default_factory=dict)
    shown: dict[bool, Shown] = field(default_factory=dict)


class References:
    """The author's programs, each traced and run once, on inputs that are not hidden. Any thread may use it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None], Found] = {}
        self._lock = threading.Lock()

    def answered(
        self, exercise: Exercise, misconception: Misconception | None, plan: Sequence[Ask], workers: Workers
    ) -> list[Answered]:
        """Return what the reference (``misconception`` None) or a misconception comes to.

        Args:
            plan: all that is asked of a submission.
        """
        found = self._of(exercise, misconception)
        asks = [a for a in plan if not (a.secret or isinstance(a.of, Question))]
        if misconception is not None:
            asks = [a for a in asks if a.task == getattr(misconception.of, "name", "")]
        with found.lock:
            if left := [a for a in asks if a.same not in found.findings]:
                name = f"{exercise.id}.py"
                source = Source(name, (Chunk(name, reference_source(exercise, {}, misconception)),))
                answered, _ = workers.without_devices().collect(source, left)
                found.findings |= {a.ask.same: a.finding for a in answered}
            return [Answered(a, found.findings[a.same]) for a in asks]

    def shown(
        self, exercise: Exercise, misconception: Misconception, plan: Sequence[Ask], workers: Workers, public: bool
    ) -> Shown:
        """Return what a misconception comes to beside right solutions of all other tasks.

        Args:
            plan: all that is asked of a submission, in public or for a grade.
        """
        found = self._of(exercise, misconception)
        if public not in found.shown:
            right, wrong = (self.answered(exercise, one, plan, workers) for one in (None, misconception))
            instead = {a.ask.same: a for a in wrong}
            found.shown[public] = Shown([instead.get(a.ask.same, a) for a in right])
        return found.shown[public]

    def learn(self, exercise: Exercise, misconception: Misconception, answered: Sequence[Answered]) -> None:
        """Keep what a misconception came to, so that it is not tried again when a hint is looked for."""
        found = self._of(exercise, misconception)
        with found.lock:
            found.findings |= {a.ask.same: a.finding for a in answered if not a.ask.secret}

    def findings(self, name: str) -> Iterator[Finding]:
        """Yield all that is known of the author's programs of an exercise."""
        with self._lock:
            known = [found for (exercise, _), found in self._found.items() if exercise == name]
        for found in known:
            yield from list(found.findings.values())

    def _of(self, exercise: Exercise, misconception: Misconception | None) -> Found:
        with self._lock:
            return self._found.setdefault((exercise.id, misconception.name if misconception else None), Found())
