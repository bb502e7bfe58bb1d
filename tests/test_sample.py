"""``make test`` verifies a sample of the course, which holds every check and every kind of answer that the course has."""

from __future__ import annotations

import re
from pathlib import Path

from grader import exercise, expect
from grader.course.loading import Course, load_course
from tests.commands import ROOT

NAMES = {*expect.__all__, *exercise.__all__}


def used_by(course: Course, name: str) -> set[str]:
    """The names of ``grader.expect`` and ``grader.exercise`` that the files of an exercise use."""
    place = Path(course.root, "solutions", course.module_of[name])
    files = [path for path in (place / f"{name}.py", place / "grading" / f"{name}.py") if path.is_file()]
    return NAMES & {word for path in files for word in re.findall(r"\w+", path.read_text())}


def test_the_sample_holds_every_check_and_every_kind_of_answer() -> None:
    course = load_course(ROOT / "course.yaml")
    (sample,) = re.findall(r"^SAMPLE := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    taken = course.select(sample.split())
    whole, part = ({word for name in names for word in used_by(course, name)} for names in (course.module_of, taken))
    assert whole - part == set() and len(whole) > 30
