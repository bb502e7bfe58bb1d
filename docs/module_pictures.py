"""One picture of each module's idea, to step through: python docs/module_pictures.py

The script writes docs/_site/modules/*.html from docs/ideas.py and the clock. On the site, each picture is below its
module's README (see docs/_site/hook.py). ``tests/test_module_pictures.py`` proves that the pictures are current.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import clock_pictures
from jax.sharding import PartitionSpec as P
from markupsafe import Markup

from grader.batch import explaining
from grader.batch.grade import Grader
from grader.common.files import write_atomic
from grader.common.layout import owner_slices
from grader.course.loading import Course, load_course
from grader.exercise import Exercise, normal
from grader.intake.submission import Chunk, Source
from grader.reports.explained import Explained, Placed
from grader.reports.pages import (
    inline,
    render,
    render_arrows,
    render_held,
    render_roofline,
    render_rounds,
    render_timelines,
)

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RING = {"x": 4}


@dataclass(frozen=True)
class Maker:
    """The course, a grader, and the functions of docs/ideas.py, from which pictures are made."""

    course: Course
    grader: Grader

    def explained(self, function: str, mesh: Mapping[str, int], on: str = "", **arrays: Any) -> Explained:
        """Return the facts about a function of docs/ideas.py.

        Args:
            function: the function's name.
            mesh: size of each mesh axis.
            on: a slice for the timeline; "" for no timeline.
            arrays: the function's arguments by name, ``out`` (the result's spec) and ``dims`` (the sizes).
        """
        path = DOCS / "ideas.py"
        text, space = path.read_text(encoding="utf-8"), {}
        exec(text, space)
        exercise = Exercise(meshes=[dict(mesh)], id="ideas")
        body = exercise.body(out_specs=arrays.pop("out"))(space[function])
        call = exercise.call(body, dims=arrays.pop("dims"), **arrays)
        wanted = explaining.Wanted(on=on)
        asks, _ = explaining.asks_of(self.course, exercise, [call], wanted)
        source = Source(path.name, (Chunk(path.name, text),))
        (found,), notes = explaining.explained(self.grader, source, asks, wanted)
        if found.fault is not None:
            raise RuntimeError(f"{function}: {found.fault} {notes}")
        return found

    def timelines(self, name: str, **dims: int) -> dict[str, str]:
        """Return pictures of the timelines in the part "In time" of a statement; ``dims`` replace some of its sizes."""
        picture = clock_pictures.STATEMENTS[name]
        picture = replace(picture, dims=picture.dims | dims)
        found = {
            heading: clock_pictures.timeline_of(self.course, self.grader, name, one, picture)
            for heading, one in picture.shown.items()
        }
        sizes = "".join(f", {dim} = {size:,}" for dim, size in dims.items())
        return {f"{heading}{sizes}": render_timelines({heading: one}) for heading, one in found.items()}


def held(shape: tuple[int, ...], spec: tuple, mesh: Mapping[str, int], name: str = "A") -> str:
    """Return a grid that shows which part of an array each device holds."""
    parts = owner_slices(shape, spec, mesh)
    local = tuple(dict.fromkeys(tuple(stop - start for start, stop in part) for part in parts))
    return render_held(Explained("ideas", name, mesh, {}, arguments=[Placed(name, shape, "float32", spec, local)]))


def moved(program: Explained) -> str:
    """Return a picture of the data on each device before and after the program, and of the data that devices send."""
    return render_held(program) + render_arrows(program)


def rounds(program: Explained) -> str:
    """Return a picture of a program's rounds, without line numbers, because the page does not show the program."""
    routes, pipelines = (
        [replace(one, lines=(None,) * len(one.lines)) for one in of] for of in (program.routes, program.pipelines)
    )
    return render_rounds(replace(program, routes=routes, pipelines=pipelines))


def layouts(maker: Maker) -> dict[str, str]:
    mesh = {"x": 4, "y": 2}
    specs = [(), ("x", None), (None, "y"), ("x", "y"), (("x", "y"), None), (("y", "x"), None)]
    return {f"P{spec}".replace("'", '"').replace(",)", ")"): held((48, 40), spec, mesh) for spec in specs}


