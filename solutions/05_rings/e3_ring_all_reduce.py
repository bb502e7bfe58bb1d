"""# E3 An all-reduce from hops

Every device holds a partial sum of `A[I, J]`, and all of them need the total. The ring all-reduce cuts the array into N
chunks, which go round the ring twice. A reduce-scatter leaves each device with one finished chunk. An all-gather then
brings the chunks to every device.

```
   three devices: the chunk and (its number of terms); then finished chunks

            reduce-scatter               all-gather
           start   hop 1   hop 2        hop 3    hop 4
   x0      2 (1)   1 (2)   0 (3)        0 . 2    0 1 2
   x1      0 (1)   2 (2)   1 (3)        0 1 .    0 1 2
   x2      1 (1)   0 (2)   2 (3)        . 1 2    0 1 2
```

**Write** `ring_all_reduce(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with `check_vma=False`.

| | shape | meaning |
|---|---|---|
| `a` | float32[I, J] | the device's whole partial sum |
| returns | float32[I, J] | the total, on every device |

**What is checked**

| check | rule | small case |
|---|---|---|
| every device holds the sum | | |
| 2 (N − 1) `ppermute`s and no other collective | | 6 permutes |
| what each device sends to neighbours | at most 2·(N − 1)·V/N bytes | 34,560 bytes |
| what all devices send to neighbours | exactly 2·(N − 1)·V bytes | 138,240 bytes |

You may send in either direction round the ring. In the second phase *put* chunks into their slots and do not add them:
they are finished.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns. V: bytes of a block [I, J]. W1:
one-way bandwidth of a link. `{U_X}`: partial sums over x.

**Small case.** A float32 block of [120, 48] has 23,040 bytes. On x=4 each device sends 6 chunks of 5760 bytes, 34,560
bytes in all. The four devices together send 138,240 bytes.

## Going further

**Whole arrays round the ring.** You could also send whole arrays round the ring, and add them up as they arrive. In the
small case each device then sends 3 · 23,040 = 69,120 bytes. On x=8 a device sends 161,280 bytes as whole arrays, or
40,320 bytes as chunks. With more devices the bytes that a device sends approach 2·V for chunks, but grow without limit
for whole arrays. Every all-reduce on a ring sends at least 2·(N − 1)·V/N bytes per device.

**In time.** The grader's clock computes the times of this picture for blocks of float32[8192, 512] on 2x4 v5e chips,
which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work
of the core and `P` is a hop; times are in us.

```
one way: 718.942 us, 14 permutes, 11% of their time overlapped
        │0                 │200               │400               │600
compute k    k    k    k    k    k     k    k──  k   k    k   k   k    k   k
link x+ P···· P··· P··· P··· P··· P····P····P····P···P····P···P···P····P···
```

**In real systems.** Data-parallel training exchanges gradients like this (Baidu's ring, Horovod, NCCL).

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them"; Patarasuk and Yuan, "Bandwidth
optimal all-reduce algorithms for clusters of workstations".
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import Failure, expect_close, expect_collectives, expect_traffic, needed
from grader.hardware import all_reduce_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 5}, {"x": 3, "y": 2}, {"x": 8}], stars=2)


@exercise.body(
    out_specs=P(),
    hints=[
        "Which two collectives, one after the other, make an all-reduce? You have built both.",
        "Phase 1 has N - 1 hops, and in each of them a device sends one running sum. In phase 2, pass the finished chunks on and put each chunk into its slot.",
        "After phase 1 device i holds chunk i: out = zeros.at[me].set(acc). Then continue as in the all-gather.",
    ],
)
def ring_all_reduce(a):
    """Return the sum [I, J] on every device, from a partial sum [I, J] on every device of 'x'."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    ring = [(d, (d + 1) % n) for d in range(n)]
    chunks = a.reshape(n, -1, a.shape[1])
    acc = chunks[(me - 1) % n]
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", ring) + chunks[(me - 1 - hop) % n]
    out = jnp.zeros_like(chunks).at[me].set(acc)
    for hop in range(1, n):
        acc = jax.lax.ppermute(acc, "x", ring)
        out = out.at[(me - hop) % n].set(acc)
    return out.reshape(a.shape)


