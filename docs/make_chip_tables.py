"""Make the tables of docs/wings/chip.md, and the shipped schedules of the course's own programs.

    python docs/make_chip_tables.py           # compiles programs that differ from the shipped ones; needs libtpu, and no TPU
    python docs/make_chip_tables.py f2_       # compiles programs again if this regular expression matches their names;
                                              # "." matches all, which takes half an hour
    python docs/make_chip_tables.py tables    # only the tables, from solutions/compiled.json.xz

The page has five tables:

- overlap: right and wrong collective matmuls.
- verdicts: the verdicts on overlapped time, by the clock and by the compiler, for every reference, alternative and
  misconception of module 06.
- added: the collectives that the compilers for CPU and for TPU add to the course's references.
- clock: the times by the clock and by the compiler, for every reference of modules 03, 05, 06 and 08. One column has
  times measured on chips, if docs/measure_chips.py wrote them to docs/measured.json.
- memory: the memory by liveness and by the compiler, for every reference of modules 05 to 13.
"""

from __future__ import annotations

import json
import lzma
import math
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jax.sharding import PartitionSpec as P

from grader.batch import explaining
from grader.batch.grade import Grader
from grader.batch.replies import collective_of
from grader.batch.running import collect
from grader.clock import Slice, Timeline, live_memory, placed, replayed
from grader.common.files import write_atomic
from grader.common.layout import show_sizes
from grader.common.observation import Collective, Fault
from grader.course.loading import Course, load_course
from grader.course.reference import reference_source
from grader.exercise import Exercise, normal
from grader.exercise.declarations import judged_calls
from grader.expect.clock import show_time
from grader.expect.costs import show_bytes
from grader.intake.submission import Chunk, Source
from grader.judging.judge import judge_check
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding, Finding
from grader.reports import points
from grader.sandbox.worker import Worker
from grader.wings.chip import chips
from grader.wings.chip.compiling import (
    SHIPPED,
    Compilations,
    TpuCompiler,
    compiler_problem,
    compiler_version,
    name_of,
    shipped_in,
    slice_of,
)
from grader.wings.chip.on_chip import OnChip, counted
from grader.wire.schedule import Schedule, to_json

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA, MEASURED = ROOT / "docs" / "wings" / "chip.md", ROOT / SHIPPED, ROOT / "docs" / "measured.json"
SLICES = ("v5e:2x4", "v5p:2x2x2", "v6e:2x4")
# A slice of four chips with two devices each. Module 08 is not compiled for it, because this would take minutes for each
# program.
TWO_DEVICES = "7x:1x2x2"
MATMULS = {
    "gather_first": "plain: gather everything, then multiply",
    "right": "correct ring: each hop overlaps a matmul",
    "waits": "serial ring: each hop waits for the matmul before it",
    "late_loop": "late: a loop that receives, then multiplies",
    "both_ways": "correct ring in both directions",
}
LARGE, SMALL = {"I": 8192, "J": 8192, "K": 8192}, {"I": 1024, "J": 8192, "K": 2048}
NARROW = {"I": 88, "J": 13, "K": 17}
MODULE = "06_overlap"


@dataclass(frozen=True)
class Sized:
    """A reference with sizes as large as in papers.

    Attributes:
        task: the task's name.
        dims: the large sizes, in place of the sizes of the task's call.
        mesh: eight devices.
        static: keywords that select a call of the task, if the task's calls differ in keywords.
    """

    task: str
    dims: Mapping[str, int]
    mesh: Mapping[str, int]
    static: Mapping[str, Any] = field(default_factory=dict)


