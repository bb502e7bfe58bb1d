"""Draw the clock's timelines for the documents and statements: python docs/clock_pictures.py

The script writes docs/collective-matmul.svg, the table of docs/clock-pictures.md, and the part "In time" of statements.
``tests/test_clock_pictures.py`` proves that the picture, the table and the parts are current.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jax.sharding import PartitionSpec as P

from grader.batch import explaining
from grader.batch.grade import Grader
from grader.clock import Timeline
from grader.common.files import write_atomic
from grader.course.loading import Course, load_course
from grader.course.reference import reference_source
from grader.exercise import Exercise, normal
from grader.intake.submission import Chunk, Source
from grader.reports.pages import render
from grader.reports.timeline_svg import draw_chart
from grader.reports.timeline_text import draw_timelines
from grader.reports.timelines import bar_word, kinds, letter, show_us, word

ROOT = Path(__file__).resolve().parents[1]
ON, MESH = "v5e:2x4", {"x": 8}
WIDTH = 76  # columns; ``verify`` requires that statements fit into a terminal of 80 columns


@dataclass(frozen=True)
class Shown:
    """A program, with its timeline in a picture.

    Attributes:
        task: the task's name; "" for the exercise's only task.
        misconception: the misconception that replaces the solution; "" for the solution.
        exercise: the program's exercise; "" for the exercise of the statement.
        static: keywords that select a call of the task, if the task's calls differ in keywords.
    """

    task: str = ""
    misconception: str = ""
    exercise: str = ""
    static: dict[str, object] | None = None


@dataclass(frozen=True)
class Picture:
    """The content of a statement's part "In time".

    Attributes:
        of: the data that the functions take, such as "float32[8192, 512]".
        shown: the programs, by heading.
        dims: the size of each dimension.
        mesh: the mesh on which the programs run; None for the mesh of the program's timing call.
        more: further sentences about the data.
    """

    of: str
    shown: dict[str, Shown]
    dims: dict[str, int]
    mesh: dict[str, int] | None = None
    more: str = ""


STATEMENTS = {
    "e1_ring_all_gather": Picture("float32[8192, 512]", {"one way": Shown()}, {"I": 8192, "J": 512}, MESH),
    "e2_ring_reduce_scatter": Picture(
        "blocks of float32[8192, 512]", {"one way": Shown()}, {"I": 8192, "J": 4096}, MESH
    ),
    "e3_ring_all_reduce": Picture("blocks of float32[8192, 512]", {"one way": Shown()}, {"I": 8192, "J": 4096}, MESH),
    "e4_bidirectional": Picture(
        "float32[8192, 512]",
        {"one way (E1)": Shown(exercise="e1_ring_all_gather"), "both ways": Shown()},
        {"I": 8192, "J": 512},
        MESH,
    ),
    "e5_ring_all_to_all": Picture("float32[8192, 512]", {"from hops": Shown()}, {"I": 8192, "J": 512}, MESH),
    "f1_ag_matmul": Picture(
        "bfloat16[8192, 16384] · [16384, 53248]",
        {
            "right": Shown("ag_matmul"),
            "each hop waits": Shown("ag_matmul", "ag_sends_after_the_matmul"),
            "loop, receives first": Shown("ag_matmul", "ag_late_in_a_loop"),
        },
        {"B": 8192, "D": 16384, "F": 53248},
    ),
    "f2_matmul_rs": Picture(
        "bfloat16[8192, 65536] · [65536, 16384]",
        {
            "right": Shown("matmul_rs"),
            "loop, adds first": Shown("matmul_rs", "rs_late_in_a_loop"),
            "all matmuls first": Shown("matmul_rs", "rs_full_matmul_first"),
        },
        {"B": 8192, "F": 65536, "D": 16384},
    ),
    "f3_both_ways": Picture(
        "float32[8192, 32768] · [32768, 40960]",
        {
            "one way (F1)": Shown("both_ways_ag_matmul", "both_ag_one_way"),
            "both ways": Shown("both_ways_ag_matmul"),
            "halves forwards": Shown("both_ways_ag_matmul", "both_ag_halves_one_way"),
        },
        {"B": 8192, "D": 32768, "F": 40960},
    ),
    "h2_buckets": Picture(
        "four layers in bfloat16",
        {"bucketed_grads": Shown("bucketed_grads")},
        {"D": 4096, "E": 5120, "F": 4608, "G": 6144, "K": 3072, "B": 32768},
        {"dp": 8},
        "Each device has 4096 rows. The widths are 4096, 5120, 4608, 6144 and 3072, and the plan is [[3], [2, 1], [0]].",
    ),
    "h4_fsdp": Picture(
        "four layers of float32[4096, 4096] and 16,384 rows",
        {"ahead": Shown(static={}), "waiting": Shown(misconception="gathers_behind_the_matmul", static={})},
        {"L": 4, "D": 4096, "B": 16384},
        {"dp": 8},
    ),
    "h9_seven_layouts": Picture(
        "three layers of float32[16384, 16384] and 32,768 rows",
        {"scheme 2": Shown("stack", static={"scheme": 2}), "scheme 5": Shown("stack", static={"scheme": 5})},
        {"L": 3, "E": 16384, "B": 32768},
        {"x": 8},
    ),
    "m2_train_step": Picture(
        "`train_step` with the sizes above",
        {"the solution": Shown("train_step")},
        {"B": 6, "T": 8192, "D": 6400, "H": 50, "d": 128, "F": 25600},
    ),
}
MATMULS = {
    "gather_first": "gather everything, then multiply",
    "right": "right: each hop overlaps a matmul",
    "waits": "wrong: each hop waits for the matmul before it",
    "late_loop": "late: a loop that receives, then multiplies",
    "both_ways": "right, both ways round",
}
SIZES = {"I": 2048, "J": 8192, "K": 2048}
NARROW = {"I": 88, "J": 13, "K": 17}
TABLE = re.compile(r"(?<=<!-- made by docs/clock_pictures.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
IN_TIME = re.compile(r"\*\*In time\.\*\*.*?```\n.*?```\n", re.DOTALL)


def made() -> dict[Path, str]:
    """Return the current text of every file that this script writes."""
    course = load_course(ROOT / "course.yaml")
    with Grader(course, "none") as grader:
        matmuls = collective_matmuls(course, grader)
        ending = {f"{heading}: {show_us(one.step)}": one for heading, one in matmuls.items()}
        texts = {
            ROOT / "docs" / "collective-matmul.svg": render(
                "timeline.svg.j2", chart=draw_chart(ending), standalone=True
            )
        }
        page = ROOT / "docs" / "clock-pictures.md"
        texts[page] = TABLE.sub(lambda _: table(matmuls), page.read_text(encoding="utf-8"))
        for name, picture in STATEMENTS.items():
            path, drawn = course.path_of(name), in_time(course, grader, name, picture)
            texts[path] = IN_TIME.sub(lambda _, text=drawn: text, path.read_text(encoding="utf-8"), count=1)
    return texts


def collective_matmuls(course: Course, grader: Grader) -> dict[str, Timeline]:
    """Return the timelines of the functions of docs/collective_matmul.py, by heading."""
    source = (ROOT / "docs" / "collective_matmul.py").read_text(encoding="utf-8")
    space: dict = {}
    exec(source, space)
    exercise = Exercise(meshes=[MESH], id="collective_matmul")
    arrays = {"a": normal("I", "J", spec=P("x"), dtype="bfloat16"), "w": normal("J", "K", dtype="bfloat16")}
    body = exercise.body(out_specs=P())
    narrow = [exercise.call(body(space[name]), dims=NARROW, **arrays) for name in MATMULS]  # type: ignore[arg-type]
    calls = [exercise.timing(call, on=ON, dims=SIZES) for call in narrow]
    asks, _ = explaining.asks_of(course, exercise, calls, explaining.Wanted())
    name = "collective_matmul.py"
    found = timelines(grader, Source(name, (Chunk(name, source),)), asks, MATMULS.values())
    return {heading: in_full(one) for heading, one in found.items()}


def in_full(found: Timeline) -> Timeline:
    """Return a timeline with spans for every round of the loops, so that the picture is to scale."""
    spans = list(found.spans)
    for loop in found.loops:
        second = [s for s in found.spans if s.rounds == ((2, loop.rounds),) and loop.start <= s.start < loop.end]
        for n in range(3, loop.rounds):
            later = (n - 2) * loop.each
            spans += [replace(s, start=s.start + later, end=s.end + later, rounds=((n, loop.rounds),)) for s in second]
    return replace(found, spans=tuple(sorted(spans, key=lambda s: s.start)), loops=())


def timeline_of(course: Course, grader: Grader, name: str, program: Shown, picture: Picture) -> Timeline:
    """Return a program's timeline without line numbers: of its timing call if it has one, else of a forward pass."""
    exercise = course.exercise(program.exercise or name)
    calls = explaining.calls_of(exercise, program.task or next(iter(exercise.tasks)))
    fitting = [c for c in calls if program.static is None or dict(c.static) == program.static]
    call = next((c for c in fitting if c.timing), replace(fitting[0], wrt=(), cotangent=None))
    asks, _ = explaining.asks_of(
        course, exercise, [call], explaining.Wanted(picture.mesh, picture.dims, "" if call.timing else ON)
    )
    misconception = exercise.misconceptions[program.misconception] if program.misconception else None
    source = Source(f"{exercise.id}.py", (Chunk(f"{exercise.id}.py", reference_source(exercise, {}, misconception)),))
    (found,) = timelines(grader, source, asks, [name]).values()
    return without_lines(found)


