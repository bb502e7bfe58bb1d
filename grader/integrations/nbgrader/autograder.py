"""Grade submissions without nbgrader's kernels: settings, workers, and stored reports.

Reports are stored below DIR/.shardlings/, which only staff can read. A report's file name is the fingerprint (a digest)
of the submission, so an unchanged submission is not graded again.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from traitlets import Integer, Unicode
from traitlets.config import LoggingConfigurable

from grader.batch import canary
from grader.batch.backends import Elsewhere
from grader.batch.confined import parsing
from grader.batch.grade import Grader
from grader.common.cache import user_cache
from grader.common.files import write_atomic
from grader.common.result import Report
from grader.course.build import handed_out_texts
from grader.course.config import CourseError
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.intake.parsers import Parsers
from grader.intake.submission import Submission
from grader.integrations.nbgrader import folder
from grader.integrations.nbgrader.repair import ReleasedCell, Repaired, repair
from grader.reports.pages import load_templates
from grader.reports.points import counted
from grader.sandbox.tiers import best_tier

KEPT = ".shardlings"


@dataclass(frozen=True)
class StudentNotebook:
    """One submitted notebook, read and repaired, with everything that its verdict depends on.

    The keys of ``points`` and ``exercise_of`` are names of grade cells.
    """

    student: str
    assignment: str
    notebook: str
    repaired: Repaired
    names: list[str]
    fingerprint: str
    points: dict[str, float]
    exercise_of: dict[str, str]


class Shardlings(LoggingConfigurable):
    """The settings and workers that grade submissions."""

    course = Unicode("", help="the path of the course.yaml of a course with its solutions").tag(config=True)
    isolation = Unicode("auto", help="auto, sandlock, bwrap, or none (only for work you trust)").tag(config=True)
    jobs = Integer(2, min=1, max=64, help="the number of submissions to grade at once").tag(config=True)

    def __init__(self, root: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.root = Path(root or ".")
        self._lock = threading.Lock()
        self._grader: Grader | None = None
        self._coming: dict[str, Future[Report]] = {}
        self._stopped = False
        self._proved: set[str] = set()
        self._cells: dict[str, frozenset[str]] = {}
        self.remember = True  # cache results for later runs, see ``common.cache``
        self.elsewhere: Elsewhere | None = None
        self._remembering = ExitStack()
        self._parsing = ExitStack()

    @cached_property
    def loaded(self) -> Course:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        if not self.course:
            raise CourseError("nbgrader_config.py names no course: set c.Shardlings.course to the path of course.yaml")
        course = find_course(Path(self.course))
        if not course.solved:
            raise CourseError(f"{self.course} has no solutions/ beside it, and grading needs the solutions")
        return course

    @cached_property
    def tier(self) -> str:
        return self.elsewhere.tier_of(self.isolation) if self.elsewhere else best_tier(self.isolation)

    @property
    def grader(self) -> Grader:
        """The grader, which starts on first use."""
        with self._lock:
            if self._grader is None and self.elsewhere:
                self._grader = self.elsewhere.grader(self.loaded, self.tier, remember=self.remember)
            if self._grader is None:
                cache = self._remembering.enter_context(user_cache(self.remember))
                self._grader = Grader(self.loaded, self.tier, self.jobs, cache=cache)
            return self._grader

    @cached_property
    def parsers(self) -> Parsers:
        """The parsers of submitted notebooks. The parsers' process starts on first use."""
        return self._parsing.enter_context(parsing(self.isolation))

    def close(self) -> None:
        self._stopped = True
        self._parsing.close()
        with self._lock:
            if self._grader is not None:
                self._grader.__exit__()
                self._grader = None
                self._remembering.close()

    # one notebook

    def is_ours(self, notebook: str) -> bool:
        return any(m.id == notebook for m in self.loaded.config.modules)

    def read(
        self, path: Path, student: str, assignment: str, notebook: str, known: Sequence[ReleasedCell]
    ) -> StudentNotebook:
        """Read and repair a submitted notebook.

        Raises CourseError if the cells or points in the gradebook differ from the course's cells or points.
        """
        course = self.loaded
        names = list(course.module(notebook).exercises) if self.is_ours(notebook) else []
        exercise_of = {folder.check_cell(name): name for name in names}
        points = {k.name: k.points for k in known if k.graded and k.points is not None}
        self._agree(assignment, exercise_of, points)
        given = folder.texts_given(course) if names else frozenset()
        handed_out = self._handed_out(notebook) if names else frozenset[str]()
        grader = self.grader  # Without a sandbox, this raises NoIsolation before the notebook is parsed.
        repaired = repair(path, student, known, names, given, self.parsers, handed_out)
        fingerprint = grader.fingerprint(repaired.submission, names)
        return StudentNotebook(student, assignment, notebook, repaired, names, fingerprint, points, exercise_of)

    def _handed_out(self, module: str) -> frozenset[str]:
        """Return the texts of the code cells of a module's notebook, as learners get them."""
        if module not in self._cells:
            self._cells[module] = frozenset(text.strip() for text in handed_out_texts(self.loaded, module))
        return self._cells[module]

    def _agree(self, assignment: str, exercise_of: Mapping[str, str], points: Mapping[str, float]) -> None:
        again = "run: shardlings nbgrader init DIR && nbgrader generate_assignment --force " + assignment
        for cell, name in exercise_of.items():
            worth = folder.cell_points(self.loaded, name)
            if cell not in points:
                raise CourseError(f"the gradebook has no cell for {name}; {again}")
            if abs(points[cell] - worth) > 1e-6:
                raise CourseError(
                    f"{name} is worth {counted(worth, 'point')} in the course, "
                    f"{points[cell]:g} in the gradebook; {again}"
                )

    def report(self, book: StudentNotebook) -> Report:
        """Return the notebook's stored report. If there is none, grade the notebook now and return the new report."""
        found = self.kept(book.fingerprint)
        if found is None and book.fingerprint in self._coming:
            found = self._coming[book.fingerprint].result()
        if found is None:
            self._prove(book.names)
            found = self.grader.grade(book.repaired.submission, book.names)
            self.keep(book.fingerprint, found)
        return found

    def ahead(self, notebooks: Sequence[StudentNotebook]) -> None:
        """If two or more notebooks have no stored report, start grading these notebooks in the background."""
        left = [w for w in notebooks if self.kept(w.fingerprint) is None]
        self._coming = {w.fingerprint: Future() for w in left}

        def done(book: StudentNotebook, result: Report | Exception) -> None:
            coming = self._coming[book.fingerprint]
            coming.set_result(result) if isinstance(result, Report) else coming.set_exception(result)

        if left:
            # Grade the course's solutions in this thread, because an error in another thread would not stop the batch.
            self._prove(left[0].names)
        if len(left) > 1:
            threading.Thread(target=self.batch, args=(left, done), daemon=True).start()
        else:
            self._coming = {}

    def _prove(self, names: Sequence[str]) -> None:
        """Grade the exercises' solutions once per run, to test the grader. Raises CanaryFailed if a solution fails."""
        if not self._proved.issuperset(names):
            canary.prove(self.grader, names)
            self._proved.update(names)

    # stored reports

    def _place(self, fingerprint: str) -> Path:
        return self.root / KEPT / "reports" / fingerprint[:2] / f"{fingerprint}.json"

    def kept(self, fingerprint: str) -> Report | None:
        try:
            found = Report.loads(self._place(fingerprint).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValidationError):
            return None
        return found if found.fingerprint == fingerprint and not found.broken else None

    def keep(self, fingerprint: str, report: Report) -> None:
        place = self._place(fingerprint)
        private = self.root / KEPT
        if not private.is_dir():
            private.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, report.dumps())

    def batch(
        self, notebooks: Sequence[StudentNotebook], done: Callable[[StudentNotebook, Report | Exception], None]
    ) -> None:
        """Grade all notebooks without a stored report, in parallel. Call ``done`` in this thread for every notebook."""
        left: dict[str, StudentNotebook] = {}
        for book in notebooks:
            found = self.kept(book.fingerprint)
            if found is None:
                left[book.student] = book
            else:
                done(book, found)

        def finished(student: str, result: Report | Exception) -> None:
            if isinstance(result, Report):
                self.keep(left[student].fingerprint, result)
            done(left[student], result)

        if left:
            names = next(iter(left.values())).names
            self._prove(names)
            load_templates()  # Load before the batch, because loading can fail while other threads parse Python.
            self.grader.batch(left, lambda student: self._next(left[student]), names, finished)

    def _next(self, book: StudentNotebook) -> Submission:
        if self._stopped:
            raise CancelledError
        return book.repaired.submission


def stamp(book: StudentNotebook, known: Sequence[ReleasedCell], dates: Sequence[object], late: Sequence[str]) -> str:
    """Return a digest of everything that affects the graded notebook and its gradebook rows.

    Args:
        dates: submission time and deadline.
        late: settings and code of the late penalties.
    """
    cells = [(k.name, k.kind, k.source, k.points, k.solution, k.task, k.locked) for k in known]
    parts = [
        book.fingerprint,
        book.repaired.digest,
        book.repaired.submission.notes,
        cells,
        [str(d) for d in dates],
        list(late),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
