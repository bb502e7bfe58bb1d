"""The folder a batch writes to: one report per student, whole or absent, kept while it is still valid.

    OUT/reports/<student>.json    the report; its fingerprint says what it depends on
    OUT/students/<student>.html   the page for the student
    OUT/<student>.html            the page for the staff
    OUT/grades.csv  OUT/summary.json  OUT/index.html
    OUT/integrity.json            wrong answers that fit another student's numbers; for the staff

A run that was killed at any moment is resumed by running it again: a report whose fingerprint is the
one this run would give is kept, all others are made anew. So is one with a ``broken`` result: what was
bad luck may go well now. Neither clocks nor times of files decide anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from grader import canary, numbers, report, variants
from grader.course import Course, CourseError
from grader.files import write_atomic
from grader.grade import Grader
from grader.result import Report
from grader.submission import Submission, Unreadable


class Folder:
    """One batch's output, locked against a second grader."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.suspicions = 0  # wrong answers that fit another student's numbers

    def __enter__(self) -> Folder:
        import fcntl  # not on Windows, where there is no sandbox to grade in either

        try:
            (self.path / "reports").mkdir(parents=True, exist_ok=True)
            (self.path / "students").mkdir(exist_ok=True)
            self._lock = open(self.path / ".lock", "w")  # held until __exit__
        except OSError as error:
            raise CourseError(f"cannot write to {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._lock.close()
            raise CourseError(
                f"another grader is writing to {self.path}; wait for it or choose another --out"
            ) from None
        return self

    def __exit__(self, *error: object) -> None:
        self._lock.close()

    def kept(self, student: str, fingerprint: str) -> Report | None:
        """The student's report, when it is whole, still valid, and nothing in it waits for better luck."""
        try:
            found = Report.loads((self.path / "reports" / f"{student}.json").read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValidationError):
            return None
        return found if found.fingerprint == fingerprint and not found.broken else None

    def keep(self, graded: Report) -> None:
        """Pages first, the report last: where there is a report, there are its pages."""
        page = report.page_name(graded.student)
        with resumable():
            write_atomic(self.path / "students" / page, report.render_html(graded, audience="student"))
            write_atomic(self.path / page, report.render_html(graded, audience="staff"))
            write_atomic(self.path / "reports" / f"{graded.student}.json", graded.dumps())

    def finish(self, reports: list[Report], summary: report.Summary) -> None:
        text = json.dumps(summary.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        with resumable():
            report.write_grades_csv(reports, self.path / "grades.csv")
            write_atomic(self.path / "summary.json", text)
            write_atomic(self.path / "index.html", report.render_summary_html(summary, reports))


class CannotWrite(CourseError):
    """The output folder takes no more; what was written before is whole."""


@contextmanager
def resumable() -> Iterator[None]:
    """Raises CannotWrite for a full disk and its like, saying how to go on."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(
            f"cannot write {error.filename}: {error.strerror}; "
            "mend that and run the same command again: what is graded is kept"
        ) from error


Bar = Callable[[int], AbstractContextManager[Callable[[str], None]]]


def grade_batch(
    grader: Grader, folder: Folder, jobs: dict[str, Callable[[], Submission]], names: list[str], bar: Bar
) -> tuple[list[Report], dict[str, Exception]]:
    """Grade every job whose report is not already there; reports by student, and what could not be graded."""
    reports: dict[str, Report] = {}
    failures: dict[str, Exception] = {}
    left: dict[str, Callable[[], Submission]] = {}
    with bar(len(jobs)) as advance:
        for student, read in jobs.items():
            try:
                submission = read()
            except Unreadable as error:
                failures[student] = error
                advance(student)
                continue
            old = folder.kept(student, grader.fingerprint(submission, names))
            if old is None:
                left[student] = lambda submission=submission: submission
            else:
                reports[student] = old
                advance(student)

        def done(student: str, result: Report | Exception) -> None:
            if isinstance(result, Report):
                folder.keep(result)
                reports[student] = result
            else:
                failures[student] = result
            advance(student)

        if left:
            canary.prove(grader, names)
        grader.batch(left, names, done)
    ordered = [reports[s] for s in sorted(reports)]
    write_integrity(grader.course, ordered, folder)
    return ordered, failures


def write_integrity(course: Course, reports: list[Report], folder: Folder) -> None:
    """Wrong answers that are right for another student's numbers; never told to students."""
    found: list[dict[str, Any]] = []
    if course.config.variants.mode == "per_student":
        students = [r.student for r in reports]
        for graded in reports:
            for part in graded.exercises:
                questions = course.exercise(part.exercise).numbers
                for result in part.results:
                    if result.kind == "number" and result.status == "failed" and result.actual:
                        others = _fits(course, questions[result.name], graded.student, str(result.actual), students)
                        if others:
                            found.append({"student": graded.student, "question": result.name, "fits": others})
    folder.suspicions = len(found)
    with resumable():
        write_atomic(folder.path / "integrity.json", json.dumps(found, indent=2) + "\n")


def _fits(course: Course, question: Any, student: str, actual: str, students: list[str]) -> list[str]:
    seed = course.config.variants.seed
    params = {s: variants.params_for(question, seed=seed, student=s) for s in students}
    own = params.pop(student)
    try:
        answer = numbers.parse(actual.removeprefix("read as "), question.unit)
    except numbers.BadAnswer:
        return []
    different = {s: p for s, p in params.items() if p != own}
    return variants.fits_another(question, answer, own, different)