def collectives(maker: Maker) -> dict[str, str]:
    array, dims = normal("I", "J", spec=P("x")), {"I": 48, "J": 40}
    outs = {"all_gather": P(), "reduce_scatter": P(None, "x"), "all_reduce": P(), "all_to_all": P(None, "x")}
    return {
        name.replace("_", "-"): moved(maker.explained(name, RING, a=array, out=out, dims=dims))
        for name, out in outs.items()
    }


def matmuls(maker: Maker) -> dict[str, str]:
    cases = {
        "case 1, the contracting dimension is whole": ("no_communication", P("x"), P(), P("x")),
        "case 2, it is cut in one operand": ("gather_one_operand", P(None, "x"), P(), P()),
        "case 3, it is cut in both": ("reduce_the_sum", P(None, "x"), P("x"), P()),
        "case 4, one axis cuts rows of A and columns of B": ("gather_one_of_two", P("x"), P(None, "x"), P(None, "x")),
    }
    return {
        name: moved(
            maker.explained(
                function, RING, a=normal("I", "J", spec=a), b=normal("J", "K", spec=b), out=out,
                dims={"I": 24, "J": 32, "K": 40},
            )
        )
        for name, (function, a, b, out) in cases.items()
    }  # fmt: skip


def times(maker: Maker) -> dict[str, str]:
    """Return pictures of timelines on one scale: each picture shows one collective more than the picture before."""
    outs = {"all_reduce": P(), "all_gather": P(), "reduce_scatter": P(None, "x"), "all_to_all": P(None, "x")}
    found, shown = {}, {}
    for name, out in outs.items():
        array = normal("I", "J", spec=P("x") if name != "all_reduce" else P())
        program = maker.explained(name, {"x": 8}, "v5e:2x4", a=array, out=out, dims={"I": 4096, "J": 512})
        assert program.timeline is not None
        found[name.replace("_", "-")] = clock_pictures.without_lines(program.timeline)
        shown[f"with the {name.replace('_', '-')}" if len(found) > 1 else "all-reduce"] = render_timelines(found)
    return shown


def ring(maker: Maker) -> dict[str, str]:
    array, dims = normal("I", "J", spec=P("x")), {"I": 48, "J": 40}
    return {"": rounds(maker.explained("ring_all_gather", {"x": 8}, a=array, out=P(), dims=dims))}


def overlap(maker: Maker) -> dict[str, str]:
    found = clock_pictures.collective_matmuls(maker.course, maker.grader)
    return {name: render_timelines({name: clock_pictures.without_lines(one)}) for name, one in found.items()}


def gradients(maker: Maker) -> dict[str, str]:
    dims, cut, rows = {"I": 48, "J": 40}, normal("I", "J", spec=P("x")), normal("I", "J", spec=P("x"))
    partial, columns = normal("I", "J"), normal("I", "J", spec=P(None, "x"))
    programs = {
        "forward: an all-gather": ("all_gather", {"a": cut, "out": P()}),
        "backward: its gradient": ("gradient_of_all_gather", {"a": rows, "ct": partial, "out": P("x")}),
        "forward: a reduce-scatter": ("reduce_scatter", {"a": partial, "out": P(None, "x")}),
        "backward: the gradient": ("gradient_of_reduce_scatter", {"a": partial, "ct": columns, "out": P()}),
    }
    return {
        name: moved(maker.explained(function, RING, dims=dims, **about)) for name, (function, about) in programs.items()
    }


def pipeline(maker: Maker) -> dict[str, str]:
    array, dims = normal("I", "J", spec=P("x")), {"I": 50, "J": 40}
    return {"": rounds(maker.explained("along_a_pipeline", {"x": 5}, a=array, out=P("x"), dims=dims))}


def attention(maker: Maker) -> dict[str, str]:
    dims, positions, heads = {"T": 48, "H": 8}, normal("T", "H", spec=P("x")), normal("T", "H", spec=P(None, "x"))
    return {
        "from positions to heads": moved(
            maker.explained("heads_for_positions", RING, q=positions, out=P(None, "x"), dims=dims)
        ),
        "and back": moved(maker.explained("positions_for_heads", RING, q=heads, out=P("x"), dims=dims)),
    }


