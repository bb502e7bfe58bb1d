def half_a_cache(layers, query_heads, kv_heads, head_dim, itemsize, sequences, tokens):
    """kv_cache_bytes: cache_keys_only"""
    return layers * kv_heads * head_dim * itemsize * sequences * tokens


def all_heads(layers, query_heads, kv_heads, head_dim, itemsize, sequences, tokens):
    """kv_cache_bytes: cache_of_query_heads"""
    return 2 * layers * query_heads * head_dim * itemsize * sequences * tokens


def one_layer(layers, query_heads, kv_heads, head_dim, itemsize, sequences, tokens):
    """kv_cache_bytes: cache_of_one_layer"""
    return 2 * kv_heads * head_dim * itemsize * sequences * tokens


def one_text(layers, query_heads, kv_heads, head_dim, itemsize, sequences, tokens):
    """kv_cache_bytes: cache_of_one_sequence"""
    return 2 * layers * kv_heads * head_dim * itemsize * tokens


def weights_alone(P, N, kept):
    """state_per_chip: state_weights_only"""
    return P * 1e9 * {"bf16": 2, "f32": 4}[kept] / N


def not_cut(P, N, kept):
    """state_per_chip: state_on_every_chip"""
    return P * 1e9 * {"bf16": 10, "f32": 16}[kept]


def no_values(L, H, K, T, B):
    """cache_of_batch: cache_of_batch_half"""
    return L * K * 128 * 2 * T * B


def by_query_heads(L, H, K, T, B):
    """cache_of_batch: cache_of_batch_query_heads"""
    return 2 * L * H * 128 * 2 * T * B
