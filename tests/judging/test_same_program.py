"""Compare a program at two sizes, operation by operation. Programs that do less work at large sizes are reported."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.common.observation import Timing
from grader.common.substitution import substitution
from grader.exercise import normal
from grader.judging.same_program import Difference, _ways, difference
from grader.runner import operations
from grader.wire.operations import Operations, from_text, to_text

MESH = {"x": 4}
SMALL, LARGE = {"B": 4 * 11, "D": 4 * 13, "F": 17}, {"B": 4 * 4096, "D": 2048, "F": 8192}
HEAD = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

RING = [(i, (i + 1) % 4) for i in range(4)]
"""
RING = """
def local(a, w):
    total = a @ w
    for hop in range(3):
        a = lax.ppermute(a, "x", RING)
        total = total + a @ w
    return total
"""


@pytest.fixture
def program(traced: Callable[..., Any]) -> Callable[..., Operations]:
    def program(body: str, dims: dict[str, int], mesh: dict[str, int] = MESH, dtype: str = "float32") -> Operations:
        """Trace ``def local(a, w)`` with a[B_x, D] and w[D, F]."""
        text = f"""{HEAD}
{body}

def f(a, w, *, mesh):
    return jax.shard_map(local, mesh=mesh, in_specs=(P("x"), P()), out_specs=P("x"), check_vma=False)(a, w)
"""
        arrays = (
            normal(dims["B"], dims["D"], spec=("x",), dtype=dtype),
            normal(dims["D"], dims["F"], dtype=dtype),
        )
        made = traced(text, *arrays, mesh=mesh, timing=Timing("v5e:16x16"))
        read = operations.read(made.form.parse(), made.request["mesh"], {"a.py"}, compared=True)
        assert read is not None
        return from_text(to_text(read))

    return program


def compared(program: Callable[..., Operations], body: str, other: str | None = None) -> Difference | None:
    """Compare ``body`` on small arrays with ``other`` (default: ``body``) on large ones. Return the difference."""
    sizes = substitution(SMALL, LARGE, MESH, MESH)
    return difference(program(body, SMALL), program(other or body, LARGE), sizes)


HONEST = {
    "a ring": RING,
    "einsum": RING.replace("a @ w", "jnp.einsum('bd,df->bf', a, w)"),
    "a loop": "def local(a, w):\n    return lax.fori_loop(0, 3, lambda i, t: t + lax.ppermute(t, 'x', RING), a @ w)",
    "a scan over rows": "def local(a, w):\n    return lax.scan(lambda c, row: (c, row @ w), 0, a)[1]",
    "all but the last column": "def local(a, w):\n    return (a[:, :-1] @ w[1:])[:, 1:-2]",
    "the first rows, and the others": "def local(a, w):\n    return jnp.concatenate([a[:2] @ w, a[2:] @ w])",
    "parts of one flat array that grow by other factors": "def local(a, w):\n"
    "    flat = jnp.concatenate([a.ravel(), w.ravel(), w.ravel(), a[0]])\n"
    "    n, m = a.size, w.size\n"
    "    two = flat[n : n + m] + flat[n + m : n + 2 * m]\n"
    "    return flat[:n].reshape(a.shape) @ two.reshape(w.shape) + flat[n + 2 * m :].sum()",
    "rows that others choose": "def local(a, w):\n    return a[jnp.arange(4 * a.shape[0]) % a.shape[0]][: a.shape[0]] @ w",
    "halves": "def local(a, w):\n    return jnp.concatenate([a, a], 1)[:, a.shape[1]:] @ w",
    "shifted by one": "def local(a, w):\n    return jnp.pad(a, ((0, 0), (1, 0)))[:, :-1] @ w",
    "transposed slices": "def local(a, w):\n    return jax.grad(lambda v: (v[:, :-1] ** 2).sum())(a) @ w",
    "one flat array": "def local(a, w):\n"
    "    flat = lax.psum(jnp.concatenate([w.ravel(), a.ravel()]), 'x')\n"
    "    return flat[w.size:].reshape(a.shape) @ flat[:w.size].reshape(w.shape)",
    "a buffer": "def local(a, w):\n"
    "    flat = jnp.zeros(a.size + w.size).at[:a.size].set(a.ravel()).at[a.size:].set(w.ravel())\n"
    "    return flat[:a.size].reshape(a.shape) @ w",
    "filled up for all devices": "def local(a, w):\n"
    "    flat = jnp.pad(w.ravel(), (0, -w.size % 4))\n"
    "    flat = lax.all_gather(lax.psum_scatter(flat, 'x', tiled=True), 'x', tiled=True)\n"
    "    return a @ flat[:w.size].reshape(w.shape)",
    "numbers that follow the sizes": "def local(a, w):\n    return (a / a.shape[1] ** 0.5 + 1 / a.size) @ w",
    "gathered parts": "def local(a, w):\n    return a @ w + lax.all_gather(a[:, :-1].ravel(), 'x', tiled=True).sum()",
    "a mask": "def local(a, w):\n    return jnp.where(jnp.arange(a.shape[1]) < a.shape[1] // 2, a, -jnp.inf) @ w",
    "numbered by axis_index": "def local(a, w):\n    return lax.dynamic_slice_in_dim(a, lax.axis_index('x'), 1) @ w + a @ w",
    "a window of four, numbered": "def local(a, w):\n"
    "    return (a[:, 3:] + a[:, :-3] + jnp.arange(a.shape[1] - 3)) @ w[2:-1]",
    "sorted": "def local(a, w):\n    return jnp.sort(a, axis=0) @ w",
    "chosen rows": "def local(a, w):\n    return a[jnp.argsort(a[:, 0])] @ w",
    "a branch": "def local(a, w):\n    return lax.cond(a[0, 0] > 0, lambda: a @ w, lambda: 2 * a @ w)",
}


