"""Budgets that ``explain`` suggests for programs. The programs pass the suggested checks, and costlier programs fail."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader import expect
from grader.authoring.budgets import check_lines, formula
from grader.common.intervals import Interval
from grader.common.observation import Collective, Seen
from grader.expect import Failure
from grader.reports.explained import Explained
from tests.seen import collective
from tests.timelines import ring as ring_in_time

MESHES = [{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8, "y": 1}]
SIZES = [{"I": 24, "J": 32, "K": 40}, {"I": 21, "J": 40, "K": 24}]


def program(
    mesh: Mapping[str, int],
    dims: Mapping[str, int],
    collectives: Sequence[Collective] = (),
    dots: float = 0,
    memory: int = 0,
) -> Explained:
    seen = Seen(mesh, collectives=list(collectives))
    flops = Interval.of(dots)
    return Explained("e", "f", mesh, dims, (), (), collectives, seen.traffic, memory, flops, flops)


def ring(mesh: Mapping[str, int], dims: Mapping[str, int]) -> Explained:
    """Return a program with N - 1 hops of a shard, and a matmul."""
    n, shard = mesh["x"], 4 * dims["I"] * dims["J"] // mesh["x"]
    hops = collective("permute", "x", sent=shard, count=n - 1, bytes=shard)
    return program(mesh, dims, [hops], 2 * math.prod(dims.values()) / n, 4 * dims["J"] * dims["K"])


def test_suggested_lines_express_amounts_by_axes_and_dimensions() -> None:
    programs = [ring(mesh, dims) for mesh in MESHES for dims in SIZES]
    assert check_lines(programs) == [
        'expect_collectives(seen, permute={"x": seen.mesh["x"] - 1})',
        'expect_traffic(seen, at_most=4 * seen.dims["I"] * seen.dims["J"] * (seen.mesh["x"] - 1) / seen.mesh["x"])',
        'expect_flops(seen, at_most=2 * seen.dims["I"] * seen.dims["J"] * seen.dims["K"] / seen.mesh["x"])',
    ]


@pytest.mark.parametrize("line", range(3))
def test_a_suggested_line_passes_its_programs_and_fails_one_more_round(line: int) -> None:
    programs = [ring(mesh, dims) for mesh in MESHES for dims in SIZES]
    text = check_lines(programs)[line]
    for p in programs:
        words = vars(expect) | {"seen": as_seen(p)}
        eval(text, words)
        hop = p.collectives[0]
        more = dataclasses.replace(hop, rounds=hop.rounds + 1, sent=hop.sent + 1)
        with pytest.raises(Failure):
            eval(text, words | {"seen": as_seen(p, [more], 1)})


def as_seen(p: Explained, collectives: Sequence[Collective] | None = None, extra: int = 0) -> Seen:
    found = list(p.collectives if collectives is None else collectives)
    dots = p.dot_flops + extra
    return Seen(p.mesh, p.dims, collectives=found, memory=p.memory + extra, flops=dots, dot_flops=dots)


def test_lines_forbid_absent_collectives_and_omit_amounts_without_a_formula() -> None:
    assert check_lines([program(mesh, dims) for mesh in MESHES for dims in SIZES]) == ["expect_collectives(seen)"]
    odd = [program(mesh, dims, memory=1000 + 7 * i) for i, mesh in enumerate(MESHES) for dims in SIZES]
    assert check_lines(odd) == ["expect_collectives(seen)"]
    assert check_lines([]) == []


def test_a_suggested_line_ignores_axes_of_one_device_as_the_check_does() -> None:
    def one(mesh: Mapping[str, int]) -> Explained:
        return program(mesh, SIZES[0], [collective("all_reduce", "y")] if mesh["y"] > 1 else [])

    assert check_lines([one(mesh) for mesh in MESHES])[0] == 'expect_collectives(seen, all_reduce={"y": 1})'


def test_joint_axes_get_one_line_and_groups_of_some_devices_none() -> None:
    joint = [program(m, SIZES[0], [collective("all_gather", "x", "y", sent=m["x"])]) for m in MESHES[:2]]
    assert check_lines(joint)[0] == 'expect_collectives(seen, all_gather={("x", "y"): 1})'
    pairs = [program(m, SIZES[0], [collective("all_gather", "x", sent=0, partial=True)]) for m in MESHES]
    assert check_lines(pairs) == []


def test_a_collective_of_unknown_count_gets_no_suggested_line() -> None:
    unknown = [program(m, SIZES[0], [collective("permute", "x", count=None, sent=0)]) for m in MESHES]
    assert check_lines(unknown) == []


@settings(max_examples=40)
@given(
    factor=st.integers(1, 64),
    above=st.sets(st.sampled_from("IJK")),
    below=st.sets(st.sampled_from("xy")),
    less=st.sampled_from(["", "x", "y"]),
)
def test_formula_expresses_any_product_of_sizes(factor: int, above: set[str], below: set[str], less: str) -> None:
    """The text may differ from the expected formula, but its values must be equal."""
    programs = [program(mesh, dims) for mesh in MESHES[:2] for dims in SIZES]

    def value(p: Explained) -> float:
        size = factor * math.prod(p.dims[d] for d in above) / math.prod(p.mesh[a] for a in below)
        return size * (p.mesh[less] - 1 if less else 1)

    text = formula(programs, [value(p) for p in programs])
    assert text
    for p in programs:
        assert eval(text, {"seen": as_seen(p)}) == pytest.approx(value(p))


def test_timing_calls_get_time_budgets_and_change_no_other_line() -> None:
    right, late = ring_in_time(7, 41.9, 41.9), ring_in_time(7, 5.4, 41.9)
    hidden = dataclasses.replace(
        right, collectives=tuple(dataclasses.replace(c, overlapped=c.each, exposed=0) for c in right.collectives)
    )
    timed = [dataclasses.replace(program(MESHES[0], SIZES[0]), ran=False, timeline=t) for t in (hidden, hidden)]
    lines = ["expect_step_time(seen, at_most=336e-6)", 'expect_overlap(seen, "permute", work=0.0003352)']
    assert check_lines(timed) == lines
    for line in lines:
        seen = Seen({}, clock=lambda **_: hidden)
        eval(line, vars(expect) | {"seen": seen})
    usual = [ring(mesh, dims) for mesh in MESHES for dims in SIZES]
    assert check_lines([*usual, *timed]) == check_lines(usual) + lines
    exposed = dataclasses.replace(
        late, collectives=tuple(dataclasses.replace(c, overlapped=0, exposed=c.each) for c in late.collectives)
    )
    assert check_lines([dataclasses.replace(timed[0], timeline=exposed)]) == ["expect_step_time(seen, at_most=299e-6)"]
    assert check_lines([dataclasses.replace(timed[0], timeline=None, untimed="no")]) == []
