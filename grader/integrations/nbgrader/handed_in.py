"""Copy submissions within nbgrader's folders. Links are reported and never followed.

nbgrader follows links when it copies the files beside a notebook from the exchange to ``submitted/``, and from there to
``autograded/`` and ``feedback/``. So a student who submits a link to the gradebook would get a copy of the gradebook.
``guard`` replaces nbgrader's copying from ``submitted/`` and ``autograded/``. ``plugin.Collect`` replaces the copying
from the exchange, and copies a link as a link.
"""

from __future__ import annotations

import contextlib
import glob
import inspect
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.common.text import A_LINK, a_few, printable, readable
from grader.course.config import CourseError
from grader.intake.disk import bytes_of, limit_of
from grader.intake.submission import Refused, Unreadable
from grader.sandbox.temporary import home
from grader.wire import limits

TIMESTAMP = "timestamp.txt"
"""The file in which `nbgrader submit` writes the time."""
LONGEST_TIME = 100
"""The largest number of characters of a time."""
MOST_LINES = 20
"""The largest number of lines on entries of one submission that are not copied."""


def given_files(coursedir: Any, assignment: str) -> frozenset[str]:
    """Return the paths of the files, except notebooks, in an assignment's folder of ``source/``."""
    from nbgrader.utils import find_all_files

    source = coursedir.format_path(coursedir.source_directory, ".", assignment)
    return frozenset(os.path.relpath(file, source) for file in find_all_files(source, [*coursedir.ignore, "*.ipynb"]))


def odd_files(folder: Path, given: Collection[str] = ()) -> list[str]:
    """Return a line for each entry of a folder that ``copy`` omits, such as a link or a file over a limit."""
    return listed(folder, given).odd


@dataclass(frozen=True)
class Listed:
    """The entries of a submission, as paths in its folder.

    Attributes:
        plain: files and folders within limits.
        links: links within limits.
        odd: a line for each entry that is not plain. After ``MOST_LINES`` lines, one line counts the others.
    """

    plain: list[str]
    links: list[str]
    odd: list[str]


def listed(folder: Path, given: Collection[str] = ()) -> Listed:
    """Return the entries of a submission.

    Without limits, the copy of a sparse file could fill a disk, although the file itself takes no space.

    Args:
        given: the paths of the assignment's own files. An entry is omitted if it is a folder with the path of a given
            file, or a file with the path of a folder that holds a given file.
    """
    if folder.is_symlink():
        return Listed([], [], [f"{printable(folder.name)} {A_LINK}"])
    plain: list[str] = []
    links: list[str] = []
    odd: list[str] = []
    seen, left = 0, limits.MAX_READ
    for place, folders, files in os.walk(folder):  # methods of Path would raise errors for long paths
        omitted = set()
        for name in sorted([*folders, *files]):
            path = os.path.join(place, name)
            entry = os.path.relpath(path, folder)
            seen += 1
            if seen > limits.MAX_ENTRIES:
                rest = f"more than {limits.MAX_ENTRIES} files and folders were submitted; the rest was not copied"
                return Listed(plain, links, [*_first(odd), rest])
            if reason := _why_omitted(path, entry, left) or _in_the_way(path, entry, given):
                shown = entry if len(entry) <= limits.MAX_NAME else entry.split(os.sep)[0]
                odd.append(f"{printable(shown)} {reason}")
                omitted.add(name)
                if reason == A_LINK and len(entry) <= limits.MAX_NAME:
                    links.append(entry)
                continue
            plain.append(entry)
            left -= os.path.getsize(path) if os.path.isfile(path) else 0
        folders[:] = [name for name in folders if name not in omitted]
    return Listed(plain, links, _first(odd))


def _first(odd: list[str]) -> list[str]:
    """Return at most ``MOST_LINES`` lines, so that one submission does not fill the page of the class."""
    left = len(odd) - MOST_LINES
    return odd if left <= 0 else [*odd[:MOST_LINES], f"{left} more files, folders or links were not copied"]


def _why_omitted(path: str, entry: str, left: int) -> str:
    """Return why an entry is not copied; "" if it is copied. At most ``left`` bytes may still be copied."""
    if os.path.islink(path):
        return A_LINK
    if not _can_be_read(path):
        return "cannot be read by the grader"
    if len(entry) > limits.MAX_NAME:  # the path of a copy would be longer, perhaps longer than the system allows
        return f"holds a path of more than {limits.MAX_NAME} characters, which was not copied"
    if os.path.isdir(path):
        return ""
    if not os.path.isfile(path):
        return "is neither a file nor a folder and was not read"
    size, most = os.path.getsize(path), limit_of(os.path.splitext(path)[1])
    if size > most:
        return f"is larger than {most // limits.MIB} MiB and was not copied"
    if size > left:
        return f"was not copied, because the submission has more than {limits.MAX_READ // limits.MIB} MiB"
    return ""


