"""A small course, written to a folder, for tests that build and prove a course."""

from __future__ import annotations

from pathlib import Path

from grader.course.loading import Course, load_course

EXERCISE = '''\
"""# X1 Gather

Say what to do.
"""

import math

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Scenario, Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec
from grader.hardware import all_gather_time

exercise = Exercise(meshes=[{"x": 4}, {"x": 2}])
ROWS = exercise.given(8)


@exercise.given
def helper(a):
    """Given."""
    return math.prod(a.shape)  # a comment that stays


def secret_helper(a):
    return jax.lax.all_gather(a, "x", axis=0, tiled=True)


@exercise.task(hints=["a nudge"])
def gather(a, *, mesh):
    """Gather A[I_X, J] into A[I, J]."""
    return jax.shard_map(secret_helper, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


A = normal("I", "J", spec=P("x", None))
call = exercise.call(gather, a=A, dims={"I": 8, "J": 3}, hidden_dims={"I": 1012, "J": 5})


@exercise.check(call, points=1, public=True)
def value(seen):
    """it is whole"""
    expect_close(seen.out, seen.a)
    expect_spec(seen.out, P())

@exercise.check(call, points=1, after=value)
def traffic(seen):
    """one all-gather"""
    expect_collectives(seen, all_gather={"x": 1})


@exercise.misconception(fails=value)
def zeroed(a, *, mesh):
    """You returned zeros."""
    return jax.numpy.zeros(a.shape)


@exercise.misconception(fails=traffic)
def gathered_twice(a, *, mesh):
    """You gathered and summed."""
    local = lambda a: jax.lax.pmax(secret_helper(a), "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


@exercise.number(points=1, unit="us", params={"I": [1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26, 1 << 27]}, model="ring, bandwidth only")
def gather_time(I):
    """How long do {{ I }} bytes take on a ring of 4 v5p chips?"""
    return all_gather_time(I, 4, "v5p")


exercise.scenario(gather_time, lambda I: Scenario(chip="v5p", rings=(4,)))


@exercise.misconception(of=gather_time)
def one_way(I):
    """You used one direction."""
    return 2 * all_gather_time(I, 4, "v5p")
'''

COURSE = """\
name: small
seed: a-secret-seed
modules:
  - id: 01_gather
    title: Gather
    exercises: [x1_gather]
"""


GOOD = """\
name: small
modules:
  - id: 01_layout
    title: Layout
    exercises: [a1_local_shape]
"""


def written(tmp_path: Path, text: str) -> Path:
    """Write ``text`` as a course.yaml, and return the path of the file."""
    path = tmp_path / "course.yaml"
    path.write_text(text)
    return path


def made_up(folder: Path, was: str = "", becomes: str = "") -> Course:
    """Write the course. In its exercise, replace the text ``was`` by ``becomes``."""
    place = folder / "solutions" / "01_gather"
    place.mkdir(parents=True, exist_ok=True)
    assert was in EXERCISE
    (place / "x1_gather.py").write_text(EXERCISE.replace(was, becomes) if was else EXERCISE)
    (folder / "course.yaml").write_text(COURSE)
    return load_course(folder / "course.yaml")


BLOCKS = EXERCISE.split("\n\n\n")
MISCONCEPTIONS = [block.rstrip("\n") for block in BLOCKS if block.startswith("@exercise.misconception")]
SECOND = '''\
"""What goes wrong in X1."""

import jax
from jax.sharding import PartitionSpec as P

from grader.hardware import all_gather_time
from x1_gather import exercise, gather_time, secret_helper, traffic, value
'''


def in_two_files(folder: Path, was: str = "", becomes: str = "") -> Course:
    """Write the course with the misconceptions in a second file. In that file, replace ``was`` by ``becomes``."""
    course = made_up(folder)
    place = folder / "solutions" / "01_gather"
    (place / "grading").mkdir(exist_ok=True)
    rest = [block for block in BLOCKS if not block.startswith("@exercise.misconception")]
    (place / "x1_gather.py").write_text("\n\n\n".join(rest).rstrip("\n") + "\n")
    second = "\n\n\n".join([SECOND.rstrip("\n"), *MISCONCEPTIONS]) + "\n"
    assert was in second
    (place / "grading" / "x1_gather.py").write_text(second.replace(was, becomes) if was else second)
    return course
