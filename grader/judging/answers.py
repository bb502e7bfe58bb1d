"""Judge an answer: right, a known misconception, or wrong; reasons never tell the right answer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from grader.common.result import Result
from grader.exercise import Misconception, Question, Written
from grader.judging.kinds import Kind, kind_name, kind_of, units_known
from grader.judging.questions import label_of
from grader.judging.units import BadAnswer
from grader.wire.limits import MAX_TEXT

BY_A_PERSON = "a person reads this answer and gives its points"
NOT_ANSWERED = "not answered yet"
A_NUMBER = "this is the number a known misconception leads to"
AN_ANSWER = "this is the answer a known misconception leads to"


def judge(question: Question, params: Mapping[str, Any], misconceptions: Iterable[Misconception], raw: Any) -> Result:
    """The verdict on one answer to one variant of a question.

    Args:
        params: what was drawn for the learner (``variants.params_for``).
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


def wanted(question: Question, fn: Callable[..., Any], params: Mapping[str, Any], kind: Kind | None = None) -> Any:
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
