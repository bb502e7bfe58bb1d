"""The program of the process that splits submitted code into tokens.

Its sandbox allows as much as the sandbox that parses submissions, and also what ``confined.access`` returns.
"""

from __future__ import annotations

from grader.intake import serve as parsing
from grader.wings.similar.inside.tokens import words
from grader.wire.messages import ParseRequest


def serve(header: ParseRequest, blobs: list[bytes], send: parsing.Send) -> None:
    """Answer a request for tokens of the code in the first blob, or any request to parse a submission."""
    if header["parse"] == "words":
        parsing.answered(header, send, lambda: (words(blobs[0].decode()), ()))
    else:
        parsing.serve(header, blobs, send)
