"""List the ``.py`` files and notebooks at a path: a file, a folder or a ``.zip``.

Archives are read in memory and never unpacked to disk. The sizes that an archive states are not trusted.
"""

from __future__ import annotations

import io
import shlex
import stat
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.common.text import A_LINK, printable
from grader.intake.disk import SUFFIXES, File, bytes_of, entries_of, is_skipped, limit_of, why_unread, within_limit
from grader.intake.submission import Refused
from grader.wire import limits


def files_in_zip(path: Path, name: str, prefix: str, notes: list[str]) -> list[File]:
    """Return the files of an archive, read in memory; their names start with ``prefix``."""
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
    # The zip's own count of members can be wrong, and ZipFile builds an object for each before any check is possible.
    if data.count(b"PK\x01\x02") > limits.MAX_ENTRIES:
        raise Refused(f"holds more than {limits.MAX_ENTRIES} files and was not read; hand in only your work")
    try:
        return zipfile.ZipFile(io.BytesIO(data))
    except Exception as error:  # zipfile raises half a dozen types for damaged archives
        raise Refused("is not a .zip archive, or is damaged; make it again") from error


def _unsafe(member: zipfile.ZipInfo, parts: Sequence[str]) -> str:
    """Return why a member is not read; '' if it may be."""
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


def _member_bytes(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Decompress a member up to the limit for its suffix, whatever size the archive states."""
    suffix = Path(member.filename).suffix
    try:
        with archive.open(member) as file:
            data = file.read(limit_of(suffix) + 1)
    except Exception as error:  # zlib, struct, EOF, CRC, ... : all mean a damaged archive
        raise Refused("is damaged in the archive; make the .zip again") from error
    return within_limit(data, suffix, limit_of(suffix))


def listing(path: Path, notes: list[str]) -> list[File]:
    """Return the files at ``path``, shallowest first, then by name; refused files are noted."""
    try:
        # Follow a link that staff typed, but not one that a learner handed in.
        real = path.resolve(strict=True)
        is_folder = real.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        notes.append(f"{printable(path.name)} {why_unread(error)}")
        return []
    if is_folder:
        files = list(files_in_folder(real, notes))
    elif real.suffix.lower() == ".zip":
        files = files_in_zip(real, path.name, "", notes)
    elif real.suffix.lower() in SUFFIXES:
        files = [File(path.name, lambda: bytes_of(real, limit_of(real.suffix)))]
    else:
        notes.append(f"{printable(path.name)} is not a .py file, a notebook (.ipynb) or a .zip")
        files = []
    if len(files) > limits.MAX_FILES:
        notes.append(f"more than {limits.MAX_FILES} .py files and notebooks were handed in; the rest was not looked at")
    return files[: limits.MAX_FILES]


def files_in_folder(root: Path, notes: list[str]) -> Iterator[File]:
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
                yield from files_in_zip(place, name, f"{name}/", notes) if zips <= limits.MAX_ZIPS else ()
            elif suffix in SUFFIXES:
                yield File(name, lambda place=place, suffix=suffix: bytes_of(place, limit_of(suffix)))
        folders = deeper
        if folders and depth == limits.MAX_FOLDERS_DEEP:
            notes.append(f"folders deeper than {limits.MAX_FOLDERS_DEEP} levels were not looked at")
    if zips > limits.MAX_ZIPS:
        notes.append(f"{zips} .zip files were handed in; {limits.MAX_ZIPS} were opened")
