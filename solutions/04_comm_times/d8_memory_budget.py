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

## Going further

**Units.** A GiB, 2³⁰ bytes, is 7 % more than a GB.

**What fits.** A v5p chip has 96 GB, enough for 9.6e9 parameters of 10 bytes each. Plain data parallelism keeps all of
the state on each chip. FSDP (ZeRO-3) cuts one copy over all chips. In the small case, 210 GB of cache and 30 GB of
weights fit into the 16 · 16 GB of the chips.

**Batches.** A step of a small batch waits for the weights. A step of a large batch mostly reads the cache, even
if computing takes longer than reading the weights.

**In real systems.** Grouped-query attention (fewer KV heads than query heads) and int8 caches make the cache smaller.

**Read on.** *How To Scale Your Model*, "All About Transformer Inference"; Stanford CS336 assignment 2, memory
accounting.
"""

from grader.exercise import Exercise
from grader.hardware import CHIPS

exercise = Exercise(stars=2, extension=True)


@exercise.function(
    hints=[
        "What does the cache hold for one token in one layer? For how many tokens and layers?",
        "For every token of every sequence, each layer has a key and a value in the cache. A key has (KV heads · head dimension) numbers, and so has a value.",
        "2 * layers * kv_heads * head_dim * itemsize is the number of bytes of one token. Multiply by sequences * tokens.",
    ]
)
def kv_cache_bytes(layers, query_heads, kv_heads, head_dim, itemsize, sequences, tokens):
    """Return the bytes of the KV cache of ``sequences`` sequences of ``tokens`` tokens each, on all chips together (an
    int).

    Args: itemsize is the bytes of one number; query_heads share kv_heads (grouped-query attention).
    """
    return 2 * layers * kv_heads * head_dim * itemsize * sequences * tokens


@exercise.function(
    hints=[
        "What does one step read from HBM, and what does it compute?",
        "Each step reads the cache. Reading weights and computing with them overlap, so the longer of the two counts.",
        "time = cache / hbm + max(weights / hbm, 2 * sequences * params / flops), with hbm and flops of all chips together.",
    ]
)
def decode_step_time(params, weight_bytes, kv_bytes_per_token, sequences, tokens, chips, flops, hbm_bandwidth):
    """Return the least seconds to decode one token of each sequence.

    Args:
        params: P, the number of parameters; weight_bytes: bytes of *one* parameter.
        kv_bytes_per_token: bytes of cache, over all layers. sequences: B; tokens: tokens of context in each sequence.
        chips: N; weights and cache are cut evenly over the chips. flops, hbm_bandwidth: C and W_hbm of one chip.
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
    hints=[
        "How many bytes does one parameter need?",
        "With bfloat16 weights, a parameter needs 2 + 4 + 4 bytes. If all is in float32, a parameter needs four numbers of 4 bytes.",
        "bytes on one chip = parameters · (bytes per parameter) / N",
    ],
)
def state_per_chip(P, N, kept):
    """A model of {{ P }} billion parameters trains with FSDP on {{ N }} chips and keeps {% if kept == "bf16" %}bfloat16 weights and two float32 moments{% else
    %}weights, gradients and two moments, all in float32{% endif %}. How much state does one chip hold?"""
    return P * 1e9 * (10 if kept == "bf16" else 16) / N


@exercise.number(
    points=0.5,
    unit="GB",
    params={"L": [28, 36, 48], "H": [40, 64], "K": [5, 8], "T": [4096, 8192, 32768], "B": [12, 24, 40]},
    where=lambda L, H, K, T, B: H % K == 0,
    model="all chips together; 1 GB is 10^9 bytes",
    hints=[
        "What does the cache hold for each token?",
        "The cache holds keys and values of only the KV heads, in each layer.",
        "bytes = 2 (keys and values) · layers · KV heads · 128 numbers · 2 bytes, for each token of each sequence",
    ],
)
def cache_of_batch(L, H, K, T, B):
    """A model has {{ L }} layers, {{ H }} query heads, {{ K }} KV heads of dimension 128, and a bfloat16 cache. How large is the cache for {{ B }} sequences of {{ T }} tokens?"""
    return 2 * L * K * 128 * 2 * B * T


@exercise.number(
    points=0.5,
    unit="ms",
    params={"chip": ["v5e", "v6e"], "P": [13, 30, 70], "N": [8, 16], "T": [256, 384], "B": [6, 12], "L": [640, 768], "kB": [80, 120]},
    where=lambda chip, P, N, T, B, L, kB: P * 1e9 + kB * 1e3 * L * T < N * CHIPS[chip].hbm,
    model="weights and cache are read once per step; a step is attention, then the longer of reading weights and computing; 1 kB is 10^3 bytes",
    hints=[
        "Which parts of a step read memory, and which of them grow with the batch?",
        "Attention reads the cache of every sequence. The weights are read once, at the same time as the arithmetic of 2 FLOPs per parameter and sequence.",
        "time of a step = (cache bytes) / (chips · HBM) + the longer of (weight bytes) / (chips · HBM) and (2 · parameters · sequences) / (chips · FLOP/s)",
    ],
)  # fmt: skip
def decode_step(chip, P, N, T, B, L, kB):
    """A model of {{ P }} billion int8 parameters is cut over {{ N }} {{ chip }} chips and computes in bfloat16. Its KV cache takes {{ kB }} kB per token.
    The model decodes one step of {{ B }} sequences, then one step of {{ L }} other sequences, with {{ T }} tokens of context each. How long do the two steps take at least?"""
    row, params = CHIPS[chip], P * 10**9
    return sum(decode_step_time(params, 1, kB * 1e3, b, T, N, row.bf16, row.hbm_bw) for b in (B, L))
