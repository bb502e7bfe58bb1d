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
        # 1 case of 6 has FSDP alone, 1 of 6 tensor parallelism alone, the other cases both
        X, Y = [(X, Y), (X, 1), (1, Y)][turn % 6 if turn % 6 < 3 else 0]
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
    public=[{"B": 3_000_000, "F": 32_768, "N": 4096, "MX": 2, "MY": 1}, {"B": 48_000, "F": 30_000, "N": 64, "MX": 1, "MY": 1}, {"B": 2_400_000, "F": 32_768, "N": 1024, "MX": 1, "MY": 2}],
    hidden=lambda rng: [
        {"B": int(10 ** rng.uniform(1, 8)), "F": int(rng.integers(5, 60)) * 1023, "N": int(N), "MX": MX, "MY": MY}
        for N in rng.choice([32, 64, 256, 1024, 4096], 60)
        for MX, MY in [(2, 1), (1, 1), (1, 2)]
    ],
)  # fmt: skip


@exercise.check(forward, points=0.5, public=True)
def mlp_forward(seen):
    """mlp_times: the forward pass with FSDP, with tensor parallelism, and with both"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(backward, points=0.5)
def mlp_backward(seen):
    """mlp_times: the backward pass with FSDP, with tensor parallelism, and with both"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(plain, points=0.25)
def mlp_plain(seen):
    """mlp_times: plain data parallelism, with and without tensor parallelism"""
    expect_outcomes(seen, rtol=1e-6)


@exercise.check(splits, points=0.75, public=True)
def split_best(seen):
    """best_split: X and Y for small and large batches, widths and meshes"""
    expect_outcomes(seen, ints=True)


PASSES = [mlp_forward, mlp_backward, mlp_plain]


@exercise.misconception(
    of=mlp_times, fails=PASSES, breaks="the forward pass with FSDP, with tensor parallelism, and with both"
)
def mlp_one_flop(**call):
    """You counted one FLOP per term of a matmul. Each term needs a multiplication and an addition: two FLOPs."""
    arithmetic, weights, activations = mlp_times(**call)
    return arithmetic / 2, weights, activations


@exercise.misconception(of=mlp_times, fails=PASSES, breaks="B: tokens in the *global* batch")
def mlp_batch_per_chip(X, B, **rest):
    """You took B as the batch of one chip. B is the global batch; a chip has B / X of it."""
    return mlp_times(X=X, B=B * X, **rest)


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_repeated_along_y(Y, **rest):
    """You divided the arithmetic by X only. Along y each chip computes only its own part of F."""
    arithmetic, weights, activations = mlp_times(Y=Y, **rest)
    return arithmetic * Y, weights, activations


@exercise.misconception(
    of=mlp_times,
    fails=[mlp_backward, mlp_plain],
    breaks="the backward pass with FSDP, with tensor parallelism, and with both",
)
def mlp_backward_like_forward(**call):
    """You gave the backward pass the forward pass's FLOPs. The backward pass has twice as many: gradients of the inputs and of the weights."""
    arithmetic, weights, activations = mlp_times(**call)
    return arithmetic / (2 if call["backward"] else 1), weights, activations


@exercise.misconception(
    of=mlp_times, fails=mlp_plain, breaks="plain data parallelism, with and without tensor parallelism"
)
def mlp_plain_gathers(fsdp, **rest):
    """You let plain data parallelism gather weights in the forward pass. Every chip holds whole weights: only gradients travel."""
    return mlp_times(fsdp=True, **rest)


@exercise.misconception(
    of=mlp_times, fails=PASSES, breaks="the forward pass with FSDP, with tensor parallelism, and with both"
)
def mlp_whole_weights(Y, **rest):
    """You moved all of the weights over x. y has already cut them: 1/Y of them travels."""
    arithmetic, weights, activations = mlp_times(Y=Y, **rest)
    return arithmetic, weights * Y, activations


@exercise.misconception(of=mlp_times, fails=PASSES, breaks="0 along an axis of one chip")
def mlp_lone_chips_send(backward, fsdp, D, Y, B, X, MX, MY, bandwidth, **rest):
    """You sent weights or activations along an axis of one chip. This chip has no other chip to send to: the time is 0."""
    call = {"B": B, "D": D, "MX": MX, "MY": MY, "bandwidth": bandwidth, "backward": backward, "fsdp": fsdp, **rest}
    arithmetic, _, _ = mlp_times(X=X, Y=Y, **call)
    weights = mlp_times(X=max(X, 2), Y=Y, **call)[1]
    return arithmetic, weights, 4 * B * D / X / (MY * bandwidth)


