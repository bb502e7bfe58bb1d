"""Reports as text: canonical, and the same model again, whatever stands in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from grader.common.result import ByHand, Evidence, ExerciseReport, Report, Result

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
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
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


@given(REPORTS)
def test_a_report_is_the_same_text_and_the_same_report(report: Report) -> None:
    text = report.dumps()
    assert text.endswith("}\n") and json.loads(text) == json.loads(json.dumps(report.model_dump(mode="json")))
    again = Report.loads(text)
    assert again == Report.model_validate_json(json.dumps(report.model_dump(mode="json")))
    assert again.dumps() == text


@given(REPORTS, NUMBERS | st.integers(), ANY | st.floats() | st.text(st.characters(codec=None)))
def test_numbers_and_texts_that_json_has_no_word_for_are_written_as_text_that_reads_back(
    report: Report, points: float, actual: Any
) -> None:
    by_hand = ByHand(by="Bo", reason="kind", graded=points, was=1e-5)
    parts = [
        e.model_copy(
            update={
                "earned": points,
                "by_hand": by_hand,
                "results": [r.model_copy(update={"actual": [actual]}) for r in e.results],
            }
        )
        for e in report.exercises
    ]
    odd = report.model_copy(update={"points": points, "exercises": parts})
    text = odd.dumps()
    assert Report.loads(text).dumps() == text
    plain = json.dumps(odd.model_dump(mode="json"), ensure_ascii=False).encode("utf-8", "replace")
    assert str(json.loads(text)) == str(json.loads(plain))  # as text: NaN is not equal to itself


@given(REPORTS, st.data())
def test_text_that_is_not_canonical_is_read_or_refused_as_pydantic_does(report: Report, data: Any) -> None:
    text = report.dumps()
    lines = text.split("\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    other = data.draw(
        st.sampled_from(["", *lines[:40], '      "results": [],', "      ]", '      "evidence": []', " " + lines[at]])
    )
    changed = "\n".join([*lines[:at], other, *lines[at + 1 :]])
    for one in (changed, json.dumps(json.loads(text)), json.dumps(json.loads(text), indent=1)):
        try:
            wanted = Report.model_validate_json(one)
        except ValidationError:
            with pytest.raises(ValidationError):
                Report.loads(one)
        else:
            assert Report.loads(one) == wanted


@given(REPORTS, st.sampled_from(["points", "earned", "pending"]), st.sampled_from(["NaN", "Infinity", "-Infinity"]))
def test_sums_of_points_that_are_no_numbers_are_refused(report: Report, field: str, odd: str) -> None:
    values = report.model_dump(mode="json") | {field: float(odd)}
    with pytest.raises(ValidationError, match=f"{field}\n.*finite number"):
        Report.loads(json.dumps(values, indent=2))
