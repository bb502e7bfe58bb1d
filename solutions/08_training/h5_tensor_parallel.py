"""# H5 A gated MLP, cut by columns and by rows

Most language models have this block (silu(g) = g · sigmoid(g)):

    h = silu(x @ w1) * (x @ w3)     y = h @ w2 + b

Axis tp cuts `w1` and `w3` by columns and `w2` by rows. A device computes its own units (columns of h) from the first
matmul to the last, and ends with a partial sum of y. Every device has the whole dy, so it computes the gradients of its
units without communication. The gradient of x is a sum over all devices' units.

```
    x[B, D]      w1, w3[D, F_tp]      h[B, F_tp]     w2[F_tp, D]
   +-------+     +---+---+           +---+---+       +-------+
   | whole |  ·  | 0 | 1 |  gate ->  | 0 | 1 |   ·   |   0   |  =  {y}
   +-------+     +---+---+           +---+---+       +-------+
                                                     |   1   |  {y}: partial
                                                     +-------+  sums of y
```

**Write** two bodies and a function. Docstrings give the shapes.

| | returns |
|---|---|
| `gated_mlp(x, w1, w3, w2, b, dy)` | y, and the gradients of Σ(y · dy) for x and all weights |
| `init(seed, *, D, F)` | new normal weights, all numbers independent: variance 1/D for w1 and w3, 1/F for w2 |
| `fused_columns(F, N)` | an order of the 2F columns of a checkpoint's w13, which holds w1, then w3. If N devices cut `w13[:, order]`, device d gets piece d of w1, then piece d of w3 |

Allowed: one all-reduce for the parts of y and of dx together. `init` may draw whole weights on each device and keep
a part. The weights then do not depend on N.

**What is checked**

| check | rule | small case |
|---|---|---|
| `gated_mlp`: value | y and gradients equal those of one device; the gradients of x and b are whole | |
| `gated_mlp`: what is sent | in each pass at most one all-reduce of [B, D], or a reduce-scatter and an all-gather in its place | 720 bytes |
| `init`: spread | each device returns its part: normal numbers, variance as above; nothing is sent | |
| `init`: independence | no two devices, weights or seeds get equal numbers | |
| `fused_columns` | the order; `ValueError` if N does not divide F | |

**Symbols.** B rows, D width, F units of the MLP, N devices along tp.

**Small case.** B=5, D=12, F=36, float32, tp=4: 9 units on a device. y has 240 bytes; an all-reduce sends 2 · 3/4 · 240
= 360 bytes. Both passes together send 720 bytes. `fused_columns(6, 3)` is `[0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]`.

## Going further

**In real systems.** This is Megatron's block. If w13 is cut in its given order, the first devices get columns of w1 and
the last devices get the matching columns of w3. All shapes fit and no error occurs, but the model is wrong.

**Read on.** Shoeybi et al., *Megatron-LM*, section 3; *How To Scale Your Model*, "How to Parallelize a Transformer
for Training".
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import all_reduce_time, matmul_time

exercise = Exercise(meshes=[{"dp": 2, "tp": 4}, {"tp": 3}], stars=2)
CUT = exercise.given({"w1": P(None, "tp"), "w3": P(None, "tp"), "w2": P("tp")})


@exercise.body(
    out_specs=(P(), {"x": P(), "b": P(), **CUT}),
    check_vma=False,
    hints=[
        "Which arrays are whole on a device, which are cut, and which two are partial sums?",
        "Add b after the all-reduce of y. Backward: compute dh = dy @ w2.T, then the gradients of gate and up. Both give a part of dx: add these two parts on each device, then all-reduce their sum once.",
        "dx = psum(dg @ w1.T + du @ w3.T, 'tp') with du = dh * silu(g), dg = dh * u * s * (1 + g * (1 - s)), s = sigmoid(g)",
    ],
)
def gated_mlp(x, w1, w3, w2, b, dy):
    """Return y and the gradients of sum(y * dy).

    Args: x, dy float32[B, D] and b float32[D], whole on each device; w1, w3 float32[D, F/N]; w2 float32[F/N, D]; the axis is 'tp'.
    Returns: (y, {"x", "w1", "w3", "w2", "b"}); each gradient has the shape of its array.
    """
    gate, up = x @ w1, x @ w3
    open_ = jax.nn.sigmoid(gate)
    hidden = gate * open_ * up
    y = jax.lax.psum(hidden @ w2, "tp") + b
    dhidden = dy @ w2.T
    dup = dhidden * gate * open_
    dgate = dhidden * up * open_ * (1 + gate * (1 - open_))
    dx = jax.lax.psum(dgate @ w1.T + dup @ w3.T, "tp")
    return y, {"x": dx, "w1": x.T @ dgate, "w3": x.T @ dup, "w2": hidden.T @ dy, "b": dy.sum(axis=0)}


@exercise.body(
    out_specs=CUT,
    hints=[
        "What differs between two devices that run the same lines with the same seed?",
        "Fold the index along tp into the key and split the key in three. Choose each weight's variance by the whole size of the dimension that its matmul sums over: D or F.",
        "jax.random.normal(key2, (F // n, D)) / F**0.5, with key2 from split(fold_in(key(seed), axis_index('tp')), 3)",
    ],
)
def init(seed, *, D, F):
    """Return a device's part of new weights.

    Args: seed, an int32, equal on all devices; D and F, the whole dimensions; the mesh axis is 'tp'.
    Returns: {"w1": float32[D, F/N], "w3": float32[D, F/N], "w2": float32[F/N, D]}.
    """
    units = F // jax.lax.axis_size("tp")
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), jax.lax.axis_index("tp")), 3)
    w1, w3 = (jax.random.normal(key, (D, units)) / D**0.5 for key in keys[:2])
    return {"w1": w1, "w3": w3, "w2": jax.random.normal(keys[2], (units, D)) / F**0.5}


@exercise.function(
    hints=[
        "With F=4, N=2: device 0 needs columns 0 and 1 of w1. Where in w13 are the columns of w3 that belong to these two columns?",
        "For each device, list its F/N columns of the first half of w13, then its F/N columns of the second half.",
        "[half * F + device * units + i for device in range(N) for half in (0, 1) for i in range(units)]",
    ]
)
def fused_columns(F, N):
    """Return an order of the columns of w13 = [w1 | w3] in which each of N equal pieces is [piece of w1 | piece of w3].

    Returns: a list of 2F ints. Raises ValueError if N does not divide F.
    """
    if F % N:
        raise ValueError(f"{F} columns do not make {N} equal pieces")
    units = F // N
    return [half * F + device * units + i for device in range(N) for half in (0, 1) for i in range(units)]


@exercise.number(
    points=1.5,
    unit="us",
    params={"chip": ["v4p", "v5p"], "B": [2048, 6144], "D": [4096, 7168], "F": [12288, 20480], "N": [4, 8]},
    model="Matmuls run at the peak bf16 rate. An all-reduce on a ring takes 2 V / W, where W is the both-way bandwidth of a link. Nothing overlaps",
    hints=[
        "How many matmuls does the block have, forward and backward?",
        "The block has three matmuls forward, and two backward for each of these: 9 in all, each of 2 · B · D · F / N FLOPs. Add the time of two all-reduces.",
        "9 · 2 · B · D · F / (N · C) + 2 · 2 · V / W with V = 2 · B · D bytes",
    ],
)
def gated_mlp_time(chip, B, D, F, N):
    """`gated_mlp` runs in bfloat16 on a ring of {{ N }} {{ chip }} chips, with B={{ B }}, D={{ D }}, F={{ F }}. Each all-reduce waits for the matmuls
    before it, and all later matmuls wait for the all-reduce. How long does the block take, forward and backward pass together?"""
    return matmul_time(9 * 2 * B * D * F / N, chip) + 2 * all_reduce_time(2 * B * D, N, chip)
