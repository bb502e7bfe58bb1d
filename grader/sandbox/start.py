"""The start of a worker: ``start.py ROOMS MODULE ROLE MEMORY_MIB CALLS [READABLE]``.

A room is a subfolder of the package ``grader``. ROOMS are rooms with colons between them. This program makes the rooms
importable by their paths, because a worker can neither list nor read the folder of ``grader``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import sys
import types
from pathlib import Path


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


if __name__ == "__main__":
    gc.disable()  # imports create hardly any garbage; main enables garbage collection again
    admit(sys.argv[1].split(":"))
    from grader.sandbox.importing import few_looks

    with few_looks():
        from grader.sandbox.main import main

    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        main(sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
