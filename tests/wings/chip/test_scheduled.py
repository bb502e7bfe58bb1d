"""Read scheduled programs: operations that run beside the core, loops, and places. ``scheduled/`` has real texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.common.intervals import Interval
from grader.common.observation import Collective
from grader.runner.hlo_text import MARK
from grader.wings.chip.inside.scheduled import Scheduled, TooLarge
from grader.wire.schedule import Instruction

TEXTS = Path(__file__).parent / "scheduled"
MESH = {"x": 8}
RING = tuple((i, (i + 1) % 8) for i in range(8))
MATMUL = 2 * 2048 * 4096 * 4096


def text_of(name: str) -> str:
    return (TEXTS / f"{name}.txt").read_text(encoding="utf-8")


def read_plain(text: str) -> tuple[Instruction, ...]:
    return Scheduled.of(text, MESH, [], []).instructions


def ops(found: tuple[Instruction, ...]) -> list[str]:
    return [one.op for one in found]


def test_a_permute_beside_a_matmul_is_a_start_and_a_done_around_it() -> None:
    found = read_plain(text_of("v6e-permute"))
    start, matmul, done, copy = found
    assert ops(found) == ["start", "matmul", "done", "kernel"]
    assert start.communication is not None
    assert (start.communication.kind, start.communication.axes) == ("permute", ("x",))
    assert (start.communication.groups, start.communication.bytes) == (RING, 1024 * 1024 * 2)
    assert start.number == done.number
    assert (matmul.cycles, matmul.flops) == (155210, MATMUL)
    assert (copy.cycles, copy.bytes) == (0, 2 * 1024 * 1024 * 2), (
        "where the compiler gives no cycles: what is read and written"
    )


def test_a_gather_in_fusions_begins_continues_beside_a_matmul_and_ends() -> None:
    found = read_plain(text_of("v5e-all-gather-beside-a-matmul"))
    assert ops(found) == ["kernel", "start", "matmul", "done", "kernel"]
    start, matmul = found[1:3]
    assert start.communication is not None
    assert start.communication.kind == "all_gather" and start.communication.bytes == 1024 * 1024 * 2
    assert matmul.cycles == 537478 and matmul.flops == MATMUL


def test_a_call_on_another_processor_of_the_chip_runs_until_its_done() -> None:
    found = read_plain(text_of("7x-reduce-scatter-on-another-processor"))
    assert ops(found) == ["start", "matmul", "done"]
    assert found[0].communication is not None and found[0].communication.kind == "reduce_scatter"


def test_a_collective_without_start_and_done_is_synchronous() -> None:
    found = read_plain(text_of("v5e-all-reduce"))
    assert ops(found) == ["collective", "matmul"]
    assert found[0].communication is not None and found[0].communication.groups == (tuple(range(8)),)


def test_a_loop_is_counted_by_following_its_counter() -> None:
    found = read_plain(text_of("v5e-ring-in-a-loop"))
    (loop,) = (one for one in found if one.op == "loop")
    assert loop.rounds == 7
    assert ops(loop.bodies[0]) == ["start", "kernel", "done", "kernel", "matmul"], "its permute is exposed"


@pytest.mark.parametrize(
    ("was", "becomes", "rounds"),
    [
        ("s32[]{:T(128)} constant(7)", "s32[]{:T(128)} constant(12)", 12),
        ("direction=LT, metadata={op_name=\"while/cond/lt\"}", "direction=GT", 0),
        ("direction=LT, metadata={op_name=\"while/cond/lt\"}", "direction=NE", 7),
        ("compare(%get-tuple-element.182,", "compare(%get-tuple-element.180,", None),
    ],
)  # fmt: skip
def test_loops_of_other_counters(was: str, becomes: str, rounds: int | None) -> None:
    text = text_of("v5e-ring-in-a-loop")
    at = text.index("%wide.region_3.4_spmd (")
    head, condition, rest = text[:at], text[at : text.index("\n}", at)], text[text.index("\n}", at) :]
    assert was in condition
    (loop,) = (one for one in read_plain(head + condition.replace(was, becomes) + rest) if one.op == "loop")
    assert loop.rounds == rounds


def test_a_loop_that_the_text_counts_is_not_followed() -> None:
    text = text_of("v5e-ring-in-a-loop").replace(
        "body=%wide.region_1.3_spmd.sunk",
        'body=%wide.region_1.3_spmd.sunk, backend_config={"known_trip_count":{"n":"5"}}',
    )
    (loop,) = (one for one in read_plain(text) if one.op == "loop")
    assert loop.rounds == 5


def test_places_are_those_of_the_last_operation_that_has_one() -> None:
    text = text_of("v6e-permute").replace('op_name="ppermute"', f'op_name="{MARK}_0_/{MARK}_2_/{MARK}_1_"')
    (start, *_) = Scheduled.of(
        text, MESH, [("mine.py", 3), None, ("mine.py", 14)], ["func", "call", "collective_permute"]
    ).instructions
    assert (start.file, start.line) == ("mine.py", 14)


def test_marks_with_unknown_operation_numbers_give_no_line() -> None:
    text = text_of("v6e-permute").replace('op_name="ppermute"', f'op_name="{MARK}_99_"')
    (start, *_) = Scheduled.of(text, MESH, [], []).instructions
    assert start.line is None


def test_a_start_without_a_done_ends_with_the_program() -> None:
    lines = [
        line for line in text_of("v6e-permute").splitlines() if "collective-permute-done" not in line or "ROOT" in line
    ]
    found = read_plain("\n".join(lines))
    assert ops(found)[0] == "start" and found[-1].op == "done" and found[-1].number == found[0].number


def test_a_fused_all_reduce_and_slice_is_a_reduce_scatter() -> None:
    text = """
