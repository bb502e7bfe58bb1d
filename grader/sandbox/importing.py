"""Imports with few looks at the disk.

Python looks at a module's folder, twice at its file, and twice more at what it has opened before it reads it.
sandlock's supervisor is asked about each: a worker, which imports nine hundred modules, would ask it some 5,700 things,
and asks 2,400 so.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def few_looks() -> Iterator[None]:
    """For as long as this lasts no file that is looked for when something is imported comes, changes or goes."""
    found: Any = importlib._bootstrap_external  # type: ignore[attr-defined]
    look, read = found._path_stat, found.FileLoader.get_data
    found._path_stat = functools.cache(look)
    found.FileLoader.get_data = lambda loader, path: _read(path)
    try:
        yield
    finally:
        found._path_stat, found.FileLoader.get_data = look, read


def _read(path: str) -> bytes:
    opened, parts = os.open(path, os.O_RDONLY | os.O_CLOEXEC), []
    try:
        while part := os.read(opened, 1 << 18):
            parts.append(part)
    finally:
        os.close(opened)
    return b"".join(parts)
