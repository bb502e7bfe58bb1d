"""The course author's commands: build, verify, mutants and new."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader.authoring import scaffold
from grader.authoring import verify as verifier
from grader.authoring.declarations import judged_modes, listed_rules, rule_problems
from grader.authoring.keys import worked_keys
from grader.batch.grade import Grader
from grader.cli.console import FAILED, UNUSABLE, going_to, out, print_json, progress, say, tell, tell_unusable
from grader.cli.options import (
    AsJson,
    CourseOption,
    Isolation,
    Jobs,
    Names,
    NoStore,
    Quiet,
    cores,
    course_at,
    refuse_two_outputs,
)
from grader.common.cache import user_cache
from grader.course import build as builder
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.sources import write_sources
from grader.reports.points import counted
from grader.reports.untrusted import clean
from grader.sandbox.tiers import best_tier

if TYPE_CHECKING:
    from grader.authoring.mutants.proving import Proof

Seeds = Annotated[
    int,
    typer.Option(
        "--seeds",
        min=1,
        max=1000,
        help="how many course seeds to test the course with, for example one for each coming term",
    ),
]


def build(
    force: Annotated[
        bool, typer.Option("--force", help="also replace files that hold your work; your files move to exercises.bak/")
    ] = False,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Write exercises/ from solutions/.

    build also writes the tables of solutions/README.md. build keeps edited files of exercises/ as they are, and lists
    these files.
    """
    found = course_at(course)
    done, readme = builder.build(found, force=force), write_sources(found)
    if as_json:
        print_json(vars(done))
        raise typer.Exit(UNUSABLE if done.unusable else 0)
    if readme is not None:
        out.print(readme.relative_to(found.root).as_posix(), highlight=False, markup=False)
    _print_built(done, found.unlisted)
    if done.unusable:
        raise typer.Exit(UNUSABLE)


def _print_built(done: builder.Built, unlisted: Sequence[Path]) -> None:
    for path in done.changed:
        out.print(f"exercises/{path}", highlight=False, markup=False)
    for path, place in done.saved.items():
        say(f"replaced exercises/{path}; your edited file is now {place}")
    for path in done.left:
        say(f"exercises/{path} was edited, so it stays as it is")
    for path in unlisted:
        say(f"{path.as_posix()} is not listed in course.yaml, so it is not an exercise")
    if done.left:
        text = "to replace edited files, and move them to exercises.bak/: shardlings build --force"
        out.print(text, style="dim", soft_wrap=True)
    elif not done.changed and not done.unusable:
        out.print("exercises/ is current")
    if done.changed:
        out.print(f"{counted(len(done.changed), 'file')} changed", highlight=False)
    tell_unusable(done.unusable)
    if done.unusable:
        unusable = counted(len(done.unusable), "exercise")
        say(f"{unusable} cannot be used; files that contain an unusable exercise did not change")


def to_prove(path: Path | None, names: list[str] | None) -> tuple[Course, list[str]]:
    """Return the course, and the names of the exercises to test. Raises CourseError if the course has no solutions."""
    found = course_at(path)
    if not found.solved:
        said = f"there is no solutions/ folder in {found.root} to verify"
        raise CourseError(f"{said}; go to the course's folder or pass --course")
    return found, found.select(names or [])


