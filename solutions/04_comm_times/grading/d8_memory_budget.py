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
    public=[{"layers": 40, "query_heads": 40, "kv_heads": 8, "head_dim": 128, "itemsize": itemsize, "sequences": 16, "tokens": 8192}
            for itemsize in (2, 1)],
    hidden=drawn_caches,
)  # fmt: skip
small_steps = exercise.cases(
    decode_step_time, public=[step(4), step(60)], hidden=lambda rng: drawn_steps(rng, 0.02, 0.9)
)
large_steps = exercise.cases(
    decode_step_time,
    public=[step(256), step(400, weight_bytes=2, tokens=512)],
    hidden=lambda rng: drawn_steps(rng, 1.1, 6),
)


@exercise.check(caches, points=0.5, public=True)
def cache_bytes(seen):
    """kv_cache_bytes: many models, dtypes and batches"""
    expect_outcomes(seen, ints=True)


@exercise.check(small_steps, points=0.5, public=True)
def step_small_batch(seen):
    """decode_step_time: small batches, whose steps wait for the weights"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(large_steps, points=0.5, public=True)
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
    """You counted query heads. Several query heads share one KV head, and only KV heads are cached."""
    return kv_cache_bytes(query_heads=query_heads, kv_heads=query_heads, **rest)


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes, breaks="per token of each sequence")
def cache_per_sequence(tokens, **rest):
    """You counted sequences, not tokens. Every token of every sequence adds a key and a value."""
    return kv_cache_bytes(tokens=1, **rest)


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes)
def cache_of_one_sequence(sequences, **rest):
    """You counted one sequence. Every sequence of the batch has its own cache."""
    return kv_cache_bytes(sequences=1, **rest)


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes)
def cache_of_one_layer(layers, **rest):
    """You counted one layer. Every layer has its own cache."""
    return kv_cache_bytes(layers=1, **rest)


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes)
def cache_in_numbers(itemsize, **rest):
    """You counted numbers, not bytes. Multiply by `itemsize`."""
    return kv_cache_bytes(itemsize=1, **rest)


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes)
def cache_in_two_bytes(itemsize, **rest):
    """You set a number to 2 bytes. Use the argument `itemsize`."""
    return kv_cache_bytes(itemsize=2, **rest)


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes)
def cache_of_all_heads(query_heads, kv_heads, **rest):
    """You added query heads and KV heads. Only KV heads are cached."""
    return kv_cache_bytes(query_heads=query_heads, kv_heads=query_heads + kv_heads, **rest)


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes)
def cache_of_a_group(query_heads, kv_heads, **rest):
    """You used query_heads / kv_heads, the query heads that share a KV head. Each KV head has its own keys and values."""
    return kv_cache_bytes(query_heads=query_heads, kv_heads=query_heads // kv_heads, **rest)


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes)
def cache_in_gigabytes(**call):
    """You returned GB. The function returns bytes, an int."""
    return kv_cache_bytes(**call) / 1e9


@exercise.misconception(of=kv_cache_bytes, fails=cache_bytes)
def cache_as_a_float(**call):
    """You returned a float. The number of bytes is a whole number: return an int."""
    return float(kv_cache_bytes(**call))


@exercise.misconception(
    of=decode_step_time,
    fails=[step_small_batch, step_large_batch],
    breaks="`decode_step_time`: small batches, whose steps wait for the weights",
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
    """You left out the arithmetic, or you counted the arithmetic of one sequence. For large batches 2·B·P FLOPs take longer than reading weights."""
    return decode_step_time(flops=1e30, **rest)


@exercise.misconception(
    of=decode_step_time,
    fails=[step_small_batch, step_large_batch],
    breaks="**max**(bytes of all weights / (N·W_hbm), 2·B·P / (N·C))",
)
def step_all_added(params, weight_bytes, chips, hbm_bandwidth, flops, **rest):
    """You added reading the weights and computing with them. The two overlap: take the longer time."""
    call = {"params": params, "chips": chips, "hbm_bandwidth": hbm_bandwidth, **rest}
    computed = decode_step_time(weight_bytes=0, flops=flops, **call)
    return computed + params * weight_bytes / (chips * hbm_bandwidth)


@exercise.misconception(of=decode_step_time, fails=step_large_batch)
def step_all_overlapped(params, weight_bytes, kv_bytes_per_token, sequences, tokens, chips, flops, hbm_bandwidth):
    """You overlapped everything. Reading the cache does not overlap the matmuls: add its time to the time of the matmuls."""
    reading = (params * weight_bytes + kv_bytes_per_token * sequences * tokens) / (chips * hbm_bandwidth)
    return max(reading, 2 * sequences * params / (chips * flops))


def three_times(params, weight_bytes, kv_bytes_per_token, sequences, tokens, chips, flops, hbm_bandwidth):
    """Return the seconds of reading the cache, reading the weights, and computing with them."""
    cache = kv_bytes_per_token * sequences * tokens / (chips * hbm_bandwidth)
    return cache, params * weight_bytes / (chips * hbm_bandwidth), 2 * sequences * params / (chips * flops)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_longest_only(**call):
    """You took the longest of the three times. Reading the cache does not overlap the matmuls: add its time to the time of the matmuls."""
    return max(three_times(**call))


@exercise.misconception(of=decode_step_time, fails=step_small_batch)
def step_without_weights(weight_bytes, **rest):
    """You did not read the weights. In a small batch reading them takes longer than the arithmetic."""
    return decode_step_time(weight_bytes=0, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_without_cache(kv_bytes_per_token, **rest):
    """You did not read the cache. Attention reads the keys and values of all tokens: add its time."""
    return decode_step_time(kv_bytes_per_token=0, **rest)


@exercise.misconception(of=decode_step_time, fails=step_large_batch)
def step_one_flop(flops, **rest):
    """You counted one FLOP per parameter. Each parameter needs a multiplication and an addition: 2·B·P."""
    return decode_step_time(flops=2 * flops, **rest)


@exercise.misconception(of=decode_step_time, fails=step_small_batch)
def step_parameters_read(weight_bytes, **rest):
    """You read one byte for each parameter. Multiply the parameters by `weight_bytes`."""
    return decode_step_time(weight_bytes=1, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_flops_times_bytes(weight_bytes, flops, **rest):
    """You multiplied the FLOPs by the bytes of a weight. Each parameter needs 2 FLOPs for each sequence, whatever its dtype."""
    return decode_step_time(weight_bytes=weight_bytes, flops=flops / weight_bytes, **rest)


@exercise.misconception(of=decode_step_time, fails=step_large_batch)
def step_flops_by_bytes(weight_bytes, flops, **rest):
    """You took the bytes of a weight for its FLOPs. Each parameter needs 2 FLOPs for each sequence, whatever its dtype."""
    return decode_step_time(weight_bytes=weight_bytes, flops=2 * flops / weight_bytes, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_flops_of_context(flops, tokens, **rest):
    """You computed with the weights for every token of the context. A step makes one token per sequence: 2·B·P."""
    return decode_step_time(flops=flops / tokens, tokens=tokens, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_training_flops(flops, **rest):
    """You counted the 6 FLOPs per parameter of training. Decoding has the forward pass only: 2·B·P."""
    return decode_step_time(flops=flops / 3, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_weights_whole(chips, weight_bytes, **rest):
    """You read all of the weights on each chip. The weights are cut over the chips: divide by N."""
    return decode_step_time(chips=chips, weight_bytes=weight_bytes * chips, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_cache_whole(chips, kv_bytes_per_token, **rest):
    """You read all of the cache on each chip. The cache is cut over the chips: divide by N."""
    return decode_step_time(chips=chips, kv_bytes_per_token=kv_bytes_per_token * chips, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_computes_on_one_chip(chips, flops, **rest):
    """You used the FLOP/s of one chip. The matmuls are cut over the chips: N·C."""
    return decode_step_time(chips=chips, flops=flops / chips, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_two_byte_weights(weight_bytes, **rest):
    """You set a weight to 2 bytes. Use the argument `weight_bytes`."""
    return decode_step_time(weight_bytes=2, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_one_token_cached(tokens, **rest):
    """You read the cache of one token. Attention reads the keys and values of all tokens of each sequence."""
    return decode_step_time(tokens=1, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_weights_per_sequence(weight_bytes, sequences, **rest):
    """You read the weights once per sequence. The batch shares the weights: count them once per step."""
    return decode_step_time(weight_bytes=weight_bytes * sequences, sequences=sequences, **rest)


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_shorter(**call):
    """You took the shorter of reading the weights and computing with them. The longer of the two sets the time."""
    return three_times(**call)[0] + min(three_times(**call)[1:])


@exercise.misconception(of=decode_step_time, fails=[step_small_batch, step_large_batch])
def step_per_sequence(sequences, **rest):
    """You divided by the sequences. A step makes one token of each sequence at the same time."""
    return decode_step_time(sequences=sequences, **rest) / sequences


@exercise.misconception(of=state_per_chip)
def state_other_recipe(P, N, kept):
    """You used the other recipe's bytes per parameter. With bfloat16 weights a parameter has 2 + 4 + 4 = 10 bytes. With float32 weights it has 4 + 4 + 4 + 4 = 16 bytes."""
    return P * 1e9 * (16 if kept == "bf16" else 10) / N


