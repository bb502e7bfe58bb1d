"""Test a course's checks: grade all mutants of the course's exercises, and report the mutants that survive."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from grader.authoring.mutants.grading import AT_ONCE, Fate, Verdict, judge_mutant, killed_together, results_of
from grader.authoring.mutants.making import Mutant, mutants_of_task, task_module
from grader.batch.grade import Grader
from grader.batch.workers import pool_of
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import Exercise

LEAST_KILLED = 0.98
EQUIVALENT = "equivalent_mutants.yaml"


@dataclass(frozen=True)
class Proof:
    """The verdicts on an exercise's mutants, and the exercise's problems.

    ``unproven``: the checks that no wrong solution fails.
    """

    exercise: str
    verdicts: list[Verdict]
    problems: list[str]
    unproven: list[str]

    def count(self, fate: Fate) -> int:
        return sum(v.fate == fate for v in self.verdicts)

    @property
    def not_run(self) -> int:
        """Number of killed mutants that did not run. Such mutants show little about the checks."""
        return sum(v.fate == "killed" and not v.seen_by for v in self.verdicts)


def impatient(course: Course) -> Course:
    """Return the course with shorter time limits, because some mutants never end."""
    config = course.config
    limits = config.limits.model_copy(
        update={
            "trace_seconds": min(5.0, config.limits.trace_seconds),
            "run_seconds": min(20.0, config.limits.run_seconds),
            "stuck_seconds": min(10.0, config.limits.stuck_seconds),
        }
    )
    return Course(course.root, config.model_copy(update={"limits": limits}))


def prove(
    grader: Grader,
    names: list[str],
    listed: list[Equivalent],
    step: Callable[[str], None] = lambda who: None,
    seeds: int = 1,
) -> list[Proof]:
    """Judge every mutant of these exercises. Run ``grader.jobs`` batches at a time. Call ``step`` after each mutant.

    A batch does not try all checks. So for each check that no mutant failed, killed mutants are graded again, one by
    one, until one of them fails the check.

    Args:
        listed: the mutants that the author lists as right solutions.
        seeds: the number of seeds with which a mutant must fail to count as killed.
    """
    exercises = [grader.course.exercise(name) for name in names]
    allowed = {key(e) for e in listed}

    def judge(mutant: Mutant) -> Verdict:
        return judge_mutant(grader, mutant, key(mutant) in allowed, seeds)

    def judge_several(mutants: Sequence[Mutant]) -> list[Verdict]:
        verdicts = []
        for mutant, killed in zip(mutants, killed_together(grader, mutants), strict=True):
            verdicts.append(killed or judge(mutant))
            step(mutant.task)
        return verdicts

    with pool_of(grader.jobs) as pool:
        running = [(e, [pool.submit(judge_several, some) for some in batches(e)]) for e in exercises]
        proofs = []
        for exercise, jobs in running:
            verdicts = [verdict for job in jobs for verdict in job.result()]
            for name in unproven(exercise, verdicts):
                look_for(name, exercise, verdicts, judge)
            found = list(problems(grader, exercise, verdicts, listed))
            proofs.append(Proof(exercise.id, verdicts, found, unproven(exercise, verdicts)))
    return proofs


def batches(exercise: Exercise) -> Iterator[list[Mutant]]:
    """Yield all mutants of an exercise, in batches of at most ``AT_ONCE`` mutants of one task."""
    for task in exercise.tasks.values():
        mutants = mutants_of_task(exercise, task)
        for start in range(0, len(mutants), AT_ONCE):
            yield mutants[start : start + AT_ONCE]


def look_for(name: str, exercise: Exercise, verdicts: list[Verdict], judge: Callable[[Mutant], Verdict]) -> None:
    """Grade killed mutants again, one by one, until one fails the check ``name``. Update ``verdicts``."""
    task = exercise.checks[name].call.task.name
    for n, verdict in enumerate(verdicts):
        if verdict.fate == "killed" and verdict.mutant.task == task:
            verdicts[n] = judge(verdict.mutant)
            if name in verdicts[n].seen_by:
                return


def problems(grader: Grader, exercise: Exercise, verdicts: list[Verdict], listed: list[Equivalent]) -> Iterator[str]:
    for task in exercise.tasks.values():
        text = ast.unparse(task_module(exercise, task)[0]) + "\n"
        for result in results_of(grader, exercise.id, task.name, text):
            if result.status != "passed":
                yield f"{task.name}: the reference itself does not pass {result.name} ({result.reason})"
    for verdict in verdicts:
        if verdict.fate == "survived":
            yield f"{in_words(verdict.mutant)} {verdict.reason or f'passes every check of {verdict.mutant.task}'}"
        if verdict.fate == "broken":
            yield f"{in_words(verdict.mutant)} breaks the grader: {verdict.reason}"
    alive = {key(v.mutant) for v in verdicts if v.fate == "equivalent"}
    for entry in listed:
        if entry.exercise == exercise.id and key(entry) not in alive:
            change = f"`{entry.was}` -> `{entry.becomes}`"
            yield f"{EQUIVALENT} lists a mutant of {entry.task} that does not survive: {change}"


def in_words(mutant: Mutant) -> str:
    return f"line {mutant.line}, {mutant.operator}: `{mutant.was}` -> `{mutant.becomes or '(nothing)'}`"


def unproven(exercise: Exercise, verdicts: list[Verdict]) -> list[str]:
    """Return the checks that no misconception names and that no mutant fails."""
    proven = {name for misconception in exercise.misconceptions.values() for name in misconception.fails}
    proven |= {name for verdict in verdicts for name in verdict.seen_by}
    return [name for name in exercise.checks if name not in proven]


def course_problems(course: Course, proofs: list[Proof], listed: list[Equivalent]) -> Iterator[str]:
    """Yield course-wide problems: too many surviving mutants, and listed mutants whose exercise is not in the course.

    The share of survivors is computed for each module whose exercises are all in ``proofs``. In a small exercise, one
    equivalent mutant would already be a large share.
    """
    for entry in listed:
        if entry.exercise not in course.module_of:
            yield f"{EQUIVALENT} names the exercise {entry.exercise}, which is not in the course"
    tried = {proof.exercise: proof for proof in proofs}
    for module in course.config.modules:
        if not module.exercises or not set(module.exercises) <= tried.keys():
            continue
        total = sum(len(tried[name].verdicts) for name in module.exercises)
        killed = sum(tried[name].count("killed") for name in module.exercises)
        if killed < LEAST_KILLED * total:
            yield f"{module.id}: {killed} of {total} mutants are killed, which is under {LEAST_KILLED:.0%}"


def as_json(course: Course, proofs: list[Proof], others: list[str]) -> dict[str, Any]:
    """Return JSON data for ``--json``: each exercise's size, number of mutants by outcome, survivors, and problems."""
    rows = [
        {
            "exercise": proof.exercise,
            "points": (exercise := course.exercise(proof.exercise)).points,
            "checks": len(exercise.checks),
            "questions": len(exercise.questions),
            "misconceptions": len(exercise.misconceptions),
            "alternatives": len(exercise.alternatives),
            "mutants": len(proof.verdicts),
            **{fate: proof.count(fate) for fate in get_args(Fate)},
            "not_run": proof.not_run,
            "alive": [
                {"fate": v.fate, "task": v.mutant.task, "operator": v.mutant.operator, "line": v.mutant.line,
                 "was": v.mutant.was, "becomes": v.mutant.becomes}
                for v in proof.verdicts if v.fate != "killed"
            ],
            "problems": proof.problems,
            "unproven": proof.unproven,
        }
        for proof in proofs
    ]  # fmt: skip
    return {"exercises": rows, "problems": others}


