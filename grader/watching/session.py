"""What is watched: which exercises, which of them now, what was found of it, and which hints were asked for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from grader.batch import explaining
from grader.batch.begun import graded_if_begun
from grader.batch.grade import Grader
from grader.common.result import ExerciseReport, Report
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import Exercise, Misconception, Task
from grader.intake.reading import read
from grader.intake.submission import Source, Submission
from grader.reports.explained import Explained
from grader.reports.wording import first_failure
from grader.watching.checker import Work
from grader.watching.files import path_of, reset


class WatchSession:
    """A learner's exercises, one of them at hand.

    Attributes:
        names: the exercises in course order.
        report: of the one at hand; None until it was checked, and where there is no file for it.
        source: what was read of it last; None where there is none.
    """

    def __init__(self, course: Course, place: Path, student: str, names: Sequence[str]) -> None:
        self.course, self.place, self.student, self.names = course, place, student, list(names)
        self.report: ExerciseReport | None = None
        self.source: Source | None = None
        self._at = 0
        self._submission: Submission | None = None
        self._learnt: set[tuple[str, Misconception | None]] = set()
        self._hints: dict[tuple[str, str], int] = {}

    @property
    def exercise(self) -> Exercise:
        return self.course.exercise(self.names[self._at])

    @property
    def position(self) -> str:
        """``3 of 5``."""
        return f"{self._at + 1} of {len(self.names)}"

    def has(self, step: int) -> bool:
        """Whether there is a next (1) or a previous (-1) exercise."""
        return 0 <= self._at + step < len(self.names)

    def move(self, step: int) -> bool:
        """To the next or the previous exercise; False where there is none."""
        return self.has(step) and self.go_to(self.names[self._at + step])

    def go_to(self, name: str) -> bool:
        """To this exercise."""
        self._at, self.report, self.source = self.names.index(name), None, None
        return True

    def look(self) -> bool:
        """Read the files; whether what is there of the exercise is something else than before."""
        self._submission = read(self.place, self.student, self.course.module_of, self.course.handed_out)
        before, self.source = self.source, self._submission.sources.get(self.exercise.id)
        if self.source is None:
            self.report = None
        return self.source != before

    @property
    def notes(self) -> list[str]:
        """What was found while the exercise's file was read."""
        notes = self._submission.notes if self._submission else ()
        return [note for note in notes if self.exercise.id in note]

    # what is to be done, by a grader

    def check(self) -> Work:
        """The exercise at hand: an ExerciseReport."""
        submission, name, public = self._read(), self.exercise.id, not self.course.solved
        return lambda grader: grader.grade(submission, [name], public=public).exercises[0]

    def check_all(self) -> Work:
        """All that are watched: a Report."""
        submission, public = self._read(), not self.course.solved
        names, _ = self.course.usable(self.names)
        return lambda grader: graded_if_begun(grader, submission, names, public=public)

    def learn(self) -> Work | None:
        """Return work that runs the reference or one misconception of the exercise at hand; None when all have run."""
        exercise = self.exercise
        misconceptions = [None, *(s for s in exercise.misconceptions.values() if isinstance(s.of, Task))]
        left = [s for s in misconceptions if (exercise.id, s) not in self._learnt]
        if not left or self.source is None or not self.course.solved:
            return None
        misconception = left[0]
        self._learnt.add((exercise.id, misconception))

        def work(grader: Grader) -> None:
            with grader.workers() as workers:
                grader.references.answered(exercise, misconception, grader.plan(exercise.id, public=False), workers)

        return work

    def explain(self) -> Work:
        """The function that fails first, or all of the exercise: a list of Explained. Raises CourseError."""
        if self.source is None:
            raise CourseError(f"there is no file of {self.exercise.id} to explain")
        source, wanted = self.source, explaining.Wanted()
        task = self.function if self.function in self.exercise.tasks else None
        try:
            calls = explaining.calls_of(self.exercise, task)
        except CourseError:
            calls = explaining.calls_of(self.exercise)
        asks, _ = explaining.asks_of(self.course, self.exercise, calls, wanted)

        def work(grader: Grader) -> list[Explained]:
            return explaining.explained(grader, source, asks, wanted)[0]

        return work

    def _read(self) -> Submission:
        if self._submission is None:
            self.look()
        assert self._submission is not None
        return self._submission

    # what is asked for

    @property
    def function(self) -> str:
        """The function or question to look at first; '' where nothing fails."""
        failure = first_failure(self.report) if self.report else None
        return failure.task if failure else ""

    def hint(self) -> None:
        """One hint more for the function that fails first."""
        key = (self.exercise.id, self.function)
        self._hints[key] = min(self._hints.get(key, 0) + 1, len(self._hints_of(key[1])))

    @property
    def hints(self) -> list[str]:
        """Those that were asked for, of the function that fails first."""
        return list(self._hints_of(self.function)[: self._hints.get((self.exercise.id, self.function), 0)])

    @property
    def hints_left(self) -> int:
        return len(self._hints_of(self.function)) - len(self.hints)

    def _hints_of(self, name: str) -> Sequence[str]:
        owner = self.exercise.tasks.get(name) or self.exercise.questions.get(name)
        return owner.hints if owner else ()

    def file(self) -> Path | None:
        """Where the exercise is written; None where there is no file yet. Raises CourseError for one in an archive."""
        return path_of(self.place, self.source) if self.source else None

    @property
    def where(self) -> str:
        """The file of the exercise at hand, as it is named from here; '' where there is none."""
        if self.source is None:
            return ""
        path = self.place if self.place.is_file() else self.place / self.source.name
        near = path.is_file() and path.absolute().is_relative_to(Path.cwd())  # not so for a part of an archive
        return os.path.relpath(path) if near else self.source.name

    def reset(self) -> Path:
        """Put the file back as it was handed out; returns where the learner's own is kept. Raises CourseError."""
        path = self.file()
        if path is None:
            raise CourseError(f"there is no file of {self.exercise.id} to reset")
        return reset(self.course, self.exercise.id, path)

    def start(self, report: Report) -> None:
        """Begin at the first exercise of which something is left to do."""
        waiting = (e.exercise for e in report.exercises if not e.handed_in or first_failure(e))
        self.go_to(next(waiting, self.names[0]))
