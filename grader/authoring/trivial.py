"""Try programs that solve nothing, and find functions in learners' files that solve a task or answer a question.

Trivial programs replace each task and must earn no points. For a plain Python task, a trivial program always raises one
error, always returns one value, or returns its first argument. Other trivial programs give the right results for public
cases, and one constant result for all hidden cases. These programs for plain Python tasks do not run, because their
results are known in advance. For a task that JAX traces, a trivial program returns zeros of the right shapes, or its
first argument.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.authoring.shown_keys import Key, keys_of
from grader.authoring.tries import each_tried, first_cases
from grader.batch.grade import Grader
from grader.common.observation import Outcome
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.reference import answers, reference_source
from grader.course.statements import Statement, statements
from grader.exercise import Alternative, Cases, Check, Exercise, Task
from grader.expect import show_outcome
from grader.judging.judge import judge_checks
from grader.judging.seen import AskFinding, Finding
from grader.reports.points import counted
from grader.wire.frames import encode

RAISES_VALUE_ERROR = Outcome(error="ValueError", kinds=("ValueError",))
CONSTANTS = [RAISES_VALUE_ERROR, *map(Outcome, (None, 0, True, False, "", [], {}))]
"""Outcomes to try for every plain Python task. A list equals a tuple with equal elements, and 0 equals 0.0."""
KNOWS = "answers the public cases"
TRACED = {
    "returns zeros": """
import functools
right_{task} = {task}
def {task}(*args, **keywords):
    due = jax.eval_shape(functools.partial(right_{task}, **keywords), *args)
    return jax.tree.map(lambda one: jax.numpy.zeros(one.shape, one.dtype), due)
""",
    "returns its first argument": "def {task}(*args, **keywords):\n    return args[0]\n",
}
BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
CALL = """
{given}_alone = {task}
def {task}(*args, **keywords):
    named = dict(zip({names!r}, args)) | keywords
    return {given}_alone(**{{own: named[of_task] for own, of_task in {takes!r}.items()}})
