"""``check``, ``explain`` and ``show`` for the definitions in a notebook's cells."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from grader import wing
from grader.batch import explaining
from grader.batch.grade import Grader
from grader.batch.in_process import InProcess
from grader.common.layout import show_spec
from grader.common.result import Report
from grader.course.finding import course_around
from grader.intake.submission import Source, Submission
from grader.reports.explained import Explained
from grader.reports.explained_text import print_explained
from grader.reports.pages import (
    player,
    render_arrows,
    render_fragment,
    render_held,
    render_picture,
    render_roofline,
    render_rounds,
    render_timelines,
)
from grader.reports.pictures import Picture, draw_grid
from grader.reports.terminal import print_report


def check(name: str, namespace: dict[str, Any] | None = None) -> None:
    """Check one exercise of this notebook and show the report below the cell.

    Args:
        name: the exercise, such as "c3_contracting".
        namespace: the variables with the exercise's tasks; by default the caller's globals.
    """
    space = sys._getframe(1).f_globals if namespace is None else namespace
    report = graded(name, space)
    if in_notebook():
        show_html(render_fragment(report.exercises[0]))
        return
    from rich.console import Console

    print_report(report, Console(emoji=False))


def explain(
    name: str,
    namespace: dict[str, Any] | None = None,
    *,
    on: str = "",
    mesh: Mapping[str, int] | None = None,
    dims: Mapping[str, int] | None = None,
    profile: str = "ideal",
) -> None:
    """Show what the functions of one exercise do: collectives, bytes, memory, FLOPs, shardings.

    Args:
        name: the exercise, or one of its tasks.
        namespace: the variables with the exercise's tasks; by default the caller's globals.
        on: a slice such as "v5e:2x4", on which to show the functions' timelines.
        mesh, dims: a mesh and sizes that replace the exercise's mesh and sizes. If ``on`` is given and a size is
            replaced, no program runs, so the sizes may be as large as in large models.
        profile: the rule that decides which collectives overlap with compute on a timeline. With "ideal", all
            collectives overlap. With a chip such as "v5e", the kinds overlap that overlap on this chip.
    """
    from rich.console import Console

    space = sys._getframe(1).f_globals if namespace is None else namespace
    drawn = in_notebook()
    for program in explained(name, space, explaining.Wanted(mesh, dims or {}, on, profile)):
        print_explained(program, Console(emoji=False), drawn=not drawn)
        if drawn and program.fault is None:
            show_html(render_held(program))
        if drawn and program.collectives:
            show_html(render_arrows(program))
        if drawn and (program.routes or program.pipelines):
            show_html(render_rounds(program))
        if drawn and program.timeline is not None:
            show_html(render_timelines({program.title: program.timeline}))
        if drawn and (roofline := program.roofline) is not None:
            show_html(render_roofline(roofline))


def show(array: Any, title: str = "") -> None:
    """Draw the part of an array that each device of the array's mesh holds: a picture in a notebook, else text.

    Raises TypeError with a suggestion if the array is not on a mesh.
    """
    picture = picture_of(array, title)
    if in_notebook():
        show_html(render_picture(picture))
    else:
        print("\n".join(draw_grid(picture, 80)))


def picture_of(array: Any, title: str = "") -> Picture:
    """Return the layout of a JAX array. Raises TypeError if the array is not on a mesh."""
    sharding: Any = getattr(array, "sharding", None)
    mesh: Any = getattr(sharding, "mesh", None)
    if not getattr(mesh, "axis_names", ()) or not hasattr(mesh, "devices"):
        what = type(array).__name__ if sharding is None else type(sharding).__name__
        raise TypeError(
            f"show draws only arrays on a mesh, but this array has no mesh ({what}); "
            "put the array on a mesh: jax.device_put(a, NamedSharding(mesh, P(...)))"
        )
    held = sharding.devices_indices_map(array.shape)
    slices = [
        [part.indices(size)[:2] for part, size in zip(held[device], array.shape, strict=True)]
        for device in mesh.devices.flat
    ]
    shown = title or f"{array.dtype} as {show_spec(tuple(sharding.spec))}"
    return Picture(title=shown, mesh=dict(mesh.shape), shape=list(array.shape), slices=slices)


def in_notebook() -> bool:
    """Return whether this process is a notebook's kernel or an IPython prompt."""
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    return get_ipython() is not None


def show_html(fragment: str) -> None:
    """Show an HTML fragment below the cell. If scripts cannot run there, an animation is shown as a table."""
    from IPython.display import HTML, display

    moves = "data-rounds=" in fragment
    display(HTML(f"{fragment}<script>{player()}</script>" if moves else fragment))


def explained(name: str, namespace: dict[str, Any], wanted: explaining.Wanted) -> list[Explained]:
    """Explain the notebook's own functions. Raises CourseError with one line if they cannot be explained."""
    course = course_around()
    exercise, task = explaining.chosen(course, name)
    asks, _ = explaining.asks_of(course, exercise, explaining.calls_of(exercise, task), wanted)
    with Grader(course, "none", here=InProcess(namespace)) as grader:
        return explaining.explained(grader, Source("this notebook", ()), asks, wanted)[0]


def graded(name: str, namespace: dict[str, Any]) -> Report:
    """Return the report on one exercise. If the course has no solutions, as for learners, only public checks count.

    Raises CourseError for an unknown exercise.
    """
    course = course_around()
    (exercise,) = course.select([name])
    student = os.environ.get("SHARDLINGS_STUDENT", "me")
    submission = Submission(student, {exercise: Source("this notebook", ())}, (), "")
    with Grader(course, "none", here=InProcess(namespace)) as grader:
        return grader.grade(submission, [exercise], public=not course.solved)


def __getattr__(name: str) -> Any:
    """Return a function that a wing (an optional part of the grader) offers to notebooks."""
    if name.startswith("_") or name not in (places := wing.named("notebook")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return wing.load(places[name])