def meshes(maker: Maker) -> dict[str, str]:
    found = [({"x": 8}, ("x", None)), ({"x": 4, "y": 2}, ("x", "y")), ({"x": 2, "y": 4}, ("x", "y"))]
    found += [({"y": 2, "x": 4}, ("x", "y")), ({"x": 2, "y": 2, "z": 2}, ("x", ("y", "z")))]
    return {
        f"mesh {', '.join(f'{a}={n}' for a, n in mesh.items())}": held((48, 40), spec, mesh) for mesh, spec in found
    }


def training_steps(maker: Maker) -> dict[str, str]:
    return {name: html for length in (8192, 2048) for name, html in maker.timelines("m2_train_step", T=length).items()}


def rooflines(maker: Maker) -> dict[str, str]:
    shown = {}
    for rows in (16, 128, 1024):
        arrays = {"a": normal("I", "J", spec=P("x"), dtype="bfloat16"), "b": normal("J", "K", dtype="bfloat16")}
        dims = {"I": 8 * rows, "J": 1024, "K": 1024}
        program = maker.explained("no_communication", {"x": 8}, "v5e:2x4", out=P("x"), dims=dims, **arrays)
        assert program.roofline is not None
        shown[f"{rows} rows on each device"] = render_roofline(program.roofline)
    return shown


@dataclass(frozen=True)
class Page:
    """The picture of a module: a heading, a text about the picture, and the function that makes the picture."""

    heading: str
    text: str
    make: Callable[[Maker], dict[str, str]]


PAGES = {
    "01_layout": Page(
        "One array, six layouts",
        "The same array on the same devices. Devices with equal colours hold equal parts.",
        layouts,
    ),
    "02_collectives": Page(
        "Four collectives", "Each device before and after, and what the devices send on the ring.", collectives
    ),
    "03_matmuls": Page(
        "Four cases of a matmul", "Operands before, the result after, and what the devices send.", matmuls
    ),
    "04_comm_times": Page(
        "Times of collectives", "One array of 8 MiB on eight v5e chips. Each picture adds a collective.", times
    ),
    "05_rings": Page("An all-gather, round by round", "In each round every device passes on what it received.", ring),
    "06_overlap": Page(
        "A collective matmul, five ways",
        "Hops that run beside a matmul are overlapped. Others make the step longer.",
        overlap,
    ),
    "07_autodiff": Page(
        "Collectives backwards",
        "The gradient of an all-gather is a reduce-scatter, and the other way round.",
        gradients,
    ),
    "08_training": Page(
        "FSDP with gathers ahead",
        "The same gathers overlap matmuls, or wait for them.",
        lambda m: m.timelines("h4_fsdp"),
    ),
    "09_pipeline": Page(
        "Data on their way through five stages", "The first stage has no sender, so it receives zeros.", pipeline
    ),
    "10_experts_attention": Page(
        "From positions to heads", "An all-to-all exchanges the cut of positions for a cut of heads.", attention
    ),
    "11_types_and_meshes": Page(
        "Five meshes of eight devices", "The order of axes decides which device holds what.", meshes
    ),
    "12_predict_profile": Page(
        "A matmul under its roofline", "With more rows, a matmul does more FLOPs per byte.", rooflines
    ),
    "13_capstone": Page(
        "A training step in time",
        "A transformer block on a 3-D mesh. Shorter texts leave less compute to overlap with.",
        training_steps,
    ),
}
PICTURE = """<h2>{heading}</h2>
<p>{text} Use the buttons, the slider or the arrow keys. Without scripts, all pictures are below each other.</p>
<div class="idea">
{picture}
</div>
"""


def made() -> dict[Path, str]:
    """Return the current text of every picture's file."""
    course = load_course(ROOT / "course.yaml")
    texts = {}
    with Grader(course, "none") as grader:
        maker = Maker(course, grader)
        for name, page in PAGES.items():
            steps = page.make(maker)
            named = [(name, Markup(step)) for name, step in steps.items()]
            html = named[0][1] if len(named) == 1 else render("steps.html.j2", steps=named, look=inline)
            picture = "\n".join(line for line in html.splitlines() if line.strip())
            shown = PICTURE.format(heading=page.heading, text=page.text, picture=picture)
            texts[DOCS / "_site" / "modules" / f"{name}.html"] = shown
    return texts


if __name__ == "__main__":
    for path, text in made().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            write_atomic(path, text)
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
