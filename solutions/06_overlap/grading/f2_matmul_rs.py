"""How F2 is checked, what goes wrong in it, and what else is right."""

import jax
import jax.numpy as jnp

from f2_matmul_rs import (
    call,
    exercise,
    hop_and_product,
    matmul_rs,
    matmul_rs_bytes,
    matmul_rs_hides_from,
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
    expect_overlap,
    expect_step_time,
    expect_traffic,
)
from grader.hardware import matmul_time


@exercise.helper
def sizes_of(seen):
    """Rows of a block of T, its columns, and columns of a block of Out."""
    x, y = seen.mesh["x"], seen.mesh["y"]
    return seen.dims["B"] // x, seen.dims["F"] // y, seen.dims["D"] // y


@exercise.helper
def expect_sums_round_the_ring(seen):
    """Each hop takes one block of float32 sums, or of narrower ones, to a neighbour over y, N - 1 times."""
    n, (rows, _, columns) = seen.mesh["y"], sizes_of(seen)
    expect_collectives(seen, permute={"y": n - 1})
    for hop in seen.collectives:
        if hop.shift not in (1, -1):
            raise Failure(f"line {hop.line}: this ppermute does not send to a neighbour", where=f"line {hop.line}")
        if hop.bytes < 2 * rows * columns:
            raise Failure(
                f"line {hop.line}: this ppermute sends {hop.bytes} bytes, less than a block", where=f"line {hop.line}"
            )
    expect_traffic(seen, at_most=(n - 1) * 4 * rows * columns)


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
    """matmul_rs on the ring that is timed: Out equals T @ W in bfloat16"""
    expect_close(seen.out, seen.t @ seen.w)


@exercise.check([small, wide], points=0.25, public=True, after=rs_hops)
def rs_same(small, wide):
    """matmul_rs at real sizes: the same program, with the same hops, and every product once"""
    for seen in (small, wide):
        expect_sums_round_the_ring(seen)
        rows, summed, columns = sizes_of(seen)
        work = 2 * rows * summed * columns * seen.mesh["y"]
        expect_flops(seen, at_least=work, at_most=work)


@exercise.check(wide, points=0.5, public=True, after=rs_same)
def rs_order(seen):
    """matmul_rs: each hop has a product beside it that does not need what the hop brings"""
    expect_beside(seen, "permute", of="product")


@exercise.check(wide, points=0.5, public=True, after=rs_order)
def rs_hidden(seen):
    """matmul_rs in time: nine tenths of the hops are hidden, and the step takes hardly longer than the products"""
    expect_overlap(seen, "permute", at_least=0.9)
    rows, summed, columns = sizes_of(seen)
    products = seen.mesh["y"] * matmul_time(2 * rows * summed * columns, "v5e")
    right, wrong = 1.07 * products, 6 * products  # sums are added beside; at the highest precision
    expect_step_time(seen, at_most=between(right, wrong, at=1.35 * products))


@exercise.check(narrow, points=0.5, after=rs_same)
def rs_memory(narrow):
    """matmul_rs: never the partial sums of all N blocks at once"""
    rows, summed, columns = sizes_of(narrow)
    n = narrow.mesh["y"]
    block, given = rows * columns, rows * summed + summed * n * columns
    right = 2 * (3 * block + given)
    wrong = 2 * ((n + 2) * block + given)  # the partial sums of all blocks
    expect_memory(narrow, at_most=between(right, wrong, styles=1.7), by="clock")  # 1.7: sums in float32


# -- right, in other styles --------------------------------------------------------------------


