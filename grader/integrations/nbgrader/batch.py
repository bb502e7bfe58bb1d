"""``shardlings nbgrader grade``: grade a class in parallel, and write the gradebook rows that nbgrader would write.

Workers grade in parallel. Only this process reads submissions and writes the gradebook and ``autograded/``. One
transaction writes the gradebook rows of several students. Then this process writes the files of these students. A
student's notebook is written last. The notebook contains a *stamp*: a digest of the submission and of all else that
determines the results. The stamp proves that all results of the student are written. If a run is killed, the next run
leaves out each student whose notebook has the right stamp.
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
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from nbgrader import utils
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
from nbgrader.apps import AutogradeApp
from nbgrader.converters import Autograde
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy.exc import SQLAlchemyError

from grader.common.files import write_atomic
from grader.common.result import Report
from grader.common.text import readable
from grader.course.config import CourseError
from grader.intake.submission import Unreadable
from grader.integrations.nbgrader import by_hand, class_page, handed_in
from grader.integrations.nbgrader import folder as course_folder
from grader.integrations.nbgrader.autograder import KEPT, Elsewhere, StudentNotebook, stamp
from grader.integrations.nbgrader.gradebook import annotate, names_of, one_transaction, save, submissions_of
from grader.integrations.nbgrader.outcome import BatchOutcome, not_understood
from grader.integrations.nbgrader.plugin import METADATA, Session, graded, rebuild
from grader.integrations.nbgrader.repair import ReleasedCell
from grader.reports.attention import ended_xla

FROM_EXCHANGE = (handed_in.TIMESTAMP, "submission_secret.txt")  # Files that `nbgrader submit` writes.
HELD = 256  # The largest number of submissions that are in memory with their gradebook rows.
MOST_AT_ONCE = 32
"""The largest number of students per transaction. nbgrader's formgrader has to wait until a transaction ends."""
Bar = Callable[[int, str], AbstractContextManager[Callable[[str], None]]]


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
        self.late: Any = AssignLatePenalties(parent=self.converter)
        self.late.init_plugin()

    def run(self, bar: Bar, again: bool, slow: Callable[[str, float], None] | None = None) -> BatchOutcome:
        settings = self.session.shardlings
        outcome = BatchOutcome(tier=settings.tier)
        with warnings.catch_warnings(), Gradebook(self.coursedir.db_url, self.coursedir.course_id) as gradebook:
            warnings.simplefilter("ignore")  # SQLAlchemy warns about rows that nbgrader builds
            self.gradebook = gradebook
            self._load_assignment()
            places = self._places(outcome)
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
                    if not student.notebooks:
                        outcome.failures[name] = handed_in.why_ungraded(
                            self._folder(name), self.known, settings.is_ours
                        )
                    elif not again and self._is_done(student):
                        outcome.kept.append(name)
                        self.reports[name] = [
                            r for w in student.notebooks.values() if (r := settings.kept(w.fingerprint))
                        ]
                    else:
                        left.append(student)
                        continue
                    advance(name)
                if left and slow:
                    settings.grader.pool.slow = slow
                self._grade(left, outcome, advance)
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

    def _is_done(self, student: _Student) -> bool:
        return student.name in self.dates and all(
            self._stamp_in(student.name, n) == mark for n, mark in student.stamps.items()
        )

    def _stamp_in(self, name: str, notebook: str) -> str:
        path = self.session.path(self.coursedir.autograded_directory, name, self.assignment, notebook)
        try:
            return str(json.loads(path.read_text(encoding="utf-8"))["metadata"][METADATA]["stamp"])
        except (OSError, ValueError, KeyError, TypeError):
            return ""

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
                outcome.look_at(submission, checks, words)
                if reports := self.reports.get(student := str(submission.student_id)):
                    course = self.session.shardlings.loaded
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
            self._record(ready)
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

    def _record(self, students: Sequence[_Student]) -> None:
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
                self._penalise(student, found)
        for student in students:
            class_page.drop(self._pages, student.name)
            self._write(student.name, nodes[student.name])

    def _fill(self, student: _Student, found: Any, nodes: dict[str, Any]) -> None:
        for submitted in found.notebooks:
            book = student.notebooks.get(submitted.name)
            if book is None:
                for grade in submitted.grades:
                    grade.auto_score, grade.needs_manual_grade = 0, False
                continue
            save(submitted, nodes[submitted.name].cells, book)
            annotate(submitted, self.session.shardlings, book, student.reports[submitted.name])
            submitted.late_submission_penalty = None

    @property
    def _pages(self) -> Path:
        return Path(self.coursedir.root, KEPT, "pages", self.assignment)

    def _rows(self, students: Sequence[_Student]) -> list[tuple[_Student, Any]]:
        """Return each student's submission in the gradebook. Create submissions that are missing."""
        for student in students:
            self.gradebook.update_or_create_student(student.name)
        held = submissions_of(self.gradebook, self.assignment, [s.name for s in students])
        found: list[tuple[_Student, Any]] = []
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

    def _penalise(self, student: _Student, found: Any) -> None:
        """Set late penalties with the configured plugin, like nbgrader's AssignLatePenalties."""
        late = found.total_seconds_late
        for submitted in found.notebooks:
            if submitted.name in student.notebooks:
                penalty = self.late.plugin_inst.late_submission_penalty(student.name, submitted.score, late)
                if penalty is not None:
                    submitted.late_submission_penalty = min(max(penalty, 0), submitted.score)

    # files

    def _write(self, name: str, nodes: dict[str, Any]) -> None:
        target = self._graded_folder(name)
        if target.is_dir():
            utils.rmtree(str(target))
        target.mkdir(parents=True)
        handed_in.copy(str(self._folder(name)), str(target), self.coursedir.ignore, self.converter.log, self.given)
        self._copy_source(target)
        self.converter.set_permissions(self.assignment, name)
        for notebook, node in nodes.items():
            path = target / f"{notebook}.ipynb"
            write_atomic(path, nbformat.writes(node) + "\n")
            os.chmod(path, int(str(self.converter.permissions), 8))

    def _copy_source(self, target: Path) -> None:
        """Copy the assignment's files from ``source/`` to ``target``, and replace submitted files of equal names."""
        source = Path(self.coursedir.format_path(self.coursedir.source_directory, ".", self.assignment))
        for file in sorted(self.given - {*self.converter.exclude_overwriting.get(self.assignment, [])}):
            place = target / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            shutil.copy(source / file, place)
