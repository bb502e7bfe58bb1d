"""Parts that all pictures of a timeline share: the scale, the omitted rounds of loops, and the texts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.clock.timeline import COMPUTE, Loop
from grader.reports import timelines
from grader.wire.operations import KINDS
from tests.timelines import US, looped, ring, span, timeline


@settings(max_examples=60)
@given(rounds=st.integers(1, 10**6), each=st.integers(1, 10**9), head=st.integers(0, 10**6), width=st.floats(20, 2000))
def test_the_scale_goes_from_left_to_right_and_ends_at_the_width(
    rounds: int, each: int, head: int, width: float
) -> None:
    end = head + rounds * each
    drawn = timeline(step=end / US, loops=(Loop(head, end, rounds, each),))
    scale = timelines.scaled(drawn, width, 3)
    times = sorted(t for t in (0, head, head + each, head + 2 * each, end - each, end) if t <= end)
    places = [scale.at(t) for t in times]
    assert places == sorted(places)
    assert scale.at(0) == 0 and scale.at(end) == pytest.approx(max(width, 1 + 3 * len(scale.cuts)))
    ticks = scale.ticks(10)
    assert len(ticks) <= width / 10 + 2
    assert all(b[0] - a[0] >= 10 - 1e-9 for a, b in itertools.pairwise(ticks))


def test_rounds_1_2_and_the_last_are_drawn_and_the_rest_takes_a_gap() -> None:
    drawn = looped(rounds=8, matmul=10, hop=30)
    (cut,) = timelines.cuts(drawn)
    assert (cut.start, cut.end) == ((5 + 2 * 40) * US, (5 + 7 * 40) * US)
    assert timelines.cut_text(cut) == (
        "loop of 8 rounds (line 19): rounds 3 to 7 are left out, because they equal the second round; 40 us each"
    )
    scale = timelines.scaled(drawn, 128, 3)
    assert scale.at(cut.end) - scale.at(cut.start) == pytest.approx(3)
    for s in drawn.spans:
        assert not (cut.start < s.start < cut.end)


def test_three_rounds_leave_nothing_out() -> None:
    assert timelines.cuts(looped(rounds=3)) == ()


def test_inner_rounds_are_left_out_in_each_drawn_round_and_outer_rounds_once() -> None:
    outer = Loop(0, 100 * US, 10, 10 * US)
    inner = [Loop(at * US, (at + 10) * US, 5, 2 * US, inside=((n, 10),)) for n, at in ((1, 0), (2, 10), (5, 40))]
    found = timelines.cuts(timeline(step=100, loops=(outer, *inner)))
    assert [(c.start // US, c.end // US) for c in found] == [(4, 8), (14, 18), (20, 90)]


def test_timelines_on_one_scale_have_equal_widths_for_a_microsecond() -> None:
    short, long = ring(3, 10, 20), ring(7, 10, 40)
    a, b = timelines.alike([short, long], 100, 3)
    assert a.unit == pytest.approx(b.unit) and b.width == pytest.approx(100)
    assert a.width == pytest.approx(100 * short.step / long.step)


def test_every_kind_of_collective_has_a_letter_of_its_own() -> None:
    assert set(KINDS) <= set(timelines.LETTERS)
    assert len(set(timelines.LETTERS.values())) == len(timelines.LETTERS)


def test_totals_show_step_overlapped_part_and_memory() -> None:
    drawn = timeline(
        span(COMPUTE, "matmul", 0, 30, 1), span("x+", "permute", 0, 40, 2, bytes=8), span("x-", "all_gather", 0, 20, 3)
    )
    assert timelines.totals(drawn) == [
        "step 40 us: core busy 30 us, idle 10 us",
        "permute: 10 us overlapped with kernels, 30 us exposed (25% overlapped)",
        "all_gather: 5 us overlapped with kernels, 15 us exposed (25% overlapped)",
        "peak memory in the order drawn, by liveness analysis: 3 MiB (1 MiB arguments, 1 MiB results, 1 MiB temporaries), "
        "dot_general, line 14",
    ]
    assert timelines.where_text(drawn) == "v5e 2x4, x on slice axes 0 and 1, profile ideal"


def test_a_span_in_words() -> None:
    one = span("x+", "permute", 1.5, 40, 2, bytes=1 << 20, line=13, file="e9.py", rounds=((2, 8),))
    assert timelines.describe_span(one) == "permute over x: 1.5 to 40 us, 1 MiB, round 2 of 8, e9.py:13"
    cell = span(COMPUTE, "matmul", 0, 1, flops=1 << 20, line=3, file="cell 4")
    assert timelines.describe_span(cell) == "dot_general: 0 to 1 us, 1,048,576 FLOPs, cell 4, line 3"


def test_spans_too_narrow_to_see_are_drawn_once() -> None:
    tiny = [span("x+", "permute", k, k + 1, k) for k in range(1000)]
    wide = span("x+", "permute", 1000, 2000, 1000)
    drawn = timeline(*tiny, wide)
    found = timelines.bars(drawn, "x+", timelines.scaled(drawn, 700, 3))
    merged = timelines.merged(found, 1.5)
    assert [b.span.what for b in merged] == ["several permutes", "permute over x"]
    assert (merged[0].start, merged[0].end) == (found[0].start, found[999].end)
