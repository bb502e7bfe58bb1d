"""Untrusted text, cleaned for display: one line of visible characters."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

# Escape sequences that a terminal obeys: CSI (colours, cursor), OSC (titles, links; up to a terminator or the end of
# the line), and escapes of two characters.
_ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")
_HIDDEN = {"Cc", "Cf", "Cn", "Co", "Cs"}  # control, format, unassigned, private-use and surrogate characters


def clean(text: object, limit: int = 2000) -> str:
    """Return one line of at most ``limit`` visible characters.

    Escape sequences, control characters, bidirectional overrides and other invisible characters are removed. White
    space, including line ends, becomes single spaces.
    """
    raw = str(text)[: 8 * limit]  # This limits the work for long texts.
    if not raw.isprintable():  # Printable strings have neither hidden characters nor escape sequences.
        raw = "".join(c for c in _ANSI.sub("", raw) if c.isspace() or unicodedata.category(c) not in _HIDDEN)
    seen = " ".join(raw.split())
    return seen if len(seen) <= limit else seen[: limit - 1] + "…"


def clean_code(text: str) -> str:
    """Return code without invisible characters. Lines and indents stay."""
    lines = text.expandtabs(4).splitlines()
    return "\n".join(
        "".join(c for c in _ANSI.sub("", line) if c == " " or unicodedata.category(c) not in _HIDDEN) for line in lines
    )


def show_data(value: Any, limit: int = 300) -> str:
    """Return a value, such as a result's expected or actual data, as one line of text."""
    if isinstance(value, dict):
        value = ", ".join(f"{k}: {show_data(v, limit)}" for k, v in list(value.items())[:limit]) or "none"
    elif not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return clean(value, limit)
