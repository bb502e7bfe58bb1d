"""Import a module of ours a second time, as a new process would: nothing is cached in the copy."""

from __future__ import annotations

import importlib.util
from types import ModuleType


def made_again(module: ModuleType) -> ModuleType:
    """Return a second copy of a module from the same file. Its imports are shared with the first."""
    spec = importlib.util.find_spec(module.__name__)
    assert spec is not None and spec.loader is not None
    again = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(again)
    return again
