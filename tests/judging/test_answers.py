"""Numeric answers: right, known misconceptions, wrong units."""

from __future__ import annotations

import math
from typing import Any

import pytest

from grader.common.result import Result
from grader.exercise import Exercise
from grader.judging.answers import judge_answer
from grader.judging.kinds.quantities import QuantityKind, is_close, numbers_of
from grader.judging.problems import question_problems
from tests.question import declare

PLAUSIBLE = "not right, and not the result of a known misconception; the size is plausible, so check the formula first, then the units"
UNKNOWN = "not right, and not the result of a known misconception"
KIB = "this looks like kB and KiB mixed up: 1 kB is 1000 B, 1 KiB is 1024 B (MB and MiB, GB and GiB likewise)"


def verdict(raw: Any, **options: Any) -> Result:
    question, misconceptions = declare(**options)
    return judge_answer(question, {"n": 559}, misconceptions, raw)


@pytest.mark.parametrize(
    "raw", [559, 559.0, "559", "0.559 ms", "559 µs", "5.6e-4 s", 569, {"magnitude": 559e3, "units": "ns"}]
)
def test_right_answers_pass(raw):
    result = verdict(raw)
    assert (result.status, result.earned, result.points, result.reason, result.hint) == ("passed", 2, 2, "", "")
    assert result.kind == "number" and result.task == result.name == "waiting"
    assert result.label == "waiting: How long?"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, "not answered yet"),
        ("  ", "not answered yet"),
        ("many", "'many' cannot be read: write one number and a unit, like 28.5 KiB"),
        ("nan", "'nan' cannot be read: write one number and a unit, like 28.5 KiB"),
        (math.nan, "nan is not a number"),
        (True, "an answer is a number or a text with a unit, not True or False"),
        ("559 KiB", "the question asks for a time, but you gave an amount of data"),
        ("559 GB/s", "the question asks for a time, but you gave a bandwidth"),
        ("559 B/s/s", "the question asks for a time, but you gave a quantity in byte / second ** 2"),
        ("559 ms", "the digits are right but the unit is not: you gave 559 ms"),
        ("559 min", "the digits are right but the unit is not: you gave 559 min"),
        (5.59e-4, "the digits are right but the unit is not: you are off by a power of 1000"),
        ("0.559 us", "the digits are right but the unit is not: you are off by a power of 1000"),
        (572.4, PLAUSIBLE),  # 559 · 1.024; a time is not measured in kB or KiB, so the factor 1.024 shows no mistake
        (533.1, PLAUSIBLE),
        (559 * 8, PLAUSIBLE),
        (-559, "the answer is positive, but you gave -559 us"),
        (0, "the answer is positive, but you gave 0 us"),
        (1600, PLAUSIBLE),
        (559 * 4.5, PLAUSIBLE),
        (559 * 16, UNKNOWN),
        (559 / 100, UNKNOWN),
        ("77 s", "not right: off by a factor of 1000 or more, so look at the units first"),
    ],
)  # fmt: skip
def test_wrong_answers_fail_with_a_reason(raw, reason):
    result = verdict(raw)
    assert (result.status, result.earned, result.reason) == ("failed", 0, reason)
    assert result.misconception == ""


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("572.4 uB", KIB),
        ("533.1 uB", KIB),
        (559 * 8, PLAUSIBLE),  # a factor of 8 may be the size of an axis, or the number of bits in a byte
        (559 / 8, PLAUSIBLE),
        (559 * 1.05, PLAUSIBLE),  # 21/20: a formula with N + 1 in place of N
        (559 * 43 / 42, PLAUSIBLE),
    ],
)
@pytest.mark.parametrize("unit", ["uB", "uB/s", "uB/token"])
def test_factors_of_1_024_are_reported_as_kib_and_kb_mixed_up(raw, reason, unit):
    raw = raw.replace("uB", unit) if isinstance(raw, str) else raw
    assert verdict(raw, unit=unit).reason == reason


@pytest.mark.parametrize(
    ("drawn", "factor", "named"),
    [
        ((), 1.024, True),
        ((512, 500), 1.024, False),
        ((125, 127), 1.024, False),  # (127 + 1) / 125
        ((512, 510), 1.024, True),
        ((), 1000, True),
        ((125, 3), 1000, False),  # 8·125
        ((125, 3), 1e6, True),
        ((140, 6), 1000, True),  # the answer is off by 1000, which is nearer than (140 + 1)·(6 + 1) = 987
        ((4000, 4), 0.001, False),
    ],
)
def test_a_factor_from_the_drawn_numbers_is_not_taken_for_a_unit_mistake(drawn, factor, named):
    kind = QuantityKind("MB", 0.02, drawn=numbers_of({"mesh": {"x": drawn[:1]}, "n": drawn[1:], "chip": "v5e"}))
    assert ("unit is not" in (why := kind.why(kind.read(f"{3e-3 * factor!r} MB"), 3e3)) or why == KIB) == named


