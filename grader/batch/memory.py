"""What is remembered over runs, by content: what a source was traced to, what a program came to, what was judged.

    (source, everything asked of it)                    -> its replies, notes and CPU seconds
    (program, ask, inputs)                              -> what the runner said
    (program, ask, inputs, a kind of operation)         -> which of them matter
    (what an exercise's asks came to, the exercise)     -> its part of a report

Each key is SHA-256 over all that its value depends on: beside what is named here the grader's own code, the versions of all
that takes part, the machine, the isolation and the limits. So whatever is another leads to another key, and nothing is
ever looked up by a name or a time. Only this process, which runs nobody's code, reads or writes it; a learner's process can
fill the entry of its own source with its own replies, as it fills its own report, and no other.

Kept is what a fresh run would give, or nothing: no reply that ended by time, memory, a signal or the machine's files, no fault of
ours, nothing of a source that did not load or that could do something else next time (``intake.chance``). Where a fresh run
gave something else all the same, the source is never remembered again.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from cachetools import LRUCache
from pydantic import ValidationError

from grader.batch.findings import Reply
from grader.common.cache import Cache
from grader.common.observation import Fault
from grader.common.result import ExerciseReport
from grader.exercise import Call
from grader.intake.chance import repeatable
from grader.intake.submission import Source
from grader.judging.plan import Ask
from grader.judging.seen import Finding
from grader.sandbox import needs
from grader.wire import frames

FORM = 3  # of what is kept
MOST = 1 << 30  # bytes on disk
MOST_AT_HAND = 32 << 20  # bytes of runners' replies, taken apart
MOST_ASKED = 500  # different lists of asks
MOST_TOLD = 4 << 20  # characters of what sources were lately traced to
MOST_VERDICTS = 1000
VARIABLE = "SHARDLINGS_CACHE"
OFF = "off"
LASTING = ("missing", "raised", "syntax", "untraceable")  # faults that are the same every time
Ran = tuple[dict[str, Any], list[bytes]]


class Digest(bytes):
    """SHA-256 of a program, in its place."""


class Forgotten(Exception):
    """Part of what was remembered of a source is there no more."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a source, as keys have it.

    Attributes:
        key: over all requests to the tracer, in order.
        inputs: of each ask, over its request and its inputs.
    """

    key: bytes
    inputs: dict[Ask, bytes]


@dataclass(frozen=True)
class Recalled:
    """What a source was traced to before, with a ``Digest`` in the place of each program.

    ``came_to`` says by ask what it came to, as far as keys go.
    """

    replies: list[Reply]
    notes: list[str]
    cpu: float
    came_to: dict[Ask, bytes]


class Memory:
    """Any thread may use it.

    Args:
        cache: where it is kept.
        about: all that everything depends on, beside what the methods are given; JSON.
    """

    def __init__(self, cache: Cache, about: Any) -> None:
        self.cache = cache
        self._about = json.dumps([FORM, about, surroundings()]).encode()
        self._asked: dict[Any, Asked] = {}
        self._told: LRUCache[tuple[int, bytes], tuple[Asked, Recalled, int]] = LRUCache(MOST_TOLD, lambda kept: kept[2])
        self._at_hand: OrderedDict[bytes, Ran] = OrderedDict()
        self._held = 0
        self._verdicts: OrderedDict[bytes, ExerciseReport] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        self.cache.close()

    def key(self, *parts: bytes) -> bytes:
        whole = hashlib.sha256(self._about)
        for part in parts:
            whole.update(hashlib.sha256(part).digest())
        return whole.digest()

    # what a source was traced to

    def asked(self, source: Source, asks: Sequence[Ask], traced: Sequence[Ask]) -> Asked:
        """The keys of what is asked; ``traced``: those of the asks that go to the tracer."""
        files, ends = [c.name for c in source.chunks], dict(source.ends)
        known = (tuple(asks), tuple(files), source.ends)
        found = self._asked.get(known)
        if found is None:
            plain = {a: _json(a.for_tracer(files)) for a in asks}
            requests = {a: _json(a.for_tracer(files) | {"after": ends.get(a.exercise)}) for a in traced}
            stages = [[requests[a] for a in traced if a.secret == late] for late in (False, True)]
            found = Asked(
                hashlib.sha256(json.dumps(stages).encode()).digest(),
                {a: hashlib.sha256(f"{plain[a]}\0{a.digest}".encode()).digest() for a in asks},
            )
            if len(self._asked) > MOST_ASKED:
                self._asked.clear()
            self._asked[known] = found
        return found

    def _source_key(self, source: Source, asked: Asked) -> bytes:
        return self.key(b"source", _text(source), asked.key)

    def recall(self, source: Source, asks: Sequence[Ask], traced: Sequence[Ask]) -> Recalled | None:
        """What it was traced to when it was asked the very same."""
        asked = self.asked(source, asks, traced)
        kept = self.cache.get(self._source_key(source, asked))
        if kept is None or self._distrusted(source):
            return None
        cpu, text = _told(kept)

        # Many are traced to the same. Held with it, no other Asked gets this one's id.
        with self._lock:
            known = self._told.get((id(asked), text))
        if known is None:
            told = json.loads(text)
            replies: list[Reply] = [
                Fault(**one["fault"]) if "fault" in one else (one["body"], [Digest.fromhex(d) for d in one["programs"]])
                for one in told["replies"]
            ]
            found = Recalled(replies, told["notes"], 0.0, _came_to(asked, asks, traced, told["replies"]))
            known = asked, found, len(text) + 1000
            with self._lock, suppress(ValueError):  # larger than all that is held
                self._told[id(asked), text] = known
        return replace(known[1], cpu=cpu)

    def keep(
        self, source: Source, asks: Sequence[Ask], traced: Sequence[Ask], replies: Sequence[Reply], notes: list[str],
        cpu: float,
    ) -> dict[Ask, bytes] | None:  # fmt: skip
        """Remember what a source was traced to, if it will be the same next time; by ask what it came to, else None."""
        asked = self.asked(source, asks, traced)
        key = self._source_key(source, asked)
        if notes or not all(map(lasting, replies)) or not repeatable(source):
            return None
        programs: dict[bytes, bytes] = {}
        wire: list[dict[str, Any]] = []
        for ask, reply in zip(traced, replies, strict=True):
            if isinstance(reply, Fault):
                wire.append({"fault": asdict(reply)})
            else:
                own = {digest_of(code): code for code in reply[1][:1] if isinstance(ask.of, Call)}
                wire.append({"body": reply[0], "programs": [d.hex() for d in own]})
                programs |= own
        text = _json({"replies": wire, "notes": notes}).encode()
        before = self.cache.get(key)
        if before is not None and _told(before)[1] != text:
            self.distrust(source)
        if self._distrusted(source):
            return None
        self.cache.put(key, zlib.compress(f"{cpu}\n".encode() + text, 1))
        for digest, code in programs.items():
            self.cache.put(self.key(b"program", digest), zlib.compress(code, 1))
        return _came_to(asked, asks, traced, wire)

    def distrust(self, source: Source) -> None:
        """It was found to do something else each time: it is never remembered again."""
        self.cache.put(self.key(b"distrusted", _text(source)), b"")

    def _distrusted(self, source: Source) -> bool:
        return self.cache.get(self.key(b"distrusted", _text(source))) is not None

    def program(self, digest: bytes) -> bytes:
        """Raises Forgotten."""
        kept = self.cache.get(self.key(b"program", digest))
        if kept is None:
            raise Forgotten
        return zlib.decompress(kept)

    # what a program came to

    def ran(self, ask: bytes, digest: bytes) -> Ran | None:
        """What the runner said of a program, asked this; ``ask``: of ``Asked.inputs``."""
        key = self.key(b"run", ask, digest)
        with self._lock:
            if key in self._at_hand:
                self._at_hand.move_to_end(key)
                return self._at_hand[key]
        kept = self.cache.get(key)
        parts = [self.cache.get(part) for part in (kept[:32], kept[32:64])] if kept is not None else [None]
        if any(part is None for part in parts):
            return None
        header, blobs = (_frame(zlib.decompress(part)) for part in parts if part is not None)
        return self._keep_at_hand(key, (header[0] | blobs[0], blobs[1]))

    def keep_run(self, ask: bytes, digest: bytes, header: dict[str, Any], blobs: list[bytes]) -> None:
        """Remember what the runner said; faults are found anew."""
        if "outputs" not in header or "broken" in header or "fault" in header:
            return
        about = {k: v for k, v in header.items() if k not in ("outputs", "cpu", "blobs")}
        facts = zlib.compress(frames.pack(about), 1)
        unique: dict[bytes, int] = {}
        order = [unique.setdefault(blob, len(unique)) for blob in blobs]
        results = zlib.compress(frames.pack({"outputs": header["outputs"], "order": order}, list(unique)), 1)
        keys = [self.key(b"part", part) for part in (facts, results)]
        for key, part in zip(keys, (facts, results), strict=True):
            self.cache.put(key, part)
        key = self.key(b"run", ask, digest)
        self.cache.put(key, b"".join(keys))
        self._keep_at_hand(key, ({k: v for k, v in header.items() if k != "cpu"}, blobs))

    def poison(self, ask: bytes, digest: bytes) -> KeptPoison:
        """Where it is kept which operations of a program matter, asked this."""
        return KeptPoison(self, ask, digest)

    def _keep_at_hand(self, key: bytes, ran: Ran) -> Ran:
        if "order" in ran[0]:
            ran = {k: v for k, v in ran[0].items() if k != "order"}, [ran[1][i] for i in ran[0]["order"]]
        with self._lock:
            if key not in self._at_hand:
                self._at_hand[key] = ran
                self._held += _size(ran)
            while self._held > MOST_AT_HAND:
                self._held -= _size(self._at_hand.popitem(last=False)[1])
        return ran

    # what was judged

    def verdict(self, key: bytes) -> ExerciseReport | None:
        """An exercise's part of a report, but for what depends on whose it is."""
        with self._lock:
            if key in self._verdicts:
                self._verdicts.move_to_end(key)
                return self._verdicts[key]
        kept = self.cache.get(key)
        try:
            found = ExerciseReport.model_validate_json(zlib.decompress(kept)) if kept is not None else None
        except (ValidationError, zlib.error):
            return None
        if found is not None:
            self._remember(key, found)
        return found

    def keep_verdict(self, key: bytes, report: ExerciseReport) -> None:
        """Remember it; what is broken is decided anew, and so is what would not come back as it is."""
        if any(r.status == "broken" for r in report.results):
            return
        text = _json(report.model_dump(mode="json"))
        try:
            again = ExerciseReport.model_validate_json(text)
        except ValidationError:  # half a surrogate pair
            return
        if again == report and _json(again.model_dump(mode="json")) == text:
            self.cache.put(key, zlib.compress(text.encode(), 1))
            self._remember(key, again)

    def _remember(self, key: bytes, report: ExerciseReport) -> None:
        with self._lock:
            self._verdicts[key] = report
            while len(self._verdicts) > MOST_VERDICTS:
                self._verdicts.popitem(last=False)


