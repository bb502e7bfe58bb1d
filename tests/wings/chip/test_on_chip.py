"""A compiled program in words: overlapped and exposed time, memory, and differences from the clock."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from grader.clock import Slice, Timeline, placed, replayed
from grader.common.observation import Fault, Observation
from grader.wings.chip.chips import earlier
from grader.wings.chip.command import render
from grader.wings.chip.on_chip import OnChip, as_data, counted, differences, exposed_lines, facts, print_on_chip
from grader.wire.operations import Communication
from grader.wire.schedule import Instruction, Schedule
from tests.seen import collective

MIB = 2**20
RING = tuple((i, (i + 1) % 8) for i in range(8))


def schedule(*, serial: bool = False, kind: str = "permute", cycles: int = 150_000, held: int = 10 * MIB) -> Schedule:
    """Return a schedule of three matmuls of 100 us and two collectives; a permute takes 100 us.

    With ``serial``, the collectives run between the matmuls; otherwise they run beside them.
    """
    about = Communication(kind, RING if kind == "permute" else (tuple(range(8)),), ("x",), 4_500_000)
    found: list[Instruction] = []
    for number in range(2):
        start = Instruction("start", kind, number=number, communication=about, file="mine.py", line=14)
        matmul, done = Instruction("matmul", "dot_general", cycles=cycles), Instruction("done", "", number=number)
        found += [matmul, start, done] if serial else [start, matmul, done]
    found.append(Instruction("matmul", "dot_general", cycles=cycles))
    return Schedule({"x": 8}, tuple(found), held, 0, 0, by="libtpu 1")


def line_of(found: Schedule) -> Timeline:
    return replayed(found, placed("v5e:2x4", found.mesh))


def on_chip(compiled: Schedule, clock: Schedule | None = None) -> OnChip:
    chip = Slice.of("v5e:2x4").chip
    about = OnChip("f1_ag_matmul", "ag_matmul", {"x": 8}, {"B": 4}, "v5e:2x4", chip, compiled, line_of(compiled))
    return replace(about, clock=line_of(clock or compiled))


def printed(about: OnChip, width: int = 100) -> str:
    stream = io.StringIO()
    print_on_chip(about, Console(file=stream, width=width))
    return stream.getvalue()


def test_overlapped_runs_are_counted_by_kind() -> None:
    (one,) = counted(line_of(schedule()))
    assert (one.kind, one.runs, one.overlapped) == ("permute", 2, 2)
    (one,) = counted(line_of(schedule(serial=True)))
    assert (one.runs, one.overlapped, one.share.part) == (2, 0, 0)


def test_facts_show_overlap_matmuls_and_memory() -> None:
    found = dict(facts(on_chip(schedule())))
    assert (
        found["overlap"]
        == "200 us (100%) of the 200 us of 2 permutes overlap with compute; 2 of these 2 collectives overlap for at least 90% of their time"
    )
    assert found["core"] == "300 us of 300 us are matmuls; other kernels 0 ps, waiting 0 ps"
    assert found["memory"] == "10 MiB of 16 GB (0.1%): 10 MiB arguments, 0 B results, 0 B temporaries"
    assert found["by"] == "libtpu 1"


def test_an_exposed_collective_is_shown_with_its_line() -> None:
    assert exposed_lines(line_of(schedule())) == []
    assert exposed_lines(line_of(schedule(serial=True))) == ["permute over x is exposed for 200 us: mine.py:14"]


def test_equal_schedules_have_no_differences() -> None:
    about = on_chip(schedule())
    assert differences(about) == []
    assert "agrees    the compiler's and the clock's figures do not differ" in printed(about)


@pytest.mark.parametrize(
    ("compiled", "told"),
    [
        (
            schedule(serial=True),
            "overlapped part of permute: 0% in the compiler's order, 100% in the order of the grader's clock",
        ),
        (
            schedule(cycles=300_000),
            "the step takes 600 us by the TPU compiler's cycles, 300 us by the course's clock (+100%)",
        ),
        (
            schedule(cycles=300_000),
            "  its matmuls: 600 us by the TPU compiler's cycles, 300 us by the course's clock (+100%)",
        ),
        (schedule(kind="all_gather"), "the program has 2 permutes; the compiler turned them into 2 all_gathers"),
        (schedule(held=20 * MIB), "memory: 20 MiB by the compiler, 10 MiB by the course's clock"),
    ],
)
def test_differences_are_reported_with_both_numbers(compiled: Schedule, told: str) -> None:
    assert told in differences(on_chip(compiled, schedule()))


def test_a_difference_from_a_tiny_time_has_no_percentage() -> None:
    told = "\n".join(differences(on_chip(schedule(cycles=150_000), schedule(cycles=1_500))))
    assert "its matmuls: 300 us by the TPU compiler's cycles, 3 us by the course's clock\n" in told + "\n"


def test_the_legend_explains_the_letters_of_both_pictures() -> None:
    text = printed(on_chip(schedule(kind="all_gather"), schedule()), 200)
    assert "D matmul, P permute, G all_gather; numbers beside the letters are lines of the code" in text


def test_small_differences_are_not_reported() -> None:
    assert differences(on_chip(schedule(cycles=160_000, held=11 * MIB), schedule())) == []


def test_both_timelines_have_one_scale_at_every_terminal_width() -> None:
    about = on_chip(schedule(serial=True), schedule())
    for width in (40, 80, 200):
        lines = printed(about, width).splitlines()
        assert all(len(line) <= width for line in lines)
        assert sum(line.startswith("compute ") for line in lines) == 2
    first, second = (line for line in printed(about, 100).splitlines() if line.startswith("compute "))
    assert len(first.rstrip()) > len(second.rstrip()) * 1.4, "500 us and 300 us"


def test_only_the_fault_of_a_program_is_shown() -> None:
    about = replace(on_chip(schedule()), fault=Fault("memory", "it needs 21 of 16 GiB"))
    text = printed(about)
    assert "it needs 21 of 16 GiB" in text and "compute" not in text
    assert "it needs 21 of 16 GiB" in render([about])


def test_the_page_has_both_pictures_and_escapes_learners_text() -> None:
    about = replace(on_chip(schedule(serial=True), schedule()), task="<b>x</b>")
    page = render([about])
    assert page.count("<svg") == 1 and "the compiler&#39;s schedule" in page.replace("&#x27;", "&#39;")
    assert "<b>x</b>" not in page and "&lt;b&gt;x" in page
    assert "is exposed" in page and "differs" in page


def test_json_has_picoseconds_and_bytes() -> None:
    data = as_data(on_chip(schedule(serial=True), schedule()))
    assert data["compiler"]["step"] == 500_000_000 and data["clock"]["step"] == 300_000_000
    assert data["compiler"]["collectives"]["permute"] == {
        "runs": 2, "overlapped_runs": 0, "overlapped": 0, "exposed": 200_000_000,
    }  # fmt: skip
    assert data["memory"]["held"] == 10 * MIB and data["differences"]


def test_an_earlier_compilation_has_lines_only_where_the_source_still_has_them() -> None:
    made = replace(schedule(), program="digest")
    round_trip = replace(made, instructions=(Instruction("loop", "while", rounds=2, bodies=(made.instructions,)),))
    still, moved, changed = (
        Observation([], [collective("permute", line=line)], 0, program=program)
        for line, program in ((14, "digest"), (31, "digest"), (14, "another"))
    )
    for one in (made, round_trip):
        assert earlier(one, still) == one
        without = earlier(one, moved)
        assert isinstance(without, Schedule) and {i.line for i in without.walk()} == {None}
        assert line_of(without).step == line_of(one).step
        assert earlier(one, changed) is None
    assert earlier(None, still) is None and earlier(Fault("compile", "no"), still) == Fault("compile", "no")
