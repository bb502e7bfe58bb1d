"""The file of a learner's predictions and measurements: JSON lines in chronological order.

Lines in the file never change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
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
    raise NotMeasured(f"{path}, line {number}, was not written by shardlings; mend that line, or move the file away")