@pytest.mark.parametrize("style", HONEST)
def test_an_honest_program_is_the_same_at_both_sizes(style: str, program: Callable[..., Operations]) -> None:
    assert compared(program, HONEST[style]) is None


FAKES = {
    "matmuls of 1 by 1": (
        RING.replace("a @ w", "jnp.broadcast_to(a[:1, :1] @ w[:1, :1], (a.shape[0], w.shape[1]))"),
        "the timed program has slice of float32[4096, 2048] where the judged program has dot_general of float32[11, 52] and float32[52, 17]",
    ),
    "the value of another round": (
        RING.replace("total + a @ w", "total + first @ w").replace("    total = a", "    first = a\n    total = a"),
        "dot_general of float32[4096, 2048] and float32[2048, 8192] has operands or results that differ from those in the judged program",
    ),
    "fewer rounds": (RING.replace("range(3)", "range(1)"), "the timed program has unshard of float32[4096, 8192] where the judged program has collective_permute of float32[11, 52]"),
    "another direction": (
        RING.replace('"x", RING', '"x", [(j, i) for i, j in RING]'),
        "collective_permute communicates between different devices in the timed program and in the judged program",
    ),
    "narrow operands": (
        RING.replace("    total = a @ w", "    a, w = a.astype(jnp.int8), w.astype(jnp.int8)\n    total = a @ w"),
        "the timed program has convert of float32[4096, 2048] where the judged program has dot_general of float32[11, 52] and float32[52, 17]",
    ),
    "a narrow result": (
        RING.replace("    return total", "    return total * 1").replace("a @ w\n    for", "jnp.dot(a, w, preferred_element_type='bfloat16')\n    for"),
        "dot_general returns bfloat16 where the judged program returns float32",
    ),
    "another precision": (
        RING.replace("a @ w\n    for", "jnp.dot(a, w, precision='highest')\n    for"),
        "dot_general has precision 6 where the judged program has 1",
    ),
    "another value is returned": (RING.replace("return total", "return first").replace("total = a @ w\n    for", "first = total = a @ w\n    for"),
        "unshard of float32[4096, 8192] has operands or results that differ from those in the judged program",
   ),
}  # fmt: skip


