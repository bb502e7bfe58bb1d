"""The staff page of ``shardlings appeal``, which runs one check of a submission again. The page shows hidden data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup, escape

from grader.common.result import ExerciseReport
from grader.reports.explained import Explained
from grader.reports.explained_text import fact_lines, fault_line
from grader.reports.pages import class_of, render
from grader.reports.points import counted

MOST_LINES = 2000


@dataclass(frozen=True)
class CodePart:
    """A part of a submission (untrusted text): its file or cell, the number of its first line, and its source code."""

    name: str
    line: int
    text: str


@dataclass(frozen=True)
class ShownArray:
    """An array's name, its type and shape ("float32[8,3]"), and its values as text."""

    name: str
    about: str
    text: str


@dataclass(frozen=True)
class Run:
    """One run of the check.

    Attributes:
        asked: the call in words, such as ``gather on x=4 with I=8, J=3``.
        secret: True for hidden inputs.
        number: the number of the run, from 1.
        reason: the reason why the run failed; empty if the run passed.
    """

    asked: str
    secret: bool
    number: int
    reason: str


@dataclass(frozen=True)
class Appeal:
    """The contents of the page about one check.

    Attributes:
        exercise: the report on the exercise, reduced to the result and the points of this check.
        functions: the code that was judged.
        whole: all code that the student submitted for the exercise.
        failed_on: the first run that failed on inputs that are not hidden; "" for none.
        inputs, outputs: the arrays of the run that ``failed_on`` names.
        facts: the facts of ``shardlings explain`` about each program that ran on public inputs.
        lines: all findings, as ``shardlings appeal`` prints them.
        differs: differences from the student's stored report.
        on_file: True if the student has a stored report.
    """

    student: str
    course: str
    where: str
    exercise: ExerciseReport
    functions: Sequence[CodePart] = ()
    whole: Sequence[CodePart] = ()
    failed_on: str = ""
    inputs: Sequence[ShownArray] = ()
    outputs: Sequence[ShownArray] = ()
    facts: Sequence[Explained] = ()
    runs: Sequence[Run] = ()
    lines: Sequence[str] = ()
    differs: Sequence[str] = ()
    on_file: bool = False
    versions: dict[str, str] = field(default_factory=dict)


def render_appeal(appeal: Appeal) -> str:
    """Return the page as HTML that needs no other file."""
    facts = [
        (
            one.title,
            [("fault", fault_line(one.fault))] if one.fault else [(word, text) for word, _, text in fact_lines(one)],
        )
        for one in appeal.facts
    ]
    return render(
        "appeal.html.j2", appeal=appeal, exercise=appeal.exercise, facts=facts, audience="staff", look=class_of,
        heading=2, code=_code, block=_block,
    )  # fmt: skip


def _code(code: CodePart) -> Markup:
    lines = code.text.split("\n")
    shown = [f"{at:>4}  {line.expandtabs(4)}" for at, line in enumerate(lines[:MOST_LINES], code.line)]
    left = len(lines) - MOST_LINES
    more = [f"      ... and {counted(left, 'more line')}"] if left > 0 else []
    return _block("\n".join([*shown, *more]))


def _block(text: str) -> Markup:
    """Return text of several lines, escaped for HTML. Unprintable characters, such as bidi overrides, become codes."""
    return escape("\n".join("".join(map(_visible, line)) for line in text.split("\n")))


def _visible(char: str) -> str:
    return char if char.isprintable() else f"\\u{{{ord(char):x}}}"
