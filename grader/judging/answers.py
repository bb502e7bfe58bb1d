"""Questions: choose a learner's parameters at random, print the question's text, and judge the learner's answer.

A *variant* of a question is the question with one choice of its parameters. Texts for the learner never reveal the
right answer.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import jinja2

from grader import hardware
from grader.common.result import READ_AS, QuestionKind, Result, RubricItem
from grader.exercise import AuthorError, Choice, Misconception, Quantity, Question, Table, Written
from grader.exercise.questions import ORDER, Answer
from grader.hardware.chips import FIGURES, reading
from grader.judging.kinds import KINDS
from grader.judging.kinds.kind import AnswerKind, filled_in
from grader.judging.units import BadAnswer, unit_of
from grader.wire.limits import MAX_TEXT

HARD_TO_GUESS = ("number", "table")
"""Kinds of answers that a student cannot guess."""
MOST_NAMED = 2
"""Largest number of misconceptions that a report names if all fit equally well. If more fit, the report names none."""


def params_for(question: Question, *, seed: str, student: str | None) -> dict[str, Any]:
    """Choose (draw) one variant of a question at random, and the order of the options if the answer is a choice.

    SHA-256 over (seed, question name, student) decides the draw, so the draw is equal in every process and on every
    platform. A student's draw changes only if the seed, the question's name, its possible parameters or the keys of its
    options change.

    Args:
        seed: ``variants.seed`` of course.yaml, which is not secret.
        student: the student; None draws one variant that all students share.

    Returns:
        The value of each parameter. For a choice, the entry ``ORDER`` has the keys of the options in their order.
    """
    variants = _variants(question)
    if not variants:
        raise AuthorError(f"{question.name}: no parameters satisfy its `where`")
    # The item "student" makes the draw of a student called "shared" differ from the shared draw.
    who = ["shared"] if student is None else ["student", student]
    digest = hashlib.sha256(json.dumps([seed, question.name, *who]).encode()).digest()
    drawn = dict(variants[int.from_bytes(digest, "big") % len(variants)])
    if isinstance(question.answer, Choice):
        drawn[ORDER] = sorted(question.answer.options, key=lambda key: hashlib.sha256(digest + key.encode()).digest())
    return drawn


class OfAClass:
    """A question's drawn parameters for each student of a class, to find answers that are right for other students.

    Students with equal parameters form a group, so an answer is compared with one right answer per group.
    """

    def __init__(self, question: Question, params: Mapping[str, Mapping[str, Any]]) -> None:
        """Group the students by drawn parameters. ``params``: the drawn parameters by student."""
        self.question = question
        # repr(drawn parameters) -> the drawn parameters, and the students who have them
        self._alike: dict[str, tuple[Mapping[str, Any], list[str]]] = {}
        self._draw_of = {student: repr(drawn) for student, drawn in params.items()}
        for student in sorted(params):
            self._alike.setdefault(self._draw_of[student], (params[student], []))[1].append(student)
        self._right: dict[str, Any] = {}

    def fits_others(self, student: str, text: str) -> list[str]:
        """Return the other students for whom a wrong answer would be right, for the staff to review.

        Return [] if the answer is right for ``student`` or cannot be read. Also return [] if students can guess the
        right answer, as in a choice.

        ``text``: the answer, as the report shows it.
        """
        if kind_name(self.question) not in HARD_TO_GUESS:
            return []
        own, _ = self._alike[self._draw_of[student]]
        # ``kind`` also compares the answer with the right answers of other students, who have other parameters. This
        # works, because for numbers and tables, only ``kind.why`` uses the drawn parameters.
        kind = kind_of(self.question, own)
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
    return list(question.variants())


def some_variants(question: Question, most: int) -> list[dict[str, Any]]:
    """Return all variants of a question, or a random sample of ``most`` variants if there are more."""
    variants = _variants(question)
    return random.Random(question.name).sample(variants, most) if len(variants) > most else variants


def show_params(params: Mapping[str, Any]) -> str:
    """Return parameters as a text for messages: ``X=4, chip='v5e'``."""
    return ", ".join(f"{name}={value!r}" for name, value in params.items())


def render_text(question: Question, params: Mapping[str, Any]) -> str:
    """Return the question's text with the parameters filled in.

    Raises jinja2.TemplateError if the text is not a template or names a parameter that does not exist.
    """
    text = filled_in(question.text, params)
    return "\n\n".join(_flowing(paragraph) for paragraph in text.split("\n\n"))


def _flowing(paragraph: str) -> str:
    """Join a paragraph's lines into one line, so that the display can wrap it. Leave lists, tables and code alone."""
    lines = paragraph.splitlines()
    return paragraph if any(re.match(r"[-*|\s]|```|\d+\.\s", line) for line in lines) else " ".join(lines)


