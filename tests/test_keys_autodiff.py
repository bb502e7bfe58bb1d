"""The answers of module 07. The tests derive each answer in a second way.

JAX traces the programs. The tests move the traced all-reduces over wires (``network.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from grader.course.exercises import load_exercise
from grader.exercise import Exercise, Question
from grader.hardware import CHIPS, HOP_TIME
from tests import network

MODULE = "07_autodiff"
SOLUTIONS = Path(__file__).parents[1] / "solutions" / MODULE
NAMES = ["g1_repair", "g2_megatron", "g3_inner_grad", "g4_accumulation", "g5_batch_norm"]
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(SOLUTIONS / f"{name}.py", f"keys_of_{name}", MODULE, 0.02) for name in NAMES
}
QUESTIONS = {question.name: question for exercise in EXERCISES.values() for question in exercise.questions.values()}
TASKS = {task.name: task.fn for exercise in EXERCISES.values() for task in exercise.tasks.values()}


# -- what JAX traces ---------------------------------------------------------------------------


def inner(eqn: Any) -> Iterator[Any]:
    """Yield the jaxprs in an equation's parameters."""
    for value in jax.tree.leaves(
        list(eqn.params.values()), is_leaf=lambda v: hasattr(v, "eqns") or hasattr(v, "jaxpr")
    ):
        if hasattr(value, "eqns") or hasattr(value, "jaxpr"):
            yield getattr(value, "jaxpr", value)


def is_all_reduce(eqn: Any) -> bool:
    return eqn.primitive.name.startswith("psum")


def all_reduces(jaxpr: Any, times: int = 1) -> list[int]:
    """Return the bytes of each all-reduce of a jaxpr. An all-reduce in a scan is listed once for each round."""
    found = []
    for eqn in jaxpr.eqns:
        if is_all_reduce(eqn):
            found += [math.prod(v.aval.shape) * v.aval.dtype.itemsize for v in eqn.invars] * times
        for part in inner(eqn):
            found += all_reduces(part, times * eqn.params.get("length", 1))
    return found


def longest_chain(jaxpr: Any, before: list[int]) -> list[int]:
    """Return the length of the longest chain of all-reduces before each result. ``before``: the arguments' lengths."""
    depth = dict(zip(jaxpr.invars, before, strict=True))
    for eqn in jaxpr.eqns:
        given = [depth.get(v, 0) if not hasattr(v, "val") else 0 for v in eqn.invars]
        parts = list(inner(eqn))
        if parts and len(parts[0].invars) == len(given):
            after = longest_chain(parts[0], given)
        else:
            after = [max(given, default=0) + is_all_reduce(eqn)] * len(eqn.outvars)
        depth.update(zip(eqn.outvars, after, strict=True))
    return [depth.get(v, 0) if not hasattr(v, "val") else 0 for v in jaxpr.outvars]


def mesh_of(axis: str, size: int) -> AbstractMesh:
    return AbstractMesh((size,), (axis,), axis_types=(AxisType.Auto,))


def traced(fn: Callable, axis: str, size: int, specs: tuple, out: Any, *shapes: tuple) -> Any:
    """Return the jaxpr of a per-device function on ``size`` devices, with check_vma=True."""
    mapped = jax.shard_map(fn, mesh=mesh_of(axis, size), in_specs=specs, out_specs=out, check_vma=True)
    return jax.make_jaxpr(mapped)(*(jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes)).jaxpr


# -- the network -------------------------------------------------------------------------------


@cache
def sent(n: int, size: float) -> float:
    """Return the bytes that each device sends in an all-reduce of ``size`` bytes on a one-way ring."""
    net = network.Network(1.0)
    network.all_reduce(net, "one_way_ring", n, size)
    return sum(net.sent.values()) / n


@cache
def seconds(n: int, size: float, chip: str, *, hop: float = 0.0, how: str = "ring whole") -> float:
    """Return the time of an all-reduce that uses both directions of a ring. A step takes at least ``hop`` seconds."""
    net = network.Network(CHIPS[chip].ici)
    network.all_reduce(net, how, n, size)
    return net.steps * max(hop, net.clock / net.steps)


