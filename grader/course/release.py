"""All texts that learners get, chosen by an allow-list.

Each top-level statement of an author's file has a kind. Every product includes only the kinds that it names,
so a statement that an author forgets to mark is missing rather than leaked.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from grader.course.compiled import PUBLISHED, published
from grader.course.config import PUBLIC, CourseError
from grader.course.loading import Course
from grader.course.notebooks import notebook, notebook_format
from grader.course.pages import README, module_page, module_text
from grader.course.public import HEADER, public_source
from grader.course.stubs import stub_source
from grader.intake.submission import Chunk, Source, fingerprint


def products(course: Course) -> dict[str, str]:
    """Return the text of every file that learners get, by path below ``exercises/``."""
    if not course.solved:
        raise CourseError("there is no solutions/ here to build from")
    made: dict[str, str] = {}
    for module in course.config.modules:
        for name in module.exercises:
            exercise = course.exercise(name)
            made[f"{module.id}/{name}.py"] = stub_source(course, exercise)
            made[f"{module.id}/{PUBLIC}/{name}.py"] = public_source(exercise)
        if module.exercises:
            made[f"{module.id}/{module.id}.ipynb"] = notebook(course, module.id)
        if module_text(course, module.id):
            made[f"{module.id}/{README}"] = f"{module_page(course, module.id)}\n"
    try:
        if text := published(course.root, course.module_of):
            made[PUBLISHED] = text
    except ValueError as error:
        raise CourseError(str(error)) from None
    made["course.yaml"] = _public_config(course, sorted(fingerprint(s) for s in _sources(made)))
    return made


def handed_out_texts(course: Course, module: str) -> list[str]:
    """Return the code that learners get for one module: stubs, and the cells of its notebook."""
    names = course.module(module).exercises
    made = {f"{name}.py": stub_source(course, course.exercise(name)) for name in names}
    if names:
        made[f"{module}.ipynb"] = notebook(course, module)
    return [chunk.text for source in _sources(made) for chunk in source.chunks]


def _sources(made: dict[str, str]) -> Iterator[Source]:
    """Yield the stubs and notebooks as they would be read from a submission."""
    for path, text in made.items():
        if path.endswith(".ipynb"):
            cells = notebook_format().reads(text, as_version=4).cells
            yield Source(path, tuple(Chunk("", c.source) for c in cells if c.cell_type == "code"))
        elif path.endswith(".py") and PUBLIC not in path:
            yield Source(path, (Chunk("", text),))


def _public_config(course: Course, handed_out: list[str]) -> str:
    data = course.config.model_dump(mode="json", exclude={"seed", "statement_words"}, exclude_defaults=True) | {
        "handed_out": handed_out
    }
    return HEADER + yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
