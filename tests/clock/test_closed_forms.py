"""Forty programs with times derived by hand. The clock must give these times to the picosecond.

The eight test chips have C = 1e14 FLOP/s, W1 = 5e10 B/s and HBM without a limit. ``more_forms`` has other slices.
``docs/clock-tables.md`` shows this table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.clock import COMPUTE, Placement, Timeline, timeline
from grader.clock.order import Piece, lay
from grader.wire.operations import Operations
from tests.clock.more_forms import MORE
from tests.clock.programs import line_of, read, ring_of

V = 67_108_864
US = 1_000_000  # picoseconds
N = 8
H = 41.94304  # microseconds in which 2 MiB cross one link
ROWS, INNER = 1024, 1024  # shape of one device's part of the matrix A: 2 MiB in bfloat16
COLUMNS = {"A": 256, "B": 4096}
D = {"A": 5.36870912, "B": 85.89934592}  # microseconds: 2 * ROWS * INNER * COLUMNS / C
ROUND = [(i, (i + 1) % N) for i in range(N)]
BACK = [(i, (i - 1) % N) for i in range(N)]


def shift(by: int) -> list[tuple[int, int]]:
    return [(i, (i + by) % N) for i in range(N)]


def of_array(local: Callable, size: int = V // 2, out: P = P("x")) -> Operations:  # noqa: B008
    """Return the operations of a body over a bfloat16 array with ``size`` elements in total."""
    return read(local, [((size,), P("x"))], out)


def gather(a):
    return lax.all_gather(a, "x", tiled=True)


def scatter(a):
    return lax.psum_scatter(a, "x", tiled=True)


def reduce(a):
    return lax.psum(a, "x")


def exchange(a):
    return lax.all_to_all(a.reshape(N, -1), "x", 0, 0, tiled=True)


def permute(pairs: list[tuple[int, int]]) -> Operations:
    return of_array(lambda a: lax.ppermute(a, "x", pairs))


def matmul(local: Callable, which: str, out: Any = P(None, "x", None)) -> Operations:  # noqa: B008
    """Return the operations of a body over one part of A and all of B."""
    return read(local, [((N * ROWS, INNER), P("x", None)), ((INNER, COLUMNS[which]), P())], out)


def gather_first(a, w):
    return lax.all_gather(a, "x", tiled=True) @ w


def ring(a, w):
    parts = []
    for k in range(N):
        arriving = lax.ppermute(a, "x", ROUND) if k < N - 1 else a
        parts.append(a @ w)
        a = arriving
    return jnp.stack(parts)


def permute_waits(a, w):
    parts = []
    for k in range(N):
        parts.append(a @ w)
        if k < N - 1:
            a, parts[-1] = lax.optimization_barrier((a, parts[-1]))
            a = lax.ppermute(a, "x", ROUND)
    return jnp.stack(parts)


def ring_in_loop(a, w):
    def body(k, carried):
        a, parts = carried
        arriving = lax.ppermute(a, "x", ROUND)
        return arriving, lax.dynamic_update_index_in_dim(parts, a @ w, k, 0)

    return lax.fori_loop(0, N, body, (a, jnp.zeros((N, a.shape[0], w.shape[1]), a.dtype)))[1]


def late_in_loop(a, w):
    """Receive a shard in each round, and then multiply this shard. So each matmul waits for its round's permute."""

    def body(k, carried):
        a, parts = carried
        a = lax.ppermute(a, "x", ROUND)
        return a, lax.dynamic_update_index_in_dim(parts, a @ w, k + 1, 0)

    first = jnp.zeros((N, a.shape[0], w.shape[1]), a.dtype)
    return lax.fori_loop(0, N - 1, body, (a, lax.dynamic_update_index_in_dim(first, a @ w, 0, 0)))[1]


def late_unrolled_by_four(a, w):
    def body(a, _):
        a = lax.ppermute(a, "x", ROUND)
        return a, a @ w

    return lax.scan(body, a, None, length=N, unroll=4)[1]


def both_ways(a, w):
    half = ROWS // 2
    up, down = a[:half], a[half:]
    parts = []
    for k in range(N):
        arriving = (lax.ppermute(up, "x", ROUND), lax.ppermute(down, "x", BACK)) if k < N - 1 else (up, down)
        parts.append(jnp.concatenate([up, down]) @ w)
        up, down = arriving
    return jnp.stack(parts)


