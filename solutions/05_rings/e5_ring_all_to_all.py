"""# E5 An all-to-all from hops

In an all-to-all every device has a different chunk for every other device: `A[I_X, J] → A[I, J_X]`. Your block has N
chunks of columns, and chunk c is for device c. On a ring a chunk for the k-th device after you passes k − 1 other
devices. So work like a bus: load all chunks, and at each stop unload the chunk for that device.

```
   "23" is the chunk from x2 for x3. "hop 1 (3)" means that in hop 1 each
   device sends 3 chunks. The chunk for the nearest stop comes first.

                     at x0       at x1       at x2       at x3
   start           01 02 03    12 13 10    23 20 21    30 31 32
   hop 1 (3)       30 31 32    01 02 03    12 13 10    23 20 21    each
   hop 2 (2)       20 21       31 32       02 03       13 10       unloads
   hop 3 (1)       10          21          32          03          its first
```

**Write** `ring_all_to_all(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with `check_vma=False`.

| | shape | layout |
|---|---|---|
| `a` | float32[I/X, J] | a block of `A[I_X, J]` |
| returns | float32[I, J/X] | a block of `A[I, J_X]` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| the result is `A`, with its columns cut over x | | |
| `ppermute` is the only collective | | |
| at most N (N − 1) / 2 chunk-hops | each chunk counts once for every wire it passes | 6 chunk-hops, 43,200 bytes |

Each `ppermute` must be a rotation of the ring. A rotation by k places passes k wires, or N − k wires the other way
round if that is fewer. You may go both ways round.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns. V: bytes of the whole `A`; a chunk has
V/N² bytes. W1: one-way bandwidth of a link.

**Small case.** `A` is float32[120, 240] on x=4. A block is [30, 240]. A chunk is [30, 60], 7200 bytes. The bus carries
3, then 2, then 1 chunk: 6 chunk-hops, 43,200 bytes.

## Going further

Sort the chunks by distance, not by number. Then the chunk to unload is always the first. The all-gather of E1 would
send 3 blocks of 4 chunks, 86,400 bytes, and a device would need only a quarter of the chunks that it receives.

**Both ways round.** If each chunk goes the shorter way round, each device makes only about N²/4 chunk-hops, spread over
both directions of its links. The exchange then takes a quarter of an all-gather's time.

**In time.** The grader's clock computes the times of this picture for float32[8192, 512] on 2x4 v5e chips, which form
a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work of the core
and `P` is a hop; times are in us.

```
from hops: 185.419 us, 7 permutes, 4% of their time overlapped
        │0                │50                │100              │150
compute k─               k             k           k        k      k    k─kk
link x+   permute········ permute······ permute···· permute· P····· P···  P·
```

**In real systems.** On torus networks, all-to-alls bring tokens to their experts. Ulysses attention (exercise J3) also
uses all-to-alls.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them", question 10.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import Failure, expect_close, expect_only
from grader.hardware import all_to_all_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 5}, {"x": 3, "y": 2}, {"x": 8}], stars=3, extension=True)


@exercise.body(
    out_specs=P(None, "x"),
    hints=[
        "After a hop, which of the received chunks is for you? The other chunks travel on.",
        "Load the chunks in the order of the stops: me + 1, me + 2, ... Then the chunk for you is always the first.",
        "bag = chunks[(me + jnp.arange(1, n)) % n]; per hop: bag = ppermute(bag), put bag[0] into slot me - hop, bag = bag[1:]",
    ],
)
def ring_all_to_all(a):
    """Return a block of A[I, J_X] from a block of A[I_X, J]; the mesh axis is 'x'."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    ring = [(d, (d + 1) % n) for d in range(n)]
    chunks = jnp.stack(jnp.split(a, n, axis=1))
    out = jnp.zeros_like(chunks).at[me].set(chunks[me])
    bag = chunks[(me + jnp.arange(1, n)) % n]
    for hop in range(1, n):
        bag = jax.lax.ppermute(bag, "x", ring)
        out = out.at[(me - hop) % n].set(bag[0])
        bag = bag[1:]
    return out.reshape(-1, out.shape[2])


call = exercise.call(
    ring_all_to_all, a=normal("I", "J", spec=P("x")), dims={"I": 120, "J": 240}, hidden_dims={"I": 360, "J": 120}
)


@exercise.check(call, points=1.5, public=True)
def ring_trade_value(seen):
    """ring_all_to_all: the result is A, with its columns cut over x"""
    expect_close(seen.out, seen.a)


@exercise.check(call, points=0.5, public=True, after=ring_trade_value)
def ring_trade_permutes(seen):
    """ring_all_to_all: ppermute is the only collective"""
    expect_only(seen, "permute")


@exercise.check(call, points=1, after=ring_trade_permutes)
def ring_trade_chunk_hops(seen):
    """ring_all_to_all: at most N (N - 1) / 2 chunk-hops from each device"""
    n, hops = seen.mesh["x"], 0
    for move in seen.collectives:
        if move.shift is None or not move.count.known:
            told = (
                "not a rotation of the ring" if move.shift is None else "in a loop whose rounds the grader cannot count"
            )
            raise Failure(f"line {move.line}: this ppermute is {told}", where=f"line {move.line}")
        hops += abs(move.shift) * move.bytes * move.count.most
    chunk_hops, most = hops / (4 * seen.a.size / n**2), n * (n - 1) / 2
    if not chunk_hops <= most:
        told = f"with N = {n} each device makes {chunk_hops:g} chunk-hops; the budget is {most:g}"
        raise Failure(told, expected=most, actual=chunk_hops)


@exercise.number(
    points=0.5,
    unit="MB",
    params={"I": [6144, 12288], "J": [2048, 5120], "X": [4, 8, 16]},
    model="one-way ring; a chunk counts once for every wire it passes; 1 MB is 10^6 bytes",
    hints=[
        "How many wires does a chunk pass on its way?",
        "The chunk for the neighbour passes 1 wire, the next chunk passes 2 wires, and the last chunk passes X − 1 wires. A chunk has 1 / X² of the array's bytes.",
        "bytes that a device sends = (1 + 2 + ... + (X − 1)) · (bytes of a chunk)",
    ],
)
def ring_trade_bytes(I, J, X):
    """`A` is float32[{{ I }}, {{ J }}] over {{ X }} devices. How many MB does each device send in a one-way
    `ring_all_to_all`? Count its own chunks and the chunks that it passes on."""
    return X * (X - 1) / 2 * 4 * I * J / X**2


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [4096, 8192], "J": [6144, 14336], "X": [4, 8, 16]},
    model="one-way ring, bandwidth only: each hop takes its bytes / W1, with W1 the one-way bandwidth of a link",
    hints=[
        "How many bytes does each link carry in one direction?",
        "Each device sends X · (X − 1) / 2 chunks: its own chunks and the chunks that it passes on. A chunk has 2 · I · J / X² bytes.",
        "time = (bytes of X · (X − 1) / 2 chunks) / W1",
    ],
)
def ring_trade_time(chip, I, J, X):
    """`A` is bfloat16[{{ I }}, {{ J }}] on a ring of {{ X }} {{ chip }} chips. How long does the one-way `ring_all_to_all` take?"""
    return all_to_all_time(2 * I * J, X, chip, topology="one_way_ring")
