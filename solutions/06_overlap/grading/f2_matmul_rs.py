"""Checks, misconceptions and alternatives of F2."""

import jax
import jax.numpy as jnp

from f2_matmul_rs import (
    call,
    exercise,
    hop_and_matmul,
    matmul_rs,
    matmul_rs_bytes,
    matmul_rs_overlaps_from,
    matmul_rs_time_saved,
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
    expect_only,
    expect_overlap,
    expect_step_time,
    needed,
)
from grader.hardware import matmul_time


@exercise.helper
def sizes_of(seen):
    """Return three numbers: the rows and the columns of a block of T, and the columns of a block of Out."""
    x, y = seen.mesh["x"], seen.mesh["y"]
    return seen.dims["B"] // x, seen.dims["F"] // y, seen.dims["D"] // y


@exercise.helper
def expect_hops_of_one_block(seen):
    """Require only ppermutes, each with one block of bfloat16 or float32 sums."""
    expect_only(seen, "permute")
    rows, _, columns = sizes_of(seen)
    least = 2 * rows * columns
    for hop in seen.collectives:
        if not least <= hop.bytes <= 2 * least:
            raise Failure(
                f"line {hop.line}: this ppermute sends {hop.bytes} bytes, but a block has {least} bytes, or {2 * least} bytes in float32",
                where=f"line {hop.line}",
            )


@exercise.helper
def expect_sums_round_the_ring(seen):
    """Require N - 1 hops to a neighbour over y, each with one block of bfloat16 or float32 sums.

    A block's sum has parts of N devices, so fewer than N - 1 hops of one block leave parts out.
    """
    expect_collectives(seen, permute={"y": seen.mesh["y"] - 1})
    for hop in seen.collectives:
        if hop.shift not in (1, -1):
            raise Failure(f"line {hop.line}: this ppermute does not send to a neighbour", where=f"line {hop.line}")
    expect_hops_of_one_block(seen)


@exercise.check(call, points=1, public=True)
def rs_value(seen):
    """matmul_rs: Out equals T @ W"""
    expect_close(seen.out, seen.t @ seen.w)


@exercise.check(call, points=0.5, public=True, after=rs_value)
def rs_hops(seen):
    """matmul_rs: N - 1 ppermutes over y to a neighbour, one block each, no other collective"""
    expect_sums_round_the_ring(seen)


@exercise.check(small, points=0.25, public=True, after=rs_value)
def rs_ring(seen):
    """matmul_rs on a ring of eight: Out equals T @ W in bfloat16"""
    expect_close(seen.out, seen.t @ seen.w)


@exercise.check([small, wide], points=0.25, public=True, after=rs_value)
def rs_same(small, wide):
    """matmul_rs at real sizes: the program has the same hops as in the value check, and every matmul runs once"""
    for seen in (small, wide):
        expect_hops_of_one_block(seen)
        rows, summed, columns = sizes_of(seen)
        n = seen.mesh["y"]
        work = 2 * rows * summed * columns * n
        expect_flops(seen, at_least=work, at_most=needed(work, n * work))  # n: each round multiplies every block


@exercise.check(wide, points=0.5, public=True, after=rs_same)
def rs_order(seen):
    """matmul_rs: each hop overlaps a matmul that does not need the hop's data"""
    expect_beside(seen, "permute", of="matmul")


@exercise.check(wide, points=0.5, public=True, after=[rs_same, rs_order])
def rs_overlap(seen):
    """matmul_rs in time: overlap saves at least 75 % of what it can, and the step takes at most 1.35 times as long as its matmuls"""
    rows, summed, columns = sizes_of(seen)
    matmuls = seen.mesh["y"] * matmul_time(2 * rows * summed * columns, "v5e")
    right, wrong = (
        1.07 * matmuls,
        6 * matmuls,
    )  # right: the core also adds sums; wrong: matmuls at the highest precision
    expect_step_time(seen, at_most=between(right, wrong, at=1.35 * matmuls))
    expect_overlap(seen, "permute", at_least=0.75, work=right)


