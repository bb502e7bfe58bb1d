"""The classes that nbgrader_config.py plugs into nbgrader and that nbgrader's commands call.

``nbgrader autograde`` processes each submission twice. In the first pass, ``Exporter`` starts with an empty notebook in
place of the submitted file, and ``Repair`` rebuilds the cells from the submission. In the second pass, ``Grade`` grades
the submission. It replaces nbgrader's ``Execute``, which would start a kernel. Then nbgrader's ``SaveAutoGrades`` reads
the scores from the cells' outputs, and ``SaveComments`` adds the reasons.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import weakref
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import bleach
import nbformat
import nbgrader.api
from bleach.css_sanitizer import CSSSanitizer
from nbconvert.exporters import NotebookExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath
from nbgrader.api import Gradebook
from nbgrader.exchange import ExchangeError
from nbgrader.exchange.default import ExchangeCollect
from nbgrader.preprocessors import ClearSolutions as NbgraderClearSolutions
from nbgrader.preprocessors import NbGraderPreprocessor

from grader.batch.canary import CanaryFailed
from grader.common.result import Report
from grader.common.text import A_LINK
from grader.intake.submission import Unreadable
from grader.integrations.nbgrader import cells, handed_in
from grader.integrations.nbgrader.autograder import Shardlings, StudentNotebook, stamp
from grader.integrations.nbgrader.gradebook import annotate, empty, in_order, known_cells, late_plugin
from grader.integrations.nbgrader.repair import ReleasedCell
from grader.integrations.nbgrader.written import METADATA

# nbgrader opens the gradebook for each step of each notebook. Without this cache, each new SQLAlchemy engine would
# compile all queries again, which takes a fifth of the time of `nbgrader autograde`.
nbgrader.api.create_engine = cache(nbgrader.api.create_engine)

handed_in.guard()

HERE = "grader.integrations.nbgrader.plugin"
_ATTACHED = "attachment:"
# After this module has checked a link, nbgrader's pages remove one such prefix from the link.
_FILES = re.compile(r"(?:/?files/)+")
_TAGS = frozenset([
    "a", "blockquote", "br", "code", "dd", "del", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "img", "input", "li", "ol", "p", "pre", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
])  # fmt: skip
_ATTRIBUTES = frozenset(["alt", "checked", "class", "disabled", "href", "id", "src", "start", "style", "title", "type"])


def configure(c: Any, *, course: str, isolation: str = "auto", jobs: int = 2) -> None:
    """Plug the grader into nbgrader's configuration.

    Args:
        c: the result of ``get_config()``.
        course: path of the course's course.yaml. The folder solutions/ must be beside this file.
    """
    c.Shardlings.course, c.Shardlings.isolation, c.Shardlings.jobs = course, isolation, jobs
    c.Autograde.exporter_class = f"{HERE}.Exporter"
    usual = "nbgrader.preprocessors"
    c.Autograde.sanitize_preprocessors = [
        f"{HERE}.Repair",
        f"{usual}.OverwriteKernelspec",
    ]
    c.Autograde.autograde_preprocessors = [
        f"{HERE}.Grade",
        f"{usual}.SaveAutoGrades",
        f"{HERE}.SaveComments",
        f"{usual}.AssignLatePenalties",
    ]
    c.ExchangeFactory.collect = f"{HERE}.Collect"
    names = ["IncludeHeaderFooter", "InstantiateTests", "LockCells", "ClearSolutions", "ClearOutput",
             "CheckCellMetadata", "ComputeChecksums", "SaveCells", "ClearHiddenTests", "ClearMarkScheme",
             "ComputeChecksums", "CheckCellMetadata"]  # fmt: skip
    # This filter renders Markdown on formgrader's pages and on feedback pages.
    c.HTMLExporter.filters = {"markdown2html": f"{HERE}.plain_markdown"}
    c.GenerateAssignment.preprocessors = [f"{HERE}.{n}" if n == "ClearSolutions" else f"{usual}.{n}" for n in names]


# -- the session of a converter ----------------------------------------------------------------

_SESSIONS: weakref.WeakKeyDictionary[Any, Session] = weakref.WeakKeyDictionary()


class Session:
    """The state of one run of an nbgrader converter: the course folder, the grader, and the notebooks read so far."""

    def __init__(self, coursedir: Any, parent: Any = None) -> None:
        self.coursedir = coursedir
        self.shardlings = Shardlings(root=coursedir.root, parent=parent)
        # The settings are loaded, so ``parent`` is not needed any more. A reference to ``parent`` would keep the
        # converter in memory.
        self.shardlings.parent = None
        self.known_of: dict[tuple[str, str], list[ReleasedCell]] = {}
        self.notebooks: dict[tuple[str, str, str], tuple[StudentNotebook, Report, str]] = {}
        self.started = False
        self.late = late_policy(parent)

    @classmethod
    def of(cls, preprocessor: Any) -> Session:
        converter = _converter(preprocessor)
        if converter not in _SESSIONS:
            session = cls(converter.coursedir, converter)
            weakref.finalize(converter, session.shardlings.close)
            _SESSIONS[converter] = session
        return _SESSIONS[converter]

    def known(self, gradebook: Gradebook, assignment: str, notebook: str) -> list[ReleasedCell]:
        released = self.path(self.coursedir.release_directory, ".", assignment, notebook)
        return in_order(known_cells(gradebook, assignment, notebook), released)

    def path(self, step: str, student: str, assignment: str, notebook: str) -> Path:
        return Path(self.coursedir.format_path(step, student, assignment)) / f"{notebook}.ipynb"

    def read(
        self, gradebook: Gradebook, student: str, assignment: str, notebook: str
    ) -> tuple[StudentNotebook, list[ReleasedCell]]:
        if (assignment, notebook) not in self.known_of:
            self.known_of[assignment, notebook] = self.known(gradebook, assignment, notebook)
        known = self.known_of[assignment, notebook]
        if reason := handed_in.why_refused(self.coursedir, student, assignment):
            raise Unreadable(reason)
        path = self.path(self.coursedir.submitted_directory, student, assignment, notebook)
        return self.shardlings.read(path, student, assignment, notebook, known), known

    def look_ahead(self, converter: Any, assignment: str, notebook: str) -> None:
        """Start grading the submissions that nbgrader has not reached yet, in the background."""
        if self.started:
            return
        self.started = True
        known = self.known_of[assignment, notebook]
        notebooks = []
        for place, paths in sorted(converter.assignments.items()):
            for path in (Path(n) for n in paths if Path(n).stem == notebook):
                with contextlib.suppress(Unreadable):  # nbgrader will report the error when it reads this notebook
                    notebooks.append(self.shardlings.read(path, Path(place).parent.name, assignment, notebook, known))
        self.shardlings.ahead(notebooks)

    def stamp(self, gradebook: Gradebook, book: StudentNotebook, known: list[ReleasedCell]) -> str:
        found: Any = gradebook.find_submission(book.assignment, book.student)
        return stamp(book, known, [found.timestamp, found.duedate], self.late)


def late_policy(parent: Any) -> list[str]:
    """Return the name, code and settings of the late penalty plugin, because scores depend on all three."""
    plugin = late_plugin(parent)
    settings = [f"{name}={getattr(plugin, name)!r}" for name in sorted(plugin.trait_names(config=True))]
    try:
        code = inspect.getsource(type(plugin))
    except (OSError, TypeError):
        code = ""
    return [f"{type(plugin).__module__}.{type(plugin).__qualname__}", code, *settings]


def _converter(preprocessor: Any) -> Any:
    return preprocessor.parent.parent  # a preprocessor's parent is an exporter, whose parent is the converter


def _where(resources: Any) -> tuple[str, str, str]:
    ours = resources["nbgrader"]
    return ours["student"], ours["assignment"], ours["notebook"]


def rebuild(nb: Any, book: StudentNotebook) -> None:
    """Replace the submitted cells by the repaired cells, and the submitted metadata by new metadata."""
    nb.cells = book.repaired.cells
    nb.nbformat, nb.nbformat_minor = 4, 5
    nb.metadata = nbformat.from_dict({"language_info": {"name": "python"}})


def graded(nb: Any, book: StudentNotebook, report: Report, mark: str) -> None:
    """Write the report into the notebook's cells, and the fingerprint and the stamp ``mark`` into its metadata."""
    cells.fill(nb.cells, report, book.exercise_of, book.points)
    nb.metadata[METADATA] = {"fingerprint": book.fingerprint, "stamp": mark}


