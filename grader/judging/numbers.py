"""Judge a numeric answer: right, a known slip, or a slip of units; never telling the right number."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from grader.common.result import Result
from grader.exercise import Misconception, Number
from grader.judging.questions import label_of
from grader.judging.reading import Answer, parse
from grader.judging.units import OF_DATA, BadAnswer, show, unit_of

KIB_RTOL = 0.004
"""How near an answer must be to the kB/KiB slip: the slip is only 2.4 % and its powers would cover all near misses."""


def judge(question: Number, params: Mapping[str, Any], misconceptions: Iterable[Misconception], raw: Any) -> Result:
    """The verdict on one answer to one variant of a question.

    Args:
        misconceptions: the exercise's; those of other questions are passed over.
        raw: the plain JSON value from the submission; None or blank: not answered.

    Returns:
        A Result whose ``reason`` and ``hint`` never tell the expected value; ``expected`` (for the staff) does.
        A question whose own answer is not finite and positive is ``broken``.
    """
    result = functools.partial(
        Result, kind="number", name=question.name, label=label_of(question, params), task=question.name,
        points=question.points, public=False,
    )  # fmt: skip
    try:
        want = positive(question, params)
        asked = unit_of(question.unit)[1]
    except Exception as error:  # an author's mistake must not cost a learner points
        return result(status="broken", earned=0, reason=f"the question has no answer of ours: {type_and_text(error)}")
    verdict = functools.partial(result, status="failed", earned=0, expected=show(want, question.unit))
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return verdict(reason="not answered yet")
    try:
        answer = parse(raw, question.unit)
    except BadAnswer as error:
        return verdict(reason=str(error))
    verdict = functools.partial(verdict, actual=f"read as {answer}")
    if answer.dimension != asked:
        return verdict(reason=f"{asked} was asked, you gave {answer.dimension}")
    if is_close(answer.value, want, question.rtol):
        return verdict(status="passed", earned=question.points)
    slip = nearest_slip(question, params, misconceptions, answer.value)
    if slip:
        return verdict(reason="this is the number a known slip leads to", hint=slip.hint, misconception=slip.name)
    return verdict(reason=_generic_slip(answer, want, question))


def is_close(got: float, want: float, rtol: float) -> bool:
    """Within the tolerance; NaN never is."""
    return abs(got - want) <= rtol * abs(want)


def nearest_slip(
    question: Number, params: Mapping[str, Any], misconceptions: Iterable[Misconception], value: float
) -> Misconception | None:
    """The misconception of this question whose number is nearest to ``value``, within tolerance."""
    near: list[tuple[float, str, Misconception]] = []
    for slip in slips_of(question, misconceptions):
        try:
            wrong = positive(slip.fn, params)
        except Exception:  # a slip that has no number for these parameters (verify reports it) matches nothing
            continue
        if is_close(value, wrong, question.rtol):
            near.append((abs(value - wrong) / wrong, slip.name, slip))
    return min(near)[2] if near else None


def _generic_slip(answer: Answer, want: float, question: Number) -> str:
    """Why a wrong number may be wrong, without telling the right one."""
    got, rtol = answer.value, question.rtol
    if got <= 0:
        return f"the answer is positive, you gave {answer}"
    if is_close(answer.magnitude * unit_of(question.unit)[0], want, rtol):
        return f"the digits are right but the unit is not: you gave {answer}"
    if _off_by(got, want, 1000.0, rtol):
        return "the digits are right but the unit is not: you are off by a power of 1000"
    if answer.dimension not in OF_DATA:
        pass  # a time, a count or a rate of FLOPs has no bytes to mix up
    elif _off_by(got, want, 1.024, min(rtol, KIB_RTOL)):
        return "this looks like kB and KiB mixed up: 1 kB is 1000 B, 1 KiB is 1024 B (MB and MiB, GB and GiB likewise)"
    elif _off_by(got, want, 8.0, rtol, powers=(1, -1)):
        return "this looks like bits and bytes mixed up: b is a bit, B is a byte of 8 bits"
    if 1e-3 < got / want < 1e3:
        return "not right, and no slip we know; the size is plausible, so look at the formula before the units"
    return "not right: off by more than a factor of 1000, so look at the units first"


def _off_by(
    got: float, want: float, base: float, rtol: float, powers: Iterable[int] = (1, -1, 2, -2, 3, -3, 4, -4)
) -> bool:
    return any(is_close(got, want * base**k, rtol) for k in powers)


def slips_of(question: Number, misconceptions: Iterable[Misconception]) -> Iterator[Misconception]:
    """The misconceptions that are of this question."""
    return (m for m in misconceptions if isinstance(m.of, Number) and m.of.name == question.name)


def positive(fn: Callable[..., Any], params: Mapping[str, Any]) -> float:
    """The number of a question or a slip for these parameters; ValueError where it is not finite and positive."""
    value = float(fn(**params))
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{value!r} is not a finite positive number")
    return value


def type_and_text(error: BaseException) -> str:
    """``ValueError: 0.0 is not ...``, on one line and capped; of an author's error, so paths are kept."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]
