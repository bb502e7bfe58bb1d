"""List and read submitted files within limits: a file, a folder or a ``.zip``. Describe why one cannot be read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from grader.common.text import A_DOCUMENT, A_LINK, printable
from grader.intake.submission import Refused, Unreadable
from grader.wire import limits

if TYPE_CHECKING:
    from grader.intake.parsers import Parsers

SUFFIXES = (".py", ".ipynb")
# Suffixes of archives that the grader does not read, but that may hold submissions.
ARCHIVES = (".7z", ".bz2", ".gz", ".rar", ".tar", ".tbz", ".tgz", ".txz", ".xz", ".zst")
DOCUMENTS = (".doc", ".docx", ".odt", ".pages", ".pdf", ".rtf")
MACHINE_FAULTS = {
    # The grader has just found the file, so it was moved or deleted, or its disk is gone. On Windows, the path may also
    # be too long.
    *([errno.ENOENT] if os.name == "posix" else []),
    errno.EACCES,
    errno.EPERM,
    errno.ELOOP,
    errno.EIO,
    errno.ENFILE,
    errno.EMFILE,
    errno.ENOMEM,
    errno.ETIMEDOUT,
    getattr(errno, "ESTALE", errno.EIO),
}
SKIPPED_FOLDERS = {"__pycache__", "_public", "__MACOSX", "node_modules", "site-packages", "venv"}


@dataclass(frozen=True)
class File:
    """A ``.py`` file or notebook in a submission. ``read`` returns the file's bytes, or raises Refused."""

    name: str
    read: Callable[[], bytes]

    @property
    def shown(self) -> str:
        return printable(self.name)

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix.lower()


def entries_of(folder: Path, notes: list[str]) -> list[os.DirEntry[str]]:
    """Return a folder's entries, sorted by name, except entries that never belong to a submission."""
    try:
        with os.scandir(folder) as entries:
            return sorted((e for e in entries if not is_skipped(e.name)), key=lambda e: e.name)
    except OSError as error:
        notes.append(f"{printable(folder.name)} {why_unread(error)}")
        return []


def is_skipped(part: str) -> bool:
    """Return True for the name of a file or folder that never belongs to a submission."""
    return (part.startswith(".") and part not in (".", "..")) or part in SKIPPED_FOLDERS


def why_not_read(name: str) -> str:
    """Return why the grader does not read a file of this name; '' if it reads the file, or if the file holds no work.

    A ``.py`` file, notebook or ``.zip`` may have got a second suffix, as in "c3.py.txt".
    """
    *inner, last = ("", *(suffix.lower() for suffix in PurePosixPath(name).suffixes))
    if last in ARCHIVES:
        return "is an archive that the grader does not read; unpack it, or make a .zip"
    if last in (*SUFFIXES, ".zip"):
        return ""
    if last in DOCUMENTS:
        return f"{A_DOCUMENT}; write your answers into a .py file or a notebook (.ipynb)"
    if {*inner} & {*SUFFIXES, ".zip"}:
        return "is not a .py file, a notebook (.ipynb) or a .zip, so it was not read"
    return ""


def bytes_of(path: Path, most: int) -> bytes:
    """Return the bytes of a file.

    Raises Refused if the file has more than ``most`` bytes, is no plain file, or cannot be read. Raises Unreadable if
    the machine is at fault.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        with open(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise Refused("is not a plain file")
            # Reading hundreds of files that are too large would take minutes.
            if found.st_size > most:
                raise too_large(path.suffix, most)
            return within_limit(file.read(most + 1), path.suffix, most)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise Refused(f"{A_LINK}; hand in the file itself") from error
        raise Refused(why_unread(error)) from error


def limit_of(suffix: str) -> int:
    """Return the largest number of bytes of a file with this suffix."""
    return limits.MAX_NOTEBOOK if suffix.lower() == ".ipynb" else limits.MAX_FILE


def within_limit(data: bytes, suffix: str, most: int) -> bytes:
    """Return the bytes. Raises Refused if there are more than ``most`` bytes."""
    if len(data) <= most:
        return data
    raise too_large(suffix, most)


def too_large(suffix: str, most: int) -> Refused:
    """Return the error for a file with this suffix and more than ``most`` bytes."""
    what = "clear its outputs" if suffix.lower() == ".ipynb" else "make it smaller"
    return Refused(f"is larger than {most // limits.MIB} MiB and was not read; {what} and hand it in again")


def why_unread(error: Exception) -> str:
    """Describe why a file or folder of a submission was not read. Raises Unreadable if the machine is at fault."""
    reason = "a loop of links" if isinstance(error, RuntimeError) else getattr(error, "strerror", None)
    if isinstance(error, RuntimeError) or (isinstance(error, OSError) and error.errno in MACHINE_FAULTS):
        name = printable(str(getattr(error, "filename", "") or "a file"))
        raise Unreadable(f"{name} cannot be read: {reason}; mend the cause and grade again")
    return f"cannot be read ({(reason or type(error).__name__).lower()})"


# -- the files at a path -----------------------------------------------------------------------------


def files_in_zip(path: Path, name: str, prefix: str, notes: list[str], parsers: Parsers) -> list[File]:
    """Return the files of an archive, with ``prefix`` put before each file's name."""
    shown = printable(name)
    try:
        data = bytes_of(path, limits.MAX_READ)
        archive = parsers.archive(data, shown)
    except Refused as refusal:
        notes.append(f"{shown} {refusal}")
        return []
    notes += archive.notes
    return [
        File(prefix + inside, lambda number=number: parsers.member(data, number)) for inside, number in archive.files
    ]