@exercise.check(narrow, points=0.5, after=rs_same)
def rs_memory(narrow):
    """matmul_rs: no device holds the partial sums of all N blocks at the same time"""
    rows, summed, columns = sizes_of(narrow)
    n = narrow.mesh["y"]
    block, given = rows * columns, rows * summed + summed * n * columns
    right = 2 * (3 * block + given)
    wrong = 2 * ((n + 2) * block + given)  # the partial sums of all blocks
    expect_memory(narrow, at_most=between(right, wrong, styles=1.7), by="clock")  # 1.7: room for sums in float32


# -- right, in other styles --------------------------------------------------------------------


@exercise.alternative(of=matmul_rs)
def the_other_way_round(t, w):
    """Send to the previous device, cut W at each matmul, multiply by einsum, and receive before the matmul."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    width = w.shape[1] // n

    def part(j):
        return jnp.einsum("bf,fd->bd", t, jax.lax.dynamic_slice_in_dim(w, j % n * width, width, axis=1))

    total = part(me + 1)
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d - 1) % n) for d in range(n)]) + part(me + 1 + hop)
    return total


@exercise.alternative(of=matmul_rs)
def sums_in_float32(t, w):
    """Send float32 sums for every dtype of operands, and round them at the end."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def part(j):
        return jnp.dot(t, columns[:, j % n], preferred_element_type=jnp.float32)

    total = part(me - 1)
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + part(me - 1 - hop)
    return total.astype(t.dtype)


@exercise.alternative(of=matmul_rs)
def starts_with_zeros(t, w):
    """Begin with zeros, and add a part in each of N rounds. In the code each hop comes before a matmul, but this matmul does not wait for the hop."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    width = w.shape[1] // n
    total = jnp.zeros((t.shape[0], width), t.dtype)
    for hop in range(n):
        total += t @ jax.lax.dynamic_slice_in_dim(w, (me - 1 - hop) % n * width, width, axis=1)
        if hop < n - 1:
            total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
    return total


@exercise.alternative(of=matmul_rs)
def loop_that_hops_then_adds(t, w):
    """Use a fori_loop whose round sends the sum and computes the next part meanwhile."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def one(hop, total):
        arriving = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
        return arriving + t @ columns[:, (me - 1 - hop) % n]

    return jax.lax.fori_loop(1, n, one, t @ columns[:, (me - 1) % n])


@exercise.alternative(of=matmul_rs)
def scan_over_rolled_columns(t, w):
    """Use a scan over the blocks of W, rolled into the order in which sums arrive."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = jnp.roll(w.reshape(w.shape[0], n, -1).swapaxes(0, 1)[::-1], me, axis=0)

    def one(total, block):
        return jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ block, None

    return jax.lax.scan(one, t @ columns[0], columns[1:])[0]


@exercise.alternative(of=matmul_rs)
def own_part_added_outside(t, w):
    """Use a loop that adds, then hops, with unroll=True. Add the device's own part after the loop."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def one(hop, total):
        total = total + t @ columns[:, (me - 1 - hop) % n]
        return jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])

    total = jax.lax.fori_loop(0, n - 1, one, jnp.zeros((t.shape[0], columns.shape[2]), t.dtype), unroll=True)
    return total + t @ columns[:, me]


@exercise.alternative(of=matmul_rs)
def parts_in_a_list(t, w):
    """Write all matmuls before the first hop. The order of lines does not set the order in time."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total, *parts = [t @ columns[:, (me - 1 - hop) % n] for hop in range(n)]
    for part in parts:
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + part
    return total


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(
    of=matmul_rs, fails=rs_order, breaks="each hop overlaps a matmul that does not need the hop's data"
)
def rs_matmul_waits_for_the_sum(t, w):
    """Your matmul waits for the sum that arrives, so matmuls and hops take turns. The matmul does not need that sum. Multiply while the sum travels, then add the result to the sum that has arrived."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        arrived = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
        t, arrived = jax.lax.optimization_barrier((t, arrived))
        total = arrived + t @ columns[:, (me - 1 - hop) % n]
    return total


