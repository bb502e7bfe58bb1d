"""Run the parsers of ``intake`` on submissions in a confined process, with limits on time and memory.

A file that exceeds a limit, such as a .zip file with too many files, is not graded, and the report says why. If only
the analysis of a file's syntax (``facts.look``) needs too much memory, the file is graded without this analysis. After
a large submission the grader starts a new process, so that the next submission can use all memory up to the limit.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from threading import Lock
from typing import Any, Self, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from grader.common.text import printable
from grader.intake.archives import Archive
from grader.intake.parsers import ParsedCell, Parsers, Python, Stamp
from grader.intake.submission import Chunk, Place, Refused, Source, Unreadable
from grader.sandbox.limits import Limits
from grader.sandbox.tiers import NO_EXTRA, Extra, NoIsolation, best_tier
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.frames import BadFrame, json_of
from grader.wire.limits import MAX_TEXT, READ_MEMORY_MIB, READ_SECONDS, READ_SECONDS_TOTAL
from grader.wire.messages import ParseRequest


class _Chunks(BaseModel):
    chunks: list[Chunk]


class _Source(_Chunks):
    ends: tuple[tuple[str, str], ...]
    notes: list[str]


class _Python(_Chunks):
    left_out: list[tuple[str, ...]]


# The adapters are built once, because building an adapter takes longer than reading a file.
SOURCE, PYTHON, ARCHIVE = TypeAdapter(_Source), TypeAdapter(_Python), TypeAdapter(Archive)
CELLS, STAMP, FLAG = TypeAdapter(list[ParsedCell]), TypeAdapter(Stamp), TypeAdapter(bool)
T = TypeVar("T")
SMALL = 200_000
"""A size in bytes. If the kernel kills the process while it reads fewer bytes, the fault is the machine's."""


class OutOfTime(Exception):
    """The parsing process used up the CPU time for a request."""


class ParsingProcess:
    """The process that parses submissions, one request at a time. All submissions of a command share the process.

    Attributes:
        left: CPU seconds that are left for the files of each submission, by the submission's path.
    """

    def __init__(self, tier: str, extra: Extra = NO_EXTRA) -> None:
        self._worker = Worker("parse", tier, 1, Limits(memory_mib=READ_MEMORY_MIB), extra)
        self._lock = Lock()
        self.left: dict[str, float] = defaultdict(lambda: READ_SECONDS_TOTAL)

    def __enter__(self) -> Self:
        """Start the process without waiting until it is ready."""
        self._worker.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._worker.kill()

    def ask(
        self,
        request: ParseRequest,
        blobs: Sequence[bytes],
        form: TypeAdapter[T],
        spend: Callable[[float], None],
    ) -> tuple[T, list[bytes]]:
        """Send a request to the process. Return (JSON part of the answer, binary parts of the answer).

        Args:
            blobs: the bytes to parse.
            form: the type that the JSON part must have.
            spend: called with the CPU seconds that the request used, even if the file is refused.

        Raises:
            Refused: the bytes cannot be parsed, or parsing needs too much memory or crashes the process.
            OutOfTime: parsing took more than ``request["seconds"]``.
            Unreadable: the process that parses does not work on this machine.
        """
        killed, seconds = False, request["seconds"]
        with self._lock:
            for _ in range(2):
                try:
                    header, (record, *out) = self._worker.parse(request, blobs)
                    spend(float(header["cpu"]))
                    about = json_of(record, "the record is")
                    if about.get("memory") or header.get("spent"):
                        self._worker.kill()
                    if refused := about.get("refused"):
                        raise Refused(str(refused)[:MAX_TEXT])
                    if about.get("memory"):
                        raise Refused(f"needs more than {READ_MEMORY_MIB} MiB of memory to read; make the file smaller")
                    return form.validate_python(about["found"]), out
                except WorkerDied as died:
                    if died.out_of_time:
                        spend(seconds)
                        raise OutOfTime from None
                    killed = died.killed and sum(map(len, blobs)) < SMALL
                except (BadFrame, ValidationError, ValueError, TypeError, LookupError, AttributeError):
                    self._worker.kill()
            if not killed and self._works():
                spend(seconds)
                raise Refused("was not read, because the process that reads it crashed twice")
        raise Unreadable("the process that reads submissions does not run on this machine; see: shardlings doctor")

    def _works(self) -> bool:
        """Return True if a new process can read the grader's own test file."""
        self._worker.kill()
        request: ParseRequest = {"parse": "stamp", "about": {}, "submission": -1, "seconds": READ_SECONDS}
        try:
            _, (record, *_) = self._worker.parse(request, [b'{"submitted": "2026-01-01T00:00:00+00:00"}'])
        except (WorkerDied, ValueError):
            return False
        return b"2026-01-01T00:00:00" in record


