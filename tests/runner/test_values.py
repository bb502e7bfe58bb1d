"""Values that depend on an argument count as data, through operations, loops, branches and calls."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import pytest

from grader.exercise import normal
from grader.runner import facts

BLOCK = normal(8, 16, spec=("x", "y"))  # 2 x 8 floats on each device
IMPORTS = "import jax\nimport jax.numpy as jnp\nfrom jax import lax\nfrom jax.sharding import PartitionSpec as P\n"


@pytest.fixture
def matmuls(traced: Callable) -> Callable[[str], Any]:
    """Return a function that counts the matmul FLOPs of a per-device body on a float32[2, 8]."""

    def look(body: str) -> Any:
        local = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
        specs = "in_specs=P('x', 'y'), out_specs=P('x', 'y'), check_vma=False"
        mapped = f"\n\ndef f(a, *, mesh):\n    return jax.shard_map(local, mesh=mesh, {specs})(a)\n"
        made = traced(f"{IMPORTS}\ndef local(a):\n{local}{mapped}", BLOCK)
        return facts.read(made.form.parse(), made.request["mesh"], set(made.request["files"])).dot_flops

    return look


DATA = {
    "compared": "return a * jnp.where(a > 0, 1.0, 0.0)",
    "finite": "return a * jnp.isfinite(a)",
    "bits": "bits = lax.bitcast_convert_type(a, 'uint32')\n"
    "return a * sum(jnp.where((bits >> i) & 1 == 1, 2.0**i, 0.0) for i in range(8))",
    "looked_up": "return a * jnp.linspace(0, 1, 9)[jnp.clip(a, 0, 8).astype(int)]",
    "chosen": "return a * lax.cond(a[0, 0] > 0, lambda: 1.0, lambda: 0.0)",
    "switched": "b = lax.switch(a[0, 0].astype(int), [lambda i=i: jnp.full(8, float(i)) for i in range(3)])\nreturn a * b",
    "counted": "n = lax.while_loop(lambda n: n < a[0, 0], lambda n: n + 1, 0.0)\nreturn a * n",
    "carried": "return a * lax.fori_loop(0, 3, lambda i, s: s + a, jnp.zeros_like(a))",
    "carried_late": "first = jnp.zeros((2, 8))\n"
    "return a * lax.fori_loop(0, 3, lambda i, s: (a, s[0], s[1]), (first, first, first))[2]",
    "scanned": "return a * lax.scan(lambda s, row: (s, row + s), 0.0, a)[1]",
    "called": "one = jax.jit(lambda s: s + 1)\nreturn a * one(a) + one(jnp.ones((2, 8)))",
    "called_first_without": "one = jax.jit(lambda s: s + 1)\nb = one(jnp.ones((2, 8)))\nreturn b + a * one(a)",
    "reduced": "return a * (a > 0).any()",
    "sorted": "return a * (jnp.argsort(a) + 1.0)",
    "sent": "return a * lax.psum(a, 'x')",
}
GIVEN = {
    "places": "return a * (lax.axis_index('x') == 1)",
    "triangle": "return a * (jnp.arange(2)[:, None] >= jnp.arange(8))",
    "a_loops_counter": "return lax.fori_loop(0, 3, lambda i, a: a * (jnp.arange(8) == i), a)",
    "a_loops_own_table": "table = lambda i, t: t + jnp.arange(8.0)\nreturn a * lax.fori_loop(0, 3, table, jnp.ones(8))",
    "a_choice_of_place": "return a * lax.cond(lax.axis_index('x') == 0, lambda: 1.0, lambda: 0.5)",
    "sent_places": "return a * lax.psum(lax.axis_index('x') + 1.0, 'x')",
    "a_function_of_constants": "one = jax.jit(lambda s: s + 1)\nreturn a * one(jnp.ones((2, 8)))",
    "random": "return a * jax.random.bernoulli(jax.random.key(0), 0.5, (2, 8))",
}


@pytest.mark.parametrize("body", DATA.values(), ids=DATA)
def test_a_matmul_of_data_with_derived_data_counts(matmuls: Callable, body: str) -> None:
    assert matmuls(body).most == 32


@pytest.mark.parametrize("body", GIVEN.values(), ids=GIVEN)
def test_a_matmul_of_data_with_the_programs_constants_does_not_count(matmuls: Callable, body: str) -> None:
    assert matmuls(body).most == 0
