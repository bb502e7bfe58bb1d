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
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import CHIPS

exercise = Exercise(meshes=[{"dp": 8}, {"dp": 4, "tp": 2}], stars=2, extension=True)


@exercise.function(
    hints=[
        "Walk through the tensors as the backward pass does. Where does it meet the first use of a tied one?",
        "Keep each trainable name where it stands first, then go backwards; begin a bucket when the next tensor does not fit.",
        "placed = {name: size for name, size, trainable in tensors if trainable} has first uses; for name in reversed(placed): ...",
    ]
)
def buckets(tensors, cap):
    """Lists of names in the order of sending.

    Args: tensors: [name, bytes, trainable] of each use, in the order of the forward pass; cap: bytes of a bucket.
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
        "Which gradients must have been made before the first bucket can go?",
        "Join only the gradients of one bucket; cut what comes back, and give each part its own shape again.",
        "flat = psum(concatenate([grads[i].ravel() for i in bucket]), 'dp'); then split, reshape and put back into grads.",
    ],
)
def bucketed_grads(ws, x, y, *, plan):
    """The gradients of the sum of squares over all rows, as ws; plan is a list of lists of layer numbers.

    Args: ws: a list of float32[D_l, D_(l+1)], whole on every device; x float32[B/N, D_0], y float32[B/N, D_L]; the axis is 'dp'.
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


MODEL = "gradients come as fast as the link takes them; each bucket is bare for its overhead, and one of them for its transfer; a ring takes 2 V / W, W both directions of one link"


@exercise.number(
    points=0.5, unit="MB", model=MODEL + "; 1 MB is 10^6 bytes",
    params={"chip": ["v4p", "v5p"], "M": [600, 1300, 2700], "o": [20, 60, 150]},
)  # fmt: skip
def best_bucket(chip, M, o):
    """{{ M }} million bfloat16 gradients are all-reduced on a ring of {{ chip }} chips, in equal buckets that cost {{ o }} us each beside their
    transfer. How large are the buckets that leave the least time bare?"""
    return (2e6 * M * CHIPS[chip].ici * o * 1e-6) ** 0.5


@exercise.number(
    points=0.5, unit="ms", model=MODEL,
    params={"chip": ["v4p", "v5p"], "M": [1300, 2000, 2700], "o": [40, 80, 150], "n": [12, 30]},
)  # fmt: skip
def bare_time(chip, M, o, n):
    """{{ M }} million bfloat16 gradients are all-reduced on a ring of {{ chip }} chips, in {{ n }} equal buckets that cost {{ o }} us each beside
    their transfer. How much longer than the backward pass does the step take?"""
    return 2e6 * M / n / CHIPS[chip].ici + n * o * 1e-6
