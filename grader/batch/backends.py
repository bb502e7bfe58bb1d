"""Interfaces to judge programs on real devices, or with a compiler for absent chips, beside the simulated devices.

The packages in ``wings`` implement both interfaces. Neither interface changes how the grader reads a program's facts.
A compiler's schedule only adds the compiler's layouts and collectives.
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
    """Devices that programs run on in addition to the simulated devices.

    Attributes:
        text: describes the devices, for a report. times: whether to time programs. workers: run the programs.
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
    """A compiler for the chips of one slice. ``on`` is the slice; its text is, for example, "v5e:2x4"."""

    on: Any
    worker: Worker

    @property
    def versions(self) -> dict[str, str]: ...

    def compiled(self, request: Mapping[str, Any], program: bytes, ask: Ask) -> dict[str, Any] | None: ...

    def close(self) -> None: ...


class Beside(NamedTuple):
    """The additional devices, and the compiler, that judge programs beside the simulated devices."""

    devices: Devices | None = None
    compiler: Compiler | None = None


def stuck(found: Sequence[list[list[Sharded]]]) -> str:
    """Return why a program did not finish on the devices; '' if it finished."""
    shards = [array.shards for run in found[0] for array in run][:1]
    return next((s.why for s in shards if isinstance(s, Unseen) and STUCK in s.why), "")


def unseen(seen: Observation, why: str) -> list[list[Sharded]]:
    """Return the simulated devices' results, with the reason ``why`` in place of every value."""
    return [[replace(array, shards=Unseen(why)) for array in run] for run in seen.outputs]
