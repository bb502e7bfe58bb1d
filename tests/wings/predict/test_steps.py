"""The file of predicted step times: only lines that the grader can have written are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grader.wings.predict.process import NotMeasured
from grader.wings.predict.steps import KEPT, Step, keep, predictions

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
    (tmp_path / KEPT).write_text(json.dumps(ONE | changed) + "\n")
    with pytest.raises(NotMeasured, match="line 1, was not written by shardlings"):
        predictions(tmp_path)
