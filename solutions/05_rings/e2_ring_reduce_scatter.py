"""# E2 A reduce-scatter from hops

Every device holds a partial sum of one array, `A[I, J]{U_X}`. Each device needs its own rows of the total, `A[I_X, J]`.
Cut the rows into N chunks; device i owns chunk i. For each chunk a *running sum* travels to the chunk's owner, and each
device on the way adds its part. This is the all-gather of exercise E1 in reverse.

```
   four devices: the chunk that each holds, and (its number of terms)

              x0      x1      x2      x3
   start     3 (1)   0 (1)   1 (1)   2 (1)    chunk 0 starts on x1
   hop 1     2 (2)   3 (2)   0 (2)   1 (2)
   hop 2     1 (3)   2 (3)   3 (3)   0 (3)
   hop 3     0 (4)   1 (4)   2 (4)   3 (4)    N - 1 hops later it is on x0
```

**Write** `ring_reduce_scatter(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with
`check_vma=False`.

| | shape | meaning |
|---|---|---|
| `a` | float32[I, J] | the device's whole partial sum; you cut its rows into N chunks |
| returns | float32[I/N, J] | on device i: the sum of all devices' parts of chunk i |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| device i holds chunk i of the sum | | |
| N − 1 `ppermute`s and no other collective | | 3 permutes |
| each hop takes one chunk to a neighbour | sends V/N bytes in a hop | 5760 bytes |

You may send in either direction round the ring.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns. V: bytes of a block [I, J]. W1:
one-way bandwidth of a link. `{U_X}`: partial sums over x.

**Small case.** Each device on x=4 has a float32 block of [120, 48]. A chunk is [30, 48], 5760 bytes. Each device sends
three chunks: 17,280 bytes, as many as in an all-gather of an array of this size.

## Going further

Read the picture down a column: device i holds chunk i − 1, then i − 2, and at last i − N. Counted modulo N, that is
chunk i. If chunk i starts on device i instead of device i + 1, the sums are right but on the wrong devices.

**In time.** The grader's clock computes the times of this picture for blocks of float32[8192, 512] on 2x4 v5e chips,
which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work
of the core and `permute` is a hop; times are in us.

```
one way: 385.046 us, 7 permutes, 0% of their time overlapped
        │0                │100             │200              │300
compute k        k         k        k─        k        k─        k         k
link x+  permute· permute·· permute·  permute· permute·  permute· permute··
```

**In real systems.** ZeRO and FSDP reduce-scatter gradients. A sequence-parallel layer reduce-scatters the result of
its second matmul.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them" (why an all-gather and a
reduce-scatter are transposes of each other).
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import Failure, expect_close, expect_collectives
from grader.hardware import hop_time, latency_bound_bytes, reduce_scatter_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 5}, {"x": 3, "y": 2}, {"x": 8}], stars=3)


@exercise.body(
    out_specs=P("x"),
    hints=[
        "A sum travels, not a shard. What do you do with the sum before you send it on?",
        "Start with your chunk for the device before you. Then, N - 1 times, send the sum on. When the sum for another chunk arrives, add your own part of that chunk to it.",
        "acc = chunks[(me - 1) % n]; for hop in range(1, n): acc = ppermute(acc, 'x', ring) + chunks[(me - 1 - hop) % n]",
    ],
)
def ring_reduce_scatter(a):
    """Return this device's rows of the sum, [I_X, J], from a partial sum [I, J] on every device of 'x'."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    ring = [(d, (d + 1) % n) for d in range(n)]
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[(me - 1) % n]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", ring) + chunks[(me - 1 - hop) % n]
    return acc


# The partial sum of device i is the i-th block of columns, so that one array serves every size of ring.
call = exercise.call(
    ring_reduce_scatter,
    a=normal("I", "J", spec=P(None, "x")),
    dims={"I": 120, "J": 240},
    hidden_dims={"I": 360, "J": 120},
)


@exercise.check(call, points=1.5, public=True)
def ring_scatter_value(seen):
    """ring_reduce_scatter: device i holds chunk i of the sum"""
    parts = seen.a.reshape(seen.a.shape[0], seen.mesh["x"], -1)
    expect_close(seen.out, parts.sum(1))


@exercise.check(call, points=0.5, public=True, after=ring_scatter_value)
def ring_scatter_hops(seen):
    """ring_reduce_scatter: N - 1 ppermutes and no other collective"""
    expect_collectives(seen, permute={"x": seen.mesh["x"] - 1})


@exercise.check(call, points=1, after=ring_scatter_value)
def ring_scatter_traffic(seen):
    """ring_reduce_scatter: each hop takes one chunk to a neighbour"""
    chunk = 4 * seen.a.size // seen.mesh["x"] ** 2
    for hop in seen.collectives:
        if hop.shift not in (1, -1):
            raise Failure(f"line {hop.line}: this is not a ppermute to a neighbour", where=f"line {hop.line}")
        if hop.bytes > chunk:
            told = f"line {hop.line}: this hop sends {hop.bytes} bytes, but a chunk has {chunk} bytes"
            raise Failure(told, where=f"line {hop.line}")


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [4096, 8192], "J": [6144, 14336], "X": [4, 8, 16]},
    model="one-way ring, bandwidth only: N - 1 hops; each hop takes (bytes of a chunk) / W1, with W1 the one-way bandwidth of a link",
    hints=[
        "How many bytes does one hop carry?",
        "A hop carries one chunk, which has 1 / X of the bytes of a partial sum. There are X − 1 hops, all in one direction.",
        "time = (X − 1) hops · (2 · I · J / X bytes in a chunk) / W1",
    ],
)
def ring_scatter_one_way_time(chip, I, J, X):
    """Each of {{ X }} {{ chip }} chips on a ring holds a partial sum of bfloat16[{{ I }}, {{ J }}]. How long does your
    one-way `ring_reduce_scatter` take?"""
    return reduce_scatter_time(2 * I * J, X, chip, topology="one_way_ring")


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [128, 192], "L": [640, 1408, 1536], "J": [384, 512], "X": [8, 16]},
    where=lambda chip, I, L, J, X: 1.4 < 2 * L * J / X / latency_bound_bytes(chip) < 2.8,
    model="one-way ring: N - 1 hops; each hop takes the longer of two times, 1 us and (bytes of a chunk) / W1",
    hints=[
        "For each array: does a hop take 1 us, or longer?",
        "Compare 1 us with (bytes of a chunk) / W1. All hops of one array take equally long.",
        "time = the sum over both arrays of (X − 1) hops · max(1 us, (2 · rows · J / X bytes in a chunk) / W1)",
    ],
)
def ring_scatter_small_time(chip, I, L, J, X):
    """On a ring of {{ X }} {{ chip }} chips, your `ring_reduce_scatter` runs twice: first for partial sums of
    bfloat16[{{ I }}, {{ J }}], then for partial sums of bfloat16[{{ L }}, {{ J }}]. How long do the two runs take
    together?"""
    chunks = [reduce_scatter_time(2 * rows * J, X, chip, topology="one_way_ring") for rows in (I, L)]
    return sum(max((X - 1) * hop_time(), bytes) for bytes in chunks)