TWO, RING, DP, FLAT = {"x": 2, "y": 4}, {"x": 8}, {"dp": 8}, {"dp": 2, "tp": 4}
CUBE = {"I": 8192, "J": 8192, "K": 8192}
REFERENCES: dict[str, list[Sized]] = {
    "c1_no_communication": [Sized("matmul_local", CUBE, TWO)],
    "c2_one_operand": [Sized("matmul_gather_first", CUBE, TWO), Sized("matmul_slice_first", CUBE, TWO)],
    "c3_contracting": [Sized("matmul_all_reduce", CUBE, TWO), Sized("matmul_reduce_scatter", CUBE, TWO)],
    "c4_same_axis_twice": [Sized("matmul_keep_rows", CUBE, TWO), Sized("matmul_keep_columns", CUBE, TWO)],
    "e1_ring_all_gather": [Sized("ring_all_gather", {"I": 8192, "J": 512}, RING)],
    "e2_ring_reduce_scatter": [Sized("ring_reduce_scatter", {"I": 8192, "J": 4096}, RING)],
    "e3_ring_all_reduce": [Sized("ring_all_reduce", {"I": 8192, "J": 4096}, RING)],
    "e4_bidirectional": [Sized("bidi_all_gather", {"I": 8192, "J": 512}, RING)],
    "e5_ring_all_to_all": [Sized("ring_all_to_all", {"I": 8192, "J": 512}, RING)],
    "f1_ag_matmul": [Sized("ag_matmul", {"B": 8192, "D": 16384, "F": 53248}, {"x": 1, "y": 8})],
    "f2_matmul_rs": [Sized("matmul_rs", {"B": 8192, "F": 65536, "D": 16384}, {"x": 1, "y": 8})],
    "f3_both_ways": [
        Sized("both_ways_ag_matmul", {"B": 8192, "D": 32768, "F": 40960}, {"x": 1, "y": 8}),
        Sized("both_ways_matmul_rs", {"B": 8192, "D": 32768, "F": 40960}, {"x": 1, "y": 8}),
    ],
    "h1_ddp": [Sized("ddp_step", {"D": 4096, "F": 16384, "K": 4096, "B": 16384}, {"dp": 4, "tp": 2})],
    "h2_buckets": [Sized("bucketed_grads", {"B": 32768}, DP)],
    "h3_zero1": [Sized("zero1_step", {"D": 4096, "F": 4096, "K": 4096, "S": 33558528, "B": 16384}, {"dp": 4, "tp": 2})],
    "h4_fsdp": [Sized("fsdp_loss", {"L": 4, "D": 4096, "B": 16384}, DP)],
    "h5_tensor_parallel": [Sized("gated_mlp", {"B": 8192, "D": 8192, "F": 28672}, FLAT)],
    "h6_sequence_parallel": [Sized("train", {"S": 8192, "D": 4096, "F": 16384}, FLAT)],
    "h7_fsdp_tp": [Sized("mlp_2d", {"B": 8192, "D": 4096, "F": 16384}, TWO)],
    "h8_hsdp": [Sized("hsdp_grads", {"D": 8192, "K": 8192, "M": 2, "B": 16384}, {"rep": 2, "shard": 4})],
    "h9_seven_layouts": [
        Sized("stack", {"L": 3, "E": 8192, "B": 16384}, TWO, {"scheme": scheme}) for scheme in range(1, 8)
    ],
    "h10_gather_tp": [Sized("gather_tp", {"B": 16384, "D": 8192, "L": 3}, FLAT)],
}
FOUR = {"x": 4, "y": 2}
BLOCK = {"B": 2, "T": 4096, "D": 4096, "H": 32, "d": 128, "F": 16384}
HELD: dict[str, list[Sized]] = {  # programs that are only in the memory table; no program is from module 11 or 12
    "g1_repair": [
        Sized("squares", {"B": 32768, "D": 8192}, FOUR),
        Sized("decay", {"T": 16, "B": 8192, "D": 8192}, FOUR),
        Sized("means", {"B": 32768, "D": 8192}, FOUR),
    ],
    "g2_megatron": [
        *(Sized(task, {"B": 32768, "D": 8192}, {"tp": 4, "dp": 2}) for task in ("f", "g")),
        *(
            Sized(task, {"B": 8192, "D": 8192, "F": 28672}, {"tp": 4, "dp": 2})
            for task in ("block_by_hand", "block_by_types")
        ),
    ],
    "g3_inner_grad": [
        Sized(task, {"B": 65536, "D": 8192, "K": 8192}, FOUR)
        for task in ("grad_vma_off", "grad_vma_on", "grad_in_both")
    ],
    "g4_accumulation": [Sized("accumulate", {"L": 4, "M": 8, "B": 8192, "D": 4096}, {"dp": 4, "y": 2})],
    "g5_batch_norm": [Sized("batch_norm", {"B": 65536, "D": 8192}, {"dp": 4, "tp": 2})],
    "i1_gpipe_forward": [Sized("gpipe_forward", {"P": 8, "L": 16, "M": 16, "B": 2048, "D": 4096}, {"pp": 8})],
    "i2_gpipe_backward": [Sized("gpipe_step", {"L": 16, "M": 16, "B": 2048, "D": 4096}, {"pp": 8})],
    "i5_1f1b_program": [Sized("grad_1f1b", {"L": 16, "M": 16, "B": 2048, "D": 4096}, {"pp": 8})],
    "j1_moe": [Sized("moe", {"S": 65536, "E": 8, "D": 4096, "F": 14336}, {"dp": 2, "ep": 4})],
    "j2_ring_attention": [Sized("ring_attn", {"T": 16384, "H": 32, "d": 128}, {"cp": 4, "tp": 2})],
    "j3_ulysses": [Sized("ulysses", {"B": 2, "T": 4096, "Q": 32, "K": 8, "d": 128}, FOUR)],
    "j4_decode": [Sized("decode", {"B": 64, "S": 32768, "K": 8, "H": 128}, {"x": 4, "y": 2, "z": 1})],
    "m1_block": [Sized("block", BLOCK, {"dp": 1, "tp": 2, "sp": 4})],
    "m2_train_step": [Sized("train_step", BLOCK, {"dp": 1, "tp": 2, "sp": 4})],
}
WITHOUT = {
    "c5_choose": "questions only",
    "h5_tensor_parallel.init": "random numbers, no arguments",
    "h6_sequence_parallel.drop": "random numbers, of two steps",
}


