"""Split submitted code into tokens in a confined process."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pydantic import TypeAdapter

from grader.batch.confined import OutOfTime, ParsingProcess, tier_for
from grader.cli.console import tell
from grader.intake.submission import Refused
from grader.sandbox.tiers import Extra
from grader.wings.similar.comparing import WordsOf
from grader.wings.similar.tokens import Word, words
from grader.wire.limits import READ_SECONDS

WORDS = TypeAdapter(list[tuple[str, int, int]])


def access() -> Extra:
    """Return what the sandbox must allow the process: to read this wing and the lexers of pygments."""
    spec = importlib.util.find_spec("pygments")
    lexers = tuple(spec.submodule_search_locations or ()) if spec else ()
    return Extra(rooms=("wings/similar",), serves="grader.wings.similar.inside", readable=lexers)


@contextmanager
def confined_words() -> Iterator[WordsOf]:
    """Yield a function that returns the tokens of code.

    If the system can fork, the function uses a separate process, in a sandbox if one works on this machine. For code
    that exceeds the limits of the separate process, the function prints a note and returns []. It does not try such
    code again.
    """
    if not hasattr(os, "fork"):
        yield words
        return

    refused: set[str] = set()

    def words_of(text: str) -> Sequence[Word]:
        if text in refused:
            return []
        blobs = [text.encode("utf-8", "replace")]
        try:
            found, _ = process.ask({"parse": "words"}, blobs, READ_SECONDS, WORDS, lambda _: None)
        except (Refused, OutOfTime):
            refused.add(text)
            tell(
                "note",
                f"code that begins with {text.strip()[:40]!r} is not compared, because reading it takes too long",
            )
            return []
        return [Word(*word) for word in found]

    with ParsingProcess(tier_for("auto"), access()) as process:
        yield words_of
