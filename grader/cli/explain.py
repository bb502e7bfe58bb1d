"""``explain``: show facts about a function, read from its program."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from grader import wing
from grader.authoring.budgets import check_lines
from grader.batch import explaining
from grader.cli.checking import begun_of, own_grader, read_own
from grader.cli.completion import exercises
from grader.cli.console import BROKEN, FAILED, busy, out, print_json, say, tell
from grader.cli.options import (
    AsJson,
    BackendOption,
    CourseOption,
    Isolation,
    Processes,
    Student,
    Work,
    course_at,
    devices_at,
    refuse_course_beside,
    sizes_of,
    student_name,
    work_in,
)
from grader.common.files import write_atomic
from grader.common.observation import Fault
from grader.course.compiled import Compiled, compiled_of
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import Exercise
from grader.expect.clock import show_time
from grader.intake.facts import is_untouched
from grader.intake.reading import read
from grader.intake.submission import Source
from grader.reports.explained import Explained, alike, as_data
from grader.reports.explained_text import apart_text, print_explained
from grader.reports.timeline_text import trace_json
from grader.sandbox.tiers import best_tier

CHECK_LINES = """\
lines to copy into checks; the limits fit these meshes and the sizes of hidden inputs. In each at_most, also write the \
amount that a wrong program needs: needed(right, wrong), or between(right, wrong) for a time:"""
Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        help="ideal: all collectives can overlap with compute; "
        "v5e or another chip: only those that can overlap on this chip",
    ),
]
Dims = Annotated[
    str,
    typer.Option("--dims", help="other sizes of dimensions, such as I=8192; with --on, dimensions may have any size"),
]
Trace = Annotated[
    Path | None, typer.Option("--trace", help="with --on: write the timeline to a new file for ui.perfetto.dev")
]


def explain(
    name: Annotated[str, typer.Argument(help="an exercise, or one of its tasks", autocompletion=exercises)],
    mesh: Annotated[str, typer.Option("--mesh", help="a mesh in place of the exercise's, such as x=4,y=2")] = "",
    dims: Dims = "",
    on: Annotated[str, typer.Option("--on", help="show the timeline on a slice, such as v5e:2x4")] = "",
    profile: Profile = "ideal",
    trace: Trace = None,
    work: Work = None,
    isolation: Isolation = "none",
    backend: BackendOption = "cpu",
    processes: Processes = 1,
    course: CourseOption = None,
    student: Student = "",
    solution: Annotated[bool, typer.Option("--solution", help="use the solution's function instead of mine")] = False,
    as_json: AsJson = False,
) -> None:
    """Explain a function: its collectives, bytes, memory and FLOPs.

    The command explains my function if I have written any of it. Otherwise it explains the solution's function, if the
    solutions are here. The first line names the function's file. The output also shows shardings.
    """
    found, tier = course_at(course, [work] if work else [], packaged=True), best_tier(isolation)
    wanted = explaining.Wanted(sizes_of("--mesh", mesh) or None, sizes_of("--dims", dims), on, profile)
    if trace is not None and not on:
        raise CourseError("--trace writes a timeline and needs a slice, such as --on v5e:2x4")
    expect_new(trace)
    exercise, task = explaining.chosen(found, name)
    asks, left_out = explaining.asks_of(found, exercise, explaining.calls_of(exercise, task), wanted)
    tell_all([f"left out {problem}" for problem in left_out])
    solution = explains_solution(found, exercise, work, solution)
    source = explaining.reference(exercise) if solution else own_source(found, exercise, work, student, tier, course)
    # Authors who explain the solution also get lines of code to paste into the checks.
    for_author = solution and not mesh and not dims
    more = explaining.with_hidden_sizes(asks) if for_author else []
    devices = devices_at(backend, processes, found, tier)
    if devices is not None:
        devices.times = bool(on)  # measure times only if there is a timeline to compare them with
    with (
        own_grader(found, tier, devices) as grader,
        busy("tracing and reading the exercise's programs, which takes some seconds", quiet=as_json),
    ):
        made, notes = explaining.explained(grader, source, [*asks, *more], wanted)
    if on:
        made = [with_times(found, exercise, work, one, wanted, solution) for one in made]
    tell_all([f"this is {whose(found, exercise, source, solution)}", *notes])
    shown = made[: len(asks)]
    show(shown, lines_of(made) if for_author else {}, as_json)
    write_trace(trace, shown)
    raise typer.Exit(code_of(one.fault for one in shown))


def tell_all(notes: Sequence[str]) -> None:
    for note in notes:
        tell("note", note)


def with_times(
    course: Course, exercise: Exercise, work: Path | None, program: Explained, wanted: explaining.Wanted, solution: bool
) -> Explained:
    """Return ``program`` with two more facts: its time in the compiler's schedule, and the learner's predictions."""
    compiled = compiled_text(compiled_of(course.root, program.program, wanted.on), program, wanted.on)
    program = replace(program, compiled=compiled)
    # A solution has predictions only if the course's folder also has the learners' exercises.
    if work is not None or not solution or (course.root / "exercises").is_dir():
        for predicted in wing.offered("predicted"):
            program = replace(program, predicted=predicted(course, exercise.id, work, program, wanted))
    return program


def compiled_text(known: Compiled | None, program: Explained, on: str) -> str:
    """Return a text such as ``9.6 ms by the compiler of v5e:2x4, 1.02 times the clock's time``; '' if unknown."""
    if known is None:
        return ""
    clock = f", {known.step / program.timeline.step:.3g} times the clock's time" if program.timeline else ""
    apart = apart_text((known.step, known.matmuls, known.waiting), program.timeline) if program.timeline else ""
    parts = [f"{show_time(known.matmuls)} matmuls", f"{show_time(known.waiting)} waiting"]
    parts += [
        f"{under / every:.0%} of the {kind} time is overlapped in the compiler's order"
        for kind, (under, every) in known.overlapped.items()
        if every
    ]
    why = f"; {apart}" if apart else ""
    return f"{show_time(known.step)} by the compiler of {on}{clock}: {', '.join(parts)} ({known.by}){why}"


