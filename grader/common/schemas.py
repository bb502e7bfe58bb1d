"""Import nbformat faster: without this module, jsonschema compiles a grammar of URIs that notebooks never use."""

from __future__ import annotations

import sys
from typing import Any


def without_uris() -> None:
    """Save two seconds in each process that imports nbformat. Call this function before importing nbformat.

    Afterwards, jsonschema treats ``rfc3987_syntax``, the package that compiles the grammar, as not installed.
    """
    modules: dict[str, Any] = sys.modules  # type: ignore[assignment]
    modules.setdefault("rfc3987_syntax", None)