@exercise.misconception(of=mlp_times, fails=PASSES, breaks="the table")
def mlp_not_shared(X, Y, **rest):
    """You did not divide the arithmetic. x cuts the batch and y cuts F, so a chip computes 1/(X·Y) of it."""
    arithmetic, weights, activations = mlp_times(X=X, Y=Y, **rest)
    return arithmetic * X * Y, weights, activations


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_whole_batch(X, **rest):
    """You moved the activations of the global batch. x has already cut them: 1/X of them travels."""
    arithmetic, weights, activations = mlp_times(X=X, **rest)
    return arithmetic, weights, activations * X


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_axes_swapped(MX, MY, **rest):
    """You swapped MX and MY. Weights travel along x, over MX torus axes, and activations along y, over MY."""
    return mlp_times(MX=MY, MY=MX, **rest)


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_one_axis_each(MX, MY, **rest):
    """You left out MX and MY. A mesh axis made of two torus axes has twice the bandwidth."""
    return mlp_times(MX=1, MY=1, **rest)


@exercise.misconception(of=mlp_times, fails=mlp_backward)
def mlp_weights_once(backward, fsdp, **rest):
    """You moved the weights of FSDP once in the backward pass. FSDP gathers the weights again and
    reduce-scatters their gradients: 8·D·F / (Y·MX·W)."""
    arithmetic, weights, activations = mlp_times(backward=backward, fsdp=fsdp, **rest)
    return arithmetic, weights / (2 if backward and fsdp else 1), activations


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_activations_once(**call):
    """You moved the activations once. Chips gather the activations before the layer and reduce-scatter them after it:
    4·B·D / (X·MY·W)."""
    arithmetic, weights, activations = mlp_times(**call)
    return arithmetic, weights, activations / 2


@exercise.misconception(of=mlp_times, fails=mlp_plain)
def mlp_plain_without_gradients(fsdp, **rest):
    """You moved nothing over x in plain data parallelism. In the backward pass, an all-reduce adds the gradients of the weights: 8·D·F bytes, cut by y."""
    arithmetic, weights, activations = mlp_times(fsdp=fsdp, **rest)
    return arithmetic, weights if fsdp else 0.0, activations


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_four_byte_weights(**call):
    """You counted four bytes for a weight. A bfloat16 has two bytes."""
    arithmetic, weights, activations = mlp_times(**call)
    return arithmetic, weights * 2, activations


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_repeated_along_x(X, **rest):
    """You divided the arithmetic by Y only. B is the global batch, and along x each chip computes only its own B / X tokens."""
    arithmetic, weights, activations = mlp_times(X=X, **rest)
    return arithmetic * X, weights, activations


@exercise.misconception(of=mlp_times, fails=[mlp_backward, mlp_plain])
def mlp_backward_without_activations(backward, **rest):
    """You moved no activations in the backward pass. There too, chips gather and reduce-scatter [B, D] once over y: 4·B·D / (X·MY·W)."""
    arithmetic, weights, activations = mlp_times(backward=backward, **rest)
    return arithmetic, weights, 0.0 if backward else activations


@exercise.misconception(of=mlp_times, fails=mlp_plain)
def mlp_plain_backward_once(backward, fsdp, **rest):
    """You counted one pass of the gradients. The all-reduce of plain data parallelism is a reduce-scatter and an all-gather: 8·D·F bytes."""
    arithmetic, weights, activations = mlp_times(backward=backward, fsdp=fsdp, **rest)
    return arithmetic, weights / (1 if fsdp else 2), activations


@exercise.misconception(of=mlp_times, fails=[mlp_backward, mlp_plain])
def mlp_backward_moves_twice(backward, **rest):
    """You doubled the activations in the backward pass. In this pass too, chips gather the activations once and reduce-scatter them once: 4·B·D / (X·MY·W)."""
    arithmetic, weights, activations = mlp_times(backward=backward, **rest)
    return arithmetic, weights, activations * (2 if backward else 1)


