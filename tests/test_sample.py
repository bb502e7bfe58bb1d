"""``make test`` verifies a sample of exercises, with every check function and kind of task of the course.

The kinds of answers are all in the first example of ``docs/checks/answers.md``, which ``test_documented.py`` verifies.
"""

from __future__ import annotations

import re
from pathlib import Path

from grader import expect
from grader.course.loading import Course, load_course
from tests.commands import ROOT


def used_by(course: Course, name: str) -> set[str]:
    """Return the functions of ``grader.expect`` and the kinds of tasks that an exercise uses."""
    exercise, place = course.exercise(name), Path(course.root, "solutions", course.module_of[name])
    files = [path for path in (place / f"{name}.py", place / "grading" / f"{name}.py") if path.is_file()]
    words = {word for path in files for word in re.findall(r"expect_\w+", path.read_text())}
    kinds = {task.kind for task in exercise.tasks.values()}
    return words & {*expect.__all__} | kinds


def test_the_sample_holds_every_check_and_every_kind_of_task() -> None:
    course = load_course(ROOT / "course.yaml")
    (sample,) = re.findall(r"^SAMPLE := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    taken = course.select(sample.split())
    whole, part = ({use for name in names for use in used_by(course, name)} for names in (course.module_of, taken))
    assert whole - part == set() and len(whole) > 20
