"""The commands ``predict`` and ``profile``: predict times, then measure them on the available devices. Not graded."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from grader.batch.explaining import Wanted, asks_of, calls_of, chosen
from grader.cli.completion import exercises
from grader.cli.console import print_json, say, tell
from grader.cli.options import AsJson, CourseOption, Work, course_at, sizes_of, work_in
from grader.common.files import write_atomic
from grader.common.layout import show_sizes
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.judging.units import BadAnswer, parse, show, unit_of
from grader.reports.explained import Explained
from grader.reports.loglog import MeasuredPoint, show_seconds
from grader.reports.pages import loglog_svg
from grader.reports.points import counted
from grader.reports.untrusted import clean
from grader.wings.predict.cases import LIMITS, Fit, Timed, TimeModel, cases_on, fit, learners_log, source, timed
from grader.wings.predict.journal import STEP_LIMITS, Entry, Journal, Step, keep, predictions
from grader.wings.predict.process import ask

PROFILED = "l2_predict_profile"
JOURNAL, PICTURE, LOG = "l2_predictions.jsonl", "l2_profile.svg", "l2_log.json"
NUMBERS = {
    "alpha": ("us", "the time of a hop"),
    "beta": ("GB/s", "the bandwidth of a link"),
    "flops": ("GFLOP/s", "the FLOP rate of a device"),
    "step": ("us", "the time of a step"),
}
EXAMPLE = "alpha=2us beta=3GB/s flops=40GFLOP/s"
Exercise = Annotated[
    str, typer.Argument(help="the exercise l2; with --on, any exercise or task", autocompletion=exercises)
]


def predict(
    name: Exercise,
    numbers: Annotated[list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help=f"such as {EXAMPLE}")] = None,
    on: Annotated[
        str, typer.Option("--on", help="predict a step (step=9us) of any task on a slice, such as v5e:2x4")
    ] = "",
    mesh: Annotated[str, typer.Option("--mesh", help="with --on: the mesh, such as x=4,y=2")] = "",
    dims: Annotated[
        str, typer.Option("--dims", help="with --on: sizes that replace the exercise's sizes, such as I=8192")
    ] = "",
    work: Work = None,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Record my prediction of program times on this machine.

    Afterwards, profile measures the times. Without numbers: show the programs and earlier predictions. With --on:
    predict the time of one step of any task on a slice; explain --on then shows the step's timeline and, with
    --backend, measures its time.
    """
    given = course_at(course, packaged=True)
    if on:
        wanted = Wanted(sizes_of("--mesh", mesh) or None, sizes_of("--dims", dims), on)
        predict_step(given, name, numbers or [], wanted, work, as_json=as_json)
        return
    journal = Journal.read(beside(given, name, work) / JOURNAL)
    line = line_of(numbers) if numbers else None
    found = ask(given.config.devices, "devices")
    devices = describe(found)
    before, late = journal.about("prediction", devices), bool(journal.about("measurement", devices))
    if line is not None:
        journal = journal.append("prediction", devices, vars(line) | {"after_measuring": late})
    if as_json:
        print_json(
            {"devices": found, "predictions": [prediction_data(p) for p in journal.about("prediction", devices)]}
        )
    elif line is None:
        show_programs(found, before)
    else:
        for case in cases_on(found["count"]):
            say(f"  {case.program:10} {case.size_text:>7}  {show_seconds(case.seconds(line, found['count'])):>8}")
        newest = "; the file also has your prediction from {}, but only the newest prediction is used"
        others = newest.format(clean(before[-1].at, 40)) if before else ""
        marked = "; the file says that you measured these programs before this prediction" if late else ""
        say(f"your prediction for {devices} is saved in {journal.path}{others}{marked}")


