"""# E4 Both ways round

A wire carries data in both directions at the same time, and a one-way ring leaves one direction idle. Let every shard
travel both ways. Then each shard reaches you by the shorter way, after at most half a turn.

```
    what x0 holds      ring of 5                  ring of 4

    start              a . . . .                  a . . .
    round 1            a b . . e   e →, ← b       a b . d   d →, ← b
    round 2            a b c d e   d →, ← c       a b c d   c → or ← c

    e →  came forwards, from the device before x0;  ← b  came backwards
```

**Write** `bidi_all_gather(a)`, a body. The grader wraps it in `shard_map` over mesh axis `x`, with `check_vma=False`.

| | shape | layout |
|---|---|---|
| `a` | float32[I/X, J] | the device's shard of `A[I_X, J]` |
| returns | float32[I, J] | the whole `A` on every device |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| every device holds the whole `A` | | |
| only `ppermute`s, and no shard comes twice | sends at most (N − 1)·V/N bytes | 1800 bytes |
| at most ⌊N/2⌋ `ppermute`s each way round, all to neighbours | | 2 permutes each way |

N may be odd or even. With an even N the shard of the opposite device is equally far both ways. Send it one way, or half
of it each way. Do not send it twice.

**Symbols.** N (X in the questions): devices of the ring. I, J: rows and columns (L: rows in a question). V: bytes of
the whole `A`. W1: one-way bandwidth of a link.

**Small case.** On x=4, a gather of float32[120, 5] takes three permutes of 600 bytes (two forwards, one backwards), in
two rounds instead of three. On x=5 it takes four permutes of 480 bytes (two each way), in two rounds instead of four.

## Going further

**Latency.** A hop takes about 1 µs, even if it carries almost nothing. So for small arrays only the number of rounds
counts. Another scheme halves each shard and sends one half all the way round in each direction. That scheme sends
equally many bytes, but in N − 1 rounds.

**In time.** The grader's clock computes the times of this picture for float32[8192, 512] on 2x4 v5e chips, which form
a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture `k` is work of the core
and `permute` is a hop; times are in us.

```
one way (E1): 333.896 us, 7 permutes, 23% of their time overlapped
        │0        │50       │100       │150      │200      │250      │300
compute k─────   k─        k─       k─        k─       k─        k─       k─
link x+ permute··permute···permute··permute···permute··permute···permute··

both ways: 194.086 us, 7 permutes, 41% of their time overlapped
        │0        │50       │100       │150
compute k─────   k─k─      k─k      k─k─      k─
link x+ permute··permute···permute··permute···
link x-   permute··permute···permute··
```

**In real systems.** The usual formula for an all-gather is V / W, with W the both-way bandwidth of a link. With an even
N, this algorithm takes that time: N/2 rounds, each as long as the hop of a whole shard.

**Read on.** *How To Scale Your Model*, "Sharded Matrices and How to Multiply Them".
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import Failure, expect_close, expect_only, expect_traffic, needed
from grader.hardware import CHIPS, all_gather_time, hop_time, latency_bound_bytes

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 5}, {"x": 2, "y": 3}, {"x": 8}], stars=3)


@exercise.body(
    out_specs=P(),
    hints=[
        "Run two rings at the same time, one each way. After how many rounds have they brought every shard?",
        "Run N // 2 rounds and fill the slots me - hop and me + hop. Which round brings the same shard twice, and for which N?",
        "Send backwards only `if 2 * hop < n`: halfway round an even ring the forward hop has brought the shard already.",
    ],
)
def bidi_all_gather(a):
    """Return the whole A[I, J] from a shard of A[I_X, J]; the mesh axis is 'x'."""
    n, me = jax.lax.axis_size("x"), jax.lax.axis_index("x")
    forth, back = ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))
    out = jnp.zeros((n, *a.shape), a.dtype).at[me].set(a)
    right = left = a
    for hop in range(1, n // 2 + 1):
        right = jax.lax.ppermute(right, "x", forth)
        out = out.at[(me - hop) % n].set(right)
        if 2 * hop < n:
            left = jax.lax.ppermute(left, "x", back)
            out = out.at[(me + hop) % n].set(left)
    return out.reshape(-1, a.shape[1])


call = exercise.call(
    bidi_all_gather, a=normal("I", "J", spec=P("x")), dims={"I": 120, "J": 6}, hidden_dims={"I": 360, "J": 5}
)


@exercise.check(call, points=1, public=True)
def bidi_gather_value(seen):
    """bidi_all_gather: every device holds the whole A"""
    expect_close(seen.out, seen.a)


@exercise.check(call, points=1, public=True, after=bidi_gather_value)
def bidi_gather_traffic(seen):
    """bidi_all_gather: only ppermutes, and no shard comes twice, so each device sends (N - 1) V / N bytes"""
    expect_only(seen, "permute")
    n, shard = seen.mesh["x"], 4 * seen.a.size / seen.mesh["x"]
    # An odd ring has no opposite device, and N / (N - 1) is 4/3 for N = 4.
    near = "only on 2 devices the opposite device's shard, sent twice, makes at least 1.5 times as many bytes"
    expect_traffic(seen, at_most=needed((n - 1) * shard, n * shard, near="" if n == 2 else near))


@exercise.check(call, points=1, after=bidi_gather_value)
def bidi_gather_rounds(seen):
    """bidi_all_gather: at most ⌊N/2⌋ ppermutes each way round, all to neighbours"""
    ways = {1: 0, -1: 0}
    for hop in seen.collectives:
        if hop.shift not in ways:
            raise Failure(f"line {hop.line}: this is not a ppermute to a neighbour", where=f"line {hop.line}")
        if not hop.count.known:
            raise Failure(
                f"line {hop.line}: the grader cannot count the rounds of the loop around this ppermute",
                where=f"line {hop.line}",
            )
        ways[hop.shift] += hop.count.most
    # On two devices both ways lead to the same neighbour, and all hops count as forwards.
    rounds, most = max(ways.values()), 2 if seen.mesh["x"] == 2 else seen.mesh["x"] // 2
    if rounds > most:
        told = f"with N = {seen.mesh['x']} each device hops {ways[1]} times forwards and {ways[-1]} times backwards"
        raise Failure(f"{told}; the budget is {most} each way", expected=most, actual=rounds)


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [4096, 6144, 8192], "J": [6144, 14336], "X": [4, 8, 16]},
    model="both ways round, bandwidth only: ⌊N/2⌋ rounds; each round takes (bytes of a shard) / W1, with W1 the one-way bandwidth of a link",
    hints=[
        "How many rounds are needed if shards travel both ways?",
        "The gather takes ⌊X / 2⌋ rounds. In each round a link carries at most one shard in each direction.",
        "time = ⌊X / 2⌋ rounds · (2 · I · J / X bytes in a shard) / W1",
    ],
)
def bidi_gather_time(chip, I, J, X):
    """`A` is bfloat16[{{ I }}, {{ J }}] on a ring of {{ X }} {{ chip }} chips. How long does `bidi_all_gather` take?"""
    return all_gather_time(2 * I * J, X, chip)


@exercise.number(
    points=0.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "I": [96, 192], "L": [1536, 2304], "J": [256, 384], "X": [8, 12, 16]},
    where=lambda chip, I, L, J, X: 1.3 * latency_bound_bytes(chip) < 2 * L * J / X,
    model="a round takes the longer of two times, 1 us and (bytes of a shard) / W1",
    hints=[
        "How many rounds does `ring_all_gather` have, and how many does `bidi_all_gather` have?",
        "`ring_all_gather` has X − 1 rounds, and `bidi_all_gather` has ⌊X / 2⌋ rounds. For one array, a round takes equally long in both functions.",
        "time saved = the sum over both arrays of (X − 1 − ⌊X / 2⌋) rounds · max(1 us, (2 · rows · J / X bytes in a shard) / W1)",
    ],
)
def bidi_time_saved(chip, I, L, J, X):
    """A program gathers two arrays on a ring of {{ X }} {{ chip }} chips: bfloat16[{{ I }}, {{ J }}] and
    bfloat16[{{ L }}, {{ J }}]. How much time does the program save if it calls `bidi_all_gather` for both arrays instead of
    `ring_all_gather`, which sends one way?"""
    rounds = [max(hop_time(), 2 * rows * J / X / CHIPS[chip].ici) for rows in (I, L)]
    return (X - 1 - X // 2) * sum(rounds)
