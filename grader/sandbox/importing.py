"""Imports with fewer file operations.

A worker imports about 900 modules when it starts. Python checks folders and files some 5,700 times for these imports,
and sandlock's supervisor handles each of these system calls. ``few_looks`` reduces the number to 2,400.
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
    """Let imports in the block check each path only once. The files must not change during the block."""
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
