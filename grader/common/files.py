"""Write files atomically: no reader ever sees half a file, even if the writing process is killed."""

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
"""Names of pages that are not the page of a student."""
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@+- ")
_LONGEST = 200  # a file name has at most 255 bytes, including suffixes
AT_WORK = 60.0
"""Age in seconds at which a temporary file counts as abandoned."""


def file_name(name: str) -> str:
    """Return the file name, without suffix, for a student's name. Different names have different file names.

    ASCII letters, digits, ``. _ @ + -`` and blanks stay unchanged. Each other byte of the name's UTF-8 becomes ``~``
    and two hexadecimal digits. A leading dot, and the first letter of a reserved name such as ``index``, are replaced
    in this way too. A name that is too long becomes ``~~`` and its SHA-256.
    """
    data = name.encode("utf-8", "surrogatepass")
    first_stays = not name.startswith(".") and name.lower() not in RESERVED
    safe = "".join(
        chr(byte) if byte in _SAFE and (place or first_stays) else f"~{byte:02x}" for place, byte in enumerate(data)
    )
    return safe if len(safe) <= _LONGEST else f"~~{hashlib.sha256(data).hexdigest()}"


def write_atomic(
    path: str | os.PathLike[str], content: str | bytes | Iterable[str], *, lasting: bool = True, mode: int = 0
) -> None:
    """Write the whole file, or leave the existing file unchanged.

    Text is written as UTF-8 with unchanged line ends. Half a surrogate pair, which UTF-8 cannot express, becomes ``?``.
    The folder must exist. A killed process may leave a file named ``.tmp-*`` (see ``clear_left_behind``). If the write
    fails, the OSError names ``path``.

    Args:
        content: the whole content, or an iterable of pieces, to save memory.
        lasting: whether the file survives a crash of the machine. If False, the file may be empty after a crash.
        mode: the file's permissions; 0 for those of a new file.
    """
    pieces = [content] if isinstance(content, str | bytes) else content
    target = Path(path)
    temporary = target.with_name(f".tmp-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:  # tempfile would make files that only their owner can read
            for piece in pieces:
                file.write(piece.encode("utf-8", "replace") if isinstance(piece, str) else piece)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        if mode:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno:  # the system's error may name the temporary file, or no file
            raise OSError(error.errno, error.strerror, str(target)) from error
        raise


def clear_left_behind(folder: str | os.PathLike[str]) -> None:
    """Delete the temporary files that killed processes left directly in ``folder`` more than a minute ago."""
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        for entry in found:
            if _TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > AT_WORK:
                        os.unlink(entry.path)
