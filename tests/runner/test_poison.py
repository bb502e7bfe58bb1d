"""Replace the results of one operation, and test whether the program's results change."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from grader.common.dependency import COLLECTIVES, MATMULS
from grader.exercise import normal
from grader.runner import others
from tests.poisoned import matter

A = normal(8, 6, spec=("x",))
B = normal(6, 6)
pytestmark = pytest.mark.usefixtures("devices")


# -- operations without effect -----------------------------------------------------------------


def mapped(body: str) -> str:
    lines = "\n".join(f"        {line}" for line in body.strip().split("\n"))
    return f"""
def f(a, b, *, mesh):
    def local(a, b):
{lines}
    return mapped(local, (P("x"), P()), P("x"), mesh)(a, b)
"""


IDLE = {
    "multiplied by 0": "return a @ b + 0 * (a @ b @ b)",
    "multiplied by a 0 that is computed": "return a @ b + jnp.sum(a - a) * (a @ b @ b)",
    "added a thousand-millionth": "return a @ b + 1e-9 * (a @ b @ b)",
    "added within the tolerance": "return a @ b + 1e-7 * (a @ b @ b)",
    "behind a constant mask": "return jnp.where(jnp.arange(6) > 9, a @ b @ b, a @ b)",
    "behind a mask that is never true": "return jnp.where(jnp.sum(a * a) < 0, a @ b @ b, a @ b)",
    "in a branch that never runs": "c = a @ b\nreturn lax.cond(jnp.sum(a * a) < 0, lambda: c @ b, lambda: c)",
    "clipped away": "return a @ b + jnp.clip(a @ b @ b, 1, 1)",
    "beside one of no elements": "return a @ b + jnp.sum(a[:0] @ b) + 0 * (a @ b @ b)",
    "beside one of booleans": "return a @ b + jnp.where(jnp.all((a > 0) @ (b > 0)), 0, 0 * (a @ b @ b))",
}


@pytest.mark.parametrize("body", IDLE.values(), ids=IDLE)
def test_a_matmul_without_effect_on_results_does_not_matter(body: str) -> None:
    found = matter(MATMULS, mapped(body), A, B)
    assert found.count(True) == 1 and False in found


def test_a_collective_in_an_unused_loop_does_not_matter() -> None:
    text = mapped("""
def step(i, carry):
    kept, sent = carry
    return kept + lax.psum(kept, "y"), ring(sent) + kept
kept, sent = lax.fori_loop(0, 3, step, (a, a))
return kept + jnp.where(jnp.sum(kept * kept) < 0, sent, 0) + b[0]""")
    assert matter(COLLECTIVES, text, A, B) == [True, False]


@pytest.mark.parametrize("junk", ["jnp.all(lax.all_gather(a > 0, 'x'))", "jnp.sum(lax.all_gather(a[:0], 'x')) > 0"])
def test_booleans_and_arrays_without_elements_are_changed_as_all_others(junk: str) -> None:
    text = mapped(f"none = jnp.sum(a * a) < 0\nreturn lax.psum(a, 'y') + jnp.where(none & ({junk}), 1, 0)")
    assert matter(COLLECTIVES, text, A, B) == [True, False]


def test_each_call_of_a_function_is_replaced_separately() -> None:
    text = mapped("""
summed = jax.jit(lambda v: lax.psum(v @ b, "y"))
return summed(a) + 0 * summed(2 * a) + summed(3 * a)""")
    assert matter(COLLECTIVES, text, A, B) == matter(MATMULS, text, A, B) == [True, False, True]


def test_operations_outside_shard_map_are_replaced() -> None:
    text = """
def f(a, b, *, mesh):
    return a @ b + 0 * (a @ b @ b)
