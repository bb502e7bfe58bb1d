"""The state of ``watch``: the exercises, the current exercise, its results, and the hints that the learner revealed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from grader.batch import explaining
from grader.batch.begun import graded_if_begun
from grader.batch.grade import Grader
from grader.common.result import ExerciseReport, Report
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import Exercise, Misconception, Task
from grader.intake.reading import read
from grader.intake.submission import Source, Submission, Unreadable
from grader.reports.explained import Explained
from grader.reports.wording import first_failure
from grader.watching.checker import Work
from grader.watching.files import path_of, reset

AS_DECLARED = explaining.Wanted()


class WatchSession:
    """A learner's exercises, and the current exercise among them.

    Attributes:
        names: the exercises in course order.
        report: the current exercise's report; None if the exercise was not checked yet or has no file.
        source: the current exercise's file or notebook as last read; None without a file.
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
        """The current exercise's position in the list, as ``3 of 5``."""
        return f"{self._at + 1} of {len(self.names)}"

    def has(self, step: int) -> bool:
        """Return whether an exercise follows (``step`` 1) or precedes (``step`` -1) the current exercise."""
        return 0 <= self._at + step < len(self.names)

    def move(self, step: int) -> bool:
        """Move to the next (``step`` 1) or previous (``step`` -1) exercise. Return False if no such exercise exists."""
        return self.has(step) and self.go_to(self.names[self._at + step])

    def go_to(self, name: str) -> bool:
        self._at, self.report, self.source = self.names.index(name), None, None
        return True

    def look(self) -> bool:
        """Read the learner's files. Return whether the current exercise's code changed."""
        try:
            self._submission = read(self.place, self.student, self.course.module_of, self.course.handed_out)
        except Unreadable as error:  # for example, an editor is just replacing the file
            if self._submission is None:
                raise
            self._submission = replace(self._submission, notes=(str(error),))
            return False
        before, self.source = self.source, self._submission.sources.get(self.exercise.id)
        if self.source is None:
            self.report = None
        return self.source != before

    @property
    def notes(self) -> list[str]:
        """The notes about the current exercise, from the last time that ``look`` read the learner's files."""
        notes = self._submission.notes if self._submission else ()
        return [note for note in notes if self.exercise.id in note]

    # The methods below return functions that take a grader. The checker calls these functions.

    def check(self) -> Work:
        """Return a function that checks the current exercise and returns an ExerciseReport."""
        submission, name, public = self._read(), self.exercise.id, not self.course.solved
        return lambda grader: grader.grade(submission, [name], public=public).exercises[0]

    def check_all(self) -> Work:
        """Return a function that checks all watched exercises and returns a Report."""
        submission, public = self._read(), not self.course.solved
        names, _ = self.course.usable(self.names)
        return lambda grader: graded_if_begun(grader, submission, names, public=public)

    def learn(self) -> Work | None:
        """Return a function that runs the reference (the author's solution) or one misconception (a known mistake).

        The results help to choose hints later. Return None if nothing is left to run, if the exercise has no file, or
        if the course has no solutions.
        """
        exercise = self.exercise
        misconceptions = [None, *(s for s in exercise.misconceptions.values() if isinstance(s.of, Task))]
        left = [s for s in misconceptions if (exercise.id, s) not in self._learnt]
        if not left or self.source is None or not self.course.solved:
            return None
        misconception = left[0]
        self._learnt.add((exercise.id, misconception))

        def work(grader: Grader) -> None:
            with grader.pool.lent() as workers:
                grader.references.answered(exercise, misconception, grader.plan(exercise.id, public=False), workers)

        return work

    def explain(self, wanted: explaining.Wanted = AS_DECLARED, otherwise_on: str = "") -> Work:
        """Return a function that explains the first failing task, or all tasks if none fails, and returns the facts.

        Raises CourseError.

        Args:
            otherwise_on: the default TPU slice for timelines, such as "v5e:2x4".
        """
        if self.source is None:
            raise CourseError(f"there is no file of {self.exercise.id} to explain")
        source = self.source
        task = self.function if self.function in self.exercise.tasks else None
        try:
            calls = explaining.calls_of(self.exercise, task)
        except CourseError:
            calls = explaining.calls_of(self.exercise)
        asks, _ = explaining.asks_of(self.course, self.exercise, calls, wanted)

        laid = replace(wanted, on=wanted.on or otherwise_on)

        def work(grader: Grader) -> list[Explained]:
            return explaining.explained(grader, source, asks, laid)[0]

        return work

    def _read(self) -> Submission:
        if self._submission is None:
            self.look()
        assert self._submission is not None
        return self._submission

    # The properties below are the state that the screen shows.

    @property
    def function(self) -> str:
        """The first failing function or question; '' if nothing fails."""
        failure = first_failure(self.report) if self.report else None
        return failure.task if failure else ""

    def hint(self) -> None:
        """Reveal one more hint for the first failing function."""
        key = (self.exercise.id, self.function)
        self._hints[key] = min(self._hints.get(key, 0) + 1, len(self._hints_of(key[1])))

    @property
    def hints(self) -> list[str]:
        """The revealed hints for the first failing function."""
        return list(self._hints_of(self.function)[: self._hints.get((self.exercise.id, self.function), 0)])

    @property
    def hints_left(self) -> int:
        return len(self._hints_of(self.function)) - len(self.hints)

    def _hints_of(self, name: str) -> Sequence[str]:
        owner = self.exercise.tasks.get(name) or self.exercise.questions.get(name)
        return owner.hints if owner else ()

    @property
    def where(self) -> str:
        """The current exercise's file, relative to the working directory if possible; '' without a file."""
        if self.source is None:
            return ""
        path = self.place if self.place.is_file() else self.place / self.source.name
        # For a file in an archive, ``path.is_file()`` is False.
        near = path.is_file() and path.absolute().is_relative_to(Path.cwd())
        return os.path.relpath(path) if near else self.source.name

    def reset(self) -> Path:
        """Restore the exercise's file to its handed-out state. Return the learner's backup. Raises CourseError."""
        if self.source is None:
            raise CourseError(f"there is no file of {self.exercise.id} to reset")
        return reset(self.course, self.exercise.id, path_of(self.place, self.source))

    def start(self, report: Report) -> None:
        """Move to the first exercise that is missing or fails in this report."""
        waiting = (e.exercise for e in report.exercises if not e.handed_in or first_failure(e))
        self.go_to(next(waiting, self.names[0]))