@dataclass(frozen=True)
class Asked:
    """A program to compile: its name in the shipped data, its source, the grader's request for it, and the slice."""

    name: str
    source: Source
    ask: Ask
    on: str


def source_of(exercise: Exercise, by: Any = None) -> Source:
    name = f"{exercise.id}.py"
    return Source(name, (Chunk(name, reference_source(exercise, {}, by)),)) if by else explaining.reference(exercise)


def ask_of(course: Course, exercise: Exercise, sized: Sized, on: str) -> Ask:
    calls = explaining.calls_of(exercise, sized.task)
    fitting = [c for c in calls if not sized.static or dict(c.static) == dict(sized.static)]
    call = next((c for c in fitting if c.timing), next(c for c in fitting if set(sized.dims) <= set(c.dims)))
    wanted = explaining.Wanted(sized.mesh, sized.dims, on, slice_of(on).chip.name, paper=True)
    (ask,), _ = explaining.asks_of(course, exercise, [call], wanted)
    return ask


def references(course: Course) -> Iterator[Asked]:
    """Yield every reference, with sizes as large as in papers, on every slice."""
    for name, listed in REFERENCES.items():
        exercise = course.exercise(name)
        for sized in listed:
            for on in slices_of(name):
                ask = ask_of(course, exercise, sized, on)
                yield Asked(name_of(ask, on), source_of(exercise), ask, on)


def held(course: Course) -> Iterator[Asked]:
    """Yield the reference of every task in modules 05 to 13, on the first of SLICES, in the order of the course."""
    on = SLICES[0]
    listed = {name: sized for name, sized in (REFERENCES | HELD).items() if not name.startswith("c")}
    for name in (name for module in course.config.modules for name in module.exercises if name in listed):
        exercise = course.exercise(name)
        for sized in listed[name]:
            ask = ask_of(course, exercise, sized, on)
            yield Asked(name_of(ask, on), source_of(exercise), ask, on)


def slices_of(exercise: str) -> tuple[str, ...]:
    return SLICES if exercise.startswith("h") else (*SLICES, TWO_DEVICES)


