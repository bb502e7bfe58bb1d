"""Checks, misconceptions and alternatives of F1."""

import jax
import jax.numpy as jnp

from f1_ag_matmul import (
    ag_matmul,
    ag_matmul_bytes,
    ag_matmul_overlaps_from,
    ag_matmul_time,
    call,
    exercise,
    hop_and_matmul,
    narrow,
    small,
    wide,
)
from grader.exercise import Scenario, larger
from grader.expect import (
    Failure,
    between,
    expect_beside,
    expect_close,
    expect_collectives,
    expect_flops,
    expect_memory,
    expect_not_waiting,
    expect_only,
    expect_overlap,
    expect_step_time,
    needed,
)
from grader.hardware import latency, matmul_time


@exercise.helper
def sizes_of(seen):
    """Return three numbers: the rows and the columns of a shard of A, and the columns of a block of W."""
    x, y = seen.mesh["x"], seen.mesh["y"]
    return seen.dims["B"] // x, seen.dims["D"] // y, seen.dims["F"] // y


@exercise.helper
def expect_hops_of_one_shard(seen, itemsize):
    """Require only ppermutes, each with one whole shard of A."""
    expect_only(seen, "permute")
    rows, columns, _ = sizes_of(seen)
    shard = itemsize * rows * columns
    for hop in seen.collectives:
        if hop.bytes != shard:
            raise Failure(
                f"line {hop.line}: this ppermute sends {hop.bytes} bytes, but a shard has {shard} bytes",
                where=f"line {hop.line}",
            )


@exercise.helper
def expect_shards_round_the_ring(seen, itemsize):
    """Require N - 1 hops, each with one whole shard of A to a neighbour over y.

    A device needs the shards of N - 1 other devices, so fewer than N - 1 hops of one shard are too few.
    """
    expect_collectives(seen, permute={"y": seen.mesh["y"] - 1})
    for hop in seen.collectives:
        if hop.shift not in (1, -1):
            raise Failure(f"line {hop.line}: this ppermute does not send to a neighbour", where=f"line {hop.line}")
    expect_hops_of_one_shard(seen, itemsize)


@exercise.check(call, points=1, public=True)
def ag_value(seen):
    """ag_matmul: C equals A @ W"""
    expect_close(seen.out, seen.a @ seen.w)


@exercise.check(call, points=0.5, public=True, after=ag_value)
def ag_hops(seen):
    """ag_matmul: N - 1 ppermutes over y to a neighbour, one shard each, no other collective"""
    expect_shards_round_the_ring(seen, 4)


@exercise.check(small, points=0.25, public=True, after=ag_value)
def ag_ring(seen):
    """ag_matmul on a ring of eight: C equals A @ W in bfloat16"""
    expect_close(seen.out, seen.a @ seen.w)


@exercise.check([small, wide], points=0.25, public=True, after=ag_value)
def ag_same(small, wide):
    """ag_matmul at real sizes: the program has the same hops as in the value check, and every matmul runs once"""
    for seen in (small, wide):
        expect_hops_of_one_shard(seen, 2)
        rows, columns, width = sizes_of(seen)
        n = seen.mesh["y"]
        work = 2 * rows * columns * width * n
        expect_flops(seen, at_least=work, at_most=needed(work, n * work))  # n: each round multiplies every block


@exercise.check(wide, points=0.5, public=True, after=ag_same)
def ag_order(seen):
    """ag_matmul: no hop waits for a matmul, and each hop overlaps a matmul"""
    expect_not_waiting(seen, "permute", on="matmul")
    expect_beside(seen, "permute", of="matmul")


@exercise.check(wide, points=0.5, public=True, after=[ag_hops, ag_same, ag_order])
def ag_overlap(seen):
    """ag_matmul in time: overlap saves at least 80 % of what it can, and the step takes at most 1.2 times as long as its matmuls"""
    rows, columns, width = sizes_of(seen)
    matmuls = seen.mesh["y"] * matmul_time(2 * rows * columns * width, "v5e")
    expect_step_time(
        seen, at_most=between(matmuls, 6 * matmuls, at=1.2 * matmuls)
    )  # 6: matmuls at the highest precision
    expect_overlap(seen, "permute", at_least=0.8, work=matmuls)


