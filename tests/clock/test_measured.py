"""Published times compared with the clock: no chip is faster, and large collectives take little longer.

Small collectives take much longer, because their start has a fixed cost.
"""

from __future__ import annotations

import pytest

from tests.clock.measured import MEASURED, Measured


@pytest.mark.parametrize("one", MEASURED, ids=lambda m: f"{m.on} {m.kind} {m.bytes}")
def test_no_chip_is_faster_than_the_clock(one: Measured) -> None:
    assert one.clock <= one.us


@pytest.mark.parametrize("one", [m for m in MEASURED if m.clock > 500], ids=lambda m: f"{m.on} {m.kind}")
def test_large_collectives_take_at_most_a_quarter_longer_on_a_chip(one: Measured) -> None:
    assert one.us / one.clock <= 1.25


def test_starting_a_small_collective_takes_4_to_17_us_beyond_the_clock() -> None:
    missing = [m.us - m.clock for m in MEASURED if m.clock < 500]
    assert min(missing) > 4 and max(missing) < 17


def test_the_groups_of_measured_collectives_follow_the_mesh() -> None:
    y, core = MEASURED[0]._groups(), MEASURED[-1]._groups()
    assert y[:2] == ((0, 1, 2, 3), (4, 5, 6, 7)) and len(y) == 8
    assert core == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert MEASURED[3]._groups() == ((0, 1), (1, 2), (2, 3), (3, 0))