_numbers = count()


class Confined(Parsers):
    """The parsers of one submission, which run in the confined process."""

    def __init__(self, process: ParsingProcess, place: str = "") -> None:
        self._process, self._number, self._place = process, next(_numbers), place
        self._archives: list[bytes] = []

    def for_submission(self, place: Place) -> Confined:
        """Return the parsers of the submission at ``place``. All parsers for one ``place`` share one time limit."""
        return Confined(self._process, str(place))

    def source(self, path: str, data: bytes, exercises: Collection[str]) -> tuple[Source, list[str]]:
        about = {"path": path, "exercises": [*exercises]}
        found, texts = self._ask("source", about, [data], SOURCE)
        return Source(printable(path), _with_texts(found.chunks, texts), found.ends), found.notes

    def archive(self, data: bytes, shown: str) -> Archive:
        return self._ask("archive", {"number": self._number_of(data), "shown": shown}, [data], ARCHIVE)[0]

    def member(self, data: bytes, number: int) -> bytes:
        about = {"number": self._number_of(data), "member": number}
        is_there, out = self._ask("member", about, [], FLAG)
        # If the process is new, or dropped this archive to save memory, send the archive again.
        if not is_there:
            _, out = self._ask("member", about, [data], FLAG)
        return out[0]

    def stamp(self, manifest: bytes) -> Stamp:
        return self._ask("stamp", {}, [manifest], STAMP)[0]

    def cells(
        self, data: bytes, names: Collection[str], wanted: Collection[str], exercises: Collection[str]
    ) -> Sequence[ParsedCell]:
        about = {"names": [*names], "wanted": [*wanted], "exercises": [*exercises]}
        found, out = self._ask("cells", about, [data], CELLS)
        texts = iter(out)
        return [cell if cell.text is None else replace(cell, text=next(texts).decode()) for cell in found]

    def strings(self, data: bytes, suffix: str) -> str:
        return self._ask("strings", {"suffix": suffix}, [data], FLAG)[1][0].decode()

    def python(self, texts: Mapping[str, str]) -> Sequence[Python]:
        found, out = self._ask("python", {"names": [*texts]}, [text.encode() for text in texts.values()], PYTHON)
        chunks = _with_texts(found.chunks, out)
        return [Python(chunk, left_out) for chunk, left_out in zip(chunks, found.left_out, strict=True)]

    def _number_of(self, data: bytes) -> int:
        for number, known in enumerate(self._archives):
            # ``intake.times`` passes an archive again for each file in it.
            if known == data:
                return number
        self._archives.append(data)
        return len(self._archives) - 1

    def _ask(
        self, operation: str, about: dict[str, Any], blobs: Sequence[bytes], form: TypeAdapter[T]
    ) -> tuple[T, list[bytes]]:
        seconds = min(READ_SECONDS, self._process.left[self._place])
        if seconds <= 0:
            raise Refused(_too_long(seconds))
        request: ParseRequest = {"parse": operation, "about": about, "submission": self._number, "seconds": seconds}
        try:
            return self._process.ask(request, blobs, form, self._spend)
        except OutOfTime:
            raise Refused(_too_long(seconds)) from None

    def _spend(self, seconds: float) -> None:
        self._process.left[self._place] -= seconds


def _too_long(seconds: float) -> str:
    """Return why a file was not read. The message has no measured time, which would differ from run to run."""
    if seconds == READ_SECONDS:
        return f"takes more than {READ_SECONDS:g} s to read and was not read; make the file smaller"
    return f"was not read: the files of this submission take more than {READ_SECONDS_TOTAL:g} s to read"


def _with_texts(chunks: Sequence[Chunk], texts: Sequence[bytes]) -> tuple[Chunk, ...]:
    return tuple(replace(chunk, text=text.decode()) for chunk, text in zip(chunks, texts, strict=True))


def tier_for(isolation: str) -> str:
    """Return the tier (kind of sandbox) for the requested isolation; "none" if this isolation does not work here."""
    try:
        return best_tier(isolation)
    except NoIsolation:
        return "none"


@contextmanager
def parsing(isolation: str = "auto") -> Iterator[Parsers]:
    """Yield parsers that run in a confined process with the requested isolation."""
    # On Windows, only learners use the grader, for their own files and without a sandbox.
    if not hasattr(os, "fork"):
        yield Parsers()
        return
    with ParsingProcess(tier_for(isolation)) as process:
        yield Confined(process)