def predict_step(
    course: Course, name: str, numbers: Sequence[str], wanted: Wanted, work: Path | None, *, as_json: bool
) -> None:
    """Store a prediction of a step's time on a slice, or show stored predictions if ``numbers`` is empty.

    Raises CourseError.
    """
    exercise, task = chosen(course, name)
    tasks = list(dict.fromkeys(call.task.name for call in calls_of(exercise, task)))
    if len(tasks) > 1:
        raise CourseError(f"{name} has several tasks: predict one of {', '.join(tasks)}")
    mesh, dims = dict(wanted.mesh or {}), dict(wanted.dims)
    asks_of(course, exercise, calls_of(exercise, tasks[0]), wanted)  # raises CourseError if the step has no timeline
    place = folder_of(course, exercise.id, work)
    command = f"{tasks[0]} --on {wanted.on}{option_text('mesh', mesh)}{option_text('dims', dims)}"
    if not numbers:
        kept = [one for one in predictions(place) if (one.task, one.on) == (tasks[0], wanted.on)]
        show_steps(kept, command, as_json=as_json)
        return
    name, equals, value = (part.strip() for part in numbers[0].partition("="))
    if (name, equals, len(numbers)) != ("step", "=", 1):
        raise CourseError(
            f"{clean(' '.join(numbers), 60)!r} is not a step time; write shardlings predict {command} step=9us"
        )
    path = keep(place, Step(tasks[0], wanted.on, number_of("step", value), mesh, dims))
    if as_json:
        print_json({"kept": str(path)})
    else:
        say(
            f"your prediction is saved in {path}; next, run shardlings explain {command}, "
            "with --backend tpu to measure the time on TPUs"
        )


def option_text(name: str, sizes: Mapping[str, int]) -> str:
    return f" --{name} {','.join(f'{n}={size}' for n, size in sizes.items())}" if sizes else ""


def show_steps(kept: Sequence[Step], command: str, *, as_json: bool) -> None:
    """Show the predictions of a step. If there are none, show the command that makes one."""
    if as_json:
        print_json({"predictions": [vars(one) for one in kept]})
        return
    for one in kept:
        sizes = ", ".join(show_sizes(of) for of in (one.mesh, one.dims) if of)
        say(f"predicted {clean(one.at, 40)}: {show_seconds(one.seconds)}" + (f" on {sizes}" if sizes else ""))
    if not kept:
        say(f"Predict the time of a step: shardlings predict {command} step=9us", style="dim")


def predicted(course: Course, exercise: str, work: Path | None, program: Explained, wanted: Wanted) -> str:
    """Return a text with the learner's predictions for a program that ``explain --on`` shows; '' if there are none."""
    return predicted_text(folder_of(course, exercise, work), program, wanted)


def predicted_text(folder: Path, program: Explained, wanted: Wanted) -> str:
    """Return a text with the first and the newest prediction of a step's time; '' if there is no prediction.

    For example ``8 us (2026-03-02T10:00:00+01:00), 0.89 of the time by the course's clock; then 9 us (...), ...``.
    """
    found = [p for p in predictions(folder) if p.is_about(program.task, wanted.on, program.mesh, wanted.dims)]
    clock = program.timeline.step * 1e-12 if program.timeline else None
    ends = found[:1] if len(found) < 2 else [found[0], found[-1]]
    return "; then ".join(
        f"{show_seconds(one.seconds)} ({clean(one.at, 40)})"
        + (f", {one.seconds / clock:.2g} of the time by the course's clock" if clock else "")
        for one in ends
    )


def folder_of(course: Course, exercise: str, work: Path | None) -> Path:
    place = work_in(course, work)
    place = place.parent if place.is_file() else place
    inner = place / course.module_of[exercise]
    return inner if inner.is_dir() else place


