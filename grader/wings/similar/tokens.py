"""Code as tokens without what is changed first when code is copied: comments, formatting, names, numbers, texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pygments.token import Comment, Name, Number, String, Text

_CLOSING = frozenset(")]}")


class Word(NamedTuple):
    """One token: what it is without names, and where it stands in the text."""

    what: str
    start: int
    end: int


def words(text: str) -> list[Word]:
    """The tokens of Python code, also of code that Python cannot read.

    Names are all alike but for those after a dot and of modules, builtins and keywords, which nobody can choose; so are
    numbers and texts. Comments, docstrings, blanks and a comma before a closing bracket are left out.
    """
    found: list[Word] = []
    for word in _joined(text):
        if word.what in _CLOSING and found and found[-1].what == ",":
            found.pop()
        found.append(word)
    return found


def _joined(text: str) -> Iterator[Word]:
    """The pieces of a text between quotes are one token."""
    from pygments.lexers.python import PythonLexer  # not above: commands that compare nothing need not wait for it

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
