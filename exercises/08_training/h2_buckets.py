"""# H2 Gradients in buckets

A gradient can be sent as soon as the backward pass has made it, while earlier layers are still at work. One all-reduce for each tensor
pays a start for each; one for all of them waits for the end. So tensors are put into *buckets*, in the order in which they
become ready, and each bucket is sent as one flat array.

**Tasks.** `buckets(tensors, cap)` takes [name, bytes, trainable] in the order of the forward pass, and returns lists of names in the order of
sending. A bucket holds at most `cap` bytes, a larger tensor is alone. A *frozen* tensor has no gradient. A *tied* one is used at several
places: its gradient is ready when its first use has been passed. Fill buckets; the first may be smaller, to start early.

`bucketed_grads(ws, x, y, plan=...)`, a body, has its rows of the batch and all weights. With h = x, then h ← tanh(h·w) for each
w in `ws`, it returns the gradients of the sum of (h − y)² over all devices' rows: each list of `plan`, numbers of layers, in one all-reduce.

**Budget.** As many all-reduces as buckets, no byte twice; no bucket waits for gradients that stand later in the plan. The step
takes at most a fifth longer than its products and the all-reduce of the last bucket.

```
   forward:   embed*  norm(frozen)  w1   w2   embed*      * the same tensor
   ready:     w2, w1, embed      not: embed, w2, w1, embed
```

**Small case.** With 40, 8, 30, 20 bytes and a cap of 50 the buckets are [w2, w1] and [embed].

**How large.** Say gradients of s bytes come just as fast as a link of w bytes/s takes them, and each bucket costs o more. With n equal buckets the
first starts after s/(n·w), and the link is busy from then on for s/w + n·o. The backward pass takes s/w, so s/(n·w) + n·o stay
bare. Their product does not depend on n, so the sum is smallest when they are equal: n = √(s/(w·o)), buckets of √(s·w·o).
After a faster backward pass, T < s/w, the first bucket starts after T/n; after a much slower one only the last is bare.

**In time**, as the course's clock lays it out: four layers in bfloat16, 4096 rows on each device, the first plan on
2x4 v5e chips, which form a ring; `D` is a product, `k` is other work of the core and `R` is an all-reduce, times are
in us.

```
bucketed_grads: 11,808.006 us, 3 all-reduces, 80% of their time hidden
         │0                          │5,000                       │10,000
compute  D════D═════D═════D════D═══D════D═════D══════D════k─D════D════ kk
link dp+                                                R···all_reduce·R····
link dp-                                                R···all_reduce·R····
```

**In real systems**: `DistributedDataParallel` with buckets of 25 MB after a first one of 1 MB.

**Read on.** Li et al., *PyTorch Distributed: Experiences on Accelerating Data Parallel Training*, section 4; Stanford CS336, assignment 2.

Check your work: shardlings check h2_buckets
For all exercises of this module: README.md, or shardlings show 08_training
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def buckets(tensors, cap):
    """Lists of names in the order of sending.

    Args: tensors: [name, bytes, trainable] of each use, in the order of the forward pass; cap: bytes of a bucket.
    """
    # TODO: write this function
    raise NotImplementedError("buckets")


def bucketed_grads(ws, x, y, *, plan):
    """The gradients of the sum of squares over all rows, as ws; plan is a list of lists of layer numbers.

    Args: ws: a list of float32[D_l, D_(l+1)], whole on every device; x float32[B/N, D_0], y float32[B/N, D_L]; the axis is 'dp'.
    """
    # TODO: write this function
    raise NotImplementedError("bucketed_grads")


# Question best_bucket [MB]
# 1300 million bfloat16 gradients are all-reduced on a ring of v4p chips, in equal buckets that
# cost 60 us each beside their transfer. How large are the buckets that leave the least time bare?
#
# Answer in MB (a bare number), or with a unit.
# Model: gradients come as fast as the link takes them; each bucket is bare for its overhead, and
# one of them for its transfer; a ring takes 2 V / W, W both directions of one link; 1 MB is 10^6
# bytes.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
best_bucket = None  # TODO: your answer


# Question bare_time [ms]
# 1300 million bfloat16 gradients are all-reduced on a ring of v5p chips, in 30 equal buckets that
# cost 150 us each beside their transfer. How much longer than the backward pass does the step
# take?
#
# Answer in ms (a bare number), or with a unit.
# Model: gradients come as fast as the link takes them; each bucket is bare for its overhead, and
# one of them for its transfer; a ring takes 2 V / W, W both directions of one link.
# Hardware: v5p: ICI 9.0e10 B/s per link and direction (1.8e11 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 96 GB at 2.8e12 B/s; bf16
# 4.59e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
bare_time = None  # TODO: your answer
