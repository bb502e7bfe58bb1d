"""The slices that a program's mesh fits."""

from __future__ import annotations

from pathlib import Path

from grader.course.loading import load_course
from grader.exercise import Call
from grader.wings.browser.slices import SLICES, fitting, usual_slice
from tests.made_up import made_up


def test_a_slice_fits_if_its_chips_are_the_mesh() -> None:
    assert fitting({"x": 4, "y": 2})[0] == "v5e:2x4"
    assert all(name in SLICES for name in fitting({"x": 8})) and fitting({"x": 8})
    assert fitting({"x": 5}) == [] and fitting({"x": 2**20}) == []


def test_the_usual_slice_fits_a_mesh_of_the_exercise(tmp_path: Path) -> None:
    made_up(tmp_path)
    course = load_course(tmp_path / "course.yaml")
    exercise = course.exercise("x1_gather")
    meshes = [
        mesh
        for check in exercise.checks.values()
        for call in check.calls
        if isinstance(call, Call)
        for mesh in call.meshes
    ]
    assert any(usual_slice(exercise, course) in fitting(mesh) for mesh in meshes)
