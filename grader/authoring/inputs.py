"""Check the inputs of calls: hidden sizes are at least as uneven as public sizes, and draws are reproducible."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from grader.common.layout import entries
from grader.exercise import Call, Exercise
from grader.judging.plan import arrays_of, plan


def tame_sizes(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each call whose hidden sizes are easier than its public sizes, see ``tame_dims``.

    A call of ``exercise.timing``, and the call that it times, may have sizes that are even on each device, as large
    sizes are. The timed call may have such sizes only if the task also has an untimed call.
    """
    calls = {id(call): call for check in exercise.checks.values() for call in check.calls if isinstance(call, Call)}
    timed = {id(call.timed) for call in calls.values()}
    for call in calls.values():
        others = [one for one in calls.values() if one.task is call.task and id(one) not in timed and not one.timing]
        if not call.timing and not (id(call) in timed and others):
            found = list(tame_dims(call))
            if found and call.hidden_dims == call.dims:
                found = [f"{call.task.name}: hidden_dims is missing; give sizes that are odd on each device"]
            yield from found


def tame_dims(call: Call) -> Iterator[str]:
    """Yield a problem for each hidden dimension that is easier than the public dimension.

    A hidden dimension is easier in three cases: its part on a device is even where the public part is odd, its part is
    even on every mesh, or two hidden dimensions are equal.
    """
    public, hidden = _blocks(call, hidden=False), _blocks(call, hidden=True)
    for (dim, mesh), size in hidden.items():
        if size % 2 == 0 and public[dim, mesh] % 2:
            yield f"{call.task.name}: hidden {dim} is even on each device of the mesh {dict(mesh)}, public {dim} is odd"
    for dim in dict.fromkeys(dim for dim, _ in hidden):
        if not any(size % 2 for (d, _), size in hidden.items() if d == dim):
            yield f"{call.task.name}: hidden {dim} is even on each device of every mesh"
    everywhere = [call.sizes(mesh, hidden=True) for mesh in call.meshes]
    if any(all(sizes[a] == sizes[b] for sizes in everywhere) for a, b in itertools.combinations(call.hidden_dims, 2)):
        yield f"{call.task.name}: two hidden dimensions are equal"


def _blocks(call: Call, *, hidden: bool) -> dict[tuple[str, tuple], int]:
    """Return the size of one device's part of each sharded dimension, by (name of the dimension, mesh)."""
    found: dict[tuple[str, tuple], int] = {}
    for mesh in call.meshes:
        dims = call.sizes(mesh, hidden=hidden)
        for array in call.arrays.values():
            for dim, axes in zip(array.shape, entries(array.spec, len(array.shape)), strict=True):
                if isinstance(dim, str) and axes:
                    found[dim, tuple(mesh.items())] = dims[dim] // math.prod(mesh[axis] for axis in axes)
    return found


def undecided_draws(exercise: Exercise) -> Iterator[str]:
    """Yield a problem if arguments or hidden cases depend on more than the generator given to ``draw`` or ``hidden``.

    Raises AuthorError for values that cannot be drawn.
    """
    once, again = (plan(exercise, public=False, seed="verify") for _ in range(2))
    for first, second in zip(once, again, strict=True):
        if repr(first.cases) != repr(second.cases):
            yield f"{first.task}: hidden cases are drawn differently each time: draw with the given rng"
            return
        for one, other in zip(first.inputs, second.inputs, strict=True):
            for (name, drawn), (_, redrawn) in zip(arrays_of(one), arrays_of(other), strict=True):
                if drawn.tobytes() != redrawn.tobytes():
                    task = first.task
                    yield f"{task}: argument {name} is drawn differently each time: draw with the given rng"
                    return
