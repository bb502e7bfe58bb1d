"""Read answers as people write them, and refuse all other texts with a message of one line."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grader.judging.units import BadAnswer, parse, unit_of


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
def test_numbers_with_units_are_read(raw, unit, value, dimension):
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
        ("7" * 101, "an answer has at most 100 characters, but this answer has 101"),
        (True, "an answer is a number or a text with a unit, not True or False"),
        ([1], "an answer is a number or a text with a unit, not a list"),
        (None, "an answer is a number or a text with a unit, not nothing"),
        ({"magnitude": 1}, "an answer is a number, a text like '28 KiB' or a quantity with a magnitude and units"),
        ({"magnitude": "1", "units": "s"}, "an answer is a number or a text with a unit, not a value of type str"),
        (
            {"magnitude": 1, "units": "s**9"},
            "the unit 's**9' cannot be read; write, for example, ms, KiB, GB/s or TFLOP/s",
        ),
        ({"magnitude": 1, "units": "s" * 1000}, "the unit 'sssss"),
    ],
)
def test_unreadable_answers_are_refused_in_one_line(raw, text):
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
    """Assert that the grader reads equal quantities from texts in two units."""
    first = parse(f"{number!r} {a}", "GB/s")
    other = first.value / unit_of(b)[0]
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
