"""Collect the facts for ``shardlings explain``: what an exercise's functions do on each mesh.

The functions run on public inputs, as in the command ``check``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from statistics import quantiles

import numpy as np

from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.clock import ASYNCHRONOUS, Slice, Timeline, live_memory, placed
from grader.common.drawing import drawn
from grader.common.layout import entries, show_sizes
from grader.common.observation import Observation, Seen, Sharded, Timing, Unseen
from grader.common.pipelines import pipelines
from grader.common.routes import routes
from grader.common.text import nearest
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.reference import reference_in_place
from grader.declared import fits
from grader.exercise import AuthorError, Call, Exercise
from grader.exercise.declarations import judged_calls
from grader.expect import Failure, laid_out
from grader.expect.costs import show_bytes
from grader.intake.submission import Chunk, Source
from grader.judging.plan import PUBLIC_SEED, Ask, inputs_of, rng
from grader.judging.seen import AskFinding
from grader.reports.explained import Explained, Placed
from grader.reports.explained_text import other_profile, profiles_text
from grader.reports.loglog import show_seconds
from grader.wire.frames import dtype_of, wide
from grader.wire.messages import Argument
from grader.wire.trees import leaves

MAX_DATA = 64 << 20  # Bytes of all arguments of a call. A call with more bytes is not run.


def chosen(course: Course, name: str) -> tuple[Exercise, str | None]:
    """Return (exercise, None) if ``name`` is an exercise, or (exercise, task) if ``name`` is a task of the exercise.

    Any unique prefix of a name works. Raises CourseError if ``name`` is unknown or ambiguous.
    """

    def tasks() -> dict[str, str]:
        return {task: e for e in course.usable(course.module_of)[0] for task in course.exercise(e).tasks}

    found, task = course.find(name, tasks)
    if len(found) > 1:
        raise CourseError(f"{name} has several exercises: explain one of {', '.join(found)}")
    return course.exercise(found[0]), task


def reference(exercise: Exercise) -> Source:
    """Return the exercise's solution as a Source. Each line of code has its line number in the author's file."""
    name = f"{exercise.id}.py"
    return Source(name, (Chunk(name, reference_in_place(exercise)),))


def calls_of(exercise: Exercise, task: str | None = None) -> list[Call]:
    """Return the calls (runs of a function on meshes) in the exercise's checks, or only the calls of ``task``.

    Raises CourseError if there are no calls.
    """
    chosen = [call for call in judged_calls(exercise.checks.values()) if task in (None, call.task.name)]
    if not chosen:
        what = task or exercise.id
        raise CourseError(f"{what} has no program to explain: only functions of arrays on a mesh have programs")
    return chosen


@dataclass(frozen=True)
class Wanted:
    """Options of the command ``explain``. They replace parts of the calls that an exercise declares.

    Attributes:
        mesh: replaces the declared meshes, if given.
        dims: sizes of dimensions, which replace the public sizes.
        on: the slice for the timeline, such as "v5e:2x4"; "" for the slice that the call itself declares, if any.
        profile: a key of ``clock.ASYNCHRONOUS``, such as "ideal". It decides which collectives the timeline overlaps
            with compute.
        paper: True to run no program. This option needs ``on``. The mesh may then be as large as the slice, and arrays
            may have any size.
    """

    mesh: Mapping[str, int] | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    on: str = ""
    profile: str = "ideal"
    paper: bool = False

    def __post_init__(self) -> None:
        """Raise CourseError for an impossible slice or an unknown profile."""
        if self.profile not in ASYNCHRONOUS:
            raise CourseError(f"no profile {self.profile!r}{nearest(self.profile, ASYNCHRONOUS)}")
        if self.on:
            try:
                Slice.of(self.on)
            except ValueError as error:
                raise CourseError(str(error)) from None


def asks_of(course: Course, exercise: Exercise, calls: Sequence[Call], wanted: Wanted) -> tuple[list[Ask], list[str]]:
    """Return a request for each call on each possible mesh, and a line for each mesh on which a call is impossible.

    For example, a call is impossible if an array does not divide evenly on the mesh. A call whose arrays may be too
    large to run is only traced.

    Raises:
        CourseError: the mesh is too large, a dimension is unknown, or every call is impossible on every mesh.
    """
    devices = course.config.devices
    if not wanted.paper and wanted.mesh is not None and (need := math.prod(wanted.mesh.values())) > devices:
        raise CourseError(
            f"a mesh of {show_sizes(wanted.mesh)} needs {need} devices, but course.yaml says devices: {devices}; "
            "choose a smaller mesh"
        )
    known = {dim for call in calls for dim in call.dims}
    for dim in wanted.dims:
        if dim not in known:
            raise CourseError(f"no dimension {dim!r} in {exercise.id}{nearest(dim, sorted(known))}")
    asks, problems = [], []
    for call in calls:
        for mesh in call.meshes if wanted.mesh is None else (wanted.mesh,):
            try:
                asks.append(_ask(exercise.id, call, mesh, wanted))
            except (AuthorError, ValueError) as error:
                problems.append(f"{call.task.name} on {show_sizes(mesh)}: {error}")
    if not asks:
        raise CourseError(problems[0])
    return asks, problems


def with_hidden_sizes(asks: Iterable[Ask]) -> list[Ask]:
    """Return these requests with hidden sizes in place of public sizes. Only authors may see hidden sizes.

    A request is left out in these cases:
    - The user gave its sizes.
    - Its hidden and public sizes are equal.
    - An array with hidden sizes does not divide evenly on the mesh.
    """
    found = []
    for ask in asks:
        assert isinstance(ask.of, Call)
        shown, hidden = ((ask.of.sizes(ask.mesh, hidden=of), ask.of.keywords(hidden=of)) for of in (False, True))
        if (ask.dims, ask.static) == shown != hidden:
            with suppress(AuthorError):
                found.append(_ask(ask.exercise, ask.of, ask.mesh, Wanted(), hidden=True))
    return found


def _ask(exercise: str, call: Call, mesh: Mapping[str, int], wanted: Wanted, *, hidden: bool = False) -> Ask:
    """Return a request for one run of a call.

    If the call runs the program several times, request only the first run.
    """
    sizes, static = call.sizes(mesh, hidden=hidden), call.keywords(hidden=hidden)
    dims = {dim: wanted.dims.get(dim, size) for dim, size in sizes.items()}
    for name, array in call.arrays.items():
        fits(name, array, dims, mesh, "dims")
    if wanted.on:
        placed(wanted.on, mesh)
    about = Ask(call, mesh, dims, static=static, exercise=exercise, check_vma=call.task.modes[0], hidden_sizes=hidden)
    if call.timing or (wanted.on and (wanted.paper or dims != sizes)):
        timing = Timing(wanted.on, None, wanted.profile) if wanted.on else call.timing
        return replace(about, of=replace(call, timing=timing, steps=1))
    size = sum(math.prod(a.sized(dims)) * dtype_of(a.dtype).itemsize for a in call.arrays.values())
    if size > MAX_DATA:
        limit = f"the arguments take {show_bytes(size)}, but the limit for a run is {show_bytes(MAX_DATA)}"
        raise ValueError(f"{limit} (with --on, all sizes are allowed, because nothing is run)")
    once = replace(call, steps=1)
    draw = rng(PUBLIC_SEED, f"{exercise}/explain/{dict(mesh)}")
    return replace(about, of=once, inputs=list(inputs_of(once, mesh, dims, static, draw)))


def explained(grader: Grader, source: Source, asks: list[Ask], wanted: Wanted) -> tuple[list[Explained], list[str]]:
    """Return the facts about each request's program, and the errors that occurred while the source was loaded."""
    with grader.pool.lent() as workers:
        answered, notes = collect(workers, source, asks)
    made = [facts_of(answer, wanted) for answer in answered]
    return [
        replace(one, elsewhere=_on_devices(a, grader.backend), measured=_measured(a, grader.backend))
        for one, a in zip(made, answered, strict=True)
    ], notes


