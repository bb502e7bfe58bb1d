"""The files of the two published branches.

The branch ``student`` has the exercises, the tool that checks them, and instructions. The branch ``solutions`` also has
the solutions as Markdown pages, with statements, checks, and why misconceptions (known mistakes) fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grader import __version__
from grader.authoring.leaks import leaks
from grader.course.build import products
from grader.course.config import CourseError
from grader.course.loading import EXAMPLE_SEED, Course
from grader.course.reference import answers, reference_source
from grader.course.sources import cell
from grader.course.statements import Statement, statements, undecorated
from grader.course.stubs import further, question_text
from grader.exercise import Check, Exercise, Misconception, Quantity, Question, Table
from grader.integrations.package import package_files, project_file

TEMPLATES = Path(__file__).parent / "templates"
EXERCISES, TOOL = "exercises", "tool"
LICENCES = ("LICENSE", "LICENSE.md", "LICENSE.txt", "COPYING")
IGNORED = ".venv/\n__pycache__/\n.ipynb_checkpoints/\n/*.zip\n"


def student_files(course: Course) -> dict[str, str]:
    """Return the files of the students' release, as path -> text.

    Raises CourseError if the course cannot be released, or if a file would show students secret data.
    """
    files = {f"{EXERCISES}/{path}": text for path, text in products(course).items()}
    files |= common_files(course)
    files["README.md"] = page(course, "student.md")
    files[".github/workflows/classroom.yml"] = (TEMPLATES / "classroom.yml").read_text(encoding="utf-8")
    refuse_leaks(leaking(course, files))
    return files


def common_files(course: Course) -> dict[str, str]:
    """Return files for both published branches (with and without solutions): the tool, ``.gitignore`` and a licence."""
    files = {f"{TOOL}/{path}": file.read_text(encoding="utf-8") for path, file in package_files().items()}
    files |= {f"{TOOL}/pyproject.toml": project_file(), ".gitignore": IGNORED}
    for name in LICENCES:
        if (course.root / name).is_file():
            files[name] = (course.root / name).read_text(encoding="utf-8", errors="replace")
    return files


def page(course: Course, template: str, **more: str) -> str:
    """Return the README that a template gives for this course. Raises CourseError for a course without exercises."""
    first = course.asked([])[0]
    words = {
        "@NAME@": course.config.name,
        "@VERSION@": __version__,
        "@FIRST@": first,
        "@MODULE@": course.module_of[first],
        "@MODULES@": _modules(course),
    } | more
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    for word, becomes in words.items():
        text = text.replace(word, becomes)
    return text


def _modules(course: Course) -> str:
    listed = [module for module in course.config.modules if module.exercises]
    dated = any(module.deadline for module in listed)
    rows = []
    for module in listed:
        due = f" {module.deadline:%Y-%m-%d %H:%M} |" if module.deadline else "  |"
        rows.append(f"| `{module.id}` | {cell(module.title)} | {len(module.exercises)} |{due if dated else ''}")
    heads = ["| module | | exercises |", "|---|---|--:|"]
    return "\n".join([heads[0] + " due |" * dated, heads[1] + "---|" * dated, *rows])


def leaking(course: Course, files: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each published text that students must not get.

    The tool's files do not depend on the course, so this function searches them only for the course's seed.
    """
    made = {path: text for path, text in files.items() if not path.startswith(f"{TOOL}/")}
    yield from (line.removeprefix(f"{EXERCISES}/") for line in leaks(course, made))
    yield from seeds(course, {path: text for path, text in files.items() if path not in made})


def seeds(course: Course, files: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each file that contains the course's secret seed. The example course's seed is public."""
    seed = course.config.seed
    if len(seed) > 3 and seed != EXAMPLE_SEED:
        yield from (f"{path} holds the course's seed" for path, text in files.items() if seed in text)


def refuse_leaks(found: Iterator[str]) -> None:
    """Raise CourseError with the first leak and the number of further leaks, if any leak was found."""
    if lines := list(found):
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        raise CourseError(f"nothing is published: {lines[0]}{more}; see: shardlings verify")


# -- the solutions as Markdown pages -----------------------------------------------------------

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