@exercise.alternative(of=matmul_rs)
def the_other_way_round(t, w):
    """Sends to the device before, cuts W where it is needed, multiplies by einsum, receives before it multiplies."""
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
    """Float32 sums, on the wires too, whatever the operands are; rounded at the end."""
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
    """Begins with zeros and adds in each of N rounds; hops between them, which is late in lines and not in need."""
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
    """A fori_loop whose round sends the sum and computes the next part meanwhile."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def one(hop, total):
        arriving = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
        return arriving + t @ columns[:, (me - 1 - hop) % n]

    return jax.lax.fori_loop(1, n, one, t @ columns[:, (me - 1) % n])


@exercise.alternative(of=matmul_rs)
def scan_over_rolled_columns(t, w):
    """A scan over the blocks of W, rolled so that they come in the order in which sums do."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = jnp.roll(w.reshape(w.shape[0], n, -1).swapaxes(0, 1)[::-1], me, axis=0)

    def one(total, block):
        return jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ block, None

    return jax.lax.scan(one, t @ columns[0], columns[1:])[0]


@exercise.alternative(of=matmul_rs)
def own_part_added_outside(t, w):
    """A loop that adds, then hops, written out by unroll=True; the own part is added after it."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def one(hop, total):
        total = total + t @ columns[:, (me - 1 - hop) % n]
        return jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])

    total = jax.lax.fori_loop(0, n - 1, one, jnp.zeros((t.shape[0], columns.shape[2]), t.dtype), unroll=True)
    return total + t @ columns[:, me]


@exercise.alternative(of=matmul_rs)
def parts_in_a_list(t, w):
    """Names all parts before the first hop: the lines' order is not the order in time."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total, *parts = [t @ columns[:, (me - 1 - hop) % n] for hop in range(n)]
    for part in parts:
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + part
    return total


# -- what goes wrong ---------------------------------------------------------------------------


@exercise.misconception(of=matmul_rs, fails=rs_order)
def rs_product_waits_for_the_sum(t, w):
    """Your product waits for the sum that arrives, so products and hops take turns. It does not need that sum: multiply while it travels, and add when both are there."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        arrived = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
        t, arrived = jax.lax.optimization_barrier((t, arrived))
        total = arrived + t @ columns[:, (me - 1 - hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_order)
def rs_late_in_a_loop(t, w):
    """Each round of your loop adds a product and sends that sum. A round ends when all in it has ended, so product and hop take turns. Send the sum that you have and compute the next part in the same round, or have the loop written out: unroll=True."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def one(hop, total):
        total = total + t @ columns[:, (me - 1 - hop) % n]
        return jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])

    total = jax.lax.fori_loop(0, n - 1, one, jnp.zeros((t.shape[0], columns.shape[2]), t.dtype))
    return total + t @ columns[:, me]


@exercise.misconception(of=matmul_rs, fails=[rs_order, rs_memory])
def rs_full_product_first(t, w):
    """You computed the partial sums of all columns, and sent slices of them round: no product is left beside the hops, and all N blocks are held. Compute one block in each round."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    blocks = (t @ w).reshape(t.shape[0], n, -1)
    total = blocks[:, (me - 1) % n]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + blocks[:, (me - 1 - hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_ring)
def rs_returns_float32(t, w):
    """You add up in float32 and return that. Out has the dtype of T and W: cast the sum back at the end."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)

    def part(hop):
        return jnp.dot(t, columns[:, (me - 1 - hop) % n], preferred_element_type=jnp.float32)

    total = part(0)
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + part(hop)
    return total


@exercise.misconception(of=matmul_rs, fails=rs_hidden)
def rs_widened_operands(t, w):
    """You widen the operands to float32 and multiply at the highest precision: six passes for each product. Multiply bfloat16 and add up in float32, preferred_element_type=jnp.float32."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns, total = w.reshape(w.shape[0], n, -1), 0
    for hop in range(n):
        wide = t.astype(jnp.float32), columns[:, (me - 1 - hop) % n].astype(jnp.float32)
        total += jnp.dot(*wide, precision=jax.lax.Precision.HIGHEST).astype(t.dtype)
        if hop < n - 1:
            total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
    return total


@exercise.misconception(of=matmul_rs, fails=rs_value)
def rs_sum_in_bfloat16(t, w):
    """You rounded the running sum to bfloat16: each hop loses more of it. Add up in the dtype of the operands, or in float32."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = (t @ columns[:, (me - 1) % n]).astype(jnp.bfloat16)
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
        total += (t @ columns[:, (me - 1 - hop) % n]).astype(jnp.bfloat16)
    return total.astype(t.dtype)


