"""The lines and the statement of an author's file."""

from __future__ import annotations

from pathlib import Path

from grader.course.build import products
from tests.made_up import made_up


def test_a_form_feed_ends_no_line(tmp_path: Path) -> None:
    plain = products(made_up(tmp_path / "plain"))
    made = products(made_up(tmp_path / "odd", "import math\n", "import math\n\f\n# \u2028 \x1c\n"))
    assert made == plain


def test_the_indentation_of_a_statement_is_removed(tmp_path: Path) -> None:
    course = made_up(tmp_path, "\n\nSay what to do.\n", "\n\n    Say what to do.\n      Do it.\n")
    assert course.exercise("x1_gather").statement == "# X1 Gather\n\nSay what to do.\n  Do it."
