"""# H9 Seven layouts of one layer, and what hides behind what

A deep stack of layers `A[B, E] <- A[B, E] · W[E, E]`. Each layer ends as it began: its result C is laid out as A was. The
code of session 4 of *HighPerfLLMs2024* tries these seven layouts, here on axes x and y:

| | A[B, E] | W[E, E] | called |
|--|---|---|---|
| 1 | B_X, E | E, E | data parallel |
| 2 | B_X, E | E_X, E | FSDP |
| 3 | B_X, E | E, E_X | FSDP |
| 4 | B_X, E | E, E_Y | FSDP |
| 5 | B, E_X | E_X, E | tensor parallel |
| 6 | B, E_X | E, E_X | |
| 7 | B_X, E_Y | E_Y, E_X | FSDP and tensor parallel |

**Tasks.** `stack(a, ws, scheme=...)` multiplies by each layer of `ws` in turn, with `jax.shard_map`. `hides_behind(act,
weight, hops)` says which collectives a layer has and what can run beside each.

**Budget.** No product is computed twice: in 4, devices along y must not multiply the same. In a layer at most:
nothing in 1; W gathered in 2 and 3; C gathered over y in 4; C reduce-scattered in 5; A gathered in 6; in 7 W gathered over x
and C reduce-scattered over y. No gather of W waits for a product. Hops (`ppermute`) may stand for a collective.

**What may hide.** A collective can hide behind a product if neither needs the other's result, whichever is longer:

```
             waits for            is waited for by     so beside it runs
   gather W  nothing              its own product      any product before
   scatter C all of its product   the next product     nothing, if whole
   gather A  all of the product   its own product      nothing, if whole
             before
```

*Whole* collectives of A and C stand between two products and hide behind none. *Cut into hops* each hop needs or is needed by
a part of the product alone, and hides behind the rest of it (F1, F2): in 6 as well as in 5. That no whole collective can
hide does not mean that nothing can.

**Small case.** float32, B=8, E=24 on x=4, y=2: in 2 a device sends 3/4 of W, 1728 bytes, for a layer; in 5 and 6 3/4 of
[8, 24], 576 bytes; in 7 3/4 of W[12, 24] and 1/2 of C[2, 24], 864 + 96 bytes.

**In time**, as the course's clock lays it out: three layers of float32[16384, 16384] and 32,768 rows on 2x4 v5e
chips, which form a ring; `D` is a product, `k` is other work of the core, `G` is an all-gather and `S` is a
reduce-scatter, times are in us.

```
scheme 2: 44,254.181 us, 3 all-gathers, 69% of their time hidden
        │0            │20,000
compute k       product═D══════product═
link x+ G·······G·······G······
link x- G·······G·······G······

scheme 5: 96,122.604 us, 3 reduce-scatters, 0% of their time hidden
        │0            │20,000       │40,000       │60,000        │80,000
compute product═               product═              product═
link x+         reduce_scatter·        S·············        reduce_scatter·
link x-         reduce_scatter·        S·············        reduce_scatter·
```

**In real systems** 2 and 7 are layouts for training, 5 is one for decoding. Which is longer decides whether hiding
*suffices*, and only then: in 2 a product is as long as the gather beside it if a chip has as many rows as it has FLOP/s
for each byte/s of a link (D5).

**Read on.** `s04/shardings.py` of the repository HighPerfLLMs2024; its first exercise is 6 in hops, which is F3 here.

Check your work: shardlings check h9_seven_layouts
For all exercises of this module: README.md, or shardlings show 08_training
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


SCHEMES = {
    1: (P("x", None), P(None, None)),
    2: (P("x", None), P("x", None)),
    3: (P("x", None), P(None, "x")),
    4: (P("x", None), P(None, "y")),
    5: (P(None, "x"), P("x", None)),
    6: (P(None, "x"), P(None, "x")),
    7: (P("x", "y"), P("y", "x")),
}


def stack(a, ws, *, mesh, scheme):
    """A · ws[0] · ws[1] · ..., the result of each layer laid out as A is.

    Args: a float32[B, E] and ws float32[L, E, E], sharded as SCHEMES[scheme] says: (A, each W); scheme is 1 to 7.
    Returns: float32[B, E], sharded as a is. In 4 JAX cannot see that what was gathered is equal along y: check_vma=False.
    """
    # TODO: write this function
    raise NotImplementedError("stack")


def hides_behind(act, weight, hops):
    """The collectives of one layer, in the order in which they happen, each with what can run beside it.

    Args:
        act, weight: how A (and C) and W are cut: pairs of an axis's name or None, as (None, "x").
            An axis of the batch may cut either dimension of W, another one is used as in 4 to 7.
        hops: True: each collective is cut into hops; False: it is whole.
    Returns: a list of (kind, array, axis, place): kind "all_gather" or "reduce_scatter"; array "W", "A" or "C"; place
        "other layers", "own product" or "nothing". W comes first; [] if there is no collective.
    """
    # TODO: write this function
    raise NotImplementedError("hides_behind")


# Question exchange_layer_time [ms]
# Scheme 6 in bfloat16 with whole collectives: B=6144, E=8192 on a ring of 4 v5p chips. How long
# does a layer in the middle of a deep stack take?
#
# Answer in ms (a bare number), or with a unit.
# Model: ring: a gather or reduce-scatter of V bytes takes V / W, W both directions of a link;
# products run at the chip's rate.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
exchange_layer_time = None  # TODO: your answer


# Question mixed_layer_time [ms]
# Scheme 7 in bfloat16 with whole collectives, E=16384 on x=8, y=4 of v4p. How long does a layer
# in the middle of a deep stack take with a batch of 6144 rows, and with one of 57344? Add the
# two.
#
# Answer in ms (a bare number), or with a unit.
# Model: rings along x and y with links of their own; W is gathered ahead; V bytes take V / W, W
# both directions of a link.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
mixed_layer_time = None  # TODO: your answer