@exercise.misconception(of=matmul_rs, fails=rs_value)
def rs_own_block_first(t, w):
    """You began with your own block, so your sums are right and on the wrong devices: the device after you has yours. Your own is the last that you add; count back from there."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - hop) % n]
    return total


@exercise.misconception(form_of=rs_own_block_first)
def rs_own_block_first_to_the_left(t, w):
    """Sends to the device before."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d - 1) % n) for d in range(n)]) + t @ columns[:, (me + hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_value)
def rs_wrong_sign(t, w):
    """Your blocks run the wrong way: what arrives by sending to the next device is of one block earlier, not later, so you add parts of different blocks."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - 1 + hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_value)
def rs_forwards_its_product(t, w):
    """You pass on your own product in place of the sum: each block ends with the parts of two devices. Pass on what you got plus yours."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    part = t @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        arrived = jax.lax.ppermute(part, "y", [(d, (d + 1) % n) for d in range(n)])
        part = t @ columns[:, (me - 1 - hop) % n]
        total = arrived + part
    return total


@exercise.misconception(of=matmul_rs, fails=rs_value)
def rs_own_part_only(t, w):
    """That is your own part of your block: N - 1 other devices have parts of it, too. It is a sum over F, which y cuts."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    return t @ w.reshape(w.shape[0], n, -1)[:, me]


@exercise.misconception(of=matmul_rs, fails=rs_value)
def rs_round_the_other_axis(t, w):
    """You sum over x, whose devices have other rows of Out. The parts of your rows are on the devices along y."""
    n, me, y = jax.lax.axis_size("x"), jax.lax.axis_index("x"), jax.lax.axis_size("y")
    columns = w.reshape(w.shape[0], y, -1)
    total = t @ columns[:, (me - 1) % y]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "x", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - 1 - hop) % y]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_hops)
def rs_in_n_hops(t, w):
    """You begin with your own block and bring the sum home with one hop more, N of them. Start with the block of the device before you; N - 1 hops later it is where it belongs."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, me]
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - hop) % n]
    return jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])


@exercise.misconception(of=matmul_rs, fails=rs_hops)
def rs_reduced_last(t, w):
    """You multiplied everything and reduced it with one collective, for which all products must be done. Build it from hops, with a product beside each."""
    return jax.lax.psum_scatter(t @ w, "y", scatter_dimension=1, tiled=True)


@exercise.misconception(of=matmul_rs, fails=rs_hops)
def rs_summed_then_cut(t, w):
    """You summed all of Out on every device and kept a block of it: twice the bytes of a reduce-scatter, and no product beside them."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    return jax.lax.psum(t @ w, "y").reshape(t.shape[0], n, -1)[:, me]


@exercise.misconception(of=matmul_rs, fails=rs_hops)
def rs_sends_all_blocks(t, w):
    """You send all blocks in every hop, N times too much: only the one that the next device adds to has to go on."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    own = total = t @ w
    for _ in range(n - 1):
        total = own + jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)])
    return total.reshape(t.shape[0], n, -1)[:, me]


@exercise.misconception(of=matmul_rs, fails=rs_same)
def rs_other_program_when_large(t, w):
    """For large arrays you have another program than the one whose values are judged. Only one that is the same, with every hop and every product, is timed."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, (me - 1) % n]
    for hop in range(1, n if t.shape[0] < 1000 else 2):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + t @ columns[:, (me - 1 - hop) % n]
    return total


@exercise.misconception(of=matmul_rs, fails=rs_same)
def rs_multiplies_every_block(t, w):
    """In each round you multiply by all of W and keep one block of columns: N times the FLOPs. Pick the block first, then multiply."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    block = lambda which: (t @ w).reshape(t.shape[0], n, -1)[:, which % n]  # noqa: E731
    total = block(me - 1)
    for hop in range(1, n):
        total = jax.lax.ppermute(total, "y", [(d, (d + 1) % n) for d in range(n)]) + block(me - 1 - hop)
    return total


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_n_hops(B, F, D, X, Y):
    """You counted N hops. A sum starts on the device after its owner, and is home after N - 1."""
    return 4 * (B / X) * D


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_bfloat16(B, F, D, X, Y):
    """You sent bfloat16. What is on the wires here are float32 sums, of four bytes."""
    return (Y - 1) * 2 * (B / X) * (D / Y)


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_all_rows(B, F, D, X, Y):
    """You left x out. A device sums the rows of Out that x gives it, and no others."""
    return (Y - 1) * 4 * B * (D / Y)


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_whole_rows(B, F, D, X, Y):
    """You sent all columns in each hop; a hop takes one block, D/Y columns."""
    return (Y - 1) * 4 * (B / X) * D


