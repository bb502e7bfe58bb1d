"""The answers and references of H5, H6 and H10 (tensor parallelism). The tests derive each in a second way.

The tests count bytes in the traced solutions, at the sizes of the questions. Times come from messages moved over
wires (``network.py``). Gradients come from finite differences. The budget of H10 comes from the blocks that each
device has and needs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.course.exercises import load_exercise
from grader.exercise import Exercise, Question, Task
from grader.hardware import CHIPS
from tests import network
from tests.meshes import abstract_mesh

MODULE = Path(__file__).parents[1] / "solutions" / "08_training"
NAMES = ["h5_tensor_parallel", "h6_sequence_parallel", "h10_gather_tp"]
EXERCISES: dict[str, Exercise] = {
    name: load_exercise(MODULE / f"{name}.py", f"keys_of_{name}", "08_training", 0.02) for name in NAMES
}
QUESTIONS = {question.name: question for exercise in EXERCISES.values() for question in exercise.questions.values()}
H5, H6, H10 = (EXERCISES[name].tasks for name in NAMES)
LAYER = {"scale": P(), "w1": P(None, "tp"), "w2": P("tp"), "bias": P()}
CUT = {"w1": P(None, "tp"), "w3": P(None, "tp"), "w2": P("tp")}
BF16 = jnp.bfloat16


# -- bytes and FLOPs of the solutions ----------------------------------------------------------


def traced(task: Task, n: int, arguments: list[Any], specs: tuple) -> Any:
    """Return the jaxpr of a body on n devices, for bfloat16 arrays of these shapes."""
    shaped = jax.tree.map(
        lambda shape: jax.ShapeDtypeStruct(shape, BF16), arguments, is_leaf=lambda a: type(a) is tuple
    )
    body = jax.shard_map(
        task.fn, mesh=abstract_mesh({"tp": n}), in_specs=specs, out_specs=task.out_specs, check_vma=False
    )
    return jax.make_jaxpr(body)(*shaped).jaxpr


def equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            if inner := getattr(value, "jaxpr", value if hasattr(value, "eqns") else None):
                yield from equations(inner)


def sent(jaxpr: Any, n: int, kinds: tuple[str, ...] = ("psum", "all_gather", "reduce_scatter")) -> float:
    """Return the bytes that a device sends.

    A gather sends the device's part n - 1 times, a reduce-scatter sends n - 1 parts, and a psum does both.
    """
    total = 0.0
    for equation in equations(jaxpr):
        taken = sum(v.aval.size * v.aval.dtype.itemsize for v in equation.invars if hasattr(v.aval, "size"))
        name = equation.primitive.name
        if name in kinds:
            total += {
                "psum": 2 * taken * (n - 1) / n,
                "all_gather": taken * (n - 1),
                "reduce_scatter": taken * (n - 1) / n,
            }[name]
        assert name not in ("ppermute", "all_to_all", "psum_invariant")
    return total


def multiplied(jaxpr: Any) -> float:
    """Return the FLOPs of a device's matmuls."""
    total = 0.0
    for equation in equations(jaxpr):
        if equation.primitive.name == "dot_general":
            (left, _), _ = equation.params["dimension_numbers"]
            contracted = math.prod(equation.invars[0].aval.shape[i] for i in left)
            total += 2 * equation.outvars[0].aval.size * contracted
    return total


@cache
def traced_mlp(B: int, D: int, F: int, n: int) -> Any:
    arguments = [(B, D), (D, F), (D, F), (F, D), (D,), (B, D)]
    return traced(H5["gated_mlp"], n, arguments, (P(), CUT["w1"], CUT["w3"], CUT["w2"], P(), P()))


def traced_train(S: int, D: int, n: int) -> Any:
    layers = len(H6["train"].out_specs[2])
    layer = {"scale": (D,), "w1": (D, 4 * n), "w2": (4 * n, D), "bias": (D,)}
    return layers, traced(H6["train"], n, [(S, D), [layer] * layers, (S, D)], (P("tp"), [LAYER] * layers, P("tp")))


def traced_gather(B: int, D: int, L: int, n: int) -> Any:
    return traced(H10["gather_tp"], n, [(B, D), (L, D, D), (B, D)], (P(), P(None, None, "tp"), P()))


def seconds(collective: str, n: int, size: float, chip: str) -> float:
    net = network.Network(CHIPS[chip].ici)
    getattr(network, collective)(net, "ring whole", n, size)
    return net.clock


# -- blocks that devices have and need (H10) ---------------------------------------------------


