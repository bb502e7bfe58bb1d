"""A question's label for a whole class: the common part of the students' labels."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import lru_cache

GAP = "…"


@lru_cache(10_000)
def common_label(one: str, other: str) -> str:
    """Return a label with gaps where two students' labels differ in numbers, such as ``How long do … bytes take?``."""
    if one == other:
        return one
    mine, theirs = (re.findall(r"\w+(?:\.\d+)?|…|\s+|[^\w\s]", label) for label in (one, other))
    parts: list[str] = []
    for _, start, end, other_start, other_end in SequenceMatcher(None, mine, theirs, autojunk=False).get_opcodes():
        same = mine[start:end] == theirs[other_start:other_end]
        parts += mine[start:end] if same else [GAP]
    return re.sub(r"…(\s*…)+", GAP, "".join(parts))
