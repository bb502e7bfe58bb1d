"""The files of a learner's predictions and measurements: JSON lines in chronological order, which never change.

``Journal`` is the file about the programs that ``profile`` times. ``Step`` is a line of the file about tasks' steps.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from grader.common.files import write_atomic
from grader.wings.predict.cases import LIMITS, TimeModel, digest
from grader.wings.predict.process import NotMeasured

Line = TypeVar("Line")


def _lines(path: Path, kind: type[Line]) -> list[Line]:
    """Return the parsed lines of a file, [] without a file. Raises NotMeasured if a line is invalid."""
    found = []
    for number, line in enumerate(path.read_bytes().splitlines() if path.is_file() else [], 1):
        try:
            found += [TypeAdapter(kind).validate_json(line)] if line.strip() else []
        except ValidationError:
            raise NotMeasured(
                f"{path}, line {number}, was not written by shardlings; mend that line, or move the file away"
            ) from None
    return found


def _append(path: Path, line: Mapping[str, Any]) -> None:
    before = path.read_bytes().splitlines() if path.is_file() else []
    write_atomic(path, b"".join(one + b"\n" for one in (*before, json.dumps(line).encode())))


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


class Entry(BaseModel, frozen=True, strict=True, extra="allow"):
    """A line of a journal: a prediction with the parameters of a ``TimeModel``, or a measurement.

    Attributes:
        programs: the ``digest`` of the programs.
        devices: the devices in words.
        after_measuring: whether the learner had already measured the programs on these devices.
    """

    what: Literal["prediction", "measurement"]
    at: str
    programs: str
    devices: str
    alpha: float = 0.0
    beta: float = 0.0
    flops: float = 0.0
    after_measuring: bool = False

    @model_validator(mode="after")
    def _plausible(self) -> Entry:
        if self.what == "prediction" and not all(
            low <= vars(self)[name] <= high for name, (low, high) in LIMITS.items()
        ):
            raise ValueError("a parameter is missing or out of range")
        return self

    @property
    def line(self) -> TimeModel:
        return TimeModel(self.alpha, self.beta, self.flops)


@dataclasses.dataclass(frozen=True)
class Journal:
    """The file of predictions and measurements. ``entries``: its lines."""

    path: Path
    entries: list[Entry]

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Read the file. Raises NotMeasured if a line is invalid."""
        return cls(path, _lines(path, Entry))

    def about(self, what: str, devices: str) -> list[Entry]:
        """Return the predictions or measurements of the programs' current versions on these devices, newest last."""
        wanted = (what, digest(), devices)
        return [entry for entry in self.entries if (entry.what, entry.programs, entry.devices) == wanted]

    def append(self, what: str, devices: str, more: Mapping[str, Any]) -> Journal:
        _append(self.path, {"what": what, "at": _now(), "programs": digest(), "devices": devices, **more})
        return Journal.read(self.path)


# -- steps of tasks on slices ------------------------------------------------------------------

STEPS = "predictions.jsonl"
STEP_LIMITS = (1e-12, 1e6)
"""The plausible range of a step's time, in seconds."""
Sizes = dict[Annotated[str, StringConstraints(pattern=r"^[^\W\d]\w*$")], int]


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Step:
    """The predicted time of one step of a task on a slice, and the time of the prediction (``at``).

    If ``mesh`` or ``dims`` is empty, the prediction is for the mesh or the sizes that the exercise declares.
    """

    task: str
    on: str
    seconds: Annotated[float, Field(ge=STEP_LIMITS[0], le=STEP_LIMITS[1])]
    mesh: Sizes = dataclasses.field(default_factory=dict)
    dims: Sizes = dataclasses.field(default_factory=dict)
    at: str = ""

    def is_about(self, task: str, on: str, mesh: Mapping[str, int], dims: Mapping[str, int]) -> bool:
        """Return whether the prediction is for this program. ``dims``: sizes that replace the declared sizes."""
        return (self.task, self.on, self.dims) == (task, on, dict(dims)) and self.mesh in ({}, dict(mesh))


def predictions(folder: Path) -> list[Step]:
    """Return all predictions in a folder, the oldest first. Raises NotMeasured if a line is invalid."""
    return _lines(folder / STEPS, Step)


def keep(folder: Path, one: Step) -> Path:
    """Append a prediction to the folder's file STEPS; return the path. Raises NotMeasured if a line is invalid."""
    predictions(folder)
    _append(folder / STEPS, dataclasses.asdict(one) | {"at": _now()})
    return folder / STEPS
