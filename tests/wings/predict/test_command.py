"""``predict`` and ``profile``: a measurement needs a prediction. No test depends on this machine's speed."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from grader.batch.explaining import Wanted
from grader.course.config import CourseError
from grader.course.exercises import load_exercise
from grader.reports.explained import Explained
from grader.wings.predict.cases import TimeModel
from grader.wings.predict.command import line_of, predicted_text
from grader.wings.predict.journal import Step, keep
from tests.commands import ROOT, one_line, shardlings

NUMBERS = ("alpha=20us", "beta=3GB/s", "flops=20GFLOP/s")


def test_three_numbers_in_any_order_and_unit() -> None:
    assert line_of(["flops=0.02 TFLOP/s", "alpha = 2e-5 s", "beta=3e9 B/s"]) == TimeModel(2e-5, 3e9, 2e10)


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ("alpha=20us", "beta and flops are missing; write alpha=2us"),
        ("alpha=20us beta=1GB/s", "flops is missing"),
        ("20us", "'20us' is not alpha=, beta= or flops="),
        ("alpha=1us alpha=2us", "alpha appears twice"),
        ("alpha=20", "alpha=20 has no unit; alpha is the time of a hop, such as alpha=3us"),
        ("beta=20us", "beta=20us is a time; beta is the bandwidth of a link"),
        ("alpha=nan", "'nan' cannot be read"),
        ("alpha=us", "cannot be read"),
        ("beta=inf", "cannot be read"),
        ("alpha=-2us", "alpha=-2us: the time of a hop is between"),
        ("flops=0FLOP/s", "the FLOP rate of a device is between"),
        ("beta=1e200GB/s", "the bandwidth of a link is between"),
        ("alpha=2furlong", "unknown unit 'furlong'"),
    ],
)
def test_each_mistake_is_one_line(numbers: str, told: str) -> None:
    with pytest.raises(CourseError) as caught:
        line_of(numbers.split())
    assert told in str(caught.value) and "\n" not in str(caught.value)


def test_profile_runs_nothing_without_a_prediction(tmp_path: Path) -> None:
    assert "has no prediction yet" in one_line(shardlings("profile", "l2", "--work", str(tmp_path)))
    assert "l1 has no programs to predict" in one_line(shardlings("predict", "l1", "--work", str(tmp_path)))
    (tmp_path / "l2_predictions.jsonl").write_text("scribble\n")
    assert "line 1, was not written by shardlings" in one_line(shardlings("profile", "l2", "--work", str(tmp_path)))
    assert "line 1, was not written by shardlings" in one_line(
        shardlings("predict", "l2", *NUMBERS, "--work", str(tmp_path))
    )
    assert [path.name for path in tmp_path.iterdir()] == ["l2_predictions.jsonl"]


@pytest.mark.slow
def test_predict_shows_the_programs_and_keeps_every_prediction(tmp_path: Path) -> None:
    """If the exercise has a folder, ``predict`` writes the file of predictions into this folder."""
    place = tmp_path / "12_predict_profile"
    place.mkdir()
    shown = shardlings("predict", "l2", "--work", str(tmp_path))
    assert shown.returncode == 0 and "def all_gather(a):" in shown.stdout and "On 8 simulated devices" in shown.stdout
    assert "all_reduce   2 MiB  14 hops, 3.67 MB over each link" in shown.stdout
    for numbers in (NUMBERS, ("alpha=1us", *NUMBERS[1:])):
        done = shardlings("predict", "l2", *numbers, "--work", str(tmp_path))
        assert done.returncode == 0 and "for 8 simulated devices" in done.stdout, done.stderr
    assert "the file also has your prediction from" in done.stdout and "after a measurement" not in done.stdout
    lines = (place / "l2_predictions.jsonl").read_text().splitlines()
    assert [json.loads(line)["alpha"] for line in lines] == [pytest.approx(2e-5), pytest.approx(1e-6)]
    trouble = shardlings("predict", "l2", "--work", str(tmp_path), XLA_FLAGS="--no_such_flag")
    assert "the programs could not be run" in one_line(trouble) and "no_such_flag" in trouble.stderr


@pytest.mark.slow
def test_predicted_measured_and_drawn(tmp_path: Path) -> None:
    """``profile`` measures the predicted programs and draws the times. L2's reference functions can read its log."""
    work = ("--work", str(tmp_path))
    assert shardlings("predict", "l2", *NUMBERS, *work).returncode == 0
    (tmp_path / "there").mkdir()
    assert "there already" in one_line(shardlings("profile", "l2", *work, "--trace", str(tmp_path / "there")))
    done = shardlings("profile", "l2", *work, "--trace", str(tmp_path / "traced"), NO_COLOR="1", COLUMNS="40")
    assert done.returncode == 0 and "\x1b" not in done.stdout, done.stderr
    assert "8 simulated devices on" in done.stdout and "not a chip" in done.stdout and "it also compiled" in done.stdout
    assert "all_gather all-gather" in done.stdout and list((tmp_path / "traced").rglob("*.trace.json.gz"))
    root = ElementTree.parse(tmp_path / "l2_profile.svg").getroot()
    assert (root.get("aria-label") or "").count("measured") == 11
    path = ROOT / "solutions/12_predict_profile/l2_predict_profile.py"
    tasks = load_exercise(path, "l2_of_a_log", "12_predict_profile", 0.02).tasks
    found = tasks["durations"].fn(json.loads((tmp_path / "l2_log.json").read_text()))
    assert [size for size, _ in found] == [2**16, 2**19, 2**21, 2**23] and all(len(took) >= 5 for _, took in found)
    _, beta = tasks["fit"].fn(found, devices=8)
    assert beta != 0
    late = shardlings("predict", "l2", *NUMBERS, *work)
    assert "the file says that you measured these programs before this prediction" in late.stdout
    entries = [json.loads(line) for line in (tmp_path / "l2_predictions.jsonl").read_text().splitlines()]
    assert [e["what"] for e in entries] == ["prediction", "measurement", "prediction"]
    assert entries[1]["flags"]["XLA_FLAGS"] and len(entries[1]["rows"]) == 11