def render_question(question: Question, params: Mapping[str, Any]) -> str:
    """Return the question as a learner sees it.

    The result has the question's text, lines about the form of the answer, the question's time model if it has one, and
    lines from the hardware table for the chips among the parameters.
    """
    lines = [render_text(question, params), "", *kind_of(question, params).asked]
    if question.model:
        lines.append(f"Model: {question.model}.")
    chips = dict.fromkeys(v for k, v in params.items() if k == "chip" or hardware.is_known(v))
    figures = figures_of(question) if chips else frozenset()
    return "\n".join([*lines, *(f"Hardware: {hardware.describe(c, figures)}." for c in chips if figures)])


def names_a_chip(question: Question) -> bool:
    return any(name == "chip" or any(map(hardware.is_known, values)) for name, values in question.params.items())


@cache
def figures_of(question: Question) -> frozenset[str]:
    """Return the figures (columns) of the hardware table that one needs to compute the answer.

    In a learner's exercise file, which lacks the author's function, the question declares the figures. In the author's
    file, the result has all figures that the author's function reads. If this function fails, the result has all
    figures of the table.
    """
    if question.figures is not None:
        return frozenset(question.figures)
    try:
        with reading() as read:
            for params in _variants(question):
                question.answered_by(question.fn, params)
    except Exception:
        return FIGURES
    return FIGURES & read


def label_of(question: Question, params: Mapping[str, Any]) -> str:
    """Return the answer's variable name and the question in one sentence: ``flops: How many FLOPs has a step?``.

    The sentence is the question's title, else the first sentence with a question mark, else the first sentence. If the
    text cannot be rendered, return only the variable's name.
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
    """Return the name of the question's kind in reports and declarations: ``number`` for ``exercise.number``."""
    return KINDS[type(question.answer)].name


def heading(question: Question) -> str:
    """Return the form of the answer in a few words, such as ``us`` or ``a PartitionSpec``.

    The words are equal for all students.
    """
    return KINDS[type(question.answer)].heading(question.answer)


def units_known(question: Question) -> None:
    """Raise BadAnswer if a unit in a question's declaration is unknown."""
    match question.answer:
        case Quantity(unit=unit):
            unit_of(unit)
        case Table(columns=columns):
            for unit in columns.values():
                unit_of(unit)


def kind_of(question: Question, drawn: Mapping[str, Any]) -> AnswerKind[Any, Any]:
    """Return the object that reads and judges answers to this question. ``drawn``: a learner's drawn parameters.

    Raises ValueError if two options cannot be distinguished, and jinja2.TemplateError if an option's text does not
    render.
    """
    return KINDS[type(question.answer)].of(question.answer, drawn, question.rtol)


BY_A_PERSON = "the staff reads this answer and gives its points"
NOT_ANSWERED = "not answered yet"
A_NUMBER = "a known misconception leads to this number"
AN_ANSWER = "a known misconception leads to this answer"


