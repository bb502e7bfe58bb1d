"""Programs compiled for chips that are not here, in a confined worker; what they came to is remembered by content."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import lzma
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from grader.batch.findings import compiled_of
from grader.clock import Placement, Slice, placed
from grader.common.cache import MOST, Cache, cache_folder
from grader.common.observation import Fault
from grader.course.compiled import SHIPPED
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.hardware import slices
from grader.hardware.chips import CHIPS
from grader.hardware.cores import CORES, core_of, slice_name
from grader.judging.plan import Ask
from grader.sandbox import needs
from grader.sandbox.allowance import backstop
from grader.sandbox.tiers import Extra
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire import frames
from grader.wire.frames import BadFrame
from grader.wire.schedule import Schedule, from_json
from grader.wire.text import closest

OLDEST, UNTESTED = (0, 0, 42), (0, 0, 51)  # of libtpu; as in pyproject.toml
INSTALL = "pip install 'shardlings[tpu]'"
LEAST_MEMORY, COMPILE_SECONDS = 6144, 300.0  # MiB of addresses; CPU seconds for one program
FORM = 3  # of what is remembered: another one is not looked at


# What libtpu asks of its surroundings where there is no TPU: nothing, once it is told that there is none to look for.
SETTINGS = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # it would lock a file: who holds a TPU does not matter, for none is used
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
}


def extra() -> Extra:
    """What the process that compiles gets beyond one that runs programs: the compiler's files, and settings."""
    return Extra(
        rooms=("wings/chip/inside",),
        serves="grader.wings.chip.inside.serve",
        readable=tuple(needs.compiler()),
        settings=tuple(SETTINGS.items()),
    )


class NoCompiler(CourseError):
    """The TPU's compiler is not to be had here; the message is one line."""


def compiler_version() -> str:
    """Of libtpu; '' where it is not installed."""
    try:
        return importlib.metadata.version("libtpu")
    except importlib.metadata.PackageNotFoundError:
        return ""


def compiler_problem(version: str | None = None) -> str:
    """Why nothing can be compiled for a TPU here, in one line; '' where it can."""
    version = compiler_version() if version is None else version
    if not version:
        return f"the TPU's compiler is not installed; {INSTALL}"
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    if not OLDEST <= numbers < UNTESTED:
        tested = f"libtpu>={'.'.join(map(str, OLDEST))},<{'.'.join(map(str, UNTESTED))}"
        return f"libtpu {version} was not tested with this grader; pip install '{tested}'"
    return ""


def can_compile_for(chip: str) -> list[str]:
    """The slices of a chip, smallest first, as they are written."""
    found = sorted(slices(CHIPS[chip]), key=lambda s: (len(s), s[0] * s[1] * (s[2] if len(s) > 2 else 1), s))
    return [f"{chip}:{'x'.join(map(str, s))}" for s in found]


def slice_of(text: str) -> Slice:
    """A slice that programs can be compiled for, by the names of the table, of TPUs or of libtpu.

    Raises CourseError: there is none, in one line, with one that is near.
    """
    try:
        on = Slice.of(slice_name(text))
        core_of(on.chip)
        on = on.by_device()
    except ValueError as error:
        raise CourseError(f"{error}{_near(text)}") from None
    return on


def _near(text: str) -> str:
    """A slice of the same chip whose name is near, where there is such a chip."""
    try:
        name = slice_name(text)
    except ValueError:
        return ""
    chip = name.partition(":")[0]
    near = closest(name, can_compile_for(chip)[:40], 0.4) if chip in CORES and ":" in name else None
    return f"; did you mean {near}? doctor lists them" if near and near != name else ""


def topology_of(place: Placement) -> dict[str, Any]:
    """A slice as libtpu takes it: its name, what it must be told, and the chip of each device in mesh order.

    Of a chip that is several devices: which of them, as a fourth number.
    """
    shape, core = place.slice.shape, core_of(place.slice.chip)
    order = sorted(range(len(shape)), key=lambda i: (shape[i] == 1, i))  # libtpu has axes of one chip last
    options = dict(core.options)
    if math.prod(shape) == 1:
        options["chips_per_host_bounds"] = (1, 1, 1)
    chips = [[*(at[i] for i in order), *[0] * (3 - len(shape)), *at[len(shape) :]] for at in place.chips]
    return {"name": f"{core.libtpu}:{'x'.join(str(shape[i]) for i in order)}", "options": options, "chips": chips}


@dataclass(frozen=True)
class Key:
    """All that a compilation depends on."""

    about: str
    program: bytes

    @property
    def digest(self) -> bytes:
        parts = self.about.encode(), self.program
        return hashlib.sha256(b"".join(hashlib.sha256(p).digest() for p in parts)).digest()


@cache
def reading_digest() -> str:
    """SHA-256 over the code that brings programs into their form and reads what came of them."""
    root = Path(__file__).parents[2]
    own = Path(__file__).parent / "inside"
    files = [*sorted((root / "runner").glob("*.py")), *sorted(own.glob("*.py")), root / "wire" / "schedule.py"]
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


