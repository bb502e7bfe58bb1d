"""Implementation of ``shardlings check`` and ``shardlings submit`` for a learner's own work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import typer

from grader.batch.backends import Compiler, Devices
from grader.batch.begun import graded_if_begun
from grader.batch.confined import parsing
from grader.batch.grade import Grader
from grader.batch.in_process import InProcess
from grader.batch.submit import Ready, nothing_of
from grader.cli.console import FAILED, UNUSABLE, busy, exit_code, out, say, tell, tell_unusable
from grader.cli.options import BackendChoice, beside_at
from grader.common.result import Report
from grader.course.config import Module
from grader.course.loading import Course
from grader.intake.reading import read
from grader.intake.submission import Submission
from grader.reports.overview import print_first_failure, print_left, print_overview
from grader.reports.points import counted
from grader.reports.terminal import print_report
from grader.reports.untrusted import clean
from grader.reports.wording import first_failure, is_begun, is_unfinished
from grader.sandbox.tiers import environment

WITH_SOLUTIONS = "Hidden checks and answers were judged as well, because this course includes the solutions."


def check_work(
    found: Course, chosen: list[str], names: list[str], place: Path, tier: str, student: str, asked: BackendChoice,
    *, unconfined: bool, as_json: bool,
) -> int:  # fmt: skip
    """Check the exercises ``chosen`` in the learner's work at ``place``, print the results, and return the exit code.

    Args:
        names: the exercises or modules to check, as the learner typed them.
        unconfined: True to print a note that the work runs without a sandbox.
    """
    if unconfined:
        tell("note", f"{place} runs without a sandbox; for code that is not yours pass --isolation auto")
    submission = read_own(found, place, student, tier)
    begun = begun_of(found, submission, chosen, names or ["the course"], place)
    chosen, unusable = found.usable(chosen if names else begun)
    tell_unusable(unusable)
    if not chosen:
        return UNUSABLE
    in_short = not (as_json or names or len(chosen) == 1)
    doing = f"checking {counted(len(chosen), 'exercise')}, a second or more for each"
    beside = beside_at(asked.backend, asked.processes, found, tier)
    with own_grader(found, tier, *beside) as grader, busy(doing, quiet=as_json):
        grade = partial(graded_if_begun, grader) if in_short else grader.grade
        graded = grade(submission, chosen, public=not found.solved)
    if beside.compiler is not None:
        _tell_compiler(beside.compiler)
    if as_json:
        typer.echo(graded.dumps(), nl=False)
    else:
        print_in_short(found, graded) if in_short else _print_whole(found, chosen, graded)
    left = any(not e.handed_in for e in graded.exercises)
    return UNUSABLE if unusable else exit_code([graded], student=True) or (FAILED if left else 0)


def _tell_compiler(compiler: Compiler) -> None:
    by = ", ".join(f"{name} {number}" for name, number in compiler.versions.items())
    tell(
        "note",
        f"{by} compiled the programs for {compiler.on}; "
        "the order that the compiler chose decides which collectives overlap",
    )


def read_own(course: Course, place: Path, student: str, tier: str) -> Submission:
    """Return the submission at ``place``, parsed in a sandbox if ``tier`` (the kind of sandbox) is not "none"."""
    with nullcontext() if tier == "none" else parsing(tier) as parsers:
        return read(place, student, course.module_of, course.handed_out, parsers)


def _print_whole(found: Course, chosen: Sequence[str], graded: Report) -> None:
    print_report(graded, out)
    print_judged(found, chosen)
    for name in traced_and_wrong(found, graded)[:1]:
        say(f"What your functions do, collective by collective: shardlings explain {name}", style="dim")


def traced_and_wrong(course: Course, graded: Report) -> list[str]:
    """Return the exercises with a failure that ``explain`` can show: a failed check of a task with a program.

    Only the first failure of each exercise counts.

    Questions, unfinished tasks and tasks of the kind "function" have no program.
    """
    return [
        e.exercise
        for e in graded.exercises
        for r in [first_failure(e)]
        if r is not None and r.status == "failed" and not is_unfinished(r) and r.kind == "check"
        if (task := course.exercise(e.exercise).tasks.get(r.task)) and task.kind != "function"
    ]


def print_judged(course: Course, names: Sequence[str]) -> None:
    """Print that hidden checks were judged; without solutions, print how many points the hidden checks will decide."""
    if course.solved:
        out.print(WITH_SOLUTIONS)
    elif hidden := sum(course.exercise(name).hidden_points * course.weight(name) for name in names):
        out.print(f"Hidden checks are worth {counted(hidden, 'point')} more; they run when your submission is graded.")


def print_in_short(course: Course, graded: Report) -> None:
    """Print an overview of the exercises, then the first failure, then the command to run next."""
    print_overview(graded, {m.id: m.title for m in course.config.modules}, out)
    out.print()
    if failing := print_first_failure(graded, out):
        out.print()
        name = failing.exercise
        say(f"All results: shardlings check {name}; to check after each save: shardlings watch {name}")
    elif waiting := next((e.exercise for e in graded.exercises if not is_begun(e)), None):
        say(f"Next: shardlings show {waiting}, then shardlings watch {waiting}")
    if course.solved and any(is_begun(e) for e in graded.exercises):
        out.print(WITH_SOLUTIONS)


def begun_of(course: Course, submission: Submission, chosen: list[str], names: list[str], place: Path) -> list[str]:
    """Return the exercises of ``chosen`` that the learner's work contains. Raises CourseError if it contains none."""
    if begun := [e for e in chosen if e in submission.sources]:
        return begun
    first = chosen[0]
    raise nothing_of(", ".join(names), first, course.module_of[first], submission, place)


