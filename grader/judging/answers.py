"""Questions: draw a learner's parameters, print the text, and judge the answer.

A verdict says that an answer is right, is the answer of a known misconception, or is wrong. It never tells the right
answer.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Literal

import jinja2

from grader import hardware
from grader.common.result import Result
from grader.exercise import AuthorError, Choice, Misconception, Quantity, Question, Spec, Table, Written
from grader.exercise.questions import ORDER
from grader.judging.kinds.choices import LETTERS, ChoiceKind
from grader.judging.kinds.kind import AnswerKind, filled_in
from grader.judging.kinds.quantities import QuantityKind, numbers_of
from grader.judging.kinds.specs import SpecKind
from grader.judging.kinds.tables import TableKind
from grader.judging.kinds.written import WrittenKind
from grader.judging.units import BadAnswer, unit_of
from grader.wire.limits import MAX_TEXT

TELLING = ("number", "table")
"""Kinds of answers that nobody guesses."""


def params_for(question: Question, *, seed: str, student: str | None) -> dict[str, Any]:
    """Draw one variant of a question, and of a choice the order of its options.

    The draw is SHA-256 over (seed, question name, student), so it is the same in every process, on
    every platform and for every order of students; it changes only with the question's parameters.

    Args:
        seed: the course's, changed once per term.
        student: whose question; None: one variant that everybody shares.
    """
    variants = _variants(question)
    if not variants:
        raise AuthorError(f"{question.name}: no parameters satisfy its `where`")
    who = ["shared"] if student is None else ["student", student]  # a student may be called "shared"
    digest = hashlib.sha256(json.dumps([seed, question.name, *who]).encode()).digest()
    drawn = dict(variants[int.from_bytes(digest, "big") % len(variants)])
    if isinstance(question.answer, Choice):
        drawn[ORDER] = sorted(question.answer.options, key=lambda key: hashlib.sha256(digest + key.encode()).digest())
    return drawn


class OfAClass:
    """What everybody in a class drew of one question, and whose question a wrong answer is right for.

    Many drew alike: an answer is read once and held against each draw, not against each student.
    """

    def __init__(self, question: Question, params: Mapping[str, Mapping[str, Any]]) -> None:
        """Draws, of which nothing is worked out yet.

        Args:
            params: by student.
        """
        self.question = question
        self._alike: dict[str, tuple[Mapping[str, Any], list[str]]] = {}  # a draw and whose it is
        self._draw_of = {student: repr(drawn) for student, drawn in params.items()}
        for student in sorted(params):
            self._alike.setdefault(self._draw_of[student], (params[student], []))[1].append(student)
        self._right: dict[str, Any] = {}

    def fits_others(self, student: str, text: str) -> list[str]:
        """Others whose question a wrong answer is right for: something for the staff to look at, never a verdict.

        Args:
            student: who gave it.
            text: the answer, as it was shown back.

        Returns:
            Their names, sorted; empty when the answer is right for who gave it or cannot be read, and where a right one
            may be luck, as of a choice.
        """
        if kind_name(self.question) not in TELLING:
            return []
        own, _ = self._alike[self._draw_of[student]]
        kind = kind_of(self.question, own)  # of those that tell, the same for every draw
        try:
            given = kind.read(text)
        except BadAnswer:
            return []

        def fits(draw: str) -> bool:
            if draw not in self._right:
                self._right[draw] = wanted(self.question, self.question.fn, self._alike[draw][0], kind)
            return kind.distance(given, self._right[draw]) is not None

        if fits(self._draw_of[student]):
            return []
        whose = (who for draw, (drawn, who) in self._alike.items() if drawn != own and fits(draw))
        return sorted(itertools.chain.from_iterable(whose))


@cache
def _variants(question: Question) -> list[dict[str, Any]]:
    """All that can be drawn; a question stays as it was declared."""
    return list(question.variants())


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


BY_A_PERSON = "a person reads this answer and gives its points"
NOT_ANSWERED = "not answered yet"
A_NUMBER = "this is the number a known misconception leads to"
AN_ANSWER = "this is the answer a known misconception leads to"


def judge(question: Question, params: Mapping[str, Any], misconceptions: Iterable[Misconception], raw: Any) -> Result:
    """The verdict on one answer to one variant of a question.

    Args:
        params: what was drawn for the learner (``params_for``).
        misconceptions: the exercise's; those of other questions are passed over.
        raw: the plain JSON value from the submission; None or blank: not answered.

    Returns:
        A Result whose ``reason`` and ``hint`` never tell the expected value; ``expected`` (for the staff) does.
        A question of ours that gives no answer of its kind is ``broken``.
    """
    result = functools.partial(
        Result, kind=kind_name(question), name=question.name, label=label_of(question, params), task=question.name,
        points=question.points, public=False,
    )  # fmt: skip
    try:
        units_known(question)
        kind = kind_of(question, params)
        want = wanted(question, question.fn, params, kind)
    except Exception as error:  # an author's mistake must not cost a learner points
        return result(status="broken", earned=0, reason=f"the question has no answer of ours: {type_and_text(error)}")
    verdict = functools.partial(result, status="failed", earned=0, expected=kind.shown(want))
    if kind.is_empty(raw):
        return verdict(reason=NOT_ANSWERED)
    try:
        given = kind.read(raw)
    except BadAnswer as error:
        return verdict(reason=str(error))
    if isinstance(question.answer, Written):
        reason = BY_A_PERSON + (
            f"; only its first {MAX_TEXT} characters were read" if len(str(raw)) >= MAX_TEXT else ""
        )
        return verdict(status="waiting", reason=reason, actual=given, staff=f"rubric: {question.answer.rubric}")
    verdict = functools.partial(verdict, actual=f"read as {kind.read_as(given)}")
    if kind.distance(given, want) is not None:
        return verdict(status="passed", earned=question.points)
    misconception = nearest_misconception(question, params, misconceptions, given)
    if misconception:
        reason_given = A_NUMBER if kind_name(question) == "number" else AN_ANSWER
        return verdict(reason=reason_given, hint=misconception.hint, misconception=misconception.name)
    return verdict(reason=kind.why(given, want))


def read_back(question: Question, params: Mapping[str, Any], raw: Any) -> Result:
    """Read an answer without knowing the right one: ``blocked``, or ``failed`` if no right answer can be like it."""
    kind = kind_of(question, params)
    result = functools.partial(
        Result, kind=kind_name(question), name=question.name, label=label_of(question, params), task=question.name,
        status="blocked", points=question.points, earned=0, public=False,
    )  # fmt: skip
    if kind.is_empty(raw):
        return result(reason=NOT_ANSWERED)
    try:
        given = kind.read(raw)
    except BadAnswer as error:
        return result(status="failed", reason=str(error))
    read = f"read as {kind.read_as(given)}"
    if misfit := kind.misfit(given):
        return result(status="failed", reason=misfit, actual=read)
    return result(reason=f"{read}; judged after you submit", actual=read)


def wanted(
    question: Question, fn: Callable[..., Any], params: Mapping[str, Any], kind: AnswerKind | None = None
) -> Any:
    """Return the answer of the question's or a misconception's function. Raises ValueError and what that raises."""
    return (kind or kind_of(question, params)).want(question.answered_by(fn, params))


def nearest_misconception(
    question: Question, params: Mapping[str, Any], misconceptions: Iterable[Misconception], given: Any
) -> Misconception | None:
    """The misconception of this question whose answer is nearest to what was read, within tolerance."""
    kind = kind_of(question, params)
    near: list[tuple[float, str, Misconception]] = []
    for misconception in misconceptions_of(question, misconceptions):
        try:
            distance = kind.distance(given, wanted(question, misconception.fn, params, kind))
        except Exception:  # a misconception that has no answer for these parameters (verify reports it) matches nothing
            continue
        if distance is not None:
            near.append((distance, misconception.name, misconception))
    return min(near)[2] if near else None


def misconceptions_of(question: Question, misconceptions: Iterable[Misconception]) -> Iterator[Misconception]:
    """The misconceptions that are of this question."""
    return (m for m in misconceptions if isinstance(m.of, Question) and m.of.name == question.name)


def type_and_text(error: BaseException) -> str:
    """``ValueError: 0.0 is not ...``, on one line and capped; of an author's error, so paths are kept."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
