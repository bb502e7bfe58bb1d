"""Mistakes in course.yaml are refused with their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.config import CourseError
from grader.course.loading import load_course
from tests.made_up import GOOD, written


def complaint(tmp_path: Path, text: str) -> str:
    with pytest.raises(CourseError) as error:
        load_course(written(tmp_path, text))
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{tmp_path}/")


def test_defaults_fill_what_is_left_out(tmp_path: Path) -> None:
    config = load_course(written(tmp_path, GOOD)).config
    assert (config.devices, config.variants.mode, config.tolerances.numbers) == (8, "shared", 0.02)


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("name: small", "nam: small", "course.yaml:1: nam: no such field; did you mean 'name'?"),
        ("name: small\n", "name: small\nlimits:\n  run_secs: 3\n", "course.yaml:3: limits.run_secs: no such field; did you mean 'run_seconds'?"),
        ("    title: Layout\n", "", "course.yaml:3: modules.0.title: Field required"),
        ("01_layout", "layout", "course.yaml:3: modules.0.id: String should match pattern"),
        ("[a1_local_shape]", "a1", "course.yaml:5: modules.0.exercises: Input should be a valid tuple"),
        ("[a1_local_shape]", "[a1_local_shape, a1_local_shape]", "course.yaml:2: modules: a1_local_shape is listed twice"),
        ("name: small\n", "name: small\nvariants: {mode: each}\n", "course.yaml:2: variants.mode: Input should be 'shared' or 'per_student'"),
        ("title: Layout", "title: Layout\n    weight: 0", "course.yaml:5: modules.0.weight: Input should be greater than 0"),
        ("title: Layout", "title: Layout\n    weight: .inf", "course.yaml:5: modules.0.weight: Input should be a finite number"),
        ("name: small\n", "name: small\nlimits: {trace_seconds: .inf}\n", "course.yaml:2: limits.trace_seconds: Input should be a finite number"),
        ("title: Layout", "title: [", "course.yaml:6: not YAML"),
        ("name: small\n", "name: small\ndevices: 8\nname: large\n", "course.yaml:3: name appears twice; keep one"),
        ("name: small\n", f"name: {'[' * 5000}{']' * 5000}\n", "course.yaml cannot be read: it is nested too deeply"),
        ("title: Layout", "title: Layout\n    title: Shards", "course.yaml:5: title appears twice; keep one"),
        ("title: Layout", "title: Layout\n    deadline: 2026-13-01", "course.yaml: a value cannot be read: month must be in 1..12"),
        ("title: Layout", "title: Layout\n    deadline: 20261101", "course.yaml:5: modules.0.deadline: write a date from 2000 to 2199, as in"),  # seconds since 1970
        ("title: Layout", "title: Layout\n    deadline: 9999-12-31", "course.yaml:5: modules.0.deadline: write a date from 2000 to 2199, as in"),
        ("name: small\n", "name: small\nrepository: https://github.com/who/what\n", "course.yaml:2: repository: write the address of the folder"),
        ("name: small\n", 'name: small\nrepository: "https://github.com/a/b/tree/m)](x"\n', "course.yaml:2: repository: write the address"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_line_and_field(tmp_path: Path, was: str, becomes: str, message: str) -> None:
    assert complaint(tmp_path, GOOD.replace(was, becomes)).startswith(message)


def test_an_empty_file_is_reported(tmp_path: Path) -> None:
    assert "the file" in complaint(tmp_path, "")


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"name: \xe9"])
def test_a_file_in_another_encoding_is_reported(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "course.yaml").write_bytes(data)
    with pytest.raises(CourseError, match=r"course.yaml cannot be read: "):
        load_course(tmp_path / "course.yaml")
