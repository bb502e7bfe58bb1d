"""Copy submissions within nbgrader's folders. Links are reported and never followed.

nbgrader copies all files beside a notebook from the exchange to ``submitted/``, then to ``autograded/`` and
``feedback/``, and follows links. So a student who links ``book.db`` to the gradebook would get the gradebook. ``guard``
replaces nbgrader's copying of students' files from ``submitted/`` and ``autograded/``. From the exchange,
``plugin.Collect`` copies links as links.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from grader.common.text import A_LINK, printable
from grader.course.config import CourseError
from grader.sandbox.temporary import home
from grader.wire import limits


def odd_files(folder: Path) -> list[str]:
    """Return a line for each entry of a submission that ``copy`` omits: links, pipes, sockets, unreadable files."""
    if folder.is_symlink():
        return [f"{printable(folder.name)} {A_LINK}"]
    odd: list[str] = []
    seen = 0
    for place, folders, files in os.walk(folder):  # not Path, whose methods raise errors for a path that is too long
        for name in sorted([*folders, *files]):
            path = os.path.join(place, name)
            shown = printable(os.path.relpath(path, folder))
            if os.path.islink(path):
                odd.append(f"{shown} {A_LINK}")
            elif not _can_be_read(path):
                odd.append(f"{shown} cannot be read by the grader")
            elif not (os.path.isfile(path) or os.path.isdir(path)):
                odd.append(f"{shown} is neither a file nor a folder and was not read")
        folders[:] = [name for name in folders if _can_be_read(os.path.join(place, name))]
        seen += len(folders) + len(files)
        if seen > limits.MAX_ENTRIES:
            break
    return odd


def _can_be_read(path: str) -> bool:
    return os.access(path, os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK)


def why_ungraded(place: Path, known: Collection[str], is_ours: Callable[[str], bool]) -> str:
    """Return the reason why no notebook in a student's folder can be graded.

    Args:
        known: the assignment's notebooks, without suffix.
        is_ours: whether a notebook of this name is in the course.
    """
    wanted = " or ".join(f"{name}.ipynb" for name in known)
    if place.is_symlink() or not place.is_dir():
        return f"{place} is not a separate folder"
    every = (Path(where, name) for where, _, files in os.walk(place) for name in files if name.endswith(".ipynb"))
    found = [p for p in sorted(every) if ".ipynb_checkpoints" not in p.parts]
    if not found:
        return "handed in without a notebook"
    shown = printable(str(found[0].relative_to(place)))
    if not is_ours(found[0].stem):
        return f"no {wanted} was submitted, only {shown}; if that is the notebook, rename it"
    if found[0].stem not in known:
        return f"no {wanted} was handed in: {shown} is another assignment's notebook"
    return f"no {wanted} was handed in: {shown} is too deep; move it up"


def copy(source: str, target: str, ignore: Sequence[str], log: Any) -> None:
    """Copy a submission's files except notebooks and the entries that ``odd_files`` names."""
    from nbgrader.utils import find_all_files

    for problem in odd_files(Path(source)):
        log.warning("%s: %s", source, problem)
    if os.path.islink(source):
        return
    for name in find_all_files(source, [*ignore, "*.ipynb"]):
        if not _is_plain(name):
            continue
        place = Path(target, os.path.relpath(name, source))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        shutil.copy(name, place, follow_symlinks=False)


def _is_plain(path: str) -> bool:
    return os.path.isfile(path) and not os.path.islink(path) and _can_be_read(path)


def _is_a_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path) and _can_be_read(path)


REPLACED = {
    "init_assignment": ["self", "assignment_id", "student_id"],
    "_format_source": ["self", "assignment_id", "student_id", "escape"],
    "_format_dest": ["self", "assignment_id", "student_id", "escape"],
}
"""The methods of nbgrader's BaseConverter that ``guard`` replaces or calls, with the names of their parameters."""


def guard() -> None:
    """Make nbgrader's converters copy a student's files with ``copy``.

    nbgrader's hooks run only before and after copying. So this function replaces the method that copies.

    Raises:
        CourseError: the installed nbgrader has other methods, so its own copying would follow links.
    """
    import nbgrader
    from nbgrader.converters.base import BaseConverter

    if getattr(getattr(BaseConverter, "init_assignment", None), "guarded", False):
        return
    for name, parameters in REPLACED.items():
        method = getattr(BaseConverter, name, None)
        if method is None or list(inspect.signature(method).parameters) != parameters:
            raise CourseError(
                f"nbgrader {nbgrader.__version__} has no BaseConverter.{name}({', '.join(parameters)}): "
                "it would follow links in what students handed in; install nbgrader 0.9.6"
            )
    nbgraders = BaseConverter.init_assignment

    def init_assignment(self: Any, assignment_id: str, student_id: str) -> None:
        if student_id == ".":  # the files come from source/, which the author wrote, and not from a student
            nbgraders(self, assignment_id, student_id)
            return
        source, target = self._format_source(assignment_id, student_id), self._format_dest(assignment_id, student_id)
        copy(source, target, self.coursedir.ignore, self.log)

    init_assignment.guarded = True  # type: ignore[attr-defined]
    BaseConverter.init_assignment = init_assignment  # type: ignore[method-assign]


@contextlib.contextmanager
def without_links(folder: Path) -> Iterator[tuple[Path, dict[Path, str]]]:
    """Copy the plain files of a folder. Yield the copy, and for each link in the folder its path and target."""
    every = (os.path.join(place, name) for place, *names in os.walk(folder) for listed in names for name in listed)
    links = {Path(os.path.relpath(path, folder)): os.readlink(path) for path in every if os.path.islink(path)}

    def odd(place: str, names: list[str]) -> list[str]:
        paths = {name: os.path.join(place, name) for name in names}
        return [name for name, path in paths.items() if not (_is_plain(path) or _is_a_folder(path))]

    with tempfile.TemporaryDirectory(dir=home()) as place:
        plain = Path(place, folder.name)
        shutil.copytree(folder, plain, ignore=odd)
        yield plain, links