STAGES, MICRO, WIDE = 8, 16, 1024


def gpipe(x, w):
    """In each tick, compute, send to the next stage and receive. All microbatches are inputs of the first stage."""
    stage = lax.axis_index("x")
    out = jnp.zeros_like(x)
    arrived = jnp.zeros_like(x[0])
    for tick in range(MICRO + STAGES - 1):
        given = jnp.where(stage == 0, x[min(tick, MICRO - 1)], arrived)
        done = given @ w
        if tick >= STAGES - 1:
            out = out.at[tick - STAGES + 1].set(done)
        if tick < MICRO + STAGES - 2:
            arrived = lax.ppermute(done, "x", [(i, i + 1) for i in range(STAGES - 1)])
    return out


LAYERS = 6


def fsdp(x, *weights):
    for w in weights:
        x = x @ lax.all_gather(w, "x", tiled=True)
    return x


def fsdp_of(batch: int) -> Operations:
    weights = [((4096, 4096), P("x", None))] * LAYERS
    return read(fsdp, [((N * batch, 4096), P("x", None)), *weights], P("x", None))


def gpipe_of() -> Operations:
    """Return the operations of ``gpipe``. A tick's matmul takes d = 10.737 us, and its permute h = 20.972 us."""
    return read(gpipe, [((MICRO, 512, WIDE), P()), ((STAGES * WIDE, WIDE), P("x", None))], P("x"))


def us(*terms: float) -> int:
    return round(sum(terms) * US)