def verify(
    names: Names = None,
    jobs: Jobs = None,
    isolation: Isolation = "none",
    seeds: Seeds = 1,
    no_store: NoStore = False,
    rules: Annotated[
        bool,
        typer.Option(
            "--rules", help="prove nothing; list each rule of the statements, with the misconceptions that break it"
        ),
    ] = False,
    course: CourseOption = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Prove the course: its checks, questions and misconceptions.

    verify tries all references, stubs, misconceptions and questions, and proves that no solution leaks.
    """
    refuse_two_outputs(quiet=quiet, as_json=as_json)
    found, chosen = to_prove(course, names)
    if rules:
        _list_rules(found, chosen)
        return
    problems_of: dict[str, list[str]] = {}
    if found.seed_problem:
        tell("warning", found.seed_problem)

    def proven(name: str, problems: list[str]) -> None:
        problems_of[name] = problems
        step(name)
        if not as_json and (problems or not quiet):
            _print_proven(found, name, problems)

    jobs = min(jobs or cores(), len(chosen) or 1)
    with (
        user_cache(not no_store) as cache,
        Grader(found, best_tier(isolation), jobs) as grader,
        progress(len(chosen) + 1, "proving", quiet=as_json or quiet, console=out) as step,
    ):
        count = verifier.verify(grader, chosen, proven, seeds, cache)
    if as_json:
        print_json({name: problems_of[name] for name in [*chosen, "course"]})
    else:
        known = sum(len(found.exercise(n).misconceptions) for n in found.usable(chosen)[0])
        what = f"{counted(len(chosen), 'exercise')}, {counted(known, 'misconception')}"
        out.print(f"{what}: {counted(count, 'problem') if count else 'nothing to mend'}")
    raise typer.Exit(FAILED if count else 0)


def _print_proven(course: Course, name: str, problems: Sequence[str]) -> None:
    """Print an exercise, or "course", with its problems and the lines that an author should read."""
    out.print(f"{'✗' if problems else '✓'} {name}", highlight=False)
    for problem in problems:
        say(f"    {clean(problem)}")
    if name in course.module_of and course.usable([name])[0]:
        exercise = course.exercise(name)
        for line in [*judged_modes(exercise), *(worked_keys(course, exercise) if not problems else ())]:
            say(f"    {clean(line, 400)}")


def _list_rules(course: Course, names: Sequence[str]) -> None:
    """Print the rules in these exercises' statements. Raises Exit if a rule has a problem (``rule_problems``)."""
    problems = 0
    for name in names:
        exercise = course.exercise(name)
        out.print(name, highlight=False)
        for line in listed_rules(exercise):
            say(f"    {line}")
        for problem in rule_problems(exercise):
            say(f"  ✗ {problem}")
            problems += 1
    if problems:
        raise typer.Exit(FAILED)


def mutants(
    names: Names = None,
    jobs: Jobs = None,
    isolation: Isolation = "none",
    seeds: Seeds = 1,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Prove the checks: each changed reference must fail a check.

    mutants changes each reference in many small ways.
    """
    from grader.authoring.mutants import proving
    from grader.authoring.mutants.making import mutants_of
    from grader.authoring.mutants.proving import equivalents

    found, chosen = to_prove(course, names)
    listed = equivalents(found)
    found = proving.impatient(found)
    chosen, unusable = found.usable(chosen)
    tell_unusable(unusable)
    total = sum(len(mutants_of(found.exercise(n))) for n in chosen)
    with (
        Grader(found, best_tier(isolation), jobs or cores()) as grader,
        progress(total, "trying mutants", quiet=as_json) as step,
    ):
        proofs = proving.prove(grader, chosen, listed, step, seeds)
    others = list(proving.course_problems(found, proofs, listed))
    if as_json:
        print_json(proving.as_json(found, proofs, others))
    else:
        print_proofs(found, proofs)
        for problem in others:
            say(clean(problem))
    raise typer.Exit(UNUSABLE if unusable else FAILED if others or any(p.problems for p in proofs) else 0)


COUNTED = {"pts": 4, "checks": 6, "misconceptions": 14, "alt": 3, "mutants": 7, "killed": 6, "same": 4, "alive": 5}
NAME_WIDTH = 22  # with this width the table fits into 80 columns


def print_proofs(course: Course, proofs: list[Proof]) -> None:
    """Print a table with each exercise's size and the number of its mutants by outcome, and print problems.

    A mutant is a reference (the author's solution) with a small change. The columns include:

    - ``pts``: the exercise's points
    - ``checks``: checks and questions
    - ``alt``: alternatives, which are further right solutions in the exercise
    - ``same``: equivalent mutants, which are right solutions that ``equivalent_mutants.yaml`` lists
    """
    out.print(
        f"{'exercise':{NAME_WIDTH}} " + " ".join(f"{word:>{width}}" for word, width in COUNTED.items()), highlight=False
    )
    rows = {proof.exercise: _counts(course, proof) for proof in proofs}
    for proof in proofs:
        out.print(_row(proof.exercise, rows[proof.exercise]), highlight=False)
        for problem in proof.problems:
            say(f"    {clean(problem, 400)}")
        for name in proof.unproven:
            out.print(
                f"    no misconception names the check {name}, and no mutant fails it", markup=False, highlight=False
            )
    for module in course.config.modules if len(proofs) > 1 else ():
        if module.exercises and set(module.exercises) <= rows.keys():
            sums = map(sum, zip(*(rows[name] for name in module.exercises), strict=True))
            out.print(_row(module.id, list(sums)), style="bold", highlight=False)
    total, killed = sum(len(p.verdicts) for p in proofs), sum(p.count("killed") for p in proofs)
    out.print(f"{counted(total, 'mutant')}, {killed} killed ({killed / max(total, 1):.1%})", highlight=False)


def _counts(course: Course, proof: Proof) -> list[float]:
    """Return the numbers of an exercise's row in the table, in the order of the columns (``COUNTED``)."""
    exercise = course.exercise(proof.exercise)
    checks = len(exercise.checks) + len(exercise.questions)
    fates = [proof.count(fate) for fate in ("killed", "equivalent", "survived")]
    return [
        exercise.points,
        checks,
        len(exercise.misconceptions),
        len(exercise.alternatives),
        len(proof.verdicts),
        *fates,
    ]


def _row(name: str, counts: list[float]) -> str:
    return f"{name:{NAME_WIDTH}} " + " ".join(
        f"{n:{width}g}" for n, width in zip(counts, COUNTED.values(), strict=True)
    )


def new(
    name: Annotated[
        str,
        typer.Argument(
            help="the new exercise as MODULE/EXERCISE, such as 03_matmuls/c6_batched; for a new course, write: course"
        ),
    ],
    folder: Annotated[Path | None, typer.Argument(help="for a new course: a folder that is new or empty")] = None,
    course: CourseOption = None,
) -> None:
    """Start a new exercise, or a course of your own (new course FOLDER). The new files pass verify before any edit."""
    if name == "course":
        if folder is None:
            raise CourseError("name a folder for the course: shardlings new course FOLDER")
        scaffold.new_course(folder)
        say(f"wrote a course to {folder}; next: {going_to(folder)}shardlings build && shardlings verify")
        return
    if folder is not None:
        raise CourseError(
            f"a new exercise goes into its course, so name no folder; for a new course: shardlings new course {folder}"
        )
    found = course_at(course)
    path = scaffold.new(found, name)
    if path.parent.name not in {module.id for module in found.config.modules}:
        tell("note", f"{path.parent.name} is a new module, the last in course.yaml; choose a module title there")
    say(f"wrote {path}; edit it, then: shardlings build && shardlings verify {path.stem}")
