"""Checks on dependences: right and wrong programs in several styles, and the messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.common.dependency import placed
from grader.common.observation import Seen
from grader.exercise import normal
from grader.expect import (
    Failure,
    expect_beside,
    expect_collectives,
    expect_not_waiting,
    expect_traffic,
)
from grader.expect.order import can_overlap
from grader.runner import facts, operations
from tests.conftest import Traced
from tests.seen import reason

MESH = {"x": 4}
HEAD = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

RING = [(i, (i + 1) % 4) for i in range(4)]
"""
ROWS, WEIGHTS = normal(16, 8, spec=("x", None)), normal(8, 8)


def look(made: Traced, **more: Any) -> Seen:
    """Return the ``Seen`` of a traced program that has not run."""
    form, files = made.form, {"a.py"}
    read = operations.read(form.parse(), made.request["mesh"], files)
    found = facts.read(form.parse(), made.request["mesh"], files).collectives
    return Seen(
        made.request["mesh"], collectives=placed(found, read, cotangents=int(bool(made.request["wrt"]))),
        operations=read, differentiated=bool(made.request["wrt"]), **more,
    )  # fmt: skip


@pytest.fixture
def seen_of(traced: Callable[..., Traced]) -> Callable[..., Seen]:
    def seen_of(body: str, *args: Any, out: str = 'P("x", None)', **more: Any) -> Seen:
        """Return the ``Seen`` of ``def local(a, w)`` in a shard_map over rows of ``a``."""
        text = f"""{HEAD}
{body}

def f(a, w, *, mesh):
    specs = (P("x", None), P())
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs={out}, check_vma=False)(a, w)
"""
        return look(traced(text, *(args or (ROWS, WEIGHTS)), mesh=MESH, **more))

    return seen_of


GATHERED = """
def local(a, w):
    first = a @ w
    def hop(i, state):
        a, total = state
        {before}
        arrived = lax.ppermute({sent}, "x", RING)
        return arrived, total + {used} @ w
    return lax.fori_loop(0, 3, hop, (a, first))[1]
"""
UNROLLED = """
def local(a, w):
    total = jnp.zeros_like(a)
    for hop in range(4):
        part = a @ w
        if hop < 3:
            a = lax.ppermute({sent}, "x", RING)
        total += part
    return total
"""
SUMMED = """
def local(a, w):
    total = jnp.zeros_like(a)
    def hop(i, total):
        part = a @ (w + i)
        {before}
        return lax.ppermute({sent}, "x", RING) + part
    return lax.fori_loop(0, 4, hop, total)
"""


# -- expect_not_waiting ------------------------------------------------------------------------


def test_a_ring_that_sends_its_input_on_waits_for_no_matmul(seen_of: Callable[..., Seen]) -> None:
    seen = seen_of(GATHERED.format(before="pass", sent="a", used="arrived"))
    expect_not_waiting(seen, "permute")
    expect_not_waiting(seen, "permute", rounds="same")
    expect_not_waiting(seen, "permute", on="dot_general")
    expect_not_waiting(seen_of(UNROLLED.format(sent="a")), "permute")


def test_whether_permutes_can_overlap_is_taken_for_granted_without_matmuls(seen_of: Callable[..., Seen]) -> None:
    alone = seen_of('def local(a, w):\n    return lax.ppermute(a, "x", RING)').operations
    beside = seen_of(GATHERED.format(before="pass", sent="a", used="a")).operations
    after = seen_of('def local(a, w):\n    return lax.ppermute(a @ w, "x", RING)').operations
    assert alone is not None and beside is not None and after is not None
    assert [can_overlap(one, "permute") for one in (alone, beside, after)] == [True, True, False]


def test_a_message_names_the_line_the_kind_the_dtype_and_the_shape(seen_of: Callable[..., Seen]) -> None:
    late = seen_of(GATHERED.format(before="p = a @ w", sent="lax.optimization_barrier((a, p))[0]", used="a"))
    told = reason(expect_not_waiting, late, "permute")
    assert told == (
        "line 15: permute of float32[4, 8] over x waits for dot_general of float32[4, 8] in line 14, "
        "but must be able to start without it"
    )
    told = reason(expect_not_waiting, late, "permute", rounds="same")
    assert told.endswith("but must be able to start without it in the same round")
    late = seen_of(UNROLLED.format(sent="a + 0 * part"))
    assert "line 15: permute of float32[4, 8] over x waits for dot_general" in reason(
        expect_not_waiting, late, "permute", rounds="same"
    )


