"""``shardlings new``: a new exercise that passes verify, to be edited."""

from __future__ import annotations

import re
from pathlib import Path

from grader.course import Course, CourseError
from grader.files import write_atomic

TEMPLATE = '''\
"""# {title}

**Task.** What to write, in one or two sentences, in the notation of the field: `A[I_X, J]`.

**Budget.** What may be sent, and over which axis.

```
a picture
```
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import About, Exercise, normal
from grader.expect import expect_close, expect_collectives
from grader.hardware import all_gather_time, latency

exercise = Exercise(meshes=[{{"x": 4, "y": 2}}, {{"x": 2, "y": 4}}, {{"x": 8}}])


@exercise.task(hints=["A nudge.", "The idea.", "Almost the line."])
def {name}_gather(a, *, mesh):
    """Gather A[I_X, J] into A[I, J].

    Args:
        a: float32[I, J] sharded P('x', None).
        mesh: the device mesh; it has an axis 'x'.

    Returns:
        float32[I, J] sharded P(None, None).
    """

    def local(a):
        return jax.lax.all_gather(a, "x", axis=0, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(a)


gathered = exercise.call(
    {name}_gather, a=normal("I", "J", spec=P("x", None)), dims={{"I": 24, "J": 10}}, hidden_dims={{"I": 40, "J": 7}}
)


@exercise.check(gathered, points=1, public=True)
def {name}_value(seen):
    """every device holds the whole A"""
    expect_close(seen.out, seen.a, terms=1)


@exercise.check(gathered, points=1, after={name}_value)
def {name}_traffic(seen):
    """one all-gather over x and no other collective"""
    expect_collectives(seen, all_gather={{"x": 1}})


@exercise.misconception(fails={name}_value)
def {name}_kept_local(a, *, mesh):
    """Each device kept its own block: nothing was gathered."""
    return jax.shard_map(
        lambda a: jax.numpy.tile(a, (mesh.shape["x"], 1)),
        mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False,
    )(a)


@exercise.misconception(fails={name}_traffic)
def {name}_summed(a, *, mesh):
    """You summed zero-padded blocks: an all-reduce sends twice the bytes of an all-gather."""

    def local(a):
        whole = jax.numpy.zeros((a.shape[0] * mesh.shape["x"], a.shape[1]), a.dtype)
        start = jax.lax.axis_index("x") * a.shape[0]
        return jax.lax.psum(jax.lax.dynamic_update_slice_in_dim(whole, a, start, 0), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(None, None), check_vma=False)(a)


@exercise.number(
    points=1,
    unit="us",
    params={{"chip": ["v4p", "v5p"], "I": [2048, 3072, 4096], "J": [8192, 14336], "X": [4, 8]}},
    model="bidirectional ring, bandwidth only: V / W, W both directions of a link",
)
def {name}_time(chip, I, J, X):
    """`A` is bfloat16[{{{{ I }}}}, {{{{ J }}}}], sharded over a ring of {{{{ X }}}} {{{{ chip }}}} chips. How long is the all-gather?"""
    return all_gather_time(2 * I * J, X, chip)


@exercise.misconception(of={name}_time)
def {name}_one_way(chip, I, J, X):
    """You used one direction of the link; on a ring data flows both ways."""
    return 2 * {name}_time(chip=chip, I=I, J=J, X=X)


exercise.about(
    {name}_time,
    lambda chip, I, J, X: About(chip=chip, rings=(X,), mesh={{"x": X}}, arrays=[((I, J), P("x"))], least=latency(X)),
)
'''


class ScaffoldError(Exception):
    """The exercise cannot be started; one line says why."""


def new(course: Course, name: str) -> Path:
    """Write ``solutions/MODULE/EXERCISE.py`` and list it in course.yaml. Overwrites nothing."""
    match = re.fullmatch(r"(\d\d_[a-z0-9_]+)/([a-z][a-z0-9_]*)", name)
    if match is None:
        raise ScaffoldError(f"{name!r} is not MODULE/EXERCISE in lower case, such as 03_matmuls/c6_batched")
    if not course.solved:
        raise CourseError("new exercises are written where solutions/ is")
    module, exercise = match.groups()
    course.module(module)
    path = course.root / "solutions" / module / f"{exercise}.py"
    if path.exists() or exercise in course.module_of:
        raise ScaffoldError(f"{exercise} is there already")
    config = course.root / "course.yaml"
    listed = _listed(config.read_text(encoding="utf-8"), module, exercise)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, TEMPLATE.format(name=exercise.split("_")[0], title=exercise.replace("_", " ").capitalize()))
    write_atomic(config, listed)
    return path


def _listed(text: str, module: str, exercise: str) -> str:
    """course.yaml with the exercise at the end of its module's list, comments kept."""
    found = re.search(rf"(- id: {module}\b.*?exercises: \[[^\]]*)\]", text, re.DOTALL)
    if found is None:
        raise ScaffoldError(
            f"course.yaml lists {module} in a way I cannot edit: add {exercise} to its exercises, then try again"
        )
    return text[: found.end(1)] + f", {exercise}]" + text[found.end() :]