def timed(course: Course) -> Iterator[Asked]:
    """Yield the programs of ``shardlings chip`` for each exercise, on the slices that its timing calls name."""
    for name in REFERENCES:
        exercise = course.exercise(name)
        for on in dict.fromkeys(c.timing.on for c in judged_calls(exercise.checks.values()) if c.timing):
            for ask in chips.asked(course, exercise, None, slice_of(on), None, {})[0]:
                yield Asked(name_of(ask, on), source_of(exercise), ask, on)


def variants(course: Course) -> Iterator[tuple[Exercise, Any, list[Asked]]]:
    """Yield (exercise, solution, programs), with the programs that the timed overlap checks of module 06 ask for.

    The solution is an alternative, a misconception, or None for the reference.
    """
    for name in course.config.modules[[m.id for m in course.config.modules].index(MODULE)].exercises:
        exercise = course.exercise(name)
        others = [*exercise.alternatives.values(), *exercise.misconceptions.values()]
        for by in [None, *(o for o in others if o.of.name in exercise.tasks)]:
            asks = []
            for check in overlap_checks(exercise):
                for call in check.calls:
                    if call.timing and (by is None or call.task.name == by.of.name):
                        found, _ = explaining.asks_of(course, exercise, [call], explaining.Wanted())
                        # ``asks_of`` replaces the check's call by a copy, so put the check's own call back.
                        asks += [replace(ask, of=call) for ask in found]
            source = source_of(exercise, by) if by else source_of(exercise)
            title = f"{by.name} as " if by else ""
            asked = {title + name_of(a, a.of.timing.on): a for a in asks}
            if asked:
                yield exercise, by, [Asked(n, source, a, a.of.timing.on) for n, a in asked.items()]


PUT_IN = "v5e:2x4"  # the slice for which references are compiled at public sizes


def small(course: Course) -> Iterator[tuple[Exercise, list[Asked], list[str]]]:
    """Yield (exercise, programs, meshes that do not fit on PUT_IN) for each exercise.

    The programs are for each call's first mesh that fits on the slice PUT_IN.
    """
    on = slice_of(PUT_IN)
    for module in course.config.modules:
        for name in module.exercises:
            exercise = course.exercise(name)
            found, beside = {}, []
            for call in (c for c in judged_calls(exercise.checks.values()) if not c.timing):
                eight = [mesh for mesh in call.meshes if math.prod(mesh.values()) == on.count]
                lying = [mesh for mesh in eight if lies(on, mesh)]
                beside += [show_sizes(mesh) for mesh in eight[:1] if not lying]
                for mesh in lying[:1]:
                    (ask, *_), _ = explaining.asks_of(course, exercise, [call], explaining.Wanted(mesh=mesh))
                    found.setdefault(name_of(ask, PUT_IN), ask)
            asked = [Asked(title, source_of(exercise), ask, PUT_IN) for title, ask in found.items()]
            if asked or beside:
                yield exercise, asked, list(dict.fromkeys(beside))


def lies(on: Slice, mesh: Mapping[str, int]) -> bool:
    try:
        placed(on, mesh)
    except ValueError:
        return False
    return True


def overlap_checks(exercise: Exercise) -> list[Any]:
    """Return the checks that call ``expect_overlap``."""
    return [c for c in exercise.checks.values() if "expect_overlap" in c.fn.__code__.co_names]


def matmuls(course: Course) -> Iterator[tuple[str, str, Asked]]:
    """Return heading, size and program for the functions of docs/collective_matmul.py, with large and small sizes."""
    text = (ROOT / "docs" / "collective_matmul.py").read_text(encoding="utf-8")
    space: dict = {}
    exec(text, space)
    exercise = Exercise(meshes=[RING], id="collective_matmul")
    arrays = {"a": normal("I", "J", spec=P("x"), dtype="bfloat16"), "w": normal("J", "K", dtype="bfloat16")}
    body = exercise.body(out_specs=P())
    source = Source("collective_matmul.py", (Chunk("collective_matmul.py", text),))
    tasks = {name: body(space[name]) for name in MATMULS}
    for size, dims in (("large", LARGE), ("small", SMALL)):
        for name, heading in MATMULS.items():
            values = exercise.call(tasks[name], dims=NARROW, **arrays)  # type: ignore[arg-type]
            call = exercise.timing(values, on="v5e:2x4", dims=dims)
            (ask,), _ = explaining.asks_of(course, exercise, [call], explaining.Wanted())
            yield heading, size, Asked(name_of(ask, "v5e:2x4"), source, ask, "v5e:2x4")


