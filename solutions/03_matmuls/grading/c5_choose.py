"""Misconceptions of C5."""

from jax.sharding import PartitionSpec as P

from c5_choose import choose, choose_large_batch, choose_small_batch, exercise, gather_first_total, reduce_last_total
from grader.exercise import Scenario, larger
from grader.hardware import all_gather_time, all_reduce_time, latency, matmul_time


@exercise.misconception(
    of=choose, fails=[choose_small_batch, choose_large_batch], breaks="batches smaller than `flops` / `bandwidth`"
)
def choose_by_width(B, D, F, X, flops, bandwidth):
    """You compared F with C/W. F cancels when you compare the two times: B, D, X and C/W decide."""
    return 1 if flops / bandwidth <= F else 2


@exercise.misconception(of=choose, fails=choose_large_batch, breaks="batches larger than `flops` / `bandwidth`")
def choose_by_bytes(B, D, F, X, flops, bandwidth):
    """You compared only the bytes. With a large batch the arithmetic limits strategy 1, because every chip does all of it."""
    return 2 if 2 * B < D else 1


@exercise.misconception(
    of=choose, fails=[choose_small_batch, choose_large_batch], breaks="batches smaller than `flops` / `bandwidth`"
)
def choose_by_threshold(B, D, F, X, flops, bandwidth):
    """You compared B with C/W. This comparison shows whether arithmetic limits strategy 1, not which strategy is faster. D and X count too."""
    return 1 if flops / bandwidth <= B else 2


@exercise.misconception(
    of=choose, fails=[choose_small_batch, choose_large_batch], breaks="batches smaller than `flops` / `bandwidth`"
)
def choose_reduced_once(B, D, F, X, flops, bandwidth):
    """You counted the all-reduce as one pass. An all-reduce is a reduce-scatter and an all-gather: twice V / W."""
    gather_first = max(2 * B * D * F / flops, 2 * D * F / bandwidth)
    return 1 if gather_first < max(2 * B * D * F / X / flops, 2 * B * F / bandwidth) else 2


def gather_first(chip, batches, D, F, X, total=max, links=2):
    """Return the first strategy's time: ``total`` combines the arithmetic and communication of each batch."""
    gathered = all_gather_time(2 * D * F, X, chip) * 2 / links
    return sum(total((matmul_time(2 * B * D * F, chip), gathered)) for B in batches)


def reduce_last(chip, B, D, F, X, total=max, passes=2):
    """Return the second strategy's time for its two layers."""
    arithmetic = matmul_time(2 * B * D * F / X, chip)
    return sum(total((arithmetic, all_reduce_time(2 * B * n, X, chip) * passes / 2)) for n in (F, D))


@exercise.misconception(of=gather_first_total)
def gather_first_added(chip, B, L, **layer):
    """You added the arithmetic time and the communication time. The two overlap: take the longer time."""
    return gather_first(chip, (B, L), **layer, total=sum)


@exercise.misconception(of=gather_first_total)
def gather_first_one_way(chip, B, L, **layer):
    """You used one direction of the link. On a ring data flows both ways."""
    return gather_first(chip, (B, L), **layer, links=1)


@exercise.misconception(of=gather_first_total)
def gather_first_communication(chip, B, L, D, F, X):
    """You counted the communication only. With a large batch the arithmetic takes longer than the overlapped all-gather."""
    return 2 * all_gather_time(2 * D * F, X, chip)


@exercise.misconception(of=gather_first_total)
def gather_first_arithmetic(chip, B, L, D, F, X):
    """You counted the arithmetic only. With a small batch the all-gather takes longer than the overlapped matmul."""
    return matmul_time(2 * (B + L) * D * F, chip)


@exercise.misconception(of=reduce_last_total)
def reduce_last_added(**layers):
    """You added the arithmetic time and the communication time. The two overlap: take the longer time."""
    return reduce_last(**layers, total=sum)


@exercise.misconception(of=reduce_last_total)
def reduce_last_once(**layers):
    """You counted each all-reduce as one pass. An all-reduce is a reduce-scatter and an all-gather: twice V / W."""
    return reduce_last(**layers, passes=1)


@exercise.misconception(of=reduce_last_total)
def reduce_last_communication(chip, B, D, F, X):
    """You counted the communication only. The second matmul's arithmetic takes longer than the all-reduce of its small partial sum."""
    return all_reduce_time(2 * B * (D + F), X, chip)


exercise.scenario(
    gather_first_total,
    lambda chip, B, L, D, F, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((D, F), P("x"))], least=2 * latency(X),
        branches=tuple(
            larger(arithmetic=matmul_time(2 * b * D * F, chip), gather=all_gather_time(2 * D * F, X, chip))
            for b in (B, L)
        ),
    ),
)  # fmt: skip
exercise.scenario(
    reduce_last_total,
    lambda chip, B, D, F, X: Scenario(
        chip=chip, rings=(X,), mesh={"x": X}, arrays=[((D, F), P("x")), ((F, D), P("x"))], least=2 * latency(X),
        branches=tuple(
            larger(arithmetic=matmul_time(2 * B * D * F / X, chip), reduce=all_reduce_time(2 * B * n, X, chip))
            for n in (F, D)
        ),
    ),
)  # fmt: skip
