"""Find the submission time in the submission itself: a stamp, a zip's own times, or a file's date.

Students can set these times, so staff who take points for lateness need a record of their own. Unreadable data raises
no error.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from grader.intake.archives import MANIFEST, MAX_MANIFEST, Archive
from grader.intake.disk import bytes_of
from grader.intake.parsers import Parsers, Stamp
from grader.intake.submission import Place, Refused, Unreadable, paths_of
from grader.wire import limits

STATED = "submitted.csv"  # the staff's own record of submission times, beside students' folders
# Names that staff may give to this record: Submitted.csv, submitted (1).csv, submitted.csv.csv.
RECORD = re.compile(r"submitted\b.*\.csv", re.IGNORECASE | re.DOTALL)
STAMP, ZIPPED, DATED = "the time stamp of shardlings submit", "the dates in the .zip file", "the file's date"
NO_TIME = 1980  # the year that a zip gives to members without a time


def handed_in_at(place: Place, names: Iterable[str], parsers: Parsers | None = None) -> tuple[datetime, str] | None:
    """Return the time of the newest source, with time zone, and a text that says where this time comes from.

    Return None if no time is known.

    Args:
        names: the sources' names, relative to ``place``, as in ``Source.name``.
        parsers: parsers of archives and stamps; the default parsers run in this process.
    """
    parsers = (parsers or Parsers()).for_submission(place)
    found = [one for name in names for path in paths_of(place) if (one := _time_of(path, name, parsers))]
    return max(found, key=lambda one: one[0], default=None)


def _time_of(place: Path, name: str, parsers: Parsers) -> tuple[datetime, str] | None:
    if not place.is_dir():
        if place.suffix.lower() == ".zip":
            return _in_zip(place, name, parsers) or _dated(place)
        return _dated(place) if place.name == name else None
    if time := _stamp(_manifest_bytes(place, parsers), parsers).time:
        return time, STAMP
    parts = PurePosixPath(name).parts
    for depth in range(1, len(parts) + 1):
        file = place.joinpath(*parts[:depth])
        if file.is_file():
            inside = "/".join(parts[depth:])
            return (_in_zip(file, inside, parsers) if inside else None) or _dated(file)
    return None


def _in_zip(path: Path, name: str, parsers: Parsers) -> tuple[datetime, str] | None:
    try:
        archive = _archive(path, parsers)
        if stamped := _stamp(archive.manifest.encode(), parsers).time:
            return stamped, STAMP
        time = archive.times.get(name) if archive.is_dated else None
        return (datetime(*time).astimezone(), ZIPPED) if time and time[0] > NO_TIME else None
    # Some of these errors mean that a date in the archive is invalid.
    except (Refused, Unreadable, ValueError, OverflowError, OSError):
        return None


def student_in(path: Path, parsers: Parsers) -> str:
    """Return the student that ``shardlings submit`` wrote into a folder or zip; '' if there is none."""
    return _stamp(_manifest_bytes(path, parsers), parsers).student


def _archive(path: Path, parsers: Parsers) -> Archive:
    return parsers.archive(bytes_of(path, limits.MAX_READ), path.name)


def _manifest_bytes(path: Path, parsers: Parsers) -> bytes:
    """Return the manifest in a folder or zip; b"" if the manifest is missing or cannot be read."""
    try:
        if path.is_dir():
            return bytes_of(path / MANIFEST, MAX_MANIFEST)
        return _archive(path, parsers).manifest.encode()
    except (Refused, Unreadable):
        return b""


def _stamp(manifest: bytes, parsers: Parsers) -> Stamp:
    try:
        return parsers.stamp(manifest) if manifest else Stamp()
    except (Refused, Unreadable):
        return Stamp()


def _dated(path: Path) -> tuple[datetime, str] | None:
    try:
        found = os.lstat(path)
        return (datetime.fromtimestamp(found.st_mtime, UTC), DATED) if stat.S_ISREG(found.st_mode) else None
    except (OSError, ValueError, OverflowError):
        return None