def judge_answer(
    question: Question, params: Mapping[str, Any], misconceptions: Iterable[Misconception], raw: Any
) -> Result:
    """Judge one answer to one variant of a question.

    Args:
        params: the parameters drawn for the learner (``params_for``).
        misconceptions: the exercise's misconceptions; misconceptions of other questions are ignored.
        raw: the plain JSON value from the submission; None or blank if not answered.

    Returns:
        A Result. The fields ``reason`` and ``hint`` never reveal the right answer. The field ``expected``, which only
        the staff sees, is the right answer. If the author's function fails or its value is not a valid answer, the
        status is ``broken``.
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
    verdict = functools.partial(verdict, actual=f"{READ_AS}{kind.read_as(given)}")
    if kind.distance(given, want) is not None:
        return verdict(status="passed", earned=question.points)
    verdict = functools.partial(verdict, earned=round(question.points * kind.share(given, want), 6))
    found = nearest_misconceptions(question, params, misconceptions, given, want)
    if not found:
        return verdict(reason=kind.why(given, want))
    hint, name = named(found)
    reason = A_NUMBER if kind_name(question) == "number" else AN_ANSWER
    return verdict(reason=reason, hint=hint, misconception=name)


def _for_a_person(answer: Answer, given: str, raw: str) -> dict[str, Any]:
    assert isinstance(answer, Written)
    reason = BY_A_PERSON + (
        f"; only the first {MAX_TEXT} characters of the answer were read" if len(raw) >= MAX_TEXT else ""
    )
    items = [] if isinstance(answer.rubric, str) else answer.rubric.items()
    rubric = [RubricItem(name=name, points=points, text=text) for name, (points, text) in items]
    staff = "" if rubric else f"rubric: {answer.rules}"
    return {"status": "waiting", "reason": reason, "actual": given, "staff": staff, "rubric": rubric}


def read_back(question: Question, params: Mapping[str, Any], raw: Any) -> Result:
    """Read an answer, and return a result that shows how the grader understood it, without judging it.

    The status is ``failed`` if the answer cannot be read or is wrong for every variant of the question. Otherwise, the
    status is ``blocked``, which means not judged.
    """
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
    read = f"{READ_AS}{kind.read_as(given)}"
    if misfit := kind.misfit(given):
        return result(status="failed", reason=misfit, actual=read)
    return result(reason=f"{read}; the answer is judged after you submit", actual=read)


def wanted(
    question: Question, fn: Callable[..., Any], params: Mapping[str, Any], kind: AnswerKind | None = None
) -> Any:
    """Return the answer that the author's function ``fn`` gives for these parameters.

    Raises ValueError if the answer is not valid, and any error that the function raises.
    """
    kind = kind or kind_of(question, params)
    return (kind if fn is question.fn else kind.of_mistakes).want(question.answered_by(fn, params))


def nearest_misconceptions(
    question: Question, params: Mapping[str, Any], misconceptions: Iterable[Misconception], given: Any, want: Any
) -> list[Misconception]:
    """Return the misconceptions that explain the wrong answer ``given``.

    If misconceptions lead to this answer, return only the misconception with the nearest answer. Otherwise, return each
    misconception that explains all wrong parts of the answer, such as all wrong numbers of a table. Return [] if there
    are more than ``MOST_NAMED`` such misconceptions.
    """
    kind = kind_of(question, params)
    near: list[tuple[float, str, Misconception]] = []
    partly: list[Misconception] = []
    for misconception in misconceptions_of(question, misconceptions):
        try:
            wrong = wanted(question, misconception.fn, params, kind)
        except Exception:  # the misconception's function cannot take these parameters; ``verify`` reports such failures
            continue
        distance = kind.distance(given, wrong)
        if distance is not None:
            near.append((distance, misconception.name, misconception))
        elif kind.wrong_as(given, wrong, want):
            partly.append(misconception)
    if near:
        return [min(near)[2]]
    return partly if len(partly) <= MOST_NAMED else []


def named(misconceptions: Sequence[Misconception]) -> tuple[str, str]:
    """Return (hint, name) for one misconception. For two, return ("Either: hint Or: hint", "name or name")."""
    hints = list(dict.fromkeys(misconception.hint for misconception in misconceptions))
    hint = hints[0] if len(hints) == 1 else f"Either: {hints[0]}\n\nOr: {hints[1]}"
    return hint, " or ".join(misconception.known_as for misconception in misconceptions)


def with_hint(result: Result, misconceptions: Sequence[Misconception]) -> Result:
    """Return the result with the hint of one misconception, or the hints of two."""
    hint, name = named(misconceptions)
    return result.model_copy(update={"hint": hint, "misconception": name})


def misconceptions_of(question: Question, misconceptions: Iterable[Misconception]) -> Iterator[Misconception]:
    return (m for m in misconceptions if isinstance(m.of, Question) and m.of.name == question.name)


def type_and_text(error: BaseException) -> str:
    """Return an author's error as one line of at most 200 characters, such as ``ValueError: math domain error``."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
