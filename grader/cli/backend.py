"""``--backend`` and ``--processes``: what judges programs beside the simulated devices."""

from __future__ import annotations

import os
from typing import NamedTuple

from grader.batch.compiling import Compiler, NoCompiler, compiler_problem, slice_of
from grader.batch.devices import Devices
from grader.cli.console import tell
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.wire.backends import CPU, UnknownBackend, backend_of


class Beside(NamedTuple):
    """Devices on which values are judged as well; a compiler, from which all is judged that needs no execution."""

    devices: Devices | None = None
    compiler: Compiler | None = None


def beside_at(
    name: str, processes: int, course: Course, tier: str, *, quiet: bool = False, remember: bool = True
) -> Beside:
    """What was asked for: nothing where simulated devices in one process are all. Raises CourseError.

    Args:
        quiet: nothing is told but errors. remember: what was compiled before is not compiled again.
    """
    if name.startswith("tpu:"):
        return Beside(compiler=_compiler_at(name, processes, course, tier, remember))
    return Beside(devices=devices_at(name, processes, course, tier, quiet=quiet))


def devices_at(name: str, processes: int, course: Course, tier: str, *, quiet: bool = False) -> Devices | None:
    """The devices that were asked for; None where simulated ones in one process are all. Raises CourseError."""
    if name.startswith("tpu:"):
        slice_of(on := name.partition(":")[2])
        raise CourseError(f"for what the compiler of {on} makes of a function: shardlings chip NAME --on {on}")
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
    note = (lambda text: None) if quiet else (lambda text: tell("note", text))
    devices = Devices(backend, tier, course.config.limits, course.config.devices, processes, note)
    note(f"values are those of {devices.text}, all else is read as ever")
    return devices


def _compiler_at(name: str, processes: int, course: Course, tier: str, remember: bool) -> Compiler:
    """The compiler of the slice that a backend names. Raises CourseError: none such, or nothing can be compiled for it here."""
    place = slice_of(name.partition(":")[2])
    if processes > 1:
        raise CourseError(f"--processes shares simulated devices, so it goes with --backend cpu, not {name}")
    if problem := compiler_problem():
        raise NoCompiler(f"--backend {name}: {problem}")
    return Compiler(course, tier, place, remember=remember)