@pytest.mark.parametrize("fake", FAKES)
def test_a_program_that_differs_is_reported_with_the_difference(fake: str, program: Callable[..., Operations]) -> None:
    text, told = FAKES[fake]
    found = compared(program, RING, text)
    assert found is not None and found.message == told


@pytest.mark.parametrize("edges", ["(0, {})", "({}, 0)"])
def test_a_fixed_edge_does_not_replace_one_that_grows(edges: str, program: Callable[..., Operations]) -> None:
    padded = "def local(a, w):\n    return jnp.pad(a, ((0, 0), EDGES))[:, : a.shape[1]] @ w"
    padded = padded.replace("EDGES", edges)
    assert compared(program, padded.format("a.shape[1]")) is None
    found = compared(program, padded.format("5"), padded.format("100"))
    assert found is not None and found.message.startswith("the timed program's pad adds 100 elements, but")


SLICED = "def local(a, w):\n    return lax.dynamic_slice(a, (0, 0), ({}, {})) @ lax.dynamic_slice(w, (0, 0), ({}, {}))"


def test_a_size_has_only_one_partner(program: Callable[..., Operations]) -> None:
    """The slices of the small program have the sizes of whole arrays, so those of the large program must, too."""
    honest = SLICED.format("a.shape[0]", "a.shape[1]", "a.shape[1]", "w.shape[1]")
    assert compared(program, honest) is None
    for shrunk, told in (
        (SLICED.format("11", "a.shape[1]", "a.shape[1]", "w.shape[1]"), "has 11 where the judged program has 11, so 4,096 is expected here"),
        (SLICED.format("a.shape[0]", "52", "52", "w.shape[1]"), "has 52 where the judged program has 52, so 2,048 is expected here"),
        (SLICED.format("a.shape[0]", "1", "1", "w.shape[1]"), "has 1 where the judged program has 52, so 2,048 is expected here"),
    ):  # fmt: skip
        found = compared(program, honest, shrunk)
        assert found is not None and told in found.message


def test_a_size_that_parts_add_up_to_still_has_to_grow(program: Callable[..., Operations]) -> None:
    """Programs of both sizes join 5 and 6 numbers to 11 numbers. Still, 11 rows of ``a`` must become 4,096 rows."""
    text = """
def local(a, w):
    pieces = jnp.concatenate([lax.iota(jnp.float32, 5), lax.iota(jnp.float32, 6)])
    return (lax.dynamic_slice(a, (0, 0), ({}, a.shape[1])) @ w).sum(0, keepdims=True) + pieces.sum()
"""
    assert compared(program, text.format("a.shape[0]")) is None
    found = compared(program, text.format("a.shape[0]"), text.format("11"))
    assert (
        found is not None
        and found.message == "dynamic_slice has 11 where the judged program has 11, so 4,096 is expected here"
    )