def without_lines(found: Timeline) -> Timeline:
    return replace(found, spans=tuple(replace(span, line=None, file=None) for span in found.spans))


def timelines(grader: Grader, source: Source, asks: list, headings: Sequence[str] | object) -> dict[str, Timeline]:
    explained, notes = explaining.explained(grader, source, asks, explaining.Wanted(on=ON))
    found = {}
    for heading, program in zip(headings, explained, strict=True):  # type: ignore[call-overload]
        if program.timeline is None:
            raise RuntimeError(f"{program.title}: {program.fault or program.untimed or notes}")
        found[heading] = program.timeline
    return found


def in_time(course: Course, grader: Grader, name: str, picture: Picture) -> str:
    """Return the part "In time" of a statement.

    The part has a sentence, and each timeline on one scale with the overlapped part of its longest collective.
    """
    shown = {heading: timeline_of(course, grader, name, one, picture) for heading, one in picture.shown.items()}
    pictures = draw_timelines(list(shown.values()), WIDTH)
    named = words(list(kinds(shown.values())), "\n".join(line for drawn in pictures for line in drawn))
    first = next(iter(shown.values()))
    form = "which form a ring" if len(first.shape) == 2 else "with one mesh axis along each dimension of the slice"
    where = f"{'x'.join(map(str, first.shape))} {first.chip} chips, {form}"
    text = (
        f"**In time.** The grader's clock computes the times of this picture for {picture.of} on {where}."
        f"{picture.more and ' ' + picture.more} It uses the profile *{first.profile}*: every collective can run beside "
        f"the core. In the picture {named}; times are in us."
    )
    lines = [textwrap.fill(text, 118, break_on_hyphens=False), "", "```"]
    for (heading, timeline), drawn in zip(shown.items(), pictures, strict=True):
        kind, share = max(timeline.shares().items(), key=lambda item: item[1].total)
        runs = sum(c.runs for c in timeline.collectives if c.kind == kind)
        lines += [
            f"{heading}: {show_us(timeline.step)}, {runs} {kind.replace('_', '-')}s, {share.part:.0%} of their time overlapped",
            *drawn,
            "",
        ]
    return "\n".join([*lines[:-1], "```", ""])