def test_a_ring_of_sums_waits_for_matmuls_of_earlier_rounds_only(seen_of: Callable[..., Seen]) -> None:
    right = seen_of(SUMMED.format(before="pass", sent="total"))
    expect_not_waiting(right, "permute", rounds="same")
    assert "waits for dot_general" in reason(expect_not_waiting, right, "permute")
    expect_beside(right, "permute")
    late = seen_of(SUMMED.format(before="pass", sent="total + 0 * part"))
    assert "in the same round" in reason(expect_not_waiting, late, "permute", rounds="same")


def test_a_gather_of_the_next_layer_does_not_wait_for_the_layer_before(seen_of: Callable[..., Seen]) -> None:
    layers = """
def local(a, w):
    for layer in range(3):
        {}
        a = jnp.tanh(a @ full[:, :8])
    return a
"""
    early = seen_of(layers.format('full = lax.all_gather(w * layer, "x", axis=1, tiled=True)'))
    expect_not_waiting(early, "all_gather", on="matmul")
    late = seen_of(
        layers.format('full = lax.all_gather(lax.optimization_barrier((w * layer, a))[0], "x", axis=1, tiled=True)')
    )
    assert "all_gather of float32[8, 8] over x waits for dot_general" in reason(
        expect_not_waiting, late, "all_gather", on="matmul"
    )


# -- expect_beside -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "right",
    [
        GATHERED.format(before="pass", sent="a", used="a"),
        UNROLLED.format(sent="a"),
        SUMMED.format(before="pass", sent="total"),
    ],
)
def test_right_rings_have_a_matmul_beside_every_permute(seen_of: Callable[..., Seen], right: str) -> None:
    expect_beside(seen_of(right), "permute")


@pytest.mark.parametrize(
    "wrong",
    [
        GATHERED.format(
            before="pass", sent="a", used="arrived"
        ),  # in each round, the gather waits for a value of this round
        GATHERED.format(before="p = a @ w", sent="lax.optimization_barrier((a, p))[0]", used="a"),
        GATHERED.format(before="p = a @ w", sent="a + 0 * p", used="arrived"),
        GATHERED.format(before="a @ w", sent="a", used="arrived"),  # the result of a @ w is not used
        GATHERED.format(before="pass", sent="a", used="lax.cond(a[0, 0] > 0, lambda: a @ w, lambda: a)").replace(
            "lambda: a) @ w", "lambda: a)"
        ),
        UNROLLED.format(sent="a + 0 * part"),
        UNROLLED.format(sent="lax.optimization_barrier((a, part))[0]"),
        SUMMED.format(before="pass", sent="total + 0 * part"),
    ],
)
def test_wrong_rings_have_no_matmul_beside_a_permute(seen_of: Callable[..., Seen], wrong: str) -> None:
    told = reason(expect_beside, seen_of(wrong), "permute")
    assert "permute of float32[4, 8] over x has no matmul beside it: each matmul in " in told


def test_a_matmul_in_a_branch_is_beside_a_permute_of_the_same_branch_only(seen_of: Callable[..., Seen]) -> None:
    text = """
def local(a, w):
    positive = lax.pmax(w[0, 0], "x") > 0
    one = lambda: (lax.ppermute(a, "x", RING), {})
    other = lambda: (a, {})
    moved, p = lax.cond(positive, one, other)
    return moved + p
"""
    expect_beside(seen_of(text.format("a @ w", "a")), "permute")
    assert "has no matmul beside it" in reason(expect_beside, seen_of(text.format("a", "a @ w")), "permute")


# -- programs that cannot be judged ------------------------------------------------------------


def test_a_check_of_order_fails_without_its_collective_or_matmul(seen_of: Callable[..., Seen]) -> None:
    sums = seen_of('\ndef local(a, w):\n    return lax.psum(a, "x") + a @ w\n', out="P()")
    assert reason(expect_not_waiting, sums, "permute") == "no result of the program depends on any permute"
    none = seen_of('\ndef local(a, w):\n    return lax.ppermute(a, "x", RING)\n')
    told = reason(expect_not_waiting, none, "permute", on="matmul")
    assert told == "no result of the program depends on any matmul, so this check has nothing to judge"
    assert reason(expect_beside, none, "permute").startswith("no result of the program depends on any matmul")


def test_a_program_too_large_to_be_analysed_fails_checks_of_order(seen_of: Callable[..., Seen]) -> None:
    text = "\ndef local(a, w):\n    for _ in range(5001):\n        a = -a\n    return lax.ppermute(a, 'x', RING) @ w\n"
    seen = seen_of(text)
    assert seen.operations is None
    assert "too large for the order of its operations" in reason(expect_not_waiting, seen, "permute")


