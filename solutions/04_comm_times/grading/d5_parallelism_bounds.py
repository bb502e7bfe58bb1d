"""Checks and misconceptions of D5."""

import math

from d5_parallelism_bounds import (
    best_fsdp_chips,
    best_split,
    dcn_least_batch,
    exercise,
    fsdp_least_batch,
    mixed_least_batch,
    mlp_times,
    tensor_most_chips,
)
from grader.exercise import Scenario
from grader.expect import expect_outcomes
from grader.hardware import CHIPS, link_intensity


def layer(backward, fsdp, B=524_288, D=8192, F=32_768, X=64, Y=4, MX=2, MY=1, flops=4.59e14, bandwidth=1.8e11):
    return {
        "backward": backward, "fsdp": fsdp, "B": B, "D": D, "F": F, "X": X, "Y": Y, "MX": MX, "MY": MY,
        "flops": flops, "bandwidth": bandwidth,
    }  # fmt: skip


def drawn(rng, backward, fsdp):
    for turn in range(120):
        chip = CHIPS[str(rng.choice(["v4p", "v5p", "v5e"]))]
        X, Y = (int(2 ** rng.integers(1, 9)) for _ in "XY")
        X, Y = [(X, Y), (X, 1), (1, Y)][turn % 6 if turn % 6 < 3 else 0]  # each scheme alone, and often both
        B, D, F = (int(rng.integers(3, 60)) * unit for unit in (8192, 256, 1024))
        MX, MY = [(1, 1), (2, 1), (1, 2)][turn % 3]
        yield layer(backward, fsdp, B, D, F, X, Y, MX, MY, chip.bf16, chip.ici_both)


forward = exercise.cases(
    mlp_times,
    public=[layer(False, True), layer(False, True, X=256, Y=1, MX=3), layer(False, True, X=1, Y=8)],
    hidden=lambda rng: drawn(rng, False, True),
)
backward = exercise.cases(
    mlp_times,
    public=[layer(True, True), layer(True, True, X=1, Y=8)],
    hidden=lambda rng: [*drawn(rng, True, True), layer(False, True)],
)
plain = exercise.cases(
    mlp_times,
    public=[layer(False, False), layer(True, False)],
    hidden=lambda rng: [*drawn(rng, False, False), *drawn(rng, True, False)],
)
splits = exercise.cases(
    best_split,
    public=[{"B": 3_000_000, "F": 32_768, "N": 4096, "MX": 2, "MY": 1}, {"B": 48_000, "F": 30_000, "N": 64, "MX": 1, "MY": 1}],
    hidden=lambda rng: [
        {"B": int(10 ** rng.uniform(1, 8)), "F": int(rng.integers(5, 60)) * 1023, "N": int(N), "MX": MX, "MY": MY}
        for N in rng.choice([32, 64, 256, 1024, 4096], 60)
        for MX, MY in [(2, 1), (1, 1), (1, 2)]
    ],
)  # fmt: skip


@exercise.check(forward, points=0.5, public=True)
def mlp_forward(seen):
    """mlp_times: the forward pass with FSDP, tensor parallelism and both"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(backward, points=0.5)
def mlp_backward(seen):
    """mlp_times: the backward pass with FSDP, tensor parallelism and both"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(plain, points=0.25)