@exercise.misconception(of=mlp_times, fails=mlp_backward)
def mlp_backward_weights_three(backward, fsdp, **rest):
    """You gathered the weights twice in the backward pass. FSDP gathers the weights once and reduce-scatters their gradients once: 8·D·F / (Y·MX·W)."""
    arithmetic, weights, activations = mlp_times(backward=backward, fsdp=fsdp, **rest)
    return arithmetic, weights * (1.5 if backward and fsdp else 1), activations


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_order(**call):
    """You swapped weights and activations. Return `(arithmetic, weights, activations)`."""
    arithmetic, weights, activations = mlp_times(**call)
    return arithmetic, activations, weights


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_longest_only(**call):
    """You returned the longest of the three times. Return all three."""
    return max(mlp_times(**call))


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_lone_x_sends(X, **rest):
    """You moved weights along an x axis of one chip. This chip has no other chip to send to: the time is 0."""
    arithmetic, _, activations = mlp_times(X=X, **rest)
    return arithmetic, mlp_times(X=max(X, 2), **rest)[1], activations


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_lone_y_sends(Y, **rest):
    """You moved activations along a y axis of one chip. This chip has no other chip to send to: the time is 0."""
    arithmetic, weights, _ = mlp_times(Y=Y, **rest)
    return arithmetic, weights, mlp_times(Y=max(Y, 2), **rest)[2]


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_one_way(bandwidth, **rest):
    """You halved the bandwidth. `bandwidth` is W, a link's rate in both directions."""
    return mlp_times(bandwidth=bandwidth / 2, **rest)


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_exact(X, Y, **rest):
    """You used (N-1)/N of the bytes. This table's model is V / (M·W)."""
    arithmetic, weights, activations = mlp_times(X=X, Y=Y, **rest)
    return arithmetic, weights * (X - 1) / X, activations * (Y - 1) / Y


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_chips_for_axes(X, Y, MX, MY, **rest):
    """You used the chips along x and y in place of MX and MY. A chip has links along each torus axis, so only the number of torus axes multiplies the bandwidth."""
    return mlp_times(X=X, Y=Y, MX=X, MY=Y, **rest)


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_times_axes(MX, MY, **rest):
    """You multiplied the times by MX and MY. Over more torus axes the data travel faster: divide."""
    return mlp_times(MX=1 / MX, MY=1 / MY, **rest)


@exercise.misconception(of=mlp_times, fails=PASSES)
def mlp_weights_cut_by_x(X, **rest):
    """You divided the weights by X. The all-gather along x joins these parts: only y cuts what travels."""
    arithmetic, weights, activations = mlp_times(X=X, **rest)
    return arithmetic, weights / X, activations


@exercise.misconception(of=mlp_times, fails=mlp_plain)
def mlp_plain_whole_weights(Y, fsdp, **rest):
    """With plain data parallelism you moved all gradients over x. y cuts the weights there too: 1/Y of them travels."""
    arithmetic, weights, activations = mlp_times(Y=Y, fsdp=fsdp, **rest)
    return arithmetic, weights * (1 if fsdp else Y), activations


@exercise.misconception(
    of=best_split, fails=split_best, breaks="`best_split`: X and Y for small and large batches, widths and meshes"
)
def split_swapped(**call):
    """You swapped X and Y. x cuts the batch and, with FSDP, the weights. y is tensor-parallel."""
    return best_split(**call)[::-1]


@exercise.misconception(of=best_split, fails=split_best, breaks="the forward times of weights (FSDP) and activations")
def split_one_axis_each(MX, MY, **rest):
    """You left out MX and MY. A mesh axis made of two torus axes has twice the bandwidth."""
    return best_split(MX=1, MY=1, **rest)


@exercise.misconception(of=best_split, fails=split_best, breaks="minimize max(F/(Y·MX), B/(X·MY))")
def split_data_only(N, **rest):
    """You gave all chips to FSDP. With a small batch the weights' time is longer than a chip's arithmetic: use y too."""
    return N, 1


def summed(B, F, X, Y, MX, MY):
    """Return the sum of the times of weights and activations; along an axis of 1 nothing moves."""
    return (F / (Y * MX) if X > 1 else 0) + (B / (X * MY) if Y > 1 else 0)


def balanced(B, F, N, MX, MY, rounded):
    """Return the X at which both times are equal, rounded to a power of two, and its Y."""
    X = 2 ** min(max(rounded(math.log2(math.sqrt(B * N * MX / (F * MY)))), 0), N.bit_length() - 1)
    return X, N // X


