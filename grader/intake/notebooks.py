"""Extract the code of a notebook of any version, cell by cell, even if the notebook is damaged.

This module rewrites IPython's syntax as Python. A cell keeps its meaning and its line numbers. IPython's own
TransformerManager (9.18) is unsuitable for these reasons:

- It replaces magics by calls of ``get_ipython``, a function that does not exist where the grader runs the code.
- It puts the code of a ``%%time`` cell into a string, so that the cell defines no functions.
- It changes line numbers: it drops blank lines at the beginning, and joins the lines of a continued magic.
- It takes 12 s for 400 magics. This module takes 2 ms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from grader.common.syntax import parsed
from grader.common.text import a_few, printable
from grader.intake.submission import Chunk, Refused
from grader.wire import limits


def notebook_cells(text: str) -> list[Any]:
    """Return the cells of a notebook of any version, valid or not.

    Raises Refused if the notebook has no cells or too many cells.
    """
    cells = _listed_cells(text)
    if len(cells) > limits.MAX_CELLS:
        raise Refused(f"has more than {limits.MAX_CELLS} cells and was not read; hand in only your work")
    return cells


def _listed_cells(text: str) -> list[Any]:
    try:
        # Read each integer as 0, because Python refuses to convert huge integers, and the values do not matter here.
        document = json.loads(without_outputs(text), parse_int=lambda digits: 0)
    except json.JSONDecodeError as error:
        raise Refused(f"is not a notebook: line {error.lineno} is not JSON; export it again from Jupyter") from error
    except RecursionError as error:
        raise Refused("is not a notebook: it is nested too deeply; export it again from Jupyter") from error
    if isinstance(document, dict):
        if isinstance(document.get("cells"), list):
            return document["cells"]
        sheets = document.get("worksheets")  # notebooks of format version 3 and before have worksheets
        if isinstance(sheets, list):
            lists = [s.get("cells") for s in sheets if isinstance(s, dict)]
            return [cell for cells in lists if isinstance(cells, list) for cell in cells]
    raise Refused("is not a notebook: it has no list of cells; export it again from Jupyter")


_LEFT_OUT = {'"outputs"', '"attachments"', '"widgets"'}
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_OPENS = re.compile(r"\s*:\s*[\[{]")


def without_outputs(text: str) -> str:
    """Return a notebook's JSON text. If the text is longer than ``limits.MAX_FILE``, empty all outputs and attachments.

    Raises Refused if finding the ends of the outputs would take too long.
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
    """Yield the learner's code cells. Cell numbers start at 1 and count all cells of the notebook."""
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
    metadata = cell.get("metadata") if isinstance(cell, dict) else None
    marks = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return isinstance(marks, dict) and marks.get("grade") is True and marks.get("solution") is False


def cell_text(cell: Mapping[str, Any]) -> str | None:
    """Return a cell's code; None if Python cannot read the code as text."""
    text = cell.get("source", cell.get("input"))  # version 3 of the format has "input" in place of "source"
    if isinstance(text, list) and all(isinstance(line, str) for line in text):
        text = "".join(text)
    if not isinstance(text, str) or "\0" in text or re.search("[\ud800-\udfff]", text):
        return None
    return unix_lines(text.removeprefix("\ufeff"))


def unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


_CHECK = re.compile(r"""^check\(\s*["']([\w.-]+)["']""", re.MULTILINE)


def code_texts(cells: Sequence[Any]) -> Iterator[str | None]:
    """Yield the code of each code cell, and None for a cell of any other kind."""
    for cell in cells:
        yield cell_text(cell) if isinstance(cell, dict) and cell.get("cell_type") == "code" else None


def checks_in(text: str, exercises: Iterable[str]) -> list[str]:
    """Return the exercises that a cell checks, with calls such as ``check("c3")``."""
    exercises = tuple(exercises)
    found: list[str] = []
    for called in dict.fromkeys(_CHECK.findall(text)):
        meant = [called] if called in exercises else [e for e in exercises if e.startswith(called)]
        found += meant if len(meant) == 1 else []
    return found


def checked_after(checks: Iterable[Iterable[str]], chunks: Sequence[Chunk]) -> Iterator[tuple[str, str]]:
    """Yield (exercise, chunk's name) for each exercise that a notebook checks with a call such as ``check("c3")``.

    The chunk is the last cell with such a call. If ``chunks`` lacks this cell, the chunk is the last cell before it.

    Args:
        checks: for each cell of the notebook, the exercises that the cell checks.
        chunks: the cells whose code the grader runs, for example without nbgrader's test cells.
    """
    ends: dict[str, str] = {}
    names = {c.name for c in chunks}
    before = ""
    for number, checked in enumerate(checks, start=1):
        before = f"cell {number}" if f"cell {number}" in names else before
        ends |= dict.fromkeys(checked, before) if before else {}
    yield from ends.items()