# -- what nbgrader calls -----------------------------------------------------------------------


class Exporter(NotebookExporter):
    """Passes a file's notebook to the preprocessors, such as ``Repair`` and ``Grade``.

    In place of a submitted file, the exporter passes an empty notebook to ``Repair``, which reads the submitted file.
    """

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> Any:
        coursedir: Any = self.parent.coursedir  # type: ignore[union-attr]  an exporter's parent is the converter
        step = coursedir.autograded_directory
        ours = coursedir.format_path(step, "(?P<student_id>.*)", "(?P<assignment_id>.*)", escape=True)
        if re.match(ours, filename):
            node = nbformat.reads(Path(filename).read_text(encoding="utf-8"), as_version=4)
        else:
            node = nbformat.v4.new_notebook()
        return self.from_notebook_node(node, resources=resources, **kw)


class Repair(NbGraderPreprocessor):
    """Rebuilds a submitted notebook (see the function ``repair``)."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        session = Session.of(self)
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            book, _ = session.read(gradebook, *_where(resources))
        for note in book.repaired.submission.notes:
            self.log.warning(note)
        rebuild(nb, book)
        return nb, resources


class Grade(NbGraderPreprocessor):
    """Replaces ``Execute``: grades the submission in the sandbox, without a kernel."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        session = Session.of(self)
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            book, known = session.read(gradebook, *_where(resources))
            mark = session.stamp(gradebook, book, known)
        try:
            session.look_ahead(_converter(self), book.assignment, book.notebook)
            report = session.shardlings.report(book)
        # SystemExit ends the run. After other errors, nbgrader would grade the next student.
        except CanaryFailed as failed:
            raise SystemExit(f"shardlings: {failed}") from None
        session.notebooks[_where(resources)] = book, report, mark
        graded(nb, book, report, mark)
        return nb, resources


