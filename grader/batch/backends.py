"""Interfaces to real devices, to compilers for chips that this machine lacks, and to other machines that grade.

The packages in ``wings`` (optional parts of the project) implement these interfaces. A compiler returns a program's
schedule (``wire.schedule``). The schedule shows how results are laid out on the chips, and which collectives the
compiler inserted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from grader.common.observation import Observation, Sharded, Unseen
from grader.judging.plan import Ask
from grader.sandbox.worker import Worker
from grader.wire.messages import CallAsk

if TYPE_CHECKING:
    from grader.batch.grade import Grader
    from grader.course.loading import Course

STUCK = "does not finish"


class Devices(Protocol):
    """Devices that programs run on in addition to the simulated devices.

    Attributes:
        text: describes the devices, for a report.
        times: True to measure how long programs run on these devices.
        workers: the processes that run the programs.
    """

    times: bool
    workers: list[Worker]

    @property
    def text(self) -> str: ...

    def outputs(
        self, ask: Ask, request: CallAsk, program: bytes, observation: Observation
    ) -> list[list[list[Sharded]]]:
        """Return a program's results on these devices, in the form of ``Observation.on_devices``."""
        ...

    def seconds(self, ask: Ask, request: CallAsk, program: bytes) -> tuple[float, ...] | str:
        """Return the seconds of one call, one number per round of measurements; or why the program was not timed."""
        ...

    def close(self) -> None: ...


class Compiler(Protocol):
    """A compiler for the chips of one slice. ``str(on)`` is the name of the slice, such as "v5e:2x4"."""

    on: Any
    worker: Worker

    @property
    def versions(self) -> dict[str, str]: ...

    def compiled(self, request: CallAsk, program: bytes, ask: Ask) -> dict[str, Any] | None:
        """Return the compiler's answer as JSON data; None if the compiler does not compile this program."""
        ...

    def close(self) -> None: ...


class Elsewhere(Protocol):
    """Grades submissions on other machines."""

    def refuse(self, jobs: int | None, *, beside: bool) -> None:
        """Raise CourseError if the other machines cannot grade with the user's options.

        Args:
            jobs: the number of submissions to grade at a time, if the user set it.
            beside: True if programs also run on devices that are not simulated.
        """

    def tier_of(self, asked: str) -> str: ...

    def grader(self, course: Course, tier: str, *, remember: bool) -> Grader: ...


class Beside(NamedTuple):
    """Devices and a compiler that the grader uses in addition to the simulated devices."""

    devices: Devices | None = None
    compiler: Compiler | None = None


NOTHING_BESIDE = Beside()


def stuck(found: Sequence[list[list[Sharded]]]) -> str:
    """Return why a program did not finish on the devices; '' if it finished. ``found`` has the program's results."""
    shards = [array.shards for run in found[0] for array in run][:1]
    return next((s.why for s in shards if isinstance(s, Unseen) and STUCK in s.why), "")


def unseen(observation: Observation, why: str) -> list[list[Sharded]]:
    """Return the shapes and layouts of the simulated devices' results, without values.

    Reading a value raises NotHere with the reason ``why``.
    """
    return [[replace(array, shards=Unseen(why)) for array in run] for run in observation.outputs]