def listing(path: Path, notes: list[str], parsers: Parsers) -> list[File]:
    """Return the files at ``path``, sorted by depth, then by name. Add a line to ``notes`` for each refused file."""
    try:
        # Follow a link that staff typed, but not a link that a learner handed in.
        real = path.resolve(strict=True)
        is_folder = real.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        notes.append(f"{printable(path.name)} {why_unread(error)}")
        return []
    if is_folder:
        files = list(files_in_folder(real, notes, parsers))
    elif real.suffix.lower() == ".zip":
        files = files_in_zip(real, path.name, "", notes, parsers)
    elif real.suffix.lower() in SUFFIXES:
        files = [File(path.name, lambda: bytes_of(real, limit_of(real.suffix)))]
    else:
        notes.append(f"{printable(path.name)} is not a .py file, a notebook (.ipynb) or a .zip")
        files = []
    if len(files) > limits.MAX_FILES:
        notes.append(f"more than {limits.MAX_FILES} .py files and notebooks were submitted; the rest was not read")
    return files[: limits.MAX_FILES]


def files_in_folder(root: Path, notes: list[str], parsers: Parsers) -> Iterator[File]:
    """Yield a folder's files, breadth first, so that a limit on the number of files leaves out the deepest files."""
    folders, seen, zips = [(root, "")], 0, _Zips()
    for depth in range(limits.MAX_FOLDERS_DEEP + 1):
        deeper: list[tuple[Path, str]] = []
        for prefix, entry in ((prefix, entry) for folder, prefix in folders for entry in entries_of(folder, notes)):
            seen += 1
            if seen > limits.MAX_ENTRIES:
                notes.append(f"more than {limits.MAX_ENTRIES} files and folders were submitted; the rest was not read")
                return
            name, place, suffix = prefix + entry.name, Path(entry.path), Path(entry.name).suffix.lower()
            if entry.is_symlink():
                notes.append(f"{printable(name)} {A_LINK}")
            elif entry.is_dir(follow_symlinks=False):
                deeper.append((place, f"{name}/"))
            elif suffix == ".zip":
                yield from files_in_zip(place, name, f"{name}/", notes, parsers) if zips.may_open(place) else ()
            elif suffix in SUFFIXES:
                yield File(name, lambda place=place, suffix=suffix: bytes_of(place, limit_of(suffix)))
            elif why := why_not_read(entry.name):
                notes.append(f"{printable(name)} {why}")
        folders = deeper
        if folders and depth == limits.MAX_FOLDERS_DEEP:
            notes.append(f"folders deeper than {limits.MAX_FOLDERS_DEEP} levels were not read")
    notes += zips.notes()


class _Zips:
    """A count of the ``.zip`` files of one submission, which all stay in memory while the submission is read."""

    def __init__(self) -> None:
        self._seen = self._size = 0

    def may_open(self, path: Path) -> bool:
        """Return whether the ``.zip`` files so far, with ``path``, are within the limits on number and total bytes."""
        self._seen += 1
        if self._seen <= limits.MAX_ZIPS:
            with suppress(OSError):
                size = os.lstat(path).st_size
                # Do not add the size of a file above this limit, because ``bytes_of`` refuses to read the file.
                self._size += size if size <= limits.MAX_READ else 0
        return self._seen <= limits.MAX_ZIPS and self._size <= limits.MAX_READ

    def notes(self) -> Iterator[str]:
        """Yield one line for each limit that was exceeded."""
        if self._seen > limits.MAX_ZIPS:
            yield f"{self._seen} .zip files were submitted; only the first {limits.MAX_ZIPS} were opened"
        if self._size > limits.MAX_READ:
            most = limits.MAX_READ // limits.MIB
            yield f"more than {most} MiB of .zip files were submitted, so the rest was not opened; make them smaller"
