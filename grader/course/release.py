"""All files that learners get, chosen by an allow-list.

Each top-level statement of an author's file has a kind, such as task, check or import. A generated file includes only
statements of listed kinds. So learners never see a statement that an author forgot to mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from grader.course.compiled import PUBLISHED, published
from grader.course.config import PUBLIC, CourseError
from grader.course.loading import Course
from grader.course.notebooks import notebook, notebook_format
from grader.course.pages import README, module_page, module_text
from grader.course.public import HEADER, public_source
from grader.course.stubs import stub_source
from grader.exercise import AuthorError
from grader.intake.submission import Chunk, Source, fingerprint


@dataclass
class Made:
    """The files that learners get, by path below ``exercises/``.

    Attributes:
        texts: the text of every file that could be made.
        unusable: by exercise, the reason why it cannot be used.
        held_back: files that could not be made because of an unusable exercise.
    """

    texts: dict[str, str] = field(default_factory=dict)
    unusable: dict[str, str] = field(default_factory=dict)
    held_back: set[str] = field(default_factory=set)


def products(course: Course) -> dict[str, str]:
    """Return the text of every file that learners get, by path. Raises CourseError for the first unusable exercise."""
    made = usable_products(course)
    for reason in made.unusable.values():
        raise CourseError(reason)
    return made.texts


def usable_products(course: Course) -> Made:
    """Return the files that learners get for the usable exercises.

    A module gets a notebook only if all its exercises are usable. Raises CourseError for a problem that concerns the
    whole course.
    """
    if not course.solved:
        raise CourseError("there is no solutions/ folder to build from")
    found = Made()
    for module in course.config.modules:
        for name in module.exercises:
            _add_exercise(course, module.id, name, found)
        if module.exercises:
            book = f"{module.id}/{module.id}.ipynb"
            if found.unusable.keys() & set(module.exercises):
                found.held_back.add(book)
            else:
                found.texts[book] = notebook(course, module.id)
        if module_text(course, module.id):
            found.texts[f"{module.id}/{README}"] = f"{module_page(course, module.id)}\n"
    _add_of_course(course, found)
    return found


def _add_exercise(course: Course, module: str, name: str, found: Made) -> None:
    own, public = f"{module}/{name}.py", f"{module}/{PUBLIC}/{name}.py"
    try:
        exercise = course.exercise(name)
        texts = {own: stub_source(course, exercise), public: public_source(exercise)}
    except (CourseError, AuthorError) as error:
        found.unusable[name] = str(error)
        found.held_back |= {own, public}
    else:
        found.texts |= texts


def _add_of_course(course: Course, found: Made) -> None:
    made = found.texts
    try:
        if text := published(course.root, course.module_of):
            made[PUBLISHED] = text
    except ValueError as error:
        raise CourseError(str(error)) from None
    before = course.handed_out if found.held_back else ()
    made["course.yaml"] = _public_config(course, sorted({*before, *(fingerprint(s) for s in _sources(made))}))


def handed_out_texts(course: Course, module: str) -> list[str]:
    """Return the code that learners get for one module: stubs, and the cells of its notebook."""
    names = course.module(module).exercises
    made = {f"{name}.py": stub_source(course, course.exercise(name)) for name in names}
    if names:
        made[f"{module}.ipynb"] = notebook(course, module)
    return [chunk.text for source in _sources(made) for chunk in source.chunks]


def _sources(made: dict[str, str]) -> Iterator[Source]:
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
