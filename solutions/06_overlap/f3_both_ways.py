"""# F3 Collective matmuls, both ways round

The rings of exercises F1 and F2 leave one direction of every link idle. If a hop takes longer than a matmul, this costs
time. Send half of each block one way round and half the other way, so that a hop takes half the time.

```
   y = 4, on device y1; U_j and L_j are the upper and lower rows of A_j

            on the core        to y2, from y0   to y0, from y2
   round 0  U_1·W_1, L_1·W_1   U_1, U_0         L_1, L_2
   round 1  U_0·W_0, L_2·W_2   U_0, U_3         L_2, L_3
   round 2  U_3·W_3, L_3·W_3   U_3, U_2         L_3, L_0
   round 3  U_2·W_2, L_0·W_0
```

**Write** two bodies for `shard_map`, with `check_vma=False`. The ring is mesh axis `y`. All arrays are float32.

| | blocks of the arguments | returns |
|---|---|---|
| `both_ways_ag_matmul(a, w)`: `A[B_X, D_Y] · W[D, F_Y]` | [B/X, D/Y], [D, F/Y] | C[B/X, F/Y] |
| `both_ways_matmul_rs(t, w)`: `T[B_X, F_Y] · W[F_Y, D]` | [B/X, F/Y], [F/Y, D] | Out[B/X, D/Y] |

**What is checked**, for each body

| check | rule, per device | small case |
|---|---|---|
| C equals A @ W (Out equals T @ W), also on a ring of eight | | |
| only `ppermute`s, N − 1 blocks in all, to neighbours over y | sends (N − 1)·V/N bytes | 1080 bytes |
| a device sends in one direction at most ⌊N/2⌋ blocks, or N − 1 times the larger half of a block | | 540 bytes with halves |
| the program has the same hops at real sizes as at the value check's small sizes, and every matmul runs once | 2·(B/X)·D·(F/Y) FLOPs | |
| by the grader's clock, on eight v5e chips, profile *ideal*: matmuls run beside the hops | the step takes at most 1.6 times as long as its matmuls | |

In `both_ways_ag_matmul` no hop may wait for a matmul. The numbers of rows and columns may be odd: then the halves
differ by one row or column. You may halve rows or columns, or send whole blocks as in exercise E4 (with an even N, send
the opposite device's block only once). You may split a matmul into parts.

**Symbols.** N (Y in the questions): devices of the ring. B, D, F, G: dimensions. V: bytes of N blocks [B/X, D/Y]. W1:
one-way bandwidth of a link. C: FLOP/s of a chip.

**Small case.** Take arrays of float32[12, 60] and [60, 84] on x=2, y=4. A shard is [6, 15], 360 bytes. Each of three
rounds sends half a shard, 180 bytes, each way: 540 bytes each way, 1080 bytes in all.

## Going further

In `both_ways_matmul_rs` the halves of each sum travel in opposite directions. If all sums go one way round, the step
takes 1.9 times as long as its matmuls.

**In time.** The grader's clock computes the times of this picture for float32[8192, 32768] · [32768, 40960] on 2x4
v5e chips, which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture
`D` is a matmul, `k` is other work of the core and `P` is a hop; times are in us.

```
one way (F1): 22,622.462 us, 7 permutes, 58% of their time overlapped
        │0             │5,000         │10,000        │15,000        │20,000
compute D════    D════    D════    D════    D════    D════    D════    D════
link y+ permute··permute··permute··permute··permute··permute··permute··

both ways: 14,689.754 us, 14 permutes, 100% of their time overlapped
        │0             │5,000         │10,000
compute kD══D═D══D═D══D══D═D══D══D═D══D═D══D══D═D══k
link y+   P··· P··· P····P···· P··· P··· P····
link y-     P···· P··· P··· P····P···· P··· P···

halves forwards: 22,323.268 us, 14 permutes, 63% of their time overlapped
        │0             │5,000         │10,000        │15,000        │20,000
compute kD══D═D══D══  D══ D══  D══ D══  D═  D══  D═  D══  D═  D══  D═  D══k
link y+ P····P···P····P···P····P···P····P···P····P···P····P···P····P···
```

**In real systems.** XLA's windowed einsum has a form that goes both ways. Two matmuls of half a shard are less
efficient than one matmul of a whole shard: each of the two reads and writes all of `C`, or has half the rows. Compare
the memory traffic of halved rows and halved columns.

**Read on.** *How To Scale Your Model*, "Programming TPUs in JAX", worked problems (the bidirectional one).
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import CHIPS, link_intensity, matmul_time

exercise = Exercise(meshes=[{"x": 2, "y": 4}, {"x": 2, "y": 3}], stars=3, extension=True)


@exercise.body(
    out_specs=P("x", "y"),
    hints=[
        "Run two rings of F1 at the same time, each with half of the shard. Which rows of W does each half need in hop t?",
        "Split your rows of A. In each hop the upper half goes to the next device and needs block me - hop of W's rows. The lower half goes back and needs block me + hop.",
        "upper = jax.lax.ppermute(upper, 'y', forth); lower = jax.lax.ppermute(lower, 'y', back); at the end join the two results",
    ],
)
def both_ways_ag_matmul(a, w):
    """Return the block of C[B_X, F_Y], C = A W, from blocks of A[B_X, D_Y] and W[D, F_Y]; the ring is mesh axis 'y'."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))
    rows = w.reshape(n, a.shape[1], -1)
    half = a.shape[0] // 2
    upper, lower = a[:half], a[half:]
    c_upper, c_lower = upper @ rows[me], lower @ rows[me]
    for hop in range(1, n):
        upper, lower = jax.lax.ppermute(upper, "y", forth), jax.lax.ppermute(lower, "y", back)
        c_upper += upper @ rows[(me - hop) % n]
        c_lower += lower @ rows[(me + hop) % n]
    return jnp.concatenate([c_upper, c_lower])


