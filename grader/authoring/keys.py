"""Show each question with its key (the right answer) for some numbers, and find faults of keys and of questions' texts.

An author's function returns a question's key in SI units. By mistake, it may return the key in the unit that the text
names. Text and key then look right, but students with the right answer get no points. A text must also state everything
that the answer needs, and its options must make sense in any order.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from grader.course.loading import Course
from grader.exercise import Choice, Exercise, Formula, Quantity, Question, Table, Written
from grader.exercise.questions import ORDER
from grader.judging.answers import kind_of, label_of, render_question, show_params, some_variants, wanted
from grader.judging.kinds.choices import LETTERS
from grader.judging.problems import VARIANT_CAP
from grader.judging.units import BadAnswer, parse, show, unit_of

LEAST_WORDS = 4
"""A question's label with fewer words cannot be understood alone."""
LEAST, MOST = 1e-3, 1e7
"""The range of plausible numbers before a unit. For a number outside this range, authors use another unit prefix."""
MOST_PERCENT = 100
"""The largest plausible percentage. A question with a larger percentage declares it in its scenario (``most``)."""
UNIT = r"(?:[A-Za-z]+(?:\s*(?:/|\bper\b)\s*[A-Za-z]+)?|%)"
ASKED = re.compile(rf"\bhow many\s+({UNIT})", re.IGNORECASE)
NAMED = re.compile(rf"(?:\b(?:in|as|of)\s+|[(\[]\s*(?:in\s+)?)({UNIT})(?![A-Za-z/])")
"""A unit in which a text asks for an answer without "how many": "in ms", "as ms", "(ms)"."""
LONG = re.compile(r"\bhow long\b", re.IGNORECASE)
CODE = re.compile(r"`[^`]*`|\{\{.*?\}\}")
"""The parts of a text that are not prose: code and templates."""
READ = ("text", "title", "model", "params", "answer")
"""The parts of a question that learners read."""
PLACE = re.compile(r"\b(above|below|options?|answers?)\b")


def worked_keys(course: Course, exercise: Exercise) -> Iterator[str]:
    """Yield a line for each question with its key and drawn numbers, such as ``time: how long? 559 us (X=4)``."""
    for question in exercise.questions.values():
        if isinstance(question.answer, Written):
            continue  # the answer is in words, which a person grades, so the question has no key
        drawn = course.params(question, "verify")
        numbers = ", ".join(f"{name}={value}" for name, value in drawn.items() if name != ORDER)
        kind = kind_of(question, drawn)
        key = kind.shown(wanted(question, question.fn, drawn, kind))
        yield f"{label_of(question, drawn)} {key}{f' ({numbers})' if numbers else ''}"


def key_problems(question: Question) -> Iterator[str]:
    """Yield the problems of a question's label in reports, its unit and its right answers, which must be valid.

    Problems are:

    - a label of few words
    - a unit that the text contradicts
    - a table entry that never changes
    - an implausible number in a right answer
    - a right answer that would count as wrong after reports round it
    """
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
    named = {kind for _, _, kind in _units_asked(question.text, ASKED, NAMED)}
    if kinds and asked and not kinds & {*asked.values(), *named}:
        words, kind = next(iter(asked.items()))
        unit = next(iter(units.values()))
        of = unit_of(unit)[1]
        yield f"{question.name}: the text asks {words!r} ({kind}), but unit={unit!r} is for {of}"
    else:
        yield from _scale_problems(question, units.values())


def _scale_problems(question: Question, units: Collection[str]) -> Iterator[str]:
    """Yield a problem if the text names a unit that differs from the question's unit only in scale, such as ms for s.

    A text that names both units gets no problem, because one of them probably belongs to a given number.
    """
    asked = list(_units_asked(question.text, ASKED, NAMED))
    for unit in dict.fromkeys(units):
        factor, kind = unit_of(unit)
        alike = [(words, size) for words, size, of in asked if of == kind]
        if alike and not any(math.isclose(size, factor, rel_tol=1e-9) for _, size in alike):
            yield (
                f"{question.name}: the text asks {alike[0][0]!r}, but the grader reads a bare number as "
                f"{unit or 'a plain number'}: name the same unit in the text and in unit=..."
            )


