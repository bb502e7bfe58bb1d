"""Mutation operators, each on a small source."""

from __future__ import annotations

import pytest

from grader.authoring.mutants.operators import TaskContext
from tests.mutated import PLAIN, made


@pytest.mark.parametrize(
    ("operator", "source", "wanted"),
    [
        ("order", "s = P(('x', 'y'))", {"s = P(('y', 'x'))", "s = P(('x',))", "s = P(('y',))"}),
        ("order", "p = [(i, i + 1) for i in r]", {"p = [(i + 1, i) for i in r]"}),
        ("order", "a, b = c", set()),
        ("name", "c = lax.psum(a, 'x')", {"c = lax.pmean(a, 'x')", "c = lax.pmax(a, 'x')"}),
        ("name", "c = max(a, b)", {"c = min(a, b)"}),
        ("constant", "c = f(a, axis=0)", {"c = f(a, axis=1)", "c = f(a, axis=-1)"}),
        ("constant", "c = f(a, tiled=True)", {"c = f(a, tiled=False)"}),
        ("constant", "c = a * 0.5 + 1e-06", {"c = a * 1.0 + 1e-06"}),
        ("constant", "c = shard_map(f, check_vma=False)", set()),
        ("constant", "c = zip(a, b, strict=True)", set()),
        ("bounds", "for i in range(n):\n    f(i)", {f"for i in range(n {s} 1):\n    f(i)" for s in "+-"}),
        ("bounds", "c = lax.fori_loop(0, n, f, a)", {f"c = lax.fori_loop(0, n {s} 1, f, a)" for s in "+-"}),
        ("bounds", "c = lax.scan(f, a, length=n)", {f"c = lax.scan(f, a, length=n {s} 1)" for s in "+-"}),
        ("comparison", "c = a < b", {"c = a <= b", "c = a >= b"}),
        ("comparison", "c = a in b", {"c = a not in b"}),
        ("arithmetic", "c = a * b", {"c = a // b"}),
        ("arithmetic", "c = (i + 1) % n", {"c = (i - 1) % n", "c = (i + 1) // n", "c = i + 1"}),
        ("arithmetic", "c //= n", {"c *= n", "c /= n", "pass"}),
        ("arithmetic", "c = a and not b", {"c = a or not b", "c = a and b"}),
        ("condition", "c = a if b else d", {"c = a", "c = d", "c = a if not b else d"}),
        ("condition", "if a:\n    b()", {f"if {t}:\n    b()" for t in ("True", "False", "not a")}),
        ("condition", "c = [a for a in b if a]", {"c = [a for a in b]", "c = [a for a in b if not a]"}),
        ("result", "raise ValueError(f'{n + 1}')", {"pass"}),
        ("operands", "c = a @ b", {"c = b @ a", "c = a.T @ b", "c = a @ b.T", "c = (a @ b).T"}),
        ("operands", "c = jnp.where(a, b, d)", {"c = jnp.where(a, d, b)"}),
        (
            "operands",
            "c = einsum('ij,jk->ik', a, b)",
            {"c = einsum('ij,jk->ki', a, b)", "c = einsum('jk,ij->ik', a, b)"},
        ),
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


def test_the_key_operator_swaps_a_key_for_another_key_of_its_tree():
    about = TaskContext(keys=(("params", "w1"), ("params", "w2"), ("opt", "m")))
    assert made('c = params["w1"] + mesh.shape["x"] + opt["m"]', "key", about) == {
        "c = params['w2'] + mesh.shape['x'] + opt['m']"
    }
    assert made('c = {"m": a, "v": b, "t": d}', "key") == {
        "c = {'m': b, 'v': a, 't': d}", "c = {'m': a, 'v': d, 't': b}",
    }  # fmt: skip


def test_only_plain_functions_get_mutants_that_return_constants():
    assert made("return a + 1", "result", PLAIN) == {f"return {v}" for v in (None, 0, 1)}
    assert made("return a + 1", "result") == set()
    assert made("return a + 1", "detour", PLAIN) == set()


def test_a_detour_keeps_the_values():
    assert made("return g(a)", "detour") == {
        "return jax.lax.all_gather(g(a), 'x')[jax.lax.axis_index('x')]",
        "return jax.lax.pmax(g(a), 'x')",
    }
