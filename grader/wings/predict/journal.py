"""The files of a learner's predictions and measurements: JSON lines in chronological order, which never change.

``Journal`` is the file about the programs that ``profile`` times. ``Step`` is a line of the file about tasks' steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.common.files import write_atomic
from grader.wings.predict.cases import LIMITS, TimeModel, digest
from grader.wings.predict.process import NotMeasured


@dataclass(frozen=True)
class Prediction:
    """A prediction. ``late``: whether the learner had already measured the programs on these devices."""

    at: str
    line: TimeModel
    late: bool


@dataclass(frozen=True)
class Journal:
    """The file of predictions and measurements. ``text``: its content. ``entries``: the parsed lines."""

    path: Path
    text: str
    entries: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Read the file. Raises NotMeasured if a line is invalid."""
        lines = path.read_bytes().splitlines() if path.exists() else []
        entries = tuple(_entry(path, i, line) for i, line in enumerate(lines, 1) if line.strip())
        return cls(path, "".join(line.decode() + "\n" for line in lines), entries)

    def predictions(self, devices: str) -> list[Prediction]:
        """Return the predictions for the current versions of the programs on these devices, the newest last."""
        found, late = [], False
        for entry in self._about(devices):
            if entry["what"] == "measurement":
                late = True
            else:
                found.append(Prediction(entry["at"], TimeModel(*(entry[name] for name in LIMITS)), late))
        return found

    def measured(self, devices: str) -> bool:
        """Return whether the current versions of the programs were measured on these devices."""
        return any(entry["what"] == "measurement" for entry in self._about(devices))

    def _about(self, devices: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if (entry["programs"], entry["devices"]) == (digest(), devices)]

    def append(self, what: str, devices: str, more: Mapping[str, Any]) -> Journal:
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        entry = {"what": what, "at": now, "programs": digest(), "devices": devices, **more}
        made = Journal(self.path, f"{self.text}{json.dumps(entry)}\n", (*self.entries, entry))
        write_atomic(self.path, made.text)
        return made


def _entry(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
        if all(isinstance(entry[key], str) for key in ("at", "programs", "devices")) and (
            entry["what"] == "measurement"
            or (
                entry["what"] == "prediction"
                and all(low <= entry[name] <= high for name, (low, high) in LIMITS.items())
            )
        ):
            line.decode()
            return entry
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise _not_ours(path, number)


def _not_ours(path: Path, number: int) -> NotMeasured:
    return NotMeasured(f"{path}, line {number}, was not written by shardlings; mend that line, or move the file away")


# -- steps of tasks on slices ------------------------------------------------------------------

STEPS = "predictions.jsonl"
STEP_LIMITS = (1e-12, 1e6)
"""The plausible range of a step's time, in seconds."""


@dataclass(frozen=True)
class Step:
    """The predicted time of one step of a task on a slice, and the time of the prediction (``at``).

    If ``mesh`` or ``dims`` is empty, the prediction is for the mesh or the sizes that the exercise declares.
    """

    task: str
    on: str
    seconds: float
    mesh: Mapping[str, int] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    at: str = ""

    def is_about(self, task: str, on: str, mesh: Mapping[str, int], dims: Mapping[str, int]) -> bool:
        """Return whether the prediction is for this program. ``dims``: sizes that replace the declared sizes."""
        return (self.task, self.on, dict(self.dims)) == (task, on, dict(dims)) and self.mesh in ({}, dict(mesh))


def predictions(folder: Path) -> list[Step]:
    """Return all predictions in a folder, the oldest first. Raises NotMeasured if a line is invalid."""
    path = folder / STEPS
    if not path.is_file():
        return []
    return [_step(path, i, line) for i, line in enumerate(path.read_bytes().splitlines(), 1) if line.strip()]


def _step(path: Path, number: int, line: bytes) -> Step:
    try:
        one = Step(**json.loads(line))
        sizes = [*dict(one.mesh).items(), *dict(one.dims).items()]
        if (
            STEP_LIMITS[0] <= one.seconds <= STEP_LIMITS[1]
            and all(isinstance(text, str) for text in (one.task, one.on, one.at))
            and all(name.isidentifier() and isinstance(size, int) for name, size in sizes)
        ):
            return Step(one.task, one.on, float(one.seconds), dict(one.mesh), dict(one.dims), one.at)
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise _not_ours(path, number)


def keep(folder: Path, one: Step) -> Path:
    """Append a prediction to the folder's file STEPS; return the path. Raises NotMeasured if a line is invalid."""
    predictions(folder)
    path = folder / STEPS
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    write_atomic(path, f"{before}{json.dumps(asdict(one) | {'at': now})}\n")
    return path
