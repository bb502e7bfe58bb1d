"""Answers kept on disk by the digest of all that they depend on: bounded, and never believed without their own digest.

A file that is damaged, of another form or gone only costs the time to make it again. Two processes may write at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import lzma
import os
from pathlib import Path
from typing import Any

from grader.common.files import write_atomic

MOST_BYTES = 64 << 20
MOST_OF_ONE = 4 << 20


class Kept:
    """A folder of answers, each a file named by its key: its digest, a line end, compressed JSON.

    Args:
        folder: made when something is first kept; None: nothing is kept.
        most: bytes of all files; those used longest ago go first.
    """

    def __init__(self, folder: Path | None, most: int = MOST_BYTES) -> None:
        self.folder, self.most = folder, most

    @classmethod
    def usual(cls) -> Kept:
        """``$XDG_CACHE_HOME/shardlings/compiled`` (``~/.cache`` when unset); nowhere for a user without a home."""
        try:
            root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        except RuntimeError:
            return cls(None)
        return cls(root / "shardlings" / "compiled")

    def get(self, key: str) -> Any:
        """What was kept; None where nothing is, or nothing whole."""
        if self.folder is None:
            return None
        path = self.folder / key
        try:
            if path.stat().st_size > MOST_OF_ONE:
                return None
            digest, _, data = path.read_bytes().partition(b"\n")
            if digest != hashlib.sha256(key.encode() + data).hexdigest().encode():
                return None
            found = json.loads(lzma.decompress(data))
        except (OSError, ValueError, lzma.LZMAError, RecursionError):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found

    def put(self, key: str, answer: Any) -> None:
        """Keep it, if it is not too large and the disk lets us."""
        if self.folder is None:
            return
        data = lzma.compress(json.dumps(answer).encode(), preset=1)
        if len(data) + 65 > min(MOST_OF_ONE, self.most):
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self.folder / key, hashlib.sha256(key.encode() + data).hexdigest().encode() + b"\n" + data)
            self._forget()

    def _forget(self) -> None:
        assert self.folder is not None
        files = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    files.append((about.st_mtime, about.st_size, entry.path))
        held = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if held <= self.most:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
                held -= size
