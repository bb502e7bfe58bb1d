"""Reports about a course with holes in its checks, and mutants that are right solutions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.authoring.mutants.grading import judge_mutant
from grader.authoring.mutants.making import mutants_of
from grader.authoring.mutants.proving import (
    EQUIVALENT,
    Equivalent,
    course_problems,
    equivalents,
    impatient,
    key,
    problems,
    prove,
)
from grader.batch.grade import Grader
from grader.cli import app
from grader.course.config import CourseError
from grader.course.loading import Course, load_course
from tests.mutated import line_of, with_holes

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def holes(tmp_path_factory) -> Course:
    return with_holes(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def proof(holes):
    with Grader(impatient(holes), "none") as grader:
        (found,) = prove(grader, ["two"], [])
    return found


def survivors(proof) -> set[tuple[str, str, int]]:
    return {(v.mutant.operator, v.mutant.becomes, v.mutant.line) for v in proof.verdicts if v.fate == "survived"}


def test_surviving_mutants_are_reported_with_the_authors_lines(proof):
    assert survivors(proof) == {
        ("arithmetic", "return n / 2", line_of("return n // 2")),  # if n is even, n / 2 equals n // 2
        ("comparison", "if n <= 0:", line_of("if n < 0")),  # no case has an n below 1
        ("constant", "if n < 1:", line_of("if n < 0")),
        ("constant", "if n < -1:", line_of("if n < 0")),
        ("condition", "if False:", line_of("if n < 0")),
        ("result", "pass", line_of("raise")),
        ("detour", "return jax.lax.all_gather(jax.lax.psum(a, 'x'), 'x')[jax.lax.axis_index('x')]", line_of("psum(a")),
        ("detour", "return jax.lax.pmax(jax.lax.psum(a, 'x'), 'x')", line_of("psum(a")),
    }


def test_most_mutants_are_killed_and_list_the_checks_that_failed(proof):
    assert proof.count("killed") > proof.count("survived") and proof.count("broken") == 0
    by_name = {v.mutant.becomes: v for v in proof.verdicts}
    assert by_name["return a"].seen_by == ("total_value",)
    assert by_name["return jax.lax.psum(a, 'y')"].seen_by == ()  # the mesh has no axis y, so this mutant never ran
    assert proof.not_run >= 1


def test_a_check_that_cannot_fail_is_listed_as_unproven(proof):
    assert proof.unproven == ["pairs_nothing"]
    assert not any("pairs_nothing" in p for p in proof.problems)


def entry(**changes: str) -> Equivalent:
    known = {
        "exercise": "two",
        "task": "pairs",
        "was": "if n < 0:",
        "becomes": "if n <= 0:",
        "reason": "0 is not asked",
    }
    return Equivalent.model_validate(known | changes)


def test_stale_entries_are_reported_and_listed_survivors_are_not(holes):
    stale = entry(was="return n // 2", becomes="return n * 2")
    with Grader(impatient(holes), "none") as grader:
        exercise = grader.course.exercise("two")
        half = [m for m in mutants_of(exercise) if m.was in ("return n // 2", "if n < 0:")]
        known = {key(entry()), key(stale)}
        verdicts = [judge_mutant(grader, m, key(m) in known) for m in half]
        found = list(problems(grader, exercise, verdicts, [entry(), stale]))
    assert [v.fate for v in verdicts if v.mutant.becomes == "if n <= 0:"] == ["equivalent"]
    assert [v.fate for v in verdicts if v.mutant.becomes == "return n * 2"] == ["killed"]
    stale_line = (
        "equivalent_mutants.yaml lists a mutant of pairs that does not survive: `return n // 2` -> `return n * 2`"
    )
    assert [t for t in found if "equivalent" in t] == [stale_line]


def test_entries_of_unknown_exercises_and_too_many_survivors_are_reported(holes, proof):
    found = list(course_problems(holes, [proof], [entry(exercise="gone")]))
    assert len(found) == 2
    assert "names the exercise gone" in found[0]
    assert "under 98%" in found[1]
    assert list(course_problems(holes, [], [entry()])) == []  # the 98% limit needs all of a module's exercises


def test_the_mutants_command_exits_with_1_and_prints_the_survivors_line(holes):
    done = CliRunner().invoke(app, ["mutants", "two", "-j", "1", "--json", "--course", str(holes.root)])
    assert done.exit_code == 1
    (row,) = json.loads(done.stdout)["exercises"]
    assert row["survived"] == 8 and row["mutants"] == row["killed"] + 8 and row["checks"] > 0
    line = line_of("if n < 0")
    assert f"line {line}, comparison: `if n < 0:` -> `if n <= 0:` passes every check of pairs" in row["problems"]


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