def mlp_plain(seen):
    """mlp_times: plain data parallelism, with and without tensor parallelism"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(splits, points=0.75, public=True)
def split_best(seen):
    """best_split: X and Y for small and large batches, widths and meshes"""
    expect_outcomes(seen)


PASSES = [mlp_forward, mlp_backward, mlp_plain]


@exercise.misconception(of=mlp_times, fails=PASSES, breaks="the forward pass with FSDP, tensor parallelism and both")
def mlp_one_flop(**call):
    """You counted one FLOP per term of a matmul. Each term needs a multiplication and an addition: two FLOPs."""
    arithmetic, weights, activations = mlp_times(**call)
    return arithmetic / 2, weights, activations


@exercise.misconception(of=mlp_times, fails=PASSES, breaks="B: tokens in the *global* batch")
def mlp_batch_per_chip(X, B, **rest):
    """You took B as the batch of one chip. B is the global batch, and x has already cut it."""
    return mlp_times(X=X, B=B * X, **rest)


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_repeated_along_y(Y, **rest):
    """You divided the arithmetic by X only. Along y each chip computes only its own part of F."""
    arithmetic, weights, activations = mlp_times(Y=Y, **rest)
    return arithmetic * Y, weights, activations


@exercise.misconception(
    of=mlp_times, fails=[mlp_backward, mlp_plain], breaks="the backward pass with FSDP, tensor parallelism and both"
)
def mlp_backward_like_forward(**call):
    """You gave the backward pass the forward pass's FLOPs. It has twice as many: gradients of the inputs and of the weights."""
    arithmetic, weights, activations = mlp_times(**call)
    return arithmetic / (2 if call["backward"] else 1), weights, activations


@exercise.misconception(
    of=mlp_times, fails=mlp_plain, breaks="plain data parallelism, with and without tensor parallelism"
)
def mlp_plain_gathers(fsdp, **rest):
    """You let plain data parallelism gather weights in the forward pass. Every chip holds whole weights: only gradients travel."""
    return mlp_times(fsdp=True, **rest)


@exercise.misconception(of=mlp_times, fails=PASSES, breaks="the forward pass with FSDP, tensor parallelism and both")
def mlp_whole_weights(Y, **rest):
    """You moved all of the weights over x. y has already cut them: 1/Y of them travels."""
    arithmetic, weights, activations = mlp_times(Y=Y, **rest)
    return arithmetic, weights * Y, activations


@exercise.misconception(of=mlp_times, fails=PASSES, breaks="along an axis of 1 nothing moves: 0")
def mlp_lone_chips_send(backward, fsdp, D, Y, B, X, MX, MY, bandwidth, **rest):
    """You sent weights or activations along an axis of one chip. It has no other chip to send to: the time is 0."""
    call = {"B": B, "D": D, "MX": MX, "MY": MY, "bandwidth": bandwidth, "backward": backward, "fsdp": fsdp, **rest}
    arithmetic, _, _ = mlp_times(X=X, Y=Y, **call)
    weights = mlp_times(X=max(X, 2), Y=Y, **call)[1]
    return arithmetic, weights, 4 * B * D / X / (MY * bandwidth)


@exercise.misconception(
    of=best_split, fails=split_best, breaks="`best_split`: X and Y for small and large batches, widths and meshes"
)
def split_swapped(**call):
    """You swapped X and Y. x cuts the batch and, with FSDP, the weights. y is tensor-parallel."""
    return best_split(**call)[::-1]


@exercise.misconception(
    of=best_split, fails=split_best, breaks="minimize the longer of the times of weights (FSDP) and activations"
)
def split_one_axis_each(MX, MY, **rest):
    """You left out MX and MY. A mesh axis made of two torus axes has twice the bandwidth."""
    return best_split(MX=1, MY=1, **rest)


@exercise.misconception(of=best_split, fails=split_best, breaks="minimize the longer of the times")
def split_data_only(N, **rest):
    """You gave all chips to FSDP. With a small batch each chip computes little, and that no longer overlaps the time of the weights: use y too."""
    return N, 1


@exercise.misconception(of=fsdp_least_batch)
def fsdp_batch_per_chip(N, **rest):
    """That is the batch of one chip. The question asks for the global batch, of all chips."""
    return fsdp_least_batch(N=N, **rest) / N


@exercise.misconception(of=fsdp_least_batch)
def fsdp_batch_in_sequences(T, **rest):
    """You counted sequences. This question counts the batch in tokens."""
    return fsdp_least_batch(T=T, **rest) / T


