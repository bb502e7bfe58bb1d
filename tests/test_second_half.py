"""``shardlings verify`` proves exercises for the second half of a course. Their checks are those of docs/checks.md."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from grader.authoring import verify
from grader.authoring.redrawn import HASH_SEEDS, Redrawn
from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.course.build import build
from grader.course.loading import Course, load_course

HERE = Path(__file__).parent / "second_half"
NAMES = sorted(path.stem for path in HERE.glob("solutions/*/*.py"))
# Misconceptions: (exercise, name) and the checks that fail.
NAMED = {
    ("w1_gpipe", "a_bubble_too_many"): {"bubble"},
    ("w2_fsdp", "gathered_everything_first"): {"memory"},
    ("w2_fsdp", "gradient_summed_twice"): {"gradients"},
    ("w3_megatron", "gradient_summed_twice"): {"backward"},
    ("w6_collective_matmul", "permute_waits_for_the_dot"): {"order", "hidden", "fast"},
    ("w7_zero1", "optimizer_state_replicated"): {"layout", "traffic"},
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Build the release for learners, and return the course."""
    root = tmp_path_factory.mktemp("course") / "second_half"
    shutil.copytree(HERE, root, ignore=shutil.ignore_patterns("__pycache__"))
    made = load_course(root / "course.yaml")
    build(made)
    return made


@pytest.fixture(scope="module")
def grader(workers: Workers, course: Course) -> Grader:
    return Grader(course, "none", here=workers)


def test_the_course_has_every_exercise_of_its_folder(course: Course) -> None:
    assert sorted(course.module_of) == NAMES
    assert list(verify.course_problems(course)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_exercise_is_proved(course: Course, grader: Grader, name: str) -> None:
    assert list(verify.exercise_problems(grader, name, 1, Redrawn(course, [name], HASH_SEEDS[:1]))) == []


@pytest.mark.parametrize(("name", "misconception"), NAMED)
def test_a_misconception_fails_exactly_its_listed_checks(course: Course, name: str, misconception: str) -> None:
    assert set(course.exercise(name).misconceptions[misconception].fails) == NAMED[name, misconception]


def test_the_einsum_rule_is_what_simulated_devices_find(course: Course) -> None:
    """The test draws 20 arrays for each placement of every equation."""
    rule = course.exercise("w4_einsum_rule").tasks["einsum_rule"].fn
    words = rule.__globals__
    found = set()
    for case in words["every_case"]():
        try:
            due = rule(**case)
        except ValueError:
            due = None
        assert {words["simulated"](np.random.default_rng(seed), **case) for seed in range(20)} == {due}, case
        found.add(due)
    assert found == {"R", "S(0)", "S(1)", "S(2)", "P", None}
