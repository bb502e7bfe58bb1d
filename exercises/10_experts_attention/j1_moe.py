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

Check your work: shardlings check j1_moe
Notes on all exercises of this module: see README.md, or run shardlings show 10_experts_attention
The text "Going further" is below the code.
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


TOKENS = P(("dp", "ep"), None)


EXPERTS = P("ep", None, None)


def moe(x, route, w, *, k, cap):
    """Return each token's results from its k experts, weighted by its gates and added.

    Args: blocks of x float32[S, D] ((dp, ep), -), of route float32[S, E] ((dp, ep), -), of w float32[E, D, F] (ep, -, -).
    Returns: a block of float32[S, F] ((dp, ep), -).
    """
    # TODO: write this function
    raise NotImplementedError("moe")


# Question moe_bytes [MB]
# Each of 16 devices has 3072 tokens of 5120 bfloat16 numbers. Each token chooses 4 experts. The
# number of a device's slots is 140 % of the number of its choices, and every expert has equally
# many slots. Results are as wide as tokens. How many MB does a device send in the forward pass,
# to the experts and back?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
moe_bytes = None  # TODO: your answer


# Question moe_overlaps_from [a number]
# An expert has 3 matrices of D·F parameters each. A token has D numbers, and so has its result.
# Tokens are bfloat16 and go to experts on a ring of 16 v4p chips. Every chip gets the same number
# of tokens. From which F on do the two all-to-alls take no longer than the matmuls?
#
# Answer with a bare number.
# Model: ring: an all-to-all of V bytes on all devices together takes V / (4·W), where W counts
# both directions of a link; matmuls take FLOPs / C; latency and dropped choices are left out.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways); bf16 2.75e14 FLOP/s;
# table 2026-11, from How To Scale Your Model of 2025-02-04.
moe_overlaps_from = None  # TODO: your answer


# ## Going further
#
# **In real systems.** This is expert parallelism. An extra loss keeps the experts evenly busy, so that a small capacity
# drops few choices. DeepSeek-V3 and others drop nothing, so the number of bytes depends on the data
# (`ragged_all_to_all`).
#
# **Read on.** *GShard*; *Switch Transformers*; *How To Scale Your Model*, "Programming TPUs in JAX", worked problems.
