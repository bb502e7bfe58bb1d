"""All threads use one registry of units."""

from __future__ import annotations

from grader.judging import units
from tests.again import made_again


def test_units_are_read_by_many_threads_at_once():
    """Quantities of two registries cannot be compared. Threads that start together must make only one registry."""
    from concurrent.futures import ThreadPoolExecutor

    unit_of = made_again(units).unit_of
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda n: unit_of(f"{'u' if n % 2 else 'm'}s"), range(64)))
    assert found == {units.unit_of("us"), units.unit_of("ms")}
