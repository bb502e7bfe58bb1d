"""# H7 FSDP and tensor parallelism, an axis each

Along x the chips share the batch and keep 1/X of each weight (FSDP). Along y they share the layer's hidden dimension
(tensor parallelism). Weights then travel along x, activations along y, and neither on the other's wires.

**Task.** Write `mlp_2d(a, w_in, w_out)`, `Out[B, D] = tanh(A[B, D] · W_in[D, F]) · W_out[F, D]`, with `jax.shard_map`:

    A[B_X, D_Y], W_in[D_X, F_Y], W_out[F_Y, D_X]  ->  Out[B_X, D_Y]

**Budget**, forward. Over x: each weight is gathered once, the 1/Y of it that is a chip's column of the mesh. Over y: the
activations of a chip's rows are gathered once and reduce-scattered once. Backward, `jax.grad` of that: over x the weights'
gradients are reduce-scattered, over y one all-gather and one reduce-scatter; what was gathered may be gathered again. No
chip multiplies what another one does: 4·B·D·F/(X·Y) FLOPs forward, and at most four times that in all.

```
                    along x, the rows of the mesh      along y, the columns
   A[B_X, D_Y]                                         gather D:  A[B_X, D]
   W_in[D_X, F_Y]   gather D:  W_in[D, F_Y]
                    A[B_X, D] · W_in[D, F_Y] = H[B_X, F_Y]
   W_out[F_Y, D_X]  gather D:  W_out[F_Y, D]
                    tanh(H) · W_out[F_Y, D]  = Out[B_X, D]{U_Y}
   Out[B_X, D_Y]                                       sum, and scatter D
```

`W_in` and `W_out` are cut along x in *D*, so that gathering over x never joins pieces of F. Pieces of F stay apart: each
column of the mesh has its own part of the hidden layer from first to last, and one sum over y at the end.

**Small case.** float32, B=8, D=12, F=20 on x=4, y=2. Over x a chip sends 3/4 of W_in[12, 10] and of W_out[10, 12]: 2 · 360
bytes. Over y it sends 1/2 of A[2, 12] and of Out[2, 12]: 2 · 48 bytes. The weights are larger: more of the chips should
lie along y.

**In real systems**: MaxText's axes `fsdp` and `tensor`, torchtitan's FSDP2 on a `[dp, tp]` mesh. y is the axis with the
shortest wires, since nothing else can be done while activations travel; weights are gathered ahead (H4).

**Read on.** *How To Scale Your Model*, "How to Parallelize a Transformer for Training"; D5 has its bounds.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 2, "y": 4}], stars=3)


@exercise.task(
    hints=[
        "Which dimension does each product sum over, and by which axis is it cut in each operand?",
        "Gather D of everything, over the axis that cuts it: A over y, the weights over x. The second product sums over F_Y, so its result is partial over y.",
        "jax.lax.psum_scatter(jnp.tanh(rows @ up) @ down, 'y', scatter_dimension=1, tiled=True)",
    ]
)
def mlp_2d(a, w_in, w_out, *, mesh):
    """tanh(A · W_in) · W_out, whose operands and result are cut by both axes.

    Args: a float32[B, D] sharded P('x', 'y'), w_in float32[D, F] sharded P('x', 'y'), w_out float32[F, D] sharded P('y', 'x').
    Returns: float32[B, D] sharded P('x', 'y').
    """

    def local(a, w_in, w_out):
        rows = jax.lax.all_gather(a, "y", axis=1, tiled=True)  # [B/X, D]
        up = jax.lax.all_gather(w_in, "x", axis=0, tiled=True)  # [D, F/Y]
        down = jax.lax.all_gather(w_out, "x", axis=1, tiled=True)  # [F/Y, D]
        partial = jnp.tanh(rows @ up) @ down  # [B/X, D], unreduced over y
        return jax.lax.psum_scatter(partial, "y", scatter_dimension=1, tiled=True)

    specs = (P("x", "y"), P("x", "y"), P("y", "x"))
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P("x", "y"))(a, w_in, w_out)


layer = exercise.call(
    mlp_2d,
    a=normal("B", "D", spec=P("x", "y")),
    w_in=normal("D", "F", spec=P("x", "y")),
    w_out=normal("F", "D", spec=P("y", "x")),
    cotangent=normal("B", "D", spec=P("x", "y")),
    wrt=("a", "w_in", "w_out"),
    dims={"B": 8, "D": 12, "F": 20},
    hidden_dims={"B": 20, "D": 28, "F": 44},
)


@exercise.table(
    points=1,
    columns={"x": "MB", "y": "MB"},
    params={
        "B": [10240, 28672], "D": [4096, 6144], "F": [16384, 36864], "X": [4, 8, 16], "Y": [2, 4, 8],
    },
    where=lambda B, D, F, X, Y: X != Y,
    model="one-way rings: N - 1 hops, each of 1/N of what is gathered or scattered; 1 MB is 10^6 bytes",
)  # fmt: skip
def mlp_2d_bytes(B, D, F, X, Y):
    """B={{ B }}, D={{ D }}, F={{ F }} in bfloat16, on a mesh of x={{ X }}, y={{ Y }}. How many MB does a chip send along each axis in one
    forward pass of `mlp_2d`?"""
    return {"x": 2 * 2 * D * F / Y * (X - 1) / X, "y": 2 * 2 * B * D / X * (Y - 1) / Y}


@exercise.number(
    points=0.5,
    unit="token",
    params={"F": [12288, 20480, 28672, 36864], "X": [4, 8, 16], "Y": [2, 8]},
    where=lambda F, X, Y: X != Y and X != Y * Y,
    model="rings: a gather or reduce-scatter of V bytes takes V / W on either axis; W is the same for both",
)
def mlp_balance(F, X, Y):
    """The hidden dimension is F={{ F }}, the mesh x={{ X }}, y={{ Y }}. From how many tokens B in the whole batch on do the activations' collectives
    of a forward pass take longer than the weights'?"""
    return F * X / Y
