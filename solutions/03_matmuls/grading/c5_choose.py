"""What goes wrong in C5."""

from c5_choose import choose, choose_large_batch, choose_small_batch, exercise, gather_first_total, reduce_last_total
from grader.hardware import all_gather_time, all_reduce_time, matmul_time


@exercise.misconception(of=choose, fails=[choose_small_batch, choose_large_batch])
def choose_by_width(B, D, F, X, flops, bandwidth):
    """You asked whether F < C/W. F divides out of every comparison here; what counts is B against C/W, and D."""
    return 1 if flops / bandwidth <= F else 2


@exercise.misconception(of=choose, fails=choose_large_batch)
def choose_by_bytes(B, D, F, X, flops, bandwidth):
    """You compared only the bytes. With a large batch, strategy 1 is held up by its arithmetic, which every chip does in full."""
    return 2 if 2 * B < D else 1


@exercise.misconception(of=choose, fails=[choose_small_batch, choose_large_batch])
def choose_reduced_once(B, D, F, X, flops, bandwidth):
    """You counted the all-reduce once. It is a reduce-scatter and an all-gather: twice V / W."""
    gather_first = max(2 * B * D * F / flops, 2 * D * F / bandwidth)
    return 1 if gather_first < max(2 * B * D * F / X / flops, 2 * B * F / bandwidth) else 2


@exercise.misconception(of=gather_first_total)
def gather_first_added(chip, B, D, F, X):
    """You added the two times. They overlap, so the longer one counts."""
    return matmul_time(2 * B * D * F, chip) + all_gather_time(2 * D * F, X, chip)


@exercise.misconception(of=gather_first_total)
def gather_first_one_way(chip, B, D, F, X):
    """You used one direction of the link; on a ring data flows both ways."""
    return max(matmul_time(2 * B * D * F, chip), 2 * all_gather_time(2 * D * F, X, chip))


@exercise.misconception(of=reduce_last_total)
def reduce_last_added(chip, B, D, F, X):
    """You added the two times. They overlap, so the longer one counts."""
    return matmul_time(2 * B * D * F / X, chip) + all_reduce_time(2 * B * F, X, chip)


@exercise.misconception(of=reduce_last_total)
def reduce_last_once(chip, B, D, F, X):
    """You counted the all-reduce once. It is a reduce-scatter and an all-gather: twice V / W."""
    return max(matmul_time(2 * B * D * F / X, chip), all_reduce_time(2 * B * F, X, chip) / 2)
