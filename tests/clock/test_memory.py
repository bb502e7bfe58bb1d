"""Memory as a TPU's compiler allocates it.

The compiler allocates the results before the program starts, and stores the operands of matmuls in bfloat16.
"""

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
    """Return the peak with the program's dtypes, and the peak on a TPU, in units of one float32 square."""
    program = read(local, list(shapes), out, mesh={"x": 8}, dtype=dtype)
    return tuple(live_memory(program, on_tpu=how).peak / UNIT for how in (False, True))  # type: ignore[return-value]


def highest(a, b):
    return jnp.dot(a, b, precision=lax.Precision.HIGHEST)


@pytest.mark.parametrize(
    ("local", "program", "tpu"),
    [
        (lambda a, b: a @ b, 3, 3),
        (lambda a, b: (a @ b) @ b, 4, 3.5),  # only a matmul reads a @ b, so a TPU stores it in bfloat16
        (lambda a, b: (a @ b).T[:, ::-1] @ b, 4, 3.5),  # a transposition and a reversal only move a @ b
        (lambda a, b: jnp.tanh(a @ b) @ b, 4, 3.5),
        (lambda a, b: highest(a @ b, b), 4, 4),  # at the highest precision, a TPU does not round operands
        (lambda a, b: jnp.tanh(highest(a, b)) + (a @ b) @ b, 4, 3.5),
    ],
)
def test_a_value_that_only_matmuls_read_is_stored_in_bfloat16(local: Callable, program: float, tpu: float) -> None:
    assert both(local, SQUARE, SQUARE) == (program, tpu)


def test_a_value_that_is_also_read_by_other_operations_keeps_its_dtype() -> None:
    def kept(a, b):
        c = a @ b
        return (c @ b) * jnp.cos(c)

    def gathered(a, b):
        return jnp.cos(lax.all_gather(jnp.tanh(a), "x", tiled=True)).sum()

    assert both(kept, SQUARE, SQUARE) == (4, 4)
    program, tpu = both(gathered, ((4096, 512), P("x")), SQUARE)
    assert (round(program, 2), round(tpu, 2)) == (11, 11)


def test_results_and_values_that_nothing_reads_keep_their_dtype() -> None:
    def returned(a, b):
        c = a @ b
        return c, c @ b

    def by_rows(a, b):
        _, moved = lax.sort((a, b), num_keys=1)
        return moved @ b

    assert both(returned, SQUARE, SQUARE, out=(P(), P())) == (4, 4)
    assert both(by_rows, SQUARE, SQUARE) == (4, 4.5)  # sort returns ``_`` in float32, and ``moved`` in bfloat16


def test_a_collective_holds_its_data_in_the_stored_dtype() -> None:
    def gathered(a, b):
        return lax.all_gather(jnp.tanh(a), "x", tiled=True) @ b

    def summed(a, b):
        return lax.psum(a @ b, "x") @ b

    def scattered(a, b):
        return lax.psum_scatter(a @ b, "x", tiled=True) @ b

    # In bfloat16, a shard is half as large as SQUARE, and the gathered array is four times as large.
    assert both(gathered, ((4096, 512), P("x")), SQUARE) == (18, 14.5)
    assert both(summed, SQUARE, SQUARE) == (4, 4)  # an all-reduce sends its sums, so they stay float32
    assert both(scattered, SQUARE, SQUARE) == (3.125, 3.1875)  # the last addition writes 1/8 of SQUARE in bfloat16


def test_results_occupy_memory_from_the_start() -> None:
    def first(a, b):
        c = jnp.tanh(a)
        total = (lax.psum(c, "x") * c).sum()
        return total, jnp.broadcast_to(total, (512, 512))

    program, tpu = both(first, SQUARE, SQUARE, out=(P(), P()))
    assert round(program, 2) == 4 and round(tpu, 2) == 5


def test_a_loop_of_elementwise_operations_holds_only_its_carried_arrays() -> None:
    def one_round(_, carried):
        a, b = carried
        return jnp.tanh(b) + a, jnp.sin(a) * b

    def looped(a, b):
        a, b = lax.fori_loop(0, 5, one_round, (jnp.exp(a), jnp.exp(b)))
        return (a * b).sum()

    program, tpu = both(looped, SQUARE, SQUARE)
    assert (round(program, 2), round(tpu, 2)) == (5, 4)


def test_a_loop_with_matmuls_also_holds_one_rounds_temporaries() -> None:
    def one_round(_, carried):
        a, b = carried
        return (jnp.tanh(a) @ b) @ b, b

    def looped(a, b):
        return lax.fori_loop(0, 5, one_round, (a, b))[0]

    program, tpu = both(looped, SQUARE, SQUARE)
    assert (round(program, 2), round(tpu, 2)) == (4, 3.5)


@pytest.mark.parametrize(("dtype", "squares"), [("bfloat16", 2), ("int32", 4)])
def test_only_float32_is_stored_in_another_dtype(dtype: str, squares: float) -> None:
    assert both(lambda a, b: (a @ b) @ b, SQUARE, SQUARE, dtype=dtype) == (squares, squares)
