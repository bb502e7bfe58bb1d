"""Show each question with a worked key (its right answer), and find keys in the wrong unit.

The function of a question returns its key in SI units. Authors may return the unit of the question's text by mistake.
Then text and key look right, but students with the right answer get no points.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from grader.course.loading import Course
from grader.exercise import Exercise, Quantity, Question, Table, Written
from grader.exercise.questions import ORDER
from grader.judging.answers import kind_of, label_of, wanted
from grader.judging.units import BadAnswer, show, unit_of

LEAST_WORDS = 4
"""A question's label with fewer words cannot be understood alone."""
LEAST, MOST = 1e-3, 1e7
"""The range of plausible numbers before a unit. For a number outside this range, authors use another unit prefix."""
UNIT = r"[A-Za-z]+(?:\s*(?:/|\bper\b)\s*[A-Za-z]+)?"
ASKED = re.compile(rf"\bhow many\s+({UNIT})", re.IGNORECASE)
LONG = re.compile(r"\bhow long\b", re.IGNORECASE)


def worked_keys(course: Course, exercise: Exercise) -> Iterator[str]:
    """Yield each question with its key for some numbers: ``time: How long does it take? 559 us (X=4)``."""
    for question in exercise.questions.values():
        if isinstance(question.answer, Written):
            continue  # a person grades an answer in words, so the question has no key
        drawn = course.params(question, "verify")
        numbers = ", ".join(f"{name}={value}" for name, value in drawn.items() if name != ORDER)
        kind = kind_of(question, drawn)
        key = kind.shown(wanted(question, question.fn, drawn, kind))
        yield f"{label_of(question, drawn)} {key}{f' ({numbers})' if numbers else ''}"


def key_problems(question: Question) -> Iterator[str]:
    """Yield problems: a label that is too short, a unit that does not fit the text, implausible numbers, constants."""
    yield from _label_problems(question)
    yield from _unit_problems(question)
    yield from _number_problems(question)
    yield from _constant_entries(question)


def _label_problems(question: Question) -> Iterator[str]:
    label = label_of(question, next(question.variants(), {})).partition(": ")[2]
    if not question.title and len(label.split()) < LEAST_WORDS:
        yield f"{question.name}: its label in reports would be {label!r}, which says little; give title=..."


def _unit_problems(question: Question) -> Iterator[str]:
    units = units_of(question)
    kinds = {unit_of(unit)[1] for unit in units.values()}
    asked = dict(_kinds_asked(question.text))
    if kinds and asked and not kinds & set(asked.values()):
        words, kind = next(iter(asked.items()))
        unit = next(iter(units.values()))
        of = unit_of(unit)[1]
        yield f"{question.name}: the text asks {words!r}, {kind}, and its unit, {unit!r}, is the unit of {of}"


def _number_problems(question: Question) -> Iterator[str]:
    units = units_of(question)
    for drawn in question.variants():
        for name, value in _numbers(question, drawn):
            factor, _ = unit_of(units[name])
            if factor != 1 and value and not LEAST <= value / factor <= MOST:
                numbers = ", ".join(f"{key}={given!r}" for key, given in drawn.items())
                yield (
                    f"{question.name}: with {numbers} the key is {show(value, units[name])}. Return seconds, bytes or "
                    f"FLOP and not {units[name]}, or choose another prefix"
                )
                return


def _constant_entries(question: Question) -> Iterator[str]:
    """Yield table entries with partial credit that are equal in every draw, because students can copy such entries."""
    if not isinstance(question.answer, Table) or not question.answer.partial:
        return
    found: dict[tuple[str, str], set[float]] = {}
    for drawn in question.variants():
        with suppress(Exception):  # another proof reports invalid keys
            for place, value in wanted(question, question.fn, drawn).items():
                found.setdefault(place, set()).add(value)
    for (row, column), values in found.items():
        if len(values) == 1:
            where = f"{column} of {row}" if row else column
            yield f"{question.name}: {where} is equal in every draw, and partial credit would give points for it"


def units_of(question: Question) -> Mapping[str, str]:
    """Return the unit of each column of the question's answer. A single number has the column ''."""
    match question.answer:
        case Quantity(unit=unit):
            return {"": unit}
        case Table(columns=columns):
            return columns
    return {}


def _kinds_asked(text: str) -> Iterator[tuple[str, str]]:
    """Yield (words, kind of quantity) for each phrase "how many UNIT" or "how long" in a question's text."""
    for found in ASKED.finditer(" ".join(text.split())):
        for words in (found[1], found[1].split()[0]):
            try:
                yield f"how many {words}", unit_of(words)[1]
                break
            except BadAnswer:
                continue
    if found := LONG.search(text):
        yield found[0].lower(), unit_of("s")[1]


def _numbers(question: Question, drawn: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield (column, value) of the key for one draw. Skip invalid keys, because another proof reports invalid keys."""
    if not units_of(question):
        return
    try:
        found = wanted(question, question.fn, drawn)
    except Exception:
        return
    if isinstance(question.answer, Table):
        yield from ((column, value) for (_, column), value in found.items())
    else:
        yield "", found