%fused (p: bf16[64,8]) -> bf16[8,8] {
  %p = bf16[64,8]{1,0} parameter(0)
  %sum = bf16[64,8]{1,0} all-reduce(%p), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add
  ROOT %part = bf16[8,8]{1,0} slice(%sum), slice={[0:8], [0:8]}
}

ENTRY %main (a: bf16[64,8]) -> bf16[8,8] {
  %a = bf16[64,8]{1,0} parameter(0)
  ROOT %both = bf16[8,8]{1,0} fusion(%a), kind=kCustom, calls=%fused
}
"""
    (found,) = read_plain(text)
    assert found.communication is not None
    assert (found.op, found.communication.kind, found.communication.bytes) == ("collective", "reduce_scatter", 1024)


def test_every_branch_is_read() -> None:
    text = """
%one (p: bf16[8192,8192]) -> bf16[8192,8192] {
  %p = bf16[8192,8192]{1,0} parameter(0)
  ROOT %a = bf16[8192,8192]{1,0} copy(%p), backend_config={"window_config":{"estimated_cycles":"7"}}
}

%other (q: bf16[8192,8192]) -> bf16[8192,8192] {
  ROOT %q = bf16[8192,8192]{1,0} parameter(0)
}

ENTRY %main (a: bf16[8192,8192], b: pred[]) -> bf16[8192,8192] {
  %a = bf16[8192,8192]{1,0} parameter(0)
  %b = pred[] parameter(1)
  ROOT %c = bf16[8192,8192]{1,0} conditional(%b, %a, %a), true_computation=%one, false_computation=%other
}
"""
    (found,) = read_plain(text)
    assert found.op == "branches" and [len(body) for body in found.bodies] == [1, 0]
    assert found.bodies[0][0].cycles == 7


def test_a_program_that_calls_itself_for_ever_is_too_large() -> None:
    text = "%f (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n  ROOT %r = f32[8]{0} call(%p), to_apply=%f\n}\n"
    text += "\nENTRY %m (a: f32[8]) -> f32[8] {\n  %a = f32[8]{0} parameter(0)\n  ROOT %r = f32[8]{0} call(%a), to_apply=%f\n}\n"
    with pytest.raises(TooLarge, match="calls are nested too deeply"):
        read_plain(text)


JOINED = """
%fused (p: bf16[64,64], q: bf16[64,64], r: bf16[64,64]) -> bf16[64,64] {
  %p = bf16[64,64]{1,0} parameter(0)
  %q = bf16[64,64]{1,0} parameter(1)
  %r = bf16[64,64]{1,0} parameter(2)
  %matmul = bf16[64,64]{1,0} convolution(%p, %q), dim_labels=bf_io->bf
  ROOT %sum = bf16[64,64]{1,0} add(%matmul, %r)
}

