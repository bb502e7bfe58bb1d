"""Decoding bytes to text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.handed_in import read_, texts, write


def test_a_bom_and_foreign_line_ends_are_understood(tmp_path: Path):
    found = read_(write(tmp_path / "c3_contracting.py", b"\xef\xbb\xbfa = 1\r\nb = '\xc3\xa9'\rc = 3\n"))
    assert texts(found) == ["a = 1\nb = 'é'\nc = 3\n"]
    assert found.notes == ()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"a = 1\nb = '\xe9'\n", "is not UTF-8 text (line 2); save it as UTF-8"),
        ("a = 1\n".encode("utf-16"), "is UTF-16 text; save it as plain UTF-8 text"),
        (rb"{\rtf1\ansi a = 1}", r"is a rich text document (RTF); save it as plain UTF-8 text"),
        (bytes.fromhex("d0cf11e0a1b11ae1"), "is a Word document; save it as plain UTF-8 text"),
        (b"PK\x03\x04\x14", "is a Word document or another zip file; save it as plain UTF-8 text"),
        (b"a = 1\n\0", "holds a NUL byte (line 2); save it as text"),
        (b" \n", "is empty"),
    ],
)
def test_bytes_that_are_not_text_are_refused(tmp_path: Path, content: bytes, reason: str):
    found = read_(write(tmp_path / "c3_contracting.py", content))
    assert not found.sources
    assert found.notes == (f"c3_contracting.py {reason}",)


@pytest.mark.parametrize("cookie", ["# -*- coding: latin-1 -*-", "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :"])
def test_a_file_is_read_in_the_encoding_that_its_cookie_names(tmp_path: Path, cookie: str):
    text = f"{cookie}\n# Universit\xe4t\na = 1\n"
    found = read_(write(tmp_path / "c3_contracting.py", text.encode("latin-1")))
    assert texts(found) == [text] and found.notes == ()


@pytest.mark.parametrize("cookie", ["unicode_escape", "utf-7", "nonsense", "rot13", "idna"])
def test_codecs_that_do_more_than_decode_text_are_refused(tmp_path: Path, cookie: str):
    found = read_(write(tmp_path / "c3_contracting.py", f"# coding: {cookie}\na = '\xe4'\n".encode("latin-1")))
    assert found.notes == ("c3_contracting.py is not UTF-8 text (line 2); save it as UTF-8",)
