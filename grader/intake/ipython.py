"""IPython's syntax replaced by Python, so that a cell means what it does and its lines keep their numbers.

IPython's own TransformerManager (9.18) is not used: magics become calls of ``get_ipython``, which no traced process
has, and a ``%%time`` cell one string, without its functions; leading blank and continued lines go; 400 magics take 12
s, here 2 ms.
"""

from __future__ import annotations

import re

from grader.intake.decoding import parsed
from grader.wire import limits

_KEPT_CELL_MAGICS = {"%%time", "%%timeit", "%%capture", "%%prun"}  # their cell is Python
_INSTALL = re.compile(r"(?:pip3?|conda|mamba|uv)[ \t]+(?:install|list|show|pip)\b")  # works without a "%"
_HELP = re.compile(r"%{0,2}[A-Za-z_*][\w.*\[\]]*\?{1,2}[ \t]*(?=\n|\Z)")
_TARGET = r"\*?[^\W\d]\w*(?:\.\w+|\[[^\[\],=\n]*\])*[ \t]*"
_ASSIGN = re.compile(rf"(?P<names>{_TARGET}(?:,[ \t]*{_TARGET})*(?:,[ \t]*)?)=[ \t]*[!%]")
_BLANKS = re.compile(r"[ \t]*")
_TO_LINE_END = re.compile(r"(?:\\\n|[^\n])*")  # a backslash at its end continues a magic, as in IPython
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
    """Replace what only IPython understands; also returns the lines that were left out.

    A cell that is Python is not touched. Line numbers stay, unless the whole cell is of another
    language: then it is empty.
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
    """Only where a statement starts can a magic stand: not in a string, brackets or a continued line."""
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
    """Python to stand in for the magic that starts here; None when there is none."""
    assignment = _ASSIGN.match(text, start)
    is_magic = text[start : start + 1] in ("%", "!", "?") or _HELP.match(text, start) or _INSTALL.match(text, start)
    if not assignment and not is_magic:
        return None
    whole = text[start : _end_of(_TO_LINE_END, text, start)]
    first, *more = whole.split("\n")
    if re.match(r"%time[ \t]+\S", first):
        return whole[len("%time") :].lstrip(" \t")  # it runs the statement after it
    stand_in = "pass"
    if assignment:
        names = [name.strip(" \t*") for name in assignment["names"].split(",")]
        stand_in = " = ".join([name for name in names if name] + ["None"])
    return "\n".join([f"{stand_in}  # {first}", *(f"# {line}" for line in more)])


def _statement_end(text: str, start: int) -> int:
    """Just after the newline that ends the statement that starts here."""
    depth = 0
    for token in _SKIP.finditer(text, start):
        if token.group() in "([{":
            depth += 1
        elif token.group() in ")]}":
            depth = max(0, depth - 1)
        elif token.group() == "\n" and depth == 0:
            return token.end()
    return len(text)
