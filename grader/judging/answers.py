"""Questions: draw a learner's parameters, print the text, and judge the answer.

A verdict says that an answer is right, is the answer of a known misconception, or is wrong. A verdict never reveals the
right answer.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import jinja2

from grader import hardware
from grader.common.result import QuestionKind, Result, RubricItem
from grader.exercise import AuthorError, Choice, Misconception, Quantity, Question, Table, Written
from grader.exercise.questions import ORDER, Answer
from grader.judging.kinds import KINDS
from grader.judging.kinds.kind import AnswerKind, filled_in
from grader.judging.units import BadAnswer, unit_of
from grader.wire.limits import MAX_TEXT

TELLING = ("number", "table")
"""Kinds of answers that a student cannot guess."""


def params_for(question: Question, *, seed: str, student: str | None) -> dict[str, Any]:
    """Draw one variant of a question and, if it has options, their order.

    SHA-256 over (seed, question name, student) decides the draw, so the process, the platform and the order of students
    do not matter. For one student and seed, the draw changes only if the question's parameters change.

    Args:
        seed: the course's seed, changed once per term.
        student: the student; None draws one variant that all students share.
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
    """A question's draws for all students of a class, to find students for whom a wrong answer would be right.

    Students with equal draws are grouped, so an answer is compared once per draw, not once per student.
    """

    def __init__(self, question: Question, params: Mapping[str, Mapping[str, Any]]) -> None:
        """Group the students by draw; no right answer is computed yet.

        Args:
            params: drawn parameters by student.
        """
        self.question = question
        self._alike: dict[str, tuple[Mapping[str, Any], list[str]]] = {}  # from repr(draw) to the draw and its students
        self._draw_of = {student: repr(drawn) for student, drawn in params.items()}
        for student in sorted(params):
            self._alike.setdefault(self._draw_of[student], (params[student], []))[1].append(student)
        self._right: dict[str, Any] = {}

    def fits_others(self, student: str, text: str) -> list[str]:
        """Return the other students for whom a wrong answer would be right, for the staff to review; not a verdict.

        Args:
            student: the student who gave the answer.
            text: the answer, as the report shows it.

        Returns:
            Names, sorted. Empty if the answer is right for this student or cannot be read, or if students may guess
            right answers to this question, as for a choice.
        """
        if kind_name(self.question) not in TELLING:
            return []
        own, _ = self._alike[self._draw_of[student]]
        kind = kind_of(self.question, own)  # for kinds in TELLING, only ``why`` uses the draw, so any draw will do
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
    """Return all variants of a question, from a cache, because a declared question never changes."""
    return list(question.variants())


def render_text(question: Question, params: Mapping[str, Any]) -> str:
    """Return the question's own text with its parameters filled in.

    Raises:
        jinja2.TemplateError: the text is not a template or names a parameter that does not exist.
    """
    text = filled_in(question.text, params)
    return "\n\n".join(_flowing(paragraph) for paragraph in text.split("\n\n"))


def _flowing(paragraph: str) -> str:
    """Join a paragraph into one line, for the display to wrap; lists, tables and code keep their lines."""
    lines = paragraph.splitlines()
    return paragraph if any(re.match(r"[-*|\s]|```|\d+\.\s", line) for line in lines) else " ".join(lines)


def render_question(question: Question, params: Mapping[str, Any]) -> str:
    """Return the question as a learner sees it: text, form of the answer, time model and row of the hardware table."""
    lines = [render_text(question, params), "", *kind_of(question, params).asked]
    if question.model:
        lines.append(f"Model: {question.model}.")
    chips = dict.fromkeys(v for k, v in params.items() if k == "chip" or hardware.is_known(v))
    return "\n".join([*lines, *(f"Hardware: {hardware.describe(c)}." for c in chips)])


def label_of(question: Question, params: Mapping[str, Any]) -> str:
    """Return the answer's variable name and the question asked: ``flops: How many FLOPs has ...?``.

    An author's title replaces the question asked. The question asked is the rendered text's first sentence with a
    question mark at its end, or else the text's first sentence. If the text cannot be rendered, return the name alone.
    """
    if question.title:
        return f"{question.name}: {question.title}"
    try:
        text = " ".join(render_text(question, params).split())
    except jinja2.TemplateError:
        return question.name
    sentences = re.split(r"(?<=[.?!])\s", text)
    asked = next((sentence for sentence in sentences if sentence.endswith("?")), sentences[0])
    return f"{question.name}: {asked}" if asked else question.name


def kind_name(question: Question) -> QuestionKind:
    """Return the kind's name in reports, which is the name of its declaration: ``number`` for ``exercise.number``."""
    return KINDS[type(question.answer)].name


