"""The TPU compiler's schedules of one exercise's functions, and the timelines that ``grader.clock`` computes for them.

``grader.clock`` is the course's own model of a program's time on a slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod

from grader.batch.explaining import Wanted, asks_of, calls_of
from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.clock import Slice, Timeline, Untimed, placed, replayed
from grader.common.layout import show_sizes
from grader.common.observation import Fault, Observation, Timing
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import Call, Exercise
from grader.expect import Failure, laid_out
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding
from grader.reports.explained_text import other_profile, profiles_text
from grader.reports.points import counted
from grader.wings.chip.compiling import Compilations, name_of
from grader.wings.chip.on_chip import OnChip
from grader.wire.schedule import Instruction, Schedule


def asked(
    course: Course,
    exercise: Exercise,
    task: str | None,
    on: Slice,
    mesh: Mapping[str, int] | None,
    dims: Mapping[str, int],
) -> tuple[list[Ask], list[str]]:
    """Return requests to compile the calls that an exercise, or one of its tasks, declares, and lines on other calls.

    Each request is for one call on one mesh that the slice's chips can form. If the exercise declares timing calls
    (``exercise.timing``), return only requests for these calls. Raises CourseError if no call fits, or if ``mesh`` does
    not fit the slice.

    Args:
        mesh: a mesh in place of the declared meshes, or None.
        dims: sizes in place of declared sizes.
    """
    calls = calls_of(exercise, task)
    timed = [call for call in calls if call.timing]
    calls = [call for call in timed or calls if set(dims) <= set(call.dims)] or calls
    if mesh is None:
        calls = _calls_on(on, exercise, calls)
    asks, left_out = asks_of(course, exercise, calls, Wanted(mesh, dims, str(on), on.chip.name, paper=True))
    if mesh is None:
        left_out = [line for line in left_out if "devices" not in line]
    else:
        try:
            placed(on, mesh)  # raises ValueError if the mesh does not fit the slice
        except ValueError as error:
            raise CourseError(str(error)) from None
    return list({ask.answer_key: ask for ask in asks}.values()), left_out


def _calls_on(on: Slice, exercise: Exercise, calls: Sequence[Call]) -> list[Call]:
    """Return the calls that have a mesh with as many devices as the slice. Raises CourseError if there are none."""
    fitting = [call for call in calls if any(prod(mesh.values()) == on.count for mesh in call.meshes)]
    if not fitting:
        meshes = dict.fromkeys(
            f"{show_sizes(m)} ({counted(prod(m.values()), 'device')})" for call in calls for m in call.meshes
        )
        raise CourseError(
            f"{exercise.id}: no mesh of the exercise's calls has the {on.count} devices of {on}; "
            f"the meshes are {', '.join(meshes)}; choose another mesh with --mesh, or another slice"
        )
    return fitting


def on_chips(
    grader: Grader, source: Source, asks: Sequence[Ask], on: Slice, shipped: Compilations | None = None
) -> tuple[list[OnChip], list[str]]:
    """Return the compiled program of each request, and notes on errors from loading the source.

    Args:
        grader: must have a compiler for this slice, unless ``shipped`` has all programs.
        source: the file or notebook that defines the functions to compile.
        shipped: earlier compilations of the course's solutions, if ``source`` is a solution; else None.
    """
    with grader.pool.lent() as workers:
        answered, notes = collect(workers, source, list(asks))
    return [on_chip(answer, on, shipped) for answer in answered], notes


def on_chip(answer: AskFinding, on: Slice, shipped: Compilations | None = None) -> OnChip:
    ask, observation = answer.ask, answer.finding.observation
    about = OnChip(ask.exercise, ask.task, ask.mesh, ask.dims, str(on), on.chip)
    if observation is None:
        return replace(about, fault=answer.finding.fault)
    assert isinstance(ask.of, Call)
    made: Schedule | Fault | None = observation.compiled
    if made is None and shipped is not None:
        made = earlier(shipped.get(name_of(ask, on)), observation)
    clock, untimed = _clock(observation, ask.of.timing)
    profiles = _profiles(observation, ask.of.timing, clock) if clock else ""
    about = replace(about, clock=clock, untimed=untimed, profiles=profiles, source=tuple(observation.collectives))
    if made is None:
        return replace(about, fault=Fault("missing", "this program was not compiled for the slice"))
    if isinstance(made, Fault):
        return replace(about, fault=made)
    return with_schedule(about, made)


def earlier(made: Schedule | Fault | None, observation: Observation) -> Schedule | Fault | None:
    """Return ``made``, an earlier result of the compiler; None if it is the schedule of a different program.

    If lines of the source have moved since this compilation, the result has no line numbers.

    Args:
        observation: the current program, observed on simulated devices.
    """
    if not isinstance(made, Schedule):
        return made
    if made.program != observation.program:
        return None
    lines = {one.line for one in observation.collectives}
    moved = any(one.communication and one.line not in lines for one in made.walk())
    return replace(made, instructions=_without_lines(made.instructions)) if moved else made


def _without_lines(instructions: Iterable[Instruction]) -> tuple[Instruction, ...]:
    return tuple(
        replace(one, file=None, line=None, bodies=tuple(map(_without_lines, one.bodies))) for one in instructions
    )


def with_schedule(about: OnChip, schedule: Schedule) -> OnChip:
    """Return ``about`` with the compiler's schedule, and the schedule's timeline or the reason why there is none."""
    try:
        line = replayed(schedule, placed(about.on, about.mesh))
    except Untimed as error:
        return replace(about, schedule=schedule, unreplayed=error.message)
    return replace(about, schedule=schedule, timeline=line)


def _clock(observation: Observation, timing: Timing | None) -> tuple[Timeline | None, str]:
    try:
        return laid_out(observation.operations, timing), ""
    except Failure as failure:
        return None, failure.reason


def _profiles(observation: Observation, timing: Timing | None, clock: Timeline) -> str:
    """Return a text that compares two step times of the clock, one for each profile; '' if the times are equal.

    A profile says which kinds of collectives can overlap with compute. One profile is "ideal", and the other profile
    is the chip's own.
    """
    if timing is None:
        return ""
    return profiles_text(clock, laid_out(observation.operations, replace(timing, profile=other_profile(clock))))
