"""# H2 Gradients in buckets

A program can send a gradient while the backward pass continues. One all-reduce per tensor has an overhead for each
tensor. One all-reduce for all tensors waits for the last gradient. So tensors go into *buckets* in the order in which
their gradients become ready. Each bucket is sent as one flat array.

```
   forward:   embed*  norm(frozen)  w1   w2   embed*      * the same tensor
   ready:     w2, w1, embed      wrong: embed, w2, w1, embed
```

**Write** a function and a body (`check_vma=False`).

| | |
|---|---|
| `buckets(tensors, cap)` | returns lists of names, in the order of sending |
| tensors | a list: [name, bytes, trainable] for each use, in forward order; all uses of a tensor have equal entries |
| cap | limit of a bucket's size, in bytes |
| `bucketed_grads(ws, x, y, *, plan)` | returns the gradients, shaped as `ws`, whole |
| ws | list of float32[D_l, D_(l+1)], whole |
| x, y | a device's rows: float32[B/N, D_0], float32[B/N, D_L] |
| plan | lists of layer numbers (buckets) |

A *frozen* tensor has no gradient. A *tied* tensor has several uses. The backward pass reaches the tensor's first use
last. Only then is its gradient ready. `bucketed_grads` starts with h = x, computes h ← tanh(h·w) for each w, and
differentiates the sum of (h − y)² over all devices' rows.

**What is checked**

| check | rule |
|---|---|
| `buckets`: order | every gradient once, in the order in which they become ready |
| `buckets`: size | at most `cap` bytes per bucket (a tensor above `cap` is alone); at most one bucket more than the fewest possible in this order |
| `bucketed_grads`: value | gradients over all rows, for float32 and bfloat16 inputs |
| what is sent | one all-reduce per bucket, of that bucket's gradients; at most 2 (N−1)/N bytes for each byte of gradient |
| overlap | on v5e:2x4, profile *ideal*: all buckets but the last overlap matmuls, for at least 70% of these buckets' time (reports count all buckets) |
| | a step takes at most 1.2 times as long as its matmuls and the last all-reduce together |

Allowed: a smaller first bucket; any order within a bucket.

**Symbols.** B rows, N devices along dp, L layers, D_l widths.

**Small case.** Trainable tensors become ready in the order w2 (20 bytes), w1 (30 bytes), embed (40 bytes). With cap 50
the buckets are [w2, w1] and [embed].

Check your work: shardlings check h2_buckets
Notes on all exercises of this module: see README.md, or run shardlings show 08_training
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def buckets(tensors, cap):
    """Return lists of names, in the order of sending.

    Args: tensors: [name, bytes, trainable] for each use, in the order of the forward pass; cap: the largest size of a bucket, in bytes.
    """
    # TODO: write this function
    raise NotImplementedError("buckets")


def bucketed_grads(ws, x, y, *, plan):
    """Return the gradients of the sum of squares over all rows, in a list like ws.

    Args: ws: a list of float32[D_l, D_(l+1)], whole on every device; x float32[B/N, D_0], y float32[B/N, D_L]; plan: a list of
    layer numbers for each bucket. The axis is 'dp'.
    """
    # TODO: write this function
    raise NotImplementedError("bucketed_grads")


# Question best_bucket [MB]
# A ring of v4p chips all-reduces 1300 million bfloat16 gradients, in equal buckets. Each bucket
# costs 60 us in addition to its transfer. Which size of bucket exposes the least time?
#
# Answer in MB (a bare number), or with a unit.
# Model: Gradients become ready as fast as the ring sends them. The overhead of each bucket and
# the transfer of one bucket are exposed. An all-reduce takes 2 V / W, where W is the both-way
# bandwidth of one link. 1 MB is 10^6 bytes.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); table 2026-11, from How
# To Scale Your Model of 2025-02-04.
best_bucket = None  # TODO: your answer


# ## Going further
#
# **How large.** A ring all-reduces w = W/2 bytes/s, where W is the both-way bandwidth of a link. All gradients together
# have s bytes. Suppose that they become ready at the rate w, too. Each bucket also costs an overhead o. With n equal
# buckets the first bucket starts after the time s/(n·w). The ring is busy for s/w + n·o. The backward pass takes s/w, so
# the exposed time is s/(n·w) + n·o. The product of these two terms does not depend on n, so the sum is smallest when the
# two terms are equal.
#
# If the backward pass takes a time T shorter than s/w, the first bucket starts after T/n. If T is much longer than s/w,
# only the last bucket is exposed.
#
# **In time.** The grader's clock computes the times of this picture for four layers in bfloat16 on 2x4 v5e chips, which
# form a ring. Each device has 4096 rows. The widths are 4096, 5120, 4608, 6144 and 3072, and the plan is [[3], [2, 1],
# [0]]. It uses the profile *ideal*: every collective can run beside the core. In the picture `D` is a matmul, `k` is
# other work of the core and `R` is an all-reduce; times are in us.
#
# ```
# bucketed_grads: 11,808.006 us, 3 all-reduces, 80% of their time overlapped
#          │0                          │5,000                       │10,000
# compute  D════D═════D═════D════D═══D════D═════matmul═D════k─D════D════ kk
# link dp+                                                R···all_reduce·R····
# link dp-                                                R···all_reduce·R····
# ```
#
# In v5e's own profile an all-reduce occupies the core, so it is fully exposed.
#
# **In real systems.** PyTorch's `DistributedDataParallel` has buckets of 25 MB after a first bucket of 1 MB.
#
# **Read on.** Li et al., *PyTorch Distributed: Experiences on Accelerating Data Parallel Training*, section 4;
# Stanford CS336, assignment 2.
