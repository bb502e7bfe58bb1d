"""Make a module's notebook, with cells for the stubs (tasks without a body) of the module's exercises."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from grader.common.schemas import without_uris
from grader.course.loading import Course
from grader.course.statements import statements, undecorated
from grader.course.stubs import (
    answer_line,
    further,
    module_text,
    own_text,
    question_text,
    shared_params,
    stub,
    stub_imports,
)
from grader.exercise import Exercise

SETUP = """\
# Run this cell first. Checks run on {devices} devices that the CPU simulates. You can also use a TPU or GPU of this \
machine.
import glob
import os
import subprocess
import sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count={devices}"
os.environ["JAX_PLATFORMS"] = "cpu"
if glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*"):
    os.environ["JAX_PLATFORMS"] = "cpu,tpu"
elif glob.glob("/dev/nvidia[0-9]*"):
    os.environ["JAX_PLATFORMS"] = "cpu,cuda"
{course}try:
    from grader.notebook import check
except ModuleNotFoundError:
    print("installing what is missing ...")
    for place in (".", "..", "../..", "../../tool", "../tool", "./tool"):  \
# not from PyPI, where this name may be another package's
        if os.path.isfile(place + "/grader/notebook.py"):
            if not subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", place]).returncode:
                break
    else:
        raise SystemExit("the course's checks cannot be installed here. Open this notebook in the folder that you were "
                         "given, or put that folder's tool/ beside the notebook. Then run this cell again") from None
    import importlib
    importlib.invalidate_caches()
    from grader.notebook import check
import jax
try:
    jax.devices()
except RuntimeError:
    jax.config.update("jax_platforms", "cpu")  # the TPU or GPU cannot be used
assert jax.device_count() == {devices}, "JAX was imported before this cell ran: restart the kernel \
and run this cell first"
print("devices for the checks:", jax.device_count(), "simulated")
for real in ("tpu", "gpu"):
    try:
        print("real devices, for jax.device_put and jax.make_mesh:", jax.devices(real))
    except RuntimeError:
        pass  # this machine has no such device"""

COURSE = """\
if not any(os.path.isfile(place + "/course.yaml") for place in (".", "..", "exercises", "../..", "../exercises")):
    if not os.path.isdir({name}):  # the notebook was opened alone, as in Colab, so fetch the rest of the course
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", "--branch", {branch}, {address}, {name}])
    if os.path.isdir({folder}):
        os.chdir({folder})
"""

BY_HAND_TEXT = """\
## By hand

A mesh gives names to a grid of devices, and a `PartitionSpec` says which axis cuts which dimension. Change this cell \
and run it as
often as you like, also with your own functions. It is not graded."""

BY_HAND = """\
if __name__ == "__main__":  # only in this notebook, not in the grader

    def by_hand():
        import numpy as np
        from jax.sharding import AxisType, NamedSharding
        from jax.sharding import PartitionSpec as P

        from grader.notebook import show

        axes = {axes}
        mesh = jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))
        a = jax.device_put(np.arange({rows} * 12.0).reshape({rows}, 12), NamedSharding(mesh, P("x", {second})))
        print("a is", a.shape, "and each device holds", a.addressable_shards[0].data.shape)
        jax.debug.visualize_array_sharding(a)  # JAX's picture, with device numbers
        show(a, "a")  # the course's picture, with the coordinates of the device that holds each part

        def sums(block):  # what one device does with its part
            return jax.lax.psum(block.sum(axis=0), "x")

        total = jax.shard_map(sums, mesh=mesh, in_specs=P("x", {second}), out_specs=P({second}))(a)
        show(total, "the sum of its rows")
        np.testing.assert_allclose(total, np.asarray(a).sum(axis=0))

    by_hand()"""

COLAB = "https://colab.research.google.com"


def notebook_format() -> ModuleType:
    """Import and return nbformat. The import is slow, and most commands do not need it."""
    without_uris()
    import nbformat

    return nbformat