PARTS = {
    "slices from both ends": "def local(a, w):\n"
    "    n = a.shape[0]\n"
    "    first, last = a[:10] @ w, (a[n - 10:] @ w)[-1:]\n"
    "    return jnp.pad(first, ((0, n - 10), (0, 0))) + jnp.pad(last, ((n - 1, 0), (0, 0)))",
    "slices of slices": "def local(a, w):\n"
    "    found, rest = [], a\n"
    "    for _ in range(3):\n"
    "        found, rest = [*found, rest[:3] @ w], rest[3:]\n"
    "    found += [a[-2:] @ w]\n"
    "    return jnp.pad(jnp.concatenate(found), ((0, a.shape[0] - 11), (0, 0)))",
    "rows of a loop": "def local(a, w):\n"
    "    def one(i, t):\n"
    "        row = lax.dynamic_slice(a, (i, 0), (1, a.shape[1])) @ w\n"
    "        return lax.dynamic_update_slice(t, row, (i, 0))\n"
    "    return lax.fori_loop(0, 12, one, jnp.zeros((a.shape[0], w.shape[1])))",
    "less than nothing added": "def local(a, w):\n"
    "    n = a.shape[0]\n"
    "    first = lax.pad(a, 0., ((0, 10 - n, 0), (0, 0, 0))) @ w\n"
    "    last = lax.pad(a, 0., ((10 - n, 0, 0), (0, 0, 0))) @ w\n"
    "    return jnp.pad(first, ((0, n - 10), (0, 0))) + jnp.pad(last[-1:], ((n - 1, 0), (0, 0)))",
    "every hundredth row": "def local(a, w):\n"
    "    rows = [lax.slice(a, (i, 0), a.shape, (100, 1)) @ w for i in range(11)]\n"
    "    return sum(lax.dynamic_update_slice(jnp.zeros((a.shape[0], w.shape[1])), r, (i, 0)) for i, r in enumerate(rows))",
    "rows of each column by their numbers": "def local(a, w):\n"
    "    b = jnp.take_along_axis(a, jnp.arange(10)[:, None] + 0 * jnp.arange(a.shape[1]), 0) @ w\n"
    "    return jnp.pad(b, ((0, a.shape[0] - 10), (0, 0))) + jnp.pad(a[-1:] @ w, ((a.shape[0] - 1, 0), (0, 0)))",
    "rows by their numbers": "def local(a, w):\n"
    "    return jnp.zeros((a.shape[0], w.shape[1])).at[jnp.arange(10)].set(a[jnp.arange(10)] @ w).at[-1].set(a[-1] @ w)",
}  # fmt: skip


@pytest.mark.parametrize("parts", PARTS)
def test_parts_of_fixed_size_do_not_replace_a_growing_array(parts: str, program: Callable[..., Operations]) -> None:
    """The small program computes all of its 11 rows. The large program computes only a few of its 4,096 rows."""
    found = compared(program, PARTS[parts])
    assert found is not None and "parts of fixed size" in found.message
    assert "make up most of float32[" in found.message


def test_rounds_of_a_loop_follow_the_sizes(program: Callable[..., Operations]) -> None:
    loop = "def local(a, w):\n    return lax.fori_loop(0, {}, lambda i, t: t + a[i] @ w, a @ w)"
    assert compared(program, loop.format("a.shape[0]")) is None
    assert compared(program, loop.format("5")) is None
    found = compared(program, loop.format("a.shape[0]"), loop.format("11"))
    assert (
        found is not None
        and found.message == "the loop has 11 rounds where the judged program has 11, so 4,096 is expected here"
    )
    assert found.line == 10 and found.file == "a.py"


def test_a_decision_by_a_shape_is_reported_with_its_line(program: Callable[..., Operations]) -> None:
    text = "def local(a, w):\n    if a.shape[0] > 1000:\n        return a[:, :1] @ w[:1]\n    return a @ w"
    found = compared(program, text)
    assert found == Difference(
        "the timed program has slice of float32[4096, 2048] where the judged program has dot_general of float32[11, 52] and float32[52, 17]",
        11,
        "a.py",
    )


def test_a_mesh_of_many_devices_is_compared_with_a_small_one(program: Callable[..., Operations]) -> None:
    loop = """
def local(a, w):
    n = lax.axis_size("x")
    ring = [(i, (i + 1) % n) for i in range(n)]
    def hop(i, state):
        a, total = state
        return lax.ppermute(a, "x", ring), total + a @ w
    return lax.fori_loop(0, n - {}, hop, (a, 0 * (a @ w)))[1]
"""
    small, large = {"B": 5 * 11, "D": 13, "F": 17}, {"B": 256 * 64, "D": 2048, "F": 8192}
    sizes = substitution(small, large, {"x": 5}, {"x": 256})
    judged = program(loop.format(1), small, {"x": 5})
    assert difference(judged, program(loop.format(1), large, {"x": 256}), sizes) is None
    found = difference(judged, program(loop.format(200), large, {"x": 256}), sizes)
    assert found is not None and found.message == "the loop has 56 rounds where the judged program has 4"


