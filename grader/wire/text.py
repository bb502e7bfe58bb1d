"""Shorten error texts to one line that is equal on every machine, and suggest corrections of misspelt names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

MAX_MESSAGE = 600


def one_line(error: BaseException) -> str:
    """Return the first paragraph of an error's text on one line, without memory addresses and folders, which vary.

    A long line is cut off. If the first paragraph ends in a colon ("... can't be inferred given the mesh:"), the
    paragraphs after it are included.
    """
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be shown)"
    if isinstance(error, OSError) and isinstance(error.filename, str):
        text = text.replace(error.filename, error.filename.rpartition("/")[2])
    first, *more = [" ".join(p.split()) for p in text.strip().split("\n\n")]
    if first.endswith(":"):  # leave out JAX's paragraph about the mesh, because the report shows the mesh
        others = [re.sub(r" ?See https?://\S+[^.]*\.", "", p) for p in more if not p.startswith("The mesh given has")]
        first = " ".join([first, *others])
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", first)
    text = re.sub(r" (?:at|from) /[^\s,;]*", "", text)  # remove a file of the grader that JAX's message names
    text = re.sub(r"(?<![\w./])/(?:[\w.+@~-]+/)+", "", text)
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."


def describe_load(fault: Mapping[str, Any]) -> str:
    """Say why the run of a learner's cell or file stopped: ``cell 3 stopped at line 2: NameError: ...``."""
    at = f" at line {fault['line']}" if fault["line"] else ""
    if fault.get("kind") == "absent":
        return (
            f"{fault['chunk']} imports {fault['message']}{at}, which is not installed where your submission is graded"
        )
    return f"{fault['chunk']} stopped{at}: {fault['message']}"


def crash_reason(stderr: str) -> str:
    """Return the last line of XLA's standard error that reports an error; '' if there is none.

    Addresses and long numbers become "...", and the line is cut after 200 characters.
    """
    lines = [s for s in stderr.splitlines() if s.strip()]
    last = next((s for s in reversed(lines) if re.search(r"F\d{4}|Check failed|terminate|rror", s)), "")
    return re.sub(r"0x[0-9a-f]+|\b\d{6,}\b", "...", without_marks(last))[:200]


def without_marks(text: str) -> str:
    """Replace the grader's marks ``by_hand_...`` by "collective", because they differ between processes."""
    return re.sub(r"by_hand_[0-9a-f]{16}", "collective", text)


def closest(name: str, names: Iterable[str], cutoff: float) -> str | None:
    """Return the most similar of ``names``; None if none has a similarity of at least ``cutoff`` (0 to 1)."""
    close = difflib.get_close_matches(name, list(names), 1, cutoff)
    return close[0] if close else None