@exercise.check(narrow, points=0.5, after=ag_same)
def ag_memory(narrow):
    """ag_matmul: a device holds at most four shards of A at the same time, in addition to W and C"""
    rows, columns, width = sizes_of(narrow)
    n, shard = narrow.mesh["y"], rows * columns
    weights, matmul = columns * n * width, rows * width
    right = 2 * (3 * shard + weights + matmul)  # three shards: its own, one that it multiplies, one that arrives
    wrong = 2 * ((n + 3) * shard + weights)  # the array of all shards
    expect_memory(narrow, at_most=between(right, wrong), by="clock")


# -- right, in other styles --------------------------------------------------------------------


@exercise.alternative(of=ag_matmul)
def receives_then_multiplies_written_out(a, w):
    """Send to the previous device. Use a Python loop that receives before each matmul, and cut W at each matmul."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = a.shape[1]
    c = jnp.zeros((a.shape[0], w.shape[1]), a.dtype)
    for hop in range(n):
        if hop:
            a = jax.lax.ppermute(a, "y", [(d, (d - 1) % n) for d in range(n)])
        c = c + jnp.einsum("bd,df->bf", a, jax.lax.dynamic_slice_in_dim(w, (me + hop) % n * rows, rows))
    return c


@exercise.alternative(of=ag_matmul)
def loop_that_sends_first(a, w):
    """Use a fori_loop whose round sends and multiplies the same shard, with the last matmul after the loop. Cast the zeros to varying, as check_vma=True requires."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)

    def one(hop, carry):
        a, c = carry
        return jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]), c + a @ rows[(me - hop) % n]

    zeros = jax.lax.pcast(jnp.zeros((a.shape[0], w.shape[1]), a.dtype), ("x", "y"), to="varying")
    a, c = jax.lax.fori_loop(0, n - 1, one, (a, zeros))
    return c + a @ rows[(me + 1) % n]


@exercise.alternative(of=ag_matmul)
def scan_over_rolled_rows(a, w):
    """Use a scan over the blocks of W, rolled into the order in which shards of A arrive."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = jnp.roll(w.reshape(n, a.shape[1], -1)[::-1], me + 1, axis=0)

    def one(carry, block):
        a, c = carry
        return (jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]), c + a @ block), None

    (a, c), _ = jax.lax.scan(one, (a, jnp.zeros((a.shape[0], w.shape[1]), a.dtype)), rows[:-1])
    return c + a @ rows[-1]


@exercise.alternative(of=ag_matmul)
def late_loop_unrolled(a, w):
    """Use a fori_loop that receives, then multiplies, with unroll=True."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)

    def one(hop, carry):
        a, c = carry
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)])
        return a, c + a @ rows[(me - hop) % n]

    return jax.lax.fori_loop(1, n, one, (a, a @ rows[me]), unroll=True)[1]


@exercise.alternative(of=ag_matmul)
def one_hop_ahead_in_a_loop(a, w):
    """Make the first hop before the loop begins, so that each round multiplies a shard that has already arrived."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)
    ring = [(d, (d + 1) % n) for d in range(n)]

    def one(hop, carry):
        a, c = carry
        return jax.lax.ppermute(a, "y", ring), c + a @ rows[(me - hop) % n]

    first, c = jax.lax.ppermute(a, "y", ring), a @ rows[me]
    a, c = jax.lax.fori_loop(1, n - 1, one, (first, c))
    return c + a @ rows[(me + 1) % n]


@exercise.alternative(of=ag_matmul)
def sums_in_float32(a, w):
    """Keep the terms in a list, in float32 for every dtype of operands, and sum them at the end."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, terms = w.reshape(n, a.shape[1], -1), []
    for hop in range(n):
        terms.append(jnp.dot(a, rows[(me - hop) % n], preferred_element_type=jnp.float32))
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]) if hop < n - 1 else a
    return sum(terms).astype(a.dtype)


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(
    of=ag_matmul, fails=ag_order, breaks=["no hop waits for a matmul", "overlap saves at least 80 % of the time"]
)
def ag_sends_after_the_matmul(a, w):
    """Your hop waits for the matmul of the shard that it sends, so hops and matmuls take turns. The shard has already arrived. Send the shard before you multiply it, so that the hop needs no matmul."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)
    c = jnp.zeros((a.shape[0], w.shape[1]), a.dtype)
    for hop in range(n):
        c = c + a @ rows[(me - hop) % n]
        if hop < n - 1:
            a, c = jax.lax.optimization_barrier((a, c))
            a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)])
    return c


@exercise.misconception(of=ag_matmul, fails=ag_order, breaks="each hop overlaps a matmul")
def ag_late_in_a_loop(a, w):
    """Each round of your loop receives a shard and multiplies that shard. A round ends after all its operations, so hop and matmul take turns. Send and multiply the current shard in one round, or unroll the loop with unroll=True."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)

    def one(hop, carry):
        a, c = carry
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)])
        return a, c + a @ rows[(me - hop) % n]

    return jax.lax.fori_loop(1, n, one, (a, a @ rows[me]))[1]


