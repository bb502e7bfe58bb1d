"""List the ``.py`` files and notebooks at a path: a file, a folder or a ``.zip``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from grader.common.text import A_LINK, printable
from grader.intake.disk import SUFFIXES, File, bytes_of, entries_of, limit_of, why_not_read, why_unread
from grader.intake.parsers import Parsers
from grader.intake.submission import Refused
from grader.wire import limits


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
