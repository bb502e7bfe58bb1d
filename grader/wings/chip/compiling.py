"""Compile programs in a sandboxed worker process, for TPU chips that this machine need not have.

Results are cached by the content of the program and all settings of the compilation.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import json
import lzma
import math
import re
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from grader import wing
from grader.batch.replies import compiled_of
from grader.clock import Placement, Slice, placed
from grader.common.cache import MOST, Cache, cache_folder
from grader.common.observation import Fault
from grader.common.syntax import parse
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
from grader.wire.messages import CallAsk
from grader.wire.schedule import Schedule, from_json
from grader.wire.text import closest

OLDEST, UNTESTED = (0, 0, 42), (0, 0, 51)  # oldest supported and first untested version of libtpu, as in pyproject.toml
INSTALL = wing.install("[tpu]")
# LEAST_MEMORY: the compiler's limit of address space in MiB, unless the course's limit is larger. COMPILE_SECONDS: the
# CPU seconds that the compiler may use for one program.
LEAST_MEMORY, COMPILE_SECONDS = 6144, 300.0
FORM = 3  # version of the format of cached results; results in other formats are ignored


# Settings that keep libtpu from looking for a TPU.
SETTINGS = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # without this setting, libtpu locks a file, even on a machine without a TPU
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
}


def extra() -> Extra:
    """Return the access that the compiling process needs in the sandbox: the compiler's files and settings."""
    return Extra(
        rooms=("wings/chip/inside",),
        serves="grader.wings.chip.inside.serve",
        readable=tuple(needs.compiler()),
        settings=tuple(SETTINGS.items()),
    )


class NoCompiler(CourseError):
    """The TPU compiler is not available on this machine. The message is one line."""


def compiler_version() -> str:
    """Return libtpu's version, or '' if it is not installed."""
    try:
        return importlib.metadata.version("libtpu")
    except importlib.metadata.PackageNotFoundError:
        return ""


def compiler_problem(version: str | None = None) -> str:
    """Return the reason, in one line, why this machine cannot compile programs for TPUs; '' if it can."""
    version = compiler_version() if version is None else version
    if not version:
        return f"the TPU's compiler is not installed; {INSTALL}"
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    if not OLDEST <= numbers < UNTESTED:
        tested = f"libtpu>={'.'.join(map(str, OLDEST))},<{'.'.join(map(str, UNTESTED))}"
        return f"libtpu {version} was not tested with this grader; pip install '{tested}'"
    return ""


def can_compile_for(chip: str) -> list[str]:
    """Return the slices of a chip for which programs can be compiled, smallest first: ``v5e:1x1``, ``v5e:2x2`` ..."""
    found = sorted(slices(CHIPS[chip]), key=lambda s: (len(s), s[0] * s[1] * (s[2] if len(s) > 2 else 1), s))
    return [f"{chip}:{'x'.join(map(str, s))}" for s in found]


def slice_of(text: str) -> Slice:
    """Return a slice that programs can be compiled for.

    ``text`` has the form ``v5e:2x4``. Google's and libtpu's names of chips are also allowed. Raises CourseError if
    there is no such slice.
    """
    try:
        on = Slice.of(slice_name(text))
        core_of(on.chip)
        on = on.by_device()
    except ValueError as error:
        raise CourseError(f"{error}{_near(text)}") from None
    return on


def _near(text: str) -> str:
    """Return a text that suggests the chip's slice with the most similar name; '' if there is none."""
    try:
        name = slice_name(text)
    except ValueError:
        return ""
    chip = name.partition(":")[0]
    near = closest(name, can_compile_for(chip)[:40], 0.4) if chip in CORES and ":" in name else None
    return f"; did you mean {near}? shardlings doctor lists the slices" if near and near != name else ""


def topology_of(place: Placement) -> dict[str, Any]:
    """Return the description of a slice for libtpu: the slice's name, options, and the coordinates of its devices.

    The devices are in mesh order. A device has the coordinates of its chip. If chips have several devices, a fourth
    number is the device's index within its chip.
    """
    shape, core = place.slice.shape, core_of(place.slice.chip)
    order = sorted(range(len(shape)), key=lambda i: (shape[i] == 1, i))  # libtpu puts axes of size 1 last
    options = dict(core.options)
    if math.prod(shape) == 1:
        options["chips_per_host_bounds"] = (1, 1, 1)
    chips = [[*(at[i] for i in order), *[0] * (3 - len(shape)), *at[len(shape) :]] for at in place.chips]
    return {"name": f"{core.libtpu}:{'x'.join(str(shape[i]) for i in order)}", "options": options, "chips": chips}


