"""A statement as HTML: Markdown in which HTML, scripts and pictures from elsewhere are only text."""

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
    """Return Markdown as HTML. Wide tables scroll in a box of their own."""
    made = _MARKDOWN.render(text)
    made = made.replace("<th></th>", "<td></td>")  # an empty heading cell is only a cell
    return Markup(made.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>"))


def statement(exercise: Exercise) -> Markup:
    """Return the exercise's statement without its title, which the page shows above it."""
    first, _, rest = exercise.statement.partition("\n")
    return as_html(rest if first.startswith("# ") else exercise.statement)


def questions(course: Course, exercise: Exercise, student: str) -> list[tuple[str, str, Markup]]:
    """Return for each question its name, its points and its text with the student's numbers."""
    return [
        (q.name, counted(q.points, "point"), as_html(render_question(q, course.params(q, student))))
        for q in exercise.questions.values()
    ]
