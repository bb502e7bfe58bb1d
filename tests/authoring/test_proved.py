"""``verify`` reuses the proof of an exercise until something changes on which the proof depends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from grader.authoring import verify
from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.common.cache import Cache
from grader.course.build import build
from grader.course.loading import Course, load_course
from tests.made_up import made_up

WRONG = ("fails=traffic)", "fails=[value, traffic])")
Proof = Callable[..., tuple[list[str], bool]]


@pytest.fixture
def proof(tmp_path: Path) -> Iterator[Proof]:
    """Yield ``proof(course)``, which returns the problems and whether a program was traced."""
    with Cache(tmp_path / "cache", 1 << 20) as cache:

        def proof(course: Course, seeds: int = 1) -> tuple[list[str], bool]:
            found: list[str] = []
            with Grader(course, "none") as grader:
                verify.verify(course, grader, ["x1_gather"], lambda _, problems: found.extend(problems), seeds, cache)
                return found, cast(Workers, grader.hosts[0]).tracer.process is not None

        yield proof


def built(course: Course) -> Course:
    build(course)
    return course


@pytest.mark.slow
def test_an_unchanged_exercise_is_not_proved_again(proof: Proof, tmp_path: Path) -> None:
    place = tmp_path / "course"
    place.mkdir()
    course = built(made_up(place))
    assert proof(course) == ([], True)
    assert proof(load_course(place / "course.yaml")) == ([], False)
    assert proof(course, seeds=2) == ([], True)
    (place / "course.yaml").write_text((place / "course.yaml").read_text() + "tolerances: {numbers: 0.015}\n")
    assert proof(built(load_course(place / "course.yaml"))) == ([], True)


@pytest.mark.slow
def test_verify_reports_a_defect_on_every_run(proof: Proof, tmp_path: Path) -> None:
    place = tmp_path / "course"
    place.mkdir()
    course = built(made_up(place, *WRONG))
    told = ["the misconception gathered_twice fails traffic, but fails= names traffic, value"]
    assert proof(course) == proof(course) == (told, True)


@pytest.mark.slow
def test_verify_checks_the_course_as_a_whole_on_every_run(proof: Proof, tmp_path: Path) -> None:
    place = tmp_path / "course"
    place.mkdir()
    course = built(made_up(place))
    assert proof(course) == ([], True)
    (place / "exercises" / "01_gather" / "x1_gather.py").write_text("# another\n")
    assert proof(course) == (["exercises/01_gather/x1_gather.py is not current; run `shardlings build`"], False)
