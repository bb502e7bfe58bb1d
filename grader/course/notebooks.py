"""A module's notebook: the same stubs, cell by cell."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from grader.common.schemas import without_uris
from grader.course.copying import undecorated
from grader.course.loading import Course
from grader.course.statements import statements
from grader.course.stubs import page, question_text, shared_params, stub, stub_imports
from grader.exercise import Exercise

SETUP = '''\
# Run this first: it gives you {devices} simulated devices, before JAX is imported.
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count={devices}"
os.environ["JAX_PLATFORMS"] = "cpu"
try:
    from grader.notebook import check
except ModuleNotFoundError:
    raise SystemExit("the course's checks are not installed; run:  %pip install shardlings") from None
import jax
assert jax.device_count() == {devices}, "JAX was imported before this cell ran: restart the kernel and run this cell first"'''


def notebook_format() -> ModuleType:
    """nbformat, which commands that build nothing need not wait for."""
    without_uris()
    import nbformat

    return nbformat


def notebook(course: Course, module: str) -> str:
    """The module's notebook as JSON. Cell ids are stable, outputs empty."""
    nbformat = notebook_format()
    listed = course.module(module)
    cells = [
        cell("markdown", f"{module}-intro", f"# {listed.title}\n\nFill in the cells marked `TODO`, run the check below each exercise, hand in this notebook."),
        cell("code", f"{module}-setup", SETUP.format(devices=course.config.devices)),
    ]  # fmt: skip
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


def _exercise_cells(course: Course, exercise: Exercise) -> Iterator[Any]:
    parts = statements(exercise)
    yield cell("markdown", f"{exercise.id}-statement", page(exercise))
    given = "\n\n".join(undecorated(p).strip("\n") for p in parts if p.kind == "given")
    stubs = [(p.name, stub(p)) for p in parts if p.kind == "task"]
    imports = stub_imports(parts, exercise, given + "".join(text for _, text in stubs))
    yield cell("code", f"{exercise.id}-given", "\n\n\n".join(t for t in (imports, given) if t))
    for name, text in stubs:
        yield cell("code", f"{exercise.id}-{name}", text.rstrip("\n"))
    for question in exercise.questions.values():
        params = shared_params(course, question)
        text = f"Your numbers: run `shardlings show {exercise.id}`." if params is None else question_text(question, params)  # fmt: skip
        yield cell("markdown", f"{exercise.id}-{question.name}-text", f"**Question `{question.name}`.** {text}")
        yield cell("code", f"{exercise.id}-{question.name}", f"{question.name} = None  # TODO: your answer")
    yield cell("code", f"{exercise.id}-check", f'check("{exercise.id}")')


def cell(kind: str, name: str, text: str) -> Any:
    """A cell whose id stays: its name, cut to the 64 characters that nbformat allows."""
    nbformat = notebook_format()
    ident = name if len(name) <= 64 else name[:50] + hashlib.sha256(name.encode()).hexdigest()[:12]
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return make(source=text, id=ident)
