"""Write files into a plain folder: all files or none."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from grader.course.config import CourseError


def write_folder(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files into a new or empty folder, all or none. Raises CourseError for other folders."""
    require_empty(folder)
    place = folder.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    near = place if folder.exists() else place.parent  # keep an empty folder; it may be a shell's current folder
    unfinished = near / f".tmp-{secrets.token_hex(8)}"
    try:
        write_files(unfinished, files)
        if near == place:  # course.yaml is last, because a folder without course.yaml is not a course
            for entry in sorted(unfinished.iterdir(), key=lambda path: path.name == "course.yaml"):
                entry.rename(place / entry.name)
        else:
            unfinished.rename(place)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def require_empty(folder: Path) -> None:
    """Raise CourseError unless the folder is new or empty."""
    if folder.is_symlink() or (folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))):
        raise CourseError(f"{folder} exists and is not an empty folder; name a new folder")


def write_files(root: Path, files: Mapping[str, str]) -> None:
    """Create the folder ``root`` and write every file below it. Line ends stay unchanged."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