ENTRY %main (a: bf16[64,64], b: bf16[64,64]) -> bf16[64,64] {
  %a = bf16[64,64]{1,0} parameter(0)
  %b = bf16[64,64]{1,0} parameter(1)
  %s = (bf16[64,64], bf16[64,64]) collective-permute-start(%a), source_target_pairs={{0,1},{1,0}}
  %d = bf16[64,64]{1,0} collective-permute-done(%s)
  %v = bf16[64,64]{1,0} bitcast(%d)
  ROOT %out = bf16[64,64]{1,0} fusion(OPERANDS), kind=kOutput, calls=%fused, backend_config={"estimated_cycles":"9"}
}
"""


@pytest.mark.parametrize(
    ("operands", "joined"),
    [("%a, %b, %v", (0,)), ("%v, %b, %a", ()), ("%a, %v, %b", ()), ("%a, %b, %b", ()), ("%v, %b, %v", ())],
)
def test_an_addition_fused_into_a_matmul_is_recognised(operands: str, joined: tuple[int, ...]) -> None:
    """The fusion waits for received data only at its end if they are an operand of the addition, not of the matmul."""
    start, done, matmul = read_plain(JOINED.replace("OPERANDS", operands))
    assert (start.op, done.op, matmul.op) == ("start", "done", "matmul")
    assert matmul.joined == joined and matmul.flops == 2 * 64**3


def source(kind: str, rounds: int = 1, *axes: str) -> Collective:
    return Collective(kind, axes or ("x",), 64, Interval.of(64), Interval.of(rounds))


@pytest.mark.parametrize(
    ("name", "marked", "added"),
    [
        ("psum", {}, ["all_reduce"]),  # the source has no collective
        (f"{MARK}_7_", {}, ["all_reduce"]),  # the compiler adds this all-reduce with the name of another operation
        (f"{MARK}_3_/{MARK}_7_", {7: [source("all_reduce")]}, []),
        (f"{MARK}_7_", {7: [source("reduce_scatter")]}, []),  # each device keeps a part of a sum over all devices
        (
            f"{MARK}_7_",
            {7: [source("all_gather")]},
            ["all_reduce"],
        ),  # this all-reduce has the mark of an all-gather, so the compiler added it
        ("psum", {7: [source("reduce_scatter")]}, []),  # the compiler rewrites the reduce-scatter and drops its name
        ("psum", {7: [source("all_gather")]}, []),
        ("psum", {7: [source("permute")]}, ["all_reduce"]),
        ("psum", {7: [source("all_reduce", 1, "y")]}, ["all_reduce"]),  # the source has an all-reduce over another axis
        ("psum", {7: [source("all_reduce", 0)]}, ["all_reduce"]),  # the source's all-reduce never runs
    ],
    ids=list(range(10)),  # names of tests must be equal in all processes, but MARK differs, so the names are numbers
)
def test_added_collectives_are_those_without_one_in_the_source(
    name: str, marked: dict[int, list[Collective]], added: list[str]
) -> None:
    text = re.sub(r'(all-reduce\(.*op_name=)"psum"', rf'\1"{name}"', text_of("v5e-all-reduce"))
    found = Scheduled.of(text, MESH, [], []).added(MESH, marked)
    assert [c.kind for c in found] == added
    assert all(c.by_compiler and c.axes == ("x",) and c.count == 1 for c in found)
    assert all(c.operands and c.bytes and c.sent.most for c in found)


def test_added_collectives_in_a_loop_run_in_every_round() -> None:
    (found,) = Scheduled.of(text_of("v5e-ring-in-a-loop"), MESH, [], []).added(MESH, {})
    assert (found.kind, found.shift, found.count) == ("permute", 1, 7)
