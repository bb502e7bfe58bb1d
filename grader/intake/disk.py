"""Read one submitted file or folder within limits, and describe why a file or folder cannot be read."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grader.common.text import A_DOCUMENT, A_LINK, printable
from grader.intake.submission import Refused, Unreadable
from grader.wire import limits

SUFFIXES = (".py", ".ipynb")
# Suffixes of archives that the grader does not read, but that may hold submissions.
ARCHIVES = (".7z", ".bz2", ".gz", ".rar", ".tar", ".tbz", ".tgz", ".txz", ".xz", ".zst")
DOCUMENTS = (".doc", ".docx", ".odt", ".pages", ".pdf", ".rtf")
MACHINE_FAULTS = {
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
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    reason = "a loop of links" if isinstance(error, RuntimeError) else getattr(error, "strerror", None)
    if isinstance(error, RuntimeError) or (isinstance(error, OSError) and error.errno in MACHINE_FAULTS):
        name = printable(str(getattr(error, "filename", "") or "a file"))
        raise Unreadable(f"{name} cannot be read: {reason}; mend the cause and grade again")
    return f"cannot be read ({(reason or type(error).__name__).lower()})"
