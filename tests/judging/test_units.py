"""One registry of units, whoever asks first."""

from __future__ import annotations

from grader.judging import units
from grader.judging.units import unit_of


def test_units_are_read_by_many_threads_at_once():
    """The first uses meet while the registry is made; there must be one, or its quantities do not mix."""
    from concurrent.futures import ThreadPoolExecutor

    units._registry.cache_clear()
    units._unit_of.cache_clear()
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda n: unit_of(f"{'u' if n % 2 else 'm'}s"), range(64)))
    assert found == {unit_of("us"), unit_of("ms")}