def test_a_permute_added_by_the_compiler_fails_checks_of_order(seen_of: Callable[..., Seen]) -> None:
    seen = seen_of(UNROLLED.format(sent="a"))
    from dataclasses import replace

    added = [*seen.collectives, replace(seen.collectives[0], by_compiler=True, place=None)]
    assert "because the compiler added the permute" in reason(
        expect_not_waiting, replace(seen, collectives=added), "permute"
    )


# -- forward and backward ----------------------------------------------------------------------

LAYERS = """
def layer(a, w):
    full = lax.all_gather(w, "x", axis=0, tiled=True)
    return jnp.tanh(a @ full)

def local(a, w):
    {}

def f(a, w, *, mesh):
    specs = (P("x", None), P("x", None))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", None), check_vma={vma})(a, w)
"""
WAYS = {
    "saved": ("return layer(layer(a, w), w)", 2, 0),
    "remat": ("f = jax.checkpoint(layer); return f(f(a, w), w)", 2, 2),
    "remat of all": ("return jax.checkpoint(lambda a, w: layer(layer(a, w), w))(a, w)", 2, 2),
    "scan": ("return lax.scan(lambda a, w: (layer(a, w), None), a, jnp.stack([w, 2 * w]))[0]", 2, 0),
    "remat in scan": ("return lax.scan(lambda a, w: (jax.checkpoint(layer)(a, w), None), a, jnp.stack([w, 2 * w]))[0]", 2, 2),
    "remat in scan, prevent_cse=False": (
        "f = jax.checkpoint(layer, prevent_cse=False); "
        "return lax.scan(lambda a, w: (f(a, w), None), a, jnp.stack([w, 2 * w]))[0]", 2, 2,
    ),
    "remat, matmuls saved": (
        "f = jax.checkpoint(layer, policy=jax.checkpoint_policies.dots_saveable); return f(f(a, w), w)", 2, 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("vma", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_gathers_of_a_rematerialised_layer_count_as_backward(
    traced: Callable[..., Traced], way: str, vma: bool
) -> None:
    body, forward, again = WAYS[way]
    arrays = normal(16, 8, spec=("x", None)), normal(8, 8, spec=("x", None))
    made = traced(
        HEAD + LAYERS.format(body, vma=vma),
        *arrays,
        mesh=MESH,
        wrt=("a", "b"),
        cotangent=normal(16, 8, spec=("x", None)),
    )
    seen = look(made)
    assert all(c.backward is not None for c in seen.collectives)
    expect_collectives(seen.only(backward=False), all_gather={"x": forward})
    back = seen.only(backward=True)
    summed = [c for c in back.collectives if c.kind != "all_gather"]
    assert {c.kind for c in summed} == {"reduce_scatter"}
    expect_collectives(back, all_gather={"x": again}, reduce_scatter={"x": 2})
    told = reason(expect_collectives, back, reduce_scatter={"x": 3}, all_gather={"x": again})
    assert told.endswith(" in the backward pass")


def test_backward_collectives_need_a_call_with_gradients(seen_of: Callable[..., Seen]) -> None:
    with pytest.raises(ValueError, match="the call asks for no gradients"):
        seen_of(UNROLLED.format(sent="a")).only(backward=True)


# -- sent data ---------------------------------------------------------------------------------


def test_traffic_can_be_counted_by_dtype(seen_of: Callable[..., Seen]) -> None:
    text = """
def local(a, w):
    full = lax.all_gather(a.astype({}), "x", axis=0, tiled=True)
    return full.astype(jnp.float32)[:4] + lax.psum(a[0, 0].astype(jnp.int32), "x")
"""
    narrow = seen_of(text.format("jnp.bfloat16"))
    expect_traffic(narrow.only(dtype="float32"), at_most=0)
    expect_traffic(narrow.only(dtype="bfloat16"), at_most=3 * 4 * 8 * 2)
    with pytest.raises(Failure):
        expect_traffic(narrow.only(dtype="bfloat16"), at_most=3 * 4 * 8 * 2 - 1)
    told = reason(expect_traffic, seen_of(text.format("jnp.float32")).only(dtype="float32"), at_most=0)
    assert told == "each device sends 384 B, the budget is 0 B; the largest part is sent by line 11: all_gather over x"


def test_a_collective_has_the_local_dtype_and_shape_and_its_groups(seen_of: Callable[..., Seen]) -> None:
    (permute,) = seen_of('\ndef local(a, w):\n    return lax.ppermute(a, "x", RING)\n').collectives
    assert (permute.dtype, permute.shape, permute.groups) == ("float32", (4, 8), ((0, 1), (1, 2), (2, 3), (3, 0)))
    (total,) = seen_of('\ndef local(a, w):\n    return lax.psum(w, "x")\n', out="P()").collectives
    assert (total.dtype, total.shape, total.groups) == ("float32", (8, 8), ((0, 1, 2, 3),))
