"""``make test`` verifies exercises with every check function and every kind of task and answer.

It verifies a sample of the course, and all examples of the documentation (``test_documented.py``). The first example of
``docs/checks/answers.md`` has all kinds of answers.
"""

from __future__ import annotations

import re
from pathlib import Path

from grader import expect
from grader.course.loading import Course, load_course
from tests.commands import ROOT
from tests.test_documented import EXAMPLES


def used_by(course: Course, name: str) -> set[str]:
    """Return the functions of ``grader.expect`` and the kinds of tasks that an exercise uses."""
    exercise, place = course.exercise(name), Path(course.root, "solutions", course.module_of[name])
    files = [path for path in (place / f"{name}.py", place / "grading" / f"{name}.py") if path.is_file()]
    return functions_in("".join(path.read_text() for path in files)) | {task.kind for task in exercise.tasks.values()}


def functions_in(text: str) -> set[str]:
    return {*re.findall(r"expect_\w+", text)} & {*expect.__all__}


def test_the_sample_and_the_examples_hold_every_check_and_every_kind_of_task() -> None:
    course = load_course(ROOT / "course.yaml")
    (sample,) = re.findall(r"^SAMPLE := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    taken = course.select(sample.split())
    whole, part = ({use for name in names for use in used_by(course, name)} for names in (course.module_of, taken))
    of_examples = functions_in("".join(text for _, text in EXAMPLES))
    assert whole - part - of_examples == set() and len(whole) > 20
