"""Find the name that was probably meant."""

from __future__ import annotations

import pytest

from grader.wire.text import closest


@pytest.mark.parametrize(
    ("name", "cutoff", "meant"),
    [("c3_contracing", 0.5, "c3_contracting"), ("c3", 0.9, None), ("zzz", 0.4, None)],
)
def test_the_closest_name_is_similar_enough(name: str, cutoff: float, meant: str | None) -> None:
    assert closest(name, {"c1_no_communication": 1, "c3_contracting": 2}, cutoff) == meant
