"""The journal, the fit and the trace of ``profile``, with invented times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grader.wings.predict import cases
from grader.wings.predict.cases import Fit, SizedProgram, TimeModel, cases_on, fit, learners_log, timed
from grader.wings.predict.journal import STEPS, Journal, Step, keep, predictions
from grader.wings.predict.measure import CALLS, by_opcode, opcodes_of
from grader.wings.predict.process import NotMeasured

LINE = TimeModel(3e-6, 2e9, 5e10)
KEPT = {"alpha": 3e-6, "beta": 2e9, "flops": 5e10}


def calls_of(devices: int, line: TimeModel = LINE) -> list[dict]:
    """Return invented calls: for each program, one slow call that compiles and five calls of the predicted time."""
    found, now = [], 10.0
    for case in cases_on(devices):
        for took in (0.5, *[case.seconds(line, devices)] * 5):
            one = {"program": case.program, "size": case.size, "cut": True, "called": now, "returned": now + 1e-6}
            found.append(one | {"ready": now + took})
            now += took + 1
    return found


def test_fit_recovers_the_model_and_excludes_first_calls() -> None:
    measured = timed(calls_of(8))
    assert [one.case for one in measured] == cases_on(8) and all(one.first == 0.5 for one in measured)
    found = fit(measured, 8)
    assert (found.alpha, found.beta, found.flops) == pytest.approx((3e-6, 2e9, 5e10), rel=1e-4)
    for one in measured:
        assert found.seconds(one.case, 8) == pytest.approx(one.typical, rel=1e-4)


def test_on_one_device_only_matmuls_run() -> None:
    measured = timed(calls_of(1))
    assert {one.case.program for one in measured} == {"matmul"}
    assert fit(measured, 1) == Fit(None, None, pytest.approx(5e10))  # pyright: ignore[reportArgumentType]


def test_a_negative_latency_is_reported_as_none() -> None:
    found = fit(timed(calls_of(8, TimeModel(-1e-7, 2e9, 5e10))), 8)
    assert found.alpha is None and found.beta == pytest.approx(2e9, rel=1e-4)
    assert (found.seconds(SizedProgram("all_reduce", 2**20), 8) or 0) > 0


def test_the_learners_log_has_the_gathers_as_l2_reads_them() -> None:
    log = learners_log(calls_of(8))
    assert len(log) == 4 * 6 and set(log[0]) == {"bytes", "cut", "called", "returned", "ready"}


def test_predictions_after_a_measurement_are_late_and_nothing_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text("\n")
    Journal.read(path).append("prediction", "8 chips", KEPT)
    Journal.read(path).append("measurement", "8 chips", {})
    first = path.read_text()
    journal = Journal.read(path).append("prediction", "8 chips", KEPT | {"alpha": 1e-6, "after_measuring": True})
    assert path.read_text().startswith(first)
    assert [p.after_measuring for p in journal.about("prediction", "8 chips")] == [False, True]
    assert journal.about("measurement", "8 chips") and not journal.about("measurement", "4 chips")
    assert journal.about("prediction", "8 chips")[-1].line == TimeModel(1e-6, 2e9, 5e10)
    assert Journal.read(path) == journal and journal.about("prediction", "4 chips") == []


def test_predictions_about_other_programs_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal.read(tmp_path / "kept.jsonl").append("prediction", "8 chips", KEPT)
    monkeypatch.setattr(cases, "CASES", cases.CASES[1:])
    assert journal.about("prediction", "8 chips") == []


ENTRY = {"what": "prediction", "at": "now", "programs": "p", "devices": "d"} | KEPT


@pytest.mark.parametrize(
    "line",
    [
        b"x",
        b"[1]",
        b"\xff",
        b'"\xc3"',
        b"[" * 100_000,
        *(
            json.dumps(ENTRY | wrong).encode()
            for wrong in (
                {"alpha": "1"},
                {"beta": 0},
                {"flops": float("nan")},
                {"alpha": 1e300},
                {"at": 3},
                {"what": "x"},
            )
        ),
    ],
)
def test_an_invalid_line_of_the_journal_is_reported(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_bytes(json.dumps(ENTRY).encode() + b"\n" + line)
    with pytest.raises(NotMeasured, match=r"kept\.jsonl, line 2, was not written by shardlings"):
        Journal.read(path)
    assert path.read_bytes().endswith(line)


HLO = """HloModule jit_f, is_scheduled=true

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %any.3 = f32[8]{0} all-reduce(%p), channel_id=1
  ROOT %x = (f32[8]{0}, f32[]) fusion(%any.3), kind=kLoop
}
"""


def test_a_trace_is_added_up_by_opcode() -> None:
    module, names = opcodes_of(HLO)
    assert (module, names) == ("jit_f", {"p": "parameter", "any.3": "all-reduce", "x": "fusion"})
    opcodes = {(module, name): ("f", opcode) for name, opcode in names.items()}

    def event(name: str, dur: float, **more: str) -> dict:
        return {"ph": "X", "dur": dur, "args": {"hlo_module": "jit_f", "hlo_op": name}} | more

    events = [event("any.3", 6.0 * CALLS), event("any.3", 2.0 * CALLS), event("x", 4.0), event("other", 9.0),
              event("x", 9.0, ph="B"), {"ph": "X", "dur": 3.0, "name": "python"}, {"ph": "M"}]  # fmt: skip
    assert by_opcode(events, opcodes, 2) == [
        {"program": "f", "opcode": "all-reduce", "seconds": pytest.approx(4e-6)},
        {"program": "f", "opcode": "fusion", "seconds": pytest.approx(4e-6 / 2 / CALLS)},
    ]


ONE = {"task": "f", "on": "v5e:2x4", "seconds": 9e-6, "mesh": {"x": 4}, "dims": {"I": 64}, "at": "now"}


def test_a_kept_prediction_is_read_again(tmp_path: Path) -> None:
    keep(tmp_path, Step("f", "v5e:2x4", 9e-6, {"x": 4}, {"I": 64}))
    assert [(one.seconds, one.mesh, one.dims) for one in predictions(tmp_path)] == [(9e-6, {"x": 4}, {"I": 64})]


@pytest.mark.parametrize(
    "changed",
    [
        {"mesh": {"x": "\x1b]0;title\x07"}},
        {"mesh": {"\x1b[2J": 4}},
        {"dims": {"I": 1.5}},
        {"dims": [["I", 1], [2, 3]]},
        {"seconds": 10**400},
        {"seconds": float("inf")},
        {"seconds": float("nan")},
    ],
)
def test_lines_that_predict_cannot_have_written_are_refused(tmp_path: Path, changed: dict[str, Any]) -> None:
    (tmp_path / STEPS).write_text(json.dumps(ONE | changed) + "\n")
    with pytest.raises(NotMeasured, match="line 1, was not written by shardlings"):
        predictions(tmp_path)
