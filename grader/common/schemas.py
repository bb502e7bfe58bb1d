"""nbformat, whose jsonschema would first compile the grammar of international URIs, which no notebook's schema has."""

from __future__ import annotations

import sys
from typing import Any


def without_uris() -> None:
    """To be called before nbformat is imported: saves two seconds of each process that does.

    jsonschema takes a package that cannot be imported for one that is not installed.
    """
    modules: dict[str, Any] = sys.modules  # type: ignore[assignment]
    modules.setdefault("rfc3987_syntax", None)