# -- results -------------------------------------------------------------------------


class Compiled:
    """Traced programs with their schedules, which are shipped or come from the compiler.

    One grader traces all programs, and one worker compiles for all slices.

    Args:
        shipped: the shipped schedules.
        frozen: True compiles no program; False compiles the programs that differ from the shipped programs.
    """

    def __init__(self, course: Course, shipped: Compilations, *, frozen: bool = True) -> None:
        self.course, self.shipped, self.frozen = course, shipped, frozen
        self.graders: dict[str, Grader] = {"": Grader(course, "none")}
        self.worker: Worker | None = None
        self.answers: dict[str, Any] = {}

    def grader(self, on: str) -> Grader:
        """Return a grader that compiles for this slice."""
        if on not in self.graders:
            compiler = TpuCompiler(self.course, "none", slice_of(on), worker=self.worker)
            self.worker = compiler.worker
            self.graders[on] = Grader(self.course, "none", compiler=compiler)
        return self.graders[on]

    def __enter__(self) -> Compiled:
        return self

    def __exit__(self, *error: object) -> None:
        for grader in self.graders.values():
            grader.__exit__()

    def of(self, asked: Sequence[Asked]) -> list[AskFinding]:
        """Return each program's answer, with the schedule that the slice's compiler made."""
        return [self.one(one) for one in asked]

    def one(self, asked: Asked) -> AskFinding:
        answer = self.answered(asked, "")
        seen, made = answer.finding.observation, self.shipped.get(asked.name)
        if seen is None:
            return answer
        if not self.frozen and not (isinstance(made, Schedule) and (made.program, made.by) == (seen.program, BY)):
            sys.stderr.write(f"compiling {asked.name}\n")
            answer = self.answered(asked, asked.on)
            seen = answer.finding.observation
            assert seen is not None
            made = seen.compiled
        if isinstance(made, Schedule):
            self.answers[asked.name] = {"schedule": to_json(replace(made, layouts=()))}
        elif made is not None:
            self.answers[asked.name] = {"fault": {"kind": made.kind, "message": made.message}}
        return AskFinding(answer.ask, Finding(replace(seen, compiled=made, compiled_on=asked.on)))

    def answered(self, asked: Asked, on: str) -> AskFinding:
        with (self.grader(on) if on else self.graders[""]).pool.lent() as workers:
            (answer,), _ = collect(workers, asked.source, [asked.ask])
        return answer


BY = f"jax {version('jax')}, libtpu {compiler_version()}"


def timelines(answer: AskFinding, on: str) -> tuple[OnChip, Timeline | None, Timeline | None]:
    about = chips.on_chip(answer, slice_of(on))
    return about, about.timeline, about.clock


def overlap_table(course: Course, compiled: Compiled) -> str:
    rows = [
        "| program | sizes | step | matmuls | waiting | overlapped | temporaries |",
        "|---|---|---|---|---|---|---|",
    ]
    for heading, size, asked in matmuls(course):
        (answer,) = compiled.of([asked])
        about, line, _ = timelines(answer, asked.on)
        assert line is not None and about.schedule is not None
        (one,) = counted(line)
        overlapped = (
            f"{one.overlapped} of {points.counted(one.runs, one.kind)}; {one.share.part:.0%} of the {one.kind} time"
        )
        rows.append(
            f"| {heading} | {size} | {show_time(line.step)} | {show_time(line.matmuls)} | {show_time(line.idle)} "
            f"| {overlapped} | {show_bytes(about.schedule.temporaries)} |"
        )
    return "\n".join([*rows, ""])


