"""Convert a report into nbgrader's cells: outputs of grade cells, comments of solution cells.

nbgrader gives full marks to a grade cell without an output that nbgrader can read. So each grade cell gets an error or
a plain float from 0 to the cell's points.
"""

from __future__ import annotations

import html
import io
import math
import re
from functools import lru_cache
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from rich.console import Console

from grader.common.result import ExerciseReport, Report, Result
from grader.reports.pages import render_fragment
from grader.reports.terminal import print_exercise
from grader.reports.untrusted import clean
from grader.reports.wording import BLOCKED

MAX_COMMENT = 4000
# TeX can contain links, so MathJax must find no TeX. HTML entities would not hide TeX from MathJax, because the browser
# decodes them first.
_LOOKALIKES = str.maketrans({"`": "'", "$": "\uff04", "\\": "\u29f5"})
_NO_TEX = '<div class="tex2jax_ignore mathjax_ignore">\n{}</div>\n'


def outputs(report: Report, exercise: ExerciseReport, points: float, *, notes: bool) -> list[NotebookNode]:
    """Return a grade cell's outputs: the report, and the number that nbgrader reads.

    Args:
        points: the points that the cell is worth in nbgrader.
        notes: True to show the notes on the whole submission.
    """
    if not math.isfinite(exercise.earned):
        return [error("the grader's score is not a number")]
    general = list(report.notes) if notes else []
    whose = {"basis": {}, "evidence": [], "pseudonym": ""}  # these fields differ even between equal results
    shown = exercise.model_copy(update=whose | {"notes": [*exercise.notes, *general]})
    page, text = _drawn(shown.model_dump_json())
    value = min(max(float(exercise.earned), 0.0), float(points))
    return [
        _output("display_data", {"text/html": page, "text/plain": text}),
        NotebookNode(_output("execute_result", {"text/plain": repr(value)}), execution_count=None),
    ]


def _output(kind: str, data: dict[str, str]) -> NotebookNode:
    return NotebookNode(output_type=kind, metadata=NotebookNode(), data=NotebookNode(data))


def error(reason: str) -> NotebookNode:
    """Return a cell output that gives 0 points and shows the reason."""
    text = clean(reason)
    return nbformat.v4.new_output("error", ename="NotGraded", evalue=text, traceback=[f"NotGraded: {text}"])


@lru_cache(maxsize=1000)
def _drawn(shown: str) -> tuple[str, str]:
    """Return an exercise's report (JSON) as HTML and as text. Results are cached, because many reports are equal."""
    exercise = ExerciseReport.model_validate_json(shown)
    paper = io.StringIO()
    print_exercise(exercise, Console(file=paper, width=100, color_system=None, force_terminal=False, emoji=False))
    return _NO_TEX.format(render_fragment(exercise)), paper.getvalue().rstrip()


# -- comments ----------------------------------------------------------------------------------


def comment(exercise: ExerciseReport, task: str) -> str | None:
    """Return the comment on the cell of a task or question; None if all checks of the task passed."""
    results = [r for r in exercise.results if r.task == task and r.status != "passed"]
    failed = [r for r in results if r.status != "blocked"]
    lines = [f"- {_line(r)}" for r in failed or results]
    text = "\n".join(dict.fromkeys(lines))
    return text[:MAX_COMMENT] or None


def _line(result: Result) -> str:
    label = f"question {result.name}" if result.kind != "check" else result.label
    if result.status == "broken":
        return escaped(f"{label}: pending, because the grader itself failed here; the staff will review this result")
    if result.status == "waiting":
        return escaped(f"{label}: {result.reason}")
    hint = f" Hint: {result.hint}" if result.hint else ""
    return escaped(f"{label}: {result.reason or BLOCKED}.{hint}")


def escaped(text: str) -> str:
    """Escape text for Markdown, HTML and MathJax, because nbgrader's feedback page interprets all three."""
    plain = clean(text).translate(_LOOKALIKES)
    marks = r"(?<=\])\(|(?<![A-Za-z0-9])[*_~](?=\S)|(?<=\S)[*_~](?![A-Za-z0-9])"
    return re.sub(marks, lambda m: f"&#{ord(m[0])};", html.escape(plain, quote=False))


def fill(nodes: list[NotebookNode], report: Report, by_cell: dict[str, str], points: dict[str, float]) -> None:
    """Give every graded code cell its outputs.

    A cell that is not in the course gets an error, because nbgrader gives full marks to a cell without outputs.

    Args:
        by_cell: the exercise of each grade cell, by the cell's name.
        points: the points that each grade cell is worth in the gradebook, by the cell's name.
    """
    found = {e.exercise: e for e in report.exercises}
    first = True
    for node in nodes:
        name = graded_code(node)
        if name is None:
            continue
        exercise = found.get(by_cell.get(name, ""))
        if exercise is None:
            node["outputs"] = [error("this cell is not part of the course; the staff must grade it by hand")]
        else:
            node["outputs"] = outputs(report, exercise, points[name], notes=first)
            first = False


def graded_code(node: Any) -> str | None:
    """Return the name of a cell that nbgrader scores by its outputs; None for other cells."""
    marks = node.metadata.get("nbgrader", {})
    is_one = node.cell_type == "code" and marks.get("grade") and not marks.get("solution")
    return marks.get("grade_id") if is_one else None
