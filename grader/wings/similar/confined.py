"""Split submitted code into tokens in a confined process."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from pydantic import TypeAdapter

from grader.batch.confined import OutOfTime, ParsingProcess, tier_for
from grader.cli.console import tell
from grader.common.text import printable
from grader.intake.submission import Refused
from grader.sandbox.tiers import Extra
from grader.wings.similar.comparing import StudentCode, WordsOf
from grader.wings.similar.inside.tokens import Word, words
from grader.wire.limits import READ_SECONDS
from grader.wire.messages import ParseRequest

WORDS = TypeAdapter(list[tuple[str, int, int]])


def access() -> Extra:
    """Return the access that the process needs in the sandbox: it reads this wing and the lexers of pygments."""
    spec = importlib.util.find_spec("pygments")
    lexers = tuple(spec.submodule_search_locations or ()) if spec else ()
    return Extra(rooms=("wings/similar/inside",), serves="grader.wings.similar.inside.serve", readable=lexers)


@contextmanager
def confined_words(works: Iterable[StudentCode]) -> Iterator[WordsOf]:
    """Yield a function that returns the tokens of code.

    If the system can fork, the function uses a separate process, in a sandbox if one works on this machine. For code
    that exceeds the limits of the separate process, the function prints a note and returns []. It does not try such
    code again. There is also a time limit for all code of one student together.
    """
    if not hasattr(os, "fork"):
        yield words
        return

    refused: set[str] = set()
    owner = {part.text: work.student for work in works for part in work.parts}

    def words_of(text: str) -> Sequence[Word]:
        if text in refused:
            return []
        student, blobs = owner.get(text, ""), [text.encode("utf-8", "replace")]

        def spend(seconds: float) -> None:
            process.left[student] -= seconds

        try:
            seconds = min(READ_SECONDS, process.left[student])
            if seconds <= 0:
                raise OutOfTime
            request: ParseRequest = {"parse": "words", "about": {}, "submission": -1, "seconds": seconds}
            found, _ = process.ask(request, blobs, WORDS, spend)
        except (Refused, OutOfTime):
            refused.add(text)
            begins = f"code that begins with {text.strip()[:40]!r}"
            tell("note", f"{printable(student)}: {begins} is not compared, because reading it takes too long")
            return []
        return [Word(*word) for word in found]

    with ParsingProcess(tier_for("auto"), access()) as process:
        yield words_of