@exercise.misconception(of=matmul_rs_bytes)
def rs_bytes_of_the_input(B, F, D, X, Y):
    """You sent blocks of T. What goes round are sums, blocks of Out."""
    return (Y - 1) * 2 * (B / X) * (F / Y)


@exercise.misconception(of=matmul_rs_hides_from)
def rs_hides_half(chip, Y):
    """Half of what it takes: either you sent bfloat16 (the sums are float32, four bytes), or you used both directions of a link (the ring goes one way: W1)."""
    return matmul_rs_hides_from(chip=chip, Y=Y) / 2


@exercise.misconception(of=matmul_rs_hides_from)
def rs_hides_per_device(chip, Y):
    """Those are the columns of T that one device has. F is over all of the ring: Y times as many."""
    return matmul_rs_hides_from(chip=chip, Y=Y) / Y


@exercise.misconception(of=matmul_rs_hides_from)
def rs_hides_with_one_flop(chip, Y):
    """You counted a term of a product as one FLOP. It is two: a multiplication and an addition."""
    return matmul_rs_hides_from(chip=chip, Y=Y) * 2


@exercise.misconception(of=matmul_rs_hides_from)
def rs_hides_in_sum(chip, Y):
    """You compared all hops with all products. There are N products and N - 1 hops, and the first product has no hop beside it: compare one with one."""
    return matmul_rs_hides_from(chip=chip, Y=Y) * (Y - 1) / Y


def both(chip, B, F, G, D, Y):
    """A hop and a product, of each of the two."""
    return [hop_and_product(chip, B, summed, D, Y) for summed in (F, G)]


@exercise.misconception(of=matmul_rs_time_saved)
def rs_saved_all_talk(Y, **rest):
    """You took all of the collective's time as saved. With the smaller F a hop one way takes longer than a product, and that much stays bare."""
    return sum((Y - 1) * hop / 2 for hop, _ in both(Y=Y, **rest))


@exercise.misconception(of=matmul_rs_time_saved)
def rs_saved_all_products(Y, **rest):
    """You let every round take as long as a hop. With the larger F products take longer."""
    return sum((Y - 1) * (hop / 2 + product - hop) for hop, product in both(Y=Y, **rest))


@exercise.misconception(of=matmul_rs_time_saved)
def rs_saved_from_one_way(Y, **rest):
    """You let psum_scatter go one way. It uses both directions of each link, and your ring only one: its hops take twice the collective's time."""
    return sum((Y - 1) * (hop + product - max(hop, product)) for hop, product in both(Y=Y, **rest))


exercise.scenario(
    matmul_rs_bytes,
    lambda B, F, D, X, Y: Scenario(mesh={"x": X, "y": Y}, arrays=[((B, D), ("x", "y")), ((B, F), ("x", "y"))]),
)
exercise.scenario(matmul_rs_hides_from, lambda chip, Y: Scenario(chip=chip, rings=(Y,)), published=[2550, 5100])
exercise.scenario(
    matmul_rs_time_saved,
    lambda chip, B, F, G, D, Y: Scenario(
        chip=chip, rings=(Y,), mesh={"y": Y}, arrays=[((B, F), (None, "y")), ((B, G), (None, "y")), ((B, D), (None, "y"))],
        branches=tuple(larger(hop=hop, product=product) for hop, product in both(chip, B, F, G, D, Y)),
    ),
)  # fmt: skip
