"""Operators for axes, specs, collectives and layouts, each on a small source."""

from __future__ import annotations

import pytest

from tests.mutated import made


@pytest.mark.parametrize(
    ("operator", "source", "wanted"),
    [
        ("axis", "n = axis_size('x')", {"n = axis_size('y')"}),
        ("axis", "n = 'z'", set()),
        ("spec", "s = P('x', None)", {"s = P(None, None)", "s = P('x', 'y')", "s = P(None, 'x')"}),
        ("spec", "s = P('x')", {"s = P(None)", "s = P(None, 'x')"}),
        ("spec", "s = jax.sharding.PartitionSpec()", {f"s = jax.sharding.PartitionSpec('{a}')" for a in "xy"}),
        ("collective", "c = lax.psum(a, 'x')", {"c = a", "c = lax.psum(lax.psum(a, 'x'), 'x')"}),
        ("collective", "c = axis_index('x')", {"c = 0"}),
        ("dimension", "c = all_gather(a, 'x', tiled=True)", {"c = all_gather(a, 'x', tiled=True, axis=1)"}),
        ("dimension", "c = all_gather(a, 'x', axis=0)", {"c = all_gather(a, 'x', axis=0, tiled=True)"}),
        (
            "dimension",
            "c = all_to_all(a, 'x', split_axis=1, concat_axis=0)",
            {"c = all_to_all(a, 'x', split_axis=0, concat_axis=1)"},
        ),
    ],
)
def test_operator(operator, source, wanted):
    assert made(source, operator) == wanted


def test_a_detour_keeps_the_values():
    assert made("return g(a)", "detour") == {
        "return jax.lax.all_gather(g(a), 'x')[jax.lax.axis_index('x')]",
        "return jax.lax.pmax(g(a), 'x')",
    }
