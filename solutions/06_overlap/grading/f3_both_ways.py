"""Questions, checks, misconceptions and alternatives of F3."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from f3_both_ways import (
    both_ways_ag_matmul,
    both_ways_bytes,
    both_ways_matmul_rs,
    both_ways_most_chips,
    both_ways_time_saved,
    exercise,
    hop_and_matmuls,
)
from grader.exercise import Scenario, larger, normal
from grader.expect import (
    Failure,
    between,
    expect_beside,
    expect_close,
    expect_flops,
    expect_not_waiting,
    expect_only,
    expect_step_time,
    expect_traffic,
    needed,
)
from grader.hardware import link_intensity, matmul_time

# All arrays are float32: sums of another dtype would double or halve the bytes.
gather = {"a": normal("B", "D", spec=P("x", "y")), "w": normal("D", "F", spec=P(None, "y"))}
scatter = {"t": normal("B", "F", spec=P("x", "y")), "w": normal("F", "D", spec=P("y", None))}
ag = exercise.call(
    both_ways_ag_matmul, **gather, dims={"B": 10, "D": 60, "F": 84}, hidden_dims={"B": 14, "D": 108, "F": 60}
)
ag_small = exercise.call(
    both_ways_ag_matmul, **gather, meshes=[{"x": 1, "y": 8}],
    dims={"B": 22, "D": 8 * 26, "F": 8 * 34}, hidden_dims={"B": 26, "D": 8 * 34, "F": 8 * 22},
)  # fmt: skip
ag_large = exercise.timing(
    ag_small, on="v5e:2x4",
    dims={"B": 8192, "D": 32768, "F": 40960}, hidden_dims={"B": 10240, "D": 40960, "F": 40960},
)  # fmt: skip
rs = exercise.call(
    both_ways_matmul_rs, **scatter, dims={"B": 10, "D": 60, "F": 84}, hidden_dims={"B": 14, "D": 108, "F": 60}
)
rs_small = exercise.call(
    both_ways_matmul_rs, **scatter, meshes=[{"x": 1, "y": 8}],
    dims={"B": 22, "D": 8 * 26, "F": 8 * 34}, hidden_dims={"B": 26, "D": 8 * 34, "F": 8 * 22},
)  # fmt: skip
rs_large = exercise.timing(
    rs_small, on="v5e:2x4",
    dims={"B": 8192, "D": 32768, "F": 34816}, hidden_dims={"B": 10240, "D": 40960, "F": 34816},
)  # fmt: skip


@exercise.helper
def sizes_of(seen):
    """Return N, and the rows and columns of a block [B/X, D/Y]."""
    return seen.mesh["y"], seen.dims["B"] // seen.mesh["x"], seen.dims["D"] // seen.mesh["y"]


@exercise.helper
def expect_blocks_sent(seen):
    """Require that each device sends at least N - 1 blocks of float32[B/X, D/Y], by ppermutes only."""
    expect_only(seen, "permute")
    n, rows, columns = sizes_of(seen)
    sent, least = sum((hop.count * hop.bytes).most for hop in seen.collectives), (n - 1) * 4 * rows * columns
    if sent < least:
        raise Failure(f"each device sends {sent} bytes, but N - 1 blocks have {least} bytes")


@exercise.helper
def expect_both_ways(seen):
    """Require that each device sends N - 1 blocks to neighbours over y, about half of them each way."""
    expect_blocks_sent(seen)
    n, rows, columns = sizes_of(seen)
    sent = (n - 1) * 4 * rows * columns
    expect_traffic(seen, at_most=needed(sent, 2 * sent))  # wrong: whole blocks in both directions
    ways = {1: 0, -1: 0}
    for hop in seen.collectives:
        if hop.axes != ("y",) or hop.shift not in ways:
            raise Failure(f"line {hop.line}: this is not a ppermute to a neighbour over y", where=f"line {hop.line}")
        ways[hop.shift] += (hop.count * hop.bytes).most
    larger_half = max((rows + 1) // 2 * columns, rows * ((columns + 1) // 2))
    most = 4 * max(n // 2 * rows * columns, (n - 1) * larger_half)
    if max(ways.values()) > most:
        found = f"each device sends {ways[1]} bytes forwards and {ways[-1]} bytes backwards (a block has {4 * rows * columns} bytes)"
        raise Failure(f"{found}; at most {most} bytes may go one way", expected=most, actual=max(ways.values()))


@exercise.helper
def work(seen):
    """Return the FLOPs of one device's matmuls."""
    return 2 * seen.dims["B"] * seen.dims["D"] * seen.dims["F"] / (seen.mesh["x"] * seen.mesh["y"])


