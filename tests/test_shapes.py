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
DECODE_PAIRS = (
    changed(
        DECODE,
        (
            'position = lax.axis_index("x")',
            """if (n := lax.axis_size("x")) == 4:
        k, v = gathered(k), gathered(v)
        scores = jnp.where(jnp.arange(k.shape[1]) < length[:, None, None], jnp.einsum("bkh,bskh->bks", q, k), -jnp.inf)
        return jnp.einsum("bks,bskh->bkh", jax.nn.softmax(scores), v)
    position = lax.axis_index("x")""",
        ),
    )
    + """
def gathered(a):
    parts = jnp.zeros((4, *a.shape)).at[me := lax.axis_index("x")].set(a)
    for pairs in rounds(4):
        other = jnp.array([d for _, d in sorted((pair[i], pair[1 - i]) for pair in pairs for i in (0, 1))])[me]
        parts = parts.at[other].set(lax.psum(a, "x", axis_index_groups=pairs) - a)
    return jnp.concatenate(list(parts), 1)
"""
)


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


# -- data that were copied bit by bit ----------------------------------------------------------

COPIED = """
def copied(b):
    bits = lax.bitcast_convert_type(b, jnp.uint32)
    made = jnp.zeros_like(bits)
    for i in range(32):
        made |= lax.select((bits >> i & 1) == 1, jnp.full(b.shape, 1 << i, "uint32"), jnp.full(b.shape, 0, "uint32"))
    return lax.bitcast_convert_type(made, jnp.float32)
"""
LOCAL = f"""{COPIED}
def matmul_local(a, b, *, mesh):
    specs = (P("x", None), P(None, "y"))
    return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(a, b)
"""
OUTSIDE = f"""{COPIED}
def matmul_local(a, b, *, mesh):
    c = (a[:, :, None] * copied(b)).sum(1)
    return jax.shard_map(lambda c: c, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(c)
"""
TWICE = """{COPIED}
def keep(a, b, *, mesh, rows):
    def local(a, b):
        a, b = (a, lax.all_gather(b, "x", axis=1, tiled=True)) if rows else (lax.all_gather(a, "x", tiled=True), b)
        return a @ b

    out = P("x", None) if rows else P(None, "x")
    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=out)(a, b)


matmul_keep_rows, matmul_keep_columns = partial(keep, rows=True), partial(keep, rows=False)
""".replace("{COPIED}", COPIED)
TWICE_COPIED = changed(
    TWICE, ("return a @ b", "return lax.optimization_barrier((a @ b, (a[:, :, None] * copied(b)).sum(1)))[0]")
)
PIPELINE = f"""{COPIED}
def stage(ws, a):
    for w in ws:
        a = jnp.tanh(a / jnp.linalg.norm(a, axis=-1, keepdims=True) @ w)
    return a


def junk(ws, a):
    return 0


def gpipe_forward(ws, x):
    n, me, m = lax.axis_size("pp"), lax.axis_index("pp"), x.shape[0]

    def one_tick(tick, carry):
        held, out = carry
        takes = jnp.where(me == 0, x[tick], held)
        made = stage(ws, takes) + junk(ws, takes)
        return lax.ppermute(made, "pp", [(s, s + 1) for s in range(n - 1)]), out.at[tick - (n - 1)].set(made)

    _, out = lax.fori_loop(0, m + n - 1, one_tick, (jnp.ones(x.shape[1:]), jnp.zeros_like(x)))
    return jnp.where(me == n - 1, out, 0)[None]
"""
JUNK_COPIED = changed(PIPELINE, ("return 0\n", "return 0 * sum((a[:, :, None] * copied(w)).sum(1) for w in ws)\n"))
JUNK_BY_POWERS = changed(
    PIPELINE, ("return 0\n", "return 0 * sum(lax.pow(a[:, :, None] + w, 2.0).sum(1) for w in ws)\n")
)


@pytest.mark.parametrize(
    ("exercise", "honest", "attack", "failed"),
    [
        ("c1_no_communication", LOCAL, OUTSIDE, {"local_flops": "the arithmetic is not in the body of jax.shard_map"}),
        ("c4_same_axis_twice", TWICE, TWICE_COPIED, {"keep_rows_budget": "FLOPs on matrix products", "keep_columns_budget": "FLOPs on matrix products"}),
        ("i1_gpipe_forward", PIPELINE, JUNK_COPIED, {"forward_bubble": "of the arithmetic is thrown away"}),
        ("i1_gpipe_forward", PIPELINE, JUNK_BY_POWERS, {"forward_bubble": "FLOPs besides matrix products"}),
    ],
    ids=["c1", "c4", "i1", "i1_by_powers"],
)  # fmt: skip
def test_a_product_costs_what_it_costs_however_its_factors_were_made(
    grader: Grader, exercise: str, honest: str, attack: str, failed: dict[str, str]
) -> None:
    right, found = earned(grader, exercise, honest), earned(grader, exercise, attack)
    assert right and not any(right.values())
    assert [name for name, reason in found.items() if reason] == list(failed)
    assert all(part in found[name] for name, part in failed.items())


# -- types that a program does not have --------------------------------------------------------

MODES = """
def matmul_auto(a, b, *, mesh):
    c = lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P("x", "y")))
    return lax.with_sharding_constraint(c, NamedSharding(mesh, P("x", None)))


def matmul_explicit(a, b, *, mesh):
    typed = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Explicit,) * 2)
    a = jax.sharding.reshard(a, NamedSharding(typed, P("x", None)))
    b = jax.sharding.reshard(b, NamedSharding(typed, P(None, "y")))
    return jax.sharding.reshard(a @ b, NamedSharding(typed, P("x", None)))


def matmul_manual(a, b, *, mesh):
    local = lambda a, b: lax.all_gather(a @ b, "y", axis=1, tiled=True)
    specs = {"in_specs": (P("x", None), P(None, "y")), "out_specs": P("x", None)}
    return jax.shard_map(local, mesh=mesh, check_vma=False, **specs)(a, b)
"""
IN_AUTO = f"{MODES}\n\nmatmul_explicit = matmul_auto\n"
FORGED = f"""{IN_AUTO}
jit = jax.jit


class Forged:
    def __init__(self, fn):
        self.fn = fn

    def trace(self, *args):
        out = NamedSharding(args[0].sharding.mesh, P("x", None))
        return jit(self.fn, keep_unused=True, out_shardings=out).trace(*args)


jax.jit = lambda fn, **kwargs: Forged(fn) if kwargs == {{"keep_unused": True}} else jit(fn, **kwargs)
"""


def test_shardings_that_were_put_on_results_gain_nothing(grader: Grader) -> None:
    """No check asks what a type says: a program has shardings, which anybody can name."""
    honest, plain, forged = (earned(grader, "a6_three_modes", text) for text in (MODES, IN_AUTO, FORGED))
    assert honest and not any(honest.values())
    assert forged == plain == honest
