"""An attack on H4: the backward pass gathers arrays again, but uses them only in a mask that is never true.

The attack has exactly the required collectives, right values and right gradients. But it keeps all gathered arrays for
the backward pass. An honest program with equal collectives passes.
"""

from __future__ import annotations

import pytest

from grader.common.observation import Seen
from grader.exercise import normal
from grader.expect import expect_close, expect_collectives
from tests.poisoned import seen
from tests.seen import reason

LAYERS = 3
STEP = """
@jax.custom_vjp
def layer(x, w):
    return kept(x, w)[0]

def kept(x, w):
    whole = lax.all_gather(w, "x", tiled=True)
    return jnp.tanh(x @ whole), (x, w, whole)

def backward(left, dy):
    x, w, whole = left
    again = lax.all_gather(lax.optimization_barrier((w, dy))[0], "x", tiled=True)
    whole = {WHOLE}
    dz = dy * (1 - jnp.tanh(x @ whole) ** 2)
    return dz @ whole.T, lax.psum_scatter(x.T @ dz, "x", tiled=True)

layer.defvjp(kept, backward)

def f(a, b, *, mesh):
    def local(x, ws):
        for w in ws:
            x = layer(x, w)
        return x
    return mapped(local, (P("x"), P(None, "x")), P("x"), mesh)(a, b)
"""
MASKED = {
    "a constant mask": "jnp.where(jnp.arange(8) > 99, again, whole)",
    "a mask computed at run time": "jnp.where(jnp.sum(x * x) < 0, again, whole)",
    "times 0": "whole + 0 * again",
    "times a 0 that is computed": "whole + jnp.max(x - x) * again",
    "less than a rounding error": "whole + 1e-9 * again",
    "and taken away again": "whole + (again - again)",
}


def ran(whole: str) -> Seen:
    args = normal(8, 8, spec=("x",)), normal(LAYERS, 8, 8, spec=(None, "x"))
    return seen(
        STEP.replace("{WHOLE}", whole), *args, mesh={"x": 4}, wrt=("a", "b"), cotangent=normal(8, 8, spec=("x",))
    )


def gathers_again(program: Seen) -> None:
    """Check that the backward pass has one gather per layer."""
    expect_collectives(program.only(backward=True, kind="all_gather"), all_gather={"x": LAYERS})


@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize("whole", MASKED.values(), ids=MASKED)
def test_a_gather_behind_a_mask_is_no_gather(whole: str) -> None:
    honest, attack = ran("again"), ran(whole)
    for name in ("a", "b"):
        expect_close(attack.grads[name], honest.grads[name].value)  # the attack also returns right gradients
    gathers_again(honest)
    assert reason(gathers_again, attack) == (
        "line 32: all_gather over x is not counted in the backward pass: no result of the task depends on its values; "
        f"{LAYERS} such collectives are required, and the results depend on none of these collectives"
    )