@exercise.misconception(
    of=ag_matmul, fails=ag_overlap, breaks="the step takes at most 1.2 times as long as its matmuls"
)
def ag_widened_operands(a, w):
    """You widen the operands to float32 and multiply at the highest precision: six passes per matmul. Multiply in bfloat16 and add in float32, with preferred_element_type=jnp.float32."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, c = w.reshape(n, a.shape[1], -1), 0
    for hop in range(n):
        wide = a.astype(jnp.float32), rows[(me - hop) % n].astype(jnp.float32)
        c += jnp.dot(*wide, precision=jax.lax.Precision.HIGHEST)
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]) if hop < n - 1 else a
    return c.astype(a.dtype)


@exercise.misconception(of=ag_matmul, fails=ag_value, breaks="C equals A @ W")
def ag_rows_by_step(a, w):
    """You select the rows of W by the number of the round. After t hops you hold the shard of the device t places before you: use rows (me - t) % n."""
    n = jax.lax.axis_size("y")
    rows, c = w.reshape(n, a.shape[1], -1), 0
    for hop in range(n):
        c += a @ rows[hop]
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]) if hop < n - 1 else a
    return c


@exercise.misconception(of=ag_matmul, fails=ag_value, breaks="C equals A @ W")
def ag_rows_with_wrong_sign(a, w):
    """Your rows of W run in the wrong direction. If you send to the next device, the shard that arrives in hop t comes from the device t places before you: me - t."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, c = w.reshape(n, a.shape[1], -1), 0
    for hop in range(n):
        c += a @ rows[(me + hop) % n]
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]) if hop < n - 1 else a
    return c


@exercise.misconception(of=ag_matmul, fails=ag_value, breaks="C equals A @ W")
def ag_own_shard_only(a, w):
    """You multiplied your own shard of A by its rows of W: one term of N. Add the terms of the other shards too."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    return a @ w.reshape(n, a.shape[1], -1)[me]


def round_the_other_axis(seen):
    """For `gives`: require permutes, and all of them over x."""
    if {hop.axes for hop in seen.collectives if hop.kind == "permute"} != {("x",)}:
        raise Failure("this mistake gives other permutes")


@exercise.misconception(of=ag_matmul, fails=ag_value, gives=round_the_other_axis, breaks="C equals A @ W")
def ag_round_the_other_axis(a, w):
    """You go round x, which cuts the rows of A, so you add up different rows of C. Go round y, which cuts the columns of A."""
    n, me, y = jax.lax.axis_size("x"), jax.lax.axis_index("x"), jax.lax.axis_size("y")
    rows, c = w.reshape(y, a.shape[1], -1), 0
    for hop in range(n):
        c += a @ rows[(me - hop) % y]
        a = jax.lax.ppermute(a, "x", [(d, (d + 1) % n) for d in range(n)]) if hop < n - 1 else a
    return c


@exercise.misconception(
    of=ag_matmul, fails=ag_ring, breaks=["also in bfloat16 on a ring of eight", "`C` has the dtype of `A` and `W`"]
)
def ag_returns_float32(a, w):
    """You add in float32 and return float32. C has the dtype of A and W: cast the sum back at the end."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, c = w.reshape(n, a.shape[1], -1), 0
    for hop in range(n):
        c += jnp.dot(a, rows[(me - hop) % n], preferred_element_type=jnp.float32)
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]) if hop < n - 1 else a
    return c


