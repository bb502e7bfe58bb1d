"""``verify`` proves the courses in examples/courses/, which show features that other authors need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grader.authoring.verify import verify
from grader.batch.grade import Grader
from grader.course.loading import load_course
from grader.judging.plan import plan

COURSES = sorted((Path(__file__).resolve().parents[2] / "examples" / "courses").glob("*/course.yaml"))


@pytest.mark.slow
@pytest.mark.parametrize("path", COURSES, ids=lambda path: path.parent.name)
def test_a_course_of_the_gallery_has_nothing_to_mend(path: Path) -> None:
    course, found = load_course(path), {}
    with Grader(course, "none", 2) as grader:
        assert verify(grader, list(course.module_of), found.__setitem__) == 0, found
    assert found.keys() == {*course.module_of, "course"}


def test_the_gallery_has_complex_arguments_results_and_gradients() -> None:
    (path,) = (path for path in COURSES if path.parent.name == "grids")
    asks = plan(load_course(path).exercise("b2_convolve"), public=False, seed="s")
    drawn = [ask.inputs[0] for ask in asks if ask.inputs]
    assert all(np.all(each["z"].imag != 0) for each in drawn)
    assert any("cotangent" in each and each["cotangent"].dtype == np.complex64 for each in drawn)
