"""Pictures of the learner's program in a failed result: timelines, rooflines, and tables of the data that move."""

from __future__ import annotations

import itertools
import math
from typing import Annotated

from pydantic import BaseModel, Field, model_validator

from grader.clock.timeline import Timeline
from grader.common.drawing import each_drawn
from grader.common.marks import MOST_ENTRIES
from grader.common.pipelines import Pipeline, Work
from grader.common.result import Result
from grader.common.routes import Route
from grader.reports.pictures import Mesh, pictures_of
from grader.reports.roofline import Roofline, roofline_of
from grader.reports.rounds import Rounds, rounds_of, ticks_of


class TimedProgram(BaseModel):
    """A program's timeline. ``sent``: bytes that a device sends during the program, 0 if unknown."""

    timeline: Timeline
    sent: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0


class Travelled(BaseModel):
    """A ring along which permutes send data (see ``Route``), and the mesh."""

    mesh: Mesh
    rounds: Route

    @model_validator(mode="after")
    def _fits(self) -> Travelled:
        devices, held = math.prod(self.mesh.values()), self.rounds.holds
        if len(held) != len(self.rounds.lines) + 1 or any(len(row) != devices for row in held):
            raise ValueError(
                "a ring needs one row before the first round and one row after each, with one entry for each device"
            )
        if not all(source is None or 0 <= source < devices for row in held for source in row):
            raise ValueError("a source of data is a device that the mesh does not have")
        if not set(self.rounds.axes) <= set(self.mesh):
            raise ValueError("the route follows an axis that the mesh does not have")
        return self


class Worked(BaseModel):
    """A pipeline (devices in a line that compute data and pass it on, see ``Pipeline``), and the mesh."""

    mesh: Mesh
    ticks: Pipeline

    @model_validator(mode="after")
    def _fits(self) -> Worked:
        devices, ticks = math.prod(self.mesh.values()), self.ticks.ticks
        if len(ticks) - len(self.ticks.lines) not in (0, 1) or any(len(tick) != devices for tick in ticks):
            raise ValueError("each tick of a pipeline needs a line number and one entry for each device")
        for work in itertools.chain.from_iterable(ticks):
            _check_work(work, len(self.ticks.arguments), devices)
        if not set(self.ticks.axes) <= set(self.mesh):
            raise ValueError("the pipeline runs along an axis that the mesh does not have")
        return self


def _check_work(work: Work, arguments: int, devices: int) -> None:
    if len(work.entries) != arguments or not all(0 <= source < devices for source in work.sources):
        raise ValueError(
            "a device's data must have entries for each argument, and each source device must be on the mesh"
        )
    if not all(0 <= start < stop <= MOST_ENTRIES for spans in work.entries for start, stop in spans or ()):
        raise ValueError("a device's data have entries that are out of range")


def timelines_of(result: Result) -> list[Timeline]:
    return [timed.timeline for timed in pictures_of(TimedProgram, result)]


def step_limit(result: Result, timeline: Timeline) -> float:
    """Return the picoseconds that the failed check allows for the timeline's step; 0 for other checks."""
    found = result.actual == timeline.step / 1e12 and isinstance(result.expected, int | float)
    return result.expected * 1e12 if found else 0


def rooflines_of(result: Result) -> list[Roofline]:
    """Return the roofline model of each program in a failed result. Programs without matmuls are left out."""
    return each_drawn(lambda timed: roofline_of(timed.timeline, timed.sent), pictures_of(TimedProgram, result))


def rings_of(result: Result) -> list[Rounds]:
    """Return the tables of permuted data (see ``rounds``), for each ring and pipeline of a failed result."""
    found = each_drawn(lambda travelled: rounds_of(travelled.rounds, travelled.mesh), pictures_of(Travelled, result))
    return found + each_drawn(lambda worked: ticks_of(worked.ticks, worked.mesh), pictures_of(Worked, result))