"""


@dataclass(frozen=True)
class Trivial:
    """A trivial program of a task. ``does`` describes its behavior, and ``found`` has its result for each request."""

    task: Task
    does: str
    found: list[AskFinding]


def trivial_problems(grader: Grader, exercise: Exercise, reference: Iterable[AskFinding]) -> Iterator[str]:
    """Yield a line for each check that gives points to a trivial program.

    Trivial programs replace one task at a time, and then all tasks at once. All programs are tried with a few cases
    first (``first_cases``). If one of them earns points, all programs are tried with all cases.

    Args:
        reference: the results of running the reference solution.
    """
    found = {a.ask.answer_key: a.finding for a in reference}
    graded = [AskFinding(ask, found[ask.answer_key]) for ask in grader.plan(exercise.id, False)]
    first, reported = first_cases(exercise, graded), set[str]()
    if not any(earned(exercise, first, some) for some in _tries(trivial_programs(grader, exercise, first))):
        return
    for some in _tries(trivial_programs(grader, exercise, graded)):
        for check in earned(exercise, graded, some):
            if check.name not in reported:
                reported.add(check.name)
                yield _problem(check, some)


def trivial_programs(grader: Grader, exercise: Exercise, reference: list[AskFinding]) -> Iterator[Trivial]:
    for task in exercise.tasks.values():
        own = [a for a in reference if a.ask.task == task.name]
        if task.kind == "function":
            for does, outcome in trivial_functions(task, own).items():
                found = [AskFinding(a.ask, Finding(outcomes=list(map(outcome, a.ask.cases)))) for a in own]
                yield Trivial(task, does, found)
            yield from _knowing(task, own)
    yield from _traced(grader, exercise, reference)


def trivial_functions(task: Task, reference: list[AskFinding]) -> dict[str, Callable[[Mapping], Outcome]]:
    """Return trivial functions for a plain Python task, by a description such as "returns 0".

    A trivial function always has the same outcome (of ``CONSTANTS`` or of the reference solution), or returns its first
    argument.
    """
    some = [outcome for a in reference for outcome in a.finding.outcomes]
    first = next(iter(inspect.signature(task.fn).parameters), None)
    constants = {_does(outcome): outcome for outcome in [*CONSTANTS, *some]}
    found = {does: lambda _, outcome=outcome: outcome for does, outcome in constants.items()}
    return found | {"returns its first argument": lambda case: Outcome(case.get(first))}


def _knowing(task: Task, reference: list[AskFinding]) -> Iterator[Trivial]:
    """Yield programs that give right results for public cases, and one constant result for all hidden cases."""
    known = [(a.ask, _marked(a, reference)) for a in reference]
    constants = {"returns None": Outcome(None)}
    for _, outcomes in known:
        constants |= {_does(o): o for o in [o for is_public, o in outcomes if not is_public][:1]}
    for does, one in constants.items():
        found = [
            AskFinding(ask, Finding(outcomes=[o if is_public else one for is_public, o in outcomes]))
            for ask, outcomes in known
        ]
        yield Trivial(task, f"{KNOWS} and otherwise {does}", found)


def _marked(of: AskFinding, reference: list[AskFinding]) -> list[tuple[bool, Outcome]]:
    """Return (whether the case is public, its outcome) for each case in ``of``."""
    if not of.finding.outcomes:
        return []
    calls = [a.ask.of for a in reference if isinstance(a.ask.of, Cases)]
    public = [encode(case) for cases in calls for case in cases.public]
    return [(case in public, outcome) for case, outcome in zip(of.ask.encoded, of.finding.outcomes, strict=True)]


def _does(outcome: Outcome) -> str:
    return f"raises {outcome.error}" if outcome.error else show_outcome(outcome).replace("returned", "returns", 1)


def _traced(grader: Grader, exercise: Exercise, reference: list[AskFinding]) -> Iterator[Trivial]:
    own = "import jax\n" + reference_source(exercise, answers(grader.course, exercise, "verify"))
    tries = [(t, does) for does in TRACED for t in exercise.tasks.values() if t.kind != "function"]
    texts = [
        (own + TRACED[does].format(task=task.name), [a.ask for a in reference if a.ask.task == task.name])
        for task, does in tries
    ]
    for (task, does), found in zip(tries, each_tried(grader, texts), strict=True):
        if found:
            yield Trivial(task, does, found)


def _tries(programs: Iterable[Trivial]) -> Iterator[list[Trivial]]:
    alike: dict[str, list[Trivial]] = {}
    for one in programs:
        yield [one]
        alike.setdefault(one.does, []).append(one)
    yield from (some for some in alike.values() if len(some) > 1)


def earned(exercise: Exercise, reference: list[AskFinding], programs: Iterable[Trivial]) -> list[Check]:
    """Return the checks that still pass after trivial programs replace their tasks."""
    tasks = {one.task for one in programs}
    passed = _passed(exercise, reference, [a for one in programs for a in one.found])
    return [check for check in passed if tasks & set(check.tasks)]


def _passed(exercise: Exercise, reference: Iterable[AskFinding], found: Iterable[AskFinding]) -> list[Check]:
    """Return the checks that pass with the results ``found``, and with the reference's results for other requests."""
    replaced = {a.ask: a for a in found}
    results = judge_checks(exercise, [replaced.get(a.ask, a) for a in reference], public=False)
    return [exercise.checks[r.name] for r in results if r.status == "passed"]


def _problem(check: Check, programs: list[Trivial]) -> str:
    who = " and ".join(one.task.name for one in programs)
    mend = "draw hidden cases with different results, or " if programs[0].does.startswith(KNOWS) else ""
    return (
        f"{who}: a function that only {programs[0].does} earns {counted(check.points, 'point')} in {check.name}: "
        f"{mend}let the check come after a check of values (after=...)"
    )


