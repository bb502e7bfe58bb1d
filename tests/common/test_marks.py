"""Marks: for each value on each device, the entries of the arguments on which the value depends."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from grader.common.marks import MarkWalk
from grader.common.pipelines import Pipeline, pipelines
from grader.wire.operations import Body, Operation
from tests.clock.programs import read, read_global
from tests.common.test_pipelines import ON, SHAPES, D, M, N, found, grid, nothing_sent


def first_device(pipeline: Pipeline) -> list[str]:
    """Return, for each tick with a send, the entries on which the first device's data depend."""
    return [line.split("  ")[0] for line in grid(pipeline)[:N]]


def from_first(pick: Callable) -> Callable:
    """Return a pipeline of N ticks. In each tick, ``pick`` gives the first device's data."""

    def program(w, x):
        me, held, total = lax.axis_index("pp"), jnp.ones(x.shape[1:], x.dtype), 0
        for t in range(N):
            held = lax.ppermute(jnp.where(me == 0, pick(x, t, held), held) @ w, "pp", ON)
            total += held
        return total

    return program


def column_by_data(x, t, held):
    return lax.dynamic_slice(x[t], (0, x[t + 1, 0, 0].astype(int)), (3, D // 2)).repeat(2, axis=1)


def no_rows(x, t, held):
    return x[t] + x[1:1].sum()


def updated_by_no_rows(x, t, held):
    return lax.dynamic_update_slice(jnp.tile(x[t], (30, 1)), x[0, :0], (0, 0))[:3]


def by_remainder(x, t, held):
    number = (lax.axis_index("pp").astype(jnp.uint32) + jnp.uint32(t + 1)) * jnp.uint32(2654435761)
    return x[(number % jnp.uint32(M)).astype(int)] if t else x[t]


def branch_by_data(x, t, held):
    return lax.cond(x[t, 0, 0] > 0, lambda: jnp.ones_like(x[0]), lambda: x[t + 1] * 3)


def masked_by_data(x, t, held):
    return jnp.where(x[t, 0, 0] > 0, 1, x[t + 1])


def moved_rows(x, t, held):
    return jnp.concatenate([x[2:], x[:2]])[t]


def rows_of_other_sizes(x, t, held):
    return x.reshape(4, -1)[t, : 3 * D].reshape(3, D)


def by_quotient(x, t, held):
    row = lax.div(lax.axis_index("pp") + (t - 3), 2) + 2  # XLA rounds -3 / 2 to -1
    return lax.dynamic_index_in_dim(x, row, keepdims=False)


def column_updated(x, t, held):
    return lax.dynamic_update_slice(x[t], x[t + 1, :, :1], (0, 0))


def set_beyond_the_end(x, t, held):
    return x[: t + 2].at[t + 2].set(x[0], mode="drop")[t + 1]


PICKED = [
    (column_by_data, ["0:2", "1:3", "2:4", "3:5"]),
    (no_rows, ["0", "1", "2", "3"]),
    (branch_by_data, ["0:2", "1:3", "2:4", "3:5"]),
    (masked_by_data, ["0:2", "1:3", "2:4", "3:5"]),
    (moved_rows, ["2", "3", "4", "0"]),
    (rows_of_other_sizes, ["0:2", "1:3", "2:4", "3:5"]),
    (column_updated, ["0:2", "1:3", "2:4", "3:5"]),
    (set_beyond_the_end, ["1", "2", "3", "4"]),
    (by_quotient, ["1", "1", "2", "2"]),
]


@pytest.mark.parametrize(("pick", "entries"), PICKED)
def test_each_entry_that_data_depend_on_is_named(pick: Callable, entries: list[str]) -> None:
    (pipeline,) = found(from_first(pick))
    assert first_device(pipeline) == entries


@pytest.mark.parametrize("pick", [by_remainder, updated_by_no_rows])
def test_an_index_beyond_its_dtype_or_an_update_of_no_rows_is_unknown(pick: Callable) -> None:
    assert found(from_first(pick)) == []


def index_by_data(x, held):
    return lax.dynamic_index_in_dim(x, held[0, 0].astype(int), keepdims=False)


def every_second(x, held):
    return lax.slice_in_dim(x, 0, M, 2)[1]  # entry 2; a slice without the stride has entry 1 here


def added_to_another(x, held):
    return x.at[1].add(x[2])[1]


def sum_over_devices(x, held):
    return lax.psum(x[lax.axis_index("pp")], "pp")


def rows_of_all(x, held):
    return jnp.take(x[:3], lax.axis_index("pp"), axis=1)


def half_set(x, held):
    numbers = lax.ScatterDimensionNumbers((0, 1), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    return lax.scatter(x, jnp.array([1]), x[2, :, : D // 2], numbers)[1]


UNKNOWN = [index_by_data, every_second, added_to_another, sum_over_devices, rows_of_all, half_set]


@pytest.mark.parametrize("pick", UNKNOWN)
def test_entries_that_an_operation_may_use_are_not_named(pick: Callable) -> None:
    (pipeline,) = found(from_first(lambda x, t, held: x[t] if t < 2 else pick(x, held)))
    assert first_device(pipeline)[:3] == ["0", "1", "?"]


def two_parts(w, x, on: AbstractMesh, made: P, taken: P):
    """Send rows that one shard_map computes and a second shard_map takes. ``made`` and ``taken`` are the two specs."""

    def first(x):
        me = lax.axis_index("pp")
        return jnp.stack([x[me], x[me + 1]])

    def second(w, x, rows):
        return from_first(lambda x, t, held: x[4 - t] if t < 2 else rows[t % 2])(w, x)

    rows = jax.shard_map(first, mesh=on, in_specs=P(), out_specs=made, check_vma=False)(x)
    return jax.shard_map(second, mesh=on, in_specs=(P("pp"), P(), taken), out_specs=P("pp"), check_vma=False)(
        w, x, rows
    )


AGAIN = [
    ({"pp": N}, P("pp"), P("pp"), ["4", "3", "0", "1"]),
    ({"pp": N, "q": 1}, P("pp"), P("pp"), ["4", "3", "0", "1"]),
    ({"pp": N, "q": 2}, P(("pp", "q")), P(("q", "pp")), ["4", "3", "?", "?"]),
]


@pytest.mark.parametrize(("mesh", "made", "taken", "entries"), AGAIN)
def test_a_device_that_takes_its_own_rows_again_has_their_entries(
    mesh: dict[str, int], made: P, taken: P, entries: list[str]
) -> None:
    on = AbstractMesh(tuple(mesh.values()), tuple(mesh), axis_types=(AxisType.Auto,) * len(mesh))
    program = read_global(lambda w, x: two_parts(w, x, on, made, taken), SHAPES, on)
    (pipeline,) = pipelines(program, ["w", "x"])
    assert first_device(pipeline) == entries


def test_an_argument_that_is_cut_along_its_entries_is_not_shown() -> None:
    def own_rows(w, x, z):
        return from_first(lambda x, t, held: z[t] if t > 1 else x[t])(w, x)

    program = read(own_rows, [*SHAPES, ((N * M, 3, D), P("pp"))], P("pp"), mesh={"pp": N})
    (pipeline,) = pipelines(program, ["w", "x", "z"])
    assert pipeline.arguments == ("x",) and first_device(pipeline)[3] == "."


def test_a_number_takes_its_branch_and_a_number_without_a_branch_the_last() -> None:
    walk, two = MarkWalk(read(nothing_sent, SHAPES, P("pp"), mesh={"pp": N}), N), (Body((), (), ()),) * 2
    assert walk.taken(Operation("if", (), (), bodies=two), (1, 0, 0, 1)) == [{0}, {1}, {1}, {0}]
    assert walk.taken(Operation("case", (), (), bodies=two), (0, 1, 2, -1)) == [{0}, {1}, {1}, {1}]
