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

## Going further

**How large.** A ring all-reduces w = W/2 bytes/s, where W is the both-way bandwidth of a link. All gradients together
have s bytes. Suppose that they become ready at the rate w, too. Each bucket also costs an overhead o. With n equal
buckets the first bucket starts after the time s/(n·w). The ring is busy for s/w + n·o. The backward pass takes s/w, so
the exposed time is s/(n·w) + n·o. The product of these two terms does not depend on n, so the sum is smallest when the
two terms are equal.

If the backward pass takes a time T shorter than s/w, the first bucket starts after T/n. If T is much longer than s/w,
only the last bucket is exposed.

**In time.** The grader's clock computes the times of this picture for four layers in bfloat16 on 2x4 v5e chips, which
form a ring. Each device has 4096 rows. The widths are 4096, 5120, 4608, 6144 and 3072, and the plan is [[3], [2, 1],
[0]]. It uses the profile *ideal*: every collective can run beside the core. In the picture `D` is a matmul, `k` is
other work of the core and `R` is an all-reduce; times are in us.

```
bucketed_grads: 11,808.006 us, 3 all-reduces, 80% of their time overlapped
         │0                          │5,000                       │10,000
compute  D════D═════D═════D════D═══D════D═════matmul═D════k─D════D════ kk
link dp+                                                R···all_reduce·R····
link dp-                                                R···all_reduce·R····
```

In v5e's own profile an all-reduce occupies the core, so it is fully exposed.

**In real systems.** PyTorch's `DistributedDataParallel` has buckets of 25 MB after a first bucket of 1 MB.

**Read on.** Li et al., *PyTorch Distributed: Experiences on Accelerating Data Parallel Training*, section 4;
Stanford CS336, assignment 2.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import CHIPS

exercise = Exercise(meshes=[{"dp": 8}, {"dp": 4, "tp": 2}], stars=2, extension=True)


@exercise.function(
    hints=[
        "Walk through the tensors as the backward pass does. Where does it reach the first use of a tied tensor?",
        "Keep each trainable name once, at the place of its first use. Then go backwards. Begin a new bucket when the next tensor does not fit.",
        "placed = {name: size for name, size, trainable in tensors if trainable} keeps the place of a name's first use; for name in reversed(placed): ...",
    ]
)
def buckets(tensors, cap):
    """Return lists of names, in the order of sending.

    Args: tensors: [name, bytes, trainable] for each use, in the order of the forward pass; cap: the largest size of a bucket, in bytes.
    """
    placed = {name: size for name, size, trainable in tensors if trainable}
    found, held = [], cap
    for name in reversed(placed):
        if held + placed[name] > cap:
            found.append([])
            held = 0
        found[-1].append(name)
        held += placed[name]
    return found


@exercise.body(
    out_specs=P(),
    check_vma=False,
    hints=[
        "Which gradients must be ready before the program can send the first bucket?",
        "Join only the gradients of one bucket into one array, and all-reduce it. Split the result, and give each part the shape of its gradient again.",
        "flat = psum(concatenate([grads[i].ravel() for i in bucket]), 'dp'); then split, reshape and put back into grads.",
    ],
)
def bucketed_grads(ws, x, y, *, plan):
    """Return the gradients of the sum of squares over all rows, in a list like ws.

    Args: ws: a list of float32[D_l, D_(l+1)], whole on every device; x float32[B/N, D_0], y float32[B/N, D_L]; plan: a list of
    layer numbers for each bucket. The axis is 'dp'.
    """

    def loss(ws):
        h = x
        for w in ws:
            h = jnp.tanh(h @ w)
        return jnp.sum((h - y) ** 2)

    grads = jax.grad(loss)(ws)
    for bucket in plan:
        flat = jax.lax.psum(jnp.concatenate([grads[i].ravel() for i in bucket]), "dp")
        for i in bucket:
            grads[i], flat = flat[: ws[i].size].reshape(ws[i].shape), flat[ws[i].size :]
    return grads


@exercise.number(
    points=1, unit="MB", model="Gradients become ready as fast as the ring sends them. The overhead of each bucket and the transfer of one bucket are exposed. An all-reduce takes 2 V / W, where W is the both-way bandwidth of one link. 1 MB is 10^6 bytes",
    params={"chip": ["v4p", "v5p"], "M": [600, 1300, 2700], "o": [20, 60, 150]},
    hints=[
        "Which part of the exposed time grows with the size of a bucket, and which shrinks?",
        "With buckets of S bytes, the exposed time is 2 · S / W for the last bucket, and the overhead o for each of the V / S buckets. Set the derivative with respect to S to zero.",
        "S² = V · o · W / 2, with V = 2 bytes for each parameter",
    ],
)  # fmt: skip
def best_bucket(chip, M, o):
    """A ring of {{ chip }} chips all-reduces {{ M }} million bfloat16 gradients, in equal buckets. Each bucket costs {{ o }} us in addition to its transfer. Which size of bucket exposes the least time?"""
    return (2e6 * M * CHIPS[chip].ici * o * 1e-6) ** 0.5