"""
    assert matter(MATMULS, text, A, B) == [True, False, False]


# -- operations that a result needs ------------------------------------------------------------


NEEDED = {
    "a maximum for a softmax that is divided out again": (
        COLLECTIVES,
        'e = jnp.exp(a - lax.pmax(jnp.max(a, 0), "x")); return e / lax.psum(jnp.sum(e, 0), "x")',
    ),
    "a sum behind a norm": (COLLECTIVES, 's = lax.psum(a, "x"); return s / jnp.sqrt(jnp.sum(s * s))'),
    "the mean and the variance of a norm": (
        COLLECTIVES,
        'm = lax.pmean(a, "x"); d = a - m; return d / jnp.sqrt(lax.pmean(d * d, "x") + 1e-5)',
    ),
    "a gradient with a small learning rate": (COLLECTIVES, 'return b[:2] - 1e-3 * lax.pmean(a.T @ a, "x")[:2]'),
    "a gather with padding": (
        COLLECTIVES,
        'return lax.all_gather(jnp.pad(a, ((0, 5), (0, 0))), "x", tiled=True)[:2] + a',
    ),
    "zeros": (COLLECTIVES, 'return a + lax.psum(a - a, "x")'),
    "whole numbers": (COLLECTIVES, 'return lax.psum(jnp.argmax(a, 1), "x")'),
    "a mask": (COLLECTIVES, 'return jnp.where(lax.all_gather(a[:, 0] > 0, "x", tiled=True)[:2, None], a, 2 * a)'),
    "an index": (COLLECTIVES, 'return a + lax.dynamic_slice(b, (lax.psum(1, "x") + lax.psum(jnp.int32(a[0, 0] > 9), "x"), 0), (1, 6))'),
    "a loop": (COLLECTIVES, "return lax.fori_loop(0, 5, lambda i, c: jnp.tanh(ring(c) + a), a)"),
    "matmuls in a loop": (MATMULS, "return lax.fori_loop(0, 5, lambda i, c: jnp.tanh(c @ b), a)"),
    "a branch of which some devices take each": (
        MATMULS,
        'return lax.cond(lax.axis_index("x") > 1, lambda: a @ b, lambda: 2 * a @ b @ b)',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("what", "body"), NEEDED.values(), ids=NEEDED)
def test_operations_that_a_result_needs_matter(what: str, body: str) -> None:
    found = matter(what, mapped(body.replace("; ", "\n")), A, B)
    assert found and all(found)


def test_a_ring_of_eight_matmuls_in_bfloat16_with_a_norm_behind_it() -> None:
    text = """
def f(a, b, *, mesh):
    def local(a, b):
        total = jnp.zeros((a.shape[0], b.shape[1]), jnp.float32)
        for i in range(8):
            at = (lax.axis_index("x") - i) % 8 * b.shape[0]
            total += jnp.dot(lax.dynamic_slice_in_dim(a, at, b.shape[0], 1), b, preferred_element_type=jnp.float32)
            b = ring(b, 8) if i < 7 else b
        centred = total - total.mean(-1, keepdims=True)
        return (centred / jnp.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5)).astype(jnp.bfloat16)
    return mapped(local, (P("x"), P("x")), P("x"), mesh)(a, b)
"""
    args = normal(16, 32, dtype="bfloat16", spec=("x",)), normal(32, 12, dtype="bfloat16", spec=("x",))
    assert matter(MATMULS, text, *args, mesh={"x": 8}) == [True] * 8
    assert matter(COLLECTIVES, text, *args, mesh={"x": 8}) == [True] * 7


def test_collectives_in_nested_shard_maps_are_replaced() -> None:
    text = """
def f(a, *, mesh):
    def inner(a):
        return a + lax.psum(a, "y") + 0 * ring(a, 2, "y")
    def local(a):
        within = jax.shard_map(inner, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"}, check_vma=False)
        return lax.psum(within(a), "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), axis_names={"x"}, check_vma=False)(a)
"""
    assert matter(COLLECTIVES, text, normal(8, 6, spec=("x",))) == [True, False, True]


# -- replacement values ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (5, 7)])
@pytest.mark.parametrize(
    "dtype", ["float32", "bfloat16", "float16", "float64", "int8", "int32", "uint32", "int64", "int4", "bool", "complex64"]
)  # fmt: skip
def test_replacement_values_differ_everywhere_and_have_a_similar_range(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        own = jax.numpy.asarray(rng.integers(1, 8, shape) if "int" in dtype else rng.normal(size=shape)).astype(dtype)
        salted: list[Any] = [
            np.asarray(jax.jit(others.others)(own, others.noise(own.shape, np.int32(salt)))) for salt in range(2)
        ]
    for other in salted:
        assert other.dtype == own.dtype and np.mean(other == np.asarray(own)) <= 0.03
        if dtype != "bool" and own.size > 1:
            assert np.max(np.abs(other.astype(complex))) <= 1.5 * np.max(np.abs(np.asarray(own).astype(complex)))
    assert dtype == "bool" or own.size == 1 or (salted[0] != salted[1]).any()


def test_replacement_values_are_finite() -> None:
    for values in ([0.0, 0.0], [np.inf, 1.0], [np.nan, -np.inf], [3e38, -3e38]):
        other = np.asarray(jax.jit(others.others)(np.array(values, np.float32), others.noise((2,), np.int32(0))))
        assert np.isfinite(other).all() and (other != values).all()
