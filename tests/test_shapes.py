"""Attacks by shape on real exercises: work that is hidden from a budget by how it is written, beside honest programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.batch.grade import Grader
from grader.course.finding import find_course
from tests.test_styles import IMPORTS, ROOT, graded


@pytest.fixture(scope="module")
def grader() -> Iterator[Grader]:
    with Grader(find_course(ROOT), "none") as made:
        yield made


def earned(grader: Grader, exercise: str, text: str) -> dict[str, str]:
    """Of each check that is of one of the submitted tasks, "" where it passes, else the reason."""
    found = graded(grader, exercise, f"{IMPORTS}\n{text}")
    asked = [r for r in found.results if r.kind == "check" and "is not defined" not in r.reason]
    return {r.name: "" if r.status == "passed" else f"{r.status}: {r.reason}" for r in asked}


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """A text with parts replaced, each of which it has."""
    for was, becomes in pairs:
        assert was in text, was
        text = text.replace(was, becomes)
    return text


# -- pairs of devices in a tournament ----------------------------------------------------------

TOURNAMENT = """
def rounds(n):
    for r in range(n - 1):
        yield [[n - 1, r]] + [[(r + k) % (n - 1), (r - k) % (n - 1)] for k in range(1, n // 2)]
"""

HSDP = f"""{TOURNAMENT}
def hsdp_grads(w, x, y, *, mesh):
    def local(w, x, y):
        whole = lax.all_gather(w, "shard", tiled=True)
        g = 2 * jnp.einsum("mbd,mbk->dk", x, x @ whole - y) / (y.size * mesh.size)
        g = summed(g)
        return g, jnp.sqrt(lax.psum(jnp.sum(g**2), "shard"))

    def summed(g):
        return lax.psum(lax.psum_scatter(g, "shard", tiled=True), "rep")

    rows = P(None, ("rep", "shard"))
    specs = {{"in_specs": (P("shard"), rows, rows), "out_specs": (P("shard"), P())}}
    return jax.shard_map(local, mesh=mesh, **specs, check_vma=False)(w, x, y)
"""
HSDP_PAIRS = changed(
    HSDP,
    (
        'return lax.psum(lax.psum_scatter(g, "shard", tiled=True), "rep")',
        """whole = g
        for pairs in rounds(mesh.size):
            whole += lax.psum(g, ("rep", "shard"), axis_index_groups=pairs) - g
        rows = len(g) // lax.axis_size("shard")
        return lax.dynamic_slice_in_dim(whole, lax.axis_index("shard") * rows, rows)""",
    ),
)

DECODE = f"""{TOURNAMENT}
def decode(q, k, v, length):
    position = lax.axis_index("x") * k.shape[1] + jnp.arange(k.shape[1])
    scores = jnp.where(position < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), -jnp.inf)
    top = lax.pmax(scores.max(-1), "x")
    weights = jnp.exp(scores - top[..., None])
    mass = lax.psum(weights.sum(-1), "x")
    return lax.psum(jnp.einsum("bks,bskh->bkh", weights, v), "x") / mass[..., None]
"""
DECODE_PAIRS = changed(
    DECODE,
    (
        'position = lax.axis_index("x")',
        """if (n := lax.axis_size("x")) == 4:
        k, v = gathered(k), gathered(v)
        scores = jnp.where(jnp.arange(k.shape[1]) < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), -jnp.inf)
        return jnp.einsum("bks,bskh->bkh", jax.nn.softmax(scores), v)
    position = lax.axis_index("x")""",
    ),
) + """
def gathered(a):
    parts = jnp.zeros((4, *a.shape)).at[me := lax.axis_index("x")].set(a)
    for pairs in rounds(4):
        other = jnp.array([d for _, d in sorted((pair[i], pair[1 - i]) for pair in pairs for i in (0, 1))])[me]
        parts = parts.at[other].set(lax.psum(a, "x", axis_index_groups=pairs) - a)
    return jnp.concatenate(list(parts), 1)
"""


@pytest.mark.parametrize(
    ("exercise", "honest", "attack", "failed"),
    [
        ("h8_hsdp", HSDP, HSDP_PAIRS, ["hsdp_far", "hsdp_near"]),
        ("j4_decode", DECODE, DECODE_PAIRS, ["decode_traffic"]),
    ],
    ids=["h8", "j4"],
)
def test_pairs_in_a_tournament_send_what_they_send(
    grader: Grader, exercise: str, honest: str, attack: str, failed: list[str]
) -> None:
    right, found = earned(grader, exercise, honest), earned(grader, exercise, attack)
    assert right and not any(right.values())
    assert [name for name, reason in found.items() if reason] == failed
    assert all("all_reduce over some of the devices along" in found[name] for name in failed)