def profile(
    name: Exercise,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="also run JAX's profiler, which writes to this new folder")
    ] = None,
    work: Work = None,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Time the predicted programs on this machine.

    The programs run on accelerators, or on simulated devices if JAX finds no accelerator.
    """
    given = course_at(course, packaged=True)
    place = beside(given, name, work)
    journal = Journal.read(place / JOURNAL)
    if trace is not None and os.path.lexists(trace):
        raise CourseError(f"{trace} already exists; name a new folder")  # old and new files would mix
    if not any(entry.what == "prediction" for entry in journal.entries):
        raise CourseError(f"{place} has no prediction yet; first run: shardlings predict l2 {EXAMPLE}")
    devices = describe(ask(given.config.devices, "devices"))
    if not (kept := journal.about("prediction", devices)):
        raise CourseError(
            f"there is no prediction of these programs on {devices}; first run: shardlings predict l2 {EXAMPLE}"
        )
    tell("note", f"timing the programs on {devices} takes about ten seconds")
    found = ask(given.config.devices, "time", *([str(trace.resolve())] if trace else []))
    measured, n = timed(found["calls"]), found["count"]
    fitted, prediction = fit(measured, n), kept[-1]
    rows = [row_data(one, prediction.line, n) for one in measured]
    points = [
        MeasuredPoint(one.case.program, one.case.size_text, one.case.seconds(prediction.line, n), one.typical)
        for one in measured
    ]
    write_atomic(place / LOG, json.dumps(learners_log(found["calls"]), indent=1) + "\n")
    write_atomic(place / PICTURE, loglog_svg(points, f"L2 on {devices}"))
    data = {"jax": found["jax"], "flags": found["flags"], "fit": vars(fitted), "rows": rows, "trace": found["trace"]}
    journal.append("measurement", devices, data)
    if as_json:
        print_json({"devices": devices, "prediction": prediction_data(prediction)} | data)
        return
    show_measured(measured, prediction, fitted, found)
    show_trace(trace, found["trace"])
    say(f"wrote {PICTURE}, {LOG} and a line of {JOURNAL} in {place}")


def beside(course: Course, name: str, work: Path | None) -> Path:
    """Return the learner's folder for exercise L2 (PROFILED). Raises CourseError if ``name`` is another exercise."""
    if course.asked([name]) != [PROFILED]:
        raise CourseError(
            f"{name} has no programs to predict and profile; only {PROFILED} has such programs. "
            f"To predict a step of your function on a slice: shardlings predict {name} step=9us --on v5e:2x4"
        )
    return folder_of(course, PROFILED, work)


def line_of(numbers: Sequence[str]) -> TimeModel:
    """Parse a model from texts such as ``alpha=2us beta=3GB/s flops=40GFLOP/s``, in any order. Raises CourseError."""
    found: dict[str, float] = {}
    for text in numbers:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or name not in LIMITS:
            raise CourseError(f"{clean(text, 60)!r} is not alpha=, beta= or flops=; write {EXAMPLE}")
        if name in found:
            raise CourseError(f"{name} appears twice; write it once")
        found[name] = number_of(name, value)
    if missing := [name for name in LIMITS if name not in found]:
        raise CourseError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; write {EXAMPLE}")
    return TimeModel(**found)


def number_of(name: str, text: str) -> float:
    """Return the number in ``text``, in SI units. Raises CourseError for a wrong unit or an implausible number."""
    (unit, meaning), (least, most) = NUMBERS[name], LIMITS.get(name, STEP_LIMITS)
    try:
        answer = parse(text, "")
    except BadAnswer as error:
        raise CourseError(f"{name}={clean(text, 60)}: {error}") from None
    kind = unit_of(unit)[1]
    if answer.dimension != kind:
        read = "has no unit" if not answer.unit else f"is {answer.dimension}"
        raise CourseError(f"{name}={clean(text, 60)} {read}; {name} is {meaning}, such as {name}=3{unit}")
    if not least <= answer.value <= most:
        raise CourseError(f"{name}={clean(text, 60)}: {meaning} is between {show(least, unit)} and {show(most, unit)}")
    return answer.value


def describe(found: dict[str, Any]) -> str:
    """Return a text that describes devices, such as ``8 simulated devices`` or ``4 x TPU v5e``."""
    many = f"{found['count']} of {found['there']}" if found["count"] < found["there"] else str(found["count"])
    if found["simulated"]:
        return f"{many} simulated device{'s' * (many != '1')}"
    return f"{many} x {clean(found['kind'], 60)}"


