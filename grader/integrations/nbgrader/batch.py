"""``shardlings nbgrader grade``: grade a class in parallel, and write the gradebook rows that nbgrader would write.

Workers grade in parallel. Only this process reads submissions and writes the gradebook and ``autograded/``. One
transaction writes the gradebook rows of several students. Then this process writes the files of these students. A
student's notebook is written last. The notebook contains a *stamp*: a digest of the submission and of all else that
determines the results. The gradebook contains the stamp, too. A run leaves out each student whose results are all
written: the stored report without a failure of the grader, and the right stamp in the notebook and in the gradebook.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import json
import logging
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbgrader import utils
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
from nbgrader.apps import AutogradeApp
from nbgrader.converters import Autograde
from sqlalchemy.exc import SQLAlchemyError

from grader.batch.canary import Bar
from grader.common.files import write_atomic
from grader.common.result import Report
from grader.common.text import readable
from grader.course.config import CourseError
from grader.intake.submission import Unreadable
from grader.integrations.nbgrader import by_hand, class_page, handed_in, written
from grader.integrations.nbgrader import folder as course_folder
from grader.integrations.nbgrader.autograder import KEPT, Elsewhere, StudentNotebook, stamp
from grader.integrations.nbgrader.class_page import BatchOutcome, not_understood
from grader.integrations.nbgrader.gradebook import (
    Penalties,
    annotate,
    empty,
    names_of,
    one_transaction,
    save,
    submissions_of,
)
from grader.integrations.nbgrader.plugin import Session, graded, rebuild
from grader.integrations.nbgrader.repair import ReleasedCell
from grader.reports.summary import ended_xla

FROM_EXCHANGE = (handed_in.TIMESTAMP, "submission_secret.txt")  # Files that `nbgrader submit` writes.
HELD = 256  # The largest number of submissions that are in memory with their gradebook rows.
MOST_AT_ONCE = 32  # The largest number of students per transaction. nbgrader's formgrader waits for its end.


@dataclass
class _Student:
    """One student's submission: the notebooks, and the notebooks' reports so far."""

    name: str
    notebooks: dict[str, StudentNotebook]
    timestamp: Any
    notes: list[str]
    stamps: dict[str, str]
    reports: dict[str, Report] = field(default_factory=dict)


def grade(
    folder: Path, assignment: str, bar: Bar, *, jobs: int = 0, isolation: str = "", again: bool = False,
    remember: bool = True, elsewhere: Elsewhere | None = None, slow: Callable[[str, float], None] | None = None,
) -> BatchOutcome:  # fmt: skip
    """Grade new or changed submissions in ``submitted/*/<assignment>/``.

    Args:
        jobs: submissions graded at a time; 0 for the setting in nbgrader_config.py.
        isolation: the kind of sandbox, such as "bwrap"; "" for the setting in nbgrader_config.py.
        again: True to write also the results of unchanged submissions to the gradebook.
        remember: use the results of earlier runs, and keep the results of this run for later runs.
        elsewhere: a service that grades submissions on other machines.
        slow: called if a submission takes long, with the student and the seconds so far (see ``Pool.slow``).
    """
    if not (folder / "nbgrader_config.py").is_file():
        init = f"shardlings nbgrader init {shlex.quote(str(folder))}"
        raise CourseError(f"{folder} has no nbgrader_config.py; make it with: {init}")
    with _locked(folder.resolve()):
        batch = _Batch(folder.resolve(), assignment, jobs, isolation)
        batch.session.shardlings.remember, batch.session.shardlings.elsewhere = remember, elsewhere
        try:
            return batch.run(bar, again, slow)
        except (SQLAlchemyError, InvalidEntry) as error:  # nbgrader turns some SQLAlchemyErrors into InvalidEntry
            place = batch.coursedir.db_url.removeprefix("sqlite:///")
            reason = re.sub(r"^[(][\w.]+[)] ", "", str(error).splitlines()[0])
            raise CourseError(
                f"cannot use {place}: {reason}; mend the cause and run the same command again; "
                "finished reports are kept"
            ) from error
        finally:
            batch.session.shardlings.close()


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    (folder / KEPT).mkdir(mode=0o700, exist_ok=True)
    with open(folder / KEPT / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise CourseError(f"another grader is at work in {folder}; wait for it") from None
        yield


class _Batch:
    """One run of ``shardlings nbgrader grade`` over one assignment. All methods run in one thread."""

    def __init__(self, folder: Path, assignment: str, jobs: int, isolation: str) -> None:
        # nbgrader must find the command alembic, which is installed beside the interpreter.
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        self.assignment = assignment
        app = AutogradeApp()
        app.initialize(["--log-level=ERROR"], root=str(folder))
        # This logger would repeat the gradebook's errors, which are raised as exceptions.
        logging.getLogger("tornado.application").setLevel(logging.CRITICAL)
        self.coursedir: Any = app.coursedir
        self.coursedir.assignment_id = assignment
        self.converter: Any = Autograde(coursedir=self.coursedir, parent=app)
        self.session = Session(self.coursedir, self.converter)
        settings = self.session.shardlings
        settings.jobs, settings.isolation = jobs or settings.jobs, isolation or settings.isolation
        self.given = handed_in.given_files(self.coursedir, assignment)
        self.reports: dict[str, list[Report]] = {}  # for each student, one report for each notebook
        self.penalties = Penalties(self.converter)

    def run(self, bar: Bar, again: bool, slow: Callable[[str, float], None] | None = None) -> BatchOutcome:
        settings = self.session.shardlings
        outcome = BatchOutcome(tier=settings.tier)
        with warnings.catch_warnings(), Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            warnings.simplefilter("ignore")  # SQLAlchemy warns about rows that nbgrader builds
            self.gradebook = gradebook
            self._load_assignment()
            places = self._places(outcome)
            outcome.note_look_alikes(places, (str(student.id) for student in gradebook.students))
            self._load_dates()
            if not all(self._graded_folder(name).is_dir() for name, notebooks in places.items() if notebooks):
                # Some submissions need grading, so start workers now, while this thread reads submissions.
                self.session.shardlings.grader.warm()
            with bar(len(places), "grading") as advance:
                left: list[_Student] = []
                for name, place in places.items():
                    outcome.needs_review(name, *handed_in.odd_files(self._folder(name), self.given))
                    if not all((self._folder(name) / file).is_file() for file in FROM_EXCHANGE):
                        outcome.no_secret.append(name)
                    try:
                        student = self._read(name, place)
                    except Unreadable as error:
                        outcome.failures[name] = str(error)
                        advance(name)
                        continue
                    reasons = not_understood(student.notebooks, self.known, self._folder(name))
                    outcome.needs_review(name, *student.notes, *reasons)
                    reports = self._done(student)
                    if not student.notebooks:
                        outcome.failures[name] = handed_in.why_ungraded(
                            self._folder(name), self.known, settings.is_ours
                        )
                    elif reports and not again:
                        outcome.kept.append(name)
                        self.reports[name] = reports
                    else:
                        left.append(student)
                        continue
                    advance(name)
                if left and slow:
                    settings.grader.pool.slow = slow
                self._grade(left, outcome, advance)
            self._penalise_kept(outcome)
            self._note_reviews(outcome)
            outcome.names = names_of(gradebook)
        class_page.write(self._pages, settings.loaded, self.reports, outcome, settings.kept)
        return outcome

    # inputs

    def _load_assignment(self) -> None:
        try:
            found: Any = self.gradebook.find_assignment(self.assignment)
        except MissingEntry:
            raise CourseError(
                f"the gradebook knows no assignment {self.assignment!r}; "
                f"run: nbgrader generate_assignment {self.assignment}"
            ) from None
        self.duedate = found.duedate
        self.kernels = {n.name: json.loads(n.kernelspec or "null") for n in found.notebooks}
        self.known: dict[str, list[ReleasedCell]] = {
            n: self.session.known(self.gradebook, self.assignment, n) for n in self.kernels
        }

    def _load_dates(self) -> None:
        there: list[Any] = self.gradebook.assignment_submissions(self.assignment)
        self.dates = {str(one.student_id): (one.timestamp, one.duedate) for one in there}
        self.stamps = written.stamps_of(self.gradebook, self.assignment)

    def _places(self, outcome: BatchOutcome) -> dict[str, list[Path]]:
        """Return the notebooks in each student's folder in ``submitted/``. Note each folder that is not read."""
        submitted = self.coursedir.submitted_directory
        pattern = self.coursedir.format_path(submitted, "(?P<student_id>.*)", re.escape(self.assignment), escape=True)
        everybody = self.coursedir.format_path(submitted, self.coursedir.student_id, self.assignment)
        found: dict[str, list[Path]] = {}
        for place in sorted(glob.glob(everybody)):
            match = re.fullmatch(pattern, place, re.DOTALL)
            if match and (reason := handed_in.why_refused(self.coursedir, match["student_id"], self.assignment)):
                outcome.failures[readable(match["student_id"])] = reason
            elif match:
                books = os.path.join(place, f"{self.coursedir.notebook_id}.ipynb")
                found[match["student_id"]] = [Path(book) for book in sorted(glob.glob(books))]
        if not found and not outcome.failures:
            raise CourseError(
                f"nothing was handed in for {self.assignment}: "
                f"{self.coursedir.root}/submitted/*/{self.assignment}/ is empty"
            )
        return dict(sorted(found.items()))

    def _folder(self, name: str) -> Path:
        return Path(self.coursedir.format_path(self.coursedir.submitted_directory, name, self.assignment))

    def _graded_folder(self, name: str) -> Path:
        return Path(self.coursedir.format_path(self.coursedir.autograded_directory, name, self.assignment))

    def _read(self, name: str, paths: list[Path]) -> _Student:
        notebooks = {
            n.stem: self.session.shardlings.read(n, name, self.assignment, n.stem, self.known[n.stem])
            for n in paths
            if n.stem in self.known
        }
        timestamp, notes = handed_in.time_in(self._folder(name))
        known, due = self.dates.get(name, (None, self.duedate))
        dates = [timestamp or known, due]
        stamps = {n: stamp(w, self.known[n], dates, self.session.late) for n, w in notebooks.items()}
        return _Student(name, notebooks, timestamp, notes, stamps)

    def _done(self, student: _Student) -> list[Report]:
        """Return the student's reports if all results of the student are written, else []."""
        directory = self.coursedir.autograded_directory
        for name in self.known:
            mark = student.stamps.get(name, "")
            there = written.stamp_in(self.session.path(directory, student.name, self.assignment, name))
            if not mark == there == self.stamps.get((student.name, name), ""):
                return []
        found = [self.session.shardlings.kept(book.fingerprint) for book in student.notebooks.values()]
        return [report for report in found if report] if all(found) else []

    def _note_reviews(self, outcome: BatchOutcome) -> None:
        """Collect the cells that need review. Add to the reports the points that people gave in nbgrader."""
        for student, reason in outcome.failures.items():
            outcome.attention[student] = [f"not graded: {reason}", *outcome.attention.get(student, [])]
        checks = {c: e for of_notebook in self._exercises.values() for c, e in of_notebook.items()}
        words = by_hand.to_read(self.session.shardlings.loaded, checks.values())
        # Include students in the gradebook who have no folder in ``submitted``. Load at most HELD students at a time.
        everybody = sorted({*self.dates, *outcome.graded})
        for start in range(0, len(everybody), HELD):
            for submission in submissions_of(self.gradebook, self.assignment, everybody[start : start + HELD]):
                reports = self.reports.get(student := str(submission.student_id), [])
                outcome.look_at(submission, checks, words, reports)
                course = self.session.shardlings.loaded
                for report in reports:
                    outcome.needs_review(student, *by_hand.out_of_range(report, submission, course))
                if reports:
                    self.reports[student] = [by_hand.laid_over(report, submission, course) for report in reports]
        outcome.attention = dict(sorted(outcome.attention.items()))

    @property
    def _exercises(self) -> dict[str, dict[str, str]]:
        """Return, for each notebook, the exercise of each grade cell."""
        course = self.session.shardlings.loaded
        return {
            n: {course_folder.check_cell(e): e for e in course.module(n).exercises}
            for n in self.known
            if self.session.shardlings.is_ours(n)
        }

    # grading

    def _grade(self, students: list[_Student], outcome: BatchOutcome, advance: Callable[[str], None]) -> None:
        by_name = {s.name: s for s in students}
        ready: list[_Student] = []
        at_once = 1  # write the first result immediately, and later results in growing groups

        def record() -> None:
            nonlocal at_once
            self._record(ready, outcome)
            for student in ready:
                self.reports[student.name] = list(student.reports.values())
                outcome.graded.append(student.name)
                if any(r.broken for r in student.reports.values()):
                    outcome.pending.append(student.name)
                advance(student.name)
            ready.clear()
            at_once = min(2 * at_once, MOST_AT_ONCE)

        def done(book: StudentNotebook, result: Report | Exception) -> None:
            student = by_name[book.student]
            if isinstance(result, Exception):
                outcome.failures[student.name] = f"{type(result).__name__}: {result}"
            else:
                student.reports[book.notebook] = result
                if warning := ended_xla(result):
                    outcome.needs_review(student.name, warning)
            if set(student.reports) == set(student.notebooks):
                ready.append(student)
            if len(ready) >= at_once:
                record()

        for notebook in self.known:
            self.session.shardlings.batch([s.notebooks[notebook] for s in students if notebook in s.notebooks], done)
        record()
        outcome.graded.sort()

    def _record(self, students: Sequence[_Student], outcome: BatchOutcome) -> None:
        """Write the gradebook rows, then each student's files. The last file is the notebook with the stamp."""
        nodes = {s.name: {n: self._notebook(s, book) for n, book in s.notebooks.items()} for s in students}
        late: list[tuple[_Student, Any]] = []
        with one_transaction(self.gradebook):
            for student, found in self._rows(students):
                self._fill(student, found, nodes[student.name])
                if found.total_seconds_late > 0:
                    late.append((student, found))
            if late:  # penalties depend on sums of scores, which the database computes
                self.gradebook.db.flush()
                self.gradebook.db.expire_all()
            for student, found in late:
                if reason := self.penalties.set(found):
                    outcome.failures[student.name] = reason
        for student in students:
            class_page.drop(self._pages, student.name)
            self._write(student.name, nodes[student.name])

    def _fill(self, student: _Student, found: Any, nodes: dict[str, Any]) -> None:
        for submitted in found.notebooks:
            book = student.notebooks.get(submitted.name)
            if book is None:
                empty(submitted)
                continue
            save(submitted, nodes[submitted.name].cells, book)
            name = submitted.name
            annotate(submitted, self.session.shardlings, book, student.reports[name], student.stamps[name])
            submitted.late_submission_penalty = None

    def _penalise_kept(self, outcome: BatchOutcome) -> None:
        """Compute the late penalties of unchanged submissions again, because a person may have changed their scores."""
        for start in range(0, len(outcome.kept), HELD):
            with one_transaction(self.gradebook):
                for found in submissions_of(self.gradebook, self.assignment, outcome.kept[start : start + HELD]):
                    if found.total_seconds_late > 0 and (reason := self.penalties.set(found)):
                        outcome.failures[str(found.student_id)] = reason

    @property
    def _pages(self) -> Path:
        return Path(self.coursedir.root, KEPT, "pages", self.assignment)

    def _rows(self, students: Sequence[_Student]) -> list[tuple[_Student, Any]]:
        """Return each student's submission in the gradebook. Create submissions that are missing."""
        for student in students:
            self.gradebook.update_or_create_student(student.name)
        held = submissions_of(self.gradebook, self.assignment, [s.name for s in students])
        found = list[tuple[_Student, Any]]()
        for student in students:
            dated = {"timestamp": student.timestamp} if student.timestamp else {}
            found.append((student, self.gradebook.update_or_create_submission(self.assignment, student.name, **dated)))
        del held  # SQLAlchemy's session drops rows that nothing refers to, so ``held`` kept them for the loop
        return found

    def _notebook(self, student: _Student, book: StudentNotebook) -> Any:
        node = nbformat.v4.new_notebook()
        rebuild(node, book)
        if self.kernels[book.notebook]:
            node.metadata["kernelspec"] = self.kernels[book.notebook]
        graded(node, book, student.reports[book.notebook], student.stamps[book.notebook])
        return node

    # files

    def _write(self, name: str, nodes: dict[str, Any]) -> None:
        if (target := self._graded_folder(name)).is_dir():
            utils.rmtree(str(target))
        target.mkdir(parents=True)
        handed_in.copy(str(self._folder(name)), str(target), self.coursedir.ignore, self.converter.log, self.given)
        source = Path(self.coursedir.format_path(self.coursedir.source_directory, ".", self.assignment))
        excluded = self.converter.exclude_overwriting.get(self.assignment, [])
        handed_in.copy_given(source, target, self.given - {*excluded})
        self.converter.set_permissions(self.assignment, name)
        for notebook, node in nodes.items():
            path = target / f"{notebook}.ipynb"
            write_atomic(path, nbformat.writes(node) + "\n", mode=int(str(self.converter.permissions), 8))