# -- answers -----------------------------------------------------------------------------------

HALF = jnp.bfloat16


def gated(T: int, D: int, X: int) -> float:
    F = 16 * X

    def step(x, w_1, w_3, w_2, dy):
        block = lambda *a: jax.lax.psum((jax.nn.silu(a[0] @ a[1]) * (a[0] @ a[2])) @ a[3], "tp")  # noqa: E731
        y, back = jax.vjp(block, x, w_1, w_3, w_2)
        return y, *back(dy)

    cut = P(None, "tp")
    specs = (P(), cut, cut, P("tp"), P())
    shapes = ((T, D), (D, F), (D, F), (F, D), (T, D))
    jaxpr = traced(step, "tp", X, specs, (P(), *specs[:4]), *((shape, HALF) for shape in shapes))
    return sum(sent(X, size) for size in all_reduces(jaxpr))


def all_layers(chip: str, L: int, T: int, D: int, X: int) -> float:
    F = 16 * X
    specs, shapes = (P(), P(None, "tp"), P("tp"), P()), ((T, D), (D, F), (F, D), (T, D))
    jaxpr = traced(TASKS["block_by_types"], "tp", X, specs, (P(), *specs[:3]), *((shape, HALF) for shape in shapes))
    return L * sum(2 * seconds(X, size, chip, how="ring") for size in all_reduces(jaxpr))


def inner_grad(D: int, F: int, X: int) -> float:
    def grad(w, rows):
        return jax.grad(lambda w: jnp.sum((rows @ w.astype(HALF)).astype(jnp.float32) ** 2))(w)

    shapes = (((D, F), jnp.float32), ((8 * X, D), HALF))
    return sum(sent(X, size) for size in all_reduces(traced(grad, "x", X, (P(), P("x")), P(), *shapes)))


def summed_in_a_loop(chip: str, T: int, X: int, D: int, E: int) -> float:
    def local(x):
        add = lambda t, c: c / 2 + jax.lax.psum(x[t].sum(0), "x")  # noqa: E731
        return jax.lax.fori_loop(0, T, add, jnp.zeros(x.shape[2]))

    found = [
        size
        for n in (D, E)
        for size in all_reduces(traced(local, "x", X, (P(None, "x"),), P(), ((T, X, n), jnp.float32)))
    ]
    return sum(seconds(X, size, chip, hop=HOP_TIME) for size in found)


def one_micro_batch_after_the_other(chip: str, G: int, X: int, M: int) -> float:
    each, once = [4 * G * 1e6] * M, [4 * G * 1e6]
    return sum(seconds(X, size, chip) for size in each) - sum(seconds(X, size, chip) for size in once)


def tokens_by_search(chip: str, percent: int, X: int, width: int) -> float:
    """Return the tokens of a step of a model with a billion parameters, found by bisection."""
    G = 1e9
    reduce, low, high = seconds(X, width * G, chip), 1.0, 1e9
    for _ in range(200):
        tokens = (low + high) / 2
        forwards, backwards = 2 * G * tokens, 4 * G * tokens
        share = reduce / (reduce + (forwards + backwards) / CHIPS[chip].bf16)
        low, high = (tokens, high) if share > percent / 100 else (low, tokens)
    return low


def in_two_passes(x):
    centred = x - jax.lax.pmean(x.mean(0), "dp")
    return centred / jnp.sqrt(jax.lax.pmean((centred**2).mean(0), "dp") + 0.1)


def in_one_pass(x):
    mean, square = jax.lax.pmean(jnp.stack([x.mean(0), (x**2).mean(0)]), "dp")
    return (x - mean) * jax.lax.rsqrt(square - mean**2 + 0.1)


