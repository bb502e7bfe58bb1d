"""Find the submission time in the submission itself: a stamp, a zip's own times, or a file's date.

Students can set all three, so staff who take points for lateness need a record of their own. These times are for
courses without one. Nothing is executed, and unreadable data is no error.
"""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path, PurePosixPath

from grader.intake.disk import bytes_of
from grader.intake.submission import Place, Refused, Unreadable, paths_of
from grader.wire import limits

STATED = "submitted.csv"  # the staff's own record, beside students' folders
MANIFEST = "manifest.json"
MAX_MANIFEST = 1 << 16
STAMP, ZIPPED, DATED = "the stamp of shardlings submit", "the zip's own times", "the file's date"
NO_TIME = 1980  # year of zip members without a time


def handed_in_at(place: Place, names: Iterable[str]) -> tuple[datetime, str] | None:
    """Return the submission time of the newest of these sources, with time zone, and what states it; None if unknown.

    Args:
        place: the student's submission.
        names: the sources' names, relative to the place, as ``reading.read`` gives them.
    """
    found = [one for name in names for path in paths_of(place) if (one := _time_of(path, name))]
    return max(found, key=lambda one: one[0], default=None)


def _time_of(place: Path, name: str) -> tuple[datetime, str] | None:
    """Return the time of one source: a file, a member of a zip, or a file or zip in a folder."""
    if not place.is_dir():
        if place.suffix.lower() == ".zip":
            return _in_zip(place, name) or _dated(place)
        return _dated(place) if place.name == name else None
    if stamp := _stamped(_manifest_bytes(place / MANIFEST)):
        return stamp
    parts = PurePosixPath(name).parts
    for depth in range(1, len(parts) + 1):
        file = place.joinpath(*parts[:depth])
        if file.is_file():
            inside = "/".join(parts[depth:])
            return (_in_zip(file, inside) if inside else None) or _dated(file)
    return None


def _in_zip(path: Path, name: str) -> tuple[datetime, str] | None:
    try:
        with _archive(path) as archive:
            if stamp := _stamped(_manifest_of(archive)):
                return stamp
            times = [i.date_time for i in archive.infolist() if i.filename.replace("\\", "/") == name]
        return (datetime(*times[-1]).astimezone(), ZIPPED) if times and times[-1][0] > NO_TIME else None
    except Exception:  # zipfile raises half a dozen types for damaged archives; dates in one may be invalid
        return None


def student_in(path: Path) -> str:
    """Return the student that the stamp in a folder or zip names; '' without one."""
    try:
        if path.is_dir():
            manifest = _manifest_bytes(path / MANIFEST)
        else:
            with _archive(path) as archive:
                manifest = _manifest_of(archive)
        name = json.loads(manifest)["student"]
        return name if isinstance(name, str) else ""
    except Exception:  # see _in_zip
        return ""


def _archive(path: Path) -> zipfile.ZipFile:
    """Open an archive in memory. Raises Refused and half a dozen other errors."""
    data = bytes_of(path, limits.MAX_READ)
    if data.count(b"PK\x01\x02") > limits.MAX_ENTRIES:
        raise Refused("holds too many files")
    return zipfile.ZipFile(BytesIO(data))


def _manifest_of(archive: zipfile.ZipFile) -> bytes:
    if MANIFEST not in archive.namelist():
        return b""
    with archive.open(MANIFEST) as file:
        return file.read(MAX_MANIFEST)


def _manifest_bytes(path: Path) -> bytes:
    try:
        return bytes_of(path, MAX_MANIFEST)
    except (Refused, Unreadable):
        return b""


def _stamped(manifest: bytes) -> tuple[datetime, str] | None:
    """Return the time that a manifest states; None if it states none with a time zone."""
    try:
        time = datetime.fromisoformat(json.loads(manifest)["submitted"])
        return (time.astimezone(UTC), STAMP) if time.tzinfo else None
    except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
        return None


def _dated(path: Path) -> tuple[datetime, str] | None:
    try:
        found = os.lstat(path)
        return (datetime.fromtimestamp(found.st_mtime, UTC), DATED) if stat.S_ISREG(found.st_mode) else None
    except (OSError, ValueError, OverflowError):
        return None
