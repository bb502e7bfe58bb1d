"""Writing files so that a reader, or a run that was killed, never meets half of one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

_TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{16}")
RESERVED = frozenset({"index", "changes", "leaderboard", "similar"})
"""Names of pages that are no student's."""
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@+- ")
_LONGEST = 200  # a file's name may have 255 bytes with its suffix
AT_WORK = 60.0
"""Seconds after which nobody is still writing a file."""


def file_name(name: str) -> str:
    """Return the file name, without suffix, of a student or of whatever carries a student's name.

    Two names never share one: ASCII letters, digits and ``. _ @ + -`` and blanks stay, every other byte of the name's UTF-8
    becomes ``~`` and two hexadecimal digits, and a name that is too long for a file becomes ``~~`` and its SHA-256. A first
    dot and the first letter of a name in ``RESERVED`` are replaced like other bytes.
    """
    data = name.encode("utf-8", "surrogatepass")
    first_stays = not name.startswith(".") and name.lower() not in RESERVED
    safe = "".join(
        chr(byte) if byte in _SAFE and (place or first_stays) else f"~{byte:02x}" for place, byte in enumerate(data)
    )
    return safe if len(safe) <= _LONGEST else f"~~{hashlib.sha256(data).hexdigest()}"


def write_atomic(path: str | os.PathLike[str], content: str | bytes | Iterable[str], *, lasting: bool = True) -> None:
    """Write the whole file or leave the old one untouched.

    Text is written as UTF-8 with its line ends as they are; half a surrogate pair, which has no
    UTF-8, becomes ``?``. The folder must exist. A process killed in the middle leaves at most a file
    named ``.tmp-*``, which nothing reads (``clear_left_behind``). An OSError names ``path``, also when the disk is full.

    Args:
        content: all of it, or piece by piece what need not be held whole.
        lasting: also where the machine ends before the disk has it; without that, the file may be empty then.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    target = Path(path)
    temporary = target.with_name(f".tmp-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:  # not tempfile: its files are readable by their owner only
            for piece in pieces:
                file.write(piece.encode("utf-8", "replace") if isinstance(piece, str) else piece)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno:  # a full disk names no file, others our temporary one
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise


def clear_left_behind(folder: str | os.PathLike[str]) -> None:
    """Delete what killed writers left in this folder, not below it: files of our own naming, untouched for a minute."""
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > AT_WORK:
                        os.unlink(entry.path)
