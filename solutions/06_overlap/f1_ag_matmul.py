"""# F1 Overlap a gather with its matmul

`A[B_X, D_Y] · W[D, F_Y] → C[B_X, F_Y]` sums over D, and y cuts D in `A`. So a device needs all shards of its rows of
`A`. But `C` is a sum, and each term needs one shard: multiply one shard while the next shard
travels.

```
   y = 4, on device y1; W_j are the rows of W that belong to shard A_j

               on the core        on the wires
   round 0     C  = A_1 · W_1     A_1 leaves for y2, A_0 comes from y0
   round 1     C += A_0 · W_0     A_0 leaves for y2, A_3 comes from y0
   round 2     C += A_3 · W_3     A_3 leaves for y2, A_2 comes from y0
   round 3     C += A_2 · W_2     nothing: the last shard goes nowhere
```

**Write** `ag_matmul(a, w)`, a body for `shard_map`, with `check_vma=False`. The ring is mesh axis `y`.

| | shape of the block | whole array |
|---|---|---|
| `a` | [B/X, D/Y] | `P("x", "y")` |
| `w` | [D, F/Y] | `P(None, "y")` |
| returns | [B/X, F/Y] | `P("x", "y")` |

All arrays are float32, or all are bfloat16; `C` has the dtype of `A` and `W`.

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| C equals A @ W, also in bfloat16 on a ring of eight | | |
| N − 1 `ppermute`s over y to a neighbour, one shard each, no other collective | sends (N − 1)·V/N bytes | 3 permutes, 900 bytes |
| the program has the same hops at real sizes as at the value check's small sizes, and every matmul runs once | 2·(B/X)·D·(F/Y) FLOPs | |
| no hop waits for a matmul, and each hop overlaps a matmul | a hop can overlap a matmul that does not need the hop's data | |
| by the grader's clock, on eight v5e chips, profile *ideal* | overlap saves at least 80 % of the time that it can save; the step takes at most 1.2 times as long as its matmuls | |
| a device holds at most four shards of `A` at the same time, in addition to `W` and `C` | the grader checks this with F/Y ≤ 2048 | |

**Symbols.** N (Y in the questions): devices of the ring. B, D, F, G: dimensions. V: bytes of a device's rows of `A`.
W1: one-way bandwidth of a link. C: FLOP/s of a chip.

**Small case.** The arrays are float32[10, 60] and [60, 84] on x=2, y=4. A shard is [5, 15], 300 bytes. A device sends
900 bytes in three hops. It computes four matmuls [5, 15] · [15, 21].

## Going further

**In time.** The grader's clock computes the times of this picture for bfloat16[8192, 16384] · [16384, 53248] on 2x4
v5e chips, which form a ring. It uses the profile *ideal*: every collective can run beside the core. In the picture
`D` is a matmul and `P` is a hop; times are in us.

```
right: 9,069.576 us, 7 permutes, 100% of their time overlapped
        │0                      │5,000
compute D════D═════D════D═════D════D════D═════D════
link y+   P··  P···  P··  P··· P···  P··  P···

each hop waits: 14,289.154 us, 7 permutes, 0% of their time overlapped
        │0                      │5,000                  │10,000
compute D════    D════    D════    D════    D════    D════    D════    D════
link y+      P···     P···     P···     P···     P···     P···     P···

loop, receives first: 14,289.154 us, 7 permutes, 0% of their time overlapped
        │0
compute D════    D════    D════………    D════
link y+      P···     P···     ………P···
```

**The pictures.** All three programs have the same hops and matmuls. In the second picture each hop waits for the matmul
of the shard that it sends. The program of the third picture is a `fori_loop` whose rounds receive, then multiply.

**Loops.** JAX unrolls a Python loop. In an unrolled loop the order of lines does not matter: each operation that does
not need a hop can run beside that hop. So an unrolled "receive, then multiply" runs as in the first picture. A round of
`fori_loop` or `scan` ends when all operations in it have ended, and nothing of the next round begins before that. The
TPU compiler also keeps the rounds apart with its default options (libtpu 0.0.42.1, on v5e, v6e, v5p and 7x). So a loop
overlaps its hops only if, *in one round*, the matmul needs no data of the hop and the hop needs no result of the
matmul. A loop that receives, then multiplies, gives right values and sends the right bytes, but all its hops are
exposed. With `unroll=True` JAX unrolls such a loop. Compiler options can move operations from one round to another.
With `xla_tpu_enable_ici_ag_pipelining=true` the v5e compiler gathers the next layer of an FSDP loop beside the current
round's matmul.

**When it pays.** This ring uses one direction of each link; `all_gather` uses both. If a hop takes more than twice as
long as a matmul, gathering first is faster, and the ring only saves memory. Exercise F3 uses both directions.

**What v5e does with `a @ w`.** The compiler for v5e does not gather first. Under `jit`, with these sizes and shardings
and no options, this compiler (libtpu 0.0.42.1) writes a ring itself. Its loop goes both ways and multiplies two shards
at a time:

```
                    on the core                on the wires
before the loop     nothing                    one hop one way
round 1             2 shards, 2,860 us         a hop each way
                    2 shards, 3,213 us         a hop each way
round 2             as round 1                 as round 1
```

The times are the compiler's own counts of cycles, divided by 1.5 GHz. By these counts the matmuls of the compiler's own ring
take 12,146 us in all. The matmuls of the ring that you write here take 9,605 us
(`shardlings chip f1 --on v5e:2x4 --solution`).

**In real systems.** This is a "collective matmul". XLA calls it a "windowed einsum". An
exercise of HighPerfLLMs2024 (session 4) cuts the columns of the activations and the columns of the weights.

**Read on.** *How To Scale Your Model*, "Programming TPUs in JAX", worked problems.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.hardware import CHIPS, link_intensity, matmul_time

exercise = Exercise(meshes=[{"x": 2, "y": 4}, {"x": 2, "y": 3}], stars=3)


@exercise.body(
    out_specs=P("x", "y"),
    hints=[
        "Which rows of W does the matmul of a shard of A need? The shard that you hold after t hops comes from the device t places before you.",
        "In each of N rounds, send the shard that you hold (but not in the last round), multiply it by its rows of W, and add. Only then take the shard that has arrived.",
        "arriving = jax.lax.ppermute(a, 'y', ring); c += a @ rows[(me - hop) % n]; a = arriving",
    ],
)
def ag_matmul(a, w):
    """Return the block of C[B_X, F_Y], C = A W, from blocks of A[B_X, D_Y] and W[D, F_Y]; the ring is mesh axis 'y'."""
    n, me = jax.lax.axis_size("y"), jax.lax.axis_index("y")
    ring = [(d, (d + 1) % n) for d in range(n)]
    rows = w.reshape(n, a.shape[1], -1)
    c = 0
    for hop in range(n):
        arriving = jax.lax.ppermute(a, "y", ring) if hop < n - 1 else None
        c += a @ rows[(me - hop) % n]
        a = arriving
    return c


@exercise.helper
def arrays(dtype):
    """Return the arguments A and W, with a given dtype."""
    return {"a": normal("B", "D", spec=P("x", "y"), dtype=dtype), "w": normal("D", "F", spec=P(None, "y"), dtype=dtype)}


call = exercise.call(
    ag_matmul, **arrays("float32"), dims={"B": 10, "D": 60, "F": 84}, hidden_dims={"B": 14, "D": 108, "F": 60}
)
# A ring of eight: small arrays for values, real sizes for time and memory.
RING = [{"x": 1, "y": 8}]
small = exercise.call(
    ag_matmul, **arrays("bfloat16"), meshes=RING,
    dims={"B": 11, "D": 8 * 13, "F": 8 * 17}, hidden_dims={"B": 13, "D": 8 * 17, "F": 8 * 11},
)  # fmt: skip
wide = exercise.timing(
    small, on="v5e:2x4",
    dims={"B": 8192, "D": 16384, "F": 53248}, hidden_dims={"B": 12288, "D": 8192, "F": 49152},
)  # fmt: skip
narrow = exercise.timing(
    small, on="v5e:2x4",
    dims={"B": 16384, "D": 53248, "F": 16384}, hidden_dims={"B": 12288, "D": 49152, "F": 8192},
)  # fmt: skip


@exercise.number(
    points=0.5,
    unit="MB",
    params={"B": [4096, 6144, 8192], "D": [5120, 10240], "X": [2, 8], "Y": [4, 16]},
    model="one-way ring; each hop sends one shard; 1 MB is 10^6 bytes",
    hints=[
        "Which block travels, and how many hops does it make?",
        "The shard of A travels: (B / X) rows and (D / Y) columns in bfloat16. It makes Y − 1 hops.",
        "bytes that a device sends = (Y − 1) hops · 2 bytes · (B / X) rows · (D / Y) columns",
    ],
)
def ag_matmul_bytes(B, D, X, Y):
    """`A` is bfloat16[{{ B }}, {{ D }}], sharded `A[B_X, D_Y]` with X={{ X }} and Y={{ Y }}. How many MB does each device send in
    `ag_matmul`?"""
    return (Y - 1) * 2 * (B / X) * (D / Y)


HOPS = "a hop takes (bytes of a shard) / W1, with W1 the one-way bandwidth of a link; a matmul takes FLOPs / C; hops and matmuls have no latency"


@exercise.number(
    points=0.5, unit="", params={"chip": ["v4p", "v5p"], "Y": [4, 8, 12, 16]}, model=HOPS,
    hints=["Write a hop's time and a matmul's time with B, D, F, X and Y. What cancels?", "A hop takes 2·(B/X)(D/Y)/W1, and a matmul takes 2·(B/X)(D/Y)(F/Y)/C.", "F = Y · C / W1"],
)  # fmt: skip
def ag_matmul_overlaps_from(chip, Y):
    """`ag_matmul` runs in bfloat16 on a ring of {{ Y }} {{ chip }} chips. No hop may take longer than a matmul. How many
    columns F must the whole `W[D, F]` have at least? Count the columns of all devices."""
    return Y * CHIPS[chip].bf16 / CHIPS[chip].ici


def hop_and_matmul(chip, B, D, F, Y):
    """Return the seconds of one hop and of one matmul."""
    return 2 * B * (D / Y) / CHIPS[chip].ici, matmul_time(2 * B * (D / Y) * (F / Y), chip)


@exercise.number(
    points=0.5, unit="us", model=HOPS,
    where=lambda chip, F, G, Y, **_: 0.8 * Y * link_intensity(chip) > F and 2.6 < G / (Y * link_intensity(chip)) < 3,
    params={"chip": ["v4p", "v5p"], "B": [4096, 6144], "D": [8192, 12288], "F": [6144, 12288], "G": [28672, 34816, 57344, 69632], "Y": [4, 8]},
    hints=[
        "For each W: does a hop or a matmul take longer?",
        "There are Y matmuls and Y − 1 hops. Each hop runs beside a matmul, and no hop runs beside the last matmul.",
        "time = the sum over both W of ((Y − 1) · max(hop, matmul) + one matmul); a hop takes (2 · B · D / Y bytes) / W1",
    ],
)  # fmt: skip
def ag_matmul_time(chip, B, D, F, G, Y):
    """Two calls of `ag_matmul` run one after the other, in bfloat16 on a ring of {{ Y }} {{ chip }} chips. The first
    multiplies A[{{ B }}, {{ D }}] by W[{{ D }}, {{ F }}], the second multiplies the same A by W[{{ D }}, {{ G }}]. Axis y
    cuts D in A. How long do the two calls take together?"""
    times = [hop_and_matmul(chip, B, D, columns, Y) for columns in (F, G)]
    return sum((Y - 1) * max(hop, matmul) + matmul for hop, matmul in times)
