"""Marks of random programs, compared with the values that simulated devices compute.

Each program sends data by permutes. A test changes one entry of an argument. If this changes the data that a device
sends, the mark of these data must have the entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from grader.common.marks import Held, MarkWalk
from grader.wire.operations import Operation
from tests.clock.programs import read

ROWS, COLUMNS, MOST = 3, 4, 360
MESHES: list[dict[str, int]] = [{"pp": 4}, {"pp": 2, "q": 2}, {"pp": 3, "q": 1}, {"pp": 1, "q": 2}]
FAST = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}  # compile faster
Step = tuple[str, int, int, int]


class Recorded(MarkWalk):
    """A walk that records the marks of each permute's data, in the order in which the permutes run."""

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self.marks: list[tuple[int, ...]] = []

    def moved(self, op: Operation, brought: list[Held]) -> list[Held]:
        if op.communication is not None and op.communication.kind == "permute":
            self.marks.append(self.latest[op.operands[0]].marks)
        return super().moved(op, brought)


@dataclass
class Machine:
    """Run steps on values. ``sent`` lists the data of all permutes; with ``unrolled``, also those of each loop round."""

    axes: dict[str, int]
    unrolled: bool = False
    sent: list[Any] = field(default_factory=list)

    def index(self, values: list, n: int, a: int, b: int) -> Any:
        """Return an integer. ``a`` selects an expression of the device, the round, constants or data."""
        me, t = lax.axis_index("pp"), values[0]
        other = lax.axis_index("q") if "q" in self.axes else me
        number = [
            lambda: jnp.int32(b - 3),
            lambda: me,
            lambda: t,
            lambda: me + t - b % 4,
            lambda: (t - me) % (b + 1),
            lambda: jnp.where(me == b % 3, t, other * b),
            lambda: jnp.clip(t * (b - 4) + other, -2, 5),
            lambda: lax.div(t * 3 - b, jnp.int32(2) + me),
            lambda: (me.astype(jnp.int8) * jnp.int8(50) + t.astype(jnp.int8) * jnp.int8(b * 8)).astype(jnp.int32) % 7,
            lambda: (me.astype(jnp.uint32) * jnp.uint32(2654435761) >> (b + 8)).astype(jnp.int32) % 5,
            lambda: ((t.astype(jnp.uint32) - jnp.uint32(b)) * jnp.uint32(1664525)).astype(jnp.int32) % 5,
            lambda: jnp.where(((me * b) & 3).astype(bool), 2, t),
            lambda: jnp.abs(self.pick(values, b).ravel()[:1].sum() * 3).astype(jnp.int32) % 6,
            lambda: jnp.argmax(fitted(self.pick(values, b), (6,))).astype(jnp.int32),
        ]
        return number[a % len(number)]() + n * 0

    def pick(self, values: list, a: int) -> Any:
        return values[1 + a % (len(values) - 1)]

    def step(self, values: list, step: Step) -> None:
        name, a, b, c = step
        one, two = self.pick(values, a), self.pick(values, b)
        made = STEPS[name](self, values, one, two, a, b, c)
        if made.ndim <= 3 and 0 <= made.size <= MOST:
            values.append(made.astype(jnp.float32))

    def permute(self, value: Any, a: int, b: int) -> Any:
        axis = list(self.axes)[a % len(self.axes)]
        n = self.axes[axis]
        to = [[(d, d + 1) for d in range(n - 1)], [(d, (d + b) % n) for d in range(n)], [(n - 1, 0)]][b % 3]
        self.sent.append(value)
        return lax.ppermute(value, axis, to)

    def loop(self, values: list, rounds: int, scanned: int, steps: list[Step]) -> None:
        """Run the steps in a loop. A round sends its last value, and stores it in an array that the loop carries."""

        def body(t: Any, carry: tuple[Any, Any]) -> tuple[Any, Any]:
            inner = [t, *values[1:], *carry]
            for step in steps:
                self.step(inner, step)
            held, stash = fitted(inner[-1], (ROWS, COLUMNS)), inner[len(values) + 1]
            held = self.permute(held * 0.7, scanned, rounds)
            return held, lax.dynamic_update_slice(stash, held[None], (t % 4, 0, 0))

        carry = fitted(values[-1], (ROWS, COLUMNS)), jnp.zeros((4, ROWS, COLUMNS))
        if self.unrolled:
            for t in range(rounds):
                carry = body(jnp.int32(t), carry)
        elif scanned % 2:
            carry = lax.scan(lambda carry, t: (body(t, carry), None), carry, jnp.arange(rounds, dtype=jnp.int32))[0]
        else:
            carry = lax.fori_loop(0, rounds, lambda t, carry: body(jnp.int32(t), carry), carry)
        values.extend(carry)