def key_of(about: str, program: bytes) -> bytes:
    """Return a digest of all that a compilation depends on. ``about``: a JSON text of all inputs except the program."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in (about.encode(), program))).digest()


@cache
def reading_digest() -> str:
    """Return the SHA-256 of the grader's code on which cached results depend. Comments do not count."""
    root = Path(__file__).parents[2]
    own = Path(__file__).parent / "inside"
    files = [*sorted((root / "runner").glob("*.py")), *sorted(own.glob("*.py")), root / "wire" / "schedule.py"]
    code = "\n".join(code_of(f.read_text(encoding="utf-8")) for f in files)
    return hashlib.sha256(code.encode()).hexdigest()


def code_of(text: str) -> str:
    """Return the syntax tree of a module without docstrings, comments and layout, as text."""
    tree = parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = node.body[ast.get_docstring(node) is not None :]
    return ast.dump(tree)


class TpuCompiler:
    """Compiles programs for one slice, in a worker that starts on the first use.

    Args:
        course: sets the limits of time and memory.
        tier: the worker's kind of sandbox.
        on: the slice.
        cache: the cache of results; by default the cache in the user's folder, which the compiler opens and closes.
        worker: the worker process, which may serve compilers for several slices; by default a new worker.
        remember: whether to use the cache in the user's folder, if ``cache`` is not given.
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
        self.made = self.found = 0  # numbers of programs that were compiled, and that were found in the cache

    @property
    def versions(self) -> dict[str, str]:
        return {"libtpu": compiler_version()}

    def close(self) -> None:
        self.worker.kill()
        if self._own:
            self._own.close()

    def fits(self, ask: Ask) -> str:
        """Return the reason why the slice's chips cannot form the mesh of a request; '' if they can."""
        try:
            placed(self.on, ask.mesh)
        except ValueError as error:
            return str(error)
        return ""

    def compiled(self, request: CallAsk, program: bytes, ask: Ask) -> dict[str, Any] | None:
        """Return the worker's answer for a program.

        Return None if the slice's chips cannot form the request's mesh, or if the request has hidden inputs.

        Args:
            request: ``ask`` as JSON data, without the values of inputs.
            program: the traced program as MLIR bytecode.
            ask: the request for one call on one mesh.
        """
        if ask.hidden_inputs or self.fits(ask):
            return None
        on = topology_of(placed(self.on, ask.mesh))
        asked = {k: request[k] for k in ("mesh", "args", "cotangents", "files")}
        about = json.dumps([FORM, list(ask.mesh.items()), asked, on, _versions(), reading_digest()])
        key = key_of(about, program)
        with self._lock:
            answer = self._remembered(key)
            if answer is not None:
                self.found += 1
                return answer
            answer = self._compile(asked, program, on)
            self.made += 1
            if self.cache and lasts(answer):
                self.cache.put(key, lzma.compress(json.dumps(answer).encode(), preset=1))
                self.cache.write()  # write at once, because the answer took seconds to compile
            return answer

    def _remembered(self, key: bytes) -> dict[str, Any] | None:
        kept = self.cache.get(key) if self.cache else None
        answer = None if kept is None else json.loads(lzma.decompress(kept))
        return answer if _readable(answer) else None

    def _compile(self, asked: dict[str, Any], program: bytes, on: dict[str, Any]) -> dict[str, Any]:
        """Return the worker's answer for a program. If the worker dies, try again once, except after a timeout."""
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
    """Return the compiler's answer for one program. Raises WorkerDied."""
    worker.await_ready()
    seconds = worker.limits.run_seconds
    worker.send(b"!" + frames.pack({"ask": ask, "on": on, "seconds": seconds}, [program]))
    answer, _ = worker.receive(time.monotonic() + backstop(seconds))
    return {key: value for key, value in answer.items() if key != "from"}


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("jax", "jaxlib")} | {"libtpu": compiler_version()}


def lasts(answer: dict[str, Any]) -> bool:
    """Return whether an answer can be cached: it is valid, and reports neither an error in the grader nor a timeout."""
    return "broken" not in answer and answer.get("fault", {}).get("kind") != "timeout" and _readable(answer)


def _readable(answer: Any) -> bool:
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


# -- compilations in the course's files -------------------------------------------------------


Compilations = Mapping[str, Schedule | Fault]
"""The schedule, or the error, of each compilation, by name (see ``name_of``)."""


def shipped_in(course: Course) -> Compilations:
    """Return the compilations of the course's own solutions, which ``docs/make_chip_tables.py`` writes.

    Return {} if the course's files have no compilations, or if the file cannot be read.
    """
    try:
        data = json.loads(lzma.decompress((course.root / SHIPPED).read_bytes()))
        return {name: compiled_of(answer) for name, answer in data.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, lzma.LZMAError, BadFrame):
        return {}


def name_of(ask: Ask, on: Slice | str) -> str:
    """Return the name of a compilation: ``f1_ag_matmul.ag_matmul x=1,y=8 B=8192,D=16384 on v5e:2x4``."""
    mesh, sizes = (",".join(f"{k}={v}" for k, v in of.items()) for of in (ask.mesh, {**ask.dims, **ask.static}))
    return f"{ask.exercise}.{ask.task} {mesh} {sizes} on {on}"