def _units_asked(text: str, *patterns: re.Pattern[str]) -> Iterator[tuple[str, float, str]]:
    """Yield (words, factor to SI units, kind of quantity) for each unit that a pattern finds in a question's text."""
    plain = " ".join(CODE.sub("_", text).split())
    for match in itertools.chain(*(pattern.finditer(plain) for pattern in patterns)):
        if unit := longest_unit(match[1]):
            before = match[0][: match.start(1) - match.start()]
            yield f"{before.lower().lstrip('([ ')}{unit}", *unit_of(unit)


# Cached, because ``verify`` looks up each word of each text.
@functools.lru_cache(maxsize=10_000)
def longest_unit(words: str) -> str:
    """Return the words if they are a unit, else the first word if it is a unit, else ''."""
    for unit in (words, *words.split()[:1]):
        with suppress(BadAnswer):
            unit_of(unit)
            return unit
    return ""


def _number_problems(question: Question) -> Iterator[str]:
    numbers = [(drawn, *number) for drawn in question.variants() for number in _numbers(question, drawn)]
    for problem_of in (_implausible, _above_all, _rejected):
        for drawn, value, unit in numbers:
            if problem := problem_of(question, drawn, value, unit):
                yield f"{question.name}: with {show_params(drawn)} {problem}"
                break


def _implausible(question: Question, drawn: Mapping[str, Any], value: float, unit: str) -> str:
    """Return a problem if the right answer, in the question's unit, is below LEAST or above MOST; else ''."""
    factor, _ = unit_of(unit)
    if factor == 1 or not value or LEAST <= value / factor <= MOST:
        return ""
    mend = f"Return seconds, bytes or FLOP, not {unit}, or choose a unit with another prefix"
    return f"the key is {show(value, unit)}, an unlikely amount. {mend}"


def _above_all(question: Question, drawn: Mapping[str, Any], value: float, unit: str) -> str:
    """Return a problem if the right answer is above 100 percent, unless the question's Scenario allows it; else ''."""
    percent = unit_of("percent")
    if unit_of(unit) != percent or value <= MOST_PERCENT * percent[0] or _may_be(question, drawn, value):
        return ""
    return (
        f"the key is {show(value, unit)}. Return a share (0.25 for 25 percent), "
        "or give Scenario(most=...) if more than 100 percent is right"
    )


def _may_be(question: Question, drawn: Mapping[str, Any], value: float) -> bool:
    with suppress(Exception):  # another part of ``verify`` reports the scenario's error
        return question.scenario is not None and value <= question.scenario(**drawn).most < math.inf
    return False


def _rejected(question: Question, drawn: Mapping[str, Any], value: float, unit: str) -> str:
    """Return a problem if the right answer, rounded as reports show it, would count as wrong; else ''."""
    shown = show(value, unit)
    if abs(parse(shown, unit).value - value) <= question.rtol * abs(value):
        return ""
    return f"reports show the key as {shown}, which the tolerance of {question.rtol:g} rejects: give a larger rtol"


def _constant_entries(question: Question) -> Iterator[str]:
    """For a question whose answer is a table: yield a problem for each entry that is equal for all students.

    A student could copy such an entry and get partial credit.
    """
    if not isinstance(question.answer, Table) or not question.answer.partial:
        return
    found: dict[tuple[str, str], set[float]] = {}
    for drawn in question.variants():
        for place, value in wanted(question, question.fn, drawn).items():
            found.setdefault(place, set()).add(value)
    for (row, column), values in found.items():
        if len(values) == 1:
            where = f"{column} of {row}" if row else column
            known = (
                "has the same value in all draws, so students can copy it for partial credit: "
                "choose params that change this value"
            )
            yield f"{question.name}: {where} {known}"


def units_of(question: Question) -> Mapping[str, str]:
    """Return the unit of each column of the question's answer, by column name. A single number has the column ''."""
    match question.answer:
        case Quantity(unit=unit):
            return {"": unit}
        case Table(columns=columns):
            return columns
    return {}