RING, LINE = ring_of(N), line_of(N)
DA, DB = D["A"], D["B"]
H11, D11 = 20.97152, 10.73741824
G12 = 7 / 8 * 4096 * 4096 * 2 / 1e11 * 1e6
D12 = {128: 2 * 128 * 4096 * 4096 / 1e14 * 1e6, 8192: 2 * 8192 * 4096 * 4096 / 1e14 * 1e6}
# name, formula, the formula's value in microseconds, the program, and its placement on a slice
FORMS: list[tuple[str, str, float, Callable[[], Operations], Placement]] = [
    ("all-gather, ring", "7/8 V/(2 W1)", 7 / 8 * V / 1e11 * 1e6, lambda: of_array(gather, out=P()), RING),
    ("all-gather, line", "7/8 V/W1", 7 / 8 * V / 5e10 * 1e6, lambda: of_array(gather, out=P()), LINE),
    ("reduce-scatter, ring", "7/8 V/(2 W1)", 7 / 8 * V / 1e11 * 1e6, lambda: of_array(scatter, N * V // 2), RING),
    ("all-reduce, ring", "7/4 V/(2 W1)", 7 / 4 * V / 1e11 * 1e6, lambda: of_array(reduce, N * V // 2, P()), RING),
    ("all-to-all, ring", "V/(8 W1)", V / 8 / 5e10 * 1e6, lambda: of_array(exchange), RING),
    ("permute by 1, ring", "S/W1", V / 8 / 5e10 * 1e6, lambda: permute(shift(1)), RING),
    ("permute by 1, line", "S/W1", V / 8 / 5e10 * 1e6, lambda: permute(shift(1)), LINE),
    ("permute by 3, ring", "3 S/W1", 3 * V / 8 / 5e10 * 1e6, lambda: permute(shift(3)), RING),
    ("reversal, line", "4 S/W1", 4 * V / 8 / 5e10 * 1e6, lambda: permute([(i, 7 - i) for i in range(N)]), LINE),
    ("128 bytes round a line", "7 hops", 7.0, lambda: of_array(lambda a: lax.ppermute(a, "x", ROUND), 64 * N), LINE),
    ("gather, matmul (A)", "7h/2 + 8d", 3.5 * H + 8 * DA, lambda: matmul(gather_first, "A", P()), RING),
    ("gather, matmul (B)", "7h/2 + 8d", 3.5 * H + 8 * DB, lambda: matmul(gather_first, "B", P()), RING),
    ("ring (A)", "7 max(h, d) + d", 7 * max(H, DA) + DA, lambda: matmul(ring, "A"), RING),
    ("ring (B)", "7 max(h, d) + d", 7 * max(H, DB) + DB, lambda: matmul(ring, "B"), RING),
    ("permute waits (A)", "8d + 7h", 8 * DA + 7 * H, lambda: matmul(permute_waits, "A"), RING),
    ("permute waits (B)", "8d + 7h", 8 * DB + 7 * H, lambda: matmul(permute_waits, "B"), RING),
    ("ring in fori_loop, 8 hops (A)", "8 max(h, d)", 8 * max(H, DA), lambda: matmul(ring_in_loop, "A"), RING),
    ("late in fori_loop (A)", "d + 7 (h + d)", DA + 7 * (H + DA), lambda: matmul(late_in_loop, "A"), RING),
    (
        "late, unroll=4 (A)", "2 (h + 3 max(h, d) + d)", 2 * (H + 3 * max(H, DA) + DA),
        lambda: matmul(late_unrolled_by_four, "A"), RING,
    ),
    ("both ways (A)", "7 max(h/2, d) + d", 7 * max(H / 2, DA) + DA, lambda: matmul(both_ways, "A"), RING),
    ("GPipe, P=8, M=16", "23d + 22h", 23 * D11 + 22 * H11, gpipe_of, RING),
    ("FSDP, 6 layers, 128 rows", "g + 5 max(g, d) + d", G12 + 5 * max(G12, D12[128]) + D12[128], lambda: fsdp_of(128), RING),
    (
        "FSDP, 6 layers, 8192 rows", "g + 5 max(g, d) + d", G12 + 5 * max(G12, D12[8192]) + D12[8192],
        lambda: fsdp_of(8192), RING,
    ),
    *((name, formula, due, *laid) for name, formula, due, laid in MORE),
]  # fmt: skip


def test_there_are_forty_closed_forms_with_different_names() -> None:
    assert len({name for name, *_ in FORMS}) == len(FORMS) == 40


@pytest.mark.parametrize(("formula", "due", "program", "place"), [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_the_clock_agrees_with_the_closed_form(formula: str, due: float, program: Callable, place: Placement) -> None:
    found = timeline(program(), place)
    assert abs(found.step - due * US) <= len(found.spans), (
        f"{formula} = {due:.4f} us, the clock says {found.step / US:.4f}"
    )


def test_a_gpipe_schedule_computes_23_parts_of_which_16_are_useful() -> None:
    found = timeline(gpipe_of(), RING)
    assert found.flops == 23 * 2 * 512 * WIDE * WIDE


def one_f_one_b(stages: int, micro: int, forward: int, backward: int) -> int:
    """Return the length of a 1F1B schedule. Each stage runs its list of passes in order. Communication takes no time."""
    where: dict[tuple[str, int, int], int] = {}
    lists = []
    for s in range(stages):
        ahead = min(stages - s - 1, micro)
        steps = [("f", m) for m in range(ahead)]
        for m in range(micro - ahead):
            steps += [("f", ahead + m), ("b", m)]
        lists.append(steps + [("b", m) for m in range(micro - ahead, micro)])
    pieces: list[Piece] = []
    while any(lists):  # a piece must come after the pieces that it waits for
        for s, steps in enumerate(lists):
            while steps:
                kind, m = steps[0]
                needs = (
                    {("f", s - 1, m)} if kind == "f" and s else {("b", s + 1, m), ("f", s, m)} if kind == "b" else set()
                )
                needs = {n for n in needs if 0 <= n[1] < stages}
                if not needs <= where.keys():
                    break
                where[kind, s, m] = len(pieces)
                time = forward if kind == "f" else backward
                pieces.append(Piece(time, (f"stage {s}",), frozenset(where[n] for n in needs)))
                steps.pop(0)
    return lay(pieces, "none").length


def test_one_forward_one_backward_takes_the_known_number_of_slots() -> None:
    assert one_f_one_b(4, 8, 1, 1) == 22
    assert one_f_one_b(4, 8, 1, 2) == 33


def row(name: str, formula: str, due: float, found: Timeline) -> str:
    return f"| {name} | {formula} | {due:.4f} | {found.step / US:.4f} |"


def test_a_matmul_runs_before_a_sum_that_waits_for_a_hop() -> None:
    """A round receives data and adds them to its own data. Its matmul does not need the received data.

    So the clock runs the matmul first, also if the program has the sum first.
    """
    hop, total = Piece(3, ("x+",), frozenset(), talks=True), Piece(1, (COMPUTE,), frozenset({0}))
    matmul = Piece(5, (COMPUTE,), frozenset())
    assert lay([hop, total, matmul], COMPUTE).length == 5 + 1
    assert lay([hop, matmul, total], COMPUTE).length == 5 + 1
