"""The pictures of timelines in the documents and in module 05, made by the clock: python docs/clock_pictures.py

Writes docs/collective-matmul.svg, the table of docs/clock-pictures.md, and the part "In time" of the statements in
solutions/05_rings. ``tests/test_clock_pictures.py`` proves that all of it is as this would write it.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from jax.sharding import PartitionSpec as P

from grader.batch import explaining
from grader.batch.grade import Grader
from grader.clock import Timeline
from grader.common.files import write_atomic
from grader.course.loading import Course, load_course
from grader.exercise import Exercise, normal
from grader.intake.submission import Chunk, Source
from grader.reports.pages import timelines_svg
from grader.reports.timeline_text import draw_timelines
from grader.reports.timelines import kinds, letter, show_us, word

ROOT = Path(__file__).resolve().parents[1]
ON, MESH = "v5e:2x4", {"x": 8}
WIDTH = 76  # of a terminal's 80 columns, as ``verify`` asks of statements
RINGS = {  # what is shown in each statement, by heading, and the sizes
    "e1_ring_all_gather": ({"one way": "ring_all_gather"}, {"I": 8192, "J": 512}, "float32[8192, 512]"),
    "e2_ring_reduce_scatter": ({"one way": "ring_reduce_scatter"}, {"I": 8192, "J": 4096}, "blocks of float32[8192, 512]"),
    "e3_ring_all_reduce": ({"one way": "ring_all_reduce"}, {"I": 8192, "J": 4096}, "blocks of float32[8192, 512]"),
    "e4_bidirectional": (
        {"one way (E1)": "ring_all_gather", "both ways": "bidi_all_gather"}, {"I": 8192, "J": 512}, "float32[8192, 512]",
    ),
    "e5_ring_all_to_all": (
        {"from hops": "ring_all_to_all"}, {"I": 8192, "J": 512}, "float32[8192, 512]"
    ),
}  # fmt: skip
MATMULS = {
    "gather_first": "gather everything, then multiply",
    "right": "right: each hop under a product",
    "waits": "wrong: each hop waits for the product before it",
    "late_loop": "late: a loop that receives, then multiplies",
    "both_ways": "right, both ways round",
}
SIZES = {"I": 2048, "J": 8192, "K": 2048}
TABLE = re.compile(r"(?<=<!-- made by docs/clock_pictures.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
IN_TIME = re.compile(r"\*\*In time\*\*.*?```\n.*?```\n", re.DOTALL)


def made() -> dict[Path, str]:
    """Every file that has such a picture, as it should be."""
    course = load_course(ROOT / "course.yaml")
    with Grader(course, "none") as grader:
        matmuls = collective_matmuls(course, grader)
        texts = {ROOT / "docs" / "collective-matmul.svg": timelines_svg(matmuls)}
        page = ROOT / "docs" / "clock-pictures.md"
        texts[page] = TABLE.sub(lambda _: table(matmuls), page.read_text(encoding="utf-8"))
        shown: dict[str, Timeline] = {}
        for name, (tasks, dims, of) in RINGS.items():
            for task in tasks.values():
                if task not in shown:
                    shown[task] = ring(course, grader, task, dims)
            path = course.path_of(name)
            drawn = in_time({heading: shown[task] for heading, task in tasks.items()}, of)
            texts[path] = IN_TIME.sub(lambda _, text=drawn: text, path.read_text(encoding="utf-8"), count=1)
    return texts


def collective_matmuls(course: Course, grader: Grader) -> dict[str, Timeline]:
    """The functions of docs/collective_matmul.py, by heading."""
    source = (ROOT / "docs" / "collective_matmul.py").read_text(encoding="utf-8")
    space: dict = {}
    exec(source, space)
    exercise = Exercise(meshes=[MESH], id="collective_matmul")
    arrays = {"a": normal("I", "J", spec=P("x"), dtype="bfloat16"), "w": normal("J", "K", dtype="bfloat16")}
    body = exercise.body(out_specs=P())
    calls = [exercise.timing(body(space[name]), on=ON, dims=SIZES, **arrays) for name in MATMULS]
    asks, _ = explaining.asks_of(course, exercise, calls, explaining.Wanted())
    name = "collective_matmul.py"
    return timelines(grader, Source(name, (Chunk(name, source),)), asks, MATMULS.values())


def ring(course: Course, grader: Grader, task: str, dims: Mapping[str, int]) -> Timeline:
    """The reference of a task of module 05, without the lines of the solution."""
    exercise = next(e for e in map(course.exercise, RINGS) if task in e.tasks)
    wanted = explaining.Wanted(MESH, dims, ON)
    asks, _ = explaining.asks_of(course, exercise, explaining.calls_of(exercise, task), wanted)
    (found,) = timelines(grader, explaining.reference(exercise), asks, [task]).values()
    return replace(found, spans=tuple(replace(span, line=None, file=None) for span in found.spans))


def timelines(grader: Grader, source: Source, asks: list, headings: Sequence[str] | object) -> dict[str, Timeline]:
    explained, notes = explaining.explained(grader, source, asks, explaining.Wanted(on=ON))
    found = {}
    for heading, program in zip(headings, explained, strict=True):  # type: ignore[call-overload]
        if program.timeline is None:
            raise RuntimeError(f"{program.title}: {program.fault or program.untimed or notes}")
        found[heading] = program.timeline
    return found


def in_time(shown: Mapping[str, Timeline], of: str) -> str:
    """The part of a statement: a sentence, and the lanes of each timeline on one scale."""
    named = " and ".join(f"`{letter(k)}` is {WORDS.get(k, word(k))}" for k in kinds(shown.values()))
    first = next(iter(shown.values()))
    where = f"{'x'.join(map(str, first.shape))} {first.chip} chips, which form a ring"
    text = f"**In time**, as the course's clock lays it out: {of} on {where}; {named}, times are in us."
    lines = [textwrap.fill(text, 118, break_on_hyphens=False), "", "```"]
    for (heading, timeline), drawn in zip(shown.items(), draw_timelines(list(shown.values()), WIDTH), strict=True):
        permutes = timeline.shares()["permute"]
        hops = sum(c.runs for c in timeline.collectives)
        lines += [
            f"{heading}: {show_us(timeline.step)}, {hops} permutes, {permutes.part:.0%} of their time hidden",
            *drawn,
            "",
        ]
    return "\n".join([*lines[:-1], "```", ""])


WORDS = {"permute": "a hop", "kernel": "work of the core"}


def table(shown: Mapping[str, Timeline]) -> str:
    """Step and hidden part of each, and what they hold."""
    rows = ["| | step | core busy | talking, hidden | exposed | held at once |", "|---|---|---|---|---|---|"]
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
