"""Checks on time: which programs pass, which fail, and with which message."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.clock import Untimed, timeline
from grader.common.intervals import UNKNOWN, Interval
from grader.common.observation import Seen, Timing
from grader.expect import (
    Failure,
    clock,
    expect_bubble,
    expect_memory,
    expect_overlap,
    expect_step_time,
    laid_out,
    memory_of,
    show_time,
)
from grader.wire.operations import Operations
from tests.clock.programs import read
from tests.clock.test_closed_forms import late_in_loop, permute_waits, ring

ON = Timing("v5e:2x4")
N = 8


def matmul(local: Callable, rows: int, columns: int = 4096) -> Operations:
    """Return the operations of a body with two matrices as arguments. Each operation has its line."""
    shapes = [((N * rows, 4096), P("x", None)), ((4096, columns), P())]
    return read(local, shapes, P(None, "x", None), files={matmul.__code__.co_filename, ring.__code__.co_filename})


def seen(operations: Operations | None, timing: Timing | None = ON, **more) -> Seen:
    return Seen({"x": 8}, operations=operations, timing=timing, clock=partial(laid_out, operations, timing), **more)


def told(word: Callable, *args, **kwargs) -> Failure:
    with pytest.raises(Failure) as failure:
        word(*args, **kwargs)
    return failure.value


def local_ring(a, w):
    parts = []
    for k in range(N):
        if k < N - 1:
            arriving = lax.ppermute(a, "x", [(i, (i + 1) % N) for i in range(N)])
        parts.append(a @ w)
        a = arriving
    return jnp.stack(parts)


def test_a_ring_with_enough_work_overlaps_its_hops() -> None:
    for rows in (256, 2048):
        right = seen(matmul(local_ring, rows))
        expect_overlap(right, "permute", at_least=0.9, work=right.timeline.busy / 1e12)


def test_a_ring_bound_by_hops_passes_with_all_possible_overlap() -> None:
    """The matmuls take a fifteenth of the permutes' time, and run completely beside the permutes."""
    bound = seen(matmul(local_ring, 2048, columns=256))
    assert 0.06 < bound.timeline.shares()["permute"].part < 0.07
    expect_overlap(bound, "permute", at_least=0.7, work=bound.timeline.busy / 1e12)


def exchanged(a, w):
    """Exchange the first and the last row with the neighbours, then add each row to the rows above and below it."""
    del w
    above, below = _halos(a)
    return (_shifted(a, above, below) + a)[None]


def split(a, w):
    """Compute the inner rows during the exchange, then copy them into the result. The exchange overlaps, but the step is longer."""
    del w
    above, below = _halos(a)
    inside, a = lax.optimization_barrier((a[:-2] + a[1:-1] + a[2:], a))
    return jnp.concatenate([a[:1] + above + a[1:2], inside, a[-1:] + below + a[-2:-1]])[None]


def _halos(a):
    return (lax.ppermute(row, "x", [(i, (i + s) % N) for i in range(N)]) for row, s in ((a[-1:], 1), (a[:1], -1)))


def _shifted(a, above, below):
    return jnp.concatenate([above, a[:-1]]) + jnp.concatenate([a[1:], below])


def test_a_slower_halo_exchange_never_scores_higher() -> None:
    fast, slow = (seen(matmul(local, 8192)).timeline for local in (exchanged, split))
    assert fast.step < slow.step and fast.talking("permute") == slow.talking("permute")
    assert fast.shares()["permute"].part < slow.shares()["permute"].part == 1
    for work in (fast.busy, fast.step, slow.busy):
        assert fast.gained("permute", work) >= slow.gained("permute", work)
    assert slow.gained("permute", fast.busy) == 0


def both_kinds(beside: str, a, w):
    """Overlap a permute of a few rows or a longer gather with the matmul. The other collective waits for the matmul."""

    def permute(rows):
        return lax.ppermute(rows, "x", [(i, (i + 1) % N) for i in range(N)])

    def gather(rows):
        return lax.all_gather(rows, "x")

    rows, columns, matmul = a[:512], w[:256], a @ w
    first = permute(rows) if beside == "permute" else gather(columns)
    rows, columns, first, matmul = lax.optimization_barrier((rows, columns, first, matmul))
    return matmul[None], first[None], gather(columns) if beside == "permute" else permute(rows)[None]