def explains_solution(course: Course, exercise: Exercise, work: Path | None, solution: bool) -> bool:
    """Return True to explain the solution's function, False to explain the learner's. Raises CourseError."""
    if solution and (work is not None or not course.solved):
        why = "--work explains the learner's function" if work else "there are no solutions here"
        raise CourseError(f"--solution cannot be used: {why}")
    if work is not None or not course.solved:
        return False
    place = course.root / "exercises"
    if solution or not place.is_dir():
        return True
    own = read(place, "me", course.module_of, course.handed_out).sources.get(exercise.id)
    return is_untouched(own, course.handed_out)


def whose(course: Course, exercise: Exercise, source: Source, solution: bool) -> str:
    """Return a text that names the function's file, and whether the function is the learner's or the solution's."""
    if solution:
        return f"the solution's function, {course.path_of(exercise.id).relative_to(course.root)}"
    other = "; --solution explains the solution's function" if course.solved else ""
    return f"your function, {source.name}{other}"


def expect_new(file: Path | None) -> None:
    """Raise CourseError if the file exists, or if the file's folder does not exist."""
    if file is None:
        return
    if os.path.lexists(file):
        raise CourseError(f"{file} already exists; name a new file")
    if not file.parent.is_dir():
        raise CourseError(f"there is no folder {file.parent} for {file.name}; make the folder first")


def write_trace(trace: Path | None, programs: Sequence[Explained]) -> None:
    timelines = {p.title: p.timeline for p in programs if p.timeline is not None}
    if trace is None:
        return
    if not timelines:
        raise CourseError(f"no program has a timeline, so {trace} is not written")
    write_atomic(trace, trace_json(timelines))
    tell("note", f"wrote {trace}; open it at https://ui.perfetto.dev")


def own_source(
    course: Course, exercise: Exercise, work: Path | None, student: str, tier: str, named: Path | None
) -> Source:
    """Return the learner's source for this exercise. Raises CourseError if the work lacks the exercise.

    A user who chooses a sandbox does not trust the author of the work. The folder of the work may also contain a course
    by this author. With a sandbox, the command uses this course only if the user names it.

    Args:
        named: the value of ``--course``; None if the user named no course.
    """
    place = work_in(course, work)
    if tier != "none" and named is None:
        refuse_course_beside(course, place)
    if tier == "none" and work is not None:
        tell("note", f"{place} runs without a sandbox; for code that is not yours pass --isolation auto")
    submission = read_own(course, place, student_name(course, student), tier)
    (name,) = begun_of(course, submission, [exercise.id], [exercise.id], place)
    return submission.sources[name]


def lines_of(programs: Sequence[Explained]) -> dict[str, list[str]]:
    """Return lines of code by task. The author can paste these lines into the checks to limit what the programs do."""
    tasks = dict.fromkeys(p.task for p in programs)
    return {task: check_lines([p for p in programs if p.task == task]) for task in tasks}


def show(programs: Sequence[Explained], lines: Mapping[str, Sequence[str]], as_json: bool) -> None:
    """Print the facts about each task's programs, then the lines of code from ``lines_of``."""
    if as_json:
        print_json({"programs": [as_data(p) for p in programs], "checks": lines})
        return
    for task in dict.fromkeys(p.task for p in programs):
        for program in alike(p for p in programs if p.task == task):
            print_explained(program, out)
            out.print()
        if lines.get(task):
            out.print(CHECK_LINES, style="dim")
            for line in lines[task]:
                say(f"    {line}")
            out.print()


def code_of(faults: Iterable[Fault | None]) -> int:
    """Return the exit code: 0 without a fault, 3 if a fault is the grader's own, and 1 for all other faults."""
    kinds = {fault.kind for fault in faults if fault is not None}
    return BROKEN if "broken" in kinds else FAILED if kinds else 0