def facts_of(answer: AskFinding, wanted: Wanted) -> Explained:
    """Return the facts about one request's program. If there is no program, the only fact is the fault."""
    ask, observation = answer.ask, answer.finding.observation
    about = (ask.exercise, ask.task, ask.mesh, ask.dims)
    if observation is None:
        return Explained(*about, fault=answer.finding.fault)
    assert isinstance(ask.of, Call)
    timeline, untimed = _timeline(observation, ask.of.timing, wanted)
    arguments, graph = _arguments(ask), observation.operations
    return Explained(
        *about,
        arguments=arguments,
        results=_results(ask.of, observation.outputs[0]) if observation.outputs else (),
        ran=bool(observation.outputs),
        collectives=observation.collectives,
        traffic=Seen(ask.mesh, collectives=observation.collectives).traffic,
        memory=observation.memory,
        live=live_memory(graph) if graph else None,
        stored=live_memory(graph, on_tpu=True).peak if graph and timeline else 0,
        routes=drawn([], routes, graph) if graph else (),
        pipelines=drawn([], pipelines, graph, [a.name for a in arguments]) if graph else (),
        flops=observation.flops,
        dot_flops=observation.dot_flops,
        timeline=timeline,
        profiles=_profiles(observation, timeline, ask.of.timing, wanted),
        untimed=untimed,
        program=observation.program,
    )


