"""Convert code to tokens without comments and formatting. Placeholders replace numbers, strings and most names.

All of these are easy to change in copied code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pygments.token import Comment, Name, Number, String, Text

_CLOSING = frozenset(")]}")


class Word(NamedTuple):
    """One token and its place in the code.

    ``what``: the token's text or a placeholder (see ``words``).
    """

    what: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """Return the tokens of Python code, including code that Python cannot parse.

    Placeholders replace numbers, strings and names. Keywords stay, and so do names after a dot and names of modules and
    builtins. Comments, docstrings, blanks, and a comma before a closing bracket are omitted.
    """
    found: list[Word] = []
    for word in _joined(text):
        if word.what in _CLOSING and found and found[-1].what == ",":
            found.pop()
        found.append(word)
    return found


def _joined(text: str) -> Iterator[Word]:
    """Yield the tokens of the code, with all pieces of a string literal as one token."""
    from pygments.lexers.python import PythonLexer  # imported only here, because most commands do not need it

    pending: Word | None = None
    after = ""
    for start, kind, value in PythonLexer(stripnl=False, ensurenl=False).get_tokens_unprocessed(text):
        if kind in Comment or kind in Text or kind in String.Doc or not value.strip():
            continue
        end = start + len(value)
        if kind in String:
            pending = Word("S", pending.start if pending else start, end)
            continue
        if pending:
            yield pending
            pending = None
        yield Word(_without_names(kind, value, after), start, end)
        after = value
    if pending:
        yield pending


def _without_names(kind: Any, value: str, after: str) -> str:
    if kind in Number:
        return "0"
    chosen = kind in Name and after != "."
    if chosen and kind not in Name.Namespace and (kind not in Name.Builtin or kind in Name.Builtin.Pseudo):
        return "N"
    return value
