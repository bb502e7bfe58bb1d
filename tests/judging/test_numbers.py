"""Reading answers from strangers, judging them, printing and proving questions."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grader.exercise import Exercise, Misconception, Number
from grader.judging import numbers
from grader.judging.numbers import BadAnswer, Result, judge, parse, question_problems, render_question

# -- reading -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "unit", "value", "dimension"),
    [
        (559, "us", 559e-6, "a time"),
        (0.559, "ms", 559e-6, "a time"),
        ("559", "us", 559e-6, "a time"),
        ("559 us", "ms", 559e-6, "a time"),
        ("0.559 ms", "us", 559e-6, "a time"),
        ("5.6e-4 s", "us", 5.6e-4, "a time"),
        ("5.6*10^-4 s", "us", 5.6e-4, "a time"),
        ("5.6 × 10^-4 s", "us", 5.6e-4, "a time"),
        ("5.6 · 10⁻⁴ s", "us", 5.6e-4, "a time"),
        ("5.6*10^{-4} s", "us", 5.6e-4, "a time"),
        ("5.6e2*us", "ms", 560e-6, "a time"),
        ("~4077.8 us", "ms", 4077.8e-6, "a time"),
        ("≈ 4.1 ms", "us", 4.1e-3, "a time"),
        ("about 3 us", "ms", 3e-6, "a time"),
        ("approx. 3 us", "ms", 3e-6, "a time"),
        ("t_comm = ~3 us", "ms", 3e-6, "a time"),
        ("T = -3 us", "ms", -3e-6, "a time"),
        ("4,077.8 us", "ms", 4077.8e-6, "a time"),
        ("4077.8us", "ms", 4077.8e-6, "a time"),
        ("4077.8 us.", "ms", 4077.8e-6, "a time"),
        ("4.0778e3 µs", "ms", 4077.8e-6, "a time"),
        ("4.0778 × 10^3 us", "ms", 4077.8e-6, "a time"),
        ("4.0778 x 10³ us", "ms", 4077.8e-6, "a time"),
        ("4 077.8 us", "ms", 4077.8e-6, "a time"),
        ("4'077.8 us", "ms", 4077.8e-6, "a time"),
        ("5/2 ms", "us", 2.5e-3, "a time"),
        ("10^3 us", "ms", 1e-3, "a time"),
        ("2^20 B", "KiB", 2**20, "an amount of data"),
        ("3 * 2**20 B", "KiB", 3 * 2**20, "an amount of data"),
        (2**70, "B", 2**70, "an amount of data"),
        (str(2**70), "B", 2**70, "an amount of data"),
        ("559 µs", "us", 559e-6, "a time"),  # micro sign
        ("559 μs", "us", 559e-6, "a time"),  # Greek mu
        ("559\u00a0microseconds", "us", 559e-6, "a time"),
        ("−3 us", "us", -3e-6, "a time"),
        ("2 min", "s", 120, "a time"),
        ("28 KiB", "B", 28 * 1024, "an amount of data"),
        ("28KiB", "B", 28 * 1024, "an amount of data"),
        ("28 kiB", "B", 28 * 1024, "an amount of data"),
        ("28 kB", "B", 28_000, "an amount of data"),
        ("28 KB", "B", 28_000, "an amount of data"),
        ("1,024 B", "KiB", 1024, "an amount of data"),
        ("1,048,576 B", "KiB", 2**20, "an amount of data"),
        ("1_024 B", "KiB", 1024, "an amount of data"),
        ("8 b", "B", 1, "an amount of data"),
        ("8 Gb", "B", 1e9, "an amount of data"),
        ("400 Gb/s", "GB/s", 50e9, "a bandwidth"),
        ("400 Gbps", "GB/s", 50e9, "a bandwidth"),
        ("50 GBps", "GB/s", 50e9, "a bandwidth"),
        ("50 GB per s", "GB/s", 50e9, "a bandwidth"),
        ("197 TFLOP/s", "FLOP/s", 1.97e14, "a FLOP rate"),
        ("197 TFLOPS", "FLOP/s", 1.97e14, "a FLOP rate"),
        ("197 TFLOPs", "FLOP", 1.97e14, "a number of FLOPs"),
        ("240 FLOP/B", "FLOP/B", 240, "an arithmetic intensity"),
        ("850 tokens", "token", 850, "a number of tokens"),
        ("16", "", 16, "a plain number"),
        ("16 chips", "", 16, "a plain number"),
        ("25 %", "", 0.25, "a plain number"),
        ({"magnitude": 559, "units": "microsecond"}, "s", 559e-6, "a time"),
        ({"magnitude": 1.5, "units": "gibibyte / second"}, "s", 1.5 * 2**30, "a bandwidth"),
        ({"magnitude": 2, "units": "dimensionless"}, "", 2, "a plain number"),
    ],
)
def test_what_is_read(raw, unit, value, dimension):
    answer = parse(raw, unit)
    assert answer.value == pytest.approx(value, rel=1e-12)
    assert answer.dimension == dimension


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("", "'' cannot be read: write one number and a unit, like 28.5 KiB"),
        ("nan", "'nan' cannot be read"),
        ("inf us", "'inf us' cannot be read"),
        (math.nan, "nan is not a number"),
        (-math.inf, "the number is too large to be read"),
        ("1e309 us", "the number is too large to be read"),
        ("1e308 EB", "the number is too large to be read"),
        (10**400, "the number is too large to be read"),
        ("9**9**9", "'9**9**9' cannot be read"),
        ("9**9**9 us", "'9**9**9 us' cannot be read"),
        ("5 s**9", "'5 s**9' cannot be read"),
        ("0,559 ms", "'0,559 ms' cannot be read: write a decimal point, not a comma"),
        ("1,5 ms", "'1,5 ms' cannot be read: write a decimal point, not a comma"),
        ("3 or 4 us", "'3 or 4 us' cannot be read: write one number and a unit, like 28.5 KiB"),
        ("3-4 us", "'3-4 us' cannot be read"),
        ("3 ± 1 us", "'3 ± 1 us' cannot be read"),
        ("< 3 us", "'< 3 us' cannot be read"),
        ("3 us = 3e-6 s", "'3 us = 3e-6 s' cannot be read"),
        ("4.077,8 us", "'4.077,8 us' cannot be read: write a decimal point, not a comma"),
        ("4 07 us", "'4 07 us' cannot be read"),
        ("5*", "'5*' cannot be read"),
        ("1/0 us", "'1/0 us' cannot be read: it divides by zero"),
        ("2**9**9", "'2**9**9' cannot be read"),
        ("2^99999 B", "the number is too large to be read"),
        ("3 us\n4 us", r"'3 us\n4 us' cannot be read"),
        ("3 parsecs", "unknown unit 'parsecs': write for instance us, ms, KiB, GB/s, FLOP or token"),
        ("3 lambda", "unknown unit 'lambda'"),
        ("3 s/s/s/s/s", "the unit 's/s/s/s/s' has too many parts"),
        ("7" * 101, "an answer has at most 100 characters, this has 101"),
        (True, "an answer is a number or a text with a unit, not True or False"),
        ([1], "an answer is a number or a text with a unit, not a list"),
        (None, "an answer is a number or a text with a unit, not nothing"),
        ({"magnitude": 1}, "an answer is a number, a text like '28 KiB' or a quantity with a magnitude and units"),
        ({"magnitude": "1", "units": "s"}, "an answer is a number or a text with a unit, not a value of type str"),
        ({"magnitude": 1, "units": "s**9"}, "the unit 's**9' cannot be read: write it like us, KiB, GB/s or TFLOP/s"),
        ({"magnitude": 1, "units": "s" * 1000}, "the unit 'sssss"),
    ],
)
def test_what_is_refused(raw, text):
    with pytest.raises(BadAnswer) as error:
        parse(raw, "us")
    assert str(error.value).startswith(text)
    assert "\n" not in str(error.value) and len(str(error.value)) < 200


TIMES = ["ps", "ns", "us", "µs", "μs", "ms", "s", "min", "microseconds"]
DATA = ["b", "B", "kB", "KB", "KiB", "kiB", "MiB", "GB", "Gb", "TiB"]


@given(st.floats(1e-3, 1e6), st.sampled_from(TIMES), st.sampled_from(TIMES))
def test_times_survive_a_change_of_unit(number, a, b):
    _round_trip(number, a, b)


@given(st.floats(1e-3, 1e6), st.sampled_from(DATA), st.sampled_from(DATA))
def test_amounts_survive_a_change_of_unit(number, a, b):
    _round_trip(number, a, b)


def _round_trip(number: float, a: str, b: str) -> None:
    """Written in one unit or in another, the same quantity is read."""
    first = parse(f"{number!r} {a}", "GB/s")
    other = first.value / numbers.unit_of(b)[0]
    for again in (parse(f"{other!r}{b}", "s"), parse(other, b), parse({"magnitude": other, "units": b}, "s")):
        assert again.value == pytest.approx(first.value, rel=1e-12)
        assert again.dimension == first.dimension


def _reads_or_refuses(raw: Any) -> None:
    try:
        answer = parse(raw, "us")
    except BadAnswer as error:
        assert "\n" not in str(error)
    else:
        assert math.isfinite(answer.value)


@settings(max_examples=500)
@given(st.text(max_size=150))
@example("1" + " " * 98)
@example("1e" + "9" * 98)
@example("\ud800 us")
@example("1 __import__")
def test_no_text_breaks_the_reader(text):
    _reads_or_refuses(text)


@settings(max_examples=500)
@given(st.text("0123456789.,eE+-_ */^x×%·µμbBkKiMsFLOPper", max_size=40))
def test_nothing_that_looks_like_a_number_breaks_the_reader(text):
    _reads_or_refuses(text)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["magnitude", "units", "x"]), inner, max_size=3)
    ),
)


@given(PLAIN)
def test_no_json_breaks_the_reader(raw):
    _reads_or_refuses(raw)


# -- judging -----------------------------------------------------------------------------------


def declare(**options: Any) -> tuple[Number, list[Misconception]]:
    """A question whose right answer is 559 us with n=559, and three slips of it."""
    exercise = Exercise()
    options = {"unit": "us", "params": {"n": [559, 700]}, "model": "a made-up model", **options}

    @exercise.number(points=2, **options)
    def waiting(n):
        """A queue of {{ n }} waits. How long?"""
        return n * 1e-6

    @exercise.number(points=1, unit="us", params={"n": [559]})
    def other(n):
        """Another question."""
        return 3 * n * 1e-6

    @exercise.misconception(of=waiting)
    def both_ways(n):
        """You used both directions."""
        return n * 1e-6 / 2

    @exercise.misconception(of=waiting)
    def nearly_both_ways(n):
        """You used nearly both directions."""
        return n * 1e-6 / 2 * 1.015

    @exercise.misconception(of=other)
    def of_the_other(n):
        """A slip of another question."""
        return n * 1e-6 * 5

    return waiting, list(exercise.misconceptions.values())


PLAUSIBLE = "not right, and no slip we know; the size is plausible, so look at the formula before the units"
KIB = "this looks like kB and KiB mixed up: 1 kB is 1000 B, 1 KiB is 1024 B (MB and MiB, GB and GiB likewise)"


def verdict(raw: Any, **options: Any) -> Result:
    question, slips = declare(**options)
    return judge(question, {"n": 559}, slips, raw)


@pytest.mark.parametrize(
    "raw", [559, 559.0, "559", "0.559 ms", "559 µs", "5.6e-4 s", 569, {"magnitude": 559e3, "units": "ns"}]
)
def test_right(raw):
    result = verdict(raw)
    assert (result.status, result.earned, result.points, result.reason, result.hint) == ("passed", 2, 2, "", "")
    assert result.kind == "number" and result.task == result.name == "waiting"
    assert result.label == "A queue of 559 waits."


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (None, "not answered yet"),
        ("  ", "not answered yet"),
        ("many", "'many' cannot be read: write one number and a unit, like 28.5 KiB"),
        ("nan", "'nan' cannot be read: write one number and a unit, like 28.5 KiB"),
        (math.nan, "nan is not a number"),
        (True, "an answer is a number or a text with a unit, not True or False"),
        ("559 KiB", "a time was asked, you gave an amount of data"),
        ("559 GB/s", "a time was asked, you gave a bandwidth"),
        ("559 B/s/s", "a time was asked, you gave a quantity in byte / second ** 2"),
        ("559 ms", "the digits are right but the unit is not: you gave 559 ms"),
        ("559 min", "the digits are right but the unit is not: you gave 559 min"),
        (5.59e-4, "the digits are right but the unit is not: you are off by a power of 1000"),
        ("0.559 us", "the digits are right but the unit is not: you are off by a power of 1000"),
        (572.4, PLAUSIBLE),  # a time has no kB and no bits to mix up
        (533.1, PLAUSIBLE),
        (559 * 8, PLAUSIBLE),
        (-559, "the answer is positive, you gave -559 us"),
        (0, "the answer is positive, you gave 0 us"),
        (1600, PLAUSIBLE),
        (559 * 5, PLAUSIBLE),
        ("77 s", "not right: off by more than a factor of 1000, so look at the units first"),
    ],
)  # fmt: skip
def test_wrong(raw, reason):
    result = verdict(raw)
    assert (result.status, result.earned, result.reason) == ("failed", 0, reason)
    assert result.misconception == ""


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("572.4 uB", KIB),
        ("533.1 uB", KIB),
        (559 * 8, "this looks like bits and bytes mixed up: b is a bit, B is a byte of 8 bits"),
        (559 / 8, "this looks like bits and bytes mixed up: b is a bit, B is a byte of 8 bits"),
    ],
)
@pytest.mark.parametrize("unit", ["uB", "uB/s", "uB/token"])
def test_bytes_are_mixed_up_only_where_there_are_any(raw, reason, unit):
    raw = raw.replace("uB", unit) if isinstance(raw, str) else raw
    assert verdict(raw, unit=unit).reason == reason


def test_a_known_slip_gets_its_hint():
    result = verdict("280 us")
    assert (result.status, result.misconception, result.hint) == ("failed", "both_ways", "You used both directions.")
    assert result.reason == "this is the number a known slip leads to"
    assert result.actual == "read as 280 us"
    assert result.expected == "559 us"


def test_the_nearest_slip_is_named():
    """Both slips are within tolerance of both answers; the nearer one speaks."""
    assert verdict(559 / 2 * 1.002).misconception == "both_ways"
    assert verdict(559 / 2 * 1.013).misconception == "nearly_both_ways"


def test_the_right_answer_goes_before_every_slip():
    assert verdict(559 / 2 * 1.1, rtol=0.5).status == "passed"


@pytest.mark.parametrize("raw", [None, "x", 280, 1600, "77 s", "559 KiB", 5.0, 562 * 1.1])
def test_the_expected_value_is_only_for_the_staff(raw):
    result = verdict(raw)
    assert result.expected == "559 us"
    assert "559 us" not in result.reason + result.hint + str(result.actual)


def test_nan_never_passes():
    assert not numbers.is_close(math.nan, 1.0, 0.5)
    assert not numbers.is_close(1.0, math.nan, 0.5)


@pytest.mark.parametrize("answer", [math.nan, math.inf, 0.0, -1.0])
def test_a_question_without_an_answer_is_ours(answer):
    exercise = Exercise()

    @exercise.number(points=1, unit="us", params={"n": [1]})
    def hopeless(n):
        """How long?"""
        return answer

    result = judge(hopeless, {"n": 1}, [], 5)
    assert (result.status, result.earned) == ("broken", 0)
    assert (
        result.reason == f"the question has no answer of ours: ValueError: {answer!r} is not a finite positive number"
    )


def test_a_question_in_no_known_unit_is_ours():
    result = verdict(559, unit="elephants")
    assert result.status == "broken"
    assert result.reason.startswith("the question has no answer of ours: BadAnswer: unknown unit 'elephants'")


# -- printing ----------------------------------------------------------------------------------


def test_what_a_learner_gets():
    question, _ = declare()
    assert render_question(question, {"n": 700}) == (
        "A queue of 700 waits. How long?\n\nAnswer in us (a bare number), or with a unit.\nModel: a made-up model."
    )


def test_the_hardware_row_is_printed_once_for_each_chip():
    exercise = Exercise()

    @exercise.number(points=1, unit="", params={"chip": ["v5e"], "rival": ["H100", "v5e"]})
    def versus(chip, rival):
        """{{ chip }} or {{ rival }}?"""
        return 1.0

    assert numbers._flowing("A line\nand its end.") == "A line and its end."
    assert numbers._flowing("`C` is cut.\nHow long?") == "`C` is cut. How long?"
    assert numbers._flowing("- one\n- two") == "- one\n- two"
    assert numbers._flowing("```\ncode\n```") == "```\ncode\n```"
    lines = render_question(versus, {"chip": "v5e", "rival": "H100"}).splitlines()
    assert lines[2] == "Answer with a bare number."
    assert [line.split(": ")[:2] for line in lines[3:]] == [["Hardware", "v5e"], ["Hardware", "H100"]]
    assert render_question(versus, {"chip": "v5e", "rival": "v5e"}).count("Hardware") == 1


# -- proving -----------------------------------------------------------------------------------


def test_two_answers_too_close_are_found():
    question, slips = declare()
    assert list(question_problems(question, slips)) == [
        "waiting: both_ways and nearly_both_ways are closer than the tolerance of 0.02, in 2 of 2 variants, "
        "first n=559: 279.5 us and 283.692 us"
    ]
    assert list(question_problems(question, slips[:1])) == []


def test_bad_texts_and_bad_values_are_found():
    exercise = Exercise()

    @exercise.number(points=1, unit="us", params={"n": [0, 1]})
    def odd(n):
        """How long for {{ m }}?"""
        return n * 1.0

    @exercise.misconception(of=odd)
    def fails(n):
        """A slip that cannot be computed."""
        return 1 / (n - 1)

    assert list(question_problems(odd, exercise.misconceptions.values())) == [
        "odd: the text does not render, in 2 of 2 variants, first n=0: UndefinedError: 'm' is undefined",
        "odd: the right answer has no finite positive value, in 1 of 2 variants, first n=0: "
        "ValueError: 0.0 is not a finite positive number",
        "odd: fails has no finite positive value, in 2 of 2 variants, first n=0: "
        "ValueError: -1.0 is not a finite positive number",
    ]


def test_questions_without_variants_or_unit_are_found():
    nothing, _ = declare(where=lambda n: False)
    assert list(question_problems(nothing, [])) == ["waiting: no parameters satisfy its `where`"]
    unknown, _ = declare(unit="elephants")
    assert list(question_problems(unknown, [])) == [
        "waiting: unknown unit 'elephants': write for instance us, ms, KiB, GB/s, FLOP or token"
    ]


def test_only_so_many_variants_are_looked_at(monkeypatch):
    monkeypatch.setattr(numbers, "VARIANT_CAP", 10)
    question, slips = declare(params={"n": range(1, 100)})
    assert "in 10 of 10 variants" in next(question_problems(question, slips))


def test_units_are_read_by_many_threads_at_once():
    """The first uses meet while the registry is made; there must be one, or its quantities do not mix."""
    from concurrent.futures import ThreadPoolExecutor

    from grader.judging import numbers

    numbers._registry.cache_clear()
    numbers._unit_of.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda n: numbers.unit_of(f"{'u' if n % 2 else 'm'}s"), range(64)))
    assert found == {numbers.unit_of("us"), numbers.unit_of("ms")}
