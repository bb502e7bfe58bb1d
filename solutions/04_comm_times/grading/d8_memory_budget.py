"""Checks and misconceptions of D8."""

from d8_memory_budget import cache_of_batch, decode_step, decode_step_time, exercise, kv_cache_bytes, state_per_chip
from grader.exercise import Scenario, larger
from grader.expect import expect_outcomes
from grader.hardware import CHIPS


def drawn_caches(rng):
    for _ in range(120):
        kv_heads = int(rng.choice([1, 4, 8]))
        yield {
            "layers": int(rng.integers(12, 127)), "query_heads": kv_heads * int(rng.choice([3, 4, 8])), "kv_heads": kv_heads,
            "head_dim": int(rng.choice([64, 128, 256])), "itemsize": int(rng.choice([1, 2, 4])),
            "sequences": int(rng.integers(2, 500)), "tokens": int(rng.integers(1000, 100_000)),
        }  # fmt: skip


def step(sequences, params=30_000_000_000, weight_bytes=1, kv_bytes=100_000, tokens=8192, chips=16, chip=CHIPS["v5e"]):
    return {
        "params": params, "weight_bytes": weight_bytes, "kv_bytes_per_token": kv_bytes, "sequences": sequences,
        "tokens": tokens, "chips": chips, "flops": chip.bf16, "hbm_bandwidth": chip.hbm_bw,
    }  # fmt: skip


def drawn_steps(rng, low, high):
    """Return batches of ``low`` to ``high`` times the size at which arithmetic and reading weights take equally long."""
    for _ in range(80):
        chip, weight_bytes = CHIPS[str(rng.choice(["v5e", "v5p", "v6e"]))], int(rng.choice([1, 2]))
        batch = max(2, int(rng.uniform(low, high) * weight_bytes * chip.bf16 / chip.hbm_bw / 2))
        params, kv_bytes = int(rng.integers(5, 400)) * 10**9, int(rng.integers(20, 600)) * 1000
        yield step(
            batch, params, weight_bytes, kv_bytes, int(rng.integers(500, 9000)), int(rng.choice([4, 8, 16, 64])), chip
        )


caches = exercise.cases(
    kv_cache_bytes,
    public=[{"layers": 40, "query_heads": 40, "kv_heads": 8, "head_dim": 128, "itemsize": 2, "sequences": 16, "tokens": 8192}],
    hidden=drawn_caches,
)  # fmt: skip
small_steps = exercise.cases(decode_step_time, public=[step(4)], hidden=lambda rng: drawn_steps(rng, 0.02, 0.9))
large_steps = exercise.cases(decode_step_time, public=[step(256)], hidden=lambda rng: drawn_steps(rng, 1.1, 6))


@exercise.check(caches, points=0.5, public=True)
def cache_bytes(seen):
    """kv_cache_bytes: many models, dtypes and batches"""
    expect_outcomes(seen)


@exercise.check(small_steps, points=0.5, public=True)
def step_small_batch(seen):
    """decode_step_time: batches that wait for the weights"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(large_steps, points=0.5)
def step_large_batch(seen):
    """decode_step_time: batches large enough to be bound by arithmetic"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.misconception(
    of=kv_cache_bytes, fails=cache_bytes, breaks="`kv_cache_bytes`: many models, dtypes and batches"
)
def cache_keys_only(**call):
    """You counted keys or values only. Each token adds both to the cache."""
    return kv_cache_bytes(**call) // 2


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes, breaks="*KV* heads")
def cache_of_query_heads(query_heads, kv_heads, **rest):
    """You counted query heads. Several of them share one KV head, and only KV heads are cached."""
    return kv_cache_bytes(query_heads=query_heads, kv_heads=query_heads, **rest)


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes, breaks="per token of each sequence")
def cache_per_sequence(tokens, **rest):
    """You counted sequences, not tokens. Every token of every sequence adds a key and a value."""
    return kv_cache_bytes(tokens=1, **rest)


@exercise.misconception(
    of=decode_step_time,
    fails=[step_small_batch, step_large_batch],
    breaks="`decode_step_time`: batches that wait for the weights",
)
def step_one_sequence_cached(sequences, tokens, **rest):
    """You read the cache of one sequence. The batch shares the weights, but each sequence has its own cache."""
    return decode_step_time(sequences=sequences, tokens=tokens / sequences, **rest)


@exercise.misconception(
    of=decode_step_time,
    fails=step_large_batch,
    breaks="`decode_step_time`: batches large enough to be bound by arithmetic",
)
def step_never_computes(flops, **rest):
    """You counted reading weights and cache but not the arithmetic. For large batches 2·B·P FLOPs take longer than reading weights."""
    return decode_step_time(flops=1e30, **rest)


