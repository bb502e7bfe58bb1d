"""The list of equivalent mutants, which may survive."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.authoring.mutants.equivalents import EQUIVALENT, equivalents, key
from grader.authoring.mutants.making import mutants_of
from grader.course.config import CourseError
from grader.course.loading import load_course
from tests.mutated import with_holes

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "a list of entries is expected"),
        ("- {exercise: two}", "entry 1: task: Field required"),
        ("- {exercise: two, task: t, was: a, becomes: b, reason: ''}", "entry 1: reason"),
        ("- [", "not YAML"),
    ],
)
def test_an_unreadable_list_of_equivalents_gives_a_one_line_error(tmp_path, text, message):
    course = with_holes(tmp_path)
    (tmp_path / "solutions" / EQUIVALENT).write_text(text)
    with pytest.raises(CourseError, match=message):
        equivalents(course)


def test_every_listed_equivalent_is_still_made_from_its_reference():
    """The test checks that each listed mutant is still made. The command ``mutants`` checks that it survives."""
    course = load_course(ROOT / "course.yaml")
    listed = equivalents(course)
    made_of = {name: {key(m) for m in mutants_of(course.exercise(name))} for name in {e.exercise for e in listed}}  # fmt: skip
    assert [e for e in listed if key(e) not in made_of[e.exercise]] == []
