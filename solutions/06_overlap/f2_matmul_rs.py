"""# F2 Overlap a reduce-scatter with its matmul

`T[B_X, F_Y] · W[F_Y, D] → Out[B_X, D_Y]` sums over F, which y cuts. So each device has a partial sum of all columns of
`Out`, and needs the whole sum of its own columns. The running sum of exercise E2 needs one block of columns at a time:
compute the next block while the sum travels.

```
   y = 4, on device y1; P_j = T · W_j is its part of block j

               on the core     on the wires
   round 0     S = P_0         nothing
   round 1     P_3, S += P_3   P_0 leaves for y2, S for block 3 comes
   round 2     P_2, S += P_2   old S leaves for y2, S for block 2 comes
   round 3     P_1, S += P_1   old S leaves for y2, S for block 1 comes
```

**Write** `matmul_rs(t, w)`, a body for `shard_map`, with `check_vma=False`. The ring is mesh axis `y`.

| | shape of the block | whole array |
|---|---|---|
| `t` | [B/X, F/Y] | `P("x", "y")` |
| `w` | [F/Y, D] | `P("y", None)` |
| returns | [B/X, D/Y] | `P("x", "y")` |

All arrays are float32, or all are bfloat16; `Out` has the dtype of `T` and `W`.

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| Out equals T @ W, also in bfloat16 on a ring of eight | | |
| N − 1 `ppermute`s over y to a neighbour, one block each, no other collective | sends at most (N − 1)·4·(B/X)·(D/Y) bytes | 3 permutes, 900 bytes |
| the program has the same hops at real sizes as at the value check's small sizes, and every matmul runs once | 2·(B/X)·(F/Y)·D FLOPs | |
| each hop overlaps a matmul that does not need the hop's data | | |
| by the grader's clock, on eight v5e chips, profile *ideal* | overlap saves at least 75 % of the time that it can save; the step takes at most 1.35 times as long as its matmuls | |
| no device holds the partial sums of all N blocks at the same time | | |

A hop carries sums, so it may wait for matmuls. Sums of bfloat16 operands may be bfloat16 or float32.

**Symbols.** N (Y in the questions): devices of the ring. B, F, D, G: dimensions. V: bytes of a device's rows of `Out`.
W1, W: one-way, both-way bandwidth of a link. C: FLOP/s.

**Small case.** The arrays are float32[10, 84] and [84, 60] on x=2, y=4. A block is [5, 15], 300 bytes. A device sends
900 bytes in three hops. It computes four matmuls [5, 21] · [21, 15].

## Going further

**In time.** The grader's clock computes the times of this picture for bfloat16[8192, 65536] · [65536, 16384] on 2x4
v5e chips, which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture
`D` is a matmul, `k` is other work of the core and `P` is a hop; times are in us.

```
right: 12,021.875 us, 7 permutes, 100% of their time overlapped
        │0                  │5,000             │10,000
compute D════D═════k═════k═════k═════k═════k═════k════k
link y+         P··   P··   P··   P··   P··   P··   P··

loop, adds first: 16,545.813 us, 7 permutes, 0% of their time overlapped
        │0
compute k═════   D════   ………D════   D════k
link y+       P··     P··………     P··

all matmuls first: 17,323.294 us, 7 permutes, 0% of their time overlapped
        │0                  │5,000             │10,000             │15,000
compute matmul══════════════════════════════════════k  k  k   k  k   k  k  k
link y+                                             P·· P· P··P·· P··P·· P··
```

**Loops.** A round of `fori_loop` or `scan` ends when all operations in it have ended (exercise F1). The round "hop,
then add a matmul" overlaps, because the matmul does not need the sum that arrives. The round "add a matmul, then hop"
does not overlap, because its hop needs the result of its matmul. If JAX unrolls the loop, both kinds of rounds give the
first picture.

**In float32.** Partial sums in bfloat16 lose bits with each hop. Sums in float32 send twice the bytes. The grader
accepts both dtypes.

**In real systems.** This is the second matmul of a tensor-parallel MLP with sequence parallelism. F1 is the first
matmul of this MLP.

**Read on.** *How To Scale Your Model*, "Programming TPUs in JAX", worked problems.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.hardware import CHIPS, link_intensity, matmul_time, reduce_scatter_time

exercise = Exercise(meshes=[{"x": 2, "y": 4}, {"x": 2, "y": 3}], stars=3)


@exercise.body(
    out_specs=P("x", "y"),
    hints=[
        "A device computes its part of its own block last. Which block of columns does it compute first?",
        "Start with the block of the device before you. In each of N - 1 rounds: send the sum, compute your part of "
        "the block whose sum is coming, and add it to the sum that has arrived.",
        "arriving = jax.lax.ppermute(total, 'y', ring); total = arriving + t @ columns[:, (me - 1 - hop) % n]",
    ],
)
def matmul_rs(t, w):
    """Return the block of Out[B_X, D_Y], Out = T W, from blocks of T[B_X, F_Y] and W[F_Y, D]; the ring is mesh axis
    'y'."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    ring = [(d, (d + 1) % n) for d in range(n)]
    columns = w.reshape(w.shape[0], n, -1)
    total = t @ columns[:, (me - 1) % n]
    for hop in range(1, n):
        arriving = jax.lax.ppermute(total, "y", ring)
        total = arriving + t @ columns[:, (me - 1 - hop) % n]
    return total


