"""The answers of M1 and M2. The tests derive each answer in a second way.

JAX traces the solution on the mesh and at the sizes of a question. The tests count matmuls and collectives in the
trace. The times of collectives come from messages moved over wires (``network.py``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from grader.course.exercises import load_exercise
from grader.exercise import Question
from grader.hardware import CHIPS
from tests import network
from tests.meshes import abstract_mesh
from tests.sampled import sampled

CAPSTONE = Path(__file__).parents[1] / "solutions" / "13_capstone"
M1, M2 = (
    load_exercise(CAPSTONE / f"{name}.py", f"keys_of_{name}", "13_capstone", 0.02)
    for name in ("m1_block", "m2_train_step")
)
QUESTIONS = M1.questions | M2.questions
PEAK, WIRE = CHIPS["v5p"].bf16, CHIPS["v5p"].ici
HEAD = 128
Times = dict[str, float]


def equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            if inner := getattr(value, "jaxpr", value if hasattr(value, "eqns") else None):
                yield from equations(inner)


def bytes_of(values: Any) -> int:
    return sum(math.prod(v.aval.shape) * v.aval.dtype.itemsize for v in values)


def forward_and_backward(dp: int, sp: int, tp: int, b: int, T: int, D: int) -> tuple[Any, Any]:
    """Return the jaxprs of the forward pass alone and of the block with all gradients. ``dp`` does not change them."""
    return traced(sp, tp, b, T, D)


@cache
def traced(sp: int, tp: int, b: int, T: int, D: int, dp: int = 2) -> tuple[Any, Any]:
    mesh = abstract_mesh({"dp": dp, "tp": tp, "sp": sp})
    H = D // HEAD
    shapes = {
        "before": (D,), "qkv": (D, 3, H, HEAD), "out": (H, HEAD, D), "between": (D,), "up": (D, 4 * D), "down": (4 * D, D),
    }  # fmt: skip
    params = {name: jax.ShapeDtypeStruct(shape, jnp.bfloat16) for name, shape in shapes.items()}
    x = jax.ShapeDtypeStruct((b * dp, T, D), jnp.bfloat16)
    block = partial(M1.tasks["block"].fn, mesh=mesh)

    def both(params: Any, x: Any, ct: Any) -> Any:
        out, back = jax.vjp(block, params, x)
        return out, back(ct)

    return jax.make_jaxpr(block)(params, x).jaxpr, jax.make_jaxpr(both)(params, x, x).jaxpr


def multiplied(jaxpr: Any) -> float:
    """Return the FLOPs of a device's matmuls."""
    total = 0.0
    for equation in equations(jaxpr):
        if equation.primitive.name == "dot_general":
            (left, _), _ = equation.params["dimension_numbers"]
            contracted = math.prod(equation.invars[0].aval.shape[i] for i in left)
            total += 2 * math.prod(equation.outvars[0].aval.shape) * contracted
    return total


def seconds(collective: str, n: int, size: float) -> float:
    net = network.Network(WIRE)
    getattr(network, collective)(net, "ring whole", n, size)
    return net.clock


def on_two_axes(size: float) -> float:
    """Return the time of an all-reduce over two axes: two passes, and each moves the array over four wires."""
    return 2 * size / (4 * WIRE)


@cache
def times_of(dp: int, sp: int, tp: int, b: int, T: int, D: int) -> Times:
    _, jaxpr = forward_and_backward(dp, sp, tp, b, T, D)
    found: Times = {"matmuls": multiplied(jaxpr) / PEAK, "rows": 0.0, "keys": 0.0, "gradients": 0.0}
    for equation in equations(jaxpr):
        name, axes = equation.primitive.name, equation.params.get("axes", equation.params.get("axis_name"))
        if name == "psum_invariant" and axes == ("tp",):
            found["rows"] += seconds("all_reduce", tp, bytes_of(equation.invars))
        elif name == "psum_invariant":
            assert axes == ("dp", "sp")
            if equation.invars[0].aval.size > D:  # smaller arrays are scales, which the questions leave out
                found["gradients"] += on_two_axes(bytes_of(equation.invars))
        elif name == "all_gather":
            assert axes in ("sp", ("sp",))
            found["keys"] += seconds("all_gather", sp, bytes_of(equation.outvars))
        elif name == "reduce_scatter":
            found["keys"] += seconds("reduce_scatter", sp, bytes_of(equation.invars))
        else:
            assert name not in ("psum", "ppermute", "all_to_all")
    return found