def verdicts_table(course: Course, compiled: Compiled) -> str:
    """Return a table of the verdicts of the checks on overlapped time."""
    rows = ["| exercise | program | overlap (clock) | overlap (compiler) | verdict (clock) | verdict (compiler) | |"]
    rows.append("|---|---|---|---|---|---|---|")
    for exercise, by, asked in variants(course):
        answered = compiled.of(asked)
        plain = [
            AskFinding(a.ask, Finding(replace(seen, compiled=None))) if (seen := a.finding.observation) else a
            for a in answered
        ]
        for check in overlap_checks(exercise):
            own = [i for i, a in enumerate(answered) if a.ask.of in check.calls]
            if not own:
                continue
            ours, theirs = (judge_check(check, [of[i] for i in own], learners_run=False) for of in (plain, answered))
            shares = [_shares(answered[i], asked[i].on) for i in own]
            title = (
                "the solution"
                if by is None
                else f"{by.name}" + ("" if by.name in exercise.misconceptions else " (right)")
            )
            rows.append(
                f"| {exercise.id} | {title} | {', '.join(s[0] for s in shares)} | {', '.join(s[1] for s in shares)} "
                f"| {ours.status} | {theirs.status} | {'' if ours.status == theirs.status else 'differs'} |"
            )
    return "\n".join([*rows, ""])


def _shares(answer: AskFinding, on: str) -> tuple[str, str]:
    """Return two texts: the overlapped part of each collective by the clock, and by the compiler.

    The compiler may fuse a matmul with an addition of received data. If this changes the overlapped part, the second
    text also has the overlapped part without this fusion.
    """
    about, line, clock = timelines(answer, on)
    apart = replayed(about.schedule, placed(on, about.mesh), apart=True) if about.schedule and line else line

    def text(timeline: Timeline | None) -> str:
        found = counted(timeline) if timeline else []
        shares = (f"{points.counted(one.runs, one.kind)}: {one.share.part:.0%} overlapped" for one in found)
        return ", ".join(shares) or "no collective"

    by_compiler = text(line) if line else about.unreplayed or "-"
    by_compiler += (
        f"; with addition and matmul as two kernels: {text(apart)}" if apart and text(apart) != by_compiler else ""
    )
    return (text(clock) if clock else about.untimed or str(about.fault), by_compiler)


def added_table(course: Course, compiled: Compiled) -> str:
    rows = [
        "| exercise | task | mesh | added by the CPU's compiler | added by the TPU's compiler | |",
        "|---|---|---|---|---|---|",
    ]
    programs, nothing, left_out = 0, [], []
    for exercise, asked, beside in small(course):
        short = exercise.id.split("_")[0].upper()
        left_out += [f"{short} on {mesh}" for mesh in beside]
        found = []
        for one, answer in zip(asked, compiled.of(asked), strict=True):
            seen, programs = answer.finding.observation, programs + 1
            assert seen is not None, (one.name, answer.finding)
            made = seen.compiled
            ours = put_in(c for c in seen.collectives if c.by_compiler)
            theirs = made.message if isinstance(made, Fault) else "unknown"
            if isinstance(made, Schedule) and made.added is not None:
                theirs = put_in(collective_of(c) for c in made.added)
            if (ours, theirs) != ("-", "-"):
                mesh = show_sizes(one.ask.mesh)
                found.append(
                    f"| {short} | {one.ask.task} | {mesh} | {ours} | {theirs} | {'' if ours == theirs else 'differs'} |"
                )
        rows += found
        if asked and not found:
            nothing.append(short)
    with_none = f"{', '.join(nothing)} ({len(nothing)} of {len(course.select([]))} exercises)"
    text = f"{programs} programs are compiled for {PUT_IN}. Neither compiler adds a collective to the programs of {with_none}."
    if left_out:
        text += f" Some programs do not fit on this slice: {'; '.join(left_out)}."
    return "\n".join([*rows, "", text, ""])


def put_in(collectives: Iterable[Collective]) -> str:
    found = Counter({})
    for c in collectives:
        found[c.kind, c.over, str(c.count)] += 1
    texts = [
        f"{n} {kind} over {axes}" + (f", {times} times" if times != "1" else "")
        for (kind, axes, times), n in sorted(found.items())
    ]
    return "; ".join(texts) or "-"


