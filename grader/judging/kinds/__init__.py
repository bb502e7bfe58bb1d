"""Kinds of answers: how each is asked for, read, compared and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from grader.exercise import Choice, Quantity, Question, Spec, Table, Written
from grader.judging.kinds.choices import LETTERS, ChoiceKind
from grader.judging.kinds.kind import AnswerKind
from grader.judging.kinds.quantities import QuantityKind, numbers_of
from grader.judging.kinds.specs import SpecKind
from grader.judging.kinds.tables import TableKind
from grader.judging.kinds.written import WrittenKind
from grader.judging.units import unit_of

__all__ = ["AnswerKind", "heading", "kind_name", "kind_of", "units_known"]
Name = Literal["number", "spec", "choice", "table", "written"]
NAMES: dict[type, Name] = {
    Quantity: "number",
    Spec: "spec",
    Choice: "choice",
    Table: "table",
    Written: "written",
}


def kind_name(question: Question) -> Name:
    """``number``, ``spec``, ``choice``, ``table`` or ``written``: as reports name it, and the word that declares it."""
    return NAMES[type(question.answer)]


def heading(question: Question) -> str:
    """What is to be answered, in a few words, for everybody: ``us``, ``a PartitionSpec``."""
    match question.answer:
        case Quantity(unit=unit):
            return unit or "a number"
        case Spec():
            return "a PartitionSpec"
        case Choice(options=options):
            return f"one of {', '.join(LETTERS[: len(options)])}"
        case Table(columns=columns):
            return ", ".join(columns)
        case Written():
            return "in your own words"


def units_known(question: Question) -> None:
    """Raises BadAnswer for a unit that nobody knows."""
    match question.answer:
        case Quantity(unit=unit):
            unit_of(unit)
        case Table(columns=columns):
            for unit in columns.values():
                unit_of(unit)


def kind_of(question: Question, drawn: Mapping[str, Any]) -> AnswerKind[Any, Any]:
    """How answers to this question, with what was drawn for a learner, are read and judged.

    Raises:
        jinja2.TemplateError: an option's text does not render.
        ValueError: two options read alike.
    """
    match question.answer:
        case Quantity(unit=unit):
            return QuantityKind(unit, question.rtol, drawn=numbers_of(drawn))
        case Spec(axes=axes):
            return SpecKind(axes)
        case Table(columns=columns, rows=rows):
            numbers = numbers_of(drawn)
            return TableKind(
                {name: QuantityKind(unit, question.rtol, True, numbers) for name, unit in columns.items()}, rows
            )
        case Choice(options=options):
            return ChoiceKind.drawn(options, drawn)
        case Written():
            return WrittenKind()