def _in_the_way(path: str, entry: str, given: Collection[str]) -> str:
    """Return why an entry is in the way of one of the assignment's own files; "" if it is not."""
    if os.path.isdir(path):
        return "is a folder, but the assignment has a file of this name, so it was not copied" if entry in given else ""
    is_parent = any(file.startswith(f"{entry}{os.sep}") for file in given)
    return "is a file, but the assignment has a folder of this name, so it was not copied" if is_parent else ""


def _can_be_read(path: str) -> bool:
    return os.access(path, os.R_OK | os.X_OK if os.path.isdir(path) else os.R_OK)


def why_refused(coursedir: Any, student: str, assignment: str) -> str:
    """Return why nothing in a student's folder of ``submitted/`` is graded; "" if the folder is read.

    A link in place of a folder is not followed. The gradebook holds only UTF-8 names. nbgrader's commands stop at a
    name with a line break, and take ``*``, ``?`` and ``[`` in a name as a pattern for several folders.
    """
    place = Path(coursedir.format_path(coursedir.submitted_directory, student, assignment))
    for folder in reversed([place, *place.parents][: _depth(coursedir)]):
        if folder.is_symlink():
            return f"{readable(os.path.relpath(folder, coursedir.root))} {A_LINK}; put the folder itself there"
    try:
        student.encode()
    except UnicodeEncodeError:
        return "the folder's name is not UTF-8; rename the folder"
    if "\n" in student:
        return "the folder's name has a line break; rename the folder"
    if glob.escape(student) != student:
        return "nbgrader takes *, ? and [ in a folder's name as a pattern; rename the folder"
    return ""


def _depth(coursedir: Any) -> int:
    """Return the number of folders in a submission's path from the student's folder on."""
    parts = Path(coursedir.directory_structure).parts
    return len(parts) - next(n for n, part in enumerate(parts) if "{student_id}" in part)


def why_ungraded(place: Path, known: Collection[str], is_ours: Callable[[str], bool]) -> str:
    """Return the reason why no notebook in a student's folder can be graded.

    Args:
        known: the assignment's notebooks, without suffix.
        is_ours: returns True for the name of a notebook in the course.
    """
    wanted = " or ".join(f"{name}.ipynb" for name in known)
    if not place.is_dir():
        return f"{place} is not a folder"
    found = _notebooks_in(place)
    if not found:
        return "handed in without a notebook"
    shown = printable(str(found[0].relative_to(place)))
    if not is_ours(found[0].stem):
        return f"no {wanted} was submitted, only {shown}; if that is the notebook, rename it"
    if found[0].stem not in known:
        return f"no {wanted} was handed in: {shown} is another assignment's notebook"
    return f"no {wanted} was handed in: {shown} is in a subfolder; move it out"


def unread_beside(place: Path, known: Collection[str]) -> list[str]:
    """Return a reason for review if a student's folder has other notebooks than ``known`` (names without suffix).

    A notebook in a subfolder is another notebook, because nbgrader does not grade it.
    """
    others = _beside(place, known)
    if not others:
        return []
    return [f"the grader found no work in the graded notebook, and did not read these notebooks: {a_few(others)}"]


def why_incomplete(place: Path, known: Collection[str], missing: Collection[str]) -> list[str]:
    """Return a reason for review if a submission lacks some notebooks of an assignment (names without suffix)."""
    if not missing:
        return []
    others = _beside(place, known)
    unread = f"; the grader did not read these notebooks: {a_few(others)}" if others else ""
    return [f"{a_few([f'{name}.ipynb' for name in sorted(missing)])} is missing{unread}"]


def _beside(place: Path, known: Collection[str]) -> list[str]:
    graded = {place / f"{name}.ipynb" for name in known}
    return [printable(str(path.relative_to(place))) for path in _notebooks_in(place) if path not in graded]


def _notebooks_in(place: Path) -> list[Path]:
    every = (Path(where, name) for where, _, files in os.walk(place) for name in files if name.endswith(".ipynb"))
    return [path for path in sorted(every) if ".ipynb_checkpoints" not in path.parts]


def time_in(folder: Path) -> tuple[Any, list[str]]:
    """Return the time in ``timestamp.txt`` (None if there is none), and a list with a note if the file is invalid.

    nbgrader's own method waits for ever if the file is a pipe, and stops the command if the text is not a time.
    """
    from nbgrader.utils import parse_utc

    path = folder / TIMESTAMP
    if not os.path.lexists(path):
        return None, []
    try:
        text = bytes_of(path, limits.MAX_FILE).decode().strip()
        if len(text) > LONGEST_TIME:
            raise ValueError("too long")
        # With a blank before +03, nbgrader would read 3 seconds. nbgrader writes +03 for zones without a short name.
        return parse_utc(re.sub(r" (?=[+-]\d)", "", text)) if text else None, []
    except (Refused, Unreadable) as refusal:
        return None, [f"{TIMESTAMP} {refusal}, so the grader ignored it"]
    except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError):  # dateutil's errors for invalid times
        return None, [f"{TIMESTAMP} holds no time, so the grader ignored it"]


