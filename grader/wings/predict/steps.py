"""The file of a learner's predicted step times on slices: JSON lines in chronological order.

Lines in the file never change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from grader.common.files import write_atomic
from grader.wings.predict.process import NotMeasured

KEPT = "predictions.jsonl"
LIMITS = (1e-12, 1e6)
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
    path = folder / KEPT
    if not path.is_file():
        return []
    return [_step(path, i, line) for i, line in enumerate(path.read_bytes().splitlines(), 1) if line.strip()]


def _step(path: Path, number: int, line: bytes) -> Step:
    try:
        one = Step(**json.loads(line))
        sizes = [*dict(one.mesh).items(), *dict(one.dims).items()]
        if (
            LIMITS[0] <= one.seconds <= LIMITS[1]
            and all(isinstance(text, str) for text in (one.task, one.on, one.at))
            and all(name.isidentifier() and isinstance(size, int) for name, size in sizes)
        ):
            return Step(one.task, one.on, float(one.seconds), dict(one.mesh), dict(one.dims), one.at)
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass
    raise NotMeasured(f"{path}, line {number}, was not written by shardlings; mend that line, or move the file away")


def keep(folder: Path, one: Step) -> Path:
    """Append a prediction to the folder's file KEPT; return the path. Raises NotMeasured if a line is invalid."""
    predictions(folder)
    path = folder / KEPT
    before = path.read_text(encoding="utf-8") if path.is_file() else ""
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    write_atomic(path, f"{before}{json.dumps(asdict(one) | {'at': now})}\n")
    return path
