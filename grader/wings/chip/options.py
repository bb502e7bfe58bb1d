"""The option ``--backend tpu:SLICE``, and the compiler's line in ``doctor``."""

from __future__ import annotations

import math

from grader.cli.machine import MachineCheck
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.hardware import CHIPS, SMALL_SLICES, largest_slice, slices
from grader.hardware.cores import CORES
from grader.wings.chip.compiling import NoCompiler, TpuCompiler, compiler_problem, compiler_version, slice_of


def compiler_at(name: str, processes: int, course: Course, tier: str, remember: bool) -> TpuCompiler:
    """Return the compiler for the backend ``tpu:SLICE``.

    Raises CourseError if there is no such slice, if this machine has no TPU compiler, or if ``processes`` is above 1.

    Args:
        name: the backend's name, such as ``tpu:v5e:2x4``.
        processes: the number of processes from ``--processes``, which must be 1.
        tier: the kind of sandbox in which the compiler runs.
        remember: whether to cache compiled programs.
    """
    place = slice_of(name.partition(":")[2])
    if processes > 1:
        raise CourseError(f"--processes splits simulated devices: use it with --backend cpu, not {name}")
    if problem := compiler_problem():
        raise NoCompiler(f"--backend {name}: {problem}")
    return TpuCompiler(course, tier, place, remember=remember)


def doctor() -> list[MachineCheck]:
    return [compiler_line()]


def compiler_line(version: str | None = None) -> MachineCheck:
    version = compiler_version() if version is None else version
    if problem := compiler_problem(version):
        return MachineCheck("TPU compiler", False, f"{problem} (needed by shardlings chip and --backend tpu:SLICE)")
    return MachineCheck(
        "TPU compiler", True, f"libtpu {version} needs no TPU and compiles for {'; '.join(map(shown_slices, CORES))}"
    )


def shown_slices(chip: str) -> str:
    """Return a chip's slices as text, such as ``v5e:1x1 2x2 2x4``.

    Of the slices that are made of full cubes of chips, the text names only the largest.
    """
    row = CHIPS[chip]
    small = [s for s in slices(chip) if row.wrap_cube is None or s in SMALL_SLICES]
    listed = " ".join("x".join(map(str, s)) for s in sorted(small, key=lambda s: (math.prod(s), s)))
    largest = "x".join(map(str, largest_slice(row)))
    return f"{chip}:{listed}" + (
        f" and slices of full {row.wrap_cube}x{row.wrap_cube}x{row.wrap_cube} cubes up to {largest}"
        if row.wrap_cube
        else ""
    )
