"""Find functions in learners' files that solve a whole task, or that return the right answer to a question."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from grader.authoring.shown_keys import Key, keys_of
from grader.authoring.together import each_tried
from grader.batch.grade import Grader
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.reference import answers, reference_source
from grader.course.statements import Statement, statements
from grader.exercise import Alternative, Exercise, Task
from grader.judging.judge import judge_checks
from grader.judging.seen import Answered

BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
CALL = """
{given}_alone = {task}
def {task}(*args, **keywords):
    named = dict(zip({names!r}, args)) | keywords
    return {given}_alone(**{{own: named[of_task] for own, of_task in {takes!r}.items()}})
"""


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


def given_away_problems(
    course: Course, grader: Grader, exercise: Exercise, reference: Sequence[Answered]
) -> Iterator[str]:
    """Yield a problem for each function in learners' files that passes all checks of a task.

    Only functions with the parameter names of the task, or with as many parameters as the task, are tried.

    Args:
        reference: the results of running the reference solution.
    """
    tries = candidates(exercise)
    called = [(task, given, _called(course, exercise, task, given, takes)) for task, given, takes in tries]
    called = [one for one in called if one[2]]
    texts = [(text, [a.ask for a in reference if a.ask.task == task.name]) for task, _, text in called]
    for (task, given, _), findings in zip(called, each_tried(grader, texts), strict=True):
        if _passes(exercise, task, reference, findings):
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


def _passes(exercise: Exercise, task: Task, reference: Iterable[Answered], found: Iterable[Answered]) -> bool:
    replaced = {a.ask: a for a in found}
    results = judge_checks(exercise, [replaced.get(a.ask, a) for a in reference], public=False)
    status = {result.name: result.status for result in results}
    checks = exercise.checks_of(task)
    return bool(replaced) and all(status.get(check.name) == "passed" for check in checks)