# The partial sum of device i is the i-th block of columns, so that one array serves every size of ring.
call = exercise.call(
    ring_all_reduce,
    a=normal("I", "J", spec=P(None, "x")),
    dims={"I": 120, "J": 240},
    hidden_dims={"I": 360, "J": 120},
)


@exercise.check(call, points=1, public=True)
def ring_reduce_value(seen):
    """ring_all_reduce: every device holds the sum"""
    parts = seen.a.reshape(seen.a.shape[0], seen.mesh["x"], -1)
    expect_close(seen.out, parts.sum(1))


@exercise.check(call, points=0.5, public=True, after=ring_reduce_value)
def ring_reduce_hops(seen):
    """ring_all_reduce: 2 (N - 1) ppermutes and no other collective"""
    expect_collectives(seen, permute={"x": 2 * (seen.mesh["x"] - 1)})


@exercise.check(call, points=0.5, after=ring_reduce_value)
def ring_reduce_traffic(seen):
    """ring_all_reduce: hops go to neighbours; each device sends 2 (N - 1) V / N bytes, all devices together 2 (N - 1) V bytes"""
    n = seen.mesh["x"]
    block = 4 * seen.a.size / n
    expect_traffic(seen, at_most=needed(2 * (n - 1) * block / n, (n - 1) * block))  # wrong: hops of whole arrays
    for hop in seen.collectives:
        if hop.shift not in (1, -1):
            raise Failure(f"line {hop.line}: this is not a ppermute to a neighbour", where=f"line {hop.line}")
    total = n * sum(hop.bytes * hop.count for hop in seen.collectives)  # all n devices send equally many bytes
    if total != 2 * (n - 1) * block:
        raise Failure(
            "the ring does not send 2 (N - 1) V bytes in total", expected=2 * (n - 1) * block, actual=str(total)
        )


@exercise.number(
    points=0.5,
    unit="MB",
    params={"I": [6144, 12288], "J": [2048, 5120], "X": [4, 8, 16]},
    model="one-way ring; each hop sends one chunk; the answer counts the bytes of all devices; 1 MB is 10^6 bytes",
    hints=[
        "How many hops does one device make in the two phases?",
        "A device makes X − 1 hops in the reduce-scatter and X − 1 hops in the all-gather. Each hop sends 1 / X of the array. All X devices send.",
        "bytes of all devices = 2 · (X − 1) · (bytes of the whole float32 array)",
    ],
)
def ring_reduce_total_bytes(I, J, X):
    """{{ X }} devices hold partial sums of float32[{{ I }}, {{ J }}]. How many MB do all devices
    together send in `ring_all_reduce`?"""
    return 2 * (X - 1) * 4 * I * J


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [4096, 8192], "J": [6144, 14336], "X": [4, 8, 16]},
    model="one-way ring, bandwidth only: each hop takes its bytes / W1, with W1 the one-way bandwidth of a link",
    hints=[
        "Which two collectives follow each other?",
        "An all-reduce is a reduce-scatter and an all-gather. Each of them makes X − 1 hops one way round the ring, and each hop sends one chunk.",
        "time = 2 · (X − 1) hops · (2 · I · J / X bytes in a chunk) / W1",
    ],
)
def ring_reduce_one_way_time(chip, I, J, X):
    """Each of {{ X }} {{ chip }} chips on a ring holds a gradient, bfloat16[{{ I }}, {{ J }}]`{U_X}`. How long does your
    one-way `ring_all_reduce` take?"""
    return all_reduce_time(2 * I * J, X, chip, topology="one_way_ring")