def test_exposed_time_of_other_kinds_lengthens_the_step() -> None:
    shapes, out = [((N * 2048, 4096), P("x", None)), ((4096, 4096), P())], (P("x"), P("x"), P("x"))
    permute, gather = (
        timeline(read(partial(both_kinds, beside), shapes, out), "v5e:2x4") for beside in ("permute", "all_gather")
    )
    assert permute.talking("permute") == gather.talking("permute") and permute.step > gather.step
    for work in (permute.matmuls, permute.matmuls // 2, permute.step):
        assert permute.gained("permute", work) <= gather.gained("permute", work)


def test_wasted_matmuls_do_not_raise_the_overlap_score() -> None:
    """The second ring does each matmul twice. Its permutes overlap more, but its step is longer."""

    def twice(a, w):
        return local_ring(a, jnp.concatenate([w, w], 1))[..., : w.shape[1]]

    right, wasteful = (seen(matmul(local, 256)).timeline for local in (local_ring, twice))
    assert right.step < wasteful.step and right.shares()["permute"].part < wasteful.shares()["permute"].part
    assert right.gained("permute", right.matmuls) >= wasteful.gained("permute", right.matmuls)


def test_a_late_step_without_exposed_permutes_blames_the_kernels() -> None:
    right = seen(matmul(local_ring, 512, columns=8192))
    line = right.timeline
    assert line.shares()["permute"].exposed == 0 and line.step == line.busy
    failure = told(expect_overlap, right, "permute", work=line.busy * 0.9 / 1e12)
    took = f"kernels take {show_time(line.busy)}, the core is idle for 0 ps"
    assert (
        failure.reason.startswith(f"each permute fully overlaps with compute, but {took}. Compute takes ")
        and failure.where == ""
    )


def test_overlap_uses_the_compilers_idle_time_and_the_clocks_work_time() -> None:
    program = matmul(local_ring, 2048)
    clock = seen(program).timeline
    work = clock.busy / 1e12
    copies = dataclasses.replace(clock, step=3 * clock.step, busy=3 * clock.busy + 2 * clock.idle)
    expect_overlap(seen(program, chip=lambda: copies), "permute", work=work)
    waits = dataclasses.replace(clock, step=clock.step + clock.talking("permute"))
    reason = told(expect_overlap, seen(program, chip=lambda: waits), "permute", work=work).reason
    assert (
        f"The step takes {show_time(waits.step)} in the compiler's order (ideal), so the program's overlap saves 0%"
        in reason
    )
    assert "this permute waits for" not in reason
    nothing = dataclasses.replace(clock, collectives=())
    assert told(expect_overlap, seen(program, chip=lambda: nothing), "permute", work=work).reason == (
        "the program has no permute that takes time in the compiler's order (ideal)"
    )

    def untimed():
        raise Untimed("no times", None, 7)

    assert told(expect_overlap, seen(program, chip=untimed), "permute", work=work).reason == "line 7: no times"


@pytest.mark.parametrize("local", [permute_waits, late_in_loop])
def test_a_permute_that_waits_for_work_is_exposed(local: Callable) -> None:
    failure = told(expect_overlap, seen(matmul(local, 2048)), "permute", at_least=0.5, work=1e-3)
    assert (
        "permute over x takes 372.83 us" in failure.reason
        and "so the program's overlap saves 0% of the time that full overlap would save. The check requires 50%"
        in failure.reason
    )
    # A loop of seven permutes
    assert (
        "Compute takes 1 ms, and permutes take 2.6098 ms: 3.6098 ms without overlap, 2.6098 ms with full overlap. "
        in failure.reason
    )
    assert failure.where.startswith("line ") and "\n" not in failure.reason
    assert failure.reason.startswith(f"nothing can overlap: {failure.where}: permute over x takes ")


def tiny_matmuls(a, w):
    """Send shards around a ring, and multiply only one number in each round."""
    parts = []
    for k in range(N):
        arriving = lax.ppermute(a, "x", [(i, (i + 1) % N) for i in range(N)]) if k < N - 1 else a
        parts.append(a[:1, :1] @ w[:1, :1])
        a = arriving
    return jnp.stack(parts)


def half_of_the_columns(a, w):
    return local_ring(a, w[:, : w.shape[1] // 2])


def test_a_program_with_nearly_no_compute_has_nothing_that_can_overlap() -> None:
    """The step of such a program is short because work is missing. The check must not count this time as overlap."""
    right = seen(matmul(local_ring, 2048))
    work = right.timeline.busy / 1e12
    for local, much in ((tiny_matmuls, "nothing"), (half_of_the_columns, "too little")):
        small = seen(matmul(local, 2048))
        assert small.timeline.gained("permute", right.timeline.busy) >= 0.9
        reason = told(expect_overlap, small, "permute", at_least=0.9, work=work).reason
        takes = show_time(small.timeline.busy)
        assert reason.startswith(
            f"{much} can overlap: kernels and collectives other than permutes take {takes}; the check"
        )


def test_time_that_missing_work_saves_is_no_overlap() -> None:
    """The check allows 10 % more work than this program has. Its permute waits for its matmul, so nothing overlaps."""

    def last(a, w):
        return lax.ppermute((a @ w)[:8], "x", [(i, (i + 1) % N) for i in range(N)])[None]

    program = seen(matmul(last, 2048))
    work = 1.1 * program.timeline.busy
    assert program.timeline.gained("permute", round(work)) == 1
    assert not program.timeline.overlaps("permute")
    reason = told(expect_overlap, program, "permute", work=work / 1e12).reason
    assert reason.startswith("nothing can overlap: line ")
    assert "overlap saves 0% of the time that full overlap would save" in reason


def test_collectives_of_other_kinds_can_overlap_too() -> None:
    """The program has only a permute over x and a gather over y. They can run at the same time."""

    def gathered(a, w):
        return lax.ppermute(a, "x", [(0, 1), (1, 0)]), lax.all_gather(w, "y", tiled=True)

    shapes, out = [((2 * 2048, 4096), P("x", None)), ((4096, 4096), P("y"))], (P("x"), P())
    line = timeline(read(gathered, shapes, out, mesh={"x": 2, "y": 4}), "v5e:2x4")
    gather = next(c for c in line.collectives if c.kind == "all_gather")
    assert line.beside("permute") == gather.each > line.busy == line.shares()["permute"].overlapped == 0
    assert line.overlaps("permute") and line.overlaps("all_gather")
    expect_overlap(Seen({"x": 2, "y": 4}, clock=lambda **_: line, timing=ON), "permute", work=gather.each / 1e12)


def test_the_message_says_which_operation_an_exposed_permute_waits_for() -> None:
    reason = told(expect_overlap, seen(matmul(permute_waits, 2048)), "permute", work=1e-3).reason
    assert ": this permute waits for dot_general, line" in reason and "dot_general, line" in reason.split(", and ")[1]
    reason = told(expect_overlap, seen(matmul(late_in_loop, 2048)), "permute", work=1e-3).reason
    assert (
        "372.83 us, 7 times, and 372.83 us of this time are exposed, without compute beside it: this permute waits for nothing"
        in reason
    )


def test_expect_overlap_fails_without_a_collective_of_that_kind() -> None:
    assert (
        told(expect_overlap, seen(matmul(ring, 256)), "all_gather", work=1e-3).reason
        == "the program has no all_gather that takes time"
    )


def test_wrong_arguments_of_expect_overlap_are_the_authors_fault() -> None:
    for kind, part, work in (("ppermute", 0.9, 1), ("permute", 0.0, 1), ("permute", 1.1, 1), ("permute", 0.9, 0)):
        with pytest.raises(
            ValueError, match=r"expect_overlap: .* at_least must be above 0 and at most 1; work must be above 0"
        ):
            expect_overlap(seen(matmul(ring, 256)), kind, at_least=part, work=work)


def test_expect_step_time_fails_above_its_budget() -> None:
    right, late = seen(matmul(local_ring, 2048)), seen(matmul(permute_waits, 2048))
    budget = 1.05 * right.timeline.step / 1e12
    expect_step_time(right, at_most=budget)
    reason = told(expect_step_time, late, at_most=budget).reason
    assert (
        reason.startswith("the step takes ")
        and " on v5e:2x4, the budget is " in reason
        and "the core is idle for" in reason
    )


def test_an_ordinary_call_needs_a_slice_for_its_timeline() -> None:
    program = matmul(local_ring, 256)
    ordinary = seen(program, None)
    assert ordinary.clock(on="v5e:2x4").step == seen(program).timeline.step
    expect_overlap(ordinary, "permute", at_least=0.8, on="v5e:2x4", work=ordinary.clock(on="v5e:2x4").matmuls / 1e12)
    with pytest.raises(ValueError, match="name the slice, as in on="):
        ordinary.clock()
    with pytest.raises(ValueError, match="this check has no program, so the clock cannot compute a timeline"):
        _ = Seen({}).timeline


def test_a_program_without_a_timeline_fails_with_its_line() -> None:
    def local(a, w):
        return lax.while_loop(lambda a: a[0, 0] < 9, lambda a: a * 2, a)[None]

    failure = told(lambda: seen(matmul(local, 256)).timeline)
    assert failure.where.startswith("line ") and failure.reason.startswith(
        f"{failure.where}: a loop's number of rounds"
    )
    assert "too many operations for a timeline" in told(lambda: seen(None).timeline).reason


def test_expect_bubble_measures_the_share_of_discarded_work() -> None:
    """In GPipe with 4 stages and 8 microbatches, each stage computes in 11 ticks. It discards the results of 3 ticks."""
    each = 100
    of = partial(Seen, {"x": 4})
    expect_bubble(of(dot_flops=Interval.of(11 * each)), useful=4 * 8 * each, at_most=3 / 11)
    failure = told(expect_bubble, of(dot_flops=Interval.of(12 * each)), useful=4 * 8 * each, at_most=3 / 11)
    assert failure.reason.startswith(
        "33.3% of the matmul FLOPs are discarded, the budget is 27.3%. 4 devices spend 4800 FLOPs"
    )
    assert "cannot be read" in told(expect_bubble, of(dot_flops=UNKNOWN), useful=1, at_most=0.5).reason


def test_a_program_that_computes_less_than_needed_fails_expect_bubble() -> None:
    of = partial(Seen, {"x": 4})
    for each in (0, 799):
        failure = told(expect_bubble, of(dot_flops=Interval.of(each)), useful=4 * 800, at_most=0.5)
        assert failure.reason.endswith("FLOPs on matmuls, but 3200 are needed; is part of the work missing?")
    expect_bubble(of(dot_flops=Interval.of(800)), useful=4 * 800, at_most=0)


def test_other_arithmetic_has_the_matmul_budget_in_expect_bubble() -> None:
    of = partial(Seen, {"x": 4}, dot_flops=Interval.of(800))
    expect_bubble(of(flops=Interval.of(800 + 1600)), useful=4 * 800, at_most=0.5)
    failure = told(expect_bubble, of(flops=Interval.of(800 + 1601)), useful=4 * 800, at_most=0.5)
    assert failure.reason == "each device spends 1,601 FLOPs besides matmuls, the budget is 1,600"
    assert "cannot be read" in told(expect_bubble, of(flops=UNKNOWN), useful=4 * 800, at_most=0.5).reason


def test_expect_memory_can_use_the_program_or_the_clock() -> None:
    program = matmul(local_ring, 2048)
    least = memory_of(seen(program)).peak
    expect_memory(seen(program, None), at_most=least, by="program")
    expect_memory(seen(program), at_most=seen(program).timeline.memory.peak, by="clock")
    failure = told(expect_memory, seen(program), at_most=least - 1, by="program")
    assert failure.reason.startswith("the program holds ") and " of arguments, " in failure.reason
    arguments = memory_of(seen(program)).arguments
    expect_memory(seen(program), at_most=least - arguments, by="program", arguments=False)
    failure = told(expect_memory, seen(program), at_most=least - arguments - 1, by="program", arguments=False)
    assert " per device at once beside its arguments, the budget is " in failure.reason
    assert " of arguments, " not in failure.reason and failure.actual == least - arguments
    with pytest.raises(ValueError, match="a timing call is not compiled"):
        expect_memory(seen(program), at_most=1)
    with pytest.raises(ValueError, match="by='xla' is unknown: write one of compiler, program, clock"):
        expect_memory(seen(program), at_most=1, by="xla")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("time", "text"), [(0, "0 ps"), (7, "7 ps"), (1500, "1.5 ns"), (298969989, "298.97 us"), (1_2345_000_000, "12.345 ms")]
)  # fmt: skip
def test_show_time_prints_a_time_with_its_unit(time: int, text: str) -> None:
    assert show_time(time) == text


def test_each_program_has_one_timeline_for_all_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(clock, "timeline", lambda *a, **k: made.append(a) or timeline(*a, **k))
    one, other = matmul(local_ring, 256), matmul(permute_waits, 256)
    assert seen(one).timeline is seen(one).timeline and seen(one).clock(profile="v5p") is not seen(one).timeline
    assert seen(other).timeline.step > seen(one).timeline.step and len(made) == 3
    for n in range(10):  # Python may reuse a deleted program's id, but the cache must not
        steps = [seen(matmul(local, 128)).timeline.step for local in (local_ring, permute_waits)]
        assert steps[0] < steps[1], n