def blocks_sent(L: int, n: int) -> tuple[int, int]:
    """Return how many blocks [B, D/n] a device must send at least, forward and backward.

    In the forward pass, each block is on one device, and all devices need it. In the backward pass, every device has
    a term of every block of {dh}, and the block's owner needs the sum of the terms. So each device except the owner
    sends one block: its term, or its term added to a received one. All devices need dx. dy is on every device.
    """
    devices = range(n)
    forward = backward = 0
    for _ in range(L):
        forward += sum(
            1 for target in devices for owner in devices if owner == 0 != target
        )  # blocks that device 0 sends to the other devices
    for layer in reversed(range(L)):
        # Device 0 sends its term of each block that it does not own.
        backward += sum(1 for owner in devices if owner != 0)
        if layer == 0:
            backward += sum(
                1 for target in devices if target != 0
            )  # device 0 sends the sum of its block to every other device
    return forward, backward


@pytest.mark.parametrize(("L", "n"), list(itertools.product([1, 2, 5], [2, 3, 8])))
def test_h10_sends_the_least_possible_number_of_blocks(L: int, n: int):
    B, D = 6, 5 * n
    jaxpr = traced_gather(B, D, L, n)
    block = 2 * B * D // n
    forward, backward = blocks_sent(L, n)
    assert sent(jaxpr, n, ("all_gather",)) == forward * block
    assert sent(jaxpr, n, ("psum", "reduce_scatter")) == backward * block
    names = [equation.primitive.name for equation in equations(jaxpr)]
    assert [names.count(kind) for kind in ("all_gather", "reduce_scatter", "psum")] == [L, L - 1, 1]


@pytest.mark.parametrize("n", [2, 4])
def test_the_partial_gradients_of_a_device_cannot_be_compressed(n: int):
    """Device 0's terms of other devices' columns of {dh} can be any array, as device 0's weights vary.

    So no linear message with fewer numbers contains these terms.
    """
    B, D = 3, 4 * n
    rng, units = np.random.default_rng(0), D // n
    parts = []
    for _ in range(2 * B * D):
        part = rng.standard_normal((B, units)) @ rng.standard_normal((D, units)).T
        parts.append(part[:, units:].ravel())
    assert np.linalg.matrix_rank(np.stack(parts)) == B * (D - units)


# -- answers -----------------------------------------------------------------------------------


def block_bytes(S: int, D: int, N: int) -> float:
    layers, jaxpr = traced_train(S, D, N)
    return sent(jaxpr, N, ("all_gather", "reduce_scatter")) / layers


def kept_bytes(S: int, D: int, F: int, L: int, N: int) -> float:
    mesh = abstract_mesh({"tp": N})
    rows = NamedSharding(mesh, P("tp")).shard_shape((S, D))
    hidden = NamedSharding(mesh, P(None, "tp")).shard_shape((S, F))
    return sum(2 * (math.prod(rows) + math.prod(hidden)) for _ in range(L))


def gated_mlp_time(chip: str, B: int, D: int, F: int, N: int) -> float:
    jaxpr = traced_mlp(B, D, F, N)
    reduced = [e.invars[0].aval.size * 2 for e in equations(jaxpr) if e.primitive.name == "psum"]
    return multiplied(jaxpr) / CHIPS[chip].bf16 + sum(seconds("all_reduce", N, size, chip) for size in reduced)


KEYS: dict[str, Callable[..., float]] = {
    "gated_mlp_time": gated_mlp_time,
    "block_bytes": block_bytes,
    "kept_bytes": kept_bytes,
    "slicing_costs": lambda chip, B, D, L, N: sum(
        seconds("all_reduce", N, 2 * B * D, chip) - seconds("reduce_scatter", N, 2 * B * D, chip) for _ in range(L - 1)
    ),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Question):
    for params in question.variants():
        assert question(**params) == pytest.approx(KEYS[question.name](**params), rel=1e-9), params


def test_every_second_derivation_has_its_question():
    assert set(KEYS) == set(QUESTIONS)


