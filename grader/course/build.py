"""Build ``exercises/``, the folder that learners get, from ``solutions/``, by an allow-list.

Each top-level statement of an author's file has a kind, such as task, check or import. A generated file includes only
statements of listed kinds. So learners never see a statement that an author forgot to mark. Authors may also edit files
in ``exercises/``.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from grader.common.files import write_atomic
from grader.course.compiled import PUBLISHED, published
from grader.course.config import PUBLIC, README, CourseError
from grader.course.loading import Course
from grader.course.notebooks import notebook, notebook_format
from grader.course.public import HEADER, public_source
from grader.course.stubs import module_page, module_text, stub_source
from grader.exercise import AuthorError
from grader.intake.submission import Chunk, Source, source_digest

BUILT = ".built"
KEPT = "exercises.bak"


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
    made["course.yaml"] = _public_config(course, sorted({*before, *(source_digest(s) for s in _sources(made))}))


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


@dataclass(frozen=True)
class Built:
    """Paths below ``exercises/``, grouped by what ``build`` did with the files.

    Attributes:
        changed: files that ``build`` wrote or removed.
        left: files that ``build`` did not touch, because a person wrote them, or edited them after ``build``.
        saved: for each edited file that ``force`` moved, its new path, relative to the course's folder.
        unusable: by exercise, why ``build`` cannot use the exercise. Its files stay unchanged.
    """

    changed: list[str]
    left: list[str]
    saved: dict[str, str]
    unusable: dict[str, str]


def build(course: Course, *, force: bool = False) -> Built:
    """Write ``exercises/``. Replace and remove only files that ``build`` wrote and people did not edit.

    ``exercises/.built`` records the files that ``build`` wrote.

    Args:
        force: move edited files to ``exercises.bak/``, and replace them.
    """
    folder, found, known = course.root / "exercises", usable_products(course), _written(course.root / "exercises")
    made, old = found.texts, stale(course, found)
    worked = _worked_on(folder, old, known)
    saved = {p: _set_aside(course.root, p) for p in worked} if force else {}
    left = [] if force else worked
    changed = [p for p in old if p not in left and (p in made or p not in saved)]
    _write(folder, made, changed)
    for path in set(old) - set(made):
        _remove_empty(folder, (folder / path).parent)
    stay = [*left, *found.held_back]
    now = {p: {_digest_of(text)} for p, text in made.items()} | {p: known[p] for p in stay if p in known}
    if now != known:
        write_atomic(folder / BUILT, _record(now))
    return Built(changed, left, saved, found.unusable)


def _record(digests: Mapping[str, set[str]]) -> str:
    return "".join(f"{digest}  {path}\n" for path in sorted(digests) for digest in sorted(digests[path]))


def _worked_on(folder: Path, paths: Iterable[str], known: Mapping[str, set[str]]) -> list[str]:
    """Return the files that were changed since ``build`` wrote them, or that ``build`` never wrote."""
    there = [path for path in paths if os.path.lexists(folder / path)]
    return [path for path in there if _digest(folder / path) not in known.get(path, ())]


def _write(folder: Path, made: Mapping[str, str], changed: Iterable[str]) -> None:
    for path in changed:
        if path in made:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomic(folder / path, made[path])
        else:
            (folder / path).unlink()


def _digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def stale(course: Course, made: Made | None = None) -> list[str]:
    """Return the paths below ``exercises/`` that ``build`` would change or remove."""
    folder = course.root / "exercises"
    made = Made(products(course)) if made is None else made
    changed = [p for p, text in made.texts.items() if _digest(folder / p) != _digest_of(text)]
    stay = made.texts.keys() | made.held_back
    dropped = [p for p in _written(folder) if p not in stay and os.path.lexists(folder / p)]
    return sorted([*changed, *dropped])


def _written(folder: Path) -> dict[str, set[str]]:
    """Return the digests that ``exercises/.built`` records, by path.

    A file has two digests if git merged two versions of ``.built``. Invalid lines are skipped.
    """
    try:
        text = (folder / BUILT).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found: dict[str, set[str]] = {}
    for digest, path in re.findall(r"^([0-9a-f]{64})  (\S.*)$", text, re.MULTILINE):
        if not Path(path).is_absolute() and ".." not in Path(path).parts:
            found.setdefault(path, set()).add(digest)
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _set_aside(root: Path, path: str) -> str:
    """Move a file from ``exercises/`` to an unused path in ``exercises.bak/``. Return the path relative to ``root``."""
    place, number = root / KEPT / path, 1
    while os.path.lexists(place):
        place, number = (root / KEPT / path).with_name(f"{Path(path).name}.{number}"), number + 1
    place.parent.mkdir(parents=True, exist_ok=True)
    (root / "exercises" / path).rename(place)
    return place.relative_to(root).as_posix()


def _remove_empty(top: Path, folder: Path) -> None:
    while folder != top and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
