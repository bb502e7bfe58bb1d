"""# H9 Seven layouts of a layer, and which operations overlap

In a deep stack, each layer computes C[B, E] = A[B, E] · W[E, E]. C has the layout of A, and is the next layer's A. The
layouts, `scheme` 1 to 7:

| | A[B, E] | W[E, E] | name | sent in each layer |
|--|---|---|---|---|
| 1 | B_X, E | E, E | data parallel | nothing |
| 2 | B_X, E | E_X, E | FSDP | W gathered over x |
| 3 | B_X, E | E, E_X | FSDP | W gathered over x |
| 4 | B_X, E | E, E_Y | data parallel, W cut by columns | C gathered over y |
| 5 | B, E_X | E_X, E | tensor parallel | C reduce-scattered over x |
| 6 | B, E_X | E, E_X | | A gathered over x |
| 7 | B_X, E_Y | E_Y, E_X | FSDP and tensor parallel | W gathered over x, C reduce-scattered over y |

A collective can overlap a matmul if neither needs the other's result:

```
             needs first          is needed by         can run beside
   gather W  nothing              its own matmul       other layers' matmuls
   scatter C its own matmul       the next matmul      no matmul
   gather A  the matmul before    its own matmul       no matmul
```

A collective's *own* matmul is its layer's matmul. If a collective of A or C is
cut into hops, the hops overlap its own matmul (exercises F1, F2). Hops of W still overlap other layers' matmuls.

**Write** two functions.

| | returns |
|---|---|
| `stack(a, ws, *, mesh, scheme)` | A · ws[0] · ws[1] · …, laid out as A, by `jax.shard_map` |
| `overlaps_with(act, weight, hops)` | a layer's collectives, and which matmuls overlap each |

**What is checked**

| check | rule, per device |
|---|---|
| `stack`: value | the result, laid out as A |
| `stack`: what is sent | (X−1)/X or (Y−1)/Y of the arrays under *sent in each layer*, nothing else |
| | no matmul runs twice; in schemes 2, 3 and 7 no gather of W waits for a matmul |
| `overlaps_with` | the right list, also for other axis names, and for layout 5 or 6 joined with 1, 2 or 3 on another axis |

Allowed: permutes in place of a collective.

**Symbols.** B rows, E width, L layers; X, Y axis sizes. In time formulas, W is a link's both-way bandwidth.

**Small case.** float32, B=20, E=24, x=4, y=2. Per layer, scheme 2 sends 3/4 of W, 1728 bytes. Schemes 5 and 6 send
3/4 of [20, 24], 1440 bytes. Scheme 7 sends 3/4 of W[12, 24] and 1/2 of C[5, 24], 864 + 240 bytes.

## Going further

**In time.** The grader's clock computes the times of this picture for three layers of float32[16384, 16384] and
32,768 rows on 2x4 v5e chips, which form a ring. It uses the profile *ideal*: every collective can run beside the
core. In the picture `k` is work of the core other than a matmul, `G` is an all-gather and `S` is a reduce-scatter;
times are in us.

```
scheme 2: 44,254.181 us, 3 all-gathers, 69% of their time overlapped
        │0            │20,000
compute k       matmul══matmul═matmul══
link x+ G·······G·······G······
link x- G·······G·······G······

scheme 5: 96,122.604 us, 3 reduce-scatters, 0% of their time overlapped
        │0            │20,000       │40,000       │60,000        │80,000
compute matmul══               matmul══              matmul══
link x+         reduce_scatter·        S·············        reduce_scatter·
link x-         reduce_scatter·        S·············        reduce_scatter·
```

In v5e's own profile all-gathers run beside the core, but reduce-scatters do not. In both profiles the collectives of
scheme 5 are fully exposed.

**Which collectives may overlap.** *Whole* collectives of A and C are between two matmuls and overlap no matmul. If a
collective is *cut into hops*, each hop needs one part of the matmul, or one part needs the hop. The hop overlaps the
other parts, in layout 6 as well as in 5. So collectives of these layouts can overlap matmuls too, but only hop by hop.

**In real systems.** Layouts 2 and 7 are for training, and layout 5 is for decoding. Overlap is not enough if the
collective takes longer than the matmul. In layout 2 the gather and the matmul take equally long if a chip's number of
rows is its FLOP/s divided by a link's both-way bytes/s, in bfloat16 (exercise D5).

**Read on.** `s04/shardings.py` of the repository HighPerfLLMs2024 tries these seven layouts. The first exercise after its
session 4 is layout 6 in hops, as in exercise F3 of this course.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import all_gather_time, matmul_time, reduce_scatter_time

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}], stars=2)
SCHEMES = exercise.given(
    {
        1: (P("x", None), P(None, None)),
        2: (P("x", None), P("x", None)),
        3: (P("x", None), P(None, "x")),
        4: (P("x", None), P(None, "y")),
        5: (P(None, "x"), P("x", None)),
        6: (P(None, "x"), P(None, "x")),
        7: (P("x", "y"), P("y", "x")),
    }
)


@exercise.task(
    hints=[
        "For each axis, ask which dimensions it cuts: the rows or columns of A, the rows or columns of W. Which data does a device lack?",
        "If an axis cuts the batch and W, gather W. If it cuts the columns of A and the rows of W, it leaves partial sums. If it cuts only the columns of A, gather A. If it cuts only the columns of C, gather C.",
        "scheme 6: a = jax.lax.all_gather(a, 'x', axis=1, tiled=True) @ w; scheme 5: a = jax.lax.psum_scatter(a @ w, 'x', scatter_dimension=1, tiled=True)",
    ]
)
def stack(a, ws, *, mesh, scheme):
    """Return A · ws[0] · ws[1] · ..., with the result of each layer laid out as A.

    Args: a float32[B, E] and ws float32[L, E, E], sharded as SCHEMES[scheme] says: (A, each W); scheme is 1 to 7.
    Returns: float32[B, E], sharded as a. In scheme 4 JAX cannot see that the gathered array is equal along y: use
        check_vma=False.
    """
    act, weight = SCHEMES[scheme]

    def gather(array, axis, dim):
        return jax.lax.all_gather(array, axis, axis=dim, tiled=True)

    def local(a, ws):
        for w in ws:
            if scheme in (2, 3, 7):
                w = gather(w, "x", 0 if scheme == 2 else 1)
            a = (gather(a, "x", 1) if scheme == 6 else a) @ w
            if scheme == 4:
                a = gather(a, "y", 1)
            if scheme in (5, 7):
                a = jax.lax.psum_scatter(a, act[1], scatter_dimension=1, tiled=True)
        return a

    return jax.shard_map(local, mesh=mesh, in_specs=(act, P(None, *weight)), out_specs=act, check_vma=False)(a, ws)


@exercise.function(
    hints=[
        "Take one axis after the other. Does this axis cut the batch and W, so that W must be gathered? Does it cut the dimension that the matmul sums over? Or does it cut the columns of the result?",
        "A collective of W runs beside 'other layers', whole or in hops. A collective of A or C runs beside 'nothing' if it is whole, and beside 'own matmul' in hops.",
        "between = 'own matmul' if hops else 'nothing'; then append (kind, array, axis, place) for W, A and C in turn.",
    ]
)
def overlaps_with(act, weight, hops):
    """Return the collectives of one layer, in their order, each with the matmuls that can run beside it.

    Args:
        act, weight: layouts of A (and C) and of W. A layout is a pair such as (None, "x"): each entry is an axis's name
            or None. The axis that cuts the batch may cut either dimension of W. At most one other axis cuts A or W,
            as x or y does in one of the layouts 4 to 6.
        hops: True: each collective is cut into hops; False: it is whole.
    Returns: a list of (kind, array, axis, place): kind "all_gather" or "reduce_scatter"; array "W", "A" or "C"; place
        "other layers", "own matmul" or "nothing". "own matmul" means the collective's own matmul. W comes first; [] if
        there is no collective.
    """
    rows, cols = act
    found, between = [], "own matmul" if hops else "nothing"
    if rows is not None and rows in weight:
        found.append(("all_gather", "W", rows, "other layers"))
    if cols is not None:
        scattered = cols == weight[0]
        found.append(("reduce_scatter", "C", cols, between) if scattered else ("all_gather", "A", cols, between))
    elif weight[1] not in (None, rows):
        found.append(("all_gather", "C", weight[1], between))
    return found


@exercise.number(
    points=0.75,
    unit="ms",
    params={
        "chip": ["v4p", "v5p"], "B": [6144, 8192], "L": [57344, 65536], "E": [12288, 16384], "X": [8, 16], "Y": [4],
    },
    model="The rings along x and y have separate links. The array W is gathered ahead of time. A collective of V bytes takes V / W, where this W is the both-way bandwidth of a link",
    hints=[
        "Which collective can run ahead of time, and which waits for the matmul?",
        "The gather of the weights along x overlaps matmul and reduce-scatter. The reduce-scatter along y waits for the matmul.",
        "For each batch take the longer of (2 · E² / Y) / W and matmul + (2 · B / X · E) / W. Then subtract the times of the two batches.",
    ],
)  # fmt: skip
def mixed_layer_time(chip, B, L, E, X, Y):
    """Scheme 7 runs in bfloat16 with whole collectives, E={{ E }} on x={{ X }}, y={{ Y }} of a {{ Y }}x4x{{ X }} slice of {{ chip }}: x and y
    wrap around. Take a layer in the middle of a deep stack. How much longer does it take for a batch of {{ L }} rows than
    for {{ B }} rows?"""
    gather = all_gather_time(2 * E * E / Y, X, chip)

    def scatter(rows):
        return reduce_scatter_time(2 * rows / X * E, Y, chip)

    small, large = (max(gather, matmul_time(2 * rows / X * E * E / Y, chip) + scatter(rows)) for rows in (B, L))
    return large - small
