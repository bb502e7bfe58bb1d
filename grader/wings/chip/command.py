"""The command ``chip``: show the TPU compiler's schedule of a function, without a TPU."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from grader.batch import explaining
from grader.batch.grade import Grader
from grader.cli.completion import exercises
from grader.cli.console import busy, out, print_json, tell
from grader.cli.explain import code_of, expect_new, explains_solution, own_source, tell_all, whose
from grader.cli.options import AsJson, CourseOption, Isolation, Student, Work, course_at, sizes_of
from grader.clock import Slice
from grader.common.files import write_atomic
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.judging.plan import Ask
from grader.reports.pages import inline, render_template
from grader.reports.points import counted
from grader.reports.timeline_svg import draw_chart
from grader.sandbox.tiers import best_tier
from grader.wings.chip import chips
from grader.wings.chip.compiling import Compilations, TpuCompiler, compiler_problem, name_of, shipped_in, slice_of
from grader.wings.chip.on_chip import OnChip, as_data, differences, exposed_lines, facts, print_on_chip

TEMPLATES = Path(__file__).parent / "templates"
Name = Annotated[
    str,
    typer.Argument(help="an exercise, or one of its tasks: f1, or f1_ag_matmul.ag_matmul", autocompletion=exercises),
]
Page = Annotated[Path | None, typer.Option("--html", help="write the pictures and facts as a page to a new file")]


def chip(
    name: Name,
    on: Annotated[str, typer.Option("--on", help="the slice, such as v5e:2x4; shardlings doctor lists slices")],
    mesh: Annotated[str, typer.Option("--mesh", help="a mesh that replaces the exercise's mesh, such as x=2,y=8")] = "",
    shape: Annotated[
        str, typer.Option("--shape", "--dims", help="sizes that replace the exercise's sizes, such as B=8192,D=8192")
    ] = "",
    html: Page = None,
    work: Work = None,
    isolation: Isolation = "none",
    course: CourseOption = None,
    student: Student = "",
    solution: Annotated[bool, typer.Option("--solution", help="use the solution's function instead of mine")] = False,
    as_json: AsJson = False,
) -> None:
    """Compile a function for a TPU slice, without a TPU. Draw the compiler's schedule and the course's own timeline.

    The command compiles my function if I have written a part of it. Otherwise, it compiles the solution's function, if
    this course has the solutions. The compiled program does not run.
    """
    place = slice_of(on)
    found, tier = course_at(course, [work] if work else [], packaged=True), best_tier(isolation)
    expect_new(html)
    exercise, task = explaining.chosen(found, name.rpartition(".")[2] if "." in name else name)
    asks, left_out = chips.asked(
        found, exercise, task, place, sizes_of("--mesh", mesh) or None, sizes_of("--shape", shape)
    )
    tell_all([f"left out {line}" for line in left_out])
    solution = explains_solution(found, exercise, work, solution)
    source = explaining.reference(exercise) if solution else own_source(found, exercise, work, student, tier, course)
    shipped = shipped_of(found, asks, place, solution)
    compiler = None if shipped is not None else TpuCompiler(found, tier, place)
    doing = f"compiling {counted(len(asks), 'program')} for {on}; a program takes seconds, or a minute if it is large"
    with Grader(found, tier, compiler=compiler) as grader, busy(doing, quiet=as_json):
        made, notes = chips.on_chips(grader, source, asks, place, shipped)
    tell_all([f"this is {whose(found, exercise, source, solution)}", *notes])
    if as_json:
        print_json([as_data(one) for one in made])
    else:
        for one in made:
            print_on_chip(one, out)
            out.print()
    if html is not None:
        write_atomic(html, render(made))
        tell("note", f"wrote {html}")
    raise typer.Exit(code_of(one.fault for one in made))


def shipped_of(course: Course, asks: Sequence[Ask], on: Slice, solution: bool) -> Compilations | None:
    """If this machine has no TPU compiler, return the compiled programs in the course's files, otherwise None.

    The course's files have compiled programs only of solutions. Raises CourseError if this machine has no TPU compiler,
    and ``solution`` is False or the files lack a requested program.
    """
    problem = compiler_problem()
    if not problem:
        return None
    shipped = shipped_in(course) if solution else {}
    if not all(name_of(ask, on) in shipped for ask in asks):
        raise CourseError(problem)
    tell("note", f"{problem}; this command shows an earlier compilation of the unchanged solution")
    return shipped


def render(made: Sequence[OnChip]) -> str:
    """Return an HTML page with each compiled program's facts, compiler timeline and ``grader.clock`` timeline."""
    shown = []
    for one in made:
        exposed = exposed_lines(one.timeline) if one.timeline else []
        chart = draw_chart(one.lines) if one.lines else None
        shown.append(
            {
                "about": one,
                "facts": list(facts(one)),
                "exposed": exposed,
                "differences": differences(one),
                "chart": chart,
            }
        )
    return render_template("on_chip.html.j2", TEMPLATES, shown=shown, look=inline)