# -- references --------------------------------------------------------------------------------


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def unflat(values: np.ndarray, tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    pieces = np.split(values, np.cumsum([leaf.size for leaf in leaves])[:-1])
    return structure.unflatten([piece.reshape(leaf.shape) for piece, leaf in zip(pieces, leaves, strict=True)])


def differences(fn: Callable[[Any], float], at: Any, rng: np.random.Generator) -> list[tuple[Any, float]]:
    """Return pairs (direction, slope of ``fn`` in this direction), by central differences in float64."""
    point, found = flat(at), []
    for _ in range(6):
        way = rng.standard_normal(point.size)
        step = 1e-6 * way
        found.append((unflat(way, at), (fn(unflat(point + step, at)) - fn(unflat(point - step, at))) / 2e-6))
    return found


def reference(name: str) -> Callable:
    (call,) = [c for c in EXERCISES[name].checks.values() if c.name.endswith("_forward")]
    return call.fn.__globals__["on_one_device"]


def inputs(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of a task that have gradients, and dy."""
    rng = np.random.default_rng(1)
    B, D, F = 3, 4, 6

    def draw(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    if name == "h5_tensor_parallel":
        return {"x": draw(B, D), "w1": draw(D, F), "w3": draw(D, F), "w2": draw(F, D), "b": draw(D)}, {"dy": draw(B, D)}
    if name == "h6_sequence_parallel":
        layers = [{"scale": draw(D), "w1": draw(D, F), "w2": draw(F, D), "bias": draw(D)} for _ in range(3)]
        return {"x": draw(B, D), "layers": layers}, {"dy": draw(B, D)}
    return {"x": draw(B, D), "ws": draw(3, D, D)}, {"dy": draw(B, D)}


@pytest.mark.parametrize("name", NAMES)
def test_reference_gradients_equal_finite_differences(name: str):
    on_one_device = reference(name)
    at, dy = inputs(name)
    found = on_one_device(**at, **dy)[1:]
    grads = found[0] if name == "h5_tensor_parallel" else dict(zip(at, found, strict=True))

    def loss(at: Any) -> float:
        return float(np.sum(on_one_device(**at, **dy)[0] * dy["dy"]))

    for way, slope in differences(loss, at, np.random.default_rng(2)):
        assert flat(grads) @ flat(way) == pytest.approx(slope, rel=1e-5, abs=1e-6)


def plain_forward(name: str, at: Mapping[str, Any]) -> np.ndarray:
    """Return the result of the statement's formula, in a second implementation."""
    x = at["x"]
    if name == "h5_tensor_parallel":
        g = x @ at["w1"]
        return (g / (1 + np.exp(-g)) * (x @ at["w3"])) @ at["w2"] + at["b"]
    if name == "h6_sequence_parallel":
        for layer in at["layers"]:
            rows = [row / math.sqrt(sum(row * row) / row.size) * layer["scale"] for row in x]
            x = x + np.tanh(np.stack(rows) @ layer["w1"]) @ layer["w2"] + layer["bias"]
        return x
    for w in at["ws"]:
        x = np.tanh(x @ w)
    return x


@pytest.mark.parametrize("name", NAMES)
def test_reference_is_the_formula_of_the_statement(name: str):
    at, dy = inputs(name)
    np.testing.assert_allclose(reference(name)(**at, **dy)[0], plain_forward(name, at), rtol=1e-12)


def test_fused_columns_bring_gates_and_partners_together():
    """For all small F and N, each piece of the fused array has the matching pieces of w1 and w3."""
    fused_columns = H5["fused_columns"].fn
    for F, n in itertools.product(range(1, 13), range(1, 9)):
        if F % n:
            with pytest.raises(ValueError, match="equal pieces"):
                fused_columns(F, n)
            continue
        w1, w3 = np.arange(F), 100 + np.arange(F)
        w13 = np.concatenate([w1, w3])[fused_columns(F, n)]
        for piece, gates, ups in zip(np.split(w13, n), np.split(w1, n), np.split(w3, n), strict=True):
            assert piece.tolist() == [*gates, *ups]


# -- numbers of the statements -----------------------------------------------------------------


def float32(of_bfloat16: float) -> float:
    return 2 * of_bfloat16


def test_small_cases_match_the_statement():
    mlp = traced(
        H5["gated_mlp"], 4, [(5, 12), (12, 36), (12, 36), (36, 12), (12,), (5, 12)], (P(), *CUT.values(), P(), P())
    )
    assert float32(sent(mlp, 4)) == 720
    assert H5["fused_columns"].fn(4, 2) == [0, 1, 4, 5, 2, 3, 6, 7]
    layers, train = traced_train(60, 90, 4)
    assert float32(sent(train, 4, ("all_gather", "reduce_scatter"))) == 81_000 * layers
    assert float32(sent(train, 4, ("psum",))) == 1080 * layers
    gathered = partial(sent, traced_gather(6, 12, 3, 4), 4)
    assert float32(gathered(("all_gather",))) == 648
    assert float32(gathered(("psum", "reduce_scatter"))) == 864


@pytest.mark.parametrize("n", [2, 4, 8])
def test_h5_divides_nine_matmuls_among_the_devices(n: int):
    assert multiplied(traced_mlp(8, 16, 8 * n, n)) == 9 * 2 * 8 * 16 * 8
