"""What goes round: programs that JAX traced, followed hop by hop."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.common.journeys import Journey, journeys
from tests.clock.programs import read

N = 4
ROUND = [(i, (i + 1) % N) for i in range(N)]
BACK = [(i, (i - 1) % N) for i in range(N)]


def found(local: Callable, mesh: dict[str, int] | None = None) -> list[Journey]:
    return journeys(read(local, [((16, 16), P("x"))], P("x"), mesh=mesh or {"x": N}))


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
def test_after_each_round_a_device_holds_what_set_out_one_further_away(ring: Callable) -> None:
    (journey,) = found(ring)
    assert journey.axes == ("x",) and len(journey.lines) == N - 1
    assert journey.holds == tuple(tuple((d - after) % N for d in range(N)) for after in range(N))


def test_two_ways_are_two_journeys_and_what_goes_alike_is_one() -> None:
    def both(a):
        right, left, other = a, a, a * 2
        for _ in range(2):
            right, left = lax.ppermute(right, "x", ROUND), lax.ppermute(left, "x", BACK)
            other = lax.ppermute(other, "x", ROUND)
        return right + left + other

    right, left = found(both)
    assert right.holds[1] == (3, 0, 1, 2) and left.holds[1] == (1, 2, 3, 0)


def test_who_gets_nothing_holds_zeros_and_sends_them_on() -> None:
    def line(a):
        for _ in range(2):
            a = lax.ppermute(a, "x", ROUND[:-1])
        return a

    (journey,) = found(line)
    assert journey.holds == ((0, 1, 2, 3), (None, 0, 1, 2), (None, None, 0, 1))


def test_on_a_mesh_of_two_axes_devices_are_those_of_the_whole_mesh() -> None:
    (journey,) = found(written_out, {"x": N, "y": 2})
    assert journey.holds[1] == (6, 7, 0, 1, 2, 3, 4, 5)


def alone(a):
    return lax.ppermute(a, "x", ROUND)


def cut_between(a):
    b = lax.ppermute(a, "x", ROUND)
    return jnp.concatenate([lax.ppermute(b[1:], "x", ROUND), b[:1]])


def multiplied_between(a):
    return lax.ppermute(lax.ppermute(a, "x", ROUND) @ jnp.ones((16, 16), a.dtype), "x", ROUND)


def unknown_rounds(a):
    return lax.while_loop(lambda a: a.sum() < 3, lambda a: lax.ppermute(a, "x", ROUND), a)


def very_long(a):
    return lax.fori_loop(0, 1000, lambda _, a: lax.ppermute(a, "x", ROUND), a)


@pytest.mark.parametrize("local", [alone, cut_between, multiplied_between, unknown_rounds, very_long])
def test_nothing_is_said_where_nothing_goes_on_or_nobody_can_tell(local: Callable) -> None:
    assert found(local) == []