def clock_table(course: Course, compiled: Compiled) -> str:
    measured = json.loads(MEASURED.read_text(encoding="utf-8")) if MEASURED.exists() else {}
    measured = {name: one for name, one in measured.items() if one["devices"].startswith("tpu: ")}
    rows = [
        "| task | slice | clock | compiler | difference | matmuls | other kernels | waiting | measured |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    errors: dict[str, list[float]] = {"bfloat16 matmuls": [], "float32 matmuls or no matmuls": []}
    longer: dict[str, list[float]] = {}
    for asked in references(course):
        (answer,) = compiled.of([asked])
        about, line, clock = timelines(answer, asked.on)
        keyword = ", ".join(f"{k} {v}" for k, v in asked.ask.static.items() if not isinstance(v, list))
        title = f"{asked.ask.exercise.split('_')[0].upper()} {asked.ask.task}" + (f" ({keyword})" if keyword else "")
        if line is None or clock is None:
            why = about.unreplayed or about.untimed or (about.fault.message if about.fault else "")
            rows.append(f"| {title} | {asked.on} | {show_time(clock.step) if clock else '-'} | {why} | | | | | |")
            continue
        parts = [
            _both(clock.matmuls, line.matmuls), _both(clock.busy - clock.matmuls, line.busy - line.matmuls),
            _both(clock.idle, line.idle),
        ]  # fmt: skip
        took = measured.get(asked.name)
        what = "bfloat16 matmuls" if asked.name.startswith(BFLOAT16) else "float32 matmuls or no matmuls"
        errors[what].append((line.step - clock.step) / clock.step)
        if what == "bfloat16 matmuls":
            longer.setdefault(asked.on.partition(":")[0], []).append(line.matmuls / clock.matmuls)
        rows.append(
            f"| {title} | {asked.on} | {show_time(clock.step)} | {show_time(line.step)} | {(line.step - clock.step) / clock.step:+.0%} "
            f"| {' | '.join(parts)} | {show_time(round(took['seconds'] * 1e12)) if took else '-'} |"
        )
    return "\n".join([*rows, "", f"{error_text(errors)} {longer_text(longer)}".rstrip(), ""])


# References of these exercises have bfloat16 matmuls at the sizes of REFERENCES. Other references have float32 matmuls.
BFLOAT16 = (
    "f1_",
    "f2_",
    "h2_",
)


# (modules, slice) -> two lists of errors, one error for each program: errors of the memory that the program needs in
# the order in which it is written, and errors of the memory that it needs as on a TPU.
Errors = dict[tuple[str, str], tuple[list[float], list[float]]]


def memory_table(course: Course, compiled: Compiled) -> str:
    """Return the memory of a device by liveness and by the compiler, for references of modules 05 to 13 on v5e."""
    rows = [
        "| task | compiled program | counted in the program's order | error | counted in the clock's order | error | counted as on a TPU | error |",
        f"|{'---|' * 8}",
    ]
    everything = ("05 to 13", SLICES[0])
    errors: Errors = {of: ([], []) for of in (everything, *(("05, 06, 08", on) for on in SLICES))}
    in_time = []
    for asked in held(course):
        (answer,) = compiled.of([asked])
        seen = answer.finding.observation
        assert seen is not None and isinstance(seen.compiled, Schedule), asked.name
        assert seen.operations is not None
        _, _, line = timelines(answer, asked.on)
        clock, due = line.memory.peak if line else None, seen.compiled.held
        program, on_tpu = (live_memory(seen.operations, on_tpu=how).peak for how in (False, True))
        for of, (plain, stored) in errors.items():
            made = compiled.shipped.get(asked.name.replace(SLICES[0], of[1]))
            if isinstance(made, Schedule) and (of == everything or asked.ask.exercise in REFERENCES):
                plain.append(program / made.held - 1)
                stored.append(on_tpu / made.held - 1)
        in_time += [clock / due - 1] if clock else []
        cells = [
            f"{show_bytes(peak)} | {peak / due - 1:+.0%}" if peak else "- | -" for peak in (program, clock, on_tpu)
        ]
        keyword = ", ".join(f"{k} {v}" for k, v in asked.ask.static.items() if k == "scheme")
        title = f"{asked.ask.exercise.split('_')[0].upper()} {asked.ask.task}" + (f" ({keyword})" if keyword else "")
        rows.append(f"| {title} | {show_bytes(due)} | {' | '.join(cells)} |")
    text = f"In the clock's order the median error is {_typical(in_time)} on {SLICES[0]} ({len(in_time)} programs)."
    return "\n".join([*rows, "", *_medians(errors), "", text, ""])


def _medians(errors: Errors) -> list[str]:
    """Return a table of the median errors of memory estimates, with a row for each slice."""
    rows = [
        "| modules | slice | programs | median error in the program's order | median error as on a TPU | range of errors as on a TPU |",
        f"|{'---|' * 6}",
    ]
    for (modules, on), (plain, stored) in errors.items():
        apart = f"{min(stored):+.0%} to {max(stored):+.0%}"
        rows.append(f"| {modules} | {on} | {len(plain)} | {_typical(plain)} | {_typical(stored)} | {apart} |")
    return rows


def _typical(errors: Sequence[float]) -> str:
    return f"{statistics.median(map(abs, errors)):.0%}"


def error_text(errors: Mapping[str, Sequence[float]]) -> str:
    """Describe how far the compiler's step time differs from the clock's: range and median, by dtype of the matmuls."""
    parts = [
        f"{len(found)} rows of {what}: the compiler's time of the step differs from the clock's "
        f"by {min(found):+.0%} to {max(found):+.0%}, and the median difference is {_typical(found)}"
        for what, found in errors.items()
        if found
    ]
    return f"{'. '.join(parts)}."


def longer_text(longer: Mapping[str, Sequence[float]]) -> str:
    """Describe, by chip, the compiler's time of bfloat16 matmuls in multiples of the clock's time.

    Return "" if ``longer`` has no chip.
    """
    if not longer:
        return ""
    parts = [f"{min(found):.2f} to {max(found):.2f} times on {chip}" for chip, found in longer.items()]
    first = parts[0].replace("times", "times the clock's time")
    return f"Matmuls of the bfloat16 rows take, according to the compiler, {', '.join([first, *parts[1:]])}."


def _both(clock: int, compiler: int) -> str:
    return f"{show_time(clock)} / {show_time(compiler)}" if clock or compiler else "-"


TABLES = {
    "overlap": overlap_table, "verdicts": verdicts_table, "added": added_table, "clock": clock_table, "memory": memory_table,
}  # fmt: skip


def made(tables: Mapping[str, str], page: str) -> str:
    """Return the text ``page`` with new tables in place of its old tables."""
    for name, table in tables.items():
        between = re.compile(rf"(?<=<!-- made by docs/make_chip_tables.py: {name} -->\n).*?(?=<!-- end -->)", re.DOTALL)
        if not between.search(page):
            raise RuntimeError(f"{PAGE} has no place for the table {name!r}")
        page = between.sub(lambda _, table=table: table, page, count=1)
    return page


def main(what: str = "") -> None:
    course, frozen = load_course(ROOT / "course.yaml"), what == "tables"
    if not frozen and (problem := compiler_problem()):
        sys.exit(f"{problem}; python docs/make_chip_tables.py tables makes the tables from what is shipped")
    shipped = shipped_in(course)
    if what and not frozen:
        shipped = {name: made for name, made in shipped.items() if not re.search(what, name)}
    with Compiled(course, shipped, frozen=frozen) as compiled:
        tables = {name: table(course, compiled) for name, table in TABLES.items()}
        if not frozen:
            compiled.of([*timed(course), *held(course)])
            write_shipped(compiled.answers)
    write_atomic(PAGE, made(tables, PAGE.read_text(encoding="utf-8")))


def write_shipped(answers: Mapping[str, Any]) -> None:
    text = json.dumps(dict(sorted(answers.items())), separators=(",", ":"), sort_keys=True)
    write_atomic(DATA, lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main(*sys.argv[1:])
