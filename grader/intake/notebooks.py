"""The code of a notebook of any version, cell by cell, however damaged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from grader.common.text import a_few, printable
from grader.intake.decoding import unix_lines
from grader.intake.ipython import neutralise
from grader.intake.submission import Chunk, Refused
from grader.wire import limits


def notebook_cells(text: str) -> list[Any]:
    """The cells of a notebook of any version; validation would refuse what can still be graded.

    Raises Refused where there is no list of cells.
    """
    try:
        # No whole number is needed, and huge ones would raise.
        document = json.loads(without_outputs(text), parse_int=lambda digits: 0)
    except json.JSONDecodeError as error:
        raise Refused(f"is not a notebook: line {error.lineno} is not JSON; export it again from Jupyter") from error
    except RecursionError as error:
        raise Refused("is not a notebook: it is nested too deeply; export it again from Jupyter") from error
    if isinstance(document, dict):
        if isinstance(document.get("cells"), list):
            return document["cells"]
        sheets = document.get("worksheets")  # notebooks of version 3 and before
        if isinstance(sheets, list):
            lists = [s.get("cells") for s in sheets if isinstance(s, dict)]
            return [cell for cells in lists if isinstance(cells, list) for cell in cells]
    raise Refused("is not a notebook: it has no list of cells; export it again from Jupyter")


_LEFT_OUT = {'"outputs"', '"attachments"', '"widgets"'}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_OPENS = re.compile(r"\s*:\s*[\[{]")


def without_outputs(text: str) -> str:
    """The JSON of a notebook with empty outputs and attachments: plots take many times what the code takes.

    Raises Refused where the outputs would take long to skip.
    """
    if len(text) <= limits.MAX_FILE:
        return text
    kept: list[str] = []
    done = depth = brackets = 0
    skipping = False
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if not skipping:
            if mark in _LEFT_OUT and (opens := _OPENS.match(text, token.end())):
                kept.append(text[done : opens.end() - 1])
                skipping, done = True, opens.end() - 1
        elif mark in "[]{}":
            depth += 1 if mark in "[{" else -1
            brackets += 1
            if brackets > limits.MAX_BRACKETS:
                raise Refused("has outputs that take too long to read; clear its outputs and hand it in again")
            if depth == 0:
                kept.append("[]" if mark == "]" else "{}")
                skipping, done = False, token.end()
    return "".join([*kept, text[done:]])


def code_cells(cells: Sequence[Any], notebook: str, notes: list[str]) -> Iterator[Chunk]:
    """The learner's code, cells counted from 1 over all cells, as a person counts them in Jupyter."""
    damaged: list[str] = []
    for number, cell in enumerate(cells, start=1):
        kind = cell.get("cell_type") if isinstance(cell, dict) else None
        if kind in ("markdown", "raw", "heading") or _is_test_cell(cell):
            continue
        text = cell_text(cell) if kind == "code" else None
        if text is None:
            damaged.append(str(number))
            continue
        text, left_out = neutralise(text)
        if left_out:
            notes.append(f"cell {number} of {notebook}: left out {a_few([printable(line) for line in left_out], 2)}")
        yield Chunk(f"cell {number}", text)
    if damaged:
        notes.append(f"damaged cells of {notebook} were left out: {a_few(damaged)}")


def _is_test_cell(cell: Any) -> bool:
    """An nbgrader cell of tests: it is ours, not the learner's."""
    metadata = cell.get("metadata") if isinstance(cell, dict) else None
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return isinstance(marks, dict) and marks.get("grade") is True and marks.get("solution") is False


def cell_text(cell: Mapping[str, Any]) -> str | None:
    """A cell's code, None when it is not text that Python could read."""
    text = cell.get("source", cell.get("input"))  # "input" in version 3
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        text = "".join(text)
    if not isinstance(text, str) or "\0" in text or re.search("[\ud800-\udfff]", text):
        return None
    return unix_lines(text.removeprefix("\ufeff"))


_CHECK = re.compile(r"""^check\(\s*["']([\w.-]+)["']""", re.MULTILINE)


def checked_after(cells: Sequence[Any], chunks: Sequence[Chunk], exercises: Iterable[str]) -> Iterator[tuple[str, str]]:
    """After which chunk each exercise of a notebook is checked: where ``check("c3")`` is called last."""
    ends: dict[str, str] = {}
    exercises = tuple(exercises)
    names = {c.name for c in chunks}
    before = ""
    for number, cell in enumerate(cells, start=1):
        before = f"cell {number}" if f"cell {number}" in names else before
        text = cell_text(cell) if isinstance(cell, dict) and cell.get("cell_type") == "code" else None
        for called in _CHECK.findall(text or "") if before else ():
            found = [called] if called in exercises else [e for e in exercises if e.startswith(called)]
            if len(found) == 1:
                ends[found[0]] = before
    yield from ends.items()