def _kinds_asked(text: str) -> Iterator[tuple[str, str]]:
    """Yield (words, kind of quantity) for each phrase "how many UNIT" or "how long" in a question's text."""
    yield from ((words, kind) for words, _, kind in _units_asked(text, ASKED))
    if found := LONG.search(text):
        yield found[0].lower(), unit_of("s")[1]


def _numbers(question: Question, drawn: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    """Yield (value, unit) of each number in the right answer."""
    if units := units_of(question):
        found = entries_of(wanted(question, question.fn, drawn))
        yield from ((value, units[column]) for (_, column), value in found.items())


def entries_of(key: Any) -> Mapping[tuple[str, str], Any]:
    """Return the entries of a table by row and column. A single value counts as one entry."""
    return key if isinstance(key, Mapping) else {("", ""): key}


def text_problems(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each question whose text is incomplete.

    A text must contain each number that the answer depends on, and each symbol of a formula. Options must not refer to
    other options by letter or place. Two questions must differ in more than their names.
    """
    for question in exercise.questions.values():
        if isinstance(question.answer, Written):
            continue
        yield from (f"{question.name}: {problem}" for problem in _unread(question))
        yield from (f"{question.name}: {problem}" for problem in _unexplained(exercise, question))
        yield from (f"{question.name}: {problem}" for problem in _placed_options(question))
    yield from _equal_questions(exercise)


def _unread(question: Question) -> Iterator[str]:
    """Yield a problem if the right answer depends on a random number that the question's text does not show."""
    first: dict[str, tuple[Mapping[str, Any], Any]] = {}
    for drawn in some_variants(question, VARIANT_CAP):
        try:
            kind, text = kind_of(question, drawn), render_question(question, drawn)
            want = wanted(question, question.fn, drawn, kind)
        except Exception:
            return
        other, known = first.setdefault(text, (drawn, want))
        if not kind.are_close(want, known):
            names = [name for name in drawn if drawn[name] != other[name]]
            some, others = (show_params({name: one[name] for name in names}) for one in (other, drawn))
            yield (
                f"learners read the same text for {some} and for {others}, but the right answers differ "
                f"({kind.shown(known)} and {kind.shown(want)}): "
                f"write {' or '.join(f'{{{{ {name} }}}}' for name in names)} into the text"
            )
            return


def _equal_questions(exercise: Exercise) -> Iterator[str]:
    known: list[Question] = []
    for question in exercise.questions.values():
        for other in known:
            if all(getattr(question, part) == getattr(other, part) for part in READ):
                yield (
                    f"{question.name}: its text, numbers and kind of answer are the same as in {other.name}: "
                    "let the two texts differ, or give each question a title"
                )
                break
        known.append(question)


def _unexplained(exercise: Exercise, question: Question) -> Iterator[str]:
    """Yield a problem for each symbol of a formula that neither the statement nor the question's text contains."""
    texts = f"{exercise.statement}\n{question.text}\n{question.model}"
    for symbol in question.answer.symbols if isinstance(question.answer, Formula) else ():
        if not re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", texts):
            yield f"no text says what the symbol {symbol} means: name it in the question's text or in the statement"


def _placed_options(question: Question) -> Iterator[str]:
    """Yield a problem for each option that names another option by letter or place.

    The order of options differs between learners.
    """
    if not isinstance(question.answer, Choice):
        return
    letters = f"[{LETTERS[0]}-{LETTERS[len(question.answer.options) - 1]}]"
    for key, text in question.answer.options.items():
        plain = CODE.sub("", text)
        named = [found[0] for found in re.finditer(rf"(?<![\w.\[(]){letters}(?![\w\[(])", plain)]
        named += re.findall(rf"(?<!\w)\({letters}\)", plain, re.IGNORECASE)
        if plain.startswith("A "):  # the article
            named = named[1:]
        if found := [*named, *PLACE.findall(plain)]:
            yield (
                f"the option {key!r} contains {found[0]!r}, which learners could take for another option. "
                "The order of the options differs between learners. "
                f"Say what {found[0]!r} means or, if it is a name, write it between backticks"
            )
