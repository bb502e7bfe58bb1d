"""``build`` copies the author's text into a release. It does not write text from a syntax tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import copying
from grader.course.config import CourseError
from grader.course.loading import load_course
from grader.course.public import public_source
from grader.course.release import products
from tests.made_up import made_up

PLAIN_CALL = """\
A = normal("I", "J", spec=P("x", None))
call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})
"""
PLAIN_CHECK = '''\
@exercise.check(call, points=1, public=True)
def value(seen):
    """it is whole"""
    expect_close(seen.out, seen.a)
'''
ODD_CALL = """\
A = normal(
    'I',   "J", spec=P( "x" , None )  # needle
)
WIDTH = 1_0; NEEDLE = "needle"
call = exercise.call(gather, a=A, dims={'I': 0x8, "J": 3},  # needle
                     hidden_dims={"I": 1012, "J": 5})
"""
ODD_CHECK = '''\
@exercise.check(call , points=1,
                public=True, after=[])  # needle
def value(seen):  # needle
    """it is "whole\\\\" é"""
    # needle
    text = f"{seen.a!r:>{WIDTH}} # no comment"  # needle
    expect_close(seen.out, seen.a)
'''


def test_learners_code_is_the_authors_text_byte_for_byte(tmp_path: Path) -> None:
    """From a syntax tree, different Python versions would write different quotes, f-strings and numbers."""
    made_up(tmp_path, PLAIN_CALL, ODD_CALL)
    path = tmp_path / "solutions" / "01_gather" / "x1_gather.py"
    assert PLAIN_CHECK in path.read_text()
    path.write_text(path.read_text().replace(PLAIN_CHECK, ODD_CHECK), encoding="utf-8")
    course = load_course(tmp_path / "course.yaml")
    text = public_source(course.exercise("x1_gather"))
    for there in (
        """A = normal(\n    'I',   "J", spec=P( "x" , None )\n)\n""",
        "\nWIDTH = 1_0\n",
        """call = exercise.call(gather, a=A, dims={'I': 0x8, "J": 3})\n""",
        "@exercise.check(call, points=1, public=True, after=[])\ndef value(seen):\n",
        '''    """it is "whole\\\\" é"""\n    text = f"{seen.a!r:>{WIDTH}} # no comment"\n    expect_close(''',
    ):
        assert there in text, there
    assert "needle" not in text.lower() and "1012" not in text


@pytest.mark.parametrize(
    ("given", "copied"),
    [
        ('(\n    {\n        "a": 1,  # first\n    }\n)', '{\n    "a": 1,  # first\n}'),
        ('({\n    "a": 1,\n})', '{\n    "a": 1,\n}'),
        ('(\n    """a\n    b"""\n)', '"""a\n    b"""'),
    ],
)
def test_a_given_value_is_copied_unchanged_and_unindented(tmp_path: Path, given: str, copied: str) -> None:
    course = made_up(tmp_path, "@exercise.number(", f"GIVEN = exercise.given{given}\n\n\n@exercise.number(")
    assert f"\nGIVEN = {copied}\n" in products(course)["01_gather/x1_gather.py"]


def test_release_code_does_not_call_unparse() -> None:
    for path in Path(copying.__file__).parent.glob("*.py"):
        assert "unparse(" not in path.read_text(), path


def test_code_on_a_docstrings_line_belongs_to_the_solution(tmp_path: Path) -> None:
    course = made_up(tmp_path, 'J]."""\n', 'J]."""; needle = 1012\n')
    for text in products(course).values():
        assert "needle" not in text and "1012" not in text
    course = made_up(
        tmp_path,
        'def gather(a, *, mesh):\n    """Gather A[I_X, J] into A[I, J]."""\n    return',
        'def gather(a, *, mesh): """Gather."""; return',
    )
    with pytest.raises(CourseError, match="the docstring of gather must be on lines of its own"):
        products(course)