def heading(question: Question) -> str:
    """Return the form of the answer in a few words, equal for all students: ``us``, ``a PartitionSpec``."""
    return KINDS[type(question.answer)].heading(question.answer)


def units_known(question: Question) -> None:
    """Check the units of a question. Raises BadAnswer for an unknown unit."""
    match question.answer:
        case Quantity(unit=unit):
            unit_of(unit)
        case Table(columns=columns):
            for unit in columns.values():
                unit_of(unit)


def kind_of(question: Question, drawn: Mapping[str, Any]) -> AnswerKind[Any, Any]:
    """Return the object that reads and judges answers to this question, with the parameters drawn for a learner.

    Raises:
        jinja2.TemplateError: an option's text does not render.
        ValueError: two options read alike.
    """
    return KINDS[type(question.answer)].of(question.answer, drawn, question.rtol)


BY_A_PERSON = "the staff reads this answer and gives its points"
NOT_ANSWERED = "not answered yet"
A_NUMBER = "this is the number of a known misconception"
AN_ANSWER = "this is the answer of a known misconception"


def judge(question: Question, params: Mapping[str, Any], misconceptions: Iterable[Misconception], raw: Any) -> Result:
    """Judge one answer to one variant of a question.

    Args:
        params: the parameters drawn for the learner (``params_for``).
        misconceptions: all misconceptions of the exercise. Only misconceptions of this question count.
        raw: the plain JSON value from the submission; None or blank if not answered.

    Returns:
        A Result. Its ``reason`` and ``hint`` never reveal the right answer. Its ``expected`` holds the right answer for
        the staff. If the author's function gives no valid answer, the status is ``broken``.
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
        return result(
            status="broken",
            earned=0,
            reason=f"the grader cannot compute the answer of this question: {type_and_text(error)}",
        )
    verdict = functools.partial(result, status="failed", earned=0, expected=kind.shown(want))
    if kind.is_empty(raw):
        return verdict(reason=NOT_ANSWERED)
    try:
        given = kind.read(raw)
    except BadAnswer as error:
        return verdict(reason=str(error))
    if kind.by_a_person:
        return verdict(**_for_a_person(question.answer, given, str(raw)))
    verdict = functools.partial(verdict, actual=f"read as {kind.read_as(given)}")
    if kind.distance(given, want) is not None:
        return verdict(status="passed", earned=question.points)
    verdict = functools.partial(verdict, earned=round(question.points * kind.share(given, want), 6))
    misconception = nearest_misconception(question, params, misconceptions, given)
    if misconception:
        reason_given = A_NUMBER if kind_name(question) == "number" else AN_ANSWER
        return verdict(reason=reason_given, hint=misconception.hint, misconception=misconception.name)
    return verdict(reason=kind.why(given, want))


def _for_a_person(answer: Answer, given: str, raw: str) -> dict[str, Any]:
    """Return the fields of a result that waits for a person."""
    assert isinstance(answer, Written)
    reason = BY_A_PERSON + (f"; only its first {MAX_TEXT} characters were read" if len(raw) >= MAX_TEXT else "")
    items = [] if isinstance(answer.rubric, str) else answer.rubric.items()
    rubric = [RubricItem(name=name, points=points, text=text) for name, (points, text) in items]
    staff = "" if rubric else f"rubric: {answer.rules}"
    return {"status": "waiting", "reason": reason, "actual": given, "staff": staff, "rubric": rubric}


def read_back(question: Question, params: Mapping[str, Any], raw: Any) -> Result:
    """Read an answer without judging it. The status is ``blocked``, or ``failed`` if the answer cannot be right."""
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
    """Return an author's answer. Raises ValueError if the answer is not valid, and errors of the author's function."""
    return (kind or kind_of(question, params)).want(question.answered_by(fn, params))


def nearest_misconception(
    question: Question, params: Mapping[str, Any], misconceptions: Iterable[Misconception], given: Any
) -> Misconception | None:
    """Return the misconception of this question with the answer nearest to the given one, within tolerance."""
    kind = kind_of(question, params)
    near: list[tuple[float, str, Misconception]] = []
    for misconception in misconceptions_of(question, misconceptions):
        try:
            distance = kind.distance(given, wanted(question, misconception.fn, params, kind))
        except Exception:  # a misconception that fails for these parameters matches nothing; verify reports it
            continue
        if distance is not None:
            near.append((distance, misconception.name, misconception))
    return min(near)[2] if near else None


def misconceptions_of(question: Question, misconceptions: Iterable[Misconception]) -> Iterator[Misconception]:
    """Return the misconceptions of this question."""
    return (m for m in misconceptions if isinstance(m.of, Question) and m.of.name == question.name)


def type_and_text(error: BaseException) -> str:
    """Return an author's error as one short line that keeps paths, ``ValueError: 0.0 is not ...``."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
