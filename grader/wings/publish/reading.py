"""The solutions as Markdown pages, with statements, checks, and why misconceptions (known mistakes) fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from grader.course.build import products
from grader.course.loading import Course
from grader.course.reference import answers, reference_source
from grader.course.sources import cell
from grader.course.statements import Statement, statements, undecorated
from grader.course.stubs import further, question_text
from grader.exercise import Check, Exercise, Misconception, Quantity, Question, Table
from grader.wings.publish.student import EXERCISES, common_files, page, refuse_leaks, seeds

SOLUTIONS = "solutions"
ANYBODY = "anybody"  # a made-up student; where numbers differ by student, examples show this student's numbers
OWN = "\n\nEach student has different numbers. These are an example."


def solution_files(course: Course) -> dict[str, str]:
    """Return the files of the branch ``solutions``, as path -> text.

    Raises:
        CourseError: the course cannot be released, or a file contains the course's secret seed.
    """
    files = {f"{EXERCISES}/{path}": text for path, text in products(course).items()} | common_files(course)
    for name, module in course.module_of.items():
        exercise = course.exercise(name)
        given = answers(course, exercise, ANYBODY)
        files[f"{SOLUTIONS}/{module}/{name}.py"] = reference_source(exercise, given).rstrip("\n") + "\n"
        files[f"{SOLUTIONS}/{module}/{name}.md"] = solution_page(course, exercise, given)
    files["README.md"] = page(course, "solutions.md", **{"@INDEX@": _index(course)})
    refuse_leaks(seeds(course, files))
    return files


def _index(course: Course) -> str:
    parts = []
    for module in course.config.modules:
        if not module.exercises:
            continue
        rows = [
            f"## {module.id}: {module.title}",
            "",
            "| exercise | | misconceptions | solution |",
            "|---|---|--:|---|",
        ]
        for name in module.exercises:
            exercise, at = course.exercise(name), f"{SOLUTIONS}/{module.id}/{name}"
            stars = "★" * exercise.stars
            rows.append(
                f"| [{cell(exercise.title)}]({at}.md) | {stars} | {len(exercise.misconceptions)} "
                f"| [{name}.py]({at}.py) |"
            )
        parts.append("\n".join(rows))
    return "\n\n".join(parts)


def solution_page(course: Course, exercise: Exercise, given: dict[str, str]) -> str:
    """Return the page of one exercise: statement, solution, questions, checks, misconceptions."""
    text = {part.name: part for part in statements(exercise, grading=True) if part.name}
    parts = [exercise.statement]
    if exercise.tasks:
        parts += ["## The solution", fenced(reference_source(exercise, {}).strip("\n"))]
    for other in exercise.alternatives.values():
        doc = " ".join((other.fn.__doc__ or "").split())
        parts += [f"### `{other.of.name}` otherwise", doc, _code(text, other.name)]
    for question in exercise.questions.values():
        parts += _question(course, question, given[question.name], text)
    if exercise.checks:
        parts += ["## What is checked", _checks(exercise)]
    if exercise.misconceptions:
        parts.append("## Known mistakes, and why they fail")
        for misconception in exercise.misconceptions.values():
            parts += _misconception(exercise, misconception, text)
    if exercise.further:
        parts.append(further(exercise))
    return "\n\n".join(parts) + "\n"


def _question(course: Course, question: Question, answer: str, text: dict[str, Statement]) -> Iterator[str]:
    own = course.config.variants.mode == "per_student"
    yield f"## Question `{question.name}`"
    yield question_text(question, course.params(question, ANYBODY)) + (OWN if own else "")
    numbers = isinstance(question.answer, Quantity | Table)
    yield f"**Answer:** `{answer}`. This code gives the answer for any numbers{', in SI units' if numbers else ''}:"
    yield _code(text, question.name)


def _checks(exercise: Exercise) -> str:
    rows = [
        f"| {check.points:g} | {cell(check.label)} | {'' if check.public else 'hidden'} |"
        for check in exercise.checks.values()
    ]
    return "\n".join(["| points | | |", "|--:|---|---|", *rows])


def _misconception(exercise: Exercise, misconception: Misconception, text: dict[str, Statement]) -> Iterator[str]:
    yield f"### `{misconception.name}`, for `{misconception.of.name}`"
    yield f"> {' '.join(misconception.hint.split())}"
    failed = [exercise.checks[name] for name in misconception.fails if name in exercise.checks]
    yield (
        f"Fails: {'; '.join(map(_label, failed))}."
        if failed
        else f"This is a wrong answer to `{misconception.of.name}`."
    )
    yield _code(text, misconception.name)


def _label(check: Check) -> str:
    return f"{' '.join(check.label.split())}{'' if check.public else ' (hidden)'}"


def _code(text: dict[str, Statement], name: str) -> str:
    """Return the code that declares this part of an exercise. For a declaration in a loop, return a remark."""
    part: Any = text.get(name)
    return (
        fenced(undecorated(part).strip("\n"))
        if part is not None
        else "(this part is declared in a loop; see the file in the course)"
    )


def fenced(code: str) -> str:
    """Return Python code in a Markdown fence that is longer than any run of backticks in the code."""
    ticks = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", code) or [""]))
    return f"{ticks}python\n{code}\n{ticks}"