@pytest.mark.slow
def test_a_prediction_for_other_devices_does_not_count(tmp_path: Path) -> None:
    work = ("--work", str(tmp_path))
    done = shardlings("predict", "l2", *NUMBERS, *work, XLA_FLAGS="--xla_force_host_platform_device_count=1")
    assert "all_gather" not in done.stdout and "your prediction for 1 simulated device is saved" in done.stdout
    missing = "there is no prediction of these programs on 8 simulated devices; first run: shardlings predict l2"
    assert missing in one_line(shardlings("profile", "l2", *work))


def test_a_predicted_step_is_shown_beside_the_timeline(tmp_path: Path) -> None:
    """The file keeps both predictions. ``predict`` reports a line of the file that shardlings did not write."""
    f1 = ("ag_matmul", "--on", "v5e:2x4", "--work", str(tmp_path))
    done = shardlings("predict", *f1, "step=18us")
    assert done.returncode == 0 and "next, run shardlings explain ag_matmul --on v5e:2x4" in done.stdout
    shardlings("predict", *f1, "step=9us")
    kept = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text().splitlines()]
    assert [(one["task"], one["on"], one["seconds"]) for one in kept] == [
        ("ag_matmul", "v5e:2x4", 18e-6),
        ("ag_matmul", "v5e:2x4", 9e-6),
    ]
    (tmp_path / "predictions.jsonl").write_text(json.dumps(kept[0] | {"seconds": "soon"}) + "\n")
    assert "predictions.jsonl, line 1, was not written by shardlings" in one_line(
        shardlings("predict", *f1, "step=1us")
    )


def test_predictions_are_shown_with_the_clocks_time(tmp_path: Path) -> None:
    wanted = Wanted(on="v5e:2x4")
    for seconds in (18e-6, 2e-6, 9e-6):
        keep(tmp_path, Step("ag_matmul", "v5e:2x4", seconds))
    keep(tmp_path, Step("ag_matmul", "v5e:2x4", 1.0, mesh={"x": 1, "y": 8}))
    program = Explained("f1", "ag_matmul", {"x": 2, "y": 4}, {})
    first, newest = predicted_text(tmp_path, program, wanted).split("; then ")
    assert first.startswith("18 us (") and newest.startswith("9 us (")
    assert predicted_text(tmp_path, replace(program, task="other"), wanted) == ""