@pytest.mark.parametrize("unit", ["", "chip", "token"])
@pytest.mark.parametrize("factor", [16, 1 / 100, 7000])
def test_a_wrong_count_gets_no_remark_on_units(unit, factor):
    kind = QuantityKind(unit, 0.02)
    assert kind.why(kind.read(559 * factor), 559.0) == UNKNOWN


def test_a_known_misconception_gets_its_hint():
    result = verdict("280 us")
    assert (result.status, result.misconception, result.hint) == ("failed", "both_ways", "You used both directions.")
    assert result.reason == "a known misconception leads to this number"
    assert result.actual == "read as 280 us"
    assert result.expected == "559 us"


def test_the_nearest_misconception_gives_the_hint():
    """Both misconceptions are within tolerance of both answers. The nearer one gives the hint."""
    assert verdict(559 / 2 * 1.002).misconception == "both_ways"
    assert verdict(559 / 2 * 1.013).misconception == "nearly_both_ways"


def test_a_known_misconception_may_lead_to_0():
    exercise = Exercise()

    @exercise.number(points=1, unit="B", params={"n": [3]})
    def sent(n):
        """How many bytes?"""
        return 4 * n

    @exercise.misconception(of=sent)
    def nothing_sent(n):
        """Something is sent."""
        return 0

    assert not list(question_problems(sent, exercise.misconceptions.values()))
    assert judge_answer(sent, {"n": 3}, exercise.misconceptions.values(), "0 B").hint == "Something is sent."


def test_the_right_answer_takes_precedence_over_misconceptions():
    assert verdict(559 / 2 * 1.1, rtol=0.5).status == "passed"


@pytest.mark.parametrize("raw", [None, "x", 280, 1600, "77 s", "559 KiB", 5.0, 562 * 1.1])
def test_the_expected_value_is_only_for_the_staff(raw):
    result = verdict(raw)
    assert result.expected == "559 us"
    assert "559 us" not in result.reason + result.hint + str(result.actual)


def test_nan_never_passes():
    assert not is_close(math.nan, 1.0, 0.5)
    assert not is_close(1.0, math.nan, 0.5)


@pytest.mark.parametrize("answer", [math.nan, math.inf, 0.0, -1.0])
def test_a_question_without_a_valid_answer_is_broken(answer):
    exercise = Exercise()

    @exercise.number(points=1, unit="us", params={"n": [1]})
    def hopeless(n):
        """How long?"""
        return answer

    result = judge_answer(hopeless, {"n": 1}, [], 5)
    assert (result.status, result.earned) == ("broken", 0)
    assert (
        result.reason
        == f"the grader cannot compute the answer of this question: ValueError: {answer!r} is not a finite positive number"
    )


def test_a_question_in_an_unknown_unit_is_broken():
    result = verdict(559, unit="elephants")
    assert result.status == "broken"
    assert result.reason.startswith(
        "the grader cannot compute the answer of this question: BadAnswer: unknown unit 'elephants'"
    )


@pytest.mark.parametrize(
    ("factor", "due"),
    [
        (2, "off by a factor of two: check what counts once or twice"),
        (1 / 2, "off by a factor of two: check what counts once or twice"),
        (1.99, "the size is plausible"),
        (7 / 8, "check the number of parts or steps"),
        (8 / 7, "check the number of parts or steps"),
        (8, "check what counts"),
        (1 / 8, "check what counts"),
        (1 / 40, "check what counts"),  # two of the drawn numbers
        (1 / 3, "check what counts"),  # such as one of three layers
        (7 / 9, "the size is plausible"),
        (6 / 7, "the size is plausible"),  # 7 is not drawn
        (1.5, "the size is plausible"),
        (0.88, "the size is plausible"),  # near 7/8
    ],
)
def test_a_mistake_in_a_count_is_recognised(factor: float, due: str) -> None:
    kind = QuantityKind("us", 0.02, drawn=(8, 5, 1024, 2))
    assert due in kind.why(kind.read(f"{559 * factor!r} us"), 559e-6)