@cache
def waited_for(norm: Callable, X: int, D: int) -> int:
    """Return the length of the longest chain of all-reduces in the forward and backward pass of a norm."""

    def both(x, dy):
        y, back = jax.vjp(norm, x)
        return y, *back(dy)

    rows = P("dp")
    shapes = [((3 * X, D), jnp.float32)] * 2
    return max(longest_chain(traced(both, "dp", X, (rows, rows), (rows, rows), *shapes), [0, 0]))


def second_pass(L: int, X: int, D: int) -> float:
    more = waited_for(in_two_passes, X, D) - waited_for(in_one_pass, X, D)
    net = network.Network(1.0)
    network.all_reduce(net, "ring whole", X, 1)
    return L * more * net.steps * HOP_TIME


KEYS: dict[str, Callable[..., float]] = {
    "loop_time": summed_in_a_loop,
    "gated_bytes": gated,
    "layers_time": all_layers,
    "inner_grad_bytes": inner_grad,
    "accumulated_saving": one_micro_batch_after_the_other,
    "accumulated_tokens": tokens_by_search,
    "two_pass_cost": second_pass,
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Question):
    for params in question.variants():
        assert question(**params) == pytest.approx(KEYS[question.name](**params), rel=1e-9), params


def test_every_second_derivation_has_its_question():
    assert set(KEYS) == set(QUESTIONS)


def test_hops_outweigh_the_bytes_of_a_batch_norm():
    """The answer of G5's question ignores the time of the bytes, because the hops take more than ten times as long."""
    (question,) = EXERCISES["g5_batch_norm"].questions.values()
    for params in question.variants():
        assert seconds(params["X"], 8 * params["D"], "v5p") < 0.1 * params["X"] * HOP_TIME


# -- claims of the statements ------------------------------------------------------------------


@pytest.mark.parametrize(("check_vma", "expected"), [(True, 4), (False, 1)])
def test_types_sum_a_gradient_over_the_devices(check_vma: bool, expected: float):
    """G3: on each of 4 devices the gradient of w * 1 is 1. With check_vma, JAX sums the gradients of the devices."""
    mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,), devices=jax.devices()[:4])
    local = jax.grad(lambda w, x: w * x[0])
    fn = jax.shard_map(local, mesh=mesh, in_specs=(P(), P("x")), out_specs=P(), check_vma=check_vma)
    assert fn(jnp.float32(3), jnp.ones(4)) == expected


@pytest.mark.parametrize(("check_vma", "expected"), [(True, 0), (False, 2)])
def test_without_types_a_psum_is_summed_again_backwards(check_vma: bool, expected: int):
    """G1: without check_vma the backward pass has two sums: over x, and over y, which is not in the argument's spec."""
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    local = lambda x: jax.lax.psum(x.sum(0), "x")  # noqa: E731
    fn = jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=check_vma)
    shape, cotangent = jax.ShapeDtypeStruct((8, 6), jnp.float32), jax.ShapeDtypeStruct((6,), jnp.float32)
    jaxpr = jax.make_jaxpr(lambda x, ct: jax.vjp(fn, x)[1](ct))(shape, cotangent).jaxpr
    sums = [axis for eqn in flat(jaxpr) if is_all_reduce(eqn) for axis in eqn.params["axes"]]
    assert len(sums) - 1 == expected  # one sum belongs to the forward pass


def flat(jaxpr: Any) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        yield eqn
        for part in inner(eqn):
            yield from flat(part)


def test_jax_casts_at_each_place_where_types_meet():
    """G2's trap: x is used twice, so JAX casts it twice unless the program casts it once."""

    def step(cast):
        def grad(x, w):
            x_ = (lambda x: jax.lax.pcast(x, "x", to="varying")) if cast else (lambda x: x)
            return jax.grad(lambda x: (lambda x: jnp.sum(jnp.tanh(x @ w) * (x @ w)))(x_(x)))(x)

        return traced(grad, "x", 4, (P(), P(None, "x")), P(), ((2, 6), jnp.float32), ((6, 8), jnp.float32))

    assert len(all_reduces(step(True))) == 1
    assert len(all_reduces(step(False))) == 2