class Equivalent(BaseModel):
    """An entry of ``equivalent_mutants.yaml``: a mutant that may pass all checks, because it is a right solution."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exercise: str
    task: str
    was: str
    becomes: str
    reason: str = Field(min_length=10)


ENTRIES = TypeAdapter(list[Equivalent])


def equivalents(course: Course) -> list[Equivalent]:
    """Return the entries of ``equivalent_mutants.yaml``. Raises CourseError if the file or an entry is invalid."""
    path: Path = course.root / "solutions" / EQUIVALENT
    if not path.is_file():
        return []
    try:
        return ENTRIES.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")) or [])
    except yaml.YAMLError as error:
        raise CourseError(f"{path}: not YAML: {error}") from None
    except ValidationError as error:
        problem = error.errors()[0]
        if not problem["loc"]:
            raise CourseError(f"{path}: a list of entries is expected") from None
        number, *parts = problem["loc"]
        field = ".".join(map(str, parts)) or "entry"
        raise CourseError(f"{path}: entry {int(number) + 1}: {field}: {problem['msg']}") from None


def key(one: Mutant | Equivalent) -> tuple[str, str, str, str]:
    """Return the fields that are equal for a mutant and its entry in ``equivalent_mutants.yaml``."""
    return one.exercise, one.task, one.was, one.becomes
