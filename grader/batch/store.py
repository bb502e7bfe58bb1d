"""The folder a batch writes to: one report per student, whole or absent, kept while it is still valid.

    OUT/reports/<student>.json    the report; its fingerprint says what it depends on
    OUT/students/<student>.html   the page for the student
    OUT/<student>.html            the page for the staff
    OUT/grades.csv  OUT/summary.json  OUT/index.html
    OUT/integrity.json            wrong answers that fit another student's numbers; for the staff
    OUT/changes.csv  OUT/changes.html   whose score a regrade changed, and why: all there ever were
    OUT/overrides.yaml            points given by hand; written by people, read here (``overrides``)
    OUT/staged/                   of a regrade that is under way, what will replace reports

One folder holds a course's grades: what this run was not asked for (another module, another student) stays as
it was, and counts. Delete a report to drop it.

A run that was killed at any moment is resumed by running it again: a report whose fingerprint is the
one this run would give is kept, all others are made anew. So is one with a ``broken`` result: what was
bad luck may go well now. What is made anew and would replace a report waits in ``staged/`` until all is graded; then
the changes are written and told, and only then reports are replaced, one by one, each whole. Neither clocks nor times of files decide anything about a report; which modules are due, and
so are graded where none was named, is for the clock to say (``assignments``).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from grader.batch import canary
from grader.batch.adjust import Adjustments, as_extensions_are
from grader.batch.changes import FILE as CHANGES
from grader.batch.changes import Change, changes_of, history_csv, read_history, with_these
from grader.batch.grade import Grader
from grader.batch.overrides import as_graded
from grader.common.files import clear_left_behind, make_lasting, write_atomic
from grader.common.result import ExerciseReport, Report
from grader.course.config import CourseError, Module
from grader.course.loading import Course
from grader.intake.submission import Submission, Unreadable, fingerprint
from grader.judging import variants
from grader.reports.pages import page_name, render, render_html, summary_html
from grader.reports.summary import Summary
from grader.reports.tables import write_grades_csv
from grader.reports.wording import Audience

STAGED = "staged"
AUDIENCES: tuple[Audience, ...] = ("student", "staff")
WRITERS = 16
MOST_HELD = 4 << 20  # characters
Model = TypeVar("Model", bound=BaseModel)


class Folder:
    """One course's grades, locked against a second grader."""

    def __init__(
        self, path: Path, course: Course | None = None, adjust: Adjustments | None = None, *,
        when: str = "", dry: bool = False,
    ) -> None:  # fmt: skip
        """A folder that is yet to be locked.

        Args:
            adjust: what is laid over the grader's verdicts.
            when: the time of this run, for the history of changes.
            dry: nothing is written, not even the folder.
        """
        self.path, self.course, self.when, self.dry = path, course, when, dry
        self.adjust = adjust or Adjustments()
        self.suspicions: list[dict[str, Any]] = []  # wrong answers that fit another student's numbers
        self.changes: list[Change] = []
        # Whose report on file could not be read, so that no change can be told.
        self.unread: list[str] = []
        # Files among the reports that are no whole report of who they are named after.
        self.uncounted: list[str] = []
        # Whose report, as graded, will replace one; None: it lies in staged/.
        self._waiting: dict[str, Report | None] = {}
        # Whose report will be another, and whether what lies in staged/ is it, its pages as they are.
        self._due: dict[str, bool] = {}
        # What will stand in a student's report, as the class page needs it.
        self._settled: dict[str, Report] = {}
        self._alike: dict[Any, Any] = {}
        self._class: list[Report] | None = None

    def __enter__(self) -> Folder:
        import fcntl  # not on Windows, where there is no sandbox to grade in either

        read_history(self.path)
        if self.dry:
            return self
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
        for place in ("", "reports", "students", STAGED):
            clear_left_behind(self.path / place)
        return self

    def __exit__(self, *error: object) -> None:
        if not self.dry:
            self._lock.close()

    def kept(self, student: str, fingerprint: str, names: Sequence[str]) -> Report | None:
        """The student's report as it was graded, when it is whole, still valid, and nothing of ``names`` waits for better luck.

        One that a killed regrade left behind will do, and waits again.
        """
        old = report_of(self.path, student)
        there = self._before_adjusting(old)
        wanted = _fingerprint(fingerprint, self._others(there, names))
        for found in (there, self._staged(student)):
            if found is not None and found.fingerprint == wanted:
                asked = [e for e in found.exercises if e.exercise in names]
                if not any(r.status == "broken" for e in asked for r in e.results):
                    if found is not there:
                        self._waiting[student] = found if self.dry else None
                    self._settle(found, old)
                    return found
        return None

    def _before_adjusting(self, old: Report | None) -> Report | None:
        """What is on file, as it was graded."""
        return as_extensions_are(as_graded(old), self.course) if old is not None else None

    def _staged(self, student: str) -> Report | None:
        return report_of(self.path, student, STAGED)

    def _others(self, found: Report | None, names: Sequence[str]) -> list[ExerciseReport]:
        """What a report holds besides ``names``, of what the course still has."""
        listed = self.course.module_of if self.course else {}
        return [e for e in found.exercises if e.exercise in listed and e.exercise not in names] if found else []

    def keep(self, graded: Report) -> Report:
        """Write a report, with what was graded before and not now; it is returned, as it counts."""
        on_file = report_of(self.path, graded.student)
        whole = self.adjust(self._added_up(graded, on_file), on_file)
        self._write(whole)
        return whole

    def _write(self, whole: Report, old: Report | None = None) -> None:
        """Pages first, the report last: where there is a report, there are its pages.

        Args:
            old: what is on file: pages that show the same stay.
        """
        self._class = None
        with resumable():
            if old is None or not self._shown(whole, old):
                for page, audience in zip(self._pages(whole.student), AUDIENCES, strict=True):
                    write_atomic(page, render_html(whole, audience=audience))
            write_atomic(self.path / "reports" / f"{whole.student}.json", whole.dumps())

    def _pages(self, student: str) -> tuple[Path, Path]:
        page = page_name(student)
        return self.path / "students" / page, self.path / page

    def _shown(self, new: Report, old: Report) -> bool:
        """Whether the pages that are there show the new report as well."""
        return shows_the_same(new, old) and all(page.is_file() for page in self._pages(new.student))

    def stage(self, graded: Report) -> Report:
        """Keep a report that replaces none; put one that does aside, until ``replace``. It is returned as a reader finds it."""
        student = graded.student
        old = report_of(self.path, student)
        text = self._added_up(graded, old).dumps()
        whole = Report.loads(text)
        if self.dry:
            self._waiting[student] = whole
        elif old is not None:
            with resumable():
                (self.path / STAGED).mkdir(exist_ok=True)
                # Lost with the machine, it is graded again.
                write_atomic(self.path / STAGED / f"{student}.json", text, lasting=False)
            self._waiting[student] = None
        new = self._settle(whole, old)
        if old is None and not self.dry:
            self._write(new)
        return whole

    def settle(self) -> None:
        """Find of all who were not looked at yet whose report will be another; ``changes`` says what. Nothing is replaced yet."""
        students = sorted({*self._students(), *self._waiting})
        for student in students:
            if student not in self._settled:
                old = report_of(self.path, student)
                if (graded := self._as_graded(student, old)) is not None:
                    self._settle(graded, old)
                else:
                    self.uncounted.append(f"{student}.json")
        self.adjust.end(sorted(self._settled))
        self.changes.sort(key=lambda change: change.student)

    def _settle(self, graded: Report, old: Report | None) -> Report:
        """What a student's report will be; both are at hand, and are not read for this again.

        Args:
            graded: without what is laid over it. old: what is on file.
        """
        student, new = graded.student, self.adjust.settle(graded, old)
        if old is None:
            if (self.path / "reports" / f"{student}.json").exists():
                self.unread.append(student)
            if student in self._waiting:  # a killed regrade left it, and what it was to replace is gone
                self._due[student] = False
        else:
            self.changes += changes_of(old, new)
            if old.fingerprint != new.fingerprint or old.dumps() != new.dumps():
                staged = student in self._waiting and new is graded
                self._due[student] = staged and self._shown(new, old)
        # As a reader finds it: 0.0 where a sum was 0.
        row = Report.loads(new.dumps()) if old is None or student in self._due else old
        self._settled[student], self._class = of_a_class(row, self._alike), None
        return new

    def _as_graded(self, student: str, old: Report | None) -> Report | None:
        """What will stand in a student's report before anything is laid over it; None where none can be read.

        Args:
            old: what is on file.
        """
        if student in self._waiting:
            return self._waiting[student] or self._staged(student)
        return self._before_adjusting(old)

    def tell_changes(self) -> None:
        """Write the history of changes, before any report is replaced."""
        old = read_history(self.path)
        history = with_these(old, self.changes, self.when)
        if self.dry or not history:
            return
        with resumable():
            if history != old:
                write_atomic(self.path / CHANGES, history_csv(history))
            write_atomic(self.path / "changes.html", render("changes.html.j2", history=history))

    def replace(self) -> None:
        """Put what was settled in the place of what is on file, report by report."""
        if not self.dry:
            self._replace()
        self._class = [self._settled[student] for student in sorted(self._settled)]
        self._settled, self._alike = {}, {}  # of a large class they are megabytes, and nothing is settled any more

    def _replace(self) -> None:
        ready = [student for student, as_it_lies in self._due.items() if as_it_lies]
        with resumable(), ThreadPoolExecutor(WRITERS) as pool:  # a disk writes many as fast as one
            for _ in pool.map(make_lasting, (self.path / STAGED / f"{student}.json" for student in ready)):
                pass
        for student, as_it_lies in self._due.items():
            if as_it_lies:
                with resumable():
                    os.replace(self.path / STAGED / f"{student}.json", self.path / "reports" / f"{student}.json")
                continue
            old = report_of(self.path, student)
            if (graded := self._as_graded(student, old)) is None:
                raise CourseError(f"{self.path / STAGED / student}.json is gone; run the same command again")
            self._write(self.adjust(graded, old), old)
        with resumable():
            for path in (self.path / STAGED).glob("*"):
                path.unlink()
            if (self.path / STAGED).is_dir():
                (self.path / STAGED).rmdir()

    def _students(self) -> list[str]:
        return sorted(path.stem for path in (self.path / "reports").glob("*.json"))

    def _added_up(self, graded: Report, on_file: Report | None) -> Report:
        """With what was graded before and not now."""
        old = self._before_adjusting(on_file)
        others = self._others(old, [e.exercise for e in graded.exercises])
        if self.course is None or old is None or not others:
            return graded
        if old.course != graded.course:
            raise CourseError(
                f"{self.path} holds the grades of {old.course!r}, not of {graded.course!r}; choose another --out"
            )
        order = list(self.course.module_of)
        exercises = sorted([*graded.exercises, *others], key=lambda e: order.index(e.exercise))
        before = [] if old.versions == graded.versions else [_graded_with(old, others)]
        counted = sum(e.points for e in others if not e.extension)
        return graded.model_copy(
            update={
                "fingerprint": _fingerprint(graded.fingerprint, others),
                "points": round(graded.points + counted, 6),
                "earned": round(sum(e.earned for e in exercises), 6),
                "pending": round(sum(e.pending for e in exercises), 6),
                "exercises": exercises,
                "notes": list(dict.fromkeys([*graded.notes, *old.notes, *before])),
            }
        )

    def reports(self) -> list[Report]:
        """All that is in the folder, by student, as the class page needs them; when it is not written to, all that would be."""
        if self._class is None:
            self._class = [of_a_class(report, self._alike) for report in self.each()]
        return self._class

    def each(self) -> Iterator[Report]:
        """The same one by one, whole."""
        for name in sorted({*self._students(), *(self._waiting if self.dry else ())}):
            found = report_of(self.path, name)
            if self.dry and (graded := self._as_graded(name, found)) is not None:
                found = self.adjust(graded, found)
            if found is not None:
                yield found

    def finish(self, reports: list[Report], summary: Summary, absent: Sequence[str] = ()) -> None:
        """Write what is said of the class; ``absent``: who is in it and handed in nothing."""
        if self.dry:
            return
        text = json.dumps(summary.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        with resumable():
            write_grades_csv(reports, self.path / "grades.csv", absent)
            write_atomic(self.path / "summary.json", text)
            write_atomic(self.path / "index.html", summary_html(summary, reports))


def _fingerprint(fingerprint: str, others: Sequence[ExerciseReport]) -> str:
    """Of a report that holds ``others`` besides what was graded."""
    if not others:
        return fingerprint
    return hashlib.sha256("\n".join([fingerprint, *(e.model_dump_json() for e in others)]).encode()).hexdigest()


def _graded_with(old: Report, others: Sequence[ExerciseReport]) -> str:
    modules = ", ".join(dict.fromkeys(e.module for e in others))
    return f"{modules}: graded before, with {', '.join(f'{n} {v}' for n, v in old.versions.items())}"


def of_a_class(report: Report, alike: dict[Any, Any]) -> Report:
    """Without what the class page has no need of; what many have alike is there once.

    Args:
        alike: what there is already.
    """

    def one_of(e: ExerciseReport) -> ExerciseReport:
        slim = _slim(e, evidence=[], basis={})
        return alike.setdefault(hashlib.sha256(slim.model_dump_json().encode()).digest(), slim)

    versions = alike.setdefault(tuple(report.versions.items()), report.versions)
    return _slim(report, fingerprint="", exercises=[one_of(e) for e in report.exercises], versions=versions)


def _slim(one: Model, **other: Any) -> Model:
    """A copy without a set of its own of the names of all its fields, which takes more memory than its values do."""
    return one.model_construct(_fields_of(type(one)), **(vars(one) | other))


@cache
def _fields_of(kind: type[BaseModel]) -> set[str]:
    return set(kind.model_fields)


def shows_the_same(report: Report, other: Report) -> bool:
    """Whether the pages of both are the same."""

    def shown(of: Report) -> Report:
        drawn_by = [{"grader": e.basis.get("grader", "")} for e in of.exercises]
        exercises = [e.model_copy(update={"basis": b}) for e, b in zip(of.exercises, drawn_by, strict=True)]
        return of.model_copy(update={"fingerprint": "", "exercises": exercises})

    return all(e.basis for e in report.exercises) and shown(report).dumps() == shown(other).dumps()


def report_of(folder: Path, student: str, among: str = "reports") -> Report | None:
    """The student's report in a folder of reports; None where there is none, or none that can be read: a copy of another's is none."""
    try:
        found = Report.loads((folder / among / f"{student}.json").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    return found if found.student == student else None


def on_file(folder: Path, student: str) -> Report | None:
    """The same as it was graded, without what a person and lateness changed."""
    found = report_of(folder, student)
    return as_graded(found) if found else None


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


Bar = Callable[[int, str], AbstractContextManager[Callable[[str], None]]]
"""Shows how many of so many are done; the text says what of."""


def no_word(changes: Sequence[Change]) -> None:
    """Tells nobody."""


def grade_batch(
    grader: Grader, folder: Folder, submissions: Mapping[str, Submission], names: list[str], bar: Bar,
    announce: Callable[[Sequence[Change]], None] = no_word,
) -> tuple[list[Report], dict[str, Exception]]:  # fmt: skip
    """Grade every submission whose report is not already there; reports by student, and what could not be graded.

    ``announce`` gets what changes before any report is replaced.
    """
    reports: set[str] = set()
    failures: dict[str, Exception] = {}
    left: list[str] = []
    for student in submissions:
        try:
            fingerprint = grader.fingerprint(submissions[student], names)
        except Unreadable as error:  # it could be read before
            failures[student] = error
            continue
        if folder.kept(student, fingerprint, names) is None:
            left.append(student)
        else:
            reports.add(student)
    unproved = canary.unproved(grader, names) if left else []
    if unproved:
        with bar(len(unproved), "trying the solutions first") as step:
            canary.prove(grader, unproved, step)
    with bar(len(left), "grading") as advance:

        def done(student: str, result: Report | Exception) -> None:
            if isinstance(result, Report):
                folder.stage(result)
                reports.add(student)
            else:
                failures[student] = result
            advance(student)

        grader.batch(left, submissions.__getitem__, names, done)
    folder.settle()
    folder.tell_changes()
    announce(folder.changes)
    folder.replace()
    everybody = folder.reports()
    write_integrity(grader.course, everybody, folder)
    return [report for report in everybody if report.student in reports], failures


class Works(Mapping[str, Submission]):
    """Submissions by student. So many are held as take MOST_HELD characters; the others are read again when they are needed.

    Work that is exchanged between two readings is graded as it was read last, and its report says so by its fingerprint.
    """

    def __init__(self, students: Iterable[str], read: Callable[[str], Submission]) -> None:
        self._students, self._read = dict.fromkeys(students), read
        self._held: dict[str, Submission] = {}
        self._size = 0

    def __getitem__(self, student: str) -> Submission:
        """Raises Unreadable."""
        if student in self._held:
            return self._held[student]
        if student not in self._students:
            raise KeyError(student)
        found = self._read(student)
        size = sum(len(c.text) for source in set(found.sources.values()) for c in source.chunks)
        if self._size + size <= MOST_HELD:
            self._held[student] = found
            self._size += size
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._students)

    def __len__(self) -> int:
        return len(self._students)

    def let_go(self) -> None:
        """Hold none any longer: all are graded, and what is said of a large class takes memory, too."""
        self._held.clear()
        self._size = MOST_HELD

    def leave_out(self, student: str) -> None:
        del self._students[student]


def read_all(students: Sequence[str], read: Callable[[str], Submission]) -> tuple[Works, dict[str, Exception]]:
    """The submissions by student, and what cannot be read."""
    found = Works(students, read)
    failures: dict[str, Exception] = {}
    for student in list(found):
        try:
            found[student]
        except Unreadable as error:
            failures[student] = error
            found.leave_out(student)
    return found, failures


def assignments(course: Course, submissions: Iterable[Submission], now: datetime) -> dict[str, int]:
    """The modules that are due, or that anybody handed in, and how many did: what nobody was asked for is no zero.

    What is as it was handed out counts for nothing.
    """
    given = course.handed_out
    begun = [
        {course.module_of[e] for e, source in one.sources.items() if fingerprint(source) not in given}
        for one in submissions
    ]
    counts = {m.id: sum(m.id in modules for modules in begun) for m in course.config.modules}
    due = [m for m in course.config.modules if m.exercises and (counts[m.id] or _is_due(m, now))]
    return {m.id: counts[m.id] for m in due}


def _is_due(module: Module, now: datetime) -> bool:
    return module.deadline is not None and module.deadline.astimezone() < now


def write_integrity(course: Course, reports: list[Report], folder: Folder) -> None:
    """Wrong answers that are right for another student's numbers; never shown to students."""
    found: list[dict[str, Any]] = []
    if course.config.variants.mode == "per_student":
        students = [r.student for r in reports]
        known = course.module_of
        drawn: dict[tuple[str, str], variants.OfAClass] = {}
        for graded in reports:
            for part in (e for e in graded.exercises if e.exercise in known):
                questions = course.exercise(part.exercise).questions
                for result in part.results:
                    failed = result.kind != "check" and result.status == "failed" and result.actual
                    if not failed or result.name not in questions:
                        continue
                    one = (part.exercise, result.name)
                    if one not in drawn:
                        question = questions[result.name]
                        drawn[one] = variants.OfAClass(question, {s: course.params(question, s) for s in students})
                    others = drawn[one].fits_others(graded.student, str(result.actual).removeprefix("read as "))
                    if others:
                        found.append({"student": graded.student, "question": result.name, "fits": others})
    folder.suspicions = found
    if folder.dry:
        return
    with resumable():
        write_atomic(folder.path / "integrity.json", json.dumps(found, indent=2) + "\n")
