"""Answer requests in the confined process that parses submissions. Each request calls a method of ``Parsers``."""

from __future__ import annotations

import json
import mmap
import resource
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grader.intake.parsers import Parsers
from grader.intake.submission import Chunk, Refused
from grader.wire.limits import MAX_ZIPS, READ_MEMORY_MIB
from grader.wire.messages import ParseAnswer, ParseRecord, ParseRequest

Send = Callable[[ParseAnswer, list[bytes]], None]
Answer = tuple[Any, Sequence[bytes]]
"""A value for JSON, and blobs. Texts are blobs, because JSON escapes would make texts longer."""


class _Submission:
    """The submission that is being read: its parsers, and the archives that were sent."""

    number = -1
    parsers = Parsers()
    archives: dict[int, bytes] = {}  # noqa: RUF012  replaced with each submission


def serve(header: ParseRequest, blobs: list[bytes], send: Send) -> None:
    if header["submission"] != _Submission.number:
        _Submission.number, _Submission.parsers, _Submission.archives = header["submission"], Parsers(), {}
    answered(header, send, lambda: OPERATIONS[header["parse"]](header["about"], blobs))


def answered(header: ParseRequest, send: Send, parse: Callable[[], Answer]) -> None:
    """Call ``parse`` and send its result. After too much CPU time, this process ends without an answer."""
    signal.setitimer(signal.ITIMER_PROF, header["seconds"])
    before = _cpu_seconds()
    out: Sequence[bytes] = ()
    try:
        found, out = parse()
        about: ParseRecord = {"found": found}
    except Refused as refusal:
        about = {"refused": str(refusal)}
    except MemoryError:
        about = {"memory": True}
    record = json.dumps(about, ensure_ascii=False).encode("utf-8", "replace")
    signal.setitimer(signal.ITIMER_PROF, 0)
    reply: ParseAnswer = {"cpu": _cpu_seconds() - before, "spent": not _has_memory()}
    send(reply, [record, *out])


def _cpu_seconds() -> float:
    """Return the CPU time of this process in seconds. ``time.process_time`` is inexact: it has steps of 4 ms."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _has_memory() -> bool:
    """Return whether three quarters of the address space that this process may use are free.

    Otherwise the grader starts a new process for the next submission. The peak of memory use cannot show this, because
    Linux counts the memory of the parent process, too.
    """
    try:
        mmap.mmap(-1, READ_MEMORY_MIB * 3 // 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError:
        return False
    return True


def _source(about: Any, blobs: list[bytes]) -> Answer:
    source, notes = _Submission.parsers.source(about["path"], blobs[0], about["exercises"])
    return {"chunks": _packed(source.chunks), "ends": source.ends, "notes": notes}, _texts(source.chunks)


def _archive(about: Any, blobs: list[bytes]) -> Answer:
    _hold(about["number"], blobs[0])
    return vars(_Submission.parsers.archive(blobs[0], about["shown"])), ()


def _member(about: Any, blobs: list[bytes]) -> Answer:
    if blobs:
        _hold(about["number"], blobs[0])
    if about["number"] not in _Submission.archives:
        return False, ()
    return True, [_Submission.parsers.member(_Submission.archives[about["number"]], about["member"])]


def _hold(number: int, archive: bytes) -> None:
    held = [*_Submission.archives.items()]
    _Submission.archives = dict([*held[1 - MAX_ZIPS :], (number, archive)])


def _stamp(about: Any, blobs: list[bytes]) -> Answer:
    found = _Submission.parsers.stamp(blobs[0])
    return {"time": found.time and found.time.isoformat(), "student": found.student}, ()


def _cells(about: Any, blobs: list[bytes]) -> Answer:
    found = _Submission.parsers.cells(blobs[0], about["names"], about["wanted"], about["exercises"])
    cells = [vars(cell) | {"text": None if cell.text is None else ""} for cell in found]
    return cells, [cell.text.encode() for cell in found if cell.text is not None]


def _strings(about: Any, blobs: list[bytes]) -> Answer:
    return True, [_Submission.parsers.strings(blobs[0], about["suffix"]).encode("utf-8", "replace")]


def _python(about: Any, blobs: list[bytes]) -> Answer:
    texts = [text.decode() for text in blobs]
    found = _Submission.parsers.python(dict(zip(about["names"], texts, strict=True)))
    chunks = [one.chunk for one in found]
    return {"chunks": _packed(chunks), "left_out": [one.left_out for one in found]}, _texts(chunks)


def _packed(chunks: Sequence[Chunk]) -> list[dict[str, Any]]:
    return [{"name": c.name, "text": "", "facts": c.facts and vars(c.facts)} for c in chunks]


def _texts(chunks: Sequence[Chunk]) -> list[bytes]:
    return [c.text.encode("utf-8", "replace") for c in chunks]


OPERATIONS: Mapping[str, Callable[[Any, list[bytes]], Answer]] = {
    "source": _source,
    "archive": _archive,
    "member": _member,
    "stamp": _stamp,
    "cells": _cells,
    "strings": _strings,
    "python": _python,
}
