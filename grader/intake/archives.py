"""Read ``.zip`` archives in memory, without unpacking them to disk.

Sizes in an archive's index may be wrong, so the limits count the bytes that are read.
"""

from __future__ import annotations

import io
import shlex
import stat
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.common.text import printable
from grader.intake.disk import SUFFIXES, is_skipped, limit_of, why_not_read, within_limit
from grader.intake.submission import Refused
from grader.wire import limits

MANIFEST = "manifest.json"
MAX_MANIFEST = 1 << 16
DateTime = tuple[int, int, int, int, int, int]


@dataclass(frozen=True)
class Archive:
    """The contents of an archive.

    Attributes:
        files: (name, position in the archive) of each ``.py`` file and notebook that the grader may read.
        notes: remarks on members that are not read.
        times: the date and time of each file in ``files``.
        manifest: the text of ``manifest.json``, which ``shardlings submit`` writes; empty without this file.
        is_dated: whether ``times`` may be used as submission times. False if the manifest is unreadable.
    """

    files: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    times: Mapping[str, DateTime]
    manifest: str
    is_dated: bool = True


class OpenArchive:
    """An archive, opened from its bytes. Raises Refused if the bytes are not an archive."""

    def __init__(self, data: bytes) -> None:
        # Count the members before ZipFile makes an object for each member. The number that the zip states may be wrong.
        if data.count(b"PK\x01\x02") > limits.MAX_ENTRIES:
            raise Refused(f"holds more than {limits.MAX_ENTRIES} files and was not read; hand in only your work")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except Exception as error:  # for damaged archives, zipfile raises errors of many types
            raise Refused("is not a .zip archive, or is damaged; make it again") from error

    def contents(self, shown: str) -> Archive:
        """Return the files of the archive, sorted by depth, then by name."""
        notes: list[str] = []
        files: dict[str, int] = {}
        times: dict[str, DateTime] = {}
        inner = 0
        for number, member in enumerate(self._zip.infolist()):
            inside = member.filename.replace("\\", "/")  # some Windows programs write "\" between folders
            times[inside] = member.date_time
            if inside.endswith("/") or any(is_skipped(part) for part in inside.split("/")):
                continue
            if not inside:
                notes.append(f"{shown} holds a file without a name, which was not read")
            elif why := _unsafe(member, inside.split("/")):
                notes.append(f"{printable(inside)} in {shown} {why}")
            elif Path(inside).suffix.lower() in SUFFIXES:
                if inside in files:
                    notes.append(f"{printable(inside)} is in {shown} twice; the grader reads the last copy")
                files[inside] = number
            elif why := why_not_read(inside):
                notes.append(f"{printable(inside)} in {shown} {why}")
            else:
                inner += inside.lower().endswith(".zip")
        if inner:
            zips_were = ".zip file, which was" if inner == 1 else ".zip files, which were"
            notes.append(
                f"{shown} holds {inner} {zips_were} not opened; "
                f"if {shown} holds the submissions of a class, unpack it: "
                f"unzip {shlex.quote(shown)} -d class, then grade the folder class"
            )
        manifest = self._manifest()
        return Archive(
            tuple(sorted(files.items(), key=lambda f: (f[0].count("/"), f[0]))),
            tuple(notes),
            {name: times[name] for name in files},
            manifest or "",
            is_dated=manifest is not None,
        )

    def _manifest(self) -> str | None:
        """Return the text of the manifest; "" if there is no manifest, None if it is unreadable."""
        if MANIFEST not in self._zip.namelist():
            return ""
        try:
            with self._zip.open(MANIFEST) as file:
                return file.read(MAX_MANIFEST).decode("utf-8", "replace")
        except Exception:  # for damaged archives, zipfile raises errors of many types
            return None

    def member(self, number: int) -> bytes:
        """Return a member's bytes. Raises Refused if it is damaged, or larger than the limit for its suffix."""
        member = self._zip.infolist()[number]
        suffix = Path(member.filename).suffix
        try:
            with self._zip.open(member) as file:
                data = file.read(limit_of(suffix) + 1)
        except Exception as error:  # for damaged archives, zlib, struct and zipfile raise errors of many types
            raise Refused("is damaged in the archive; make the .zip again") from error
        return within_limit(data, suffix, limit_of(suffix))


def _unsafe(member: zipfile.ZipInfo, parts: Sequence[str]) -> str:
    """Return why a member is not read; '' if the member may be read."""
    if parts[0] == "" or ".." in parts or ":" in parts[0]:
        return "points outside the archive and was not read"
    if len(member.filename) > limits.MAX_NAME or len(parts) > limits.MAX_FOLDERS_DEEP + 1:
        return "is nested too deeply and was not read"
    mode = member.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "is not a plain file and was not read"
    if member.flag_bits & 1:
        return "is encrypted and was not read; hand it in without a password"
    # bzip2 and lzma let an archive choose how much memory decompression takes.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in an unusual way and was not read; make a plain .zip"
    return ""
