"""Convert a statement's Markdown to HTML. HTML, scripts and pictures in the Markdown become plain text."""

from __future__ import annotations

from functools import lru_cache

from markdown_it import MarkdownIt
from markupsafe import Markup

from grader.course.loading import Course
from grader.exercise import Exercise
from grader.judging.answers import render_question
from grader.reports.points import counted

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
