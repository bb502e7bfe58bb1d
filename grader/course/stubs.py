"""Make the learner's file and the pages that learners read.

The file has the statement, given code, a place for each task and question, and the text 'Going further'.
"""

from __future__ import annotations

import textwrap
from typing import Any

import jinja2

from grader.course.config import FURTHER, README, CourseError
from grader.course.loading import Course
from grader.course.statements import (
    Statement,
    expect_complete,
    needed_imports,
    quotable,
    specification,
    statements,
    undecorated,
)
from grader.exercise import Choice, Code, Exercise, Question
from grader.judging.answers import heading, render_question, render_text

TRACED = """\
**Traced functions.** The grader traces your function into a program. Compute with `jnp` and `jax.lax`. A traced array
has no values that Python can read, so `float(x)`, `if x[0] > 0` and `np.asarray(x)` raise an error. You may print
arrays and look at their shardings."""
USUAL = ["import jax", "import jax.numpy as jnp", "from jax.sharding import PartitionSpec as P"]


def further(exercise: Exercise) -> str:
    """Return the text 'Going further' with its heading, which learners read below their code; '' if there is none."""
    return f"{FURTHER}\n\n{exercise.further}" if exercise.further else ""


def whole(exercise: Exercise) -> str:
    """Return the exercise's statement, followed by the text 'Going further'."""
    return "\n\n".join(part for part in (exercise.statement, further(exercise)) if part)


def module_page(course: Course, module: str) -> str:
    """Return the module's title and the notes for all its exercises. Raises CourseError for an unusable README.md."""
    title, text = _written(course, module) or f"# {course.module(module).title}", module_text(course, module)
    return f"{title.splitlines()[0]}\n\n{text}".strip()


def module_text(course: Course, module: str) -> str:
    """Return the notes for all exercises of a module: the text of its README.md without the title, then ``TRACED``.

    Only modules with tasks that the grader traces with JAX get the paragraph ``TRACED``. Raises CourseError if the
    README.md cannot be read, or does not start with a title.
    """
    text = "\n".join(_written(course, module).splitlines()[1:]).strip()
    exercises = map(course.exercise, course.usable(course.module(module).exercises)[0])
    traced = any(task.kind != "function" for exercise in exercises for task in exercise.tasks.values())
    if traced and TRACED not in text:  # in a learner's folder, README.md already has this paragraph
        text = f"{text}\n\n{TRACED}".strip()
    return text


def _written(course: Course, module: str) -> str:
    path = course.root / ("solutions" if course.solved else "") / module / README
    try:
        text = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from None
    if not text.startswith("# "):
        raise CourseError(f"{path}: it must start with '# Title'")
    return text


def stub_source(course: Course, exercise: Exercise) -> str:
    parts = statements(exercise)
    body = [undecorated(p) for p in parts if p.kind == "given"]
    body += [stub(p) for p in parts if p.kind == "task"]
    body += [_question_stub(q, shared_params(course, q)) for q in exercise.questions.values()]
    code = "\n\n".join(b.strip("\n") + "\n" for b in body)
    doc = f'"""{quotable(exercise.statement)}\n\n{_commands(course, exercise)}\n"""\n'
    # The grader does not take comments for a learner's code.
    comments = "".join(f"# {line}".rstrip() + "\n" for line in further(exercise).splitlines())
    more = f"\n\n{comments}" if exercise.further else ""
    text = f"{doc}\n{stub_imports(parts, exercise, code)}\n\n\n{code}{more}"
    expect_complete(exercise, text, kept="learners need this name in their file, so mark its definition as given")
    return text


def _commands(course: Course, exercise: Exercise) -> str:
    lines = [f"Check your work: shardlings check {exercise.id}"]
    if module_text(course, exercise.module):
        lines.append(f"Notes on all exercises of this module: see {README}, or run shardlings show {exercise.module}")
    if exercise.further:
        lines.append('The text "Going further" is below the code.')
    return "\n".join(lines)


def stub(statement: Statement) -> str:
    """Return a task's signature and docstring, and the line that the learner replaces."""
    head = specification(Statement(statement.kind, statement.node, undecorated(statement)))
    return f'{head}\n    # TODO: write this function\n    raise NotImplementedError("{statement.name}")\n'


def stub_imports(parts: list[Statement], exercise: Exercise, code: str) -> str:
    """Return the imports of a learner's file: JAX if a task is traced with JAX, and the imports that ``code`` needs.

    If no import is needed, return ``import math``, for learners who compute in plain Python.
    """
    used = needed_imports(parts, used_by=code).splitlines()
    usual = [] if all(t.kind == "function" for t in exercise.tasks.values()) else USUAL
    return "\n".join([*usual, *(line for line in used if line not in usual)]) or "import math"


def _question_stub(question: Question, params: dict[str, Any] | None) -> str:
    head = f"# Question {question.name} [{heading(question)}]"
    return f"{head}\n{question_comment(question, params)}\n{answer_line(question)}\n"


def answer_line(question: Question) -> str:
    """Return the line for a learner's answer."""
    todo = (
        "do not change this line: the staff reads your code instead"
        if isinstance(question.answer, Code)
        else "TODO: your answer"
    )
    return f"{question.name} = None  # {todo}"


def question_comment(question: Question, params: dict[str, Any] | None) -> str:
    """Return a question as a comment above the answer line, without numbers that differ between students."""
    text = own_text(question, question.name) if params is None else question_text(question, params)
    paragraphs = text.split("\n\n")  # line breaks within a paragraph have no meaning
    lines = [line for p in paragraphs for part in _sentences(p) for line in (textwrap.wrap(part, 96) or [""])]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def own_text(question: Question, shown: str) -> str:
    """Return the text for a question whose numbers or options differ between students.

    The text names the command that shows these numbers and options.
    """
    run = f"run `shardlings show {shown}`."
    return f"Your numbers: {run}" if question.params else f"{render_text(question, {})}\n\nYour options: {run}"


def question_text(question: Question, params: dict[str, Any]) -> str:
    """Return the question's text with ``params``.

    Raises CourseError if the text cannot be rendered, or if two options are equal.
    """
    try:
        return render_question(question, params)
    except (jinja2.TemplateError, ValueError) as error:
        raise CourseError(f"the text of {question.name} cannot be rendered: {error}") from None


def shared_params(course: Course, question: Question) -> dict[str, Any] | None:
    """Return the numbers that all students share; None if numbers or the order of options differ between students."""
    varies = bool(question.params) or isinstance(question.answer, Choice)
    return None if varies and course.config.variants.mode == "per_student" else course.params(question)


def _sentences(paragraph: str) -> list[str]:
    """Return two lines: the paragraph's text on one line, and an empty line.

    If the paragraph is a list or begins with "Answer ", return its lines unchanged.
    """
    lines = paragraph.splitlines()
    if lines and lines[0].startswith(("Answer ", "- ")):
        return lines
    return [" ".join(lines), ""]
