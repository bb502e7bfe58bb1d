"""What a course folder of nbgrader's tells that it should not: solutions, hidden checks, answers, the seed.

Students get ``release/`` and ``feedback/``; ``source/`` becomes the first and ``autograded/`` the second.
``submitted/`` came from them, and may only hold what they could write themselves.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.numbers import unit_of
from grader.variants import params_for
from grader.verify import normal_form, secret_lines

STEPS = ("source", "release", "submitted", "autograded", "feedback")
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])", re.IGNORECASE)
TELLING_DIGITS = 5  # a number of fewer may stand there for another reason


def scan(course: Course, folder: Path) -> Iterator[tuple[Path, str]]:
    """Files of ``folder`` (all of nbgrader's steps) and what each of them tells.

    A student's own work is no leak where it comes back to them, right though it may be.
    """
    lines = dict(secret_lines(course))
    checks = {n: what for n, what in lines.items() if _of_check(course, what)}
    for step in STEPS:
        for path in sorted(p for p in (folder / step).rglob("*") if p.is_file()):
            text = "\n".join(texts(path))
            theirs = _handed_in(folder, path.relative_to(folder)) if step in ("autograded", "feedback") else ""
            own = {normal_form(line) for line in theirs.splitlines()}
            for line in dict.fromkeys(text.splitlines()):
                what = (checks if step == "submitted" else lines).get(normal_form(line))
                if what and normal_form(line) not in own:
                    yield path, f"a line of {what}: {line.strip()[:80]}"
            if len(course.config.seed) > 3 and course.config.seed in text:
                yield path, "the course's seed"
            if step != "submitted":
                student = path.relative_to(folder).parts[1] if theirs else None
                yield from ((path, told) for told in _answers_told(course, text, theirs, student))


def texts(path: Path) -> Iterator[str]:
    """All that a reader of a file can see: of notebooks the strings, of pages the words, of others their text."""
    text = path.read_bytes().decode("utf-8", "replace")
    if path.suffix == ".ipynb":
        try:
            yield from _strings(json.loads(text))
            return
        except ValueError:
            pass
    if path.suffix in (".html", ".ipynb"):
        text = html.unescape(re.sub(r"<[^>]*>", "", text))
    yield text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        yield "".join(value)  # the lines of a cell
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)
    elif isinstance(value, str):
        yield value


def _handed_in(folder: Path, path: Path) -> str:
    """The text of all that the student of ``step/STUDENT/ASSIGNMENT/...`` handed in there."""
    place = folder.joinpath("submitted", *path.parts[1:3])
    return "\n".join(t for p in sorted(place.rglob("*")) if p.is_file() for t in texts(p))


def _of_check(course: Course, what: str) -> bool:
    exercise, _, name = what.partition("/")
    return name in course.exercise(exercise).checks


def _answers_told(course: Course, text: str, own: str, student: str | None) -> Iterator[str]:
    """Questions whose answer stands in ``text`` (in SI units or the question's), but not in the student's own work."""
    known = _numbers(own)
    found = [n for n in _numbers(text) if n not in known]
    config = course.config.variants
    who = student if config.mode == "per_student" else None
    for exercise in course.exercises.values():
        for question in exercise.numbers.values():
            if config.mode == "per_student" and student is None:
                continue  # nobody's numbers
            value = question(**params_for(question, seed=config.seed, student=who))
            for answer in (value, value / unit_of(question.unit)[0]):
                if len(f"{answer:.12g}".strip("0").replace(".", "")) >= TELLING_DIGITS and any(
                    abs(n - answer) <= 1e-6 * abs(answer) for n in found
                ):
                    yield f"the answer to {question.name}: {answer:.6g}"
                    break


def _numbers(text: str) -> set[float]:
    """The numbers in a text that are long enough to tell something."""
    digits = (t for t in NUMBER.findall(text) if len(re.sub(r"e.*|\D", "", t.lower()).strip("0")) >= TELLING_DIGITS)
    return {float(t) for t in digits}