def given_keys(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each function in learners' files that always returns a question's right answer."""
    for question in exercise.questions.values():
        keys = keys_of(question)
        for part, takes in _functions(exercise, [*question.params]) if len(keys) > 1 else ():
            if _returns_keys(_value(exercise, part), takes, keys):
                yield f"learners get {part.name}, which returns the answer of {question.name}: leave {part.name} out"


def _returns_keys(function: Callable[..., Any], takes: Mapping[str, str], keys: Iterable[Key]) -> bool:
    """Return True if a function returns the question's right answer for all its random numbers.

    Args:
        takes: maps each parameter of the function to the question's parameter whose value it gets.
        keys: the right answers.
    """
    for drawn, kind, key in keys:
        try:
            given = kind.want(function(**{own: drawn[of] for own, of in takes.items()}))
        except Exception:  # The function raises an error, or its result is not an answer of this kind.
            return False
        if not kind.are_close(given, key):
            return False
    return True


def given_away_problems(grader: Grader, exercise: Exercise, reference: Sequence[AskFinding]) -> Iterator[str]:
    """Yield a problem for each function in learners' files that passes all checks of a task.

    Only functions with the parameter names of the task, or with as many parameters as the task, are tried.

    Args:
        reference: the results of running the reference solution.
    """
    tries = candidates(exercise)
    called = [(task, given, _called(grader.course, exercise, task, given, takes)) for task, given, takes in tries]
    called = [one for one in called if one[2]]
    texts = [(text, [a.ask for a in reference if a.ask.task == task.name]) for task, _, text in called]
    for (task, given, _), findings in zip(called, each_tried(grader, texts), strict=True):
        passed = _passed(exercise, reference, findings)
        if findings and all(check in passed for check in exercise.checks_of(task)):
            yield (
                f"learners get {given.name}, and calling it solves {task.name}: leave {given.name} out, or "
                "make the task require more"
            )


def _called(course: Course, exercise: Exercise, task: Task, given: Statement, takes: Mapping[str, str]) -> str:
    """Return the solution with one task replaced by a call of a function that learners get; '' if not possible."""
    replaced = Alternative(given.name, task.fn, task)
    try:
        whole = reference_source(exercise, answers(course, exercise, "verify"), replaced)
    except CourseError:
        return ""
    names = [*inspect.signature(task.fn).parameters]
    return whole + CALL.format(given=given.name, task=task.name, names=names, takes=dict(takes))


def candidates(exercise: Exercise) -> Iterator[tuple[Task, Statement, dict[str, str]]]:
    """Yield each task with each function in learners' files that can take the task's arguments.

    The dict maps each parameter of the function to the task's parameter whose argument it gets.
    """
    for task in exercise.tasks.values():
        parameters = [*inspect.signature(task.fn).parameters]
        yield from ((task, part, takes) for part, takes in _functions(exercise, parameters))


def _functions(exercise: Exercise, parameters: Sequence[str]) -> Iterator[tuple[Statement, dict[str, str]]]:
    for part in statements(exercise, grading=True):
        if part.kind in ("given", "helper") and (takes := _takes(exercise, part, parameters)):
            yield part, takes


def _value(exercise: Exercise, part: Statement) -> Any:
    return next((space[part.name] for space in exercise.spaces if part.name in space), None)


def _takes(exercise: Exercise, given: Statement, of_task: Sequence[str]) -> dict[str, str]:
    """Map each required parameter of a function to a parameter in ``of_task``; {} if they do not match.

    Parameters match by name if ``of_task`` has all names of the function's parameters, else by position.
    """
    value = _value(exercise, given)
    if not inspect.isfunction(value):
        return {}
    parameters = inspect.signature(value).parameters.values()
    own = [one.name for one in parameters if one.default is one.empty and one.kind in BY_NAME]
    if any(one.default is one.empty and one.kind not in BY_NAME for one in parameters):
        return {}
    if {*own} <= {*of_task}:
        return {name: name for name in own}
    return dict(zip(own, of_task, strict=True)) if len(own) == len(of_task) else {}
