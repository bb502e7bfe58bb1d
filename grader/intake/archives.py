"""What a ``.zip`` holds, read in memory: nothing is unpacked to disk, and what an archive states is not believed."""

from __future__ import annotations

import io
import shlex
import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path

from grader.common.text import printable
from grader.intake.disk import SUFFIXES, File, bytes_of, is_skipped, limit_of, within_limit
from grader.intake.submission import Refused
from grader.wire import limits


def files_in_zip(path: Path, name: str, prefix: str, notes: list[str]) -> list[File]:
    """The files in an archive, in memory; names start with ``prefix``."""
    shown = printable(name)
    try:
        archive = _open_zip(bytes_of(path, limits.MAX_READ))
    except Refused as refusal:
        notes.append(f"{shown} {refusal}")
        return []
    files: dict[str, File] = {}
    inner = 0
    for member in archive.infolist():
        inside = member.filename.replace("\\", "/")  # some Windows programs write "\"
        if member.is_dir() or any(is_skipped(part) for part in inside.split("/")):
            continue
        if why := _unsafe(member, inside.split("/")):
            notes.append(f"{printable(inside)} in {shown} {why}")
        elif Path(inside).suffix.lower() in SUFFIXES:
            if inside in files:
                notes.append(f"{printable(inside)} is in {shown} twice; the last one counts")
            files[inside] = File(prefix + inside, lambda member=member: _member_bytes(archive, member))
        else:
            inner += inside.lower().endswith(".zip")
    if inner:
        zips_were = ".zip file, which was" if inner == 1 else ".zip files, which were"
        notes.append(
            f"{shown} holds {inner} {zips_were} not opened; "
            f"if it is a class, unpack it: unzip {shlex.quote(shown)} -d class, then grade class"
        )
    return sorted(files.values(), key=lambda f: (f.name.count("/"), f.name))


def _open_zip(data: bytes) -> zipfile.ZipFile:
    # The directory's own count can lie, and ZipFile builds an object per member before it can be asked.
    if data.count(b"PK\x01\x02") > limits.MAX_ENTRIES:
        raise Refused(f"holds more than {limits.MAX_ENTRIES} files and was not read; hand in only your work")
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except Exception as error:  # zipfile raises half a dozen types for damaged archives
        raise Refused("is not a .zip archive, or is damaged; make it again") from error


def _unsafe(member: zipfile.ZipInfo, parts: Sequence[str]) -> str:
    """Why a member is not read; empty when it may be."""
    if parts[0] == "" or ".." in parts or ":" in parts[0]:
        return "points outside the archive and was not read"
    if len(member.filename) > limits.MAX_NAME or len(parts) > limits.MAX_FOLDERS_DEEP + 1:
        return "is nested too deeply and was not read"
    mode = member.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "is not a plain file and was not read"
    if member.flag_bits & 1:
        return "is encrypted and was not read; hand it in without a password"
    # bzip2 and lzma let an archive choose how much memory it takes to open it.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "is compressed in an unusual way and was not read; make a plain .zip"
    return ""


def _member_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Decompress no more than the limit; the sizes an archive states are not believed."""
    suffix = Path(member.filename).suffix
    try:
        with archive.open(member) as file:
            data = file.read(limit_of(suffix) + 1)
    except Exception as error:  # zlib, struct, EOF, CRC, ... : all mean one thing
        raise Refused("is damaged in the archive; make the .zip again") from error
    return within_limit(data, suffix, limit_of(suffix))
