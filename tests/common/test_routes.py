"""Routes: from a traced program, the grader reads which device's data each device has after each permute."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.common.routes import Route, routes
from grader.wire.operations import Body, Operation, Value
from tests.clock.programs import read
from tests.steps import counted

N, ROWS = 4, 48
ROUND = [(i, (i + 1) % N) for i in range(N)]
BACK = [(i, (i - 1) % N) for i in range(N)]


def found(local: Callable, mesh: dict[str, int] | None = None) -> list[Route]:
    return routes(read(local, [((ROWS, 16), P("x"))], P("x"), mesh=mesh or {"x": N}))


def written_out(a):
    total = a
    for _ in range(N - 1):
        a = lax.ppermute(a, "x", ROUND)
        total = total + a
    return total


def in_a_loop(a):
    def one(_, carry):
        held, total = carry
        held = lax.ppermute(held, "x", ROUND)
        return held, total + held

    return lax.fori_loop(0, N - 1, one, (a, a))[1]


def scanned(a):
    def one(held, _):
        return lax.ppermute(held, "x", ROUND) + a, None

    return lax.scan(one, a, None, length=N - 1)[0]


@pytest.mark.parametrize("ring", [written_out, in_a_loop, scanned])
def test_each_round_moves_data_one_device_further_round_the_ring(ring: Callable) -> None:
    (route,) = found(ring)
    assert route.axes == ("x",) and len(route.lines) == N - 1
    assert route.holds == tuple(tuple((d - after) % N for d in range(N)) for after in range(N))


def test_two_directions_are_two_routes_and_equal_movements_one() -> None:
    def both(a):
        right, left, other = a, a, a * 2
        for _ in range(2):
            right, left = lax.ppermute(right, "x", ROUND), lax.ppermute(left, "x", BACK)
            other = lax.ppermute(other, "x", ROUND)
        return right + left + other

    right, left = found(both)
    assert right.holds[1] == (3, 0, 1, 2) and left.holds[1] == (1, 2, 3, 0)


def test_a_device_that_receives_nothing_sends_zeros_on() -> None:
    def line(a):
        for _ in range(2):
            a = lax.ppermute(a, "x", ROUND[:-1])
        return a

    (route,) = found(line)
    assert route.holds == ((0, 1, 2, 3), (None, 0, 1, 2), (None, None, 0, 1))


def test_a_route_on_a_mesh_of_two_axes_numbers_all_devices() -> None:
    (route,) = found(written_out, {"x": N, "y": 2})
    assert route.holds[1] == (6, 7, 0, 1, 2, 3, 4, 5)


def alone(a):
    return lax.ppermute(a, "x", ROUND)


def all_to_all(a):
    """Send a buffer of chunks around the ring. Each device takes one chunk out of the buffer."""
    me = lax.axis_index("x")
    chunks = jnp.stack(jnp.split(a, N, axis=1))
    out = jnp.zeros_like(chunks).at[me].set(chunks[me])
    bag = chunks[(me + jnp.arange(1, N)) % N]
    for hop in range(1, N):
        bag = lax.ppermute(bag, "x", ROUND)
        out = out.at[(me - hop) % N].set(bag[0])
        bag = bag[1:]
    return out.reshape(-1, out.shape[2])


def slots(a):
    """Gather into a buffer. Each round sends the chunk that arrived last, and writes the received chunk into the buffer."""
    me = lax.axis_index("x")
    out = jnp.zeros((N, *a.shape), a.dtype).at[me].set(a)
    for hop in range(1, N):
        out = out.at[(me - hop) % N].set(lax.ppermute(out[(me - hop + 1) % N], "x", ROUND))
    return out.reshape(-1, a.shape[1])


def slots_in_a_loop(a):
    me, k = lax.axis_index("x"), a.shape[0]
    out = lax.dynamic_update_slice(jnp.zeros((N * k, a.shape[1]), a.dtype), a, (me * k, 0))

    def one(hop, out):
        held = lax.dynamic_slice(out, (jnp.mod(me - hop + 1, N) * k, 0), a.shape)
        return lax.dynamic_update_slice(out, lax.ppermute(held, "x", ROUND), (jnp.mod(me - hop, N) * k, 0))

    return lax.fori_loop(1, N, one, out)


def whole_buffer(a):
    """Send the buffer itself around the ring. Each device adds its own chunk."""
    me, k = lax.axis_index("x"), a.shape[0]
    out = jnp.zeros((N * k, a.shape[1]), a.dtype)
    for hop in range(N):
        out = lax.dynamic_update_slice(out, a, (me * k, 0))
        out = lax.ppermute(out, "x", ROUND) if hop < N - 1 else out
    return out


def reduced(a):
    """Send partial sums around the ring. Each device adds the received sum to its own part, in a buffer."""
    me = lax.axis_index("x")
    parts = a.reshape(N, -1, a.shape[1])
    for hop in range(1, N):
        parts = parts.at[(me - hop - 1) % N].add(lax.ppermute(parts[(me - hop) % N], "x", ROUND))
    return parts[me]


@pytest.mark.parametrize("ring", [all_to_all, slots, slots_in_a_loop, whole_buffer, reduced])
def test_a_ring_through_a_buffer_is_followed(ring: Callable) -> None:
    (route,) = found(ring)
    assert route.holds == tuple(tuple((d - after) % N for d in range(N)) for after in range(N))


@pytest.mark.parametrize("seed", range(6))
def test_parts_cut_from_and_put_into_a_buffer_match_a_simulation(seed: int) -> None:
    draw = random.Random(seed)
    steps = [(draw.randrange(N), draw.randrange(N), draw.choice([ROUND, BACK])) for _ in range(4)]

    def local(a):
        me, k = lax.axis_index("x"), a.shape[0]
        out = lax.dynamic_update_slice(jnp.zeros((N * k, a.shape[1]), a.dtype), a, (me * k, 0))
        for taken, put, way in steps:
            part = lax.ppermute(lax.dynamic_slice(out, ((me + taken) % N * k, 0), a.shape), "x", way)
            out = lax.dynamic_update_slice(out, part, ((me * 3 + put) % N * k, 0))
        return out

    # For each device and each place in its buffer: the device from which the part came, and its number of permutes.
    buffers, hops = [[(d, 0)] * N for d in range(N)], 0
    held = [(d, 0) for d in range(N)]
    for taken, put, way in steps:
        sent = [buffers[d][(d + taken) % N][0] for d in range(N)]
        hops = 1 + max(buffers[d][(d + taken) % N][1] for d in range(N))
        for source, target in way:
            held[target] = (sent[source], hops)
        for d in range(N):
            buffers[d][(d * 3 + put) % N] = held[d]
    last = [(len(route.lines), route.holds[-1]) for route in found(local)]
    assert ((hops, tuple(source for source, _ in held)) in last) == (hops > 1)


def multiplied_between(a):
    return lax.ppermute(lax.ppermute(a, "x", ROUND) @ jnp.ones((16, 16), a.dtype), "x", ROUND)


def unknown_rounds(a):
    return lax.while_loop(lambda a: a.sum() < 3, lambda a: lax.ppermute(a, "x", ROUND), a)


def very_long(a):
    return lax.fori_loop(0, 1000, lambda _, a: lax.ppermute(a, "x", ROUND), a)


def joined_between(a):
    b = lax.ppermute(a, "x", ROUND)
    return lax.ppermute(jnp.concatenate([a[:8], b[8:]]), "x", ROUND)


def cut_across(a):
    """Send a slice that is only partly inside the block of received data."""
    out = lax.dynamic_update_slice(jnp.zeros((24, 16), a.dtype), lax.ppermute(a, "x", ROUND), (lax.axis_index("x"), 0))
    return lax.ppermute(lax.dynamic_slice(out, (6, 0), (12, 16)), "x", ROUND)


def nobody_knows_where(a):
    at = a[0, 0].astype(jnp.int32)
    out = lax.dynamic_update_slice(jnp.zeros((24, 16), a.dtype), lax.ppermute(a, "x", ROUND), (at, 0))
    return lax.ppermute(lax.dynamic_slice(out, (0, 0), a.shape), "x", ROUND)


NOTHING = [
    alone, multiplied_between, unknown_rounds, very_long, joined_between, cut_across, nobody_knows_where,
]  # fmt: skip


@pytest.mark.parametrize("local", NOTHING)
def test_no_route_without_permutes_or_with_an_unknown_source(local: Callable) -> None:
    assert found(local) == []


def many_reads(a):
    stash = jnp.zeros((200, ROWS // N, 16), a.dtype)
    for t in range(200):
        stash = lax.dynamic_update_slice(stash, a[None], (t, 0, 0))
        a = lax.ppermute(a, "x", ROUND) if t < 3 else a
    return lax.fori_loop(0, 1000, lambda t, b: b + lax.dynamic_slice(stash, (0, 0, 0), (1, *b.shape))[0], a)


def many_ends(a):
    for _ in range(50):
        a = lax.ppermute(a, "x", ROUND)
    return lax.fori_loop(0, 20_000, lambda t, b: b + lax.ppermute(a, "x", ROUND), a)


@pytest.mark.parametrize("local", [many_reads, many_ends])
def test_a_long_walk_ends_early(local: Callable) -> None:
    program = read(local, [((ROWS, 16), P("x"))], P("x"), mesh={"x": N})
    found, steps = counted(lambda: routes(program))
    assert found == [] and steps < 8_000_000  # the longer one takes 2.6 million steps


def test_a_forged_loop_without_operations_ends() -> None:
    program = read(written_out, [((ROWS, 16), P("x"))], P("x"), mesh={"x": N})
    number = len(program.values)
    bodies = Body((), (Operation("constant", (), (number,), number=1),), (number,)), Body((), (), ())
    loop = Operation("while", (), (), rounds=1 << 62, bodies=bodies)
    main = replace(program.main, operations=(loop, *program.main.operations))
    assert routes(replace(program, values=(*program.values, Value((), "int32")), main=main)) == []