def own_grader(
    course: Course, tier: str = "none", devices: Devices | None = None, compiler: Compiler | None = None
) -> Grader:
    """Return a grader for the learner's own work. On systems without fork (Windows), the grader works in-process."""
    if hasattr(os, "fork"):
        return Grader(course, tier, devices=devices, compiler=compiler)
    os.environ.update(environment(course.config.devices) | {"PATH": os.environ.get("PATH", "")})
    return Grader(course, "none", here=InProcess({}, compiler), compiler=compiler)


def submit_module(
    found: Course, listed: Module, place: Path, who: str, to: Path | None, student: str, *, full: bool
) -> None:
    """Check a module's work, then hand it in.

    Args:
        who: the student for whom the numbers in the questions are drawn.
        to: the zip's path; None to use nbgrader if it is set up.
        student: the name that the student typed, to write into the zip; "" for the login name.
        full: True to print every result.
    """
    from grader.batch import submit as submitting
    from grader.integrations.nbgrader import exchange

    near = (place.resolve(), place.resolve() / listed.id)
    inside = next((p for p in near if p.name == listed.id and (p / f"{listed.id}.ipynb").is_file()), None)
    exchanged = inside if to is None and exchange.configured() else None
    # Find the login first, because ``login`` may raise CourseError, and the checks take time.
    named = "" if exchanged else student or submitting.login()
    with own_grader(found) as grader, busy(f"checking {listed.id}, some seconds"):
        ready = submitting.prepare(found, listed.id, place, who, grader)
    if full:
        print_report(ready.report, out)
    else:
        print_left(ready.report, {listed.id: listed.title}, out)
    print_missing(ready)
    if exchanged:
        say(f"handed in: {exchange.submit(exchanged)}", style="bold")
    else:
        path = submitting.write_zip(found, listed.id, place, ready, to or Path(), named)
        say(f"wrote {path}; upload this file without changes", style="bold")


def print_missing(ready: Ready) -> None:
    """Print the unfinished tasks of exercises that the learner began."""
    for exercise in filter(is_begun, ready.report.exercises):
        if tasks := ready.missing.get(exercise.exercise):
            say(f"missing in {exercise.exercise}: {clean(', '.join(tasks))}", style="yellow")
