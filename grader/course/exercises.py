"""Load an ``Exercise``: execute an author's file and its grading file.

The grading file contains checks and misconceptions. It is in the folder ``grading/`` beside the author's file.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import math
import re
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jinja2

from grader.course.config import FURTHER, GRADING, CourseError
from grader.exercise import AuthorError, Exercise
from grader.exercise.declarations import judged_calls
from grader.judging.answers import render_question, units_known
from grader.judging.units import BadAnswer

# A thread holds this lock while an exercise's module is in sys.modules, from where the exercise's grading file imports
# it. All threads share sys.modules.
_NAMED = threading.Lock()


def load_exercise(path: Path, name: str, module: str, rtol: float) -> Exercise:
    """Execute an author's file and the grading file beside it. Raises CourseError with the faulty line."""
    try:
        source = _text(path)
    except OSError:
        raise CourseError(f"{path} is missing; write it with `shardlings new {module}/{name}`") from None
    space = _executed(path, f"shardlings_course_{name}", source)
    exercise = space.__dict__.get("exercise")
    if not isinstance(exercise, Exercise):
        raise CourseError(f"{path}: no `exercise = Exercise(...)` at the top of the file")
    exercise.id, exercise.module, exercise.source = name, module, source
    exercise.spaces = [vars(space)]
    document = inspect.cleandoc(space.__doc__ or "").strip()  # Python before 3.13 keeps a docstring's indentation
    exercise.statement, exercise.further = map(str.strip, divided(document))
    if not exercise.statement.startswith("# "):
        raise CourseError(f"{path}: its docstring must be the exercise's statement and start with '# Title'")
    _load_grading(path.parent / GRADING / path.name, exercise, space)
    exercise.data = data_in(path.parent / GRADING)
    for question in exercise.questions.values():
        question.usual_rtol = rtol
        if question.name in exercise.figures:
            question.figures = tuple(exercise.figures[question.name])
    _expect_questions(path, exercise)
    return exercise


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CourseError(f"{path} cannot be read: {error}") from None


def divided(document: str) -> tuple[str, str]:
    """Return the text above and the text below the line ``## Going further`` of an exercise's statement.

    Without this line, return (``document``, '').
    """
    found = re.search(rf"^{FURTHER}[ \t]*$", document, re.MULTILINE)
    return (document[: found.start()], document[found.end() :]) if found else (document, "")


def expect_devices(exercise: Exercise, devices: int) -> None:
    """Raise CourseError if a check runs a program on a mesh of more than ``devices`` devices."""
    calls = [call for call in judged_calls(exercise.checks.values()) if not call.timing]
    for mesh in (m for call in calls for m in call.meshes):
        need = math.prod(mesh.values())
        if need > devices:
            raise CourseError(
                f"{exercise.id} needs {need} devices for its mesh {dict(mesh)}, but course.yaml says devices: {devices}"
            )


def _expect_questions(path: Path, exercise: Exercise) -> None:
    """Raise CourseError if a question has an unknown unit, no valid parameters, or a text that does not render."""
    for question in exercise.questions.values():
        at = f"{path}:{_line_of_function(question.fn)}: {question.name}"
        try:
            units_known(question)
            drawn = next(question.variants(), None)
            if drawn is None:
                raise CourseError(f"{at}: no parameters satisfy its `where`")
            render_question(question, drawn)
        except BadAnswer as error:
            raise CourseError(f"{at}: {error}") from None
        except jinja2.TemplateError as error:
            raise CourseError(f"{at}: its text does not render: {error}") from None
        except CourseError:
            raise
        except Exception as error:  # `where` is the author's code, which may raise any error
            raise CourseError(f"{at}: {type(error).__name__}: {error}") from None


def _line_of_function(fn: Callable[..., Any]) -> int:
    code = getattr(inspect.unwrap(fn), "__code__", None)
    return code.co_firstlineno if code else 1


def _executed(path: Path, name: str, source: str) -> types.ModuleType:
    space = types.ModuleType(name)
    space.__file__ = str(path)
    sys.modules[space.__name__] = space
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), space.__dict__)
    except SyntaxError as error:
        raise CourseError(f"{path}:{error.lineno or 1}: {error.msg}") from None
    except (Exception, SystemExit) as error:
        line = next(
            (n for frame, n in reversed(list(traceback.walk_tb(error.__traceback__)))
             if frame.f_code.co_filename == str(path)), 1,
        )  # fmt: skip
        kind = "" if isinstance(error, AuthorError) else f"{type(error).__name__}: "
        raise CourseError(f"{path}:{line}: {kind}{error}") from None
    return space


def _load_grading(path: Path, exercise: Exercise, space: types.ModuleType) -> None:
    """Execute the grading file (checks and misconceptions), if there is one."""
    try:
        exercise.grading_source = _text(path)
    except FileNotFoundError:
        return
    learners = {**exercise.tasks, **exercise.questions}
    before = _proofs(exercise)
    with _importable(space, path.stem):
        second = _executed(path, f"{space.__name__}_{GRADING}", exercise.grading_source)
    exercise.spaces = [*exercise.spaces, vars(second)]
    # ``build`` joins the two files, so one name must not have two values.
    for name in sorted(vars(second).keys() & vars(space).keys()):
        if not name.startswith("__") and vars(second)[name] is not vars(space)[name]:
            raise CourseError(f"{path}: {name} has a different value in {space.__file__}; rename one of them")
    for name, thing in {**exercise.tasks, **exercise.questions}.items():
        if name not in learners:  # a learner's file would lack a task or question that the grading file declares
            line = _line_of_function(thing.fn)
            raise CourseError(
                f"{path}:{line}: {name} is neither a check nor a misconception; declare it in {space.__file__}"
            )
    if _proofs(exercise) == before:
        raise CourseError(f"{path}: the file has no check and no misconception for the `exercise` in {space.__file__}")


def data_in(folder: Path) -> str:
    """Return SHA-256 over a folder's data files (all but Python files); '' without data files."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc"))
    each = [hashlib.sha256(f"{p.relative_to(folder)}\0".encode() + p.read_bytes()).digest() for p in files]
    return hashlib.sha256(b"".join(each)).hexdigest() if each else ""


def _proofs(exercise: Exercise) -> int:
    return len(exercise.checks) + len(exercise.misconceptions) + len(exercise.alternatives)


@contextlib.contextmanager
def _importable(space: types.ModuleType, name: str) -> Iterator[None]:
    """Make ``import NAME`` and ``from NAME import ...`` use the module ``space`` during the ``with`` block."""
    with _NAMED:
        before = sys.modules.get(name)
        sys.modules[name] = space
        try:
            yield
        finally:
            del sys.modules[name]
            if before is not None:
                sys.modules[name] = before