@dataclass(frozen=True)
class KeptPoison:
    """Which operations of one program matter, by kind."""

    memory: Memory
    ask: bytes
    digest: bytes

    def _key(self, what: str) -> bytes:
        return self.memory.key(b"poison", what.encode(), self.ask, self.digest)

    def get(self, what: str) -> list[bool] | None:
        kept = self.memory.cache.get(self._key(what))
        return None if kept is None else [byte == 1 for byte in kept]

    def put(self, what: str, found: list[bool]) -> None:
        self.memory.cache.put(self._key(what), bytes(found))


@contextmanager
def remembered(wanted: bool = True) -> Iterator[Cache | None]:
    """The user's cache; None where it is not ``wanted``, turned off, or nobody has a home."""
    place = folder() if wanted else None
    if place is None:
        yield None
        return
    with Cache(place, MOST) as cache:
        yield cache


def folder() -> Path | None:
    """Where it is kept: SHARDLINGS_CACHE, else the user's own cache; None where it says ``off``, or nobody has a home."""
    named = os.environ.get(VARIABLE, "")
    if named:
        return None if named == OFF else Path(named)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shardlings"
    except RuntimeError:
        return None


@cache
def surroundings() -> list[str]:
    """The machine, and what learners may import on it."""
    found = [*platform.uname(), platform.python_version(), sys.prefix]
    for name, path in needs.packages().items():
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} {path}")
    return found


