"""List the ``.py`` files and notebooks at a path: a file, a folder or a ``.zip``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from grader.common.text import A_LINK, printable
from grader.intake.disk import SUFFIXES, File, bytes_of, entries_of, limit_of, why_unread
from grader.intake.parsers import Parsers
from grader.intake.submission import Refused
from grader.wire import limits


def files_in_zip(path: Path, name: str, prefix: str, notes: list[str], parsers: Parsers) -> list[File]:
    """Return the files of an archive; their names start with ``prefix``."""
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
    """Return the files at ``path``, shallowest first, then by name; refused files are noted."""
    try:
        # Follow a link that staff typed, but not one that a learner handed in.
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
        notes.append(f"more than {limits.MAX_FILES} .py files and notebooks were handed in; the rest was not looked at")
    return files[: limits.MAX_FILES]


def files_in_folder(root: Path, notes: list[str], parsers: Parsers) -> Iterator[File]:
    """Walk breadth first, so that a limit cuts off the deepest files."""
    folders, seen, zips = [(root, "")], 0, 0
    for depth in range(limits.MAX_FOLDERS_DEEP + 1):
        deeper: list[tuple[Path, str]] = []
        for prefix, entry in ((prefix, entry) for folder, prefix in folders for entry in entries_of(folder, notes)):
            seen += 1
            if seen > limits.MAX_ENTRIES:
                notes.append(
                    f"more than {limits.MAX_ENTRIES} files and folders were handed in; the rest was not looked at"
                )
                return
            name, place, suffix = prefix + entry.name, Path(entry.path), Path(entry.name).suffix.lower()
            if entry.is_symlink():
                notes.append(f"{printable(name)} {A_LINK}")
            elif entry.is_dir(follow_symlinks=False):
                deeper.append((place, f"{name}/"))
            elif suffix == ".zip":
                zips += 1
                yield from files_in_zip(place, name, f"{name}/", notes, parsers) if zips <= limits.MAX_ZIPS else ()
            elif suffix in SUFFIXES:
                yield File(name, lambda place=place, suffix=suffix: bytes_of(place, limit_of(suffix)))
        folders = deeper
        if folders and depth == limits.MAX_FOLDERS_DEEP:
            notes.append(f"folders deeper than {limits.MAX_FOLDERS_DEEP} levels were not looked at")
    if zips > limits.MAX_ZIPS:
        notes.append(f"{zips} .zip files were handed in; {limits.MAX_ZIPS} were opened")
