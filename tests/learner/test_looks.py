"""Learner code can inspect layouts of arrays during tracing, but not their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest

from tests.learner.texts import IMPORTS, A, line_of

VALUES = "cannot be traced: it needs the values of an array (float(), if, np.asarray, .item() ...)"


@pytest.mark.parametrize(
    "line",
    [
        "return a * float(a[0, 0])",
        "return jnp.asarray(np.asarray(a))",
        "return a if a[0, 0] > 0 else -a",
        "return a * jax.device_get(a).sum()",
        "return a.addressable_shards[0].data + jnp.zeros((2, 8))",
        "assert float(a.sum()) == 3.5\n    return a",
    ],
)
def test_a_program_that_depends_on_made_up_values_is_refused(traced: Callable[..., Any], line: str) -> None:
    fault = traced(f"{IMPORTS}import numpy as np\ndef f(a, *, mesh):\n    {line}\n", A).fault
    assert fault["kind"] == "untraceable" and fault["message"].startswith(VALUES)
    assert (fault["line"], fault["file"]) == (9, "a.py")


def test_arrays_in_shard_map_and_jit_have_no_sharding_attribute(traced: Callable[..., Any]) -> None:
    for wrapped in ("jax.jit(local)", 'jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))'):
        text = f"{IMPORTS}def f(a, *, mesh):\n    def local(a):\n        print(a.sharding)\n        return a\n    return {wrapped}(a)\n"
        fault = traced(text, A).fault
        assert fault["kind"] == "raised" and fault["line"] == line_of(text, "print"), fault
        assert "The 'sharding' attribute is not available on traced array" in fault["message"]


def test_inspection_works_for_gradients(traced: Callable[..., Any]) -> None:
    text = f"{IMPORTS}def f(a, *, mesh):\n    c = a * a\n    assert c.sharding.spec == P('x', 'y') == a.sharding.spec\n    return c\n"
    assert traced(text, A, wrt=("a",), cotangent=A).program


def test_inspected_layouts_are_those_of_a_real_call(traced: Callable[..., Any]) -> None:
    text = (
        f"{IMPORTS}def f(a, *, mesh):\n    c = jax.device_put(a, NamedSharding(mesh, P('y')))\n"
        "    assert c.sharding == NamedSharding(mesh, P('y')) and c.addressable_shards[0].data.shape == (4, 16)\n"
        "    assert [s.index[0].start for s in c.addressable_shards[:2]] == [0, 4], c.addressable_shards[:2]\n"
        "    return c\n"
    )
    assert traced(text, A).program


def test_the_number_of_inspections_is_limited(traced: Callable[..., Any]) -> None:
    text = f"{IMPORTS}def f(a, *, mesh):\n    for i in range(17):\n        a.sharding\n    return a\n"
    fault = traced(text, A).fault
    assert "The 'sharding' attribute is not available" in fault["message"] and fault["line"] == line_of(
        text, "a.sharding"
    )


def test_jax_still_has_the_internals_that_inspection_uses(devices: int) -> None:
    """This test fails if JAX renames ``Tracer._trace`` or the type of an unused result."""
    traces = []

    def seen(x: Any) -> Any:
        traces.append(x._trace)
        return x

    jax.make_jaxpr(lambda x: (seen(seen(x)), jax.jit(seen)(x)))(1.0)
    assert traces[0] is traces[1] is not traces[2]
    assert jax._src.core.DropVar.__name__ == "DropVar"  # type: ignore[attr-defined]