@exercise.misconception(of=state_per_chip)
def state_weights_only(P, N, kept):
    """You counted the weights only. The optimizer also keeps two moments per parameter."""
    return P * 1e9 * (2 if kept == "bf16" else 4) / N


@exercise.misconception(of=state_per_chip)
def state_in_gib(**params):
    """You divided by 2³⁰, which gives GiB. 1 GB is 10⁹ bytes."""
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
    """Your answer is the cache of one sequence. Every sequence of the batch has its own cache."""
    return cache_of_batch(B=B, **rest) / B


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_in_gib(**params):
    """You divided by 2³⁰, which gives GiB. 1 GB is 10⁹ bytes."""
    return cache_of_batch(**params) * 1e9 / 2**30


def two_steps(chip, P, N, T, B, L, kB, **changed):
    """Return the time of both steps, with the arguments of ``decode_step_time`` in ``changed``."""
    row = CHIPS[chip]
    call = {"params": P * 1e9, "weight_bytes": 1, "kv_bytes_per_token": kB * 1e3, "tokens": T, "chips": N}
    call |= {"flops": row.bf16, "hbm_bandwidth": row.hbm_bw, **changed}
    return sum(decode_step_time(sequences=b, **call) for b in (B, L))


@exercise.misconception(of=decode_step)
def decode_one_cache(chip, P, N, T, B, L, kB):
    """You left out most of the cache. Either you overlapped attention with the arithmetic, or you read the cache of one sequence or one token. Each sequence has its own cache, and reading it does not overlap the matmuls: add its time."""
    weights = two_steps(chip, P, N, T, B, L, kB, kv_bytes_per_token=0)
    return weights + 2 * kB * 1e3 * T / (N * CHIPS[chip].hbm_bw)


