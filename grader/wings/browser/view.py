"""Render the page's parts as HTML.

The parts show the state of the command ``watch``, and the facts about programs that the command ``explain`` finds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from grader.clock import placed
from grader.common.result import ExerciseReport, Result
from grader.course.loading import Course
from grader.exercise import Exercise
from grader.exercise.declarations import judged_calls
from grader.hardware import SMALL_SLICES
from grader.hardware.times import FLAT_SLICES
from grader.intake.submission import Source
from grader.judging.answers import render_question
from grader.reports.explained import Explained
from grader.reports.pages import class_of, drawn_arrows, drawn_rounds, held_grids, render_template
from grader.reports.points import counted
from grader.reports.roofline import draw_roofline
from grader.reports.timeline_svg import draw_chart
from grader.reports.untrusted import clean, clean_code
from grader.reports.wording import first_failure, passing_text, seen_by, status_word
from grader.watching.session import WatchSession

TEMPLATES = Path(__file__).parent / "templates"
WIDTH = 680.0
MOST_LINES, WIDEST = 2000, 500  # the page shows at most 2000 lines of a source file, and 500 characters of a line
_PLACE = re.compile(r"(?:(cell \d+), )?line (\d+)")


@dataclass
class PageState:
    """The page's own state, in addition to the state of ``watch``.

    Attributes:
        status: a line about the last check.
        on: the slice that the learner chose for timelines; "" for the slice from ``usual_slice``.
        programs: the programs that ``explain`` could trace.
        exercise, source: the exercise and the learner's code from which ``programs`` were traced.
        problem: the reason why there are no programs.
        chosen: the index in ``programs`` of the program that the page draws.
    """

    status: str = ""
    busy: bool = False
    on: str = ""
    exercise: str = ""
    source: Source | None = None
    programs: Sequence[Explained] = ()
    problem: str = ""
    chosen: int = 0

    def explained(self, exercise: str, source: Source, programs: Sequence[Explained], problem: str) -> None:
        """Replace the programs.

        If a new program has the name of the chosen program, choose this new program, else the first program.
        """
        before = program_name(self.program) if self.program else ""
        faults = [p.fault.message for p in programs if p.fault is not None]
        self.exercise, self.source = exercise, source
        self.programs = [p for p in programs if p.fault is None]
        self.problem = problem or (faults[0] if faults and not self.programs else "")
        names = [program_name(p) for p in self.programs]
        self.choose(names.index(before) if before in names else 0)

    def choose(self, number: int) -> None:
        self.chosen = min(max(number, 0), max(len(self.programs) - 1, 0))

    @property
    def program(self) -> Explained | None:
        return self.programs[self.chosen] if self.chosen < len(self.programs) else None

    @property
    def slices(self) -> list[str]:
        """The slices whose devices can form the mesh of the chosen program."""
        return fitting(self.program.mesh) if self.program else []

    def timeline(self, width: float) -> str:
        """Return the chosen program's timeline as HTML, ``width`` pixels wide; '' without a timeline."""
        program = self.program
        if program is None or program.timeline is None:
            return ""
        return _template("timeline.svg.j2", chart=draw_chart({"": program.timeline}, width))


def program_name(program: Explained) -> str:
    """Return the program's title, and the names of its results if it has several.

    A function and its gradients have equal titles, but different results.
    """
    results = f": {', '.join(one.name for one in program.results)}" if len(program.results) > 1 else ""
    return clean(f"{program.title}{results}", 200)


def whole_page(regions: dict[str, str]) -> str:
    """Return the whole page as HTML for the browser's first request. ``regions`` has the parts by name."""
    return _template("page.html.j2", regions=regions)


def render(session: WatchSession, shown: PageState) -> dict[str, str]:
    """Return the HTML of each part of the page, by the part's name."""
    report = seen_by("student", session.report) if session.report else None
    about: dict[str, Any] = {"session": session, "exercise": session.exercise, "shown": shown, "report": report}
    failure = first_failure(report) if report else None
    return {
        "head": _template("head.html.j2", **about, summary=passing_text(report.results) if report else ""),
        "statement": _template(
            "statement.html.j2", text=statement(session.exercise), exercise=session.exercise,
            questions=questions(session.course, session.exercise, session.student),
        ),
        "checks": _template(
            "checks.html.j2", **about, failure=failure, audience="student",
            word=partial(status_word, audience="student"),
        ),
        "hints": _template("hints.html.j2", session=session, failure=failure),
        "program": _program(session, shown, report, failure),
    }  # fmt: skip


