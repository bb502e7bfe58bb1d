"""Timelines of compiled programs. Order and cycles come from the compiler, times of communication from the clock."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from grader.clock import Share, Slice, Timeline, Untimed, placed, replayed
from grader.clock.collectives import duration
from grader.hardware import CHIPS
from grader.hardware.cores import CORES, core_of, slice_name
from grader.wire.operations import Communication
from grader.wire.schedule import Instruction, Schedule

ON = "v5e:2x4"
HZ = 1.5e9
W1 = 4.5e10
RING = tuple((i, (i + 1) % 8) for i in range(8))
SENT = 4_500_000  # bytes: 100 us over one link
US = 1_000_000


def matmul(us: float) -> Instruction:
    return Instruction("matmul", "dot_general", cycles=round(us * HZ / 1e6), flops=1000)


def kernel(us: float) -> Instruction:
    return Instruction("kernel", "copy", cycles=round(us * HZ / 1e6))


def start(number: int = 0, kind: str = "permute", op: str = "start") -> Instruction:
    groups = RING if kind == "permute" else (tuple(range(8)),)
    return Instruction(op, kind, number=number, communication=Communication(kind, groups, ("x",), SENT), line=7)


def done(number: int = 0) -> Instruction:
    return Instruction("done", "", number=number)


def laid(*instructions: Instruction) -> Timeline:
    return replayed(Schedule({"x": 8}, instructions, 10, 20, 30), ON)


def test_a_permute_with_a_longer_matmul_between_start_and_done_is_overlapped() -> None:
    line = laid(start(), matmul(150), done(), matmul(50))
    assert (line.step, line.busy, line.matmuls) == (200 * US, 200 * US, 200 * US)
    assert line.shares() == {"permute": Share(100 * US, 0)}
    assert line.flops == 2000


def test_the_core_waits_for_a_permute_longer_than_the_matmul_beside_it() -> None:
    line = laid(start(), matmul(40), done(), matmul(50))
    assert line.step == 150 * US and line.idle == 60 * US
    assert line.shares() == {"permute": Share(40 * US, 60 * US)}


def test_a_permute_without_work_between_start_and_done_is_exposed() -> None:
    line = laid(matmul(50), start(), done(), matmul(50))
    assert line.step == 200 * US and line.shares() == {"permute": Share(0, 100 * US)}


def test_a_collective_without_start_and_done_is_exposed() -> None:
    line = laid(start(kind="all_gather", op="collective"), matmul(50))
    (gather,) = line.collectives
    assert gather.overlapped == 0 and line.step == gather.each + 50 * US


def test_a_link_carries_one_permute_after_the_other() -> None:
    line = laid(start(0), start(1), matmul(150), done(0), done(1))
    assert line.step == 200 * US
    assert [c.overlapped for c in line.collectives] == [100 * US, 50 * US]


def test_rounds_of_a_loop_do_not_overlap() -> None:
    body = (start(), done(), matmul(50))
    line = laid(Instruction("loop", "while", rounds=7, bodies=(body,), line=3))
    assert line.step == 7 * 150 * US and line.matmuls == 350 * US
    (permute,) = line.collectives
    assert (permute.runs, permute.exposed) == (7, 700 * US)
    (loop,) = line.loops
    assert (loop.rounds, loop.each, loop.line) == (7, 150 * US, 3)
    assert {span.rounds for span in line.spans} == {((1, 7),), ((2, 7),), ((7, 7),)}


def test_the_longest_branch_of_a_conditional_counts() -> None:
    line = laid(Instruction("branches", "conditional", bodies=((matmul(10),), (matmul(90),))))
    assert line.step == 90 * US


def test_a_kernel_without_cycles_takes_as_long_as_its_bytes() -> None:
    line = laid(Instruction("kernel", "copy", bytes=820_000_000))
    assert line.step == pytest.approx(1e9) and line.matmuls == 0


def test_a_loop_of_unknown_rounds_has_no_time() -> None:
    with pytest.raises(Untimed, match="how often this loop runs") as told:
        laid(Instruction("loop", "while", bodies=((matmul(1),),), line=12))
    assert told.value.line == 12


def test_memory_is_the_sum_that_the_compiler_reports() -> None:
    schedule = Schedule({"x": 8}, (matmul(1),), 100, 50, 30, aliased=40, by="a compiler")
    line = replayed(schedule, ON)
    assert (line.memory.peak, line.profile) == (140, "a compiler")


def test_the_span_of_a_permute_is_on_the_link_that_it_uses() -> None:
    line = laid(start(), matmul(150), done())
    assert [(s.lane, s.kind, s.start, s.end) for s in line.spans] == [
        ("compute", "matmul", 0, 150 * US), ("x+", "permute", 0, 100 * US),
    ]  # fmt: skip


@pytest.mark.parametrize("chip", CORES)
def test_cycles_and_matrix_units_give_the_tables_peak_rate(chip: str) -> None:
    assert CORES[chip].flops == pytest.approx(CHIPS[chip].bf16, rel=0.01)


@pytest.mark.parametrize(
    ("given", "name"),
    [("v4:2x2x2", "v4p:2x2x2"), ("TPU v5e:2X4", "v5e:2x4"), (" v6e:2x4", "v6e:2x4"), ("tpu7x:2x2x1", "7x:2x2x1")],
)
def test_slice_name_understands_other_names_of_a_slice(given: str, name: str) -> None:
    assert slice_name(given) == name


def test_a_chip_with_an_unknown_clock_is_refused_in_one_line() -> None:
    with pytest.raises(
        ValueError, match=r"nothing is compiled for v3: the published clock rate of 940 MHz gives 1\.23e14"
    ):
        core_of("v3")


def test_a_chip_of_two_devices_adds_a_side_to_the_slice() -> None:
    place = placed("7x:1x2x2", {"x": 8})
    assert (place.slice.count, place.slice.sides, str(place.slice)) == (8, (1, 2, 2, 2), "7x:1x2x2")
    assert sorted(place.chips) == sorted(itertools.product(range(1), range(2), range(2), range(2)))
    row, half = CHIPS["7x"], place.slice.chip
    for name in ("hbm", "hbm_bw", "bf16", "ici"):
        assert getattr(half, name) == getattr(row, name) / 2
    assert placed("7x:1x2x2", {"x": 4}).slice.chip == row, "the clock alone may take a chip for one device"
    assert placed("7x:4x4x4", {"x": 8, "y": 16}).slice.wraps(0) and not placed(
        "7x:4x4x4", {"x": 8, "y": 16}
    ).slice.wraps(3)
    with pytest.raises(ValueError, match=r"the mesh \(x=16\) has 16 devices, but 7x:1x2x2 has 4"):
        placed("7x:1x2x2", {"x": 16})


def test_the_two_devices_of_a_chip_have_12_times_the_bandwidth_of_a_link() -> None:
    place = placed("7x:1x2x2", {"x": 4, "y": 2}, {"x": (1, 2), "y": (3,)})
    size = 1 << 30
    inside = Communication("permute", ((0, 1), (1, 0)), ("y",), size)
    outside = Communication("permute", ((0, 2), (2, 0)), ("x",), size)
    (within, _), (between, _) = duration(inside, place), duration(outside, place)
    assert between == pytest.approx(size / 4.5e10 * 1e12, rel=0.01), "half of a link: the two devices share it"
    assert between / within == pytest.approx(12, rel=0.01)


@pytest.mark.parametrize(
    ("on", "mesh"),
    [
        ("v5e:2x4", {"x": 8}), ("v5e:4x4", {"x": 16}), ("v5p:2x2x2", {"x": 8}), ("v5p:2x2x4", {"x": 4, "y": 4}),
        ("v5e:2x4", {"x": 2, "y": 4}), ("v5e:8x16", {"x": 128}), ("v5p:2x4x4", {"y": 2, "x": 16}), ("v4p:1x2x2", {"x": 4}),
    ],
)  # fmt: skip
def test_neighbours_on_a_mesh_axis_are_neighbours_on_the_slice(on: str, mesh: dict[str, int]) -> None:
    place = placed(on, mesh)
    chips = place.chips
    assert sorted(chips) == sorted(itertools.product(*(range(n) for n in Slice.of(on).shape))), "each chip once"
    points = list(itertools.product(*(range(n) for n in mesh.values())))
    for k, axis in enumerate(mesh):
        way = place.ways[axis]
        for point in points:
            after = list(point)
            after[k] = (after[k] + 1) % mesh[axis]
            if after[k] == 0 and (len(way.torus) == 1 or way.size == 2):
                continue  # the two ends of an axis may be far apart
            here, there = chips[points.index(point)], chips[points.index(tuple(after))]
            assert sum(abs(a - b) for a, b in zip(here, there, strict=True)) == 1


def test_fewer_cycles_in_a_kernel_never_lengthen_a_compiled_step() -> None:
    """The order of instructions is fixed, so a shorter kernel delays nothing."""
    base = (start(0), matmul(120), done(0), start(1), matmul(30), kernel(20), done(1), matmul(10))
    before = laid(*base).step
    for i, one in enumerate(base):
        if one.cycles:
            assert laid(*base[:i], replace(one, cycles=one.cycles // 2), *base[i + 1 :]).step <= before


def test_a_sum_joined_to_a_matmul_by_the_compiler_can_be_separated() -> None:
    """The compiler put a sum and a matmul into one kernel. In the program, only the sum waits for the received data."""
    joined = replace(matmul(150), joined=(0,))
    schedule = Schedule({"x": 8}, (matmul(50), start(), done(), joined), 0, 0, 0)
    assert replayed(schedule, ON).shares() == {"permute": Share(0, 100 * US)}
    assert replayed(schedule, ON, apart=True).shares() == {"permute": Share(100 * US, 0)}
    loop = Schedule({"x": 8}, (Instruction("loop", "while", rounds=3, bodies=((start(), done(), joined),)),), 0, 0, 0)
    assert replayed(loop, ON, apart=True).shares() == {"permute": Share(300 * US, 0)}
    plain = Schedule({"x": 8}, (start(), done(), matmul(150)), 0, 0, 0)
    assert replayed(plain, ON, apart=True) == replayed(plain, ON)