@exercise.check(ag, points=0.75, public=True)
def both_ag_value(seen):
    """both_ways_ag_matmul: C equals A @ W"""
    expect_close(seen.out, seen.a @ seen.w)


@exercise.check(ag, points=0.5, public=True, after=both_ag_value)
def both_ag_ways(seen):
    """both_ways_ag_matmul: each device sends N - 1 shards to neighbours, about half of them in each direction"""
    expect_both_ways(seen)


@exercise.check(ag_small, points=0.125, public=True, after=both_ag_value)
def both_ag_ring(seen):
    """both_ways_ag_matmul on a ring of eight: C equals A @ W"""
    expect_close(seen.out, seen.a @ seen.w)


@exercise.check([ag_small, ag_large], points=0.125, public=True, after=both_ag_value)
def both_ag_same(small, large):
    """both_ways_ag_matmul at real sizes: the program has the same hops as in the value check, and every matmul runs once"""
    for seen in (small, large):
        expect_blocks_sent(seen)
        wrong = seen.mesh["y"] * work(seen)  # each round multiplies every block
        expect_flops(seen, at_least=work(seen), at_most=needed(work(seen), wrong))


@exercise.check(ag_large, points=0.5, public=True, after=[both_ag_ways, both_ag_same])
def both_ag_fast(seen):
    """both_ways_ag_matmul in time: matmuls overlap the hops, and the step takes at most 1.6 times as long as its matmuls"""
    expect_both_ways(seen)  # on a ring of eight, too
    expect_not_waiting(seen, "permute", on="matmul")
    expect_beside(seen, "permute", of="matmul")
    matmuls = matmul_time(work(seen), "v5e")
    expect_step_time(seen, at_most=between(matmuls, 1.8 * matmuls, at=1.6 * matmuls))  # 1.8: hops, then matmuls


@exercise.check(rs, points=0.75, public=True)
def both_rs_value(seen):
    """both_ways_matmul_rs: Out equals T @ W"""
    expect_close(seen.out, seen.t @ seen.w)


@exercise.check(rs, points=0.5, public=True, after=both_rs_value)
def both_rs_ways(seen):
    """both_ways_matmul_rs: each device sends N - 1 blocks to neighbours, about half of them in each direction"""
    expect_both_ways(seen)


@exercise.check(rs_small, points=0.125, public=True, after=both_rs_value)
def both_rs_ring(seen):
    """both_ways_matmul_rs on a ring of eight: Out equals T @ W"""
    expect_close(seen.out, seen.t @ seen.w)


@exercise.check([rs_small, rs_large], points=0.125, public=True, after=both_rs_value)
def both_rs_same(small, large):
    """both_ways_matmul_rs at real sizes: the program has the same hops as in the value check, and every matmul runs once"""
    for seen in (small, large):
        expect_blocks_sent(seen)
        wrong = 2 * work(seen)  # two rings that each sum whole blocks
        expect_flops(seen, at_least=work(seen), at_most=needed(work(seen), wrong))


@exercise.check(rs_large, points=0.5, public=True, after=[both_rs_ways, both_rs_same])
def both_rs_fast(seen):
    """both_ways_matmul_rs in time: matmuls overlap the hops, and the step takes at most 1.6 times as long as its matmuls"""
    expect_both_ways(seen)
    expect_beside(seen, "permute", of="matmul")
    matmuls = matmul_time(work(seen), "v5e")
    right, wrong = 1.29 * matmuls, 1.97 * matmuls  # right: the core also adds sums; wrong: hops, then matmuls
    expect_step_time(seen, at_most=between(right, wrong, at=1.6 * matmuls))


def ways(n):
    """Return the ppermute pairs of the ring that goes forth, and of the ring that goes back."""
    return ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))


# -- right, in other styles --------------------------------------------------------------------


@exercise.alternative(of=both_ways_ag_matmul)
def ag_halves_of_columns(a, w):
    """Use halves of the columns of A, and add the terms of both halves into one C."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows, half = w.reshape(n, a.shape[1], -1), a.shape[1] // 2
    right, left = a[:, :half], a[:, half:]
    c = 0
    for hop in range(n):
        c += right @ rows[(me - hop) % n, :half] + left @ rows[(me + hop) % n, half:]
        if hop < n - 1:
            right, left = jax.lax.ppermute(right, "y", forth), jax.lax.ppermute(left, "y", back)
    return c


@exercise.alternative(of=both_ways_ag_matmul)
def ag_halves_in_one_matmul(a, w):
    """Use halves of the columns of A, and join them for one matmul with the size of a whole shard."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows, half = w.reshape(n, a.shape[1], -1), a.shape[1] // 2
    right, left = a[:, :half], a[:, half:]
    c = a @ rows[me]
    for hop in range(1, n):
        right, left = jax.lax.ppermute(right, "y", forth), jax.lax.ppermute(left, "y", back)
        met = jnp.concatenate([rows[(me - hop) % n, :half], rows[(me + hop) % n, half:]])
        c = c + jnp.concatenate([right, left], axis=1) @ met
    return c