def step(**drawn: int) -> float:
    """Return the time of a step. The backward pass has all matmuls that the forward pass alone does not have."""
    time = times_of(**drawn)
    forward = multiplied(forward_and_backward(**drawn)[0]) / PEAK
    backward = time["matmuls"] - forward
    return forward + time["rows"] + time["keys"] + max(backward, time["gradients"])


def overlaps_from(T: int, D: int) -> float:
    """Return the tokens per device at which the backward matmuls take as long as the all-reduce of the gradients.

    Both times are linear in the number of tokens, so traces with two numbers give the answer.
    """
    mesh = {"dp": 4, "sp": 4, "tp": 4, "T": T, "D": D}

    def spare(b: int) -> float:
        time = times_of(b=b, **mesh)
        return time["matmuls"] - multiplied(forward_and_backward(b=b, **mesh)[0]) / PEAK - time["gradients"]

    one, two = spare(1), spare(2)
    return (1 - one / (two - one)) * T / mesh["sp"]


KEYS: dict[str, Callable[..., Any]] = {
    "block_times": lambda chip, **drawn: times_of(**drawn),
    "block_step": lambda chip, short, long, **drawn: {
        "short": step(T=short, b=1, **drawn),
        "long": step(T=long, b=1, **drawn),
    },
    "block_bottleneck": lambda chip, **drawn: max(times_of(**drawn).items(), key=lambda item: item[1])[0],
    "block_overlaps_from": lambda chip, **drawn: overlaps_from(**drawn),
}


@pytest.mark.parametrize("question", sampled(2, QUESTIONS.values()), ids=lambda q: q.name)
def test_answer_agrees_with_a_second_derivation(question: Question):
    for drawn in question.variants():
        assert drawn["chip"] == "v5p"
        due = KEYS[question.name](**drawn)
        assert question(**drawn) == (due if isinstance(due, str) else pytest.approx(due, rel=1e-9)), drawn


def test_every_second_derivation_has_its_question():
    assert set(KEYS) == set(QUESTIONS)


def test_every_bottleneck_occurs():
    question = QUESTIONS["block_bottleneck"]
    assert {question(**drawn) for drawn in question.variants()} == {"matmuls", "rows", "keys", "gradients"}


def test_gradients_are_exposed_only_with_short_sequences():
    for drawn in QUESTIONS["block_step"].variants():
        sizes = {name: drawn[name] for name in ("dp", "sp", "tp", "D")}
        short, long = (times_of(T=drawn[name], b=1, **sizes) for name in ("short", "long"))
        assert short["gradients"] > 1.2 * 2 / 3 * short["matmuls"], drawn
        assert long["gradients"] < 2 / 3 * long["matmuls"] / 1.2, drawn


@pytest.mark.parametrize(("tp", "sp"), list(itertools.product([4, 8], repeat=2)))
def test_the_budget_is_what_the_solution_sends(tp: int, sp: int):
    """The budget: 4 all-reduces of rows, 2 gathers of K and V, 2 scatters of their gradients, a sum per parameter."""
    b, T, D = 2, 4096, 2048
    _, jaxpr = forward_and_backward(4, sp, tp, b, T, D)
    taken: dict[Any, list[int]] = {}
    for equation in equations(jaxpr):
        if equation.primitive.name in ("psum_invariant", "all_gather", "reduce_scatter"):
            axes = equation.params.get("axes", equation.params.get("axis_name"))
            taken.setdefault((equation.primitive.name, str(axes)), []).append(equation.invars[0].aval.size)
    rows, keys = b * T // sp * D, b * T // sp * D // tp
    found = {name: sorted(sizes) for (name, _), sizes in taken.items() if name != "psum_invariant"}
    assert found == {"all_gather": [keys] * 2, "reduce_scatter": [keys * sp] * 2}
    assert taken["psum_invariant", "('tp',)"] == [rows] * 4
    parameters = [D, D, D * D // tp, 3 * D * D // tp, 4 * D * D // tp, 4 * D * D // tp]
    assert sorted(taken["psum_invariant", "('dp', 'sp')"]) == sorted(parameters)
