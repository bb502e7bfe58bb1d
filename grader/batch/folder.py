"""The folder of reports that ``grade`` writes to, here called OUT.

- ``OUT/grades.sqlite``: the only record of all grades (``database``)
- ``OUT/overrides.yaml``: points given by hand, which people write and the grader reads (``overrides``)
- ``OUT/roster.csv``: a copy of the last plain roster (a class list: CSV with a column ``id``); people may edit it

The grader writes the files below from the database (``written``). If one is missing, the next run writes it again:

- ``OUT/reports/<student>.json``: the student's report that counts for the grade
- ``OUT/students/<student>.html``: the page about the student, for the student
- ``OUT/<student>.html``: the page about the student, for the staff
- ``OUT/grades.csv``, ``OUT/summary.json`` and ``OUT/index.html``: tables and a page about the class
- ``OUT/integrity.json``: for the staff, the wrong answers that would be right with another student's numbers
- ``OUT/changes.csv`` and ``OUT/changes.html``: the history of changed scores

One folder holds a course's grades. If a run does not grade a student or a module, the earlier grades still count.

The database saves new reports about once a second. The new reports count for the grade when the run ends: one
transaction replaces all old reports and adds the changes and the summary. So a killed run loses only reports that were
not saved yet. If the command is repeated, it grades only submissions without a current report, and submissions for
which the grader itself failed (status ``broken``). Clocks and file times never decide whether a report is current.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import astuple
from pathlib import Path
from types import MappingProxyType
from typing import Any

from grader.batch import canary
from grader.batch.changes import SINCE, Change, ChangedRules, changes_of
from grader.batch.database import FILE, Database, Stored
from grader.batch.grade import Grader
from grader.batch.opening import TakenOver, copied, has_database, reading, take_over
from grader.batch.overrides import Adjustments, as_extensions_are
from grader.batch.reporting import versions_text
from grader.batch.written import remove_files, unfinished, write_files
from grader.common.files import clear_left_behind, file_name
from grader.common.result import ExerciseReport, Report, RunNotes, sum_of_points
from grader.common.text import a_few, composed
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.intake.submission import Submission
from grader.reports.people import People
from grader.reports.summary import Summary


class Folder:
    """The folder of one course's grades. While it is open, a lock keeps other graders from writing to it."""

    database: Database

    def __init__(
        self, path: Path, course: Course | None = None, adjust: Adjustments | None = None, *,
        when: str = "", dry: bool = False,
    ) -> None:  # fmt: skip
        """Store the arguments. A ``with`` statement opens the folder.

        Args:
            adjust: the adjustments of reports: points given by hand and late penalties.
            when: the time of this run, for the history of changes.
            dry: True to work on a copy of the database, and to write nothing to the folder.
        """
        self.path, self.course, self.when, self.dry = path, course, when, dry
        self.adjust = adjust or Adjustments()
        self.suspicions: list[dict[str, Any]] = []  # wrong answers that are right for another student's numbers
        self.changes: list[Change] = []
        self.rules = ChangedRules()
        self.taken = TakenOver()
        # Students who have a report file but no report in the database. The grader cannot compare their new reports
        # with earlier reports.
        self.unread: list[str] = []
        # Names of report files that belong to no report in the database.
        self.uncounted: list[str] = []
        # Students with a new report, from this run or from an earlier run that was killed. ``finish`` replaces their
        # earlier reports.
        self._due: set[str] = set()
        self._earlier: list[str] = []  # Warnings of a run that was killed before it had written all files.
        self._open = ExitStack()

    def __enter__(self) -> Folder:
        with ExitStack() as stack:
            if self.dry:
                self.database, self.taken = stack.enter_context(copied(self.path))
            else:
                self._lock(stack)
                self.database = Database(self.path / FILE, self._take_over)
                stack.callback(self.database.close)
            if text := unfinished(self.path, self.database):
                self._earlier = [w for w in json.loads(text).get("warnings", []) if w.startswith(SINCE)]
            self._open = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def _take_over(self, made: Database) -> None:
        self.taken = take_over(made, self.path)

    def _lock(self, stack: ExitStack) -> None:
        # This import is not at the top, because Windows lacks fcntl. Windows needs no lock, because a batch needs a
        # sandbox, which Windows also lacks.
        import fcntl

        try:
            (self.path / "reports").mkdir(parents=True, exist_ok=True)
            (self.path / "students").mkdir(exist_ok=True)
            lock = os.open(self.path / ".lock", os.O_WRONLY | os.O_CREAT, 0o666)
            stack.callback(os.close, lock)
        except OSError as error:
            raise CourseError(f"cannot write to {self.path}: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CourseError(
                f"another grader is writing to {self.path}; wait for it or choose another --out"
            ) from None
        for place in ("", "reports", "students"):
            clear_left_behind(self.path / place)

    def current_report(self, student: str, fingerprint: str, names: Sequence[str]) -> Report | None:
        """Return the student's report without adjustments; None if the exercises ``names`` must be graded again.

        The report's fingerprint (a digest of everything that the report depends on) must be current. No result for
        ``names`` may be ``broken`` (a failure of the grader). If the report comes from a killed run, this method also
        records that ``settle`` must replace the student's earlier report by this report.
        """
        there = self._graded(student)
        wanted = _fingerprint(fingerprint, self._others(there, names))
        for found in (there, self.database.new_report(student)):
            if found is not None and found.fingerprint == wanted:
                asked = [e for e in found.exercises if e.exercise in names]
                if not any(r.status == "broken" for e in asked for r in e.results):
                    if found is not there:
                        self._due.add(student)
                    return found
        return None

    def _graded(self, student: str) -> Report | None:
        """Return the student's report without adjustments; None if no report of the student counts for the grade."""
        found = self.database.stored(student)
        return as_extensions_are(found.graded, self.course) if found else None

    def _others(self, found: Report | None, names: Sequence[str]) -> list[ExerciseReport]:
        """Return the report's exercises that are not in ``names`` and are still in the course, see ``_with_runs``.

        Raises CourseError if they are from a course with another name.
        """
        if self.course is None or found is None:
            return []
        listed, name = self.course.module_of, self.course.config.name
        others = [e for e in _with_runs(found) if e.exercise in listed and e.exercise not in names]
        if others and found.course != name:
            raise CourseError(
                f"{self.path} holds the grades of {found.course!r}, not of {name!r}; choose another --out, or write "
                f"'name: {found.course}' in {self.course.root / 'course.yaml'}"
            )
        return others

    def keep(self, graded: Report) -> Report:
        """Store a new report, with the exercises that only earlier runs graded. Return the stored report.

        The stored report counts for the grade when the run ends.
        """
        whole = self._added_up(graded)
        self.database.keep_new(whole)
        self._due.add(graded.student)
        return whole

    def settle(self) -> None:
        """Replace old reports by new reports, and record the changes, in a transaction that ``finish`` commits."""
        self.database.begin()
        students = sorted({*self.database.students(), *self._due})
        written = {path.stem: path.name for path in (self.path / "reports").glob("*.json")}
        for student in students:
            self._settle(student, has_file=written.pop(file_name(student), "") != "")
        regrade = self.database.regrades() + 1
        for change in self.changes:
            self.database.add_change(regrade, self.when, *astuple(change))
        self.adjust.end(students)
        self.uncounted = sorted(written.values())

    def _settle(self, student: str, *, has_file: bool) -> None:
        stored, due = self.database.stored(student), student in self._due
        old = stored.counts if stored else None
        graded = (
            self.database.new_report(student)
            if due or stored is None
            else as_extensions_are(stored.graded, self.course)
        )
        if graded is None:
            raise CourseError(f"{self.database.path} no longer has a report of {student}; run the same command again")
        new = Stored(graded, self.adjust.settle(graded, old))
        if old is None and has_file:
            self.unread.append(student)
        self.rules.add(old, new.counts)
        if stored is None or new.graded is not stored.graded or new.counts is not stored.counts:
            self.changes += changes_of(old, new.counts) if old else []
            self.database.replace_reports(student, new)
        if due:
            self.database.forget_new(student)

    def warnings(self) -> list[str]:
        """Return the warnings about changed rules: of this run, and of a run that was killed before it showed them."""
        return list(dict.fromkeys([*self._earlier, *self.rules.warnings()]))

    def finish(
        self, summary: Summary, remarks: Mapping[str, str] = MappingProxyType({}), people: People | None = None
    ) -> None:
        """End the run: commit the transaction that ``settle`` began, then write the files. A dry run is rolled back.

        Args:
            remarks: remarks for ``grades.csv`` by student, such as the reason why a student has no report.
            people: names and sections from the roster (class list); None to keep the people of the last run.
        """
        if self.dry:
            self.database.roll_back()
            return
        text = json.dumps(summary.model_dump(mode="json"), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        run = (text, json.dumps(self.suspicions, indent=2) + "\n", json.dumps(dict(remarks)))
        if self.database.last_run() != run:
            self.database.add_run(self.when, *run)
        if people is not None:
            self.database.set_people(people)
        self.database.commit()
        write_files(self.path, self.database)

    def _added_up(self, graded: Report) -> Report:
        """Return the report merged with exercises that only earlier runs graded."""
        old = self._graded(graded.student)
        others = self._others(old, [e.exercise for e in graded.exercises])
        if self.course is None or old is None or not others:
            return graded
        order = list(self.course.module_of)
        exercises = sorted([*_with_runs(graded), *others], key=lambda e: order.index(e.exercise))
        counted = sum(e.points for e in others if not e.extension)
        return graded.model_copy(
            update={
                "fingerprint": _fingerprint(graded.fingerprint, others),
                "points": round(graded.points + counted, 6),
                "earned": sum_of_points(e.earned for e in exercises),
                "pending": sum_of_points(e.pending for e in exercises),
                "exercises": exercises,
                **_notes_of_all_runs(graded, others),
            }
        )


def _fingerprint(fingerprint: str, others: Sequence[ExerciseReport]) -> str:
    """Return the fingerprint of a report to which exercises of earlier runs (``others``) were added."""
    if not others:
        return fingerprint
    return hashlib.sha256("\n".join([fingerprint, *(e.model_dump_json() for e in others)]).encode()).hexdigest()


def _with_runs(report: Report) -> list[ExerciseReport]:
    """Return the exercises, each with the notes of its run: in a report of one run, with the notes of the report.

    A later run drops these notes when it grades the exercise again.
    """
    run = RunNotes(notes=report.notes, unread=report.unread)
    return [e if e.run else e.model_copy(update={"run": run}) for e in report.exercises]


def _notes_of_all_runs(graded: Report, others: Sequence[ExerciseReport]) -> dict[str, list[str]]:
    runs = [e.run for e in others if e.run]
    notes = [*graded.notes, *(note for run in runs for note in run.notes), *_graded_with_others(graded, others)]
    unread = [*graded.unread, *(note for run in runs for note in run.unread)]
    return {"notes": list(dict.fromkeys(notes)), "unread": list(dict.fromkeys(unread))}


def _graded_with_others(graded: Report, others: Sequence[ExerciseReport]) -> Iterator[str]:
    """Yield a note for each set of versions, other than the report's own, that graded exercises in ``others``."""
    modules: dict[str, dict[str, None]] = {}
    for e in others:
        modules.setdefault(e.basis.get("versions", ""), {})[e.module] = None
    for versions, graded_then in modules.items():
        if versions not in ("", versions_text(graded.versions)):
            yield f"{', '.join(graded_then)}: an earlier run graded these exercises, with {versions}"


def on_file(folder: Path, student: str) -> Report | None:
    """Return the student's report without adjustments; None if the student has no report."""
    with reading(folder) as database:
        found = database.stored(student)
    return found.graded if found else None


def grade_batch(
    grader: Grader, folder: Folder, submissions: Mapping[str, Submission], names: list[str], bar: canary.Bar,
    say_graded: Callable[[Report], None] = canary.no_word,
) -> tuple[set[str], dict[str, Exception]]:  # fmt: skip
    """Grade every submission that has no current report. Return (students with a report, errors by student).

    Afterwards, the caller must end the run with ``folder.finish``, which replaces the old reports.

    Args:
        bar: shows a progress bar.
        say_graded: called with each new report.
    """
    graded: set[str] = set()
    failures: dict[str, Exception] = {}
    left: list[str] = []
    for student in submissions:
        fingerprint = grader.fingerprint(submissions[student], names)
        if folder.current_report(student, fingerprint, names) is None:
            left.append(student)
        else:
            graded.add(student)
    if left:
        canary.prove(grader, names, bar)
    with bar(len(left), "grading") as advance:

        def done(student: str, result: Report | Exception) -> None:
            if isinstance(result, Report):
                folder.keep(result)
                graded.add(student)
                say_graded(result)
            else:
                failures[student] = result
            advance(student)

        grader.batch(left, submissions.__getitem__, names, done)
    folder.settle()
    return graded, failures


def drop(path: Path, names: Sequence[str]) -> None:
    """Delete the students' files, then the students' database rows. Raises CourseError for an unknown student.

    ``names`` may also have the names of submissions and files that need review, as the class page shows these names.
    """
    students = [composed(name) for name in names]
    if not has_database(path) and not (path / "reports").is_dir():
        raise CourseError(f"no reports in {path}")
    with Folder(path) as folder:
        known = {*folder.database.students(), *(case.student for case in folder.database.cases())}
        if unknown := [student for student in students if student not in known]:
            raise CourseError(f"no report of {a_few(unknown)} in {path}")
        # Files first: if the command is killed before it has deleted the rows, it can run again.
        for student in students:
            remove_files(path, student)
        with folder.database.transaction():
            for student in students:
                folder.database.drop(student)