@pytest.mark.parametrize("devices", [2, 3])
def test_device_counts_dimension_numbers_and_type_widths_do_not_scale(
    devices: int, program: Callable[..., Operations]
) -> None:
    """The dimension 3 and the 64 bits of a type do not scale when 2 or 3 devices become 256."""
    text = "def local(a, w):\n    b = (a @ w)[:, None, None]\n    return b.sum(3)[:, 0] + jnp.transpose(b, (3, 0, 1, 2)).sum(0)[:, 0]"
    small, large = {"B": devices * 11, "D": 13, "F": 17}, {"B": 256 * 64, "D": 2048, "F": 8192}
    sizes = substitution(small, large, {"x": devices}, {"x": 256})
    assert difference(program(text, small, {"x": devices}), program(text, large, {"x": 256}), sizes) is None


OTHER_DEVICES = {
    "pairs of devices for all": ("lax.psum(a, 'x')", "lax.psum(a, 'x', axis_index_groups=[[i, i + 1] for i in range(0, n, 2)])"),
    "a neighbour for the opposite one": ("lax.ppermute(a, 'x', [(i, (i + 2) % n) for i in range(n)])",
        "lax.ppermute(a, 'x', [(i, (i + 1) % n) for i in range(n)])"),
    "one pair for a ring": ("lax.ppermute(a, 'x', [(i, (i + 1) % n) for i in range(n)])", "lax.ppermute(a, 'x', [(0, 1)])"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_DEVICES)
def test_a_collective_between_other_devices_on_a_larger_mesh_is_found(
    name: str, program: Callable[..., Operations]
) -> None:
    small, large = {"B": 5 * 11, "D": 13, "F": 17}, {"B": 256 * 64, "D": 2048, "F": 8192}
    sizes = substitution(small, large, {"x": 5}, {"x": 256})
    text = "def local(a, w):\n    n = lax.axis_size('x')\n    return {} @ w"
    honest, fake = (text.format(one) for one in OTHER_DEVICES[name])
    judged = program(honest, small, {"x": 5})
    assert difference(judged, program(honest, large, {"x": 256}), sizes) is None
    found = difference(judged, program(fake, large, {"x": 256}), sizes)
    assert found is not None and "communicates between different devices" in found.message


def test_a_backward_ring_permute_matches_for_2_and_256_devices(program: Callable[..., Operations]) -> None:
    small, large = {"B": 2 * 11, "D": 13, "F": 17}, {"B": 256 * 64, "D": 2048, "F": 8192}
    sizes = substitution(small, large, {"x": 2}, {"x": 256})
    back = "def local(a, w):\n    n = lax.axis_size('x')\n    return lax.ppermute(a, 'x', [(i, (i - 1) % n) for i in range(n)]) @ w"
    assert difference(program(back, small, {"x": 2}), program(back, large, {"x": 256}), sizes) is None


def test_a_chain_of_devices_is_one_pair_shorter_than_its_ring(program: Callable[..., Operations]) -> None:
    small, large = {"B": 5 * 11, "D": 13, "F": 17}, {"B": 256 * 64, "D": 2048, "F": 8192}
    sizes = substitution(small, large, {"x": 5}, {"x": 256})
    chain = "def local(a, w):\n    n = lax.axis_size('x')\n    return lax.ppermute(a, 'x', [(i, i + 1) for i in range(n - 1)]) @ w"
    assert difference(program(chain, small, {"x": 5}), program(chain, large, {"x": 256}), sizes) is None


@given(st.lists(st.integers(2, 5), min_size=1, max_size=3), st.data())
def test_a_move_has_the_steps_along_each_axis_the_shorter_way_round(sizes: list[int], data: st.DataObject) -> None:
    device = st.integers(0, math.prod(sizes) - 1)
    source, target = data.draw(device), data.draw(device)
    ((*steps,),) = _ways([(source, target)], {f"axis{i}": size for i, size in enumerate(sizes)})
    for at, step, size in zip(np.unravel_index([source, target], sizes), steps, sizes, strict=True):
        assert (at[0] + step) % size == at[1] and -size < 2 * step <= size
