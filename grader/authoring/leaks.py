"""Find solution lines and other secrets in the files that learners get."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from grader.course.copying import copied
from grader.course.loading import Course
from grader.course.statements import Statement, statements
from grader.exercise import Exercise

LEAST_LINE = 16  # shortest line that is searched for, in characters; shorter lines may occur in any file
IDIOM = 3  # a line that occurs in at least this many exercises is an idiom and reveals nothing
LEAST_OPERATORS = 2
NAMES_ALONE = re.compile(r"[\w\s,]*")  # a line with only names, such as a call's arguments, reveals nothing
SIGNS = str.maketrans({"·": "*", "×": "*", "−": "-", "÷": "/", "'": '"'})


def leaks(course: Course, made: dict[str, str]) -> Iterator[str]:
    """Yield each secret line and each seed in learners' files, and each part of a solution that texts reveal."""
    secrets = dict(secret_lines(course))
    for path, text in made.items():
        for line in text.splitlines():
            found = secrets.get(normal_form(line))
            if found:
                yield f"exercises/{path} holds a line of {found}: {line.strip()[:80]}"
    seed = course.config.seed
    for path, text in made.items():
        if len(seed) > 3 and seed in text:
            yield f"exercises/{path} holds the course's seed"

    yield from told_solutions(course)


def told_solutions(course: Course) -> Iterator[str]:
    """Yield solution lines and answer formulas that statements, docstrings, questions and hints contain.

    The last hint of a task or question is not searched, because it may show the solution.
    """
    exercises = [course.exercise(name) for name in course.usable(course.module_of)[0]]
    used = Counter(line for exercise in exercises for line in _all_lines(exercise))
    for exercise in exercises:
        solution = list(_solution(exercise, used))
        for where, text in _texts(exercise):
            folded = _folded(text)
            for what, secret in solution:
                if re.search(rf"(?<![\w.*/]){re.escape(_folded(secret))}(?![\w*/(\[])", folded):
                    yield f"{exercise.id}: {where} shows {what}: {secret.strip()[:80]}"


def _texts(exercise: Exercise) -> Iterator[tuple[str, str]]:
    """Yield (place, text) for each text of an exercise that learners read, without last hints."""
    yield "the statement", f"{exercise.statement}\n{exercise.further}"
    for task in exercise.tasks.values():
        yield f"the docstring of {task.name}", task.fn.__doc__ or ""
    for question in exercise.questions.values():
        yield f"the text of {question.name}", question.text
    for asked in [*exercise.tasks.values(), *exercise.questions.values()]:
        yield from ((f"hint {n} of {asked.name}", hint) for n, hint in enumerate(asked.hints[:-1], 1))


def _solution(exercise: Exercise, used: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    """Yield (description, code) for lines of tasks, answers and private functions, and for formulas of answers."""
    for part in statements(exercise, grading=False):
        if part.kind in ("task", "question", "private"):
            for line in _secret(part, set()):
                idiom = used[normal_form(line)] >= IDIOM
                if len(normal_form(line)) >= LEAST_LINE and not idiom and not NAMES_ALONE.fullmatch(line):
                    yield f"a line of {part.name}", line.split("  #")[0]
        if part.kind == "question":
            yield from ((f"the answer of {part.name}", formula) for formula in _formulas(part))


def _formulas(part: Statement) -> Iterator[str]:
    """Yield the expressions with at least LEAST_OPERATORS operators that a question's function returns."""
    for node in ast.walk(part.node):
        if isinstance(node, ast.Return) and node.value is not None:
            operators = sum(isinstance(inner, ast.BinOp) for inner in ast.walk(node.value))
            if operators >= LEAST_OPERATORS:
                yield copied(part, node.value)


def _folded(text: str) -> str:
    """Return the text in a form for comparison: ASCII operators and quotes, white space only between words."""
    text = " ".join(text.translate(SIGNS).split())
    return re.sub(r" ?([-+*/%()\[\]{},.=<>@:]) ?", r"\1", text)


def secret_lines(course: Course) -> Iterator[tuple[str, str]]:
    """Yield (line, owner) for lines of solutions, hidden checks, hidden cases, answers and misconceptions.

    Skip lines that learners get on purpose, short lines, and idioms (lines that occur in three exercises or more).
    """
    exercises = [course.exercise(name) for name in course.usable(course.module_of)[0]]
    used = Counter(line for exercise in exercises for line in _all_lines(exercise))
    shown = {normal_form(line) for e in exercises for line in _public_checks(e)}
    for exercise in exercises:
        parts = statements(exercise, grading=True)
        public = {c.name for c in exercise.checks.values() if c.public}
        shown_lines = shown | _shown_lines(exercise, parts, public)
        for part in parts:
            for line in map(normal_form, _secret(part, public)):
                if len(line) >= LEAST_LINE and line not in shown_lines and used[line] < IDIOM:
                    yield line, f"{exercise.id}/{part.name}"


def _all_lines(exercise: Exercise) -> set[str]:
    return {normal_form(line) for line in f"{exercise.source}\n{exercise.grading_source}".splitlines()}


def _shown_lines(exercise: Exercise, parts: Sequence[Statement], public: set[str]) -> set[str]:
    """Return the lines of an exercise that learners get: given code, and hints."""
    given = {normal_form(line) for part in parts for line in _given(part, public).splitlines()}
    return given | {normal_form(hint) for task in exercise.tasks.values() for hint in task.hints}


def _public_checks(exercise: Exercise) -> list[str]:
    """Return the lines of public checks. Such a line is not secret if it also occurs in a hidden check."""
    public = {c.name for c in exercise.checks.values() if c.public}
    return [line for p in statements(exercise, grading=True) if p.name in public for line in p.text.splitlines()]


def normal_form(line: str) -> str:
    """Return a line without white space and comment, so that lines with different formatting compare equal."""
    return "".join(line.split("  #")[0].split())


def _given(part: Statement, public: set[str]) -> str:
    """Return the part of a top-level Python statement that learners are given."""
    if part.kind in ("given", "helper", "import", "exercise", "doc") or part.name in public:
        return part.text
    if part.kind in ("task", "question") and isinstance(part.node, ast.FunctionDef):
        node = part.node
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        body = node.body[0].end_lineno or node.lineno
        return "\n".join(part.text.splitlines()[: body - first + 1])
    return ""


def _secret(part: Statement, public: set[str]) -> list[str]:
    """Return body lines of solutions, answers, misconceptions, hidden checks and private functions."""
    if not isinstance(part.node, ast.FunctionDef) or part.kind in ("given", "helper") or part.name in public:
        return []
    lines = part.text.splitlines()
    first = min([part.node.lineno, *(d.lineno for d in part.node.decorator_list)])
    start = part.node.body[0]
    skip = (
        (start.end_lineno or 0)
        if ast.get_docstring(part.node) and part.kind in ("task", "question")
        else part.node.lineno
    )
    return lines[skip - first + 1 :]
