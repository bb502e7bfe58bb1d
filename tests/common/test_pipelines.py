"""Ticks of pipelines. The grader reads from a traced program which argument entries each device's data depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.common.pipelines import Pipeline, pipelines
from grader.wire.operations import Body, Operation, Value
from tests.clock.programs import read
from tests.steps import counted

N, M, D = 4, 5, 16
SHAPES = [((N * D, D), P("pp")), ((M, 3, D), P())]
ON = [(s, s + 1) for s in range(N - 1)]


def found(local: Callable, mesh: dict[str, int] | None = None) -> list[Pipeline]:
    return pipelines(read(local, SHAPES, P("pp"), mesh=mesh or {"pp": N}), ["w", "x"])


def grid(pipeline: Pipeline) -> list[str]:
    """Return a line for each tick, with the entries of each device's data. Data that no result needs are in brackets."""

    def cell(work) -> str:
        text = " ".join(
            "?" if of is None else ",".join(f"{a}:{b}" if b > a + 1 else str(a) for a, b in of) or "."
            for of in work.entries
        )
        return text if work.used else f"({text})"

    return ["  ".join(map(cell, tick)) for tick in pipeline.ticks]


def pipe(w, x, *, ticks=M + N - 1, takes=lambda tick: tick, to=ON):
    """In each tick, multiply on each device and send the result to the next device."""
    me = lax.axis_index("pp")

    def tick(t, carry):
        held, out = carry
        made = jnp.where(me == 0, x[takes(t)], held) @ w
        return lax.ppermute(made, "pp", to), out.at[t - (N - 1)].set(made)

    out = lax.fori_loop(0, ticks, tick, (jnp.ones(x.shape[1:], x.dtype), jnp.zeros_like(x)))[1]
    return jnp.where(me == N - 1, out, 0)[None]


def test_each_tick_moves_a_micro_batch_to_the_next_device_through_its_matmul() -> None:
    (pipeline,) = found(pipe)
    assert pipeline.arguments == ("x",) and pipeline.axes == ("pp",) and len(pipeline.lines) == M + N - 1
    assert grid(pipeline) == [
        "0  (.)  (.)  (.)",
        "1  0  (.)  (.)",
        "2  1  0  (.)",
        "3  2  1  0",
        "4  3  2  1",
        "(4)  4  3  2",
        "(4)  (4)  4  3",
        "(4)  (4)  (4)  4",
    ]
    assert [work.sources for work in pipeline.ticks[3]] == [(), (0,), (1,), (2,)]


def test_a_pipeline_without_its_last_ticks_loses_micro_batches() -> None:
    (pipeline,) = found(lambda w, x: pipe(w, x, ticks=M))
    assert grid(pipeline)[-1] == "(4)  (3)  (2)  1" and len(pipeline.ticks) == M


def test_micro_batches_in_a_wrong_order_are_shown_in_this_order() -> None:
    (pipeline,) = found(lambda w, x: pipe(w, x, takes=lambda tick: M - 1 - jnp.minimum(tick, M - 1)))
    assert grid(pipeline)[:2] == ["4  (.)  (.)  (.)", "3  4  (.)  (.)"]


def test_rows_of_one_array_are_shown_as_ranges() -> None:
    def rows(w, x):
        me, held, total = lax.axis_index("pp"), jnp.ones((3, D), x.dtype), 0
        for t in range(N):
            part = lax.dynamic_slice(x.reshape(M * 3, D), (t * 3, 0), (3, D))
            held = lax.ppermute(jnp.where(me == 0, part, held) @ w, "pp", ON)
            total += held
        return total

    shapes = [SHAPES[0], ((M * 3, D), P())]
    program = read(lambda w, x: rows(w, x.reshape(M, 3, D)), shapes, P("pp"), mesh={"pp": N})
    (pipeline,) = pipelines(program, ["w", "x"])
    assert grid(pipeline)[1:3] == ["3:6  0:3  .  (.)", "6:9  3:6  0:3  (.)"]


