"""A content-addressed cache that is kept from one run of the grader to the next: ``Store.find`` and ``Store.keep``.

| kind | key | value |
|---|---|---|
| ``TRACES`` | a source (a learner's file or notebook) and all requests | the source's replies and CPU seconds |
| ``RUNS`` | a program, a request and its inputs | the runner's answer |
| ``POISON`` | a run and a kind of operation | which operations of this kind matter, see ``Matters`` |
| ``CHECKED`` | an exercise, and all replies to its calls and cases | the results of its checks |

``Keys`` makes the keys. A key is SHA-256 over everything that the value depends on: the column "key" of the table, the
grader's code, all versions, the machine, the isolation and the limits.

Only the grader's own process, which runs no learner's code, reads or writes the store. A learner's process can affect
only the cached values of this learner's own source, replies and programs.

The store does not keep values that may differ in a fresh run:

- faults of the grader
- replies that report a time limit, a memory limit, a signal or an operating-system error
- replies of sources that did not load, or that could act differently in another run (``intake.facts``)

If a fresh run of a source gives a different value anyway, the store never keeps values of this source again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from threading import Lock
from typing import Any, Generic, TypeVar

from cachetools import LRUCache
from pydantic import BaseModel, ValidationError

from grader.batch.replies import Replies, Reply, RunResult
from grader.common.cache import Cache
from grader.common.observation import Fault
from grader.common.result import Evidence, Result
from grader.exercise import Question
from grader.intake.facts import repeatable
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.sandbox import needs
from grader.wire import frames

FORM = 5  # the version of the format in which the cache holds values


class Keys:
    """Makes the keys of a cache (``Store``). Thread-safe.

    Args:
        about: all facts that every value depends on, such as versions, as JSON.
    """

    def __init__(self, about: Any) -> None:
        self._about = json.dumps([FORM, about]).encode()

    def trace(self, source: Source, asks: Sequence[Ask]) -> bytes:
        """Return the key of the replies of a source (a file or notebook) to all requests, in order."""
        ends = dict(source.ends)
        requests = [[ask.hidden_inputs, ask.request_digest, ends.get(ask.exercise)] for ask in asks]
        return self._key("trace", _text(source), _json(requests))

    def source(self, source: Source) -> bytes:
        """Return the key under which ``Store.distrust`` marks a source whose values must not be kept."""
        return self._key("source", _text(source))

    def part(self, digest: bytes) -> bytes:
        """Return the key of bytes that several values share (see ``Parts``), from the SHA-256 of these bytes."""
        return self._key("part", digest)

    def run(self, ask: Ask, files: Sequence[str], program: bytes) -> bytes:
        """Return the key of the runner's answer, from the program, its file names, and the request with its inputs."""
        return self._key("run", _json([ask.request_digest, ask.digest, files]), program)

    def poison(self, run: bytes, what: str) -> bytes:
        """Return the key of a ``Matters`` value, from the key of the program's run and the kind of operations."""
        return self._key("poison", run, what.encode())

    def checks(self, about: Any, files: Sequence[str], replies: Mapping[Ask, Reply]) -> bytes:
        """Return the key of an exercise's check results, from the exercise and all replies to its calls and cases."""
        of_programs = {ask: reply for ask, reply in replies.items() if not isinstance(ask.of, Question)}
        answers = [[ask.request_digest, ask.digest, reply.text] for ask, reply in of_programs.items()]
        return self._key("checks", _json([about, files, answers]))

    def _key(self, kind: str, *parts: bytes) -> bytes:
        whole = hashlib.sha256(self._about)
        for part in (kind.encode(), *parts):
            whole.update(hashlib.sha256(part).digest())
        return whole.digest()


@cache
def surroundings() -> list[str]:
    """Return texts about this machine: system, Python, and installed packages that learners may import."""
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


T = TypeVar("T")


class Checked(BaseModel, frozen=True):
    """The results of an exercise's checks, and their evidence.

    The points are not multiplied by the module's weight (a factor in course.yaml) yet.

    Attributes:
        lasting: True if a new run would give equal results. For example, a fault of the machine may not repeat.
        seconds: CPU seconds of the programs and trials (``Cost.running``).
    """

    results: list[Result]
    evidence: list[Evidence]
    lasting: bool = True
    seconds: float = 0.0