@exercise.misconception(
    of=decode_step_time,
    fails=[step_small_batch, step_large_batch],
    breaks="**max**(weight bytes / (N·W_hbm), 2·B·P / (N·C))",
)
def step_all_added(params, weight_bytes, chips, hbm_bandwidth, flops, **rest):
    """You added reading the weights and computing with them. They overlap: take the longer one."""
    call = {"params": params, "chips": chips, "hbm_bandwidth": hbm_bandwidth, **rest}
    computed = decode_step_time(weight_bytes=0, flops=flops, **call)
    return computed + params * weight_bytes / (chips * hbm_bandwidth)


@exercise.misconception(of=decode_step_time, fails=step_large_batch)
def step_all_overlapped(params, weight_bytes, kv_bytes_per_token, sequences, tokens, chips, flops, hbm_bandwidth):
    """You overlapped everything. Attention reads its cache after the matmuls: add its time to theirs."""
    reading = (params * weight_bytes + kv_bytes_per_token * sequences * tokens) / (chips * hbm_bandwidth)
    return max(reading, 2 * sequences * params / (chips * flops))


@exercise.misconception(of=state_per_chip)
def state_other_recipe(P, N, kept):
    """You used the other recipe's bytes per parameter. With bfloat16 weights it is 2 + 4 + 4 = 10, with float32 weights 4 + 4 + 4 + 4 = 16."""
    return P * 1e9 * (16 if kept == "bf16" else 10) / N


@exercise.misconception(of=state_per_chip)
def state_weights_only(P, N, kept):
    """You counted the weights only. The optimizer also keeps two moments per parameter."""
    return P * 1e9 * (2 if kept == "bf16" else 4) / N


@exercise.misconception(of=state_per_chip)
def state_in_gib(**params):
    """You divided by 2³⁰. That is a GiB; 1 GB is 10⁹ bytes."""
    return state_per_chip(**params) * 1e9 / 2**30


@exercise.misconception(of=state_per_chip)
def state_on_every_chip(N, **rest):
    """You kept all of the state on every chip, as plain data parallelism does. FSDP cuts it over the chips."""
    return N * state_per_chip(N=N, **rest)


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_half(**params):
    """Your answer is too small by a factor of two. Each token adds a key and a value, and a bfloat16 has two bytes."""
    return cache_of_batch(**params) / 2


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_query_heads(H, K, **rest):
    """You counted query heads. Only KV heads are cached."""
    return H / K * cache_of_batch(H=H, K=K, **rest)


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_one(B, **rest):
    """That is the cache of one sequence. Every sequence of the batch has its own."""
    return cache_of_batch(B=B, **rest) / B


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_in_gib(**params):
    """You divided by 2³⁰. That is a GiB; 1 GB is 10⁹ bytes."""
    return cache_of_batch(**params) * 1e9 / 2**30


def two_steps(chip, P, N, T, B, L, kB, **changed):
    """Return the answer's sum with some arguments of ``decode_step_time`` changed."""
    row = CHIPS[chip]
    call = {"params": P * 1e9, "weight_bytes": 1, "kv_bytes_per_token": kB * 1e3, "tokens": T, "chips": N}
    call |= {"flops": row.bf16, "hbm_bandwidth": row.hbm_bw, **changed}
    return sum(decode_step_time(sequences=b, **call) for b in (B, L))


@exercise.misconception(of=decode_step)
def decode_one_cache(chip, P, N, T, B, L, kB):
    """You read one sequence's cache per step. The batch shares the weights, but each sequence has its own cache."""
    weights = two_steps(chip, P, N, T, B, L, kB, kv_bytes_per_token=0)
    return weights + 2 * kB * 1e3 * T / (N * CHIPS[chip].hbm_bw)


@exercise.misconception(of=decode_step)
def decode_two_byte_weights(**params):
    """You counted two bytes per weight. The weights are int8. Only the arithmetic is in bfloat16."""
    return two_steps(**params, weight_bytes=2)


@exercise.misconception(of=decode_step)
def decode_never_computes(**params):
    """You left out the arithmetic. For hundreds of sequences 2·B·P FLOPs take longer than reading the weights."""
    return two_steps(**params, flops=1e30)


@exercise.misconception(of=decode_step)
def decode_on_one_chip(N, **rest):
    """You used one chip's bandwidth. Weights and cache are cut over all chips, and all chips read at the same time."""
    return N * decode_step(N=N, **rest)


exercise.scenario(state_per_chip, lambda P, N, kept: Scenario(mesh={"x": N}))
exercise.scenario(cache_of_batch, lambda L, H, K, T, B: Scenario(heads=(H, K)))
exercise.scenario(
    decode_step,
    lambda chip, P, N, T, B, L, kB: Scenario(
        chip=chip,
        mesh={"x": N},
        holds=(P * 1e9 + kB * 1e3 * (B + L) * T) / N,
        branches=tuple(larger(read=1 / CHIPS[chip].hbm_bw, compute=2 * b / CHIPS[chip].bf16) for b in (B, L)),
    ),
)
