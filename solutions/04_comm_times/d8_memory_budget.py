"""# D8 What fits: optimizer state, KV cache, and the time of a decode step

Before asking how fast, ask whether it fits. Three sums answer most of it; 1 GB is 10⁹ bytes here, not 2³⁰ (7 % more).

**Training** keeps, per parameter: bfloat16 weights and Adam's two float32 moments, 2 + 4 + 4 = **10 bytes**; or everything in
float32, weights, gradients and two moments, **16 bytes**. FSDP (ZeRO-3) cuts that over all chips; plain data parallelism
keeps all of it on each. v5p has 96 GB: 9.6e9 parameters at 10 bytes.

**The KV cache** keeps, for each token of each sequence, one key and one value per layer and *KV* head:

    2 · layers · KV heads · head dimension · bytes  per token

**Decoding** makes one token per sequence and step. Every chip reads its part of the weights and of the cache once per step:

```
   a step  =  attention:  read the KV cache, B · tokens · bytes per token
                          (always bound by HBM)
           +  weights:    the longer of reading them, P · bytes,
                          and computing with them, 2·B·P FLOPs
```

step time = (KV bytes)/(N·W_hbm) + **max**( (weight bytes)/(N·W_hbm), 2·B·P/(N·C) ), for B sequences, P parameters, N chips.
Small batches wait for the weights, large ones for the cache.

**Tasks.** Write `kv_cache_bytes` and `decode_step_time`.

**Small case.** 30e9 parameters in int8 with bfloat16 arithmetic on 16 v5e chips, 8192 tokens of context, 100 kB of cache per
token. 4 sequences: 3.3 GB of cache and 30 GB of weights over 16 · 8.2e11 B/s: 2.5 ms. 256 sequences: 210 GB of cache,
16 ms, and now arithmetic is longer than reading weights (4.9 against 2.3 ms): 21 ms. (210 + 30 GB fit into 16 · 16 GB.)

**In real systems**: grouped-query attention (fewer KV heads than query heads) and int8 caches exist for this sum.

**Read on.** *How To Scale Your Model*, "All About Transformer Inference"; Stanford CS336 assignment 2, memory accounting.
"""

from grader.exercise import Exercise
from grader.hardware import CHIPS

exercise = Exercise(stars=2, extension=True)


@exercise.function(
    hints=[
        "What is kept for one token in one layer? For how many tokens and layers?",
        "A key and a value, each KV heads · head dimension numbers; in every layer, for every token of every sequence.",
        "2 * layers * kv_heads * head_dim * itemsize is one token; times sequences * tokens.",
    ]
)
def kv_cache_bytes(layers, query_heads, kv_heads, head_dim, itemsize, sequences, tokens):
    """Bytes of the KV cache of ``sequences`` sequences of ``tokens`` tokens each, on all chips together (an int).

    Args: itemsize is the bytes of one number; query_heads share kv_heads (grouped-query attention).
    """
    return 2 * layers * kv_heads * head_dim * itemsize * sequences * tokens


@exercise.function(
    hints=[
        "What has to be read from HBM in one step, and what computed?",
        "The cache is always read; reading weights and computing with them overlap, so the longer one counts.",
        "cache / hbm + max(weights / hbm, 2 * sequences * params / flops), with chips times each bandwidth and rate.",
    ]
)
def decode_step_time(params, weight_bytes, kv_bytes_per_token, sequences, tokens, chips, flops, hbm_bandwidth):
    """Seconds to decode one token of each sequence, at the least.

    Args:
        params: parameters; weight_bytes: bytes of *one* of them.
        kv_bytes_per_token: over all layers. sequences: B; tokens: of context in each.
        chips: N, over which weights and cache are cut evenly. flops, hbm_bandwidth: of one chip.
    """
    attention = kv_bytes_per_token * sequences * tokens / (chips * hbm_bandwidth)
    reading = params * weight_bytes / (chips * hbm_bandwidth)
    computing = 2 * sequences * params / (chips * flops)
    return attention + max(reading, computing)


# -- questions ---------------------------------------------------------------------------------


@exercise.number(
    points=0.5,
    unit="GB",
    params={"P": [13, 34, 70, 405], "N": [64, 128, 512], "kept": ["bf16", "f32"]},
    model="state only (no activations), cut evenly over all chips; 1 GB is 10^9 bytes",
)
def state_per_chip(P, N, kept):
    """A model of {{ P }} billion parameters trains with FSDP on {{ N }} chips and keeps {% if kept == "bf16" %}bfloat16 weights and two float32 moments{% else
    %}weights, gradients and two moments, all in float32{% endif %}. How much state does one chip hold?"""
    return P * 1e9 * (10 if kept == "bf16" else 16) / N


@exercise.number(
    points=0.5,
    unit="GB",
    params={"L": [40, 61, 80], "H": [40, 64], "K": [5, 8], "T": [4096, 8192, 32768], "B": [12, 24, 96]},
    where=lambda L, H, K, T, B: H % K == 0,
    model="all chips together; 1 GB is 10^9 bytes",
)
def cache_of_batch(L, H, K, T, B):
    """A model has {{ L }} layers, {{ H }} query heads, {{ K }} KV heads of dimension 128, and a bfloat16 cache. How large is it for {{ B }} sequences of {{ T }} tokens?"""
    return 2 * L * K * 128 * 2 * B * T


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v5e", "v6e"], "P": [13, 30, 70], "N": [8, 16], "T": [256, 384], "B": [6, 12], "L": [480, 640], "kB": [80, 120]},
    where=lambda chip, P, N, T, B, L, kB: P * 1e9 + kB * 1e3 * L * T < N * CHIPS[chip].hbm,
    model="weights and cache are read once per step; attention, then the longer of reading weights and computing; 1 kB is 10^3 bytes",
)  # fmt: skip
def decode_step(chip, P, N, T, B, L, kB):
    """A model of {{ P }} billion parameters in int8, computing in bfloat16, with {{ kB }} kB of KV cache per token, is cut over {{ N }} {{ chip }} chips.
    It decodes one step of {{ B }} sequences, then one of {{ L }} others, with {{ T }} tokens of context each. How long do the two take at least?"""
    row, params = CHIPS[chip], P * 10**9
    return sum(decode_step_time(params, 1, kB * 1e3, b, T, N, row.bf16, row.hbm_bw) for b in (B, L))
