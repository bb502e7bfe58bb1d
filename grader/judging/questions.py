"""Print a question: its text with the parameters filled in, the unit, the time model, the hardware."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import jinja2

from grader import hardware
from grader.exercise import Number
from grader.judging.units import DIMENSIONS, unit_of

_jinja = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # Markdown, not HTML


def render_text(question: Number, params: Mapping[str, Any]) -> str:
    """The question's own text with its parameters filled in.

    Raises:
        jinja2.TemplateError: the text is not a template or names a parameter that does not exist.
    """
    text = _template(question.text).render(**params).strip()
    return "\n\n".join(_flowing(paragraph) for paragraph in text.split("\n\n"))


@functools.cache
def _template(text: str) -> jinja2.Template:
    return _jinja.from_string(text)


def _flowing(paragraph: str) -> str:
    """One line, for whoever shows it to break; lists, tables and code keep their lines."""
    lines = paragraph.splitlines()
    return paragraph if any(re.match(r"[-*|\s]|```|\d+\.\s", line) for line in lines) else " ".join(lines)


def render_question(question: Number, params: Mapping[str, Any]) -> str:
    """All a learner gets: the text, the unit, the time model and the row of the hardware table."""
    lines = [render_text(question, params), "", _say_unit(question.unit)]
    if question.model:
        lines.append(f"Model: {question.model}.")
    chips = dict.fromkeys(v for k, v in params.items() if k == "chip" or hardware.is_known(v))
    return "\n".join([*lines, *(f"Hardware: {hardware.describe(c)}." for c in chips)])


def label_of(question: Number, params: Mapping[str, Any]) -> str:
    """The first sentence of the rendered text, or the name where the text cannot be rendered."""
    try:
        text = " ".join(render_text(question, params).split())
    except jinja2.TemplateError:
        return question.name
    return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0] or question.name


def _say_unit(unit: str) -> str:
    factor, dimension = unit_of(unit)
    if dimension == DIMENSIONS[()] and factor == 1:
        return "Answer with a bare number."
    return f"Answer in {unit} (a bare number), or with a unit."
