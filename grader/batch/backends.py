"""What may judge programs beside the simulated devices: real devices, for values, and a compiler for chips that are not here.

Wings implement both. What a program is (collectives, bytes, FLOPs, memory, layout) is read where it always is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from grader.common.observation import Observation, Sharded, Unseen
from grader.judging.plan import Ask
from grader.sandbox.worker import Worker

STUCK = "does not finish"


class Devices(Protocol):
    """Devices on which programs are run as well.

    Attributes:
        text: what they are, for a report. times: whether programs are timed on them. workers: the processes that run programs.
    """

    times: bool
    workers: list[Worker]

    @property
    def text(self) -> str: ...

    def outputs(
        self, ask: Ask, request: dict[str, Any], program: bytes, seen: Observation
    ) -> list[list[list[Sharded]]]: ...

    def seconds(self, ask: Ask, request: dict[str, Any], program: bytes) -> tuple[float, ...] | str: ...

    def close(self) -> None: ...


class Compiler(Protocol):
    """A compiler for the chips of one slice. ``on``: the slice, as text "v5e:2x4"."""

    on: Any
    worker: Worker

    @property
    def versions(self) -> dict[str, str]: ...

    def compiled(self, request: Mapping[str, Any], program: bytes, ask: Ask) -> dict[str, Any] | None: ...

    def close(self) -> None: ...


class Beside(NamedTuple):
    """What judges beside the simulated devices."""

    devices: Devices | None = None
    compiler: Compiler | None = None


def stuck(found: Sequence[list[list[Sharded]]]) -> str:
    """Why nobody knows what came of a program, where it did not finish; '' elsewhere."""
    shards = [array.shards for run in found[0] for array in run][:1]
    return next((s.why for s in shards if isinstance(s, Unseen) and STUCK in s.why), "")


def unseen(seen: Observation, why: str) -> list[list[Sharded]]:
    """The results as simulated devices hold them, without what is in them."""
    return [[replace(array, shards=Unseen(why)) for array in run] for run in seen.outputs]
