"""Any report can be written as text and read back unchanged."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from grader.common.result import Evidence, ExerciseReport, Report, Result

TEXT = st.text(max_size=30) | st.sampled_from(['\n      "results": []', "\n      ]", '"evidence": [', "\u2028", "}"])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
ANY = st.recursive(
    PLAIN, lambda part: st.lists(part, max_size=3) | st.dictionaries(TEXT, part, max_size=3), max_leaves=6
)
RESULTS = st.builds(
    Result, kind=st.just("check"), name=TEXT, label=TEXT, task=TEXT, status=st.sampled_from(["passed", "failed"]),
    points=st.integers(0, 3), earned=st.floats(0, 3), public=st.booleans(), reason=TEXT, hint=TEXT, misconception=TEXT,
    where=TEXT, expected=ANY, actual=ANY, staff=TEXT, pictures=st.lists(st.dictionaries(TEXT, ANY, max_size=2), max_size=2),
    by_hand=st.none(),
)  # fmt: skip
EVIDENCE = st.builds(
    Evidence, task=TEXT, mesh=st.dictionaries(TEXT, st.integers(), max_size=2), dims=st.just({}), secret=st.booleans(),
    program=TEXT, inputs=TEXT, step=st.none() | st.integers(),
)  # fmt: skip
EXERCISES = st.builds(
    ExerciseReport, exercise=TEXT, module=TEXT, title=TEXT, points=st.integers(0, 3), earned=st.floats(0, 3),
    pending=st.just(0), results=st.lists(RESULTS, max_size=3), notes=st.lists(TEXT, max_size=2), handed_in=st.booleans(),
    evidence=st.lists(EVIDENCE, max_size=2), pseudonym=TEXT, extension=st.booleans(),
    basis=st.dictionaries(TEXT, TEXT, max_size=2), by_hand=st.none(),
)  # fmt: skip
REPORTS = st.builds(
    Report, student=TEXT, course=TEXT, versions=st.dictionaries(TEXT, TEXT, max_size=2), isolation=TEXT, backend=TEXT,
    fingerprint=TEXT, points=st.floats(0, 9), earned=st.floats(0, 9), pending=st.just(0.0),
    exercises=st.lists(EXERCISES, max_size=3), notes=st.lists(TEXT, max_size=2), hand_ins=st.just([]),
)  # fmt: skip


def by_python(report: Report) -> str:
    """Return the report as Python's json module writes it."""
    text = json.dumps(report.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "replace").decode()


def without_numbers(text: str) -> str:
    """Replace each number by 0, because json and pydantic write a number differently: 1e-05 and 0.00001."""
    return re.sub(r"\d[\d.]*(?:[eE][-+]?\d+)?", "0", text)


@given(REPORTS)
def test_a_report_is_written_and_read_back_unchanged(report: Report) -> None:
    text = report.dumps()
    assert without_numbers(text) == without_numbers(by_python(report))
    again = Report.loads(text)
    assert again == Report.model_validate_json(by_python(report))
    assert again.dumps() == text


def with_actual(report: Report, actual: Any) -> Report:
    """Return the report with this value in every result."""
    parts = [
        e.model_copy(update={"results": [r.model_copy(update={"actual": actual}) for r in e.results]})
        for e in report.exercises
    ]
    return report.model_copy(update={"exercises": parts})


@given(REPORTS, st.text(st.characters(codec=None)))
def test_half_a_surrogate_pair_becomes_a_question_mark(report: Report, odd: str) -> None:
    replaced = odd.encode("utf-8", "replace").decode()
    for actual, wanted in (([odd], [replaced]), ({odd: 1}, {replaced: 1})):
        text = with_actual(report, actual).dumps()
        assert text == with_actual(Report.loads(report.dumps()), wanted).dumps()
        assert Report.loads(text).dumps() == text


@pytest.mark.parametrize("number", [0.0, -0.0, 1e-5, 1.5e-7, 5e-324, 1e15, 1e16, 1e22, 1.7976931348623157e308, 10**30])
def test_numbers_keep_their_value_and_their_sign(number: float) -> None:
    result = Result(
        kind="check", name="value", label="", task="", status="passed", points=1, earned=1, public=True, actual=number
    )
    part = ExerciseReport(exercise="c1", module="01", title="C1", points=1, earned=1, pending=0, results=[result])
    report = Report(
        student="ada", course="c", versions={}, isolation="none", backend="cpu", fingerprint="f", points=1, earned=1,
        pending=0, exercises=[part],
    )  # fmt: skip
    text = report.dumps()
    assert repr(json.loads(text)["exercises"][0]["results"][0]["actual"]) == repr(number)
    assert repr(Report.loads(text).exercises[0].results[0].actual) == repr(number)


@given(REPORTS, st.sampled_from([math.nan, math.inf, -math.inf]))
def test_nan_and_infinity_are_written_as_null(report: Report, odd: float) -> None:
    assert with_actual(report, [odd]).dumps() == with_actual(report, [None]).dumps()


@given(REPORTS, st.sampled_from(["points", "earned", "pending"]), st.sampled_from(["NaN", "Infinity", "-Infinity"]))
def test_points_that_are_not_finite_are_refused(report: Report, field: str, odd: str) -> None:
    values = report.model_dump(mode="json") | {field: float(odd)}
    with pytest.raises(ValidationError, match=f"{field}\n.*finite number"):
        Report.loads(json.dumps(values, indent=2))
