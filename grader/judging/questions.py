"""Print a question: its text with the parameters filled in, what an answer looks like, the time model, the hardware."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jinja2

from grader import hardware
from grader.exercise import Question
from grader.judging.kinds import kind_of
from grader.judging.templates import filled_in


def render_text(question: Question, params: Mapping[str, Any]) -> str:
    """The question's own text with its parameters filled in.

    Raises:
        jinja2.TemplateError: the text is not a template or names a parameter that does not exist.
    """
    text = filled_in(question.text, params)
    return "\n\n".join(_flowing(paragraph) for paragraph in text.split("\n\n"))


def _flowing(paragraph: str) -> str:
    """One line, for whoever shows it to break; lists, tables and code keep their lines."""
    lines = paragraph.splitlines()
    return paragraph if any(re.match(r"[-*|\s]|```|\d+\.\s", line) for line in lines) else " ".join(lines)


def render_question(question: Question, params: Mapping[str, Any]) -> str:
    """All a learner gets: the text, what an answer looks like, the time model and the row of the hardware table."""
    lines = [render_text(question, params), "", *kind_of(question, params).asked]
    if question.model:
        lines.append(f"Model: {question.model}.")
    chips = dict.fromkeys(v for k, v in params.items() if k == "chip" or hardware.is_known(v))
    return "\n".join([*lines, *(f"Hardware: {hardware.describe(c)}." for c in chips)])


def label_of(question: Question, params: Mapping[str, Any]) -> str:
    """The name of the variable that holds the answer, and what is asked: ``flops: How many FLOPs has ...?``.

    What is asked is the first sentence of the rendered text that is a question, else its first sentence. Where the text
    cannot be rendered, it is the name alone.
    """
    try:
        text = " ".join(render_text(question, params).split())
    except jinja2.TemplateError:
        return question.name
    sentences = re.split(r"(?<=[.?!])\s", text)
    asked = next((sentence for sentence in sentences if sentence.endswith("?")), sentences[0])
    return f"{question.name}: {asked}" if asked else question.name