@exercise.misconception(
    of=matmul_rs,
    fails=rs_order,
    breaks=["each hop overlaps a matmul", "overlap saves at least 75 % of the time that it can save"],
)
def rs_late_in_a_loop(t, w):
    """Each round of your loop adds a part and sends that sum. A round ends after all its operations, so matmul and hop take turns. Send the current sum and compute the next part in one round, or unroll the loop with unroll=True."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def one(hop, total):
        total = total + t @ columns[:, (me - 1 - hop) % n]
        return jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])

    total = jax.lax.fori_loop(0, n - 1, one, jnp.zeros((t.shape[0], columns.shape[2]), t.dtype))
    return total + t @ columns[:, me]


@exercise.misconception(
    of=matmul_rs,
    fails=[rs_order, rs_memory],
    breaks="no device holds the partial sums of all N blocks at the same time",
)
def rs_full_matmul_first(t, w):
    """You computed the partial sums of all columns, then sent slices of these sums round the ring. No matmul is left to overlap the hops, and each device holds all N blocks. Compute one block in each round."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks = (t @ w).reshape(t.shape[0], n, -1)
    total = blocks[:, (me - 1) % n]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + blocks[:, (me - 1 - hop) % n]
    return total


@exercise.misconception(
    of=matmul_rs, fails=rs_ring, breaks=["also in bfloat16 on a ring of eight", "`Out` has the dtype of `T` and `W`"]
)
def rs_returns_float32(t, w):
    """You add in float32 and return float32. Out has the dtype of T and W: cast the sum back at the end."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def part(hop):
        return jnp.dot(t, columns[:, (me - 1 - hop) % n], preferred_element_type=jnp.float32)

    total = part(0)
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + part(hop)
    return total


@exercise.misconception(
    of=matmul_rs, fails=rs_overlap, breaks="the step takes at most 1.35 times as long as its matmuls"
)
def rs_widened_operands(t, w):
    """You widen the operands to float32 and multiply at the highest precision: six passes per matmul. Multiply in bfloat16 and add in float32, with preferred_element_type=jnp.float32."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns, total = w.reshape(w.shape[0], n, -1), 0
    for hop in range(n):
        wide = t.astype(jnp.float32), columns[:, (me - 1 - hop) % n].astype(jnp.float32)
        total += jnp.dot(*wide, precision=jax.lax.Precision.HIGHEST).astype(t.dtype)
        if hop < n - 1:
            total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
    return total


@exercise.misconception(of=matmul_rs, fails=rs_value, breaks="Out equals T @ W")
def rs_sum_in_bfloat16(t, w):
    """You rounded the running sum to bfloat16, so each hop loses precision. Add in the dtype of the operands, or in float32."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = (t @ columns[:, (me - 1) % n]).astype(jnp.bfloat16)
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
        total += (t @ columns[:, (me - 1 - hop) % n]).astype(jnp.bfloat16)
    return total.astype(t.dtype)


@exercise.misconception(of=matmul_rs, fails=rs_value, breaks="Out equals T @ W")
def rs_own_block_first(t, w):
    """You started with your own block, so your sums are right but on the wrong devices. A neighbour has your sum. Choose your first block so that you add your own block last."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - hop) % n]
    return total


@exercise.misconception(form_of=rs_own_block_first)
def rs_own_block_first_to_the_left(t, w):
    """Send to the previous device."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d - 1) % n) for d in range(n)]) + t @ columns[:, (me + hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_value, breaks="Out equals T @ W")
def rs_wrong_sign(t, w):
    """Your blocks run in the wrong direction, so you add parts of different blocks. If you send to the next device, the number of the block goes down by one with each hop."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - 1 + hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_value)
def rs_forwards_its_matmul(t, w):
    """You send only your own part, so each block ends with the parts of two devices. Send the received sum plus your part."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    part = t @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        arrived = jax.lax.ppermute(part, "y", [(d, (d + 1) % n) for d in range(n)])
        part = t @ columns[:, (me - 1 - hop) % n]
        total = arrived + part
    return total


@exercise.misconception(form_of=rs_wrong_sign)
def rs_wrong_sign_to_the_left(t, w):
    """Send to the previous device, and count down."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d - 1) % n) for d in range(n)]) + t @ columns[:, (me - 1 - hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_value, breaks="Out equals T @ W")
def rs_own_parts_again(t, w):
    """You send your own part of a block in each hop, not the sum that arrived. Add your part to the sum that arrived, and send the result."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for _ in range(1, n):
        part = t @ columns[:, (me + 1) % n]
        total = total + jax.lax.ppermute(part, "y", [(d, (d + 1) % n) for d in range(n)])
    return total


@exercise.misconception(form_of=rs_own_parts_again)
def rs_all_own_parts(t, w):
    """Send the part of another block in each hop."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for far in range(1, n):
        part = t @ columns[:, (me + far) % n]
        total = total + jax.lax.ppermute(part, "y", [(d, (d + 1) % n) for d in range(n)])
    return total