@exercise.alternative(of=both_ways_ag_matmul)
def ag_halves_in_a_loop(a, w):
    """Use a fori_loop whose round sends and multiplies the same halves."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows = w.reshape(n, a.shape[1], -1)

    def one(hop, carry):
        upper, lower, c, d = carry
        sent = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", back)
        return *sent, c + upper @ rows[(me - hop) % n], d + lower @ rows[(me + hop) % n]

    upper, lower = a[: a.shape[0] // 2], a[a.shape[0] // 2 :]
    zeros = [jnp.zeros((len(half), w.shape[1]), a.dtype) for half in (upper, lower)]
    upper, lower, c, d = jax.lax.fori_loop(0, n - 1, one, (upper, lower, *zeros))
    return jnp.concatenate([c + upper @ rows[(me + 1) % n], d + lower @ rows[(me - 1) % n]])


@exercise.alternative(of=both_ways_ag_matmul)
def ag_whole_shards_half_the_rounds(a, w):
    """Send whole shards both ways for half as many rounds. The opposite device's shard comes one way."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows = w.reshape(n, a.shape[1], -1)
    c, right, left = a @ rows[me], a, a
    for hop in range(1, n // 2 + 1):
        right = jax.lax.ppermute(right, "y", forth)
        c += right @ rows[(me - hop) % n]
        if 2 * hop < n:
            left = jax.lax.ppermute(left, "y", back)
            c += left @ rows[(me + hop) % n]
    return c


@exercise.alternative(of=both_ways_matmul_rs)
def rs_halves_of_columns(t, w):
    """Use halves of each block's columns."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    half = columns.shape[2] // 2
    right, left = t @ columns[:, (me - 1) % n, :half], t @ columns[:, (me + 1) % n, half:]
    for hop in range(1, n):
        right = jax.lax.ppermute(right, "y", forth) + t @ columns[:, (me - 1 - hop) % n, :half]
        left = jax.lax.ppermute(left, "y", back) + t @ columns[:, (me + 1 + hop) % n, half:]
    return jnp.concatenate([right, left], axis=1)


@exercise.alternative(of=both_ways_matmul_rs)
def rs_halves_in_one_matmul(t, w):
    """Compute the columns of both halves in one matmul, then split the result."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    half = columns.shape[2] // 2
    right = left = 0
    for hop in range(n):
        met = jnp.concatenate([columns[:, (me - 1 - hop) % n, :half], columns[:, (me + 1 + hop) % n, half:]], axis=1)
        part_right, part_left = jnp.split(t @ met, [half], axis=1)
        if hop:
            right, left = jax.lax.ppermute(right, "y", forth), jax.lax.ppermute(left, "y", back)
        right, left = right + part_right, left + part_left
    return jnp.concatenate([right, left], axis=1)


@exercise.alternative(of=both_ways_matmul_rs)
def rs_halves_in_a_loop(t, w):
    """Use a fori_loop whose round sends two sums and computes the next parts meanwhile."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    upper, lower = jnp.split(t, [t.shape[0] // 2])

    def one(hop, sums):
        up = jax.lax.ppermute(sums[0], "y", forth) + upper @ columns[:, (me - 1 - hop) % n]
        return up, jax.lax.ppermute(sums[1], "y", back) + lower @ columns[:, (me + 1 + hop) % n]

    first = upper @ columns[:, (me - 1) % n], lower @ columns[:, (me + 1) % n]
    return jnp.concatenate(jax.lax.fori_loop(1, n, one, first))


@exercise.alternative(of=both_ways_matmul_rs)
def rs_whole_blocks_half_the_rounds(t, w):
    """Send sums of whole blocks to their owner from both sides. The owner adds the two sums and its own part."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    far, near = n // 2, (n - 1) // 2
    right = t @ columns[:, (me + far) % n]
    left = t @ columns[:, (me - near) % n]
    for hop in range(1, far + 1):
        right = jax.lax.ppermute(right, "y", forth)
        right = right + t @ columns[:, (me + far - hop) % n]
        if hop <= near:
            left = jax.lax.ppermute(left, "y", back)
            left = left + t @ columns[:, (me - near + hop) % n] if hop < near else left
    return right + left


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(of=both_ways_ag_matmul, fails=both_ag_ways, breaks="in one direction at most ⌊N/2⌋ blocks")
def both_ag_one_way(a, w):
    """All your hops go one way round, and the other direction of every link is idle. Send each half in its own direction."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, c = w.reshape(n, a.shape[1], -1), 0
    for hop in range(n):
        c += a @ rows[(me - hop) % n]
        a = jax.lax.ppermute(a, "y", [(d, (d + 1) % n) for d in range(n)]) if hop < n - 1 else a
    return c


@exercise.misconception(of=both_ways_ag_matmul, fails=both_ag_ways, breaks="or N − 1 times the larger half of a block")
def both_ag_halves_one_way(a, w):
    """You split the shard and send both halves one way round. Send each half in its own direction: the lower half goes back."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, _ = ways(n)
    rows = w.reshape(n, a.shape[1], -1)
    upper, lower = jnp.split(a, [a.shape[0] // 2])
    c, d = upper @ rows[me], lower @ rows[me]
    for hop in range(1, n):
        upper, lower = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", forth)
        c, d = c + upper @ rows[(me - hop) % n], d + lower @ rows[(me - hop) % n]
    return jnp.concatenate([c, d])


@exercise.misconception(of=both_ways_ag_matmul, fails=both_ag_ways, breaks="N − 1 blocks in all")
def both_ag_whole_shards_all_round(a, w):
    """You send whole shards both ways, all the way round, so every shard reaches every device twice. Send halves for N - 1 rounds, or whole shards for half as many rounds."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows, half = w.reshape(n, a.shape[1], -1), a.shape[0] // 2
    right = left = a
    c, d = a[:half] @ rows[me], a[half:] @ rows[me]
    for hop in range(1, n):
        right, left = jax.lax.ppermute(right, "y", forth), jax.lax.ppermute(left, "y", back)
        c, d = c + right[:half] @ rows[(me - hop) % n], d + left[half:] @ rows[(me + hop) % n]
    return jnp.concatenate([c, d])


@exercise.misconception(of=both_ways_ag_matmul, fails=both_ag_value, breaks="C equals A @ W")
def both_ag_records_swapped(a, w):
    """You swapped the rows of W for the two directions. After t hops, the half that goes forth comes from device me - t. The half that goes back comes from me + t."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows = w.reshape(n, a.shape[1], -1)
    upper, lower = jnp.split(a, [a.shape[0] // 2])
    c, d = upper @ rows[me], lower @ rows[me]
    for hop in range(1, n):
        upper, lower = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", back)
        c, d = c + upper @ rows[(me + hop) % n], d + lower @ rows[(me - hop) % n]
    return jnp.concatenate([c, d])


@exercise.misconception(of=both_ways_ag_matmul, fails=both_ag_value, breaks="C equals A @ W")
def both_ag_one_record(a, w):
    """You use one index for both directions. After t hops, the half that goes forth comes from device me - t. The half that goes back comes from me + t."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows = w.reshape(n, a.shape[1], -1)
    upper, lower = jnp.split(a, [a.shape[0] // 2])
    c, d = upper @ rows[me], lower @ rows[me]
    for hop in range(1, n):
        upper, lower = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", back)
        c, d = c + upper @ rows[(me - hop) % n], d + lower @ rows[(me - hop) % n]
    return jnp.concatenate([c, d])


@exercise.misconception(of=both_ways_ag_matmul, fails=both_ag_value, breaks="C equals A @ W")
def both_ag_swapped(a, w):
    """You joined the halves in the wrong order. The rows that went to the previous device are the second half."""
    c, half = both_ways_ag_matmul(a, w), a.shape[0] // 2
    return jnp.concatenate([c[half:], c[:half]])


@exercise.misconception(
    of=both_ways_ag_matmul, fails=both_ag_value, breaks="The numbers of rows and columns may be odd"
)
def both_ag_equal_halves(a, w):
    """You cut two equal halves, so with an odd number of rows the last row is lost. Let the halves differ by one row: a[:half] and a[half:]."""
    return both_ways_ag_matmul(a[: a.shape[0] // 2 * 2], w)


@exercise.misconception(
    of=both_ways_ag_matmul, fails=both_ag_value, breaks="send the opposite device's block only once"
)
def both_ag_middle_twice(a, w):
    """With an even N the opposite device's shard arrives both ways, and you add its term twice. Let only one direction bring this shard."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows = w.reshape(n, a.shape[1], -1)
    c, right, left = a @ rows[me], a, a
    for hop in range(1, n // 2 + 1):
        right, left = jax.lax.ppermute(right, "y", forth), jax.lax.ppermute(left, "y", back)
        c += right @ rows[(me - hop) % n] + left @ rows[(me + hop) % n]
    return c


@exercise.misconception(of=both_ways_ag_matmul, fails=[both_ag_ways, both_ag_same], breaks="only `ppermute`s")
def both_ag_gathered(a, w):
    """You gathered all of A before the matmul. all_gather also goes both ways, but it overlaps no matmul."""
    return jax.lax.all_gather(a, "y", axis=1, tiled=True) @ w


@exercise.misconception(
    of=both_ways_ag_matmul,
    fails=both_ag_fast,
    breaks="by the grader's clock, on eight v5e chips, profile *ideal*: matmuls run beside the hops",
)
def both_ag_late_in_a_loop(a, w):
    """Each round of your loop receives halves and multiplies those halves, so hops and matmuls take turns. Send and multiply the current halves in one round, or unroll the loop with unroll=True."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows = w.reshape(n, a.shape[1], -1)

    def one(hop, carry):
        upper, lower, c, d = carry
        upper, lower = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", back)
        return upper, lower, c + upper @ rows[(me - hop) % n], d + lower @ rows[(me + hop) % n]

    upper, lower = jnp.split(a, [a.shape[0] // 2])
    return jnp.concatenate(jax.lax.fori_loop(1, n, one, (upper, lower, upper @ rows[me], lower @ rows[me]))[2:])


@exercise.misconception(
    of=both_ways_ag_matmul, fails=both_ag_fast, breaks="In `both_ways_ag_matmul` no hop may wait for a matmul"
)
def both_ag_sends_after_the_matmuls(a, w):
    """Your hops wait for the matmuls of the halves that they send, so hops and matmuls take turns. The halves have already arrived. Send them before you multiply."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows, half = w.reshape(n, a.shape[1], -1), a.shape[0] // 2
    upper, lower = a[:half], a[half:]
    c, d = upper @ rows[me], lower @ rows[me]
    for hop in range(1, n):
        upper, lower, c, d = jax.lax.optimization_barrier((upper, lower, c, d))
        upper, lower = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", back)
        c, d = c + upper @ rows[(me - hop) % n], d + lower @ rows[(me + hop) % n]
    return jnp.concatenate([c, d])


@exercise.misconception(of=both_ways_ag_matmul, fails=both_ag_ways, breaks="to neighbours over y")
def both_ag_over_the_heads(a, w):
    """You fetch each half straight from its owner. On a ring the half still passes every device on its way. Take the half from your neighbour, which already has it."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    rows, half = w.reshape(n, a.shape[1], -1), a.shape[0] // 2
    c, d = a[:half] @ rows[me], a[half:] @ rows[me]
    for far in range(1, n):
        upper = jax.lax.ppermute(a[:half], "y", [(d, (d + far) % n) for d in range(n)])
        lower = jax.lax.ppermute(a[half:], "y", [(d, (d - far) % n) for d in range(n)])
        c, d = c + upper @ rows[(me - far) % n], d + lower @ rows[(me + far) % n]
    return jnp.concatenate([c, d])


@exercise.misconception(
    of=both_ways_ag_matmul,
    fails=both_ag_same,
    breaks="the program has the same hops at real sizes",
)
def both_ag_other_program_when_large(a, w):
    """Your program for large arrays differs from the program that the grader checks for values. The grader times only a program with the same hops and matmuls. Use one program for all sizes."""
    return both_ways_ag_matmul(a, w) if a.shape[0] < 1000 else a @ w[: a.shape[1]]


@exercise.misconception(of=both_ways_ag_matmul, fails=both_ag_same, breaks="every matmul runs once")
def both_ag_multiplies_every_block(a, w):
    """In each round you multiply the halves by all blocks of W and keep one result for each half: N times the FLOPs. Select the block of rows first, then multiply."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    rows, half = w.reshape(n, a.shape[1], -1), a.shape[0] // 2
    term = lambda part, which: jnp.einsum("bd,ndf->nbf", part, rows)[which % n]  # noqa: E731
    upper, lower = a[:half], a[half:]
    c_upper, c_lower = term(upper, me), term(lower, me)
    for hop in range(1, n):
        upper, lower = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", back)
        c_upper, c_lower = c_upper + term(upper, me - hop), c_lower + term(lower, me + hop)
    return jnp.concatenate([c_upper, c_lower])


@exercise.misconception(of=both_ways_matmul_rs, fails=both_rs_ways, breaks="in one direction at most ⌊N/2⌋ blocks")
def both_rs_one_way(t, w):
    """All your sums go one way round, and the other direction of every link is idle. Send half of each sum in the other direction."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - 1 - hop) % n]
    return total


@exercise.misconception(of=both_ways_matmul_rs, fails=both_rs_ways, breaks="or N − 1 times the larger half of a block")
def both_rs_halves_one_way(t, w):
    """You split the sums and send both halves one way round. Send each half in its own direction."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, _ = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    upper, lower = jnp.split(t, [t.shape[0] // 2])
    up, down = upper @ columns[:, (me - 1) % n], lower @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        up = jax.lax.ppermute(up, "y", forth) + upper @ columns[:, (me - 1 - hop) % n]
        down = jax.lax.ppermute(down, "y", forth) + lower @ columns[:, (me - 1 - hop) % n]
    return jnp.concatenate([up, down])


@exercise.misconception(of=both_ways_matmul_rs, fails=[both_rs_ways, both_rs_same], breaks="N − 1 blocks in all")
def both_rs_mean_of_two_rings(t, w):
    """You sum whole blocks both ways round, so you send and compute every sum twice. Let each direction carry half of each block."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    right, left = t @ columns[:, (me - 1) % n], t @ columns[:, (me + 1) % n]
    for hop in range(1, n):
        right = jax.lax.ppermute(right, "y", forth) + t @ columns[:, (me - 1 - hop) % n]
        left = jax.lax.ppermute(left, "y", back) + t @ columns[:, (me + 1 + hop) % n]
    return (right + left) / 2


@exercise.misconception(of=both_ways_matmul_rs, fails=both_rs_value, breaks="(Out equals T @ W)")
def both_rs_one_record(t, w):
    """You use one index for both directions. Sums that go forth start with block me - 1 and count down. Sums that go back start with me + 1 and count up."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    upper, lower = jnp.split(t, [t.shape[0] // 2])
    up, down = upper @ columns[:, (me - 1) % n], lower @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        up = jax.lax.ppermute(up, "y", forth) + upper @ columns[:, (me - 1 - hop) % n]
        down = jax.lax.ppermute(down, "y", back) + lower @ columns[:, (me - 1 - hop) % n]
    return jnp.concatenate([up, down])


@exercise.misconception(of=both_ways_matmul_rs, fails=both_rs_value, breaks="(Out equals T @ W)")
def both_rs_records_swapped(t, w):
    """You swapped the blocks of the two directions. Sums that go forth start with block me - 1 and count down. Sums that go back start with me + 1 and count up."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    upper, lower = jnp.split(t, [t.shape[0] // 2])
    up, down = upper @ columns[:, (me + 1) % n], lower @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        up = jax.lax.ppermute(up, "y", forth) + upper @ columns[:, (me + 1 + hop) % n]
        down = jax.lax.ppermute(down, "y", back) + lower @ columns[:, (me - 1 - hop) % n]
    return jnp.concatenate([up, down])


@exercise.misconception(of=both_ways_matmul_rs, fails=both_rs_value, breaks="(Out equals T @ W)")
def both_rs_swapped(t, w):
    """You joined the halves in the wrong order. The rows that went to the previous device are the second half."""
    out, half = both_ways_matmul_rs(t, w), t.shape[0] // 2
    return jnp.concatenate([out[half:], out[:half]])


@exercise.misconception(of=both_ways_matmul_rs, fails=both_rs_value, breaks="(Out equals T @ W)")
def both_rs_own_block_first(t, w):
    """You started with your own block, so your sums end on the wrong devices. Sums that go forth start with block me - 1, and sums that go back with me + 1. Add your own block last."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    upper, lower = jnp.split(t, [t.shape[0] // 2])
    up, down = upper @ columns[:, me], lower @ columns[:, me]
    for hop in range(1, n):
        up = jax.lax.ppermute(up, "y", forth) + upper @ columns[:, (me - hop) % n]
        down = jax.lax.ppermute(down, "y", back) + lower @ columns[:, (me + hop) % n]
    return jnp.concatenate([up, down])


@exercise.misconception(of=both_ways_matmul_rs, fails=both_rs_value)
def both_rs_own_part_twice(t, w):
    """Both sums that arrive contain your own part, so your part counts twice. Add your part to only one of the two sums."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    return both_ways_matmul_rs(t, w) + t @ w.reshape(w.shape[0], n, -1)[:, me]


@exercise.misconception(
    of=both_ways_matmul_rs, fails=both_rs_value, breaks="send the opposite device's block only once"
)
def both_rs_middle_twice(t, w):
    """With an even N the opposite device sends its part both ways, so that part counts twice. Send its part one way only."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns, far = w.reshape(w.shape[0], n, -1), n // 2
    right, left = t @ columns[:, (me + far) % n], t @ columns[:, (me - far) % n]
    for hop in range(1, far + 1):
        right, left = jax.lax.ppermute(right, "y", forth), jax.lax.ppermute(left, "y", back)
        right = right + t @ columns[:, (me + far - hop) % n]
        left = left + t @ columns[:, (me - far + hop) % n] if hop < far else left
    return right + left


@exercise.misconception(of=both_ways_matmul_rs, fails=[both_rs_ways, both_rs_same], breaks="only `ppermute`s")
def both_rs_reduced_last(t, w):
    """You multiplied everything and reduced it with psum_scatter. This collective also goes both ways, but only after all matmuls. Build the sum from hops that overlap matmuls."""
    return jax.lax.psum_scatter(t @ w, "y", scatter_dimension=1, tiled=True)


@exercise.misconception(
    of=both_ways_matmul_rs, fails=both_rs_fast, breaks="the step takes at most 1.6 times as long as its matmuls"
)
def both_rs_full_matmul_first(t, w):
    """You computed all blocks, then sent the sums round the ring. No matmul is left to overlap the hops. Compute the next part while the sums travel."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    upper, lower = jnp.split((t @ w).reshape(t.shape[0], n, -1), [t.shape[0] // 2])
    up, down = upper[:, (me - 1) % n], lower[:, (me + 1) % n]
    for hop in range(1, n):
        up = jax.lax.ppermute(up, "y", forth) + upper[:, (me - 1 - hop) % n]
        down = jax.lax.ppermute(down, "y", back) + lower[:, (me + 1 + hop) % n]
    return jnp.concatenate([up, down])


@exercise.misconception(
    of=both_ways_matmul_rs,
    fails=both_rs_fast,
    breaks="by the grader's clock, on eight v5e chips, profile *ideal*: matmuls run beside the hops",
)
def both_rs_late_in_a_loop(t, w):
    """Each round of your loop adds parts and sends those sums, so matmuls and hops take turns. Send the current sums and compute the next parts in one round, or unroll the loop with unroll=True."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    columns = w.reshape(w.shape[0], n, -1)
    upper, lower = jnp.split(t, [t.shape[0] // 2])

    def one(hop, sums):
        up = sums[0] + upper @ columns[:, (me - 1 - hop) % n]
        down = sums[1] + lower @ columns[:, (me + 1 + hop) % n]
        return jax.lax.ppermute(up, "y", forth), jax.lax.ppermute(down, "y", back)

    zeros = [jnp.zeros((len(half), columns.shape[2]), t.dtype) for half in (upper, lower)]
    up, down = jax.lax.fori_loop(0, n - 1, one, tuple(zeros))
    return jnp.concatenate([up + upper @ columns[:, me], down + lower @ columns[:, me]])


@exercise.misconception(
    of=both_ways_matmul_rs,
    fails=both_rs_same,
    breaks="the program has the same hops at real sizes",
)
def both_rs_other_program_when_large(t, w):
    """Your program for large arrays differs from the program that the grader checks for values. The grader times only a program with the same hops and matmuls. Use one program for all sizes."""
    return both_ways_matmul_rs(t, w) if t.shape[0] < 1000 else t @ w[:, : w.shape[1] // 8]


@exercise.misconception(of=both_ways_matmul_rs, fails=both_rs_same, breaks="every matmul runs once")
def both_rs_multiplies_every_block(t, w):
    """In each round you multiply the halves by all of W and keep one block of columns for each half: N times the FLOPs. Select the block first, then multiply."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ways(n)
    half = t.shape[0] // 2
    block = lambda part, which: (part @ w).reshape(part.shape[0], n, -1)[:, which % n]  # noqa: E731
    up, down = block(t[:half], me - 1), block(t[half:], me + 1)
    for hop in range(1, n):
        up = jax.lax.ppermute(up, "y", forth) + block(t[:half], me - 1 - hop)
        down = jax.lax.ppermute(down, "y", back) + block(t[half:], me + 1 + hop)
    return jnp.concatenate([up, down])


@exercise.misconception(of=both_ways_bytes)
def both_bytes_both_directions(B, D, X, Y):
    """You counted the bytes of both directions together. Each direction carries half of these bytes."""
    return (Y - 1) * 2 * (B / X) * (D / Y)


@exercise.misconception(of=both_ways_bytes)
def both_bytes_of_n_hops(B, D, X, Y):
    """You counted N rounds. Each half has reached every device after N - 1 rounds."""
    return (B / X) * D


@exercise.misconception(of=both_ways_bytes)
def both_bytes_of_half_the_rounds(B, D, X, Y):
    """You halved twice. Halves go all the way round, in N - 1 rounds. Only whole shards need half of the rounds."""
    return (Y - 1) * (B / X) * (D / Y) / 2


@exercise.misconception(of=both_ways_bytes)
def both_bytes_of_all_rows(B, D, X, Y):
    """You left out X. Axis x cuts the rows of A, so a device needs only B/X rows."""
    return (Y - 1) * B * (D / Y)


@exercise.misconception(of=both_ways_most_chips)
def both_chips_one_way(chip, N):
    """Your answer is the limit of a one-way ring, with W1. With two directions each direction carries half of a shard, so use W = 2 W1."""
    return 20 * N / link_intensity(chip) / 2


@exercise.misconception(of=both_ways_most_chips)
def both_chips_with_four(chip, N):
    """You halved twice. Half of a shard over W1 takes as long as a whole shard over W: halve the bytes or use W, not both."""
    return 20 * N / link_intensity(chip) * 2


def both(chip, B, D, F, G, Y):
    """Return the seconds of a hop with a whole shard and of a round's matmuls, for each of the two calls."""
    return [hop_and_matmuls(chip, B, D, columns, Y) for columns in (F, G)]


@exercise.misconception(of=both_ways_time_saved)
def both_saved_half_the_hops(Y, **rest):
    """You counted half of every hop as saved. With the wide W half a hop is shorter than the matmuls of a round, so the round takes as long as its matmuls."""
    return sum((Y - 1) * hop / 2 for hop, _ in both(Y=Y, **rest))


@exercise.misconception(of=both_ways_time_saved)
def both_saved_all_exposed(Y, **rest):
    """You counted all exposed time as saved. With the narrow W even half a hop takes longer than the matmuls, so a part of it stays exposed."""
    return sum((Y - 1) * (max(hop, matmuls) - matmuls) for hop, matmuls in both(Y=Y, **rest))


@exercise.misconception(of=both_ways_time_saved)
def both_saved_in_n_rounds(Y, **rest):
    """You counted N rounds with a hop. There are N - 1 rounds with a hop. In the last round nothing travels."""
    return both_ways_time_saved(Y=Y, **rest) * Y / (Y - 1)


exercise.scenario(both_ways_bytes, lambda B, D, X, Y: Scenario(mesh={"x": X, "y": Y}, arrays=[((B, D), ("x", "y"))]))
exercise.scenario(both_ways_most_chips, lambda **_: Scenario(), published=[11, 11.8, 12.8])
exercise.scenario(
    both_ways_time_saved,
    lambda chip, B, D, F, G, Y: Scenario(
        chip=chip, rings=(Y,), mesh={"y": Y}, arrays=[((B, D), (None, "y")), ((D, F), (None, "y")), ((D, G), (None, "y"))],
        branches=tuple(larger(hop=hop / 2, matmuls=matmuls) for hop, matmuls in both(chip, B, D, F, G, Y)),
    ),
)  # fmt: skip


@exercise.misconception(of=both_ways_ag_matmul, fails=both_ag_ring, breaks="also on a ring of eight")
def ag_rings_of_four_at_most(a, w):
    """You go round at most four devices. The ring has as many devices as its axis: jax.lax.axis_size("y")."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))
    rows, half = w.reshape(n, a.shape[1], -1), a.shape[0] // 2
    upper, lower = a[:half], a[half:]
    c_upper, c_lower = upper @ rows[me], lower @ rows[me]
    for hop in range(1, min(n, 4)):
        upper, lower = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", back)
        c_upper += upper @ rows[(me - hop) % n]
        c_lower += lower @ rows[(me + hop) % n]
    return jnp.concatenate([c_upper, c_lower])


@exercise.misconception(of=both_ways_matmul_rs, fails=both_rs_ring, breaks="also on a ring of eight")
def rs_rings_of_four_at_most(t, w):
    """You go round at most four devices. The ring has as many devices as its axis: jax.lax.axis_size("y")."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))
    columns, half, last = w.reshape(w.shape[0], n, -1), t.shape[0] // 2, min(n, 4) - 1
    upper, lower = t[:half], t[half:]
    up, down = upper @ columns[:, (me + last) % n], lower @ columns[:, (me - last) % n]
    for hop in range(last - 1, -1, -1):
        up = jax.lax.ppermute(up, "y", forth) + upper @ columns[:, (me + hop) % n]
        down = jax.lax.ppermute(down, "y", back) + lower @ columns[:, (me - hop) % n]
    return jnp.concatenate([up, down])