@exercise.misconception(of=best_split, fails=split_best)
def split_sum(B, F, N, MX, MY):
    """You minimized the sum of the two times. The two overlap: minimize the longer time."""
    return min(((2**k, N >> k) for k in range(N.bit_length())), key=lambda split: summed(B, F, *split, MX, MY))


@exercise.misconception(of=best_split, fails=split_best)
def split_floored(**call):
    """Either you rounded the best X down to a power of two, or you let the weights travel twice, as in the backward pass. Compare the longer of the two forward times at each power of two."""
    return balanced(**call, rounded=math.floor)


@exercise.misconception(of=best_split, fails=split_best)
def split_axes_swapped(MX, MY, **rest):
    """Either you swapped MX and MY, or you multiplied the times by them. Weights travel along x: divide their time by MX. Activations travel along y: divide their time by MY."""
    return best_split(MX=MY, MY=MX, **rest)


@exercise.misconception(of=best_split, fails=split_best)
def split_whole_weights(B, F, N, MX, MY):
    """Your time of the weights does not depend on Y. y cuts the weights: F / (Y·MX)."""
    X = min((2**k for k in range(N.bit_length())), key=lambda X: max(F / MX, B / (X * MY)))
    return X, N // X


@exercise.misconception(of=best_split, fails=split_best)
def split_shorter(B, F, N, MX, MY):
    """You minimized the shorter of the two times. The longer time counts."""
    X = min((2**k for k in range(N.bit_length())), key=lambda X: min(F * X / N / MX, B / (X * MY)))
    return X, N // X


@exercise.misconception(of=best_split, fails=split_best)
def split_width_and_batch_swapped(B, F, **rest):
    """You swapped B and F. x cuts the batch B, y cuts the width F."""
    return best_split(B=F, F=B, **rest)


