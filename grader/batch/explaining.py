"""What the functions of one exercise do, on each mesh: traced and run as ``check`` does, with inputs that anybody may draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from grader.batch.grade import Grader
from grader.common.layout import entries
from grader.common.observation import Fault, Observation, Seen, Sharded
from grader.course.config import CourseError
from grader.course.in_place import reference_in_place
from grader.declared import fits
from grader.exercise import Array, AuthorError, Call, Exercise
from grader.intake.submission import Chunk, Source
from grader.judging.judge import Answered
from grader.judging.plan import OPEN_SEED, Ask, rng
from grader.reports.explained import Explained, Placed, show_sizes


def reference(exercise: Exercise) -> Source:
    """The solution as a submission, with its own lines."""
    name = f"{exercise.id}.py"
    return Source(name, (Chunk(name, reference_in_place(exercise)),))


def calls_of(exercise: Exercise, task: str | None = None) -> list[Call]:
    """The calls of this task, or of all. Raises CourseError where there is none: nothing is traced then."""
    found = [c.call for c in exercise.checks.values() if isinstance(c.call, Call)]
    chosen = [call for call in dict.fromkeys(found) if task in (None, call.task.name)]
    if not chosen:
        what = task or exercise.id
        raise CourseError(f"{what} has no program to explain: only functions of arrays on a mesh are traced into one")
    return chosen


def asks_of(
    exercise: Exercise, calls: Iterable[Call], mesh: Mapping[str, int] | None, devices: int
) -> tuple[list[Ask], list[str]]:
    """An ask for each call and mesh with the dimensions that learners see; also one line for each call left out.

    Args:
        mesh: takes the place of the meshes that were declared.
        devices: that the course has.

    Raises:
        CourseError: the mesh is too large, or none of the calls can be made on it.
    """
    if mesh is not None and (need := math.prod(mesh.values())) > devices:
        raise CourseError(f"a mesh of {show_sizes(mesh)} needs {need} devices, course.yaml says devices: {devices}")
    asks, problems = [], []
    for call in calls:
        try:
            chosen = call.meshes if mesh is None else (_fitting(call, mesh, call.dims),)
            asks += [_ask(exercise.id, call, one, call.dims) for one in chosen]
        except AuthorError as error:
            problems.append(f"{call.task.name}: {error}")
    if not asks:
        raise CourseError(problems[0])
    return asks, problems


def with_hidden_sizes(asks: Iterable[Ask]) -> list[Ask]:
    """The same with the hidden dimensions of each call, where they fit: for authors, who know them."""
    found = []
    for ask in asks:
        assert isinstance(ask.of, Call)
        if ask.of.hidden_dims != ask.of.dims and _fits(ask.of, ask.mesh, ask.of.hidden_dims):
            found.append(_ask(ask.exercise, ask.of, ask.mesh, ask.of.hidden_dims))
    return found


def _fits(call: Call, mesh: Mapping[str, int], dims: Mapping[str, int]) -> bool:
    try:
        return bool(_fitting(call, mesh, dims))
    except AuthorError:
        return False


def _fitting(call: Call, mesh: Mapping[str, int], dims: Mapping[str, int]) -> Mapping[str, int]:
    """Raises AuthorError where an argument of the call is not cut evenly on this mesh."""
    for name, array in _arrays(call).items():
        fits(name, array, dims, mesh, "dims")
    return mesh


def _arrays(call: Call) -> dict[str, Array]:
    return dict(call.args) | ({"cotangent": call.cotangent} if call.cotangent else {})


def _ask(exercise: str, call: Call, mesh: Mapping[str, int], dims: Mapping[str, int]) -> Ask:
    draw = rng(OPEN_SEED, f"{exercise}/explain/{dict(mesh)}")
    inputs = {name: array.sample(dims, draw) for name, array in _arrays(call).items()}
    return Ask(call, mesh, dims, [inputs], exercise=exercise)


def explained(grader: Grader, source: Source, asks: list[Ask]) -> tuple[list[Explained], list[str]]:
    """What each ask comes to; also what stopped the source while it was loaded."""
    with grader.workers() as workers:
        answered, notes = workers.collect(source, asks)
    return [_explained(answer) for answer in answered], notes


def _explained(answer: Answered) -> Explained:
    ask, seen = answer.ask, answer.finding
    about = (ask.exercise, ask.task, ask.mesh, ask.dims)
    if isinstance(seen, Fault):
        return Explained(*about, fault=seen)
    assert isinstance(seen, Observation)
    assert isinstance(ask.of, Call)
    return Explained(
        *about,
        arguments=_arguments(ask),
        results=_results(ask.of, seen.outputs[0]),
        collectives=seen.collectives,
        traffic=Seen(ask.mesh, collectives=seen.collectives).traffic,
        memory=seen.memory,
        flops=seen.flops,
        dot_flops=seen.dot_flops,
    )


def _arguments(ask: Ask) -> list[Placed]:
    """What is asked of the program's arguments, the cotangent last."""
    asked = ask.for_tracer([])
    given = asked["args"] + ([asked["cotangent"]] if asked["cotangent"] else [])
    return [_argument(about, ask.mesh) for about in given]


def _argument(about: dict, mesh: Mapping[str, int]) -> Placed:
    """An argument as it is asked for; its spec is wire data."""
    spec = tuple(tuple(e["tuple"]) if isinstance(e, dict) else e for e in about["spec"]["spec"])
    shape = tuple(about["shape"])
    cuts = [math.prod(mesh[axis] for axis in axes) for axes in entries(spec, len(shape))]
    local = tuple(size // parts for size, parts in zip(shape, cuts, strict=True))
    return Placed(about["name"], shape, about["dtype"], spec, (local,))


def _results(call: Call, outputs: list[Sharded]) -> list[Placed]:
    """The results by position, and the gradients, which come last, by their argument."""
    count = len(outputs) - len(call.wrt)
    names = ["result"] if count == 1 else [f"result {i}" for i in range(count)]
    names += [f"gradient of {name}" for name in call.wrt]
    return [
        Placed(name, out.shape, out.dtype.name, out.spec, tuple(dict.fromkeys(s.shape for s in out.shards)))
        for name, out in zip(names, outputs, strict=True)
    ]