def fitted(value: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of this shape with the value's elements, repeated if there are too few, cut if too many."""
    flat, size = value.reshape(-1), math.prod(shape)
    if not flat.size or not size:
        return jnp.zeros(shape) + flat.sum()
    flat = jnp.concatenate([flat] * -(-size // flat.size))
    return flat[:size].reshape(shape)


def entry(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    return one[m.index(v, 0, b, c)] if one.ndim and one.shape[0] else one


def sliced(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    if not one.ndim or not one.shape[0]:
        return one
    return lax.dynamic_slice_in_dim(one, m.index(v, 0, b, c), min(one.shape[0], 1 + c % 3), 0)


def fixed(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    return one[b % 3 : b % 3 + c % 5 : 1 + (a + b + c) % 5 // 4] if one.ndim else one


def cut_inside(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    if one.ndim < 2 or not one.size:
        return one
    if a % 2:
        return one[:, b % 2 :: 1 + c % 2]
    at = [m.index(v, 0, b, c), m.index(v, 0, c, a), *[jnp.int32(0)] * (one.ndim - 2)]
    return lax.dynamic_slice(one, at, [1, 1 + c % one.shape[1], *one.shape[2:]])


def set_entry(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    if not one.ndim or not one.size:
        return one
    new, at = fitted(two, one.shape[1:]), m.index(v, 0, c, a)
    if a % 3 == 0:
        return one.at[at].add(new, mode="drop")
    return one.at[at].set(new, mode="drop" if a % 3 == 1 else None)


def update(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    if not one.ndim or not one.size:
        return one
    shape = [c % (one.shape[0] + 1), *one.shape[1:]]
    if one.ndim > 1 and b % 2:
        shape[1] = 1
    at = [m.index(v, 0, c, a), *[jnp.int32(b % 2)] * (one.ndim - 1)]
    return lax.dynamic_update_slice(one, fitted(two, tuple(shape)), at)


def where(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    return jnp.where(m.index(v, 0, c, b) == a % 4, one, fitted(two, one.shape))


def masked(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    return jnp.where(one > 0.2 * (c - 5), one, fitted(two, one.shape))


def cond(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    two = fitted(two, one.shape)
    if c % 2:
        return lax.cond(m.index(v, 0, c, b) > a % 3, lambda p, q: p + jnp.flip(q), lambda p, q: q, one, two)
    return lax.switch(m.index(v, 0, c, b), [lambda p, q: p, lambda p, q: q * 2, lambda p, q: jnp.sin(p)], one, two)


def matmul(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    return jnp.tanh(fitted(one, (ROWS, COLUMNS)) @ fitted(two, (COLUMNS, 1 + c % 5)))


def added(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    two = fitted(two, one.shape[1:] if one.ndim and c % 2 else one.shape)
    return [one + two, one * two, jnp.maximum(one, two), one - two][c % 4]


def joined_up(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    if not one.ndim:
        return jnp.stack([one, fitted(two, ())])
    return jnp.concatenate([one, fitted(two, one.shape)][:: 1 - 2 * (c % 2)], axis=c % one.ndim)


def taken(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    at = jnp.stack([m.index(v, 0, b, c), m.index(v, 0, c, a)])
    if not one.ndim or not one.shape[c % one.ndim]:
        return one
    return jnp.take(one, at, axis=c % one.ndim, mode=["clip", "wrap", "fill"][b % 3])


def reshaped(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    n = math.gcd(one.size, 1 + c)
    shape = [(-1,), (n, -1), (-1, n), (one.size,)][b % 4] if one.size else (0,)
    return one.reshape(shape)


def summed(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    return [jnp.sum, jnp.cumsum][c % 2](one, axis=b % one.ndim) if one.ndim else one.sum()


def turned(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    if not one.ndim:
        return one
    return [
        lambda: one.T,
        lambda: jnp.roll(one, b - 3, axis=c % one.ndim),
        lambda: jnp.flip(one, axis=b % one.ndim),
        lambda: jnp.sort(one, axis=b % one.ndim),
        lambda: jnp.pad(one, [(b % 2, c % 2)] * one.ndim),
        lambda: lax.pad(one, jnp.float32(0), [(-min(b % 2, one.shape[0]), c % 3, 0)] + [(0, 0, 0)] * (one.ndim - 1)),
        lambda: one[None],
        lambda: jnp.roll(one, m.index(v, 0, b, c), axis=0),
        lambda: one.astype(jnp.bfloat16),
        lambda: jnp.round(one * 4).astype(jnp.int8),
    ][(a + b + c) % 10]()  # fmt: skip


def gradient(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    return jax.grad(lambda p: (jnp.tanh(entry(m, v, p, two, a, b, c)) * fitted(two, ())).sum())(one)


def nested(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    @jax.custom_vjp
    def f(p: Any) -> Any:
        return jnp.sin(p)

    f.defvjp(lambda p: (f(p), p), lambda p, g: (g * p,))
    return jax.jit(lambda p: jax.checkpoint(f)(p) + (jax.grad(lambda q: f(q).sum())(p) if c % 2 else 0))(one)


def while_loop(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    return lax.fori_loop(jnp.int32(b % 3), jnp.int32(c % 5), lambda t, p: jnp.flip(p) * 0.5 + t, one)


def collective(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    if c % 2 or not one.ndim or not one.size:
        return lax.psum(one, list(m.axes)[b % len(m.axes)])
    return lax.all_gather(one, list(m.axes)[b % len(m.axes)], axis=0, tiled=True)


def permuted(m: Machine, v: list, one: Any, two: Any, a: int, b: int, c: int) -> Any:
    return m.permute(one, b, c) if one.size else one


STEPS: dict[str, Callable] = {
    f.__name__: f
    for f in (
        entry, sliced, fixed, cut_inside, set_entry, update, where, masked, cond, matmul, added, joined_up, taken,
        reshaped, summed, turned, gradient, nested, while_loop, collective, permuted,
    )
}  # fmt: skip

NUMBERS = st.integers(0, 15)
STEP = st.tuples(st.sampled_from(sorted(STEPS)), NUMBERS, NUMBERS, NUMBERS)
PROGRAMS = st.tuples(
    st.integers(0, len(MESHES) - 1), st.lists(STEP, max_size=4), st.integers(1, 4), NUMBERS, st.lists(STEP, max_size=6),
    st.lists(STEP, max_size=3),
)  # fmt: skip


def data(seed: int, shapes: list) -> list[Any]:
    draw = np.random.default_rng(seed)
    return [draw.normal(size=shape).astype(np.float32) for shape, _ in shapes]


def changed(run: Callable, arrays: list[Any], seed: int) -> dict[tuple[int, int], list[Any]]:
    """Change each entry of each argument. Return for each permute and device whether the sent data change."""
    draw, found = np.random.default_rng(seed + 1), {}
    before = run(*arrays)
    for i, array in enumerate(arrays):
        for e in range(len(array) if array.ndim and len(array) > 1 else 0):
            other = array.copy()
            other[e] = draw.normal(size=other[e].shape)
            after = run(*[other if j == i else a for j, a in enumerate(arrays)])
            found[i, e] = [
                [not np.array_equal(p, q, equal_nan=True) for p, q in zip(*pair, strict=True)]
                for pair in zip(before, after, strict=True)
            ]
    return found


def wrong(program: Any) -> list[str]:
    """Return the entries that the marks lack, although a change of the entry changed the sent data."""
    which, first, rounds, scanned, inner, last = program
    axes = MESHES[which]
    n = math.prod(axes.values())
    shapes = [((5, ROWS, COLUMNS), P()), ((6 * n, COLUMNS), P(tuple(axes))), ((7,), P()), ((), P()), ((0, 2), P())]

    def local(machine: Machine, *arguments: Any) -> Any:
        values = [jnp.int32(1), *arguments]
        for step in first:
            machine.step(values, step)
        machine.loop(values, rounds, scanned, inner)
        for step in last:
            machine.step(values, step)
        machine.permute(values[-1], scanned, rounds)
        return jnp.stack([value.sum() for value in values[6:]])[None]

    walk_program = read(lambda *a: local(Machine(axes), *a), shapes, P(tuple(axes)), mesh=axes, dtype="float32")
    walk = Recorded(walk_program, n)
    walk.results()

    def sends(*arguments: Any) -> Any:
        machine = Machine(axes, unrolled=True)
        local(machine, *arguments)
        return [value[None] for value in machine.sent]

    mesh = Mesh(np.array(jax.devices()[:n]).reshape(*axes.values()), tuple(axes))
    specs = tuple(spec for _, spec in shapes)
    run = jax.jit(
        jax.shard_map(sends, mesh=mesh, in_specs=specs, out_specs=P(tuple(axes)), check_vma=False),
        compiler_options=FAST,
    )
    found, missing = changed(lambda *a: [np.asarray(v) for v in run(*a)], data(which, shapes), 0), []
    for (i, e), permutes in found.items():
        for p, (marks, devices) in enumerate(zip(walk.marks, permutes, strict=True)):
            for d, has in enumerate(devices):
                entries, _ = walk.entries_in(marks[d], i)
                if has and not entries >> e & 1:
                    missing.append(f"permute {p}, device {d}: entry {e} of argument {i}")
    return missing


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(PROGRAMS)
def test_a_mark_has_each_entry_that_changes_the_sent_data(program: Any) -> None:
    assert wrong(program) == []


@pytest.mark.slow
@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(PROGRAMS)
def test_marks_of_many_programs_have_each_entry(program: Any) -> None:
    assert wrong(program) == []
