"""Decode a file's bytes to text, and parse Python source."""

from __future__ import annotations

import ast
import codecs
import re
import warnings

from grader.common import syntax
from grader.intake.submission import Refused

OTHER_FORMATS = {
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"{\\rtf": "a rich text document (RTF)",
    b"\xd0\xcf\x11\xe0": "a Word document",
    b"PK\x03\x04": "a Word document or another zip file",
    b"%PDF-": "a PDF document",
}
"""Formats that editors save instead of text, by a file's first bytes."""


def text_of(data: bytes) -> str:
    """Return a file's text with Unix line ends. Raises Refused if Python could not read the file as text."""
    for first, kind in OTHER_FORMATS.items():
        if data.startswith(first):
            raise Refused(f"is {kind}; save it as plain UTF-8 text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        text = _as_it_says(data)
        if text is None:
            raise Refused(f"is not UTF-8 text (line {line}); save it as UTF-8") from error
    if "\0" in text:
        raise Refused(f"holds a NUL byte (line {text[: text.index(chr(0))].count(chr(10)) + 1}); save it as text")
    return unix_lines(text)


_COOKIE = re.compile(rb"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)?[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")
# Beginnings of names of text encodings. No other codec is used: some of Python's codecs, such as bz2, are not for text.
_ALPHABETS = ("iso8859", "cp", "latin", "mac", "koi8", "big5", "gb", "shiftjis", "euc")


def _as_it_says(data: bytes) -> str | None:
    """Decode bytes as Python does, with the encoding that a line such as ``# coding: latin-1`` names.

    Return None if there is no such line, or the encoding is not usable.
    """
    cookie = _COOKIE.match(data)
    try:
        name = codecs.lookup(cookie[1].decode()).name if cookie else ""
        return data.decode(name) if name.replace("-", "").replace("_", "").startswith(_ALPHABETS) else None
    except (LookupError, UnicodeDecodeError):
        return None


def unix_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parsed(text: str) -> ast.Module | None:
    """Return the syntax tree of Python source; None if Python cannot parse ``text``."""
    try:
        with warnings.catch_warnings():
            # Python would print warnings about a learner's code, for example about "\d".
            warnings.simplefilter("ignore")
            return syntax.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