class SaveComments(NbGraderPreprocessor):
    """Writes reasons and hints as comments, and sets the rows of notebooks that the submission lacks.

    Runs after ``SaveAutoGrades``, which resets comments.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        session = Session.of(self)
        student, assignment, notebook = _where(resources)
        book, report, mark = session.notebooks[student, assignment, notebook]
        with Gradebook(resources["nbgrader"]["db_url"]) as gradebook:
            submitted = gradebook.find_submission_notebook(notebook, assignment, student)
            annotate(submitted, session.shardlings, book, report, mark)
            for other in submitted.assignment.notebooks:
                place = session.path(session.coursedir.submitted_directory, student, assignment, other.name)
                if not place.exists():
                    empty(other)
            gradebook.db.commit()
        return nb, resources


class Collect(ExchangeCollect):
    """Collects submissions like nbgrader's Collect, but follows no links and leaves out files that are too large.

    nbgrader's Collect stops if the name of a folder in the exchange has no time. Every student can make such a folder.
    This class leaves out the folder.
    """

    def _path_to_record(self, path: str) -> dict[str, Any]:
        try:
            return super()._path_to_record(path)
        except (ExchangeError, ValueError, ArithmeticError):
            self.log.error("%s was not collected, because its name has no student or no time", path)
            return {"username": "", "filename": "", "timestamp": datetime.min}

    def copy_files(self) -> None:
        self.src_records = [record for record in self.src_records if record["username"]]
        super().copy_files()

    def do_copy(self, src: str, dest: str, log: Any = None) -> None:
        if os.path.islink(src):
            self.log.error("%s %s", src, A_LINK)
            return
        with handed_in.without_links(Path(src)) as (plain, links, odd):
            for problem in odd:
                self.log.warning("%s: %s", src, problem)
            super().do_copy(str(plain), dest, log)
        for path, target in links.items():
            if Path(dest, path).parent.is_dir():  # nbgrader did not copy ignored folders
                Path(dest, path).symlink_to(target)


class ClearSolutions(NbgraderClearSolutions):
    """Works like nbgrader's ClearSolutions, but keeps cells whose text is in the learners' notebook."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        self._given = self._texts_given(_where(resources)[2])
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell: Any, resources: Any, cell_index: int) -> tuple[Any, Any]:
        if cell.source in self._given:
            return cell, resources
        return super().preprocess_cell(cell, resources, cell_index)

    def _texts_given(self, notebook: str) -> set[str]:
        course = Path(Shardlings(parent=self.parent).course)
        try:
            given = nbformat.read(course.parent / "exercises" / notebook / f"{notebook}.ipynb", as_version=4)
        except Exception:
            return set()
        return {c.source for c in given.cells}


# -- students' text on nbgrader's pages --------------------------------------------------------

# nbgrader's pages run in the session of the person who opens them, so no script in a student's text may run there. The
# HTML of a Markdown cell may contain only the tags, attributes and kinds of links that are listed above.


class _Renderer(IPythonRenderer):
    """Shows HTML tags, diagrams and names of attached pictures as text, and leaves out links to scripts."""

    def __init__(self) -> None:
        super().__init__(escape=True, allow_harmful_protocols=False)

    def block_mermaidjs(self, code: str) -> str:
        return self.block_code(code)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return super().link(text, _without_files(url), title)

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # A rebuilt notebook has no attachments. nbconvert would raise an error for a missing attachment.
        if attached := [part for part in (text, url) if part.startswith(_ATTACHED)]:
            return f"({self.escape_html(attached[0].removeprefix(_ATTACHED))}: a picture in the submitted notebook)"
        return super().image(text, _without_files(url), title)


def _without_files(url: str) -> str:
    prefix = _FILES.match(url)
    return url[prefix.end() :] if prefix else url


def plain_markdown(source: str) -> str:
    """Convert Markdown to HTML, with HTML tags as text: a script in a student's cell must not run in a browser."""
    return bleach.clean(
        MarkdownWithMath(renderer=_Renderer()).render(source),
        tags=_TAGS,
        attributes=lambda tag, name, value: name in _ATTRIBUTES and not _FILES.match(value),
        protocols=["http", "https", "mailto"],
        css_sanitizer=CSSSanitizer(allowed_css_properties=["text-align"]),
    )