@exercise.misconception(of=matmul_rs, fails=rs_value)
def rs_own_part_only(t, w):
    """You returned your own part of your block. N - 1 other devices have parts of this block too. The block is a sum over F, which y cuts."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    return t @ w.reshape(w.shape[0], n, -1)[:, me]


@exercise.misconception(of=matmul_rs, fails=rs_value)
def rs_round_the_other_axis(t, w):
    """You sum over x, and the devices along x have different rows of Out. The devices along y have the parts of your rows."""
    n, me, y = jax.lax.axis_size("x"), jax.lax.axis_index("x"), jax.lax.axis_size("y")
    columns = w.reshape(w.shape[0], y, -1)
    total = t @ columns[:, (me - 1) % y]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "x", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - 1 - hop) % y]
    return total


@exercise.misconception(of=matmul_rs, fails=[rs_hops, rs_order], breaks="N − 1 `ppermute`s over y")
def rs_in_n_hops(t, w):
    """You start with your own block, so its sum needs N hops to come back to you. Start with the block of the device before you: that sum reaches its owner after N - 1 hops."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - hop) % n]
    return jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])


@exercise.misconception(of=matmul_rs, fails=rs_hops, breaks="N − 1 `ppermute`s over y")
def rs_sends_zeros(t, w):
    """Your first hop sends zeros. Start with a part: then N - 1 hops bring each sum to its owner."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = jnp.zeros((t.shape[0], columns.shape[2]), t.dtype)
    for hop in range(1, n + 1):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=[rs_hops, rs_same], breaks="no other collective")
def rs_reduced_last(t, w):
    """You multiplied everything and reduced it with one collective, which waits for all matmuls. Build the sum from hops that overlap matmuls."""
    return jax.lax.psum_scatter(t @ w, "y", scatter_dimension=1, tiled=True)


@exercise.misconception(of=matmul_rs, fails=[rs_hops, rs_same], breaks="no other collective")
def rs_summed_then_cut(t, w):
    """You summed all of Out on every device and kept a block of it. That sends twice the bytes of a reduce-scatter and overlaps no matmul."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    return jax.lax.psum(t @ w, "y").reshape(t.shape[0], n, -1)[:, me]


@exercise.misconception(
    of=matmul_rs,
    fails=[rs_hops, rs_same],
    breaks=["one block each", "at most (N − 1)·4·(B/X)·(D/Y) bytes"],
)
def rs_sends_all_blocks(t, w):
    """You send all blocks in every hop: N times the bytes. Send only the block that the next device adds to."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    own = total = t @ w
    for _ in range(n - 1):
        total = own + jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
    return total.reshape(t.shape[0], n, -1)[:, me]


@exercise.misconception(of=matmul_rs, fails=[rs_hops, rs_memory], breaks="to a neighbour")
def rs_over_the_heads(t, w):
    """You send each part straight to its owner, past the devices on the way. Send one running sum from neighbour to neighbour: each device adds its part."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for far in range(1, n):
        part = t @ columns[:, (me + far) % n]
        total = total + jax.lax.ppermute(part, "y", [(d, (d + far) % n) for d in range(n)])
    return total


@exercise.misconception(
    of=matmul_rs,
    fails=rs_same,
    breaks="the program has the same hops at real sizes",
)
def rs_other_program_when_large(t, w):
    """Your program for large arrays differs from the program that the grader checks for values. The grader times only a program with the same hops and matmuls. Use one program for all sizes."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, (me - 1) % n]
    for hop in range(1, n if t.shape[0] < 1000 else 2):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - 1 - hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_same, breaks="every matmul runs once")
def rs_multiplies_every_block(t, w):
    """In each round you multiply by all of W and keep one block of columns: N times the FLOPs. Select the block first, then multiply."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    block = lambda which: (t @ w).reshape(t.shape[0], n, -1)[:, which % n]  # noqa: E731
    total = block(me - 1)
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + block(me - 1 - hop)
    return total


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_n_hops(B, F, D, X, Y):
    """You counted N hops. A sum starts on the device after its owner and reaches the owner after N - 1 hops."""
    return 4 * (B / X) * D


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_bfloat16(B, F, D, X, Y):
    """You counted two bytes per element, as in bfloat16. The wires carry float32 sums: four bytes per element."""
    return (Y - 1) * 2 * (B / X) * (D / Y)


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_all_rows(B, F, D, X, Y):
    """You left out X. Axis x cuts the rows of Out, so a device sums only B/X rows."""
    return (Y - 1) * 4 * B * (D / Y)


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_whole_rows(B, F, D, X, Y):
    """You counted all columns in each hop. A hop sends one block: D/Y columns."""
    return (Y - 1) * 4 * (B / X) * D


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_the_input(B, F, D, X, Y):
    """You counted blocks of T. The ring carries running sums: blocks of Out."""
    return (Y - 1) * 2 * (B / X) * (F / Y)