_DEFINES = re.compile(r"^(?:(?:async\s+)?def\s+(\w+)|(\w+)\s*(?::[^=\n]+)?=(?!=))", re.MULTILINE)


def definitions_in(text: str) -> set[str]:
    """Return the names of functions and variables that a cell defines at the beginning of a line."""
    return {a or b for a, b in _DEFINES.findall(text)}


_KEPT_CELL_MAGICS = {"%%time", "%%timeit", "%%capture", "%%prun"}  # Magics of cells whose other lines are Python.
# Commands of package managers, which IPython also runs without "%".
_INSTALL = re.compile(r"(?:pip3?|conda|mamba|uv)[ \t]+(?:install|list|show|pip)\b")
_HELP = re.compile(r"%{0,2}[A-Za-z_*][\w.*\[\]]*\?{1,2}[ \t]*(?=\n|\Z)")
_TARGET = r"\*?[^\W\d]\w*(?:\.\w+|\[[^\[\],=\n]*\])*[ \t]*"
_ASSIGN = re.compile(rf"(?P<names>{_TARGET}(?:,[ \t]*{_TARGET})*(?:,[ \t]*)?)=[ \t]*[!%]")
_BLANKS = re.compile(r"[ \t]*")
_TO_LINE_END = re.compile(r"(?:\\\n|[^\n])*")  # as in IPython, a trailing backslash continues a magic
_SKIP = re.compile(
    r"""
    \#[^\n]*                                  # a comment
    | \"{3} (?:\\.|[^\\])*? (?:\"{3}|\Z)      # strings; an unfinished one ends with its line or the text
    | '{3}  (?:\\.|[^\\])*? (?:'{3}|\Z)
    | "     (?:\\.|[^"\\\n])* "?
    | '     (?:\\.|[^'\\\n])* '?
    | \\\n | [()\[\]{}] | \n
    """,
    re.VERBOSE | re.DOTALL,
)


def neutralise(text: str) -> tuple[str, list[str]]:
    """Replace IPython's syntax in a cell. Return the cell's new code, and the lines that were left out.

    The code keeps its line numbers. A cell in a language other than Python becomes empty, and a very long cell does not
    change.
    """
    if len(text) > limits.MAX_CELL or parsed(text) is not None:
        return text, []
    left_out: list[str] = []
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if not line.strip():
            continue
        if not line.lstrip().startswith("%%") or _HELP.fullmatch(line.strip()):
            break
        left_out.append(line.strip())
        if line.split()[0] not in _KEPT_CELL_MAGICS:
            return "", left_out
        lines[i] = f"# {line.strip()}"
    return without_line_magics("\n".join(lines), left_out), left_out


def without_line_magics(text: str, left_out: list[str]) -> str:
    """Replace each line magic that begins a statement by Python code.

    Args:
        left_out: a list to which the function adds the first line of each replaced magic.
    """
    done: list[str] = []
    at = 0
    while at < len(text):
        start = _end_of(_BLANKS, text, at)
        replacement = _replacement(text, start)
        if replacement is None:
            end = _statement_end(text, start)
            done.append(text[at:end])
        else:
            whole = text[start : _end_of(_TO_LINE_END, text, start)]
            left_out.append(whole.split("\n")[0].strip())
            done.append(text[at:start] + replacement)
            end = start + len(whole)
            if end < len(text):
                done.append("\n")
                end += 1
        at = end
    return "".join(done)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _replacement(text: str, start: int) -> str | None:
    """Return the Python that replaces the IPython magic at position ``start``; None if there is no magic."""
    assignment = _ASSIGN.match(text, start)
    is_magic = text[start : start + 1] in ("%", "!", "?") or _HELP.match(text, start) or _INSTALL.match(text, start)
    if not assignment and not is_magic:
        return None
    whole = text[start : _end_of(_TO_LINE_END, text, start)]
    first, *more = whole.split("\n")
    if re.match(r"%time[ \t]+\S", first):
        # The magic %time runs the rest of its line, so keep the rest.
        return whole[len("%time") :].lstrip(" \t")
    stand_in = "pass"
    if assignment:
        names = [name.strip(" \t*") for name in assignment["names"].split(",")]
        stand_in = " = ".join([name for name in names if name] + ["None"])
    return "\n".join([f"{stand_in}  # {first}", *(f"# {line}" for line in more)])


def _statement_end(text: str, start: int) -> int:
    """Return the position just after the newline that ends the statement at ``start``."""
    depth = 0
    for token in _SKIP.finditer(text, start):
        if token.group() in "([{":
            depth += 1
        elif token.group() in ")]}":
            depth = max(0, depth - 1)
        elif token.group() == "\n" and depth == 0:
            return token.end()
    return len(text)
