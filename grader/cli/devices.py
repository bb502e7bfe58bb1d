"""``--backend`` and ``--processes``: the devices that programs run on beside the simulated ones."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from grader.batch.devices import Devices
from grader.cli.console import tell
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.wire.backends import CPU, UnknownBackend, backend_of

BackendOption = Annotated[
    str, typer.Option("--backend", help="cpu, or the values on what is here as well: gpu or tpu (docs/devices.md)")
]
Processes = Annotated[
    int, typer.Option("--processes", min=1, max=64, help="share the devices among so many processes, one mesh of all")
]


def devices_at(name: str, processes: int, course: Course, tier: str) -> Devices | None:
    """What was asked for; None where simulated devices in one process are all. Raises CourseError."""
    try:
        backend = backend_of(name)
    except UnknownBackend as error:
        raise CourseError(str(error)) from None
    if backend is CPU and processes == 1:
        return None
    if backend is not CPU and processes > 1:
        raise CourseError(f"--processes shares simulated devices, so it goes with --backend cpu, not {name}")
    if not hasattr(os, "fork"):
        raise CourseError(
            "other devices than simulated ones need processes of their own, which this system does not fork"
        )
    devices = Devices(
        backend, tier, course.config.limits, course.config.devices, processes, lambda text: tell("note", text)
    )
    tell("note", f"values are those of {devices.text}, all else is read as ever")
    return devices
