"""The start of a worker: ``start.py ROOMS MODULE ROLE MEMORY_MIB CALLS [READABLE]``.

A room is a subfolder of the package ``grader``. ROOMS are rooms with colons between them. This program makes the rooms
importable by their paths, because a worker can neither list nor read the folder of ``grader``.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def admit(rooms: list[str]) -> None:
    root = Path(__file__).parents[1]
    for name, place in (("grader", root), *((f"grader.{room.replace('/', '.')}", root / room) for room in rooms)):
        _without_files(name.rpartition(".")[0])
        init = place / "__init__.py"
        spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[str(place)])
        assert spec is not None and spec.loader is not None
        package = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
        if place != root:
            setattr(sys.modules[name.rpartition(".")[0]], place.name, package)


def _without_files(name: str) -> None:
    """Create an empty package and its parent packages."""
    above, _, last = name.rpartition(".")
    if name and name not in sys.modules:
        _without_files(above)
        package = sys.modules[name] = types.ModuleType(name)
        package.__path__ = []
        setattr(sys.modules[above], last, package)


@contextlib.contextmanager
def few_looks() -> Iterator[None]:
    """Let imports in the block check each path only once. The files must not change during the block.

    A worker imports about 900 modules when it starts. Python checks folders and files some 5,700 times for these
    imports, and sandlock's supervisor handles each of these system calls. This function reduces the number to 2,400.
    """
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


if __name__ == "__main__":
    gc.disable()  # imports create hardly any garbage; main enables garbage collection again
    admit(sys.argv[1].split(":"))
    with few_looks():
        from grader.sandbox.main import main

    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main(sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
