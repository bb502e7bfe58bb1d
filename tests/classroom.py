"""Submitted notebooks, made from the course's own solutions and misconceptions. Not a test file."""

from __future__ import annotations

import ast
import json
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from grader.course.build import build
from grader.course.config import GRADING
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.course.reference import answer_by, reference_source
from grader.exercise import Exercise, Misconception, Quantity, Question, Task
from grader.integrations.nbgrader.folder import cell_name
from grader.judging.answers import params_for

DONE, LEFT = "done", "left"
ROOT = Path(__file__).resolve().parent.parent


def copied(folder: Path, **modules: list[str]) -> Course:
    """Build a copy of the repository's course.

    Args:
        folder: where to build the copy.
        modules: lists of exercises, by module. If given, the copy has only these exercises.
    """
    folder.mkdir(parents=True)
    settings = yaml.safe_load((ROOT / "course.yaml").read_text(encoding="utf-8"))
    if modules:
        kept = [m for m in settings["modules"] if m["id"] in modules]
        settings["modules"] = [m | {"exercises": modules[m["id"]]} for m in kept]
    (folder / "course.yaml").write_text(yaml.safe_dump(settings))
    for module in settings["modules"]:
        for name in module["exercises"]:
            place = Path("solutions", module["id"], f"{name}.py")
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / place, folder / place)
            grading = place.parent / GRADING / place.name
            if (ROOT / grading).exists():
                (folder / grading).parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / grading, folder / grading)
    build(find_course(folder))
    return find_course(folder)


def answers(
    course: Course, exercise: Exercise, misconception: Misconception | None, rng: random.Random | None
) -> dict[str, str]:
    """Return answers to an exercise's questions. The question of ``misconception`` gets the misconception's answer.

    All other answers are right. With ``rng``, numbers differ a little from the exact ones, but by less than the
    tolerance.
    """
    found = {}
    for question in exercise.questions.values():
        params = params_for(question, seed=course.config.variants.seed, student=None)
        author = misconception if misconception is not None and misconception.of is question else question
        if isinstance(question.answer, Quantity):
            value = author.fn(**params) * (1 + (rng.uniform(-1e-3, 1e-3) if rng else 0))
            found[question.name] = in_unit(question, value)
        else:
            found[question.name] = answer_by(author, question, params)
    return found


def in_unit(question: Question, value: float) -> str:
    from grader.judging.units import unit_of

    assert isinstance(question.answer, Quantity)
    return repr(value / unit_of(question.answer.unit)[0])


def pieces(course: Course, name: str, choice: str, rng: random.Random | None = None) -> dict[str, str]:
    """Return what a student writes into the cells of an exercise, by name of the task or question.

    ``choice`` is "done" (everything is right), "left" (all stubs stay) or the name of a misconception.
    """
    if choice == LEFT:
        return {}
    exercise = course.exercise(name)
    misconception = exercise.misconceptions.get(choice)
    text = reference_source(
        exercise, {}, misconception if misconception and isinstance(misconception.of, Task) else None
    )
    lines = text.splitlines(keepends=True)
    found: dict[str, str] = {}
    loose: list[str] = []
    for node in ast.parse(text).body:
        part = "".join(lines[node.lineno - 1 : node.end_lineno])
        if isinstance(node, ast.FunctionDef) and node.name in exercise.tasks:
            found[node.name] = part
        else:
            loose.append(part)
    if loose and found:
        first = next(iter(found))
        found[first] = "".join(loose) + "\n\n" + found[first]
    return found | {q: f"{q} = {a}" for q, a in answers(course, exercise, misconception, rng).items()}


def fill(book: dict[str, Any], course: Course, module: str, choices: dict[str, str], rng: random.Random | None = None) -> dict[str, Any]:  # fmt: skip
    """Fill a released notebook. ``choices`` has the choice for each exercise; exercises without a choice stay stubs."""
    book = json.loads(json.dumps(book))
    texts = {
        cell_name(name, piece): text
        for name in course.module(module).exercises
        for piece, text in pieces(course, name, choices.get(name, LEFT), rng).items()
    }
    for cell in book["cells"]:
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if grade_id in texts:
            cell["source"] = texts[grade_id]
    return book


def drawn(course: Course, module: str, seed: int) -> dict[str, str]:
    """Draw a choice for each exercise of one student: mostly "done", sometimes a misconception or "left"."""
    rng = random.Random(seed)
    choices = {}
    for name in course.module(module).exercises:
        misconceptions = list(course.exercise(name).misconceptions)
        choices[name] = rng.choices([DONE, LEFT, rng.choice(misconceptions or [DONE])], [5, 1, 4])[0]
    return choices


def touched(book: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Add a random comment to every solution, so that all submissions differ."""
    for cell in book["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            text = "".join(cell["source"])
            cell["source"] = f"# take {rng.randrange(10**9)}\n{text}"
    return book


def hand_in(root: Path, student: str, module: str, book: dict[str, Any] | bytes, timestamp: str = "") -> Path:
    """Write a submission into the folder from which nbgrader collects it."""
    place = root / "submitted" / student / module
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{module}.ipynb"
    path.write_bytes(book if isinstance(book, bytes) else json.dumps(book).encode())
    if timestamp:
        (place / "timestamp.txt").write_text(timestamp)
    return path


def make_class(course: Course, root: Path, module: str, students: int, start: int = 0) -> None:
    """Write submissions of ``students`` students. Two calls with equal arguments write equal submissions."""
    book = json.loads((root / "release" / module / f"{module}.ipynb").read_text(encoding="utf-8"))
    for seed in range(start, start + students):
        rng = random.Random(f"touch {seed}")
        done = fill(book, course, module, drawn(course, module, seed), rng)
        hand_in(root, f"student{seed:03}", module, touched(done, rng), "2026-11-01 10:00:00 UTC")


@contextmanager
def gradebook_of(root: Path) -> Iterator[Any]:
    """Open nbgrader's gradebook. Changes of the gradebook are saved."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{root}/gradebook.db") as gradebook:
        yield gradebook
        gradebook.db.commit()
