"""The release has only code that the author marked, for example with ``exercise.given`` or ``public=True``."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course.build import build
from grader.course.config import CourseError
from grader.course.loading import load_course
from grader.course.reference import reference_source
from grader.course.release import products
from tests.made_up import in_two_files, made_up

UNMARKED = {
    "value": 'NEEDLE = "needle-1012"',
    "annotated_value": 'NEEDLE: str = "needle-1012"',
    "pair": 'NEEDLE, OTHER = "needle-1012", 2',
    "function": 'def needle():\n    """needle-1012"""\n    return "needle-1012"',
    "async_function": 'async def needle():\n    return "needle-1012"',
    "class": 'class Needle:\n    """needle-1012"""\n    value = "needle-1012"',
    "condition": 'if ROWS:\n    NEEDLE = "needle-1012"',
    "loop": 'for NEEDLE in ["needle-1012"]:\n    pass',
    "try": 'try:\n    NEEDLE = "needle-1012"\nfinally:\n    pass',
    "assertion": 'assert ROWS == 8, "needle-1012"',
    "augmented": 'NEEDLE = ""\nNEEDLE += "needle-1012"',
    "lambda": 'needle = lambda: "needle-1012"',
    "text": '"""needle-1012"""',
    "comment": "# needle-1012",
    "misspelt_given": 'needle = exercise.given\nNEEDLE = needle("needle-1012")',
    "given_of_another": 'other = exercise\n\n\n@other.given\ndef needle():\n    return "needle-1012"',
    "wrapped_given": 'NEEDLE = str(exercise.given("needle-1012"))',
    "hidden_check": '@exercise.check(call, points=1)\ndef needle(seen):\n    """needle-1012"""\n    expect_close(seen.out, seen.a)',
    "hidden_call": 'needle = exercise.call(gather, a=A, dims={"I": 1012, "J": 8})\nNEEDLE = "needle-1012"',
    "misconception": '@exercise.misconception(fails=value)\ndef needle(a, *, mesh):\n    """needle-1012"""\n    return a',
}  # fmt: skip


def test_the_release_does_not_depend_on_the_file_of_the_misconceptions(tmp_path: Path) -> None:
    one, two = made_up(tmp_path / "one"), in_two_files(tmp_path / "two")
    assert products(one) == products(two)
    for name, misconception in one.exercise("x1_gather").misconceptions.items():
        same = two.exercise("x1_gather").misconceptions[name]
        text = reference_source(two.exercise("x1_gather"), {"gather_time": "1 us"}, same)
        assert text == reference_source(one.exercise("x1_gather"), {"gather_time": "1 us"}, misconception)
        assert "x1_gather" not in text and "import exercise" not in text


@pytest.mark.parametrize("kind", UNMARKED)
def test_code_that_is_not_marked_is_in_no_released_file(tmp_path: Path, kind: str) -> None:
    marker = "@exercise.number("
    course = made_up(tmp_path, marker, f"{UNMARKED[kind]}\n\n\n{marker}")
    made = products(course)
    assert set(made) == {
        "01_gather/x1_gather.py", "01_gather/_public/x1_gather.py", "01_gather/01_gather.ipynb", "01_gather/README.md",
        "course.yaml",
    }  # fmt: skip
    for path, text in made.items():
        assert "1012" not in text and "needle" not in text.lower(), path


def test_build_without_solutions_is_refused(tmp_path: Path) -> None:
    build(made_up(tmp_path))
    with pytest.raises(CourseError, match="there is no solutions/ folder to build from"):
        build(load_course(tmp_path / "exercises" / "course.yaml"))