def notebook(course: Course, module: str) -> str:
    """Return the module's notebook as JSON, with stable cell ids and empty outputs."""
    nbformat = notebook_format()
    listed = course.module(module)
    has_tasks = any(course.exercise(name).tasks for name in listed.exercises)
    work = "Fill in the cells marked `TODO`" if has_tasks else "Answer the questions in the cells marked `TODO`"
    work += ", run the check below each exercise, and hand in this notebook."
    intro = f"# {listed.title}\n\n{badge(course, module)}{work}"
    if text := module_text(course, module):
        intro += f"\n\n{text}"
    cells = [
        cell("markdown", f"{module}-intro", intro),
        cell("code", f"{module}-setup", setup(course)),
    ]
    if has_tasks:
        cells += [
            cell("markdown", f"{module}-by-hand-text", BY_HAND_TEXT),
            cell("code", f"{module}-by-hand", by_hand(course.config.devices)),
        ]
    for name in listed.exercises:
        cells += _exercise_cells(course, course.exercise(name))
    book = nbformat.v4.new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )
    nbformat.validate(book)
    return nbformat.writes(book) + "\n"


def setup(course: Course) -> str:
    """Return the first cell, which sets up devices, and installs the course and the grader if they are missing."""
    fetch = ""
    if course.config.repository:
        address, _, there = course.config.repository.partition("/tree/")
        name, (branch, *folder) = address.rpartition("/")[2], there.split("/")
        words = {"name": name, "branch": branch, "address": address, "folder": "/".join([name, *folder])}
        fetch = COURSE.format(**{word: json.dumps(text) for word, text in words.items()})
    return SETUP.format(devices=course.config.devices, course=fetch)


def badge(course: Course, module: str) -> str:
    """Return the link that opens the notebook in Colab; '' if course.yaml names no ``repository`` on GitHub."""
    if not course.config.repository:
        return ""
    path = course.config.repository.removeprefix("https://github.com/").replace("/tree/", "/blob/", 1)
    there = f"{COLAB}/github/{path}/{module}/{module}.ipynb"
    return f"[![Open in Colab]({COLAB}/assets/colab-badge.svg)]({there})\n\n"


def by_hand(devices: int) -> str:
    """Return the cell for experiments, which makes a mesh of all devices.

    The mesh has two axes of different sizes if the number of devices is even and larger than 4, otherwise one axis.
    """
    two = devices % 2 == 0 and devices > 4
    axes = {"x": devices // 2, "y": 2} if two else {"x": devices}
    return BY_HAND.format(axes=json.dumps(axes), rows=2 * axes["x"], second='"y"' if two else "None")


def _exercise_cells(course: Course, exercise: Exercise) -> Iterator[Any]:
    parts = statements(exercise)
    yield cell("markdown", f"{exercise.id}-statement", exercise.statement)
    given = "\n\n".join(undecorated(p).strip("\n") for p in parts if p.kind == "given")
    stubs = [(p.name, stub(p)) for p in parts if p.kind == "task"]
    imports = stub_imports(parts, exercise, given + "".join(text for _, text in stubs))
    yield cell("code", f"{exercise.id}-given", "\n\n\n".join(t for t in (imports, given) if t))
    for name, text in stubs:
        yield cell("code", f"{exercise.id}-{name}", text.rstrip("\n"))
    for question in exercise.questions.values():
        params = shared_params(course, question)
        text = own_text(question, exercise.id) if params is None else question_text(question, params)
        yield cell("markdown", f"{exercise.id}-{question.name}-text", f"**Question `{question.name}`.** {text}")
        yield cell("code", f"{exercise.id}-{question.name}", answer_line(question))
    yield cell("code", f"{exercise.id}-check", f'check("{exercise.id}")')
    if exercise.further:
        yield cell("markdown", f"{exercise.id}-further", further(exercise))


def cell(kind: str, name: str, text: str) -> Any:
    """Return a cell with a stable id: ``name``, shortened with a digest if it is too long for nbformat."""
    nbformat = notebook_format()
    ident = name if len(name) <= 64 else name[:50] + hashlib.sha256(name.encode()).hexdigest()[:12]
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return make(source=text, id=ident)
