"""Writing files so that a reader, or a run that was killed, never meets half of one."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write the whole file or leave the old one untouched.

    Text is written as UTF-8 with its line ends as they are. The folder must exist. A process
    killed in the middle leaves at most a file named ``.tmp-*``, which nothing reads.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    target = Path(path)
    temporary = target.with_name(f".tmp-{secrets.token_hex(8)}")
    try:
        with open(temporary, "xb") as file:  # not tempfile: its files are readable by their owner only
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