@exercise.misconception(of=decode_step)
def decode_two_byte_weights(**params):
    """Either you counted two bytes per weight, or you added reading the weights and computing with them. The weights are int8, and the longer of the two times counts."""
    return two_steps(**params, weight_bytes=2)


@exercise.misconception(of=decode_step)
def decode_never_computes(**params):
    """You left out the arithmetic. For hundreds of sequences 2·B·P FLOPs take longer than reading the weights."""
    return two_steps(**params, flops=1e30)


@exercise.misconception(of=decode_step)
def decode_on_one_chip(N, **rest):
    """You used one chip's bandwidth. Weights and cache are cut over all chips, and all chips read at the same time."""
    return N * decode_step(N=N, **rest)


@exercise.misconception(of=state_per_chip)
def state_moments_only(P, N, kept):
    """You counted the moments only. The weights take memory too. If all is in float32, the gradients also take memory."""
    return P * 8e9 / N


@exercise.misconception(of=state_per_chip)
def state_one_moment(P, N, kept):
    """You left out 4 bytes per parameter. The optimizer keeps two moments, each in float32."""
    return P * 1e9 * (6 if kept == "bf16" else 12) / N


@exercise.misconception(of=state_per_chip)
def state_one_more(P, N, kept):
    """You added a number that this recipe does not keep. The state has 2 + 4 + 4 bytes per parameter with bfloat16 weights, and 4 numbers of 4 bytes in float32."""
    return P * 1e9 * (12 if kept == "bf16" else 20) / N


@exercise.misconception(of=state_per_chip)
def state_two_copies(P, N, kept):
    """You added a copy of the weights in the other dtype. This recipe keeps one copy."""
    return P * 1e9 * (14 if kept == "bf16" else 18) / N


@exercise.misconception(of=state_per_chip)
def state_weights_whole(P, N, kept):
    """You cut the optimizer state over the chips, but not the weights. FSDP cuts both."""
    return P * 1e9 * (2 + 8 / N if kept == "bf16" else 4 + 12 / N)


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_doubled(**params):
    """Your answer is too large by a factor of two. A bfloat16 has two bytes, and a token adds one key and one value per KV head."""
    return 2 * cache_of_batch(**params)


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_all_heads(H, K, **rest):
    """You added query heads and KV heads. Only KV heads are cached."""
    return (H + K) / K * cache_of_batch(H=H, K=K, **rest)


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_one_layer(L, **rest):
    """Your answer is the cache of one layer. Every layer has its own cache."""
    return cache_of_batch(L=L, **rest) / L


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_one_head(K, **rest):
    """Your answer is the cache of one KV head. All KV heads are cached."""
    return cache_of_batch(K=K, **rest) / K


@exercise.misconception(of=cache_of_batch)
def cache_of_batch_one_token(T, **rest):
    """You counted one token of each sequence. The cache holds all tokens."""
    return cache_of_batch(T=T, **rest) / T


def one_step(chip, P, N, T, B, L, kB, sequences):
    """Return the seconds of one step of this number of sequences."""
    row = CHIPS[chip]
    return decode_step_time(
        params=P * 1e9, weight_bytes=1, kv_bytes_per_token=kB * 1e3, sequences=sequences, tokens=T, chips=N,
        flops=row.bf16, hbm_bandwidth=row.hbm_bw,
    )  # fmt: skip


@exercise.misconception(of=decode_step)
def decode_small_batch_only(B, **rest):
    """Your answer is the time of the small batch. The question asks for both steps together."""
    return one_step(B=B, sequences=B, **rest)


@exercise.misconception(of=decode_step)
def decode_one_flop(chip, **rest):
    """Your arithmetic is too fast by a factor of two. Each parameter takes 2 FLOPs per sequence, and the arithmetic is in bfloat16, not in int8."""
    return two_steps(chip=chip, **rest, flops=2 * CHIPS[chip].bf16)


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
