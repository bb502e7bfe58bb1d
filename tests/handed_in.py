"""Submissions of a made-up course, written to disk for the tests of ``grader.intake``."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from grader.intake.reading import read
from grader.intake.submission import Submission, source_digest

EXERCISES = {
    "c1_local": "03_matmuls",
    "c3_contracting": "03_matmuls",
    "e1_ring_gather": "05_rings",
    "e1_ring_gather_both": "05_rings",
}
LOOKED_FOR = "the grader looked for c1_local.py, c3_contracting.py, e1_ring_gather.py and 1 more, or 03_matmuls.ipynb, 05_rings.ipynb"


def write(path: Path, content: str | bytes = "x = 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def code(source: Any, **metadata: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": [], "execution_count": None}


def notebook(*cells: Any) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def zipped(members: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def read_(path: Path, **kwargs: Any) -> Submission:
    return read(path, "alice", EXERCISES, **kwargs)


def names(found: Submission) -> dict[str, str]:
    return {exercise: source.name for exercise, source in found.sources.items()}


def texts(found: Submission, exercise: str = "c3_contracting") -> list[str]:
    return [chunk.text for chunk in found.sources[exercise].chunks]


def read_cells(tmp_path: Path, *cells: Any) -> Submission:
    return read_(write(tmp_path / "03_matmuls.ipynb", notebook(*cells)))


# Pieces of text that combine strings, brackets, continued lines and magics.
TOKENS = ["%", "%%", "!", "?", "%time ", "%%time", "%%bash", "a", "a = ", "1", "b, ", "(", ")", "[", "{", "}", "'", '"']
LONGER = ['"""', "'''", "\\", "\n", "\n\n", "\n    ", " ", "#", "pip install x", "f'{", "if a:", "\t", "\f", "é"]
PIECES = st.lists(st.sampled_from(TOKENS) | st.sampled_from(LONGER), max_size=30).map("".join)


def fingerprints(folder: Path) -> frozenset[str]:
    """Return the digest of each file in a folder, as a course computes the fingerprints of its handouts."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return frozenset(source_digest(source) for path in files for source in read_(path).sources.values())