class TpuCompiler:
    """A worker that compiles programs for one slice; started when it is first needed.

    Args:
        course: whose limits hold. tier: isolation of the worker. on: for which slice.
        cache: where it is remembered; the user's own unless given, which ``close`` closes.
        worker: one that compiles for other slices, too; its own unless given.
        remember: whether anything is, where no ``cache`` is given.
    """

    def __init__(
        self, course: Course, tier: str, on: Slice, cache: Cache | None = None, worker: Worker | None = None,
        *, remember: bool = True,
    ) -> None:  # fmt: skip
        self.on = on
        limits = course.config.limits
        more = {"memory_mib": max(limits.memory_mib, LEAST_MEMORY), "run_seconds": COMPILE_SECONDS}
        self.worker = worker or Worker("run", tier, 1, limits.model_copy(update=more), extra())
        place = cache_folder() if remember and not cache else None
        self._own = Cache(place, MOST) if place else None
        self.cache = cache or self._own
        self._lock = Lock()
        self.made = self.found = 0  # compiled now, and remembered

    @property
    def versions(self) -> dict[str, str]:
        return {"libtpu": compiler_version()}

    def close(self) -> None:
        self.worker.kill()
        if self._own:
            self._own.close()

    def fits(self, ask: Ask) -> str:
        """Why the mesh of an ask does not lie on the slice; '' where it does."""
        try:
            placed(self.on, ask.mesh)
        except ValueError as error:
            return str(error)
        return ""

    def compiled(self, request: Mapping[str, Any], program: bytes, ask: Ask) -> dict[str, Any] | None:
        """What the compiler makes of a program, as the worker answers.

        None where its mesh does not lie on the slice, and with secret inputs, with which it was compiled before.
        """
        if ask.secret or self.fits(ask):
            return None
        on = topology_of(placed(self.on, ask.mesh))
        asked = {k: request[k] for k in ("mesh", "args", "cotangents", "files")}
        about = json.dumps([FORM, list(ask.mesh.items()), asked, on, _versions(), reading_digest()])
        key = Key(about, program).digest
        with self._lock:
            answer = self._remembered(key)
            if answer is not None:
                self.found += 1
                return answer
            answer = self._compile(asked, program, on)
            self.made += 1
            if self.cache and lasts(answer):
                self.cache.put(key, lzma.compress(json.dumps(answer).encode(), preset=1))
                self.cache.write()  # it took seconds
            return answer

    def _remembered(self, key: bytes) -> dict[str, Any] | None:
        kept = self.cache.get(key) if self.cache else None
        answer = None if kept is None else json.loads(lzma.decompress(kept))
        return answer if _readable(answer) else None

    def _compile(self, asked: dict[str, Any], program: bytes, on: dict[str, Any]) -> dict[str, Any]:
        """One that ends the worker gets one more chance, in a fresh one."""
        if problem := compiler_problem():
            raise NoCompiler(problem)
        reason = words = ""
        for _ in range(2):
            try:
                return compile_program(self.worker, asked, program, on)
            except WorkerDied as died:
                reason, words = died.reason, died.stderr
                if reason == "timeout":
                    message = f"the TPU compiler did not finish within {COMPILE_SECONDS:g} s"
                    return {"fault": {"kind": "timeout", "message": message, "line": None}}
        return {"broken": f"the TPU compiler's process {reason}, twice: {words[-200:].strip()}"}


def compile_program(worker: Worker, ask: dict[str, Any], program: bytes, on: dict[str, Any]) -> dict[str, Any]:
    """What the TPU's compiler makes of one program, in a worker with ``extra``. Raises WorkerDied."""
    worker.await_ready()
    seconds = worker.limits.run_seconds
    worker.send(b"!" + frames.pack({"ask": ask, "on": on, "seconds": seconds}, [program]))
    answer, _ = worker.receive(time.monotonic() + backstop(seconds))
    return {key: value for key, value in answer.items() if key != "from"}


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("jax", "jaxlib")} | {"libtpu": compiler_version()}


def lasts(answer: dict[str, Any]) -> bool:
    """Whether it is what the compiler would answer again: no fault of ours, and none that depends on the time it took."""
    return "broken" not in answer and answer.get("fault", {}).get("kind") != "timeout" and _readable(answer)


def _readable(answer: Any) -> bool:
    """Whether it is an answer of a worker at all."""
    if not isinstance(answer, dict) or len(answer) != 1:
        return False
    if "schedule" in answer:
        try:
            from_json(answer["schedule"])
        except BadFrame:
            return False
        return True
    if "too_large" in answer:
        sizes = answer["too_large"]
        return isinstance(sizes, list) and len(sizes) == 2 and all(type(n) is int for n in sizes)
    return isinstance(answer.get("fault"), dict) or "broken" in answer


# -- the course's own, which are shipped ------------------------------------------------------


@dataclass
class Shipped:
    """What the course's own references were compiled to, as ``docs/make_chip_tables.py`` wrote it down.

    Attributes:
        made: by ``name_of``.
    """

    made: dict[str, Schedule | Fault] = field(default_factory=dict)

    @classmethod
    def of(cls, course: Course) -> Shipped:
        """Of this course; empty where it ships none, or what cannot be read."""
        path = course.root / SHIPPED
        try:
            data = json.loads(lzma.decompress(path.read_bytes()))
            return cls({name: compiled_of(answer) for name, answer in data.items()})
        except (OSError, ValueError, LookupError, TypeError, AttributeError, lzma.LZMAError, BadFrame):
            return cls()


def name_of(ask: Ask, on: Slice | str) -> str:
    """``f1_ag_matmul.ag_matmul x=1,y=8 B=8192,D=16384 on v5e:2x4``; keywords stand with the dimensions."""
    mesh, sizes = (",".join(f"{k}={v}" for k, v in of.items()) for of in (ask.mesh, {**ask.dims, **ask.static}))
    return f"{ask.exercise}.{ask.task} {mesh} {sizes} on {on}"
