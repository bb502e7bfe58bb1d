"""# E1 An all-gather from hops

Chips of a ring have wires to their neighbours only. On a ring, collectives repeat one step, the *hop*: each device
sends to the next device, all at the same time. In JAX a hop is `jax.lax.ppermute(a, "x", pairs)` with the pairs
`(d, (d + 1) % N)`. Each device passes on the shard that arrived last, and keeps a copy.

```
           slots of x0   of x1     of x2     of x3      on the wires
   start     a . . .    . b . .   . . c .   . . . d
   hop 1     a . . d    a b . .   . b c .   . . c d     a from x0 to x1, ...
   hop 2     a . c d    a b . d   a b c .   . b c d     d from x0 to x1, ...
   hop 3     a b c d    a b c d   a b c d   a b c d     c from x0 to x1, ...
```

**Write** `ring_all_gather(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with `check_vma=False`.

| | shape | layout |
|---|---|---|
| `a` | float32[I/X, J] | the device's shard of `A[I_X, J]` |
| returns | float32[I, J] | the whole `A` on every device |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| every device holds the whole `A` | | |
| N − 1 `ppermute`s and no other collective | | 3 permutes |
| each hop takes one shard to a neighbour | sends V/N bytes in a hop | 600 bytes |

You may send in either direction round the ring. If no pair names a device as a target, this device receives zeros,
and `ppermute` gives no warning. So a ring without its last pair, (N − 1, 0), gives wrong values and no error.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns. V: bytes of the whole `A`. W1: one-way
bandwidth of a link.

**Small case.** `A` is float32[120, 5] on x=4. A shard has 30 rows, 600 bytes. In three hops a device sends 1800 bytes,
3/4 of `A`. On x=3 there are two hops of 800 bytes.

## Going further

The shard that arrives in hop t comes from the device t places *before* you. So you know the shard's slot.

**In time.** The grader's clock computes the times of this picture for float32[8192, 512] on 2x4 v5e chips, which form
a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work of the core
and `permute` is a hop; times are in us.

```
one way: 333.896 us, 7 permutes, 23% of their time overlapped
        │0        │50       │100       │150      │200      │250      │300
compute k─────   k─        k─       k─        k─       k─        k─       k─
link x+ permute··permute···permute··permute···permute··permute···permute··
```

**In real systems.** `jax.lax.all_gather` and NCCL's ring run this loop. Your own loop can overlap a matmul (exercise
F1).

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them".
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import Failure, expect_close, expect_collectives
from grader.hardware import all_gather_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 5}, {"x": 3, "y": 2}, {"x": 8}], stars=2)


@exercise.body(
    out_specs=P(),
    hints=[
        "Which device's shard do you hold after one hop? And after two hops, if you pass on the shard that you just received?",
        "Keep an array of N slots. Fill your own slot. Then, N - 1 times, hop and fill the slot of the device whose shard arrived.",
        "for hop in range(1, n): a = ppermute(a, 'x', ring); out = out.at[(me - hop) % n].set(a)",
    ],
)
def ring_all_gather(a):
    """Return the whole A[I, J] from a shard of A[I_X, J]; the mesh axis is 'x'."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    ring = [(d, (d + 1) % n) for d in range(n)]
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    for hop in range(1, n):
        a = jax.lax.ppermute(a, "x", ring)
        out = out.at[(me - hop) % n].set(a)
    return out.reshape(-1, a.shape[1])


call = exercise.call(
    ring_all_gather, a=normal("I", "J", spec=P("x")), dims={"I": 120, "J": 5}, hidden_dims={"I": 360, "J": 3}
)


@exercise.check(call, points=1, public=True)
def ring_gather_value(seen):
    """ring_all_gather: every device holds the whole A"""
    expect_close(seen.out, seen.a)


@exercise.check(call, points=0.5, public=True, after=ring_gather_value)
def ring_gather_hops(seen):
    """ring_all_gather: N - 1 ppermutes and no other collective"""
    expect_collectives(seen, permute={"x": seen.mesh["x"] - 1})


@exercise.check(call, points=0.5, after=ring_gather_value)
def ring_gather_traffic(seen):
    """ring_all_gather: each hop takes one shard to a neighbour"""
    shard = 4 * seen.a.size // seen.mesh["x"]
    for hop in seen.collectives:
        if hop.shift not in (1, -1):
            raise Failure(f"line {hop.line}: this is not a ppermute to a neighbour", where=f"line {hop.line}")
        if hop.bytes > shard:
            told = f"line {hop.line}: this hop sends {hop.bytes} bytes, but a shard has {shard} bytes"
            raise Failure(told, where=f"line {hop.line}")


@exercise.number(
    points=0.5,
    unit="MB",
    params={"I": [6144, 12288], "J": [2048, 5120], "X": [4, 8, 16]},
    model="one-way ring; each hop sends one shard; 1 MB is 10^6 bytes",
    hints=[
        "How many hops does a device make, and how many bytes does it send in each hop?",
        "A device makes X − 1 hops. In each hop it sends one shard of 4 · I · J / X bytes.",
        "bytes that a device sends = (X − 1) hops · (bytes of a shard)",
    ],
)
def ring_gather_bytes(I, J, X):
    """`A` is float32[{{ I }}, {{ J }}], sharded `A[I_X, J]` over {{ X }} devices. How many MB does each device send in
    `ring_all_gather`?"""
    return 4 * I * J * (X - 1) / X


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [4096, 8192], "J": [6144, 14336], "X": [4, 8, 16]},
    model="one-way ring, bandwidth only: N - 1 hops; each hop takes (bytes of a shard) / W1, with W1 the one-way bandwidth of a link",
    hints=[
        "Which bandwidth does a hop of a one-way ring use?",
        "Only one direction of each link carries data. So use W1, which is half of W. There are X − 1 hops, each with one shard.",
        "time = (X − 1) hops · (2 · I · J / X bytes in a shard) / W1",
    ],
)
def ring_gather_one_way_time(chip, I, J, X):
    """`A` is bfloat16[{{ I }}, {{ J }}] on a ring of {{ X }} {{ chip }} chips. How long does your one-way
    `ring_all_gather` take?"""
    return all_gather_time(2 * I * J, X, chip, topology="one_way_ring")