@exercise.body(
    out_specs=P("x", "y"),
    hints=[
        "Run two rings of F2 at the same time, each with one half of every block's sum. With which block does a device start in each direction?",
        "Split your rows of T. Sums of the upper half start with block me - 1 and go forth. Sums of the lower half start with block me + 1 and go back.",
        "up = jax.lax.ppermute(up, 'y', forth) + upper @ columns[:, (me - 1 - hop) % n]; down likewise with back and me + 1 + hop",
    ],
)
def both_ways_matmul_rs(t, w):
    """Return the block of Out[B_X, D_Y], Out = T W, from blocks of T[B_X, F_Y] and W[F_Y, D]; the ring is mesh axis
    'y'."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    forth, back = ([(d, (d + step) % n) for d in range(n)] for step in (1, -1))
    columns = w.reshape(w.shape[0], n, -1)
    half = t.shape[0] // 2
    upper, lower = t[:half], t[half:]
    up, down = upper @ columns[:, (me - 1) % n], lower @ columns[:, (me + 1) % n]
    for hop in range(1, n):
        up = jax.lax.ppermute(up, "y", forth) + upper @ columns[:, (me - 1 - hop) % n]
        down = jax.lax.ppermute(down, "y", back) + lower @ columns[:, (me + 1 + hop) % n]
    return jnp.concatenate([up, down])


HALVES = "half of a block goes each way; a hop takes its bytes / W1, with W1 the one-way bandwidth of a link; the matmuls of a round take FLOPs / C"


@exercise.number(
    points=0.25,
    unit="MB",
    params={"B": [4096, 6144, 8192], "D": [5120, 10240], "X": [4, 8], "Y": [4, 16]},
    model="half of each shard goes each way; 1 MB is 10^6 bytes",
    hints=[
        "Which part of a shard does one direction carry?",
        "One direction carries half of a shard in each of Y − 1 hops.",
        "bytes in one direction = (Y − 1) hops · 2 bytes · (B / X) · (D / Y) / 2",
    ],
)
def both_ways_bytes(B, D, X, Y):
    """`A` is bfloat16[{{ B }}, {{ D }}], sharded `A[B_X, D_Y]` with X={{ X }} and Y={{ Y }}. In `both_ways_ag_matmul`, how many MB does each
    device send in *one* direction of its link?"""
    return (Y - 1) * 2 * (B / X) * (D / Y) / 2


@exercise.number(
    points=0.25,
    unit="",
    params={"chip": ["v4p", "v5p"], "N": [512, 1024, 2048, 4096, 6144]},
    model=HALVES + "; not rounded",
    hints=[
        "Write the time of a hop of half a shard, and the time of a round's matmuls. What cancels?",
        "A hop takes half of 2 · (B / X) · (D / Y) bytes / W1. The matmuls take 2 · (B / X) · (D / Y) · (F / Y) FLOPs / C.",
        "Y = F divided by C / W, with W = 2 · W1",
    ],
)
def both_ways_most_chips(chip, N):
    """`W[D, F]` has F = {{ 20 * N }} columns, in bfloat16 on {{ chip }}. No hop may take longer than the matmuls of a round. How
    many chips may the ring of `both_ways_ag_matmul` have at most?"""
    return 20 * N / link_intensity(chip)


def hop_and_matmuls(chip, B, D, F, Y):
    """Return the seconds of a hop with a whole shard, and of the matmuls of a round."""
    return 2 * B * (D / Y) / CHIPS[chip].ici, matmul_time(2 * B * (D / Y) * (F / Y), chip)


@exercise.number(
    points=0.5, unit="us", model=HALVES,
    where=lambda chip, F, G, Y, **_: 0.55 < F / (Y * link_intensity(chip)) < 0.65 and 1.1 < G / (Y * link_intensity(chip)) < 1.2,
    params={"chip": ["v4p", "v5p"], "B": [4096, 6144], "D": [8192, 12288], "F": [6144, 7168, 12288, 14336],
            "G": [11776, 14336, 23552, 28672], "Y": [4, 8]},
    hints=[
        "How much time does a round save, for each W?",
        "Both functions end with the same last matmul. A round takes as long as the longer of its hop and its matmuls. With two directions the hop takes half the time.",
        "For each W, a call saves (Y − 1) · (max(hop, matmuls) − max(hop / 2, matmuls)). Add the savings of the two calls.",
    ],
)  # fmt: skip
def both_ways_time_saved(chip, B, D, F, G, Y):
    """Two matmuls run in bfloat16 on a ring of {{ Y }} {{ chip }} chips: A[{{ B }}, {{ D }}] · W[{{ D }}, {{ F }}], then
    A[{{ B }}, {{ D }}] · W[{{ D }}, {{ G }}]. Axis y cuts D in A. How much time do two calls of
    `both_ways_ag_matmul` save, compared with two calls of `ag_matmul`, which go one way?"""
    times = [hop_and_matmuls(chip, B, D, columns, Y) for columns in (F, G)]
    return sum((Y - 1) * (max(hop, matmuls) - max(hop / 2, matmuls)) for hop, matmuls in times)