def copy(source: str, target: str, ignore: Sequence[str], log: Any, given: Collection[str] = ()) -> None:
    """Copy a submission's files except notebooks and the entries that ``odd_files`` names."""
    from nbgrader.utils import find_all_files

    found = listed(Path(source), given)
    wanted = {os.path.relpath(name, source) for name in find_all_files(source, [*ignore, "*.ipynb"])}
    unread = _copy_files(Path(source), Path(target), [entry for entry in found.plain if entry in wanted])
    for problem in [*found.odd, *unread]:
        log.warning("%s: %s", source, problem)


def _copy_files(source: Path, target: Path, files: Sequence[str]) -> list[str]:
    """Copy files that ``listed`` names. Return a line for each file that cannot be copied."""
    odd = []
    for name in files:
        place = target / name
        try:
            data = bytes_of(source / name, limit_of(place.suffix))
        except (Refused, Unreadable) as refusal:
            odd.append(f"{printable(name)} {refusal}")
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_bytes(data)
        shutil.copystat(source / name, place, follow_symlinks=False)
    return odd


def copy_given(source: Path, target: Path, given: Collection[str]) -> None:
    """Copy the assignment's own files from ``source`` to ``target``, and replace submitted files of equal names."""
    for file in sorted(given):
        place = target / file
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        shutil.copy(source / file, place)


REPLACED = {
    "init_assignment": ["self", "assignment_id", "student_id"],
    "_format_source": ["self", "assignment_id", "student_id", "escape"],
    "_format_dest": ["self", "assignment_id", "student_id", "escape"],
}
"""The methods of nbgrader's BaseConverter that ``guard`` replaces or calls, with the names of their parameters."""


def guard() -> None:
    """Make nbgrader's converters copy a student's files with ``copy``, and read times with ``time_in``.

    This function replaces two of nbgrader's methods, because nbgrader's hooks run only before and after copying.

    Raises:
        CourseError: the installed nbgrader lacks a method that must be replaced, so nbgrader would follow links.
    """
    import nbgrader
    from nbgrader.converters.base import BaseConverter
    from nbgrader.coursedir import CourseDirectory

    if getattr(getattr(BaseConverter, "init_assignment", None), "guarded", False):
        return
    for name, parameters in REPLACED.items():
        method = getattr(BaseConverter, name, None)
        if method is None or list(inspect.signature(method).parameters) != parameters:
            raise CourseError(
                f"nbgrader {nbgrader.__version__} has no BaseConverter.{name}({', '.join(parameters)}). "
                "The grader replaces this method so that nbgrader follows no links in students' submissions; "
                "install nbgrader 0.9.6"
            )
    nbgraders = BaseConverter.init_assignment

    def init_assignment(self: Any, assignment_id: str, student_id: str) -> None:
        if student_id == ".":  # the files come from source/, which the author wrote, and not from a student
            nbgraders(self, assignment_id, student_id)
            return
        source, target = self._format_source(assignment_id, student_id), self._format_dest(assignment_id, student_id)
        copy(source, target, self.coursedir.ignore, self.log, given_files(self.coursedir, assignment_id))

    init_assignment.guarded = True  # type: ignore[attr-defined]
    BaseConverter.init_assignment = init_assignment  # type: ignore[method-assign]

    def get_existing_timestamp(self: Any, dest_path: str) -> Any:
        time, notes = time_in(Path(dest_path))
        for note in notes:
            self.log.warning("%s: %s", dest_path, note)
        return time

    CourseDirectory.get_existing_timestamp = get_existing_timestamp  # type: ignore[method-assign]


@contextlib.contextmanager
def without_links(folder: Path) -> Iterator[tuple[Path, dict[Path, str], list[str]]]:
    """Copy a folder's files and folders. Yield the copy, the target of each link, and a line for each omitted entry."""
    found = listed(folder)
    links = {Path(entry): os.readlink(folder / entry) for entry in found.links}
    with tempfile.TemporaryDirectory(dir=home()) as place:
        plain = Path(place, folder.name)
        plain.mkdir()
        for entry in found.plain:
            if os.path.isdir(folder / entry):
                Path(plain, entry).mkdir()
        unread = _copy_files(folder, plain, [entry for entry in found.plain if os.path.isfile(folder / entry)])
        yield plain, links, [*found.odd, *unread]
