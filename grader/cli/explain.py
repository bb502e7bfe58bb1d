"""``explain``: what a function does, read from its program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from grader.authoring.budgets import check_lines
from grader.batch import explaining
from grader.cli.console import BROKEN, FAILED, out, print_json, say, tell
from grader.cli.learner import begun_of, own_grader, refuse_course_beside
from grader.cli.options import AsJson, CourseOption, Student, Work, course_at, student_name, work_in
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import Exercise
from grader.intake.reading import read
from grader.intake.submission import Source
from grader.reports.explained import Explained, as_data
from grader.reports.explained_text import print_explained
from grader.sandbox.tiers import best_tier


def explain(
    name: Annotated[str, typer.Argument(help="an exercise, or one of its tasks")],
    mesh: Annotated[str, typer.Option("--mesh", help="another mesh, such as x=4,y=2")] = "",
    work: Work = None,
    isolation: Annotated[
        str, typer.Option("--isolation", help="auto, sandlock, bwrap or none; for work that is not yours")
    ] = "none",
    course: CourseOption = None,
    student: Student = "",
    as_json: AsJson = False,
) -> None:
    """Explain what a function does: collectives, bytes, memory, FLOPs, shardings. The solution's, or mine with --work.

    Where there are no solutions it is always mine.
    """
    found, tier = course_at(course, [work] if work else [], packaged=True), best_tier(isolation)
    exercise, task = chosen(found, name)
    asks, left_out = explaining.asks_of(
        exercise, explaining.calls_of(exercise, task), mesh_of(mesh) if mesh else None, found.config.devices
    )
    for problem in left_out:
        tell("note", f"left out {problem}")
    solution = work is None and found.solved
    if solution:
        source, more = explaining.reference(exercise), explaining.with_hidden_sizes(asks)
    else:
        if tier != "none" and course is None:
            refuse_course_beside(found, work_in(found, work))
        source, more = own_source(found, exercise, work, student, tier), []
    with own_grader(found, tier) as grader:
        made, notes = explaining.explained(grader, source, [*asks, *more])
    for note in notes:
        tell("note", note)
    lines = {t: check_lines([p for p in made if p.task == t]) for t in dict.fromkeys(p.task for p in made)}
    show(made[: len(asks)], lines if solution else {}, as_json)
    raise typer.Exit(code_of(made))


def chosen(course: Course, name: str) -> tuple[Exercise, str | None]:
    """The exercise of this name or beginning; or the one with a task of this name, and the task's name."""
    try:
        (only,) = course.asked([name])
        return course.exercise(only), None
    except ValueError:
        several = ", ".join(course.select([name]))
        raise CourseError(f"{name} has several exercises: explain one of {several}") from None
    except CourseError:
        usable, _ = course.usable(course.module_of)
        for exercise in map(course.exercise, usable):
            if name in exercise.tasks:
                return exercise, name
        raise


def mesh_of(text: str) -> dict[str, int]:
    """``x=4,y=2`` as axes and sizes. Raises CourseError."""
    sizes: dict[str, int] = {}
    for part in text.split(","):
        axis, equals, size = (word.strip() for word in part.partition("="))
        if not (equals and axis.isidentifier() and size.isascii() and size.isdigit() and int(size[:9]) > 0):
            raise CourseError(f"--mesh {text}: {part.strip() or 'nothing'} is no axis and size; write x=4,y=2")
        if axis in sizes:
            raise CourseError(f"--mesh {text}: axis {axis} is there twice; write each once")
        sizes[axis] = int(size)
    return sizes


def own_source(course: Course, exercise: Exercise, work: Path | None, student: str, tier: str) -> Source:
    """What the learner has of this exercise. Raises CourseError where that is nothing."""
    place = work_in(course, work)
    if tier == "none" and work is not None:
        tell("note", f"{place} is run as it is, without a sandbox; for work that is not yours pass --isolation auto")
    submission = read(place, student_name(course, student), course.module_of, course.handed_out)
    (name,) = begun_of(course, submission, [exercise.id], [exercise.id], place)
    return submission.sources[name]


def show(programs: Sequence[Explained], lines: Mapping[str, Sequence[str]], as_json: bool) -> None:
    """What was found, task by task; ``lines``: for its author, what a check of the task may say."""
    if as_json:
        print_json({"programs": [as_data(p) for p in programs], "checks": lines})
        return
    for task in dict.fromkeys(p.task for p in programs):
        for program in programs:
            if program.task == task:
                print_explained(program, out)
                out.print()
        if lines.get(task):
            out.print("what a check may say, read from these meshes and from hidden sizes:", style="dim")
            for line in lines[task]:
                say(f"    {line}")
            out.print()


def code_of(programs: Sequence[Explained]) -> int:
    """0 where every program could be read; 3 where that is our own failure."""
    kinds = {p.fault.kind for p in programs if p.fault is not None}
    return BROKEN if "broken" in kinds else FAILED if kinds else 0