@dataclass(frozen=True)
class Matters:
    """Which operations of one kind, such as matmuls, matter to a program's results (see ``batch.poison``).

    Attributes:
        each: for each operation, in program order, whether it matters; empty if there is a fault.
        fault: the reason why the grader could not find out which operations matter, else None.
        seconds: CPU seconds of the trials.
    """

    each: Sequence[bool] = ()
    fault: Fault | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Parts:
    """Cached bytes that several values share, such as a program. A value contains the SHA-256 in place of the bytes."""

    cache: Cache
    keys: Keys

    def put(self, data: bytes) -> str:
        """Store the bytes, and return their digest."""
        digest = hashlib.sha256(data).digest()
        self.cache.put(self.keys.part(digest), zlib.compress(data, 1))
        return digest.hex()

    def get(self, name: str) -> bytes | None:
        """Return the bytes with the digest ``name``; None if the cache has dropped them."""
        found = self.cache.get(self.keys.part(bytes.fromhex(name)))
        return None if found is None else zlib.decompress(found)


@dataclass(frozen=True)
class Kind(Generic[T]):
    """One kind of value in the cache, such as ``RUNS``.

    Attributes:
        pack: returns the value as bytes; None if the cache must not keep the value.
        unpack: returns the value; None if a part of the value is missing in the cache or unreadable.
        size: estimates the size of a value in memory, in bytes. For ``CHECKED`` the size is 1, which counts values.
        most: limit on the sum of the sizes of all values in memory.
    """

    name: str
    pack: Callable[[T, Parts], bytes | None]
    unpack: Callable[[bytes, Parts], T | None]
    size: Callable[[T], int]
    most: int


