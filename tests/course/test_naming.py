"""The exercise or check that a user's name or prefix selects."""

from __future__ import annotations

import pytest

from grader.course.config import CourseError
from grader.course.naming import check_named, meant_by, only_one

NAMES = ["c1_local", "c10_more", "c3_contracting", "d1_ring", "d1_line"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("c1_local", ["c1_local"]),
        ("c1", ["c1_local"]),  # a prefix without an underscore must match a whole first word
        ("c10", ["c10_more"]),
        ("c3_c", ["c3_contracting"]),
        ("c3_contractin", ["c3_contracting"]),
        ("d1", ["d1_ring", "d1_line"]),
        ("d1_r", ["d1_ring"]),
        ("C1", ["c1_local"]),  # the exercise's title has C1
        ("C3_Con", ["c3_contracting"]),
    ],
)
def test_a_name_may_be_given_in_full_by_first_words_or_by_a_unique_prefix(name: str, meant: list[str]) -> None:
    assert meant_by(name, NAMES, "exercise") == meant


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("c", "'c' could be c1_local, c10_more, c3_contracting: write more of the name"),
        ("d1", "'d1' could be d1_ring, d1_line: write more of the name"),
        ("c3_contractng", "no exercise 'c3_contractng'; did you mean 'c3_contracting'?"),
        ("", "no exercise ''; there are c10_more, c1_local, c3_contracting, d1_line, d1_ring"),
        ("/tmp/own/c1_local.py", "no exercise '/tmp/own/c1_local.py'; write the name c1_local; check, explain and watch take your folder as --work /tmp/own"),
    ],
)  # fmt: skip
def test_an_ambiguous_or_unknown_name_is_refused(name: str, message: str) -> None:
    with pytest.raises(CourseError) as error:
        only_one(name, NAMES, "exercise")
    assert str(error.value) == message


def test_an_unknown_name_lists_only_the_first_of_many_names() -> None:
    with pytest.raises(CourseError) as error:
        only_one("zz", [f"{letter}{number}_name" for letter in "ab" for number in range(10, 40)], "exercise")
    assert str(error.value).startswith("no exercise 'zz'; there are a10_name, a11_name,")
    assert str(error.value).endswith(", a29_name and 40 more: shardlings list")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("c1", ("c1_local", "")),
        ("c10/loc", ("c10_more", "local_value")),
        ("traf", ("c1_local", "traffic")),
        ("value", "several exercises have value: c1_local, c10_more; name the exercise too: EXERCISE/value"),
        ("c", "'c' could be c1_local, c10_more: write more of the name"),
        ("c10/traffic", "no check or question 'traffic'; there are local_value, value"),
    ],
)
def test_a_check_has_one_way_of_being_named(typed: str, meant: tuple[str, str] | str) -> None:
    checks = {"c1_local": ["value", "traffic"], "c10_more": ["value", "local_value"]}
    try:
        assert check_named(typed, [*checks], checks.__getitem__) == meant
    except CourseError as error:
        assert str(error) == meant