def test_the_data_that_arrive_last_are_one_more_tick() -> None:
    def unrolled(w, x):
        me, held, outs = lax.axis_index("pp"), jnp.ones(x.shape[1:], x.dtype), []
        for t in range(N):
            held = lax.ppermute(jnp.where(me == 0, x[t], held) @ w, "pp", ON)
            outs.append(jnp.where(me == N - 1, held, 0))
        return outs[-2] + outs[-1]

    (pipeline,) = found(unrolled)
    assert grid(pipeline) == [
        "0  (.)  (.)  (.)",
        "1  0  (.)  (.)",
        "(2)  1  0  (.)",
        "(3)  (2)  1  (0)",
        "(.)  (3)  (2)  1",
    ]
    assert len(pipeline.lines) == N and pipeline.ticks[-1][3].sources == (2,)


def test_a_stash_gives_back_what_was_put_into_its_slot() -> None:
    def stashed(w, x):
        me, stash, held = lax.axis_index("pp"), jnp.zeros((2, *x.shape[1:]), x.dtype), jnp.ones(x.shape[1:], x.dtype)
        for t in range(M):
            stash = stash.at[t % 2].set(jnp.where(me == 0, x[t], held))
            held = lax.ppermute(stash[(t + 1) % 2] @ w, "pp", ON)
        return held

    (pipeline,) = found(stashed)
    assert grid(pipeline) == [".  (.)  (.)  (.)", "1  .  (.)  (.)", "3  1  .  (.)", "(.)  3  1  ."]


def test_each_device_takes_its_own_branch() -> None:
    def chosen(w, x):
        me, held, total = lax.axis_index("pp"), jnp.ones(x.shape[1:], x.dtype), 0
        for t in range(N):
            made = lax.cond((me + t) % 2 == 0, lambda h, t=t: x[t] @ w, lambda h: h @ w, held)
            held = lax.ppermute(made, "pp", ON)
            total += held
        return total

    (pipeline,) = found(chosen)
    assert grid(pipeline)[:2] == ["0  .  0  (.)", ".  1  .  (1)"]


def test_two_permutes_of_one_value_are_one_tick() -> None:
    def both_ways(w, x):
        me, on, off = lax.axis_index("pp"), *[jnp.ones(x.shape[1:], x.dtype)] * 2
        for t in range(N):
            made = jnp.where(me == 0, x[t], on + 0 * off) @ w
            on, off = lax.ppermute(made, "pp", ON), lax.ppermute(made, "pp", [(b, a) for a, b in ON])
        return on

    (pipeline,) = found(both_ways)
    assert len(pipeline.lines) == N


def whole(w, x):
    held = x[0] @ w
    for _ in range(N):
        held = lax.ppermute(held @ w, "pp", ON)
    return held


def one_permute(w, x):
    return lax.ppermute(x[0] @ w, "pp", ON) + x[1]


def unknown_rounds(w, x):
    return lax.while_loop(lambda a: a.sum() < 3, lambda a: lax.ppermute(a @ w + x[0], "pp", ON), x[1])


def permuted_by_some(w, x):
    def send(h):
        return lax.ppermute(lax.ppermute(h @ w, "pp", ON) + x[1], "pp", ON)

    return lax.cond(lax.axis_index("pp") == 0, send, lambda h: h @ w, x[0])


def very_long(w, x):
    return lax.fori_loop(0, 100_000, lambda t, a: lax.ppermute(a @ w + x[t % M], "pp", ON), x[1])


def nothing_sent(w, x):
    return x[0] @ w


NOTHING = [whole, one_permute, unknown_rounds, permuted_by_some, very_long, nothing_sent]


@pytest.mark.parametrize("local", NOTHING)
def test_no_pipeline_without_ticks_of_different_entries(local: Callable) -> None:
    assert found(local) == []


ROWS = 64  # the most rows for which the walk has separate marks


def many_rows_read(w, x):
    def read_all(t, total):
        for _ in range(40):
            total = total + x.sum()
        return total

    return pipe(w, x[:M]) + lax.fori_loop(0, 200, read_all, x[0, 0, 0])


