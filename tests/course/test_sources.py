"""``build`` writes the tables of sources. An exercise named in a table must exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.sources import CLOSE, OPEN, named_exercises, source_problems, write_sources
from tests.made_up import made_up

SOURCES = """\
sources:
  - title: A lecture
    about: One item.
    items:
      - item: how a gather is counted
        where: "X1: `gathered_twice`"
"""


def course_with(
    folder: Path, sources: str = SOURCES, readme: str = f"# Solutions\n\n{OPEN}\n{CLOSE}\n\nThe end.\n"
) -> Course:
    course = made_up(folder)
    (folder / "solutions" / "sources.yaml").write_text(sources)
    (folder / "solutions" / "README.md").write_text(readme)
    return course


def test_build_writes_the_source_tables_between_their_marks(tmp_path: Path) -> None:
    course = course_with(tmp_path)
    assert list(source_problems(course)) == [f"{tmp_path}/solutions/README.md is not current; run `shardlings build`"]
    assert write_sources(course) == tmp_path / "solutions" / "README.md"
    text = (tmp_path / "solutions" / "README.md").read_text()
    assert text.startswith("# Solutions\n") and text.endswith("\n\nThe end.\n")
    assert "### A lecture\n\nOne item.\n" in text and "| 1 | how a gather is counted | X1: `gathered_twice` |\n" in text
    assert not list(source_problems(course)) and write_sources(course) is None


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ("X2", "there is no exercise X2"),
        ("X1 to X3", "there is no exercise X2"),
        ("the end of X1: `gathered_thrice`", "none of X1 declares gathered_thrice"),
        ("somewhere", "names no exercise; write an exercise, such as C5, or 'nothing to settle' and the reason"),
    ],
)
def test_a_source_that_names_a_missing_exercise_is_reported(tmp_path: Path, where: str, problem: str) -> None:
    course = course_with(tmp_path, SOURCES.replace("X1: `gathered_twice`", where))
    first = next(source_problems(course))
    assert first == f"{tmp_path}/solutions/sources.yaml: A lecture: 'how a gather is counted': {problem}"


def test_an_item_with_nothing_to_settle_needs_no_exercise(tmp_path: Path) -> None:
    course = course_with(tmp_path, SOURCES.replace("X1: `gathered_twice`", "nothing to settle: praise"))
    write_sources(course)
    assert not list(source_problems(course))


def test_a_course_without_sources_yaml_has_no_tables(tmp_path: Path) -> None:
    course = made_up(tmp_path)
    assert not list(source_problems(course)) and write_sources(course) is None


def test_a_mistake_in_sources_yaml_gives_a_one_line_error(tmp_path: Path) -> None:
    course = course_with(tmp_path, SOURCES.replace("where:", "were:"))
    assert list(source_problems(course)) == [
        f"{tmp_path}/solutions/sources.yaml:6: sources.0.items.0.were: no such field; did you mean 'where'?"
    ]


def test_a_readme_without_the_marks_is_refused_with_instructions(tmp_path: Path) -> None:
    course = course_with(tmp_path, readme="# Solutions\n")
    with pytest.raises(CourseError, match="write these two lines where the tables of sources belong"):
        write_sources(course)
    assert (tmp_path / "solutions" / "README.md").read_text() == "# Solutions\n"


def test_named_exercises_expands_ranges_and_skips_other_letters() -> None:
    assert named_exercises("C2 to C4, E1; a link is W1, a chip H100", {"C", "E", "H"}) == ["C2", "C3", "C4", "E1"]