@exercise.misconception(of=fsdp_least_batch)
def fsdp_batch_one_axis(**params):
    """You used the links of one axis. FSDP over three axes has 3·W."""
    return 3 * fsdp_least_batch(**params)


@exercise.misconception(of=fsdp_least_batch)
def fsdp_batch_doubled(**params):
    """Your answer is too large by a factor of two. A matmul has 2 FLOPs per term, the backward pass has twice the forward pass's FLOPs, and W is both directions."""
    return 2 * fsdp_least_batch(**params)


@exercise.misconception(of=tensor_most_chips)
def tensor_by_model_width(chip, D, F):
    """You used D. The activations that travel are B·D, and the arithmetic is B·D·F: D cancels, F stays."""
    return D / link_intensity(chip)


@exercise.misconception(of=tensor_most_chips)
def tensor_halved(**params):
    """Your answer is too small by a factor of two. A matmul has 2 FLOPs per term, and W is both directions of the link."""
    return tensor_most_chips(**params) / 2


@exercise.misconception(of=mixed_least_batch)
def mixed_as_fsdp(chip, N, F):
    """That is the bound of FSDP alone. Tensor parallelism divides the weights that travel by Y."""
    return link_intensity(chip) / 2


@exercise.misconception(of=mixed_least_batch)
def mixed_global(N, **rest):
    """That is the global batch. The question asks for the tokens of one chip."""
    return N * mixed_least_batch(N=N, **rest)


@exercise.misconception(of=mixed_least_batch)
def mixed_one_axis(**params):
    """You left out the torus axes. FSDP over two of them has 2·W."""
    return 2 * mixed_least_batch(**params)


@exercise.misconception(of=mixed_least_batch)
def mixed_not_overlapped(**params):
    """Your answer is too large by a factor of four. Weights and activations overlap, so do not add their times. W is both directions."""
    return 4 * mixed_least_batch(**params)


@exercise.misconception(of=best_fsdp_chips)
def best_tensor_chips(B, F, N):
    """That is Y, the tensor-parallel axis. The question asks for X = N / Y."""
    return N / best_fsdp_chips(B=B, F=F, N=N)


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_one_axis(**params):
    """You left out the torus axes. FSDP has two of them, tensor parallelism one."""
    return best_fsdp_chips(**params) / math.sqrt(2)


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_batch_per_chip(B, F, N):
    """You used the batch of one chip. B is the global batch."""
    return math.sqrt(B * 2 / F)


@exercise.misconception(of=dcn_least_batch)
def dcn_one_slice(P, **rest):
    """That is the batch of one slice. The question asks for the batch of all slices."""
    return dcn_least_batch(P=P, **rest) / P


@exercise.misconception(of=dcn_least_batch)
def dcn_per_chip(n, **rest):
    """You took C / W_dcn as the batch of one chip. The gradients leave a slice once, over the network of all its chips."""
    return n * dcn_least_batch(n=n, **rest)


@exercise.misconception(of=dcn_least_batch)
def dcn_over_ici(chip, dcn, P, n):
    """You used the links inside a slice. Only the data-centre network connects slices."""
    return P * link_intensity(chip)


@exercise.misconception(of=dcn_least_batch)
def dcn_in_bits(**params):
    """Your answer is too large by a factor of eight. The network's GB/s are bytes, not bits."""
    return 8 * dcn_least_batch(**params)


def slice_of(chip, N, **_):
    return Scenario(chip=chip, mesh={"n": N})


exercise.scenario(fsdp_least_batch, slice_of, published=[850, 2550, 3.48e6])
exercise.scenario(tensor_most_chips, lambda **_: Scenario(), published=[11, 11.8, 12.8])
exercise.scenario(mixed_least_batch, slice_of, published=[99, 235, 396])
exercise.scenario(best_fsdp_chips, lambda B, F, N: slice_of("v5p", N), published=[13.7, 13.9, 1333])
exercise.scenario(dcn_least_batch, lambda chip, dcn, P, n: slice_of(chip, n), published=[71_360, 73_440])