def many_branches(w, x):
    other = x + 1

    def choose(t, y):
        return lax.switch(y[0, 0, 0].astype(int), [lambda: x, lambda: other] * 250)

    return pipe(w, x[:M]) + lax.fori_loop(0, 100, choose, x)[0]


def many_operands(w, x):
    return pipe(w, x[:M]) + sum(jnp.concatenate([x + t] * 500)[t] for t in range(80))


def many_sets_of_rows(w, x, *more):
    """Send data that depend on 2000 sets of rows of each argument. All sets contain row 0."""
    me, rows = lax.axis_index("pp"), list(x[:12] + sum(one[:12] for one in more))

    def send(t, carry):
        got, total = carry
        made = rows[0] + jnp.where(me == 0, got, 0)  # each permute must wait for the previous one
        for row, bit in zip(rows[1:], [*(t & 1 << b for b in range(8)), *(me & 1 << b for b in range(3))], strict=True):
            made = made + jnp.where(bit > 0, row, 0)
        got = lax.ppermute(made, "pp", [(s, (s + 1) % 8) for s in range(8)])
        return got, total + got

    return lax.fori_loop(0, 250, send, (x[0] * 0, x[0]))[1]


MOST_STEPS = 15_000_000  # The walk that ends last takes 5 million steps.
LONG = [(many_rows_read, N, 0), (many_branches, N, 0), (many_operands, N, 0), (many_sets_of_rows, 8, 120)]


@pytest.mark.parametrize(("local", "devices", "more"), LONG)
def test_a_long_walk_ends_early(local: Callable, devices: int, more: int) -> None:
    shapes = [((devices * D, D), P("pp")), *[((ROWS, 3, D), P())] * (1 + more)]
    program = read(local, shapes, P("pp"), mesh={"pp": devices})
    found, steps = counted(lambda: pipelines(program, [f"argument_{i}" for i in range(len(shapes))]))
    assert found == [] and steps < MOST_STEPS


def test_a_program_of_very_many_entries_has_no_pipeline() -> None:
    def sent(w, x, *more):
        return pipe(w, x) + sum(one[0] for one in more)

    shapes = [*SHAPES, *[((ROWS, 3, D), P())] * 200]
    names = [f"argument_{i}" for i in range(len(shapes))]
    assert pipelines(read(sent, shapes, P("pp"), mesh={"pp": N}), names) == []
    assert len(pipelines(read(sent, shapes[:50], P("pp"), mesh={"pp": N}), names[:50])) == 1


def test_a_forged_loop_without_values_ends() -> None:
    program = read(pipe, SHAPES, P("pp"), mesh={"pp": N})
    number = len(program.values)
    bodies = Body((), (Operation("constant", (), (number,), number=1),), (number,)), Body((), (), ())
    loop = Operation("while", (), (), rounds=1 << 62, bodies=bodies)
    main = replace(program.main, operations=(loop, *program.main.operations))
    assert pipelines(replace(program, values=(*program.values, Value((), "int32")), main=main), ["w", "x"]) == []


def test_a_mesh_of_many_devices_has_no_pipeline() -> None:
    shapes = [((32 * D, D), P("pp")), SHAPES[1]]
    assert pipelines(read(pipe, shapes, P("pp"), mesh={"pp": 32}), ["w", "x"]) == []


def test_data_that_arrive_from_two_devices_are_named_together() -> None:
    def both_ways(w, x):
        me, on, off = lax.axis_index("pp"), *[jnp.ones(x.shape[1:], x.dtype)] * 2
        for t in range(2):
            made = jnp.where(me == 0, x[t], jnp.where(me == 2, x[t + 2], on + off)) @ w
            on, off = lax.ppermute(made, "pp", ON), lax.ppermute(made, "pp", [(b, a) for a, b in ON])
        return on + off

    (pipeline,) = found(both_ways)
    assert grid(pipeline)[1:] == ["1  0,2  3  2", "0,2  1,3  0,2  3"]
    assert [work.sources for work in pipeline.ticks[-1]] == [(1,), (0, 2), (1, 3), (2,)]
