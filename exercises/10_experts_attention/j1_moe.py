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

Check your work: shardlings check j1_moe
For all exercises of this module: README.md, or shardlings show 10_experts_attention
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


TOKENS = P(("dp", "ep"), None)


EXPERTS = P("ep", None, None)


def moe(x, route, w, *, k, cap):
    """Each token through its k experts, weighted by its gates.

    Args: blocks of x float32[S, D] ((dp, ep), -), of route float32[S, E] ((dp, ep), -), of w float32[E, D, F] (ep, -, -).
    Returns: a block of float32[S, F] ((dp, ep), -).
    """
    # TODO: write this function
    raise NotImplementedError("moe")


# Question moe_bytes [MB]
# Each of 4 devices has 3072 tokens of 5120 bfloat16 numbers, each of which chooses 4 experts.
# Devices have room for 150 % of their choices, spread evenly over all experts; results are as
# wide as tokens. How many MB does a device send forward, there and back?
#
# Answer in MB (a bare number), or with a unit.
# Model: 1 MB is 10^6 bytes.
moe_bytes = None  # TODO: your answer


# Question moe_hides_from [a number]
# Experts have 3 matrices between D and F numbers (D·F parameters each), and results have D
# numbers again. Tokens are bfloat16 and go to experts on a ring of 8 v4p chips, all of which have
# as many. How large must F be that the two all-to-alls take no longer than the products?
#
# Answer with a bare number.
# Model: ring: an all-to-all of V bytes in all takes V / (4·W), W both directions of a link;
# products take FLOPs / C; hops and drops left out.
# Hardware: v4p: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 3D torus, wraps only on
# axes that are multiples of 4 in slices of full 4x4x4 cubes; HBM 32 GB at 1.2e12 B/s; bf16
# 2.75e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04.
moe_hides_from = None  # TODO: your answer