def _on_devices(answer: AskFinding, backend: str) -> str:
    """Return a text that says how far values on real devices differ from values on simulated devices; '' if unknown."""
    observation = answer.finding.observation
    if observation is None or not observation.on_devices:
        return ""
    if unseen := [a.shards.why for run in observation.on_devices[0] for a in run if isinstance(a.shards, Unseen)]:
        return f"values were not compared on {backend}: {unseen[0]}"
    pairs = [
        (wide(a), wide(b))
        for simulated, real in zip(observation.outputs, observation.on_devices[0], strict=True)
        for one, other in zip(simulated, real, strict=True)
        if one.slices == other.slices
        for a, b in zip(one.shards, other.shards, strict=True)
    ]
    with np.errstate(all="ignore"):
        off = max(
            (
                float(np.max(np.abs(a - b), initial=0.0)) / (float(np.max(np.abs(a), initial=0.0)) or 1.0)
                for a, b in pairs
            ),
            default=0.0,
        )
    return f"values on {backend} and on simulated devices differ by at most {off:.1e} of the largest value"


def _measured(answer: AskFinding, backend: str) -> str:
    """Return a text with the measured time of a call (median and spread); '' without a measurement."""
    observation = answer.finding.observation
    if observation is None or not observation.measured:
        return ""
    if isinstance(observation.measured, str):
        return f"not timed on {backend}: {observation.measured}"
    rounds = len(observation.measured)
    low, typical, high = quantiles(observation.measured, n=4)
    simulated = "; this is the time of simulated devices, not of a chip" if backend.startswith("cpu") else ""
    took = f"a call on {backend} takes {show_seconds(typical)}, the median of {rounds} rounds of calls"
    spread = f"the spread of the rounds (range of the middle half) is {(high - low) / typical:.0%} of the median"
    return f"{took}; {spread}{simulated}"


def _timeline(observation: Observation, timing: Timing | None, wanted: Wanted) -> tuple[Timeline | None, str]:
    """Return the program's timeline if it was requested, or the reason why there is none."""
    if timing is None and not wanted.on:
        return None, ""
    try:
        return laid_out(observation.operations, timing or Timing(wanted.on, None, wanted.profile)), ""
    except Failure as failure:
        return None, failure.reason
    # A ValueError means that the mesh does not fit the slice.
    except ValueError as error:
        return None, str(error)


def _profiles(observation: Observation, timeline: Timeline | None, timing: Timing | None, wanted: Wanted) -> str:
    """Return a text that compares the chip's time with the time if all collectives overlap; '' if unknown or equal."""
    if timeline is None:
        return ""
    timing = timing or Timing(wanted.on)
    return profiles_text(timeline, laid_out(observation.operations, replace(timing, profile=other_profile(timeline))))


def _arguments(ask: Ask) -> list[Placed]:
    """Return the arguments that the request gives to the program, cotangents last."""
    asked = ask.for_runner([])
    return [_argument(about, ask.mesh) for about in (*asked["args"], *asked["cotangents"])]


def _argument(about: Argument, mesh: Mapping[str, int]) -> Placed:
    """Return an argument from its JSON in a request to the tracer."""
    spec = tuple(tuple(e["tuple"]) if isinstance(e, dict) else e for e in about["spec"]["spec"])
    shape = tuple(about["shape"])
    cuts = [math.prod(mesh[axis] for axis in axes) for axes in entries(spec, len(shape))]
    local = tuple(size // parts for size, parts in zip(shape, cuts, strict=True))
    return Placed(about["name"], shape, about["dtype"], spec, (local,))


def _results(call: Call, outputs: list[Sharded]) -> list[Placed]:
    """Return the call's results, followed by the gradients. Results without names get numbers."""
    gradients = [f"gradient of {leaf}" for name in call.wrt for leaf, _ in leaves(call.args[name], name)]
    count = len(outputs) - len(gradients)
    names = [result.name for result in call.results or ()]
    if not any(names):
        names = ["result"] if count == 1 else [f"result {i}" for i in range(count)]
    return [
        Placed(name, out.shape, out.dtype.name, out.spec, tuple(dict.fromkeys(s.shape for s in out.shards)))
        for name, out in zip([*names, *gradients], outputs, strict=True)
    ]
