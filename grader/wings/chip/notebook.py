"""The function ``chip`` for notebooks, which compiles functions that the notebook's cells define."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from grader.batch import explaining
from grader.batch.grade import Grader
from grader.batch.in_process import InProcess
from grader.course.finding import course_around
from grader.intake.submission import Source
from grader.notebook import in_notebook, show_html
from grader.reports.pages import render_timelines
from grader.wings.chip import chips
from grader.wings.chip.compiling import NoCompiler, TpuCompiler, compiler_problem, slice_of
from grader.wings.chip.on_chip import OnChip, print_on_chip


def chip(
    name: str,
    on: str,
    namespace: dict[str, Any] | None = None,
    *,
    mesh: Mapping[str, int] | None = None,
    dims: Mapping[str, int] | None = None,
) -> None:
    """Compile an exercise's functions for a TPU slice, without a TPU. Show two timelines of each function.

    One timeline is the TPU compiler's schedule. The other is by ``grader.clock``, the course's own model of time.

    Args:
        name: the exercise, or one of its tasks.
        on: the slice, such as "v5e:2x4".
        namespace: the namespace that defines the exercise's tasks; by default the caller's globals.
        mesh, dims: a mesh and sizes that replace the exercise's mesh and sizes. The program does not run, so sizes can
            be large.
    """
    from rich.console import Console

    space = sys._getframe(1).f_globals if namespace is None else namespace
    drawn = in_notebook()
    for one in compiled(name, space, on, mesh, dims or {}):
        print_on_chip(one, Console(emoji=False), drawn=not drawn)
        if drawn and one.lines:
            show_html(render_timelines(one.lines))


def compiled(
    name: str, namespace: dict[str, Any], on: str, mesh: Mapping[str, int] | None, dims: Mapping[str, int]
) -> list[OnChip]:
    """Return the notebook's own functions, compiled for a slice. Raises CourseError with one line of text."""
    course, place = course_around(), slice_of(on)
    if problem := compiler_problem():
        raise NoCompiler(problem)
    exercise, task = explaining.chosen(course, name)
    asks, _ = chips.asked(course, exercise, task, place, mesh, dims)
    compiler = TpuCompiler(course, "none", place)
    with Grader(course, "none", here=InProcess(namespace, compiler), compiler=compiler) as grader:
        return chips.on_chips(grader, Source("this notebook", ()), asks, place)[0]
