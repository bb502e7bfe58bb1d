"""Import nbformat faster: its jsonschema would compile the grammar of international URIs, which notebooks never use."""

from __future__ import annotations

import sys
from typing import Any


def without_uris() -> None:
    """Save two seconds in each process that imports nbformat. Call it before that import.

    jsonschema treats a package that cannot be imported as not installed.
    """
    modules: dict[str, Any] = sys.modules  # type: ignore[assignment]
    modules.setdefault("rfc3987_syntax", None)
