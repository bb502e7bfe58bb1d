"""The statements of an author's file, and the copies of them in a release, which define every name that they use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.course import statements
from grader.course.build import products
from grader.course.config import CourseError
from grader.course.loading import Course, load_course
from grader.course.public import public_source
from grader.course.reference import answers, reference_source
from grader.course.statements import unbound
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
CALL = 'call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})'
NAMED = "call = exercise.call(gather, a=A, dims=DIMS, hidden_dims=HIDDEN)"


def test_a_form_feed_ends_no_line(tmp_path: Path) -> None:
    plain = products(made_up(tmp_path / "plain"))
    made = products(made_up(tmp_path / "odd", "import math\n", "import math\n\f\n# \u2028 \x1c\n"))
    assert made == plain


def test_the_indentation_of_a_statement_is_removed(tmp_path: Path) -> None:
    course = made_up(tmp_path, "\n\nSay what to do.\n", "\n\n    Say what to do.\n      Do it.\n")
    assert course.exercise("x1_gather").statement == "# X1 Gather\n\nSay what to do.\n  Do it."


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
    for path in Path(statements.__file__).parent.glob("*.py"):
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


def bound(folder: Path, how: str) -> Course:
    """Return the made-up course. The lines ``how`` define the names of its sizes."""
    return made_up(folder, CALL, f"{how}\n{NAMED}")


def line_of(course: Course, text: str) -> str:
    path = course.path_of("x1_gather")
    lines = path.read_text().splitlines()
    return f"{path}:{next(n for n, line in enumerate(lines, 1) if text in line)}"


@pytest.mark.parametrize(
    "how",
    [
        'DIMS, HIDDEN = {"I": 8, "J": 3}, {"I": 1012, "J": 5}',
        'DIMS, HIDDEN = ({"I": 8,\n  "J": 3}, {"I": 1012,  # odd\n "J": 5})',
        'DIMS: dict = {"I": 8, "J": 3}; HIDDEN = {"I": 1012, "J": 5}',
        'DIMS, HIDDEN = (dict(I=8,\n  J=3)\n), {"I": 1012, "J": 5}',
    ],
)
def test_sizes_assigned_together_are_split_for_learners(tmp_path: Path, how: str) -> None:
    course = bound(tmp_path, how)
    text = public_source(course.exercise("x1_gather"))
    assert "DIMS = " in text and "HIDDEN" not in text and "1012" not in text


@pytest.mark.parametrize(
    "how",
    [
        "def sizes():\n    return {'I': 8, 'J': 3}, {'I': 1012, 'J': 5}\n\nDIMS, HIDDEN = sizes()",
        "HIDDEN = {'I': 1012, 'J': 5}\nif True:\n    DIMS = {'I': 8, 'J': 3}",
        "HIDDEN = {'I': 1012, 'J': 5}\nfor DIMS in [{'I': 8, 'J': 3}]:\n    pass",
        "HIDDEN = {'I': 1012, 'J': 5}\nDIMS = SAME = {'I': 8, 'J': 3}",
        "HIDDEN = {'I': 1012, 'J': 5}\ntry:\n    DIMS = {'I': 8, 'J': 3}\nfinally:\n    pass",
        "HIDDEN = {'I': 1012, 'J': 5}\nwith open(__file__):\n    DIMS = {'I': 8, 'J': 3}",
        "HIDDEN = {'I': 1012, 'J': 5}\nprint(DIMS := {'I': 8, 'J': 3})",
    ],
)
def test_a_name_bound_in_a_way_that_is_not_copied_is_refused_with_its_line(tmp_path: Path, how: str) -> None:
    course = bound(tmp_path, how)
    binding = next(one for one in how.splitlines() if not one.startswith((" ", "HIDDEN", "def")) and one)
    told = f"{line_of(course, binding)}: learners' code uses DIMS; assign this name on a line of its own: DIMS = ..."
    with pytest.raises(CourseError, match=f"^{re.escape(told)}$"):
        public_source(course.exercise("x1_gather"))


@pytest.mark.parametrize("how", ["DIMS = {'I': 8}\nDIMS = DIMS | {'J': 3}", "DIMS = {'I': 8}\nDIMS |= {'J': 3}"])
def test_a_name_assigned_twice_is_refused_at_the_second_line(tmp_path: Path, how: str) -> None:
    course = bound(tmp_path, f"HIDDEN = {{'I': 1012, 'J': 5}}\n{how}")
    told = f"{line_of(course, how.splitlines()[1])}: DIMS is assigned twice; assign it once, because learners' files get only one of the two statements"
    with pytest.raises(CourseError, match=f"^{re.escape(told)}$"):
        public_source(course.exercise("x1_gather"))


def test_given_code_may_not_use_an_ungiven_constant(tmp_path: Path) -> None:
    course = made_up(tmp_path, "    return math.prod(a.shape)", "    return math.prod(a.shape) * FACTOR")
    path = course.path_of("x1_gather")
    path.write_text(path.read_text().replace("A = normal", "FACTOR = 3\nA = normal"))
    told = f"{line_of(course, 'FACTOR = 3')}: learners' code uses FACTOR; learners need this name in their file, so mark its definition as given"
    with pytest.raises(CourseError, match=f"^{re.escape(told)}$"):
        products(course)


def test_a_solution_may_not_use_the_grader(tmp_path: Path) -> None:
    course = made_up(
        tmp_path, '    return jax.lax.all_gather(a, "x"', '    return all_gather_time and jax.lax.all_gather(a, "x"'
    )
    exercise = course.exercise("x1_gather")
    told = f"{line_of(course, 'from grader.hardware')}: learners' code uses all_gather_time; learners' code cannot import this name"
    with pytest.raises(CourseError, match=f"^{re.escape(told)}$"):
        reference_source(exercise, answers(course, exercise, "verify"))


def test_an_undefined_name_in_learners_code_is_reported(tmp_path: Path) -> None:
    course = made_up(tmp_path, "    return math.prod(a.shape)", "    return math.prod(shape)")
    with pytest.raises(CourseError, match=r"^x1_gather: learners' code uses shape, which is not defined$"):
        products(course)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import os.path\nprint(os, __name__, __doc__)", []),
        ("def f(a, *, b=C):\n    d = a\n    return d + E", ["C", "E"]),
        ("x = [i for i in range(3)]\ny = lambda z: z + x", []),
        ("class A:\n    n = 1\n    m = n\n    def f(self): return n", ["n"]),
        ("from somewhere import *\nx = y", []),
        ("def f():\n    global g\n    g = 1\nprint(g)", []),
        ("@deco\ndef f(): pass", ["deco"]),
    ],
)
def test_unbound_returns_the_undefined_names(text: str, names: list[str]) -> None:
    assert unbound(text) == names