@exercise.misconception(of=ag_matmul, fails=ag_hops, breaks="N − 1 `ppermute`s over y")
def ag_in_n_hops(a, w):
    """You permute N times. After N - 1 hops every device has had every shard. The last hop only returns your own shard."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)

    def one(hop, carry):
        a, c = carry
        return jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]), c + a @ rows[(me - hop) % n]

    return jax.lax.fori_loop(0, n, one, (a, jnp.zeros((a.shape[0], w.shape[1]), a.dtype)))[1]


@exercise.misconception(of=ag_matmul, fails=[ag_hops, ag_same], breaks="no other collective")
def ag_gathered_first(a, w):
    """You gathered A with one collective, and the matmul waits for the whole gather. Multiply each shard as soon as it arrives."""
    return jax.lax.all_gather(a, "y", axis=1, tiled=True) @ w


@exercise.misconception(of=ag_matmul, fails=ag_hops, breaks="to a neighbour")
def ag_over_the_heads(a, w):
    """You fetch each shard straight from its owner, t places away. On a ring the shard passes t wires, so the wires carry t times the bytes. Take the shard from your neighbour, which already has it."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows = w.reshape(n, a.shape[1], -1)
    c = a @ rows[me]
    for far in range(1, n):
        c += jax.lax.ppermute(a, "y", [(d, (d + far) % n) for d in range(n)]) @ rows[(me - far) % n]
    return c


@exercise.misconception(of=ag_matmul, fails=[ag_hops, ag_same], breaks="one shard each")
def ag_sends_all_shards(a, w):
    """You send the array of all shards in every hop, empty places too: N times the bytes. Send only the shard that arrived last, and multiply it while it travels."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    held = own = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for _ in range(n - 1):
        held = own + jax.lax.ppermute(held, "y", [(d, (d + 1) % n) for d in range(n)])
    return jnp.einsum("nbd,ndf->bf", held, w.reshape(n, a.shape[1], -1))


@exercise.misconception(of=ag_matmul, fails=[ag_order, ag_memory], breaks="at most four shards of `A` at the same time")
def ag_hops_first_then_one_matmul(a, w):
    """You collect all shards in one array by hops and multiply afterwards. Every matmul needs the whole array, so no hop is overlapped and each device holds all of A. Multiply one shard while the next one travels."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    held = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for hop in range(1, n):
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)])
        held = held.at[(me - hop) % n].set(a)
    return jnp.einsum("nbd,ndf->bf", held, w.reshape(n, a.shape[1], -1))


@exercise.misconception(
    of=ag_matmul,
    fails=ag_same,
    breaks="the program has the same hops at real sizes",
)
def ag_other_program_when_large(a, w):
    """Your program for large arrays differs from the program that the grader checks for values. The grader times only a program with the same hops and matmuls. Use one program for all sizes."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, c = w.reshape(n, a.shape[1], -1), 0
    for hop in range(n if a.shape[0] < 1000 else 1):
        c += a @ rows[(me - hop) % n]
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]) if hop < n - 1 else a
    return c


@exercise.misconception(of=ag_matmul, fails=ag_same, breaks="every matmul runs once")
def ag_multiplies_every_block(a, w):
    """In each round you multiply the shard by all blocks of W and keep one result: N times the FLOPs. Select the block of rows first, then multiply."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, c = w.reshape(n, a.shape[1], -1), 0
    for hop in range(n):
        c += jnp.einsum("bd,ndf->nbf", a, rows)[(me - hop) % n]
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]) if hop < n - 1 else a
    return c


@exercise.misconception(of=ag_matmul_bytes)
def ag_bytes_of_n_hops(B, D, X, Y):
    """You counted N hops. The last shard arrives in hop N - 1."""
    return 2 * (B / X) * D


@exercise.misconception(of=ag_matmul_bytes)
def ag_bytes_of_one_hop(B, D, X, Y):
    """You counted one hop. A device also passes on the shards of other devices, so it makes N - 1 hops."""
    return 2 * (B / X) * (D / Y)


@exercise.misconception(of=ag_matmul_bytes)
def ag_bytes_of_all_rows(B, D, X, Y):
    """You left out X. Axis x cuts the rows of A, so a device needs only B/X rows."""
    return (Y - 1) * 2 * B * (D / Y)


@exercise.misconception(of=ag_matmul_bytes)
def ag_bytes_of_whole_rows(B, D, X, Y):
    """You counted whole rows of A in each hop. A hop sends one shard: D/Y columns of these rows."""
    return (Y - 1) * 2 * (B / X) * D


@exercise.misconception(of=ag_matmul_overlaps_from)
def ag_overlaps_both_ways(chip, Y):
    """You used W, the bandwidth of both directions of a link. The ring of ag_matmul goes one way round: use W1."""
    return ag_matmul_overlaps_from(chip=chip, Y=Y) / 2


