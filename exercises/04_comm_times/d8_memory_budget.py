"""# D8 What fits: optimizer state, KV cache, and the time of a decode step

Before you ask how fast a model runs, ask whether it fits into memory. Training keeps weights and optimizer state.
Decoding keeps the KV cache: a key and a value for each token in every layer. A decode step makes one token per
sequence, and every chip reads its part of the weights and of the cache once.

```
   a step  =  attention:  read the KV cache, B · tokens · bytes per token
                          (always bound by HBM)
           +  weights:    reading them moves P · (bytes per parameter), and
                          computing takes 2·B·P FLOPs: the longer counts
```

**Write** two functions. `kv_cache_bytes(layers, query_heads, kv_heads, head_dim, itemsize, sequences, tokens)` returns
an int, for all chips together.
`decode_step_time(params, weight_bytes, kv_bytes_per_token, sequences, tokens, chips, flops, hbm_bandwidth)` returns
seconds.

| | meaning |
|---|---|
| `itemsize`, `weight_bytes` | bytes per number of the cache; bytes per parameter |
| `kv_bytes_per_token` | bytes of cache for one token, in all layers together |
| `sequences`, `tokens` | B, and tokens in each sequence |
| `params`, `chips` | P, N; weights and cache are cut evenly over the chips |
| `flops`, `hbm_bandwidth` | C, W_hbm of one chip |

**What is checked**

| check | rule | small case |
|---|---|---|
| `kv_cache_bytes`: many models, dtypes and batches | 2 · layers · *KV* heads · head dimension · bytes per number, per token of each sequence | |
| `decode_step_time`: small batches, whose steps wait for the weights | KV bytes / (N·W_hbm) + **max**(bytes of all weights / (N·W_hbm), 2·B·P / (N·C)) | 2.5 ms |
| `decode_step_time`: batches large enough to be bound by arithmetic | the same formula | 21 ms |

**Training state**, per parameter: bfloat16 weights and Adam's two float32 moments, 2 + 4 + 4 = **10 bytes**. Training
that keeps all in float32 (weights, gradients, two moments) takes **16 bytes**. FSDP cuts this state over all chips.

**Symbols.** B: sequences. P: parameters. N: chips. C: FLOP/s. W_hbm: HBM bandwidth. 1 GB = 10^9 bytes.

**Small case** (ideal times). A model of P = 30e9 int8 parameters, with bfloat16 arithmetic, runs on 16 v5e chips. Each
sequence has 8192 tokens, with 100 kB of cache per token. With B=4, the step reads 3.3 GB of cache and 30 GB of weights:
33.3 GB / (16 · 8.2e11 B/s) = 2.5 ms. With B=256, the cache has 210 GB and takes 16 ms. Arithmetic takes 4.9 ms, longer
than the 2.3 ms for reading the weights. So the step takes 16 + 4.9 = 21 ms.

Check your work: shardlings check d8_memory_budget
Notes on all exercises of this module: see README.md, or run shardlings show 04_comm_times
The text "Going further" is below the code.
"""

import math


def kv_cache_bytes(layers, query_heads, kv_heads, head_dim, itemsize, sequences, tokens):
    """Return the bytes of the KV cache of ``sequences`` sequences of ``tokens`` tokens each, on all chips together (an
    int).

    Args: itemsize is the bytes of one number; query_heads share kv_heads (grouped-query attention).
    """
    # TODO: write this function
    raise NotImplementedError("kv_cache_bytes")


def decode_step_time(params, weight_bytes, kv_bytes_per_token, sequences, tokens, chips, flops, hbm_bandwidth):
    """Return the least seconds to decode one token of each sequence.

    Args:
        params: P, the number of parameters; weight_bytes: bytes of *one* parameter.
        kv_bytes_per_token: bytes of cache, over all layers. sequences: B; tokens: tokens of context in each sequence.
        chips: N; weights and cache are cut evenly over the chips. flops, hbm_bandwidth: C and W_hbm of one chip.
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
# A model has 48 layers, 64 query heads, 8 KV heads of dimension 128, and a bfloat16 cache. How
# large is the cache for 12 sequences of 8192 tokens?
#
# Answer in GB (a bare number), or with a unit.
# Model: all chips together; 1 GB is 10^9 bytes.
cache_of_batch = None  # TODO: your answer


# Question decode_step [ms]
# A model of 70 billion int8 parameters is cut over 16 v5e chips and computes in bfloat16. Its KV
# cache takes 80 kB per token. The model decodes one step of 6 sequences, then one step of 768
# other sequences, with 256 tokens of context each. How long do the two steps take at least?
#
# Answer in ms (a bare number), or with a unit.
# Model: weights and cache are read once per step; a step is attention, then the longer of reading
# weights and computing; 1 kB is 10^3 bytes.
# Hardware: v5e: HBM 16 GB at 8.2e11 B/s; bf16 1.97e14 FLOP/s; table 2026-11, from How To Scale
# Your Model of 2025-02-04.
decode_step = None  # TODO: your answer


# ## Going further
#
# **Units.** A GiB, 2³⁰ bytes, is 7 % more than a GB.
#
# **What fits.** A v5p chip has 96 GB, enough for 9.6e9 parameters of 10 bytes each. Plain data parallelism keeps all of
# the state on each chip. FSDP (ZeRO-3) cuts one copy over all chips. In the small case, 210 GB of cache and 30 GB of
# weights fit into the 16 · 16 GB of the chips.
#
# **Batches.** A step of a small batch waits for the weights. A step of a large batch mostly reads the cache, even
# if computing takes longer than reading the weights.
#
# **In real systems.** Grouped-query attention (fewer KV heads than query heads) and int8 caches make the cache smaller.
#
# **Read on.** *How To Scale Your Model*, "All About Transformer Inference"; Stanford CS336 assignment 2, memory
# accounting.