@dataclass(frozen=True)
class Store:
    """Cached values by key. Thread-safe.

    Args:
        keys: makes the keys.
        cache: keeps values from one run of the grader to the next; None to keep no values.
        reads: False to make each value anew, even if the cache has it. The new value is kept.
    """

    keys: Keys
    cache: Cache | None = None
    reads: bool = True
    _held: dict[str, LRUCache[bytes, Any]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def find(self, kind: Kind[T], key: bytes, source: Source | None = None) -> T | None:
        """Return the value of a key; None if the caller must make the value and keep it.

        Args:
            source: the learner's file or notebook that the value comes from.
        """
        return self._known(kind, key) if self.reads and self._keeps(source) else None

    def keep(self, kind: Kind[T], key: bytes, value: T, source: Source | None = None) -> T:
        """Keep a value that the caller made, and return it.

        Args:
            source: the learner's file or notebook that the value comes from. If the source gives two different values
                for one key, the store never keeps the source's values again.
        """
        if self._keeps(source):
            self._keep(kind, key, value, source)
        return value

    def distrust(self, source: Source) -> None:
        """Never keep values of this source (a file or notebook) again."""
        if self.cache is not None:
            self.cache.put(self.keys.source(source), b"")

    def afresh(self) -> Store:
        """Return a store that makes every value anew, and puts the new values into this store's cache."""
        return Store(self.keys, self.cache, False, self._held, self._lock)

    def _keeps(self, source: Source | None) -> bool:
        """Return False if there is no cache, or if values of this source must not be kept."""
        if self.cache is None:
            return False
        return source is None or (repeatable(source) and self.cache.get(self.keys.source(source)) is None)

    def _known(self, kind: Kind[T], key: bytes) -> T | None:
        assert self.cache is not None
        with self._lock:
            held = self._of(kind).get(key)
        if held is not None:
            return held
        kept = self.cache.get(key)
        value = None if kept is None else kind.unpack(zlib.decompress(kept), Parts(self.cache, self.keys))
        if value is not None:
            self._hold(kind, key, value)
        return value

    def _keep(self, kind: Kind[T], key: bytes, value: T, source: Source | None) -> None:
        assert self.cache is not None
        packed = kind.pack(value, Parts(self.cache, self.keys))
        if packed is None:
            return
        before = self._known(kind, key) if source is not None else None
        if source is not None and before is not None and before != value:
            self.distrust(source)
            return
        self.cache.put(key, zlib.compress(packed, 1))
        self._hold(kind, key, value)

    def _hold(self, kind: Kind[T], key: bytes, value: T) -> None:
        held = self._of(kind)
        with self._lock:
            if kind.size(value) <= held.maxsize:
                held[key] = value

    def _of(self, kind: Kind[T]) -> LRUCache[bytes, Any]:
        return self._held.setdefault(kind.name, LRUCache(kind.most, kind.size))


# -- replies of a source -----------------------------------------------------------------------


def _pack_replies(value: Replies, parts: Parts) -> bytes | None:
    if not value.lasting:
        return None
    each = [
        {"reply": reply.text, "program": None if reply.program is None else parts.put(reply.program)}
        for reply in value.each
    ]
    return json.dumps({"each": each, "cpu": value.cpu, "files": value.files}).encode()


def _unpack_replies(data: bytes, parts: Parts) -> Replies | None:
    value = json.loads(data)
    each = [_reply(one, parts) for one in value["each"]]
    whole = [reply for reply in each if reply is not None]
    return Replies(tuple(whole), (), value["cpu"], tuple(value["files"])) if len(whole) == len(each) else None


def _reply(packed: Mapping[str, Any], parts: Parts) -> Reply | None:
    reply, name = json.loads(packed["reply"]), packed["program"]
    if "fault" in reply:
        return Reply(Fault(**reply["fault"]))
    program = None if name is None else parts.get(name)
    return Reply(None, reply["body"], program) if name is None or program is not None else None


def _size_of_replies(value: Replies) -> int:
    return 1000 + sum(len(reply.text) + len(reply.program or b"") for reply in value.each)


# -- runs --------------------------------------------------------------------------------------


def _pack_run(value: RunResult, parts: Parts) -> bytes | None:
    header = value.header
    if "outputs" not in header or "broken" in header or "fault" in header:
        return None
    facts = {k: v for k, v in header.items() if k not in ("outputs", "cpu")}
    unique: dict[bytes, int] = {}
    order = [unique.setdefault(blob, len(unique)) for blob in value.shards]
    results = frames.pack({"outputs": header["outputs"], "order": order}, list(unique))
    return json.dumps([parts.put(frames.pack(facts)), parts.put(results), header.get("cpu", 0.0)]).encode()


def _unpack_run(data: bytes, parts: Parts) -> RunResult | None:
    *names, seconds = json.loads(data)
    facts, results = (parts.get(name) for name in names)
    if facts is None or results is None:
        return None
    header, _ = frames.read_frame(BytesIO(facts).read)
    outputs, unique = frames.read_frame(BytesIO(results).read)
    order = outputs.pop("order")
    return RunResult(header | outputs | {"cpu": seconds}, [unique[i] for i in order])


def _size_of_run(value: RunResult) -> int:
    return 4096 + len(value.header.get("operations") or "") + sum(map(len, set(value.shards)))


# -- which operations matter -------------------------------------------------------------------


def _pack_matters(value: Matters, parts: Parts) -> bytes | None:
    return None if value.fault is not None else json.dumps([value.seconds, *value.each]).encode()


def _unpack_matters(data: bytes, parts: Parts) -> Matters:
    seconds, *each = json.loads(data)
    return Matters(each, seconds=seconds)


# -- results of checks -------------------------------------------------------------------------


def _pack_checked(value: Checked, parts: Parts) -> bytes | None:
    """Return the results as JSON; None if a new run could give other results, or if JSON cannot hold them exactly."""
    if not value.lasting or any(r.status == "broken" for r in value.results):
        return None
    text = json.dumps(value.model_dump(mode="json"))
    again = _unpack_checked(text.encode(), parts)
    if again is None or again != value or json.dumps(again.model_dump(mode="json")) != text:
        return None
    return text.encode()


def _unpack_checked(data: bytes, parts: Parts) -> Checked | None:
    try:
        return Checked.model_validate_json(data)
    except ValidationError:
        return None


TRACES: Kind[Replies] = Kind("trace", _pack_replies, _unpack_replies, _size_of_replies, 8 << 20)
RUNS: Kind[RunResult] = Kind("run", _pack_run, _unpack_run, _size_of_run, 32 << 20)
POISON: Kind[Matters] = Kind("poison", _pack_matters, _unpack_matters, lambda value: 100, 1 << 20)
CHECKED: Kind[Checked] = Kind("checked", _pack_checked, _unpack_checked, lambda value: 1, 1000)
