"""# J1 Experts on other devices

A layer has E experts, each with its own weights, and each token goes through k of them. More experts mean more
parameters, but not more FLOPs per token. Axis ep cuts experts and tokens. A device sends each token to the devices of
its experts, and gets the results back.

```
   a device's tokens       E = 4, cap = 2       sent to, N = 2
   token   1st   2nd       expert 0:  a  c      experts 0, 1  ->  ep=0
     a      0     2        expert 1:  -  -      experts 2, 3  ->  ep=1
     b      3     2        expert 2:  a  b      back: the same slots,
     c      0     2        expert 3:  b  -      read by (expert, slot)
   c's second choice finds no room: dropped
```

**Write** the body `moe(x, route, w, *, k, cap)`. A token's gates are the softmax of its row of `route` over all E
experts. The token chooses the k experts with the largest gates. Its result is the sum of gate · tanh(token · `w` of the
expert) over its k choices.

**Capacity.** A device has `cap` slots for each expert. The device serves all first choices in the order of tokens, then
all second choices, and so on. A choice without a slot is dropped: it adds nothing, and the other gates do not change.

| | whole shape | layout |
|---|---|---|
| `x`, `route` | float32[S, D], float32[S, E] | `TOKENS`: rows over (dp, ep) |
| `w` | float32[E, D, F] | `EXPERTS`: experts over ep |
| returns | float32[S, F] | `TOKENS` |

**What is checked**

| check | rule, per device | small case |
|---|---|---|
| value | the sum over each token's choices that have a slot | |
| gradients | JAX's gradients of `x`, `w` and `route` | |
| what is sent | over ep only all-to-alls; each pass sends (N−1)/N · E · cap · (D + F + 2) numbers at most | 528 bytes |
| | forward pass: nothing over dp | |
| work | forward pass: each row is multiplied by the weights of its own expert only, 2 · E · cap · D · F FLOPs. The budget is 2.4 times this number, because you may also put rows into slots by matmuls. The limit for what is sent holds, too | 2.4 · 640 FLOPs |

**Symbols.** S tokens, D and F widths, N devices along ep.

**Small case.** D=5, F=4, E=8, k=2, cap=2, N=4. A device has 6 tokens, and their 12 choices go into 8 · 2 = 16 slots.
12 of these 16 slots are for other devices: the device sends 12 · 5 · 4 = 240 bytes to the experts,
and 12 · 4 · 4 = 192 bytes of results. The budget allows 2 further numbers for each slot.

## Going further

**In real systems.** This is expert parallelism. An extra loss keeps the experts evenly busy, so that a small capacity
drops few choices. DeepSeek-V3 and others drop nothing, so the number of bytes depends on the data
(`ragged_all_to_all`).

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
        "Give each choice a place (expert, slot). How many choices of that expert does the device serve before this choice?",
        "Put tokens into a zero array [E, cap, D] at their places. Send this array, multiply, send the results back, and read them at these places.",
        "slot = jnp.cumsum(chosen, 0)[jnp.arange(len(expert)), expert] - 1; zeros.at[expert, slot].set(rows, mode='drop') leaves out slots beyond cap.",
    ],
)
def moe(x, route, w, *, k, cap):
    """Return each token's results from its k experts, weighted by its gates and added.

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
    params={"S": [3072, 6144], "D": [5120, 7168], "k": [4, 6, 8], "room": [125, 140], "N": [4, 8, 16]},
    where=lambda S, D, k, room, N: k != N,
    model="1 MB is 10^6 bytes",
    hints=[
        "How many slots does a device have, in all?",
        "Let room be the question's percentage. A device has room / 100 · k slots for each token, and sends (N - 1)/N of them.",
        "To the experts and back: 2 all-to-alls · 2 bytes · S · k · (room / 100) · D · (N − 1) / N",
    ],
)
def moe_bytes(S, D, k, room, N):
    """Each of {{ N }} devices has {{ S }} tokens of {{ D }} bfloat16 numbers. Each token chooses {{ k }} experts. The
    number of a device's slots is {{ room }} % of the number of its choices, and every expert has equally many slots.
    Results are as wide as tokens. How many MB does a device send in the forward pass, to the experts and back?"""
    return 2 * 2 * S * k * room / 100 * D * (N - 1) / N


@exercise.number(
    points=0.5,
    unit="",
    params={"chip": ["v4p", "v5p"], "N": [4, 8, 12, 16], "matrices": [3]},
    model="ring: an all-to-all of V bytes on all devices together takes V / (4·W), where W counts both directions of a link; matmuls take FLOPs / C; latency and dropped choices are left out",
    hints=[
        "Write the time of the all-to-alls and the time of the matmuls for r rows on each of N devices. What cancels?",
        "V counts the bytes of all devices: N · r · D numbers go to the experts, and N · r · D numbers come back.",
        "2 * 2 * N * r * D / (4 * W) = 2 * matrices * r * D * F / C",
    ],
)
def moe_overlaps_from(chip, N, matrices):
    """An expert has {{ matrices }} matrices of D·F parameters each. A token has D numbers, and so has its result. Tokens are bfloat16 and go to experts
    on a ring of {{ N }} {{ chip }} chips. Every chip gets the same number of tokens. From which F on do the two all-to-alls take no longer than
    the matmuls?"""
    return N * CHIPS[chip].bf16 / (2 * CHIPS[chip].ici) / (2 * matrices)