def _program(session: WatchSession, shown: PageState, report: ExerciseReport | None, failure: Result | None) -> str:
    """Return the pictures of the chosen program, or a text if the current exercise has no program to draw."""
    mine = session.source is not None and shown.exercise == session.exercise.id
    program = shown.program if mine else None
    if program is None:
        return _template("no_program.html.j2", problem=shown.problem if mine else "", waits=session.source is not None)
    roofline = program.roofline
    return _template(
        "program.html.j2", shown=shown, program=program, program_name=program_name,
        lines=_lines(shown.source), ident="arrows-",
        rings=drawn_rounds(program),
        before=held_grids(program.arguments, program), after=held_grids(program.results, program),
        arrows=drawn_arrows(program),
        chart=draw_chart({"": program.timeline}, WIDTH) if program.timeline else None,
        plot=draw_roofline(roofline) if roofline else None, marked=marked_lines(report),
        over=failure.reason if failure and _PLACE.search(failure.where) else "",
    )  # fmt: skip


def _lines(source: Source | None) -> list[tuple[str, list[Markup]]]:
    """Return (name, lines as HTML) for each file or notebook cell of the source.

    Long lines and long files are cut, because a browser would need seconds to draw them.
    """
    return [(chunk.name, _cut(chunk.text)) for chunk in (source.chunks if source else ())]


@lru_cache(8)
def _cut(text: str) -> list[Markup]:
    every = text.splitlines()
    shown = [line if len(line) <= WIDEST else f"{line[:WIDEST]} …" for line in every[:MOST_LINES]]
    left = len(every) - len(shown)
    more = [f"… {counted(left, 'more line')}"] if left else []
    return [escape(line) for line in (*clean_code("\n".join(shown)).split("\n"), *more)]


def marked_lines(report: ExerciseReport | None) -> str:
    """Return the places of failed checks, with ``|`` between them: ``cell 3:14|:20``.

    ``cell 3:14`` is line 14 of the notebook's cell 3. ``:20`` is line 20 of a Python file, which has no cells.
    """
    failed = [r for r in report.results if r.status == "failed" and r.kind == "check"] if report else []
    found = [_PLACE.search(r.where) for r in failed]
    return "|".join(dict.fromkeys(f"{m[1] or ''}:{m[2]}" for m in found if m))


def _template(name: str, **data: Any) -> str:
    return render_template(name, TEMPLATES, look=class_of, **data)


# -- slices ------------------------------------------------------------------------------------

SLICES = tuple(
    f"{chip}:{'x'.join(map(str, shape))}"
    for chip, shapes in (("v5e", FLAT_SLICES), ("v5p", SMALL_SLICES))
    for shape in shapes
)


def fitting(mesh: Mapping[str, int]) -> list[str]:
    """Return the slices in SLICES whose devices can form a mesh with these axis sizes."""
    return [name for name in SLICES if _fits(name, mesh)]


def usual_slice(exercise: Exercise, course: Course) -> str:
    """Return the slice to use until the learner chooses one; '' if no slice can form a mesh of the exercise."""
    meshes = (mesh for call in judged_calls(exercise.checks.values()) for mesh in call.meshes)
    return next((name for mesh in meshes for name in fitting(mesh)), "")


def _fits(name: str, mesh: Mapping[str, int]) -> bool:
    try:
        placed(name, mesh)
    except ValueError:
        return False
    return True


# -- statements --------------------------------------------------------------------------------

_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")


@lru_cache(64)
def as_html(text: str) -> Markup:
    """Return Markdown as HTML. Each table has its own box, so that a wide table scrolls."""
    made = _MARKDOWN.render(text)
    made = made.replace("<th></th>", "<td></td>")  # an empty <th> is no heading of a column
    return Markup(made.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>"))


def statement(exercise: Exercise) -> Markup:
    """Return the exercise's statement as HTML, without the title, which the page shows elsewhere."""
    first, _, rest = exercise.statement.partition("\n")
    return as_html(rest if first.startswith("# ") else exercise.statement)


def questions(course: Course, exercise: Exercise, student: str) -> list[tuple[str, str, Markup]]:
    """Return (name, points, text) of each question. The text contains the numbers that this student gets."""
    return [
        (q.name, counted(q.points, "point"), as_html(render_question(q, course.params(q, student))))
        for q in exercise.questions.values()
    ]