@exercise.helper
def arrays(dtype):
    """Return the arguments T and W, with a given dtype."""
    return {"t": normal("B", "F", spec=P("x", "y"), dtype=dtype), "w": normal("F", "D", spec=P("y", None), dtype=dtype)}


call = exercise.call(
    matmul_rs, **arrays("float32"), dims={"B": 10, "F": 84, "D": 60}, hidden_dims={"B": 14, "F": 60, "D": 108}
)
# A ring of eight: small arrays for values, real sizes for time and memory.
RING = [{"x": 1, "y": 8}]
small = exercise.call(
    matmul_rs, **arrays("bfloat16"), meshes=RING,
    dims={"B": 11, "F": 8 * 17, "D": 8 * 13}, hidden_dims={"B": 13, "F": 8 * 11, "D": 8 * 17},
)  # fmt: skip
wide = exercise.timing(
    small, on="v5e:2x4",
    dims={"B": 8192, "F": 65536, "D": 16384}, hidden_dims={"B": 12288, "F": 65536, "D": 8192},
)  # fmt: skip
narrow = exercise.timing(
    small, on="v5e:2x4",
    dims={"B": 16384, "F": 8192, "D": 53248}, hidden_dims={"B": 12288, "F": 8192, "D": 49152},
)  # fmt: skip


@exercise.number(
    points=0.5,
    unit="MB",
    params={"B": [4096, 6144], "F": [14336, 28672], "D": [5120, 10240], "X": [2, 8], "Y": [4, 16]},
    model="one-way ring; each hop sends one block; 1 MB is 10^6 bytes",
    hints=[
        "Which array travels, and in which dtype?",
        "The running sum of one block of the result travels: (B / X) rows, (D / Y) columns, float32. It makes Y − 1 hops.",
        "bytes that a device sends = (Y − 1) hops · 4 bytes · (B / X) rows · (D / Y) columns",
    ],
)
def matmul_rs_bytes(B, F, D, X, Y):
    """`T` is bfloat16[{{ B }}, {{ F }}] and `W` is bfloat16[{{ F }}, {{ D }}], with X={{ X }} and Y={{ Y }}. The running sums are float32.
    How many MB does each device send in `matmul_rs`?"""
    return (Y - 1) * 4 * (B / X) * (D / Y)


HOPS = "a hop takes (bytes of a block) / W1, with W1 the one-way bandwidth of a link; a matmul takes FLOPs / C; hops and matmuls have no latency"


@exercise.number(
    points=0.5, unit="", params={"chip": ["v4p", "v5p"], "Y": [4, 8, 12, 16]}, model=HOPS,
    hints=["Write a hop's time and a matmul's time with B, D, F, X and Y. What cancels?", "A hop takes 4·(B/X)(D/Y)/W1, and a matmul takes 2·(B/X)(F/Y)(D/Y)/C.", "F = 2 · Y · C / W1: the sums have twice the bytes of bfloat16"],
)  # fmt: skip
def matmul_rs_overlaps_from(chip, Y):
    """`matmul_rs` on a ring of {{ Y }} {{ chip }} chips multiplies bfloat16 arrays and sends running sums in float32. No hop may take longer than
    a matmul. How many columns F must the whole `T[B, F]` have at least? Count the columns of all devices."""
    return 2 * Y * CHIPS[chip].bf16 / CHIPS[chip].ici


def hop_and_matmul(chip, B, F, D, Y):
    """Return the seconds of one hop of bfloat16 sums, and of one matmul."""
    return 2 * B * (D / Y) / CHIPS[chip].ici, matmul_time(2 * B * (F / Y) * (D / Y), chip)


@exercise.number(
    points=0.5, unit="us",
    model=HOPS + "; jax.lax.psum_scatter sends both ways round and takes (Y - 1) / Y · V / W",
    where=lambda chip, F, G, Y, **_: 1.2 < F / (Y * link_intensity(chip)) < 1.4 and 3.1 < G / (Y * link_intensity(chip)) < 3.6,
    params={"chip": ["v4p", "v5p"], "B": [4096, 6144], "F": [13312, 16384, 26624, 32768], "G": [32768, 40960, 65536, 81920],
            "D": [8192, 12288], "Y": [4, 8]},
    hints=[
        "How long does one matmul take with psum_scatter, and how long with `matmul_rs`?",
        "With psum_scatter a whole matmul takes as long as Y block matmuls, and then the collective takes (Y − 1) / Y · V / W. A call of `matmul_rs` takes (Y − 1) · max(hop, block matmul), plus one block matmul.",
        "For each of the two matmuls subtract the time with `matmul_rs` from the time with psum_scatter. Then add the two differences.",
    ],
)  # fmt: skip
def matmul_rs_time_saved(chip, B, F, G, D, Y):
    """Two matmuls run on a ring of {{ Y }} {{ chip }} chips, all in bfloat16: T[{{ B }}, {{ F }}] · W[{{ F }}, {{ D }}], then
    T[{{ B }}, {{ G }}] · W[{{ G }}, {{ D }}]. Axis y cuts T's columns. How much time do two calls of `matmul_rs` save, compared with two
    whole matmuls that each end in `jax.lax.psum_scatter`?"""
    saved = 0
    for hop, matmul in (hop_and_matmul(chip, B, summed, D, Y) for summed in (F, G)):
        one_by_one = Y * matmul + reduce_scatter_time(2 * B * D, Y, chip, model="exact")
        saved += one_by_one - ((Y - 1) * max(hop, matmul) + matmul)
    return saved
