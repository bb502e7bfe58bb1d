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

Check your work: shardlings check d8_memory_budget
"""

import math


def kv_cache_bytes(layers, query_heads, kv_heads, head_dim, itemsize, sequences, tokens):
    """Bytes of the KV cache of ``sequences`` sequences of ``tokens`` tokens each, on all chips together (an int).

    Args: itemsize is the bytes of one number; query_heads share kv_heads (grouped-query attention).
    """
    # TODO: write this function
    raise NotImplementedError("kv_cache_bytes")


def decode_step_time(params, weight_bytes, kv_bytes_per_token, sequences, tokens, chips, flops, hbm_bandwidth):
    """Seconds to decode one token of each sequence, at the least.

    Args:
        params: parameters; weight_bytes: bytes of *one* of them.
        kv_bytes_per_token: over all layers. sequences: B; tokens: of context in each.
        chips: N, over which weights and cache are cut evenly. flops, hbm_bandwidth: of one chip.
    """
    # TODO: write this function
    raise NotImplementedError("decode_step_time")


# Question state_per_chip [GB]
# A model of 405 billion parameters trains with FSDP on 128 chips and keeps bfloat16 weights and
# two float32 moments. How much state does one chip hold?
#
# Answer in GB (a bare number), or with a unit.
# Model: state only (no activations), cut evenly over all chips; 1 GB is 10^9 bytes.
state_per_chip = None  # TODO: your answer


# Question cache_of_batch [GB]
# A model has 80 layers, 64 query heads, 8 KV heads of dimension 128, and a bfloat16 cache. How
# large is it for 12 sequences of 8192 tokens?
#
# Answer in GB (a bare number), or with a unit.
# Model: all chips together; 1 GB is 10^9 bytes.
cache_of_batch = None  # TODO: your answer


# Question decode_step [ms]
# A model of 70 billion parameters in int8, computing in bfloat16, with 80 kB of KV cache per
# token, is cut over 16 v5e chips. It decodes one step of 6 sequences, then one of 640 others,
# with 256 tokens of context each. How long do the two take at least?
#
# Answer in ms (a bare number), or with a unit.
# Model: weights and cache are read once per step; attention, then the longer of reading weights
# and computing; 1 kB is 10^3 bytes.
# Hardware: v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 2D torus, wraps only on
# an axis of 16; HBM 16 GB at 8.2e11 B/s; bf16 1.97e14 FLOP/s; hop 1 us; table 2026-11, from How
# To Scale Your Model of 2025-02-04.
decode_step = None  # TODO: your answer