@exercise.misconception(of=matmul_rs_overlaps_from)
def rs_overlaps_half(chip, Y):
    """Your answer is half of the right answer. Either you counted two bytes per number, or you used both directions of a link. The sums are float32, four bytes per number. The ring goes one way: use W1."""
    return matmul_rs_overlaps_from(chip=chip, Y=Y) / 2


@exercise.misconception(of=matmul_rs_overlaps_from)
def rs_overlaps_per_device(chip, Y):
    """You counted the columns of T on one device. F counts the columns of the whole ring: Y times as many."""
    return matmul_rs_overlaps_from(chip=chip, Y=Y) / Y


@exercise.misconception(of=matmul_rs_overlaps_from)
def rs_overlaps_with_one_flop(chip, Y):
    """You counted one FLOP per term of a matmul. Each term takes two FLOPs: a multiplication and an addition."""
    return matmul_rs_overlaps_from(chip=chip, Y=Y) * 2


@exercise.misconception(of=matmul_rs_overlaps_from)
def rs_overlaps_in_sum(chip, Y):
    """You compared all hops with all matmuls. There are N matmuls and N - 1 hops, and no hop overlaps the first matmul: compare one hop with one matmul."""
    return matmul_rs_overlaps_from(chip=chip, Y=Y) * (Y - 1) / Y


def both(chip, B, F, G, D, Y):
    """Return the seconds of one hop and of one block matmul, for each of the two matmuls."""
    return [hop_and_matmul(chip, B, summed, D, Y) for summed in (F, G)]


@exercise.misconception(of=matmul_rs_time_saved)
def rs_saved_all_talk(Y, **rest):
    """You counted the collective's whole time as saved. With F columns of T a one-way hop takes longer than a block matmul, and the difference stays exposed."""
    return sum((Y - 1) * hop / 2 for hop, _ in both(Y=Y, **rest))


@exercise.misconception(of=matmul_rs_time_saved)
def rs_saved_all_matmuls(Y, **rest):
    """You gave every round the time of a hop. With G columns of T a block matmul takes longer than a hop."""
    return sum((Y - 1) * (hop / 2 + matmul - hop) for hop, matmul in both(Y=Y, **rest))


@exercise.misconception(of=matmul_rs_time_saved)
def rs_saved_from_one_way(Y, **rest):
    """You let psum_scatter send one way. It uses both directions of each link. Your ring uses one direction, so its hops take twice the collective's time."""
    return sum((Y - 1) * (hop + matmul - max(hop, matmul)) for hop, matmul in both(Y=Y, **rest))


exercise.scenario(
    matmul_rs_bytes,
    lambda B, F, D, X, Y: Scenario(mesh={"x": X, "y": Y}, arrays=[((B, D), ("x", "y")), ((B, F), ("x", "y"))]),
)
exercise.scenario(matmul_rs_overlaps_from, lambda chip, Y: Scenario(chip=chip, rings=(Y,)), published=[2550, 5100])
exercise.scenario(
    matmul_rs_time_saved,
    lambda chip, B, F, G, D, Y: Scenario(
        chip=chip, rings=(Y,), mesh={"y": Y}, arrays=[((B, F), (None, "y")), ((B, G), (None, "y")), ((B, D), (None, "y"))],
        branches=tuple(larger(hop=hop, matmul=matmul) for hop, matmul in both(chip, B, F, G, D, Y)),
    ),
)  # fmt: skip
