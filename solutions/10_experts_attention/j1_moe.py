"""# J1 Experts on other devices

A layer has E experts, each with weights of its own, and each token goes through k of them: more parameters, and no more
arithmetic per token. Experts are cut over ep, and so are the tokens: whoever needs an expert sends its token there.

**Task.** Write the body `moe(x, route, w, k=, cap=)`. The gates of a token are the softmax of its row of `route` over all E
experts; it chooses the k with the largest. Its result is the sum over its choices of gate · tanh(token · W of the expert).

**Capacity.** A device has room for `cap` of its tokens for each expert, so that all that is sent has a known shape. It serves
first choices before second ones, and among equals the token that stands first. A choice for which no room is left is dropped:
it adds nothing, and other gates stay as they are.

**Budget.** All-to-alls over ep and nothing else: one there, one back, of `E · cap` rows, each with one number more if need
be. Backward the same; JAX does that, and adds W's gradient over dp, whose devices have the same experts and other tokens.

```
   a device's tokens       E = 4, cap = 2       there, N = 2
   token   1st   2nd       expert 0:  a  c      experts 0, 1  ->  x0
     a      0     2        expert 1:  -  -      experts 2, 3  ->  x1
     b      3     2        expert 2:  a  b      back: the same slots,
     c      0     2        expert 3:  b  -      read by (expert, slot)
   c's second choice finds no room: dropped
```

**Small case.** 6 tokens of 5 numbers on each of 4 devices, 8 experts, cap=2: 16 rows are sent for 12 choices, some of them empty.
Three quarters leave the device: 12 · 5 · 4 = 240 bytes there, and 12 rows of results come back.

**In real systems**: expert parallelism, with a loss that keeps the experts evenly busy, so that a small capacity drops
little. DeepSeek-V3 and others drop nothing: then it is data that decides how much is sent (`ragged_all_to_all`).

**Read on.** *GShard*; *Switch Transformers*; *How To Scale Your Model*, "Programming TPUs in JAX", worked problems.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise
from grader.hardware import CHIPS

exercise = Exercise(meshes=[{"dp": 2, "ep": 4}, {"dp": 1, "ep": 3}], stars=3)
TOKENS = exercise.given(P(("dp", "ep"), None))
EXPERTS = exercise.given(P("ep", None, None))


@exercise.body(
    out_specs=TOKENS,
    hints=[
        "Give each choice a place (expert, slot). Which slot? As many as the choices of that expert that are served before.",
        "Put tokens into zeros of [E, cap, D] at their places; send; multiply; send back; read the same places.",
        "slot = jnp.cumsum(chosen, 0)[jnp.arange(len(expert)), expert] - 1; zeros.at[expert, slot].set(rows, mode='drop') leaves out slots beyond cap.",
    ],
)
def moe(x, route, w, *, k, cap):
    """Each token through its k experts, weighted by its gates.

    Args: blocks of x float32[S, D] ((dp, ep), -), of route float32[S, E] ((dp, ep), -), of w float32[E, D, F] (ep, -, -).
    Returns: a block of float32[S, F] ((dp, ep), -).
    """
    gates, experts = jax.lax.top_k(jax.nn.softmax(route), k)
    expert, gate = experts.T.ravel(), gates.T.ravel()  # all first choices, then all second ones
    chosen = jax.nn.one_hot(expert, route.shape[1], dtype=int)
    slot = jnp.cumsum(chosen, axis=0)[jnp.arange(len(expert)), expert] - 1
    slots = jnp.zeros((route.shape[1], cap, x.shape[1])).at[expert, slot].set(jnp.tile(x, (k, 1)), mode="drop")
    here = jax.lax.all_to_all(slots, "ep", split_axis=0, concat_axis=1, tiled=True)  # [E/N, N cap, D]
    made = jnp.tanh(jnp.einsum("ecd,edf->ecf", here, w))
    home = jax.lax.all_to_all(made, "ep", split_axis=1, concat_axis=0, tiled=True)  # [E, cap, F]
    results = home.at[expert, slot].get(mode="fill", fill_value=0)
    return (gate[:, None] * results).reshape(k, len(x), -1).sum(0)


@exercise.number(
    points=0.5,
    unit="MB",
    params={"S": [3072, 6144], "D": [5120, 7168], "k": [4, 6, 8], "room": [125, 150], "N": [4, 8, 16]},
    model="1 MB is 10^6 bytes",
    hints=[
        "How many rows has a device room for, in all?",
        "A capacity of 125 % is room for 1.25 · k rows for each token.",
    ],
)
def moe_bytes(S, D, k, room, N):
    """Each of {{ N }} devices has {{ S }} tokens of {{ D }} bfloat16 numbers, each of which chooses {{ k }} experts. Devices have room for {{ room }} %
    of their choices, spread evenly over all experts; results are as wide as tokens. How many MB does a device send forward, there and back?"""
    return 2 * 2 * S * k * room / 100 * D * (N - 1) / N


@exercise.number(
    points=0.5,
    unit="",
    params={"chip": ["v4p", "v5p"], "N": [4, 8, 16], "matrices": [2, 3]},
    model="ring: an all-to-all of V bytes in all takes V / (4·W), W both directions of a link; products take FLOPs / C; hops and drops left out",
    hints=[
        "Write both times for r rows on each of N devices. What cancels?",
        "V is what all devices send together, N · r · D numbers, there and again back.",
        "2 * 2 * N * r * D / (4 * W) = 2 * matrices * r * D * F / C",
    ],
)
def moe_hides_from(chip, N, matrices):
    """Experts have {{ matrices }} matrices between D and F numbers (D·F parameters each), and results have D numbers again. Tokens are bfloat16 and
    go to experts on a ring of {{ N }} {{ chip }} chips, all of which have as many. How large must F be that the two all-to-alls take no longer
    than the products?"""
    return N * CHIPS[chip].bf16 / (2 * CHIPS[chip].ici) / (2 * matrices)
