import math

from grader.hardware import CHIPS


def of_one_chip(chip, N, T):
    """fsdp_least_batch: fsdp_batch_per_chip"""
    return CHIPS[chip].bf16 / CHIPS[chip].ici_both / 3


def one_axis(chip, N, T):
    """fsdp_least_batch: fsdp_batch_one_axis"""
    return N * CHIPS[chip].bf16 / CHIPS[chip].ici_both


def by_d(chip, D, F):
    """tensor_most_chips: tensor_by_model_width"""
    return D / (CHIPS[chip].bf16 / CHIPS[chip].ici_both)


def axes_forgotten(B, F, N):
    """best_fsdp_chips: best_fsdp_one_axis"""
    return math.sqrt(B * N / F)


def _times(backward, fsdp, B, D, F, X, Y, MX, MY, C, W):
    arithmetic = (8 if backward else 4) * B * D * F / (X * Y * C)
    weights = (8 if backward else 4 if fsdp else 0) * D * F / (Y * MX * W) if X > 1 else 0.0
    activations = 4 * B * D / (X * MY * W) if Y > 1 else 0.0
    return arithmetic, weights, activations


def backward_like_forward(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """mlp_times: mlp_backward_like_forward"""
    a, w, t = _times(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth)
    return 4 * B * D * F / (X * Y * flops), w, t


def activations_doubled(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """mlp_times: mlp_backward_moves_twice"""
    a, w, t = _times(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth)
    return a, w, 2 * t if backward else t


def data_parallel_gathers(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """mlp_times: mlp_plain_gathers"""
    return _times(backward, True, B, D, F, X, Y, MX, MY, flops, bandwidth)


def lonely_axes_send(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """mlp_times: mlp_lone_chips_send"""
    a, w, t = _times(backward, fsdp, B, D, F, 2, 2, MX, MY, flops, bandwidth)
    return 4 * (1 + backward) * B * D * F / (X * Y * flops), w * 2 / Y, t * 2 / X


def weights_uncut_by_y(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """mlp_times: mlp_whole_weights"""
    a, w, t = _times(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth)
    return a, w * Y, t


def batch_is_local(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """mlp_times: mlp_batch_per_chip"""
    a, w, t = _times(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth)
    return a * X, w, t * X


def torus_axes_ignored(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """mlp_times: mlp_one_axis_each"""
    return _times(backward, fsdp, B, D, F, X, Y, 1, 1, flops, bandwidth)


def axes_exchanged(B, F, N, MX, MY):
    """best_split: split_swapped"""
    splits = [(2**i, N // 2**i) for i in range(N.bit_length())]
    return min(splits, key=lambda s: max(F / (s[0] * MX), B / (s[1] * MY)))


def rounded_optimum(B, F, N, MX, MY):
    """best_split: split_floored"""
    best = (B * N * MX / (F * MY)) ** 0.5
    x = 1
    while 2 * x <= min(best, N):
        x *= 2
    return x, N // x


def times_the_axes(chip, N, F):
    """mixed_least_batch: mixed_not_overlapped"""
    return 2 * (CHIPS[chip].bf16 / CHIPS[chip].ici_both) ** 2 / F


def three_axes_for_each(chip, N, F):
    """mixed_least_batch: mixed_three_axes_each"""
    return (CHIPS[chip].bf16 / CHIPS[chip].ici_both / 3) ** 2 / F


def chips_for_axes(chip, N, F):
    """mixed_least_batch: mixed_chips_for_axes"""
    return (CHIPS[chip].bf16 / CHIPS[chip].ici_both) ** 2 / (N * F)


def one_chips_bound_of_fsdp(chip, N, F):
    """mixed_least_batch: mixed_as_fsdp"""
    return CHIPS[chip].bf16 / CHIPS[chip].ici_both / 2


def all_three_axes(B, F, N):
    """best_fsdp_chips: best_fsdp_three_axes"""
    return math.sqrt(3 * B * N / F)


def axes_outside_the_root(B, F, N):
    """best_fsdp_chips: best_fsdp_four"""
    return 2 * math.sqrt(B * N / F)


def chips_of_one_axis(B, F, N):
    """best_fsdp_chips: best_fsdp_of_one_axis"""
    return math.sqrt(math.sqrt(2 * B * N / F))


def chips_in_place_of_axes(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """mlp_times: mlp_chips_for_axes"""
    return _times(backward, fsdp, B, D, F, X, Y, X, Y, flops, bandwidth)


def times_the_axes_of_the_torus(backward, fsdp, B, D, F, X, Y, MX, MY, flops, bandwidth):
    """mlp_times: mlp_times_axes"""
    return _times(backward, fsdp, B, D, F, X, Y, 1 / MX, 1 / MY, flops, bandwidth)


def split_times_the_axes(B, F, N, MX, MY):
    """best_split: split_axes_swapped"""
    splits = [(2**i, N // 2**i) for i in range(N.bit_length())]
    return min(splits, key=lambda s: max(F * MX / s[1], B * MY / s[0]))
