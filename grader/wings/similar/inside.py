"""Requests to the process that splits submitted code into tokens, confined like the one that parses submissions."""

from __future__ import annotations

from grader.intake import serve
from grader.wings.similar.tokens import words


def answer(header: dict, blobs: list[bytes], send: serve.Send) -> None:
    """Answer a request: with the tokens of the text in the first blob, or as the process that parses."""
    if header["parse"] == "words":
        serve.answered(header, send, lambda: (words(blobs[0].decode()), ()))
    else:
        serve.answer(header, blobs, send)
