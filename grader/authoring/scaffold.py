"""``shardlings new``: write a new exercise or course that passes verify, for authors to edit."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from pathlib import Path
from textwrap import indent
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import CollectionNode, MappingNode, Node, SequenceNode

from grader import Mistake
from grader.common.files import write_atomic
from grader.common.text import nearest
from grader.course.config import CourseError
from grader.course.finding import courses_above
from grader.course.loading import Course

NEW_COURSE = Path(__file__).parent / "new_course"
RENAMED = {"gitignore": ".gitignore"}  # git would apply a template that is named .gitignore

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

from grader.exercise import Scenario, Exercise, normal
from grader.expect import expect_close, expect_collectives, expect_spec
from grader.hardware import all_gather_time, latency

exercise = Exercise(meshes=[{{"x": 4, "y": 2}}, {{"x": 2, "y": 4}}, {{"x": 8}}])


@exercise.task(hints=["A question that leads there?", "The tool.", "Almost the line."])
def {name}_gather(a, *, mesh):
    """Gather A[I_X, J] into A[I, J].

    Args:
        a: float32[I, J] sharded P('x', None).
        mesh: the device mesh; it has an axis 'x'.

    Returns:
        float32[I, J], whole on every device.
    """

    def local(a):
        return jax.lax.all_gather(a, "x", axis=0, tiled=True)

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(a)


gathered = exercise.call(
    {name}_gather, a=normal("I", "J", spec=P("x", None)), dims={{"I": 24, "J": 10}}, hidden_dims={{"I": 40, "J": 7}}
)


@exercise.check(gathered, points=1, public=True)
def {name}_value(seen):
    """every device holds the whole A"""
    expect_close(seen.out, seen.a, terms=1)
    expect_spec(seen.out, P())


@exercise.check(gathered, points=1, after={name}_value)
def {name}_traffic(seen):
    """one all-gather over x and no other collective"""
    expect_collectives(seen, all_gather={{"x": 1}})


@exercise.misconception(fails={name}_value)
def {name}_kept_local(a, *, mesh):
    """Each device kept its own block: nothing was gathered."""
    return jax.shard_map(
        lambda a: jax.numpy.tile(a, (mesh.shape["x"], 1)),
        mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False,
    )(a)


@exercise.misconception(fails={name}_traffic)
def {name}_summed(a, *, mesh):
    """You summed zero-padded blocks: an all-reduce sends twice the bytes of an all-gather."""

    def local(a):
        whole = jax.numpy.zeros((a.shape[0] * mesh.shape["x"], a.shape[1]), a.dtype)
        start = jax.lax.axis_index("x") * a.shape[0]
        return jax.lax.psum(jax.lax.dynamic_update_slice_in_dim(whole, a, start, 0), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x", None), out_specs=P(), check_vma=False)(a)


@exercise.number(
    points=1,
    unit="us",
    params={{"chip": ["v4p", "v5p"], "I": [2048, 3072, 4096], "J": [8192, 14336], "X": [4, 8]}},
    model="bidirectional ring, bandwidth only: V / W, with W for both directions of a link",
)
def {name}_time(chip, I, J, X):
    """`A` is bfloat16[{{{{ I }}}}, {{{{ J }}}}], sharded over a ring of {{{{ X }}}} {{{{ chip }}}} chips. How long is
    the all-gather?"""
    return all_gather_time(2 * I * J, X, chip)


@exercise.misconception(of={name}_time)
def {name}_one_way(chip, I, J, X):
    """You used one direction of the link; on a ring data flows both ways."""
    return 2 * {name}_time(chip=chip, I=I, J=J, X=X)


exercise.scenario(
    {name}_time,
    lambda chip, I, J, X: Scenario(chip=chip, rings=(X,), mesh={{"x": X}}, arrays=[((I, J), P("x"))], least=latency(X)),
)
'''


class ScaffoldError(Mistake):
    """The exercise or course cannot be created. The message is one line with the reason."""


# -- a course ----------------------------------------------------------------------------------


def new_course(folder: Path) -> None:
    """Write a course with a new seed and an exercise of each kind into a new or empty folder.

    All files are written to a temporary folder first. course.yaml moves to the new folder last, because a folder
    without course.yaml is not a course.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise ScaffoldError(f"{folder} exists and is not an empty folder; name a new folder")
    if outer := courses_above(folder.resolve().parent):
        raise ScaffoldError(
            f"{folder} is inside another course, {outer[0].parent}; name a folder outside of that course"
        )
    files = _course_files(folder.resolve().name)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".tmp-{secrets.token_hex(8)}"
    try:
        for path, text in files.items():
            (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(unfinished / path, text)
        for entry in sorted(unfinished.iterdir(), key=lambda path: path.name == "course.yaml"):
            entry.rename(folder / entry.name)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _course_files(name: str) -> dict[Path, str]:
    made: dict[Path, str] = {}
    for path in sorted(NEW_COURSE.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            place = path.relative_to(NEW_COURSE).with_name(RENAMED.get(path.name, path.name))
            made[place] = path.read_text(encoding="utf-8")
    config, readme = Path("course.yaml"), Path("README.md")
    quoted, seed = json.dumps(name, ensure_ascii=False), json.dumps(secrets.token_hex(16))
    made[config] = made[config].replace("NAME", quoted).replace("SEED", seed)
    made[readme] = made[readme].replace("NAME", name)
    return made


# -- an exercise -------------------------------------------------------------------------------


def new(course: Course, name: str) -> Path:
    """Write ``solutions/MODULE/EXERCISE.py`` and list the exercise in course.yaml. Never overwrites an exercise."""
    match = re.fullmatch(r"(\d\d_[a-z0-9_]+)/([a-z][a-z0-9_]*)", name)
    if match is None:
        raise ScaffoldError(f"{name!r} is not MODULE/EXERCISE in lower case, such as 03_matmuls/c6_batched")
    if not course.solved:
        raise CourseError(
            f"new exercises are written to {course.root / 'solutions'}; make that folder if the course is yours"
        )
    module, exercise = match.groups()
    modules = [m.id for m in course.config.modules]
    # The name is probably a misspelt name of an existing module.
    if module not in modules and module[:2] in {m[:2] for m in modules}:
        raise CourseError(f"no module {module!r}{nearest(module, modules)}")
    path = course.root / "solutions" / module / f"{exercise}.py"
    if path.exists() or exercise in course.module_of:
        raise ScaffoldError(f"{exercise} already exists")
    config = course.root / "course.yaml"
    listed = _listed(config.read_text(encoding="utf-8"), module, exercise)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, TEMPLATE.format(name=exercise.split("_")[0], title=_title(exercise)))
    write_atomic(config, listed)
    return path


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _listed(text: str, module: str, exercise: str) -> str:
    """Return the text of course.yaml with the exercise at the end of its module's list. A new module is added last.

    ruamel.yaml only finds the places for new text. If it wrote the file, some lists would lose their comments.
    """
    root = YAML(typ="safe", pure=True).compose(text)
    modules = _fields(root)["modules"][1]
    found: Any = next((node for node in modules.value if _fields(node)["id"][1].value == module), None)
    if found is None:
        fields = [f"id: {module}", f"title: {_title(module[3:])}", f"exercises: [{exercise}]"]
        return _with_last(text, modules, fields)
    if "exercises" not in _fields(found):
        return _with_last(text, found, [f"exercises: [{exercise}]"])
    key, exercises = _fields(found)["exercises"]
    if isinstance(exercises, SequenceNode) and exercises.value:
        return _with_last(text, exercises, [exercise])
    # The module has no exercise yet, so the value of ``exercises`` is [], null or missing.
    start, end = _place(text, key, exercises)
    return f"{text[:start].rstrip()} [{exercise}]{text[end:]}"


def _fields(mapping: Node) -> dict[str, tuple[Any, Any]]:
    return {key.value: (key, value) for key, value in mapping.value}


def _place(text: str, key: Node, value: Node) -> tuple[int, int]:
    """Return the start and end of a field's value in ``text``.

    If the field has no value, both are the position after the colon.
    """
    start, end = value.start_mark.index, value.end_mark.index
    if start == end:
        start = end = text.index(":", key.end_mark.index) + 1
    return start, end


def _with_last(text: str, items: CollectionNode, lines: list[str]) -> str:
    end = _end(text, items)
    if items.flow_style:
        one = lines[0] if len(lines) == 1 else f"{{{', '.join(lines)}}}"
        return f"{text[:end]}, {one}{text[end:]}"
    # Leave out trailing white space, because YAML's parser ends a folded string only where the next node starts.
    end = len(text[:end].rstrip())
    end = text.find("\n", end) if "\n" in text[end:] else len(text)
    dash = "- " if isinstance(items, SequenceNode) else ""
    first, *rest = lines
    block = "\n".join([f"{dash}{first}", *(f"{' ' * len(dash)}{line}" for line in rest)])
    return f"{text[:end]}\n{indent(block, ' ' * items.start_mark.column)}{text[end:]}"


def _end(text: str, items: CollectionNode) -> int:
    """Return the end of the last node of a list or mapping.

    The list's own ``end_mark`` cannot be used, because ruamel.yaml sets it to the start of the next node.
    """
    *_, last = items.value
    value = last[1] if isinstance(items, MappingNode) else last
    if isinstance(value, CollectionNode) and value.value and not value.flow_style:
        return _end(text, value)
    return _place(text, *last)[1] if isinstance(items, MappingNode) else value.end_mark.index