def show_programs(found: dict[str, Any], kept: Sequence[Entry]) -> None:
    n = found["count"]
    say(f"On {describe(found)}, N = {n}, every device runs each of these programs:\n")
    say(source() + "\n")
    for case in cases_on(n):
        if case.program == "matmul":
            cost = f"{case.flops(n):.3g} FLOPs on each device; time = these FLOPs / your rate `flops`"
        else:
            cost = f"{counted(case.hops(n), 'hop')}, {case.crossed(n) / 1e6:.3g} MB over each link"
            cost += "; time = hops * alpha + bytes / beta"
        say(f"  {case.program:10} {case.size_text:>7}  {cost}")
    if n == 1:
        say("  with one device there are no collectives, so alpha and beta predict nothing")
    for one in kept:
        say(f"\npredicted {clean(one.at, 40)}{late_text(one)}: {line_text(one.line)}")
    if not kept:
        say(f"\nPredict three numbers: shardlings predict l2 {EXAMPLE}", style="dim")


def late_text(one: Entry) -> str:
    return " (after a measurement)" if one.after_measuring else ""


def line_text(line: TimeModel) -> str:
    return ", ".join(f"{name} = {show(value, NUMBERS[name][0])}" for name, value in vars(line).items())


def show_measured(measured: Sequence[Timed], prediction: Entry, fitted: Fit, found: dict[str, Any]) -> None:
    n = found["count"]
    say(f"predicted {clean(prediction.at, 40)}{late_text(prediction)}: {line_text(prediction.line)}\n")
    say(f"  {'':10} {'':>7}  {'predicted':>10} {'measured':>10} {'spread':>7}  {'ratio':>8}  {'by the fit':>10}")
    for one in measured:
        due, line = one.case.seconds(prediction.line, n), fitted.seconds(one.case, n)
        say(
            f"  {one.case.program:10} {one.case.size_text:>7}  {show_seconds(due):>10} {show_seconds(one.typical):>10} "
            f"{one.spread:>7.0%}  {one.typical / due:>8.3g}  {show_seconds(line) if line else '-':>10}"
        )
    say(
        "\nmeasured: median time of the calls; spread: interquartile range divided by the median; "
        "ratio: measured / predicted"
    )
    for name, value in vars(fitted).items():
        lost = (
            "unknown: its effect is smaller than the spread of the measured times"
            if n > 1
            else "not measurable on one device"
        )
        say(f"fitted   {name} = {lost if value is None else show(float(f'{value:.3g}'), NUMBERS[name][0])}")
    slow = max(measured, key=lambda one: one.first / one.typical)
    say(
        f"the first call of {slow.case.program} with {slow.case.size_text} took {show_seconds(slow.first)}, "
        f"{slow.first / slow.typical:.0f} times as long as the other calls, because it also compiled the program"
    )
    if median(one.spread for one in measured) > 0.3:
        say("The spread is large: something else is running here. End it and profile again.")
    if found["simulated"]:
        say(f"{describe(found)} on {found['cores']} cores: these numbers describe this machine, not a chip.")


def row_data(one: Timed, line: TimeModel, n: int) -> dict[str, Any]:
    return {
        "program": one.case.program, "size": one.case.size, "predicted": one.case.seconds(line, n),
        "measured": one.typical, "spread": one.spread, "first": one.first, "calls": len(one.seconds),
    }  # fmt: skip


def show_trace(folder: Path | None, traced: Sequence[dict[str, Any]]) -> None:
    if folder is None:
        return
    say("times from JAX's profiler, including waits, of one call of each program at its largest size on one device:")
    for one in traced:
        say(f"  {one['program']:10} {clean(one['opcode'], 40):18} {show_seconds(one['seconds']):>8}")
    if not traced:
        say("  shardlings found no event that it can read in this trace; open the trace yourself")
    say(f"wrote {folder}; open its trace.json.gz at https://ui.perfetto.dev")


def prediction_data(one: Entry) -> dict[str, Any]:
    return {"at": one.at, "after_measuring": one.after_measuring} | vars(one.line)