def lasting(reply: Reply | Finding) -> bool:
    """Whether it is no fault, or one that is the same every time."""
    if not isinstance(reply, Fault):
        return True
    of_machine = getattr(builtins, reply.type, None)
    chance = isinstance(of_machine, type) and issubclass(of_machine, OSError | MemoryError | RecursionError)
    return reply.kind in LASTING and not chance and not reply.type.endswith("RuntimeError")


def _came_to(
    asked: Asked, asks: Sequence[Ask], traced: Sequence[Ask], told: Sequence[dict[str, Any]]
) -> dict[Ask, bytes]:
    """By ask what it came to, as far as keys go: a secret ask of a call to the program of the open one."""
    repeated = {(a.exercise, a.program): one for a, one in zip(traced, told, strict=True) if isinstance(a.of, Call)}
    of = dict(zip(traced, told, strict=True))
    return {
        ask: asked.inputs[ask]
        + _json(repeated[ask.exercise, ask.program] if isinstance(ask.of, Call) else of[ask]).encode()
        for ask in asks
    }


def _told(kept: bytes) -> tuple[float, bytes]:
    """CPU seconds, and the text of replies and notes."""
    cpu, _, text = zlib.decompress(kept).partition(b"\n")
    return float(cpu), text


def _frame(data: bytes) -> Ran:
    return frames.read_frame(BytesIO(data).read)


def _json(value: Any) -> str:
    """Its keys in their order: a report keeps it."""
    return json.dumps(value)


def _text(source: Source) -> bytes:
    return json.dumps([source.name, [[c.name, c.text] for c in source.chunks]]).encode()


def digest_of(program: bytes) -> bytes:
    """Its SHA-256; of what is one already, itself."""
    return program if isinstance(program, Digest) else hashlib.sha256(program).digest()


def _size(ran: Ran) -> int:
    """About."""
    return 4096 + len(ran[0].get("operations") or "") + sum(map(len, set(ran[1])))
