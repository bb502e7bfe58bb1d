"""Check an exercise's declarations: learners get all they need, and every check gives points."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grader.authoring import modes
from grader.course.exercises import FURTHER
from grader.exercise import Exercise, Task

LEAST_HINTS = 1
PICTURE_WIDTH = 76


def declaration_problems(exercise: Exercise, most_words: int | None = None) -> Iterator[str]:
    """Yield problems: missing parts, a statement of more than ``most_words`` words, checks without points."""
    if most_words is not None and (words := words_in(exercise.statement)) > most_words:
        yield (
            f"the statement has {words} words before {FURTHER!r}, but course.yaml allows statement_words: "
            f"{most_words}; move sentences that the task does not need below this heading"
        )
    for line in wide_lines(f"{exercise.statement}\n{exercise.further}"):
        yield f"a picture has a line of over {PICTURE_WIDTH} characters, which terminals break: {line.strip()[:60]}..."
    if not exercise.tasks and not exercise.questions:
        yield "the exercise has neither a task to write nor a question to answer"
    if exercise.tasks and not any(c.public for c in exercise.checks.values()):
        yield "the exercise has no public check, so learners could check nothing: mark a check with public=True"
    for task in exercise.tasks.values():
        yield from _task_problems(exercise, task)
    yield from modes.undecided_modes(exercise)
    yield from (
        f"{check.name} has no points: give points=... above 0"
        for check in exercise.checks.values()
        if check.points <= 0
    )


def _task_problems(exercise: Exercise, task: Task) -> Iterator[str]:
    if len(task.hints) < LEAST_HINTS:
        yield f"{task.name} has no hint: give hints=[...], with the hint nearest to the solution last"
    if not exercise.checks_of(task):
        yield f"{task.name} has no check: add an exercise.call of this task and an @exercise.check of that call"
    if not any(s.of is task for s in exercise.misconceptions.values()):
        yield f"{task.name} has no misconception to prove its checks: add an @exercise.misconception(fails=...)"


def words_in(statement: str) -> int:
    """Return the number of words in a statement, without fenced blocks."""
    prose = re.sub(r"^[ \t]*```.*?^[ \t]*```", "", statement, flags=re.MULTILINE | re.DOTALL)
    return sum(any(map(str.isalnum, word)) for word in prose.split())


def wide_lines(statement: str) -> list[str]:
    """Return the lines of fenced or indented blocks that are too wide for a terminal of 80 columns."""
    found, fenced = [], False
    for line in statement.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif (fenced or line.startswith("    ")) and len(line) > PICTURE_WIDTH:
            found.append(line)
    return found