WORDS = {
    "permute": "a hop",
    "kernel": "work of the core",
    "matmul": "a matmul",
    "all_gather": "an all-gather",
    "reduce_scatter": "a reduce-scatter",
    "all_reduce": "an all-reduce",
}


def words(shown: list[str], drawn: str) -> str:
    """Return the legend of the labels in a picture, such as `k` for the core's work and `P` for a permute.

    Args:
        shown: the kinds of operations.
        drawn: the picture. A kind has its word as label if the picture has only the word. A word that says what it
            means, such as `matmul`, is left out.
    """
    lanes = re.sub(r"^(compute|link \S+)", "", drawn, flags=re.MULTILINE)
    letters = re.sub("|".join(bar_word(kind) for kind in shown), "", lanes)
    label = {kind: letter(kind) if letter(kind) in letters else bar_word(kind) for kind in shown}
    other = "other work of the core" if label.get("matmul") == "D" else "work of the core other than a matmul"
    said = WORDS | ({"kernel": other} if "matmul" in shown else {})
    named = [(label[kind], said.get(kind, word(kind))) for kind in shown]
    *most, last = (f"`{name}` is {meaning}" for name, meaning in named if meaning.split(" ", 1)[-1] != name)
    return f"{', '.join(most)} and {last}" if most else last


def table(shown: Mapping[str, Timeline]) -> str:
    """Return a table with the step time, the overlapped part and the memory of each timeline."""
    rows = [
        "| program | step | core busy | overlapped time of hops | exposed time of hops | held at once |",
        "|---|---|---|---|---|---|",
    ]
    for heading, timeline in shown.items():
        (share,) = timeline.shares().values()
        held = f"{timeline.memory.peak / 2**20:.0f} MiB"
        rows.append(
            f"| {heading} | {show_us(timeline.step)} | {show_us(timeline.busy)} | {share.part:.0%} of {show_us(share.total)} "
            f"| {show_us(share.exposed)} | {held} |"
        )
    return "\n".join([*rows, ""])


if __name__ == "__main__":
    for path, text in made().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomic(path, text)
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
