"""The keys of what is remembered: each is SHA-256 over all that its value depends on.

Beside what is named here, every key covers the grader's code, all versions, the machine, the isolation and the limits.
Any change gives another key, and nothing is looked up by a name or a time.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any

from cachetools import LRUCache

from grader.batch.findings import Reply
from grader.exercise import Question
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.sandbox import needs

FORM = 4  # of the values
MOST_REQUESTS = 500  # different lists of requests
MOST_INPUTS = 20_000  # different asks of different files


class Keys:
    """Makes the keys. Any thread may use it.

    Args:
        about: all that every value depends on, beside what the methods are given; JSON.
    """

    def __init__(self, about: Any) -> None:
        self._about = json.dumps([FORM, about]).encode()
        self._requests: LRUCache[Any, bytes] = LRUCache(MOST_REQUESTS)
        self._inputs: LRUCache[Any, bytes] = LRUCache(MOST_INPUTS)
        self._lock = Lock()

    def trace(self, source: Source, asks: Sequence[Ask]) -> bytes:
        """Key of the replies: the source's text and all requests, in order."""
        files, ends = tuple(c.name for c in source.chunks), dict(source.ends)
        known = tuple(asks), files, source.ends
        with self._lock:
            requests = self._requests.get(known)
        if requests is None:
            plain = [[ask.secret, ask.for_tracer(list(files)), ends.get(ask.exercise)] for ask in asks]
            requests = hashlib.sha256(_json(plain)).digest()
            with self._lock:
                self._requests[known] = requests
        return self._key("trace", _text(source), requests)

    def source(self, source: Source) -> bytes:
        """Key of a source alone."""
        return self._key("source", _text(source))

    def part(self, digest: bytes) -> bytes:
        """Key of a part of a value, by the SHA-256 of its content."""
        return self._key("part", digest)

    def run(self, ask: Ask, files: Sequence[str], program: bytes) -> bytes:
        """Key of what a program came to: the program, the ask and its inputs."""
        return self._key("run", self._input(ask, tuple(files)), program)

    def poison(self, run: bytes, what: str) -> bytes:
        """Key of which operations of a kind matter in a run."""
        return self._key("poison", run, what.encode())

    def checks(self, about: Any, files: Sequence[str], replies: Mapping[Ask, Reply]) -> bytes:
        """Key of the results of an exercise's checks: all replies to its calls and cases, and what judges them.

        Args:
            about: the exercise and its course; JSON.
        """
        return self._key("checks", _json(about), *self._answers(tuple(files), replies))

    def _answers(self, files: tuple[str, ...], replies: Mapping[Ask, Reply]) -> Iterable[bytes]:
        for ask, reply in replies.items():
            if not isinstance(ask.of, Question):
                yield self._input(ask, files)
                yield reply.text.encode()

    def _input(self, ask: Ask, files: tuple[str, ...]) -> bytes:
        with self._lock:
            found = self._inputs.get((ask, files))
        if found is None:
            found = hashlib.sha256(_json([ask.for_tracer(list(files)), ask.digest])).digest()
            with self._lock:
                self._inputs[ask, files] = found
        return found

    def _key(self, kind: str, *parts: bytes) -> bytes:
        whole = hashlib.sha256(self._about)
        for part in (kind.encode(), *parts):
            whole.update(hashlib.sha256(part).digest())
        return whole.digest()


@cache
def surroundings() -> list[str]:
    """Return the machine, and what learners may import on it."""
    found = [*platform.uname(), platform.python_version(), sys.prefix]
    for name, path in needs.packages().items():
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} {path}")
    return found


def _text(source: Source) -> bytes:
    return _json([source.name, [[c.name, c.text] for c in source.chunks]])


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