@exercise.misconception(of=ag_matmul_overlaps_from)
def ag_overlaps_per_device(chip, Y):
    """You counted the columns of one device. F counts the columns of the whole ring: Y times as many."""
    return ag_matmul_overlaps_from(chip=chip, Y=Y) / Y


@exercise.misconception(of=ag_matmul_overlaps_from)
def ag_overlaps_with_one_flop(chip, Y):
    """Your answer is wrong by a factor of two. Each term of a matmul takes two FLOPs, a multiplication and an addition. Each element has two bytes."""
    return ag_matmul_overlaps_from(chip=chip, Y=Y) * 2


@exercise.misconception(of=ag_matmul_overlaps_from)
def ag_overlaps_in_sum(chip, Y):
    """You compared all hops with all matmuls. There are N matmuls and N - 1 hops, and no hop overlaps the last matmul: compare one hop with one matmul."""
    return ag_matmul_overlaps_from(chip=chip, Y=Y) * (Y - 1) / Y


def both(chip, B, D, F, G, Y):
    """Return the seconds of one hop and of one matmul, for each of the two calls."""
    return [hop_and_matmul(chip, B, D, columns, Y) for columns in (F, G)]


@exercise.misconception(of=ag_matmul_time)
def ag_time_in_turns(Y, **rest):
    """You let hops and matmuls take turns. They run at the same time: a round takes as long as the longer of hop and matmul."""
    return sum((Y - 1) * hop + Y * matmul for hop, matmul in both(Y=Y, **rest))


@exercise.misconception(of=ag_matmul_time)
def ag_time_of_matmuls(Y, **rest):
    """You counted matmuls only. With the narrow W a hop takes longer than a matmul, and the round takes as long as the hop."""
    return sum(Y * matmul for _, matmul in both(Y=Y, **rest))


@exercise.misconception(of=ag_matmul_time)
def ag_time_of_hops(Y, **rest):
    """You gave each round the time of a hop. With the wide W a matmul takes longer."""
    return sum((Y - 1) * hop + matmul for hop, matmul in both(Y=Y, **rest))


@exercise.misconception(of=ag_matmul_time)
def ag_time_of_n_rounds(Y, **rest):
    """You counted N rounds with a hop. There are N - 1 such rounds, and then one matmul without a hop."""
    return sum(Y * max(hop, matmul) for hop, matmul in both(Y=Y, **rest))


@exercise.misconception(of=ag_matmul_time)
def ag_time_without_the_last(Y, **rest):
    """You left out the last matmul, which multiplies the shard that the last hop brings."""
    return sum((Y - 1) * max(hop, matmul) for hop, matmul in both(Y=Y, **rest))


@exercise.misconception(of=ag_matmul_time)
def ag_time_of_hops_alone(Y, **rest):
    """You counted hops only. With the wide W a matmul takes longer than a hop, and the last round has a matmul without a hop."""
    return sum((Y - 1) * hop for hop, _ in both(Y=Y, **rest))


@exercise.misconception(of=ag_matmul_time)
def ag_time_of_the_first_call(F, **rest):
    """You counted one call. Add the times of both calls."""
    (hop, matmul), _ = both(F=F, **rest)
    return (rest["Y"] - 1) * max(hop, matmul) + matmul


@exercise.misconception(of=ag_matmul_time)
def ag_time_of_the_second_call(F, **rest):
    """You counted the second call alone. Add the times of both calls."""
    _, (hop, matmul) = both(F=F, **rest)
    return (rest["Y"] - 1) * max(hop, matmul) + matmul


exercise.scenario(
    ag_matmul_bytes, lambda B, D, X, Y: Scenario(mesh={"x": X, "y": Y}, arrays=[((B, D), ("x", "y"))])
)  # fmt: skip
exercise.scenario(ag_matmul_overlaps_from, lambda chip, Y: Scenario(chip=chip, rings=(Y,)), published=[2550, 5100])
exercise.scenario(
    ag_matmul_time,
    lambda chip, B, D, F, G, Y: Scenario(
        chip=chip, rings=(Y,), mesh={"y": Y}, least=2 * latency(Y, "one_way_ring"),
        arrays=[((B, D), (None, "y")), ((D, F), (None, "y")), ((D, G), (None, "y"))],
        branches=tuple(larger(hop=hop, matmul=matmul) for hop, matmul in both(chip, B, D, F, G, Y)),
    ),
)  # fmt: skip
