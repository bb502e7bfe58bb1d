"""Pictures of the learner's program with a failed result: its timeline, its rooflines, its routes."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field, model_validator

from grader.clock.timeline import Timeline
from grader.common.result import Result
from grader.common.routes import Route
from grader.reports.pictures import Mesh
from grader.reports.roofline import Roofline, roofline_of
from grader.reports.rounds import Rounds, rounds_of

Drawn = TypeVar("Drawn", bound=BaseModel)


class TimedProgram(BaseModel):
    """A program in time; ``sent``: bytes that a device sends in it, 0 where nobody can say."""

    timeline: Timeline
    sent: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0


class Travelled(BaseModel):
    """What goes round on this mesh, see ``Route``."""

    mesh: Mesh
    rounds: Route

    @model_validator(mode="after")
    def _fits(self) -> Travelled:
        devices, held = math.prod(self.mesh.values()), self.rounds.holds
        if len(held) != len(self.rounds.lines) + 1 or any(len(row) != devices for row in held):
            raise ValueError("a row before the first round and one after each, of one entry per device")
        if not all(source is None or 0 <= source < devices for row in held for source in row):
            raise ValueError("a part set out from a device that is not there")
        if not set(self.rounds.axes) <= set(self.mesh):
            raise ValueError("it goes along an axis that is not there")
        return self


def timelines_of(result: Result) -> list[Timeline]:
    """The program in time, where that is what the result is about; what cannot be drawn is left out, here and below."""
    return [timed.timeline for timed in _read(TimedProgram, result)]


def rooflines_of(result: Result) -> list[Roofline]:
    """The same on the rooflines of its chip, where it computes anything."""
    found = [roofline_of(timed.timeline, timed.sent) for timed in _read(TimedProgram, result)]
    return [roofline for roofline in found if roofline is not None]


def rings_of(result: Result) -> list[Rounds]:
    """What goes round in it, round by round."""
    found = [rounds_of(travelled.rounds, travelled.mesh) for travelled in _read(Travelled, result)]
    return [rounds for rounds in found if rounds is not None]


def _read(kind: type[Drawn], result: Result) -> list[Drawn]:
    """The pictures of this kind of a failed result."""
    found = []
    for raw in result.pictures[:8] if result.status == "failed" else []:
        with suppress(TypeError, ValueError):  # pydantic's error is a ValueError
            found.append(kind.model_validate(raw))
    return found
