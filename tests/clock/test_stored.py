"""Memory as a TPU's compiler allocates it: results from the start, operands of matmuls in bfloat16."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.clock import live_memory
from tests.clock.programs import read

UNIT = 512 * 512 * 4
SQUARE = ((512, 512), P())


def both(local: Callable, *shapes: tuple, out: object = P(), dtype: str = "float32") -> tuple[float, float]:
    """Return the peak by the program's dtypes and as on a TPU, in float32 squares."""
    program = read(local, list(shapes), out, mesh={"x": 8}, dtype=dtype)
    return tuple(live_memory(program, on_tpu=how).peak / UNIT for how in (False, True))  # type: ignore[return-value]


def highest(a, b):
    return jnp.dot(a, b, precision=lax.Precision.HIGHEST)


@pytest.mark.parametrize(
    ("local", "program", "tpu"),
    [
        (lambda a, b: a @ b, 3, 3),
        (lambda a, b: (a @ b) @ b, 4, 3.5),  # only a matmul reads the first result
        (lambda a, b: (a @ b).T[:, ::-1] @ b, 4, 3.5),  # moved on the way
        (lambda a, b: jnp.tanh(a @ b) @ b, 4, 3.5),
        (lambda a, b: highest(a @ b, b), 4, 4),  # not rounded
        (lambda a, b: jnp.tanh(highest(a, b)) + (a @ b) @ b, 4, 3.5),
    ],
)
def test_a_value_that_only_matmuls_read_takes_half(local: Callable, program: float, tpu: float) -> None:
    assert both(local, SQUARE, SQUARE) == (program, tpu)


def test_a_value_that_is_also_read_by_other_operations_keeps_its_dtype() -> None:
    def kept(a, b):
        c = a @ b
        return (c @ b) * jnp.cos(c)

    assert both(kept, SQUARE, SQUARE) == (4, 4)


def test_a_collective_sends_what_is_stored() -> None:
    def gathered(a, b):
        return lax.all_gather(jnp.tanh(a), "x", tiled=True) @ b

    def summed(a, b):
        return lax.psum(a @ b, "x") @ b

    def scattered(a, b):
        return lax.psum_scatter(a @ b, "x", tiled=True) @ b

    assert both(gathered, ((4096, 512), P("x")), SQUARE) == (18, 14.5)  # half a square sent, four gathered
    assert both(summed, SQUARE, SQUARE) == (4, 4)  # an all-reduce sends its sums on
    assert both(scattered, SQUARE, SQUARE) == (3.125, 3.1875)  # the last addition writes half of an eighth


def test_results_have_their_memory_from_the_start() -> None:
    def first(a, b):
        c = jnp.tanh(a)
        total = (lax.psum(c, "x") * c).sum()
        return total, jnp.broadcast_to(total, (512, 512))

    program, tpu = both(first, SQUARE, SQUARE, out=(P(), P()))
    assert round(program, 2) == 4 and round(tpu, 2) == 5


def test_a_loop_of_only_elementwise_operations_holds_what_it_carries() -> None:
    def one_round(_, carried):
        a, b = carried
        return jnp.tanh(b) + a, jnp.sin(a) * b

    def looped(a, b):
        a, b = lax.fori_loop(0, 5, one_round, (jnp.exp(a), jnp.exp(b)))
        return (a * b).sum()

    program, tpu = both(looped, SQUARE, SQUARE)
    assert (round(program, 2), round(tpu, 2)) == (5, 4)


def test_narrow_programs_are_as_they_are() -> None:
    assert both(lambda a, b: (a @ b) @ b, SQUARE, SQUARE, dtype="bfloat16") == (2, 2)