@exercise.misconception(of=best_split, fails=split_best)
def split_square(N, **rest):
    """You made X and Y about equal. The best split depends on B and F: compare the times."""
    X = 2 ** ((N.bit_length() - 1) // 2)
    return X, N // X


@exercise.misconception(of=best_split, fails=split_best)
def split_inside(N, **rest):
    """You tried no split with X = 1 or Y = 1. Tensor parallelism alone and FSDP alone are splits too."""
    X = min(max(best_split(N=N, **rest)[0], 2), N // 2)
    return X, N // X


@exercise.misconception(of=best_split, fails=split_best)
def split_floats(**call):
    """You returned floats. X and Y are numbers of chips: return ints."""
    X, Y = best_split(**call)
    return float(X), float(Y)


@exercise.misconception(of=fsdp_least_batch)
def fsdp_batch_per_chip(N, **rest):
    """Your answer is the batch of one chip. The question asks for the global batch, of all chips."""
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
    """Your answer is too large by a factor of two. The backward pass has twice the FLOPs and twice the bytes of the forward pass. A bfloat16 has 2 bytes. W counts both directions."""
    return 2 * fsdp_least_batch(**params)


@exercise.misconception(of=tensor_most_chips)
def tensor_by_model_width(chip, D, F):
    """You used D. The activations that travel grow with B·D, and the arithmetic grows with B·D·F: D cancels, F stays."""
    return D / link_intensity(chip)


@exercise.misconception(of=tensor_most_chips)
def tensor_halved(**params):
    """Your answer is too small by a factor of two. A matmul has 2 FLOPs per term, and W counts both directions of the link."""
    return tensor_most_chips(**params) / 2


@exercise.misconception(of=mixed_least_batch)
def mixed_as_fsdp(chip, N, F):
    """Your answer is the bound of FSDP alone. With tensor parallelism only 1/Y of the weights travels."""
    return link_intensity(chip) / 2


@exercise.misconception(of=mixed_least_batch)
def mixed_global(N, **rest):
    """Your answer is the global batch. The question asks for the tokens of one chip."""
    return N * mixed_least_batch(N=N, **rest)


@exercise.misconception(of=mixed_least_batch)
def mixed_one_axis(**params):
    """You left out the torus axes. FSDP over two torus axes has 2·W."""
    return 2 * mixed_least_batch(**params)


@exercise.misconception(of=mixed_least_batch)
def mixed_not_overlapped(**params):
    """Your answer is too large by a factor of four. Divide by the torus axes, MX · MY: you may have multiplied. Weights and activations overlap, so do not add their times. W counts both directions."""
    return 4 * mixed_least_batch(**params)


@exercise.misconception(of=best_fsdp_chips)
def best_tensor_chips(B, F, N):
    """Your answer is Y, the tensor-parallel axis. The question asks for X = N / Y."""
    return N / best_fsdp_chips(B=B, F=F, N=N)


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_one_axis(**params):
    """You left out the torus axes. FSDP has two torus axes, and tensor parallelism has one."""
    return best_fsdp_chips(**params) / math.sqrt(2)


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_batch_per_chip(B, F, N):
    """You used the batch of one chip. B is the global batch."""
    return math.sqrt(B * 2 / F)


@exercise.misconception(of=dcn_least_batch)
def dcn_one_slice(P, **rest):
    """Your answer is the batch of one slice. The question asks for the batch of all slices."""
    return dcn_least_batch(P=P, **rest) / P


@exercise.misconception(of=dcn_least_batch)
def dcn_per_chip(n, **rest):
    """You took C / W_dcn as the batch of one chip. It is the batch of one slice: the gradients leave a slice once, over the network links of all its chips."""
    return n * dcn_least_batch(n=n, **rest)


@exercise.misconception(of=dcn_least_batch)
def dcn_over_ici(chip, dcn, P, n):
    """You used the links inside a slice. Only the data-centre network connects slices."""
    return P * link_intensity(chip)


@exercise.misconception(of=dcn_least_batch)
def dcn_in_bits(**params):
    """Your answer is too large by a factor of eight. The network's GB/s are bytes, not bits."""
    return 8 * dcn_least_batch(**params)


@exercise.misconception(of=fsdp_least_batch)
def fsdp_batch_sequences_of_tokens(T, **rest):
    """You multiplied by the tokens of a sequence. The bound is already in tokens."""
    return T * fsdp_least_batch(T=T, **rest)


@exercise.misconception(of=fsdp_least_batch)
def fsdp_batch_of_one_chip_and_axis(N, **rest):
    """Your answer is the batch of one chip, with the links of one axis. FSDP over three axes has 3·W, and the question asks for the global batch."""
    return 3 * fsdp_least_batch(N=N, **rest) / N


@exercise.misconception(of=fsdp_least_batch)
def fsdp_batch_times_axes(**params):
    """You multiplied by the number of axes. Over three axes the weights travel three times as fast, so divide by 3."""
    return 9 * fsdp_least_batch(**params)


@exercise.misconception(of=fsdp_least_batch)
def fsdp_batch_by_two_axes(**params):
    """You used the links of two axes. FSDP over three axes has 3·W."""
    return 1.5 * fsdp_least_batch(**params)


@exercise.misconception(of=tensor_most_chips)
def tensor_doubled(**params):
    """Your answer is too large by a factor of two. The all-gather and the reduce-scatter each move the activations once. An activation has 2 bytes. W counts both directions of the link."""
    return 2 * tensor_most_chips(**params)


@exercise.misconception(of=tensor_most_chips)
def tensor_ratio_alone(chip, D, F):
    """Your answer is C/W. The bound is F divided by C/W."""
    return link_intensity(chip)


@exercise.misconception(of=tensor_most_chips)
def tensor_three_axes(**params):
    """You used the links of three torus axes. y is a ring of one torus axis."""
    return 3 * tensor_most_chips(**params)


@exercise.misconception(of=tensor_most_chips)
def tensor_both_widths(chip, D, F):
    """You added D and F. The activations that travel grow with B·D, and the arithmetic grows with B·D·F: D cancels."""
    return (D + F) / link_intensity(chip)


@exercise.misconception(of=mixed_least_batch)
def mixed_alone(chip, N, F):
    """Your answer is C/W, the bound of FSDP alone on one axis. FSDP has two axes here, and tensor parallelism divides the weights that travel."""
    return link_intensity(chip)


@exercise.misconception(of=mixed_least_batch)
def mixed_three_axes_fsdp(chip, N, F):
    """Your answer is the bound of FSDP alone on three axes. With tensor parallelism only 1/Y of the weights travels."""
    return link_intensity(chip) / 3


@exercise.misconception(of=mixed_least_batch)
def mixed_axes_added(**params):
    """You added 2 axes and 1 axis. The bound has the product of both counts, 2 · 1, not their sum, 3."""
    return 2 / 3 * mixed_least_batch(**params)


@exercise.misconception(of=mixed_least_batch)
def mixed_two_axes_each(**params):
    """You gave two axes to tensor parallelism too. Tensor parallelism has one axis."""
    return mixed_least_batch(**params) / 2


@exercise.misconception(of=mixed_least_batch)
def mixed_three_axes_each(**params):
    """You gave all three axes to both FSDP and tensor parallelism. FSDP has two axes, and tensor parallelism has the third."""
    return 2 / 9 * mixed_least_batch(**params)


@exercise.misconception(of=mixed_least_batch)
def mixed_chips_for_axes(N, **rest):
    """You divided by the number of chips. The bound has the number of torus axes, MX · MY, and already counts the tokens of one chip."""
    return 2 / N * mixed_least_batch(N=N, **rest)


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_three_axes(**params):
    """You counted three torus axes. FSDP has two of them, and tensor parallelism has the third: MX / MY = 2."""
    return math.sqrt(3 / 2) * best_fsdp_chips(**params)


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_of_one_axis(**params):
    """Your answer is the number of chips along one torus axis. X counts all chips along the FSDP axis, which has two torus axes."""
    return math.sqrt(best_fsdp_chips(**params))


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_axes_upside_down(**params):
    """You divided by the number of axes. Over more axes the weights travel faster, so the best X is larger: multiply."""
    return best_fsdp_chips(**params) / 2


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_four(**params):
    """You counted the two axes twice. Divide the time of weights by 2 and the time of activations by 1: X² = 2 · N · (tokens) / F."""
    return math.sqrt(2) * best_fsdp_chips(**params)


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_squared(**params):
    """Your answer is X². Take the square root."""
    return best_fsdp_chips(**params) ** 2


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_width_upside_down(B, F, N):
    """You swapped the batch and F. A larger batch has more activations, so it needs more chips along x."""
    return math.sqrt(2 * N * F / B)


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_square(B, F, N):
    """You made X and Y equal. At the best X the times of weights and activations are equal."""
    return math.sqrt(N)


@exercise.misconception(of=dcn_least_batch)
def dcn_one_slice_per_chip(P, n, **rest):
    """Your answer is the batch of one slice, with the network of one chip. All chips of a slice send, and the question asks for all slices."""
    return n * dcn_least_batch(P=P, n=n, **rest) / P


@exercise.misconception(of=dcn_least_batch)
def dcn_half(**params):
    """Your answer is too small by a factor of two. The bandwidth in the question is one way, and an all-reduce is two passes."""
    return dcn_least_batch(**params) / 2


@exercise.misconception(of=dcn_least_batch)
def dcn_doubled(**params):
    """Your answer is too large by a factor of two. The backward pass has 4 FLOPs per weight and token, and a bfloat16 has 2 bytes."""
    return 2 * dcn_least_batch(**params)


@exercise.misconception(of=dcn_least_batch)
def dcn_other_slices(P, **rest):
    """You left one slice out. The all-reduce runs over all slices, and the batch counts the tokens of all slices."""
    return (P - 1) / P * dcn_least_batch(P=P, **rest)


@exercise.misconception(of=dcn_least_batch)
def dcn_shared_by_chips(n, **rest):
    """You divided by the chips of a slice. A slice's FLOPs and its bandwidth both grow with its chips, so the number of chips cancels."""
    return dcn_least_batch(n=n, **rest) / n


def slice_of(chip, N, **_):
    return Scenario(chip=chip, mesh={"n": N})


exercise.scenario(fsdp_least_batch, slice_of, published=[850, 2550, 3.48e6])
exercise.scenario(tensor_most_chips, lambda **_: Scenario(), published=[11, 11.8, 12.8])
exercise.scenario(mixed_least_batch, slice_of, published=[99, 235, 396])
exercise.scenario(best_fsdp_chips, lambda B, F, N: slice_of("v5p", N), published=[13.7, 13.9, 1333])
exercise.scenario(dcn_least_batch, lambda chip, dcn, P, n: slice_of(chip, n), published=[71_360, 73_440])


@exercise.misconception(of=tensor_most_chips)
def tensor_rounded_to_a_power(**params):
    """You rounded to a power of two. The question asks for the number that is not rounded."""
    return 2 ** math.floor(math.log2(tensor_most_chips(**params)))


@exercise.misconception(of=best_fsdp_chips)
def best_fsdp_rounded_to_a_power(**params):
    """You rounded to a power of two. The question asks for the number that is not rounded."""
    return 2 ** round(math.log2(best_fsdp_chips(**params)))
