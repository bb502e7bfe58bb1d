"""LEARNER PYTHON RUNS HERE: execute a source (a learner's file or notebook), and keep its definitions."""

from __future__ import annotations
import __future__

import ast
import contextlib
import linecache
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import jax

from grader.learner.absent import NotInstalled, StandIn, guarded_lines, stood_in
from grader.learner.faults import fault_of
from grader.learner.surroundings import mesh_contexts_left, mesh_is_set, time_limit
from grader.wire.messages import LoadFault, SourceCode, TracerAsk

MASK_FUTURE = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


class LoadedSource:
    """A source that was executed in chunks: a file is one chunk, and each cell of a notebook is a chunk.

    Attributes:
        space: the namespace in which the chunks ran.
        states: for every chunk, the namespace after the chunk ran, and whether a mesh was then set (``jax.set_mesh``).
            The namespace has copies of lists, dicts and sets, because later chunks may change them.
        bound: for every chunk, the objects that the names were bound to after the chunk ran.
        faults: errors that stopped chunks, and imports of missing modules (kind ``absent``).
        files: the code of each chunk, by the chunk's name.
    """

    def __init__(self) -> None:
        module = types.ModuleType("submission")
        sys.modules["submission"] = module  # ``dataclasses`` looks up a class's module in sys.modules
        self.space: dict[str, Any] = module.__dict__
        self.states: dict[str, tuple[dict[str, Any], bool]] = {}
        self.bound: dict[str, dict[str, Any]] = {}
        self.faults: list[LoadFault] = []
        self.files: dict[str, str] = {}

    @contextlib.contextmanager
    def imports(self) -> Iterator[None]:
        """Replace missing modules by stand-ins during the block. Add one fault for each such module."""

        def note(module: str, line: int, chunk: str) -> None:
            known = [f for f in self.faults if f["kind"] == "absent" and f["type"] == module]
            if not known:
                about: LoadFault = {
                    "kind": "absent", "message": module, "type": module, "line": line, "file": chunk, "chunk": chunk,
                }  # fmt: skip
                self.faults.append(about)

        def guarded(chunk: str, line: int) -> bool:
            return chunk not in self.files or line in guarded_lines(self.files[chunk])

        with stood_in(self.space, note, guarded):
            yield

    def state_for(self, ask: TracerAsk) -> tuple[dict[str, Any], bool] | None:
        """Return the namespace in which to answer ``ask`` (a grader's request), and whether a mesh was set in it.

        ``ask["after"]`` names the last notebook cell that calls ``check`` for the exercise. Return the namespace after
        this cell. If a later cell defines the task again, return the namespace after the last definition. Without a
        cell that calls ``check``, return the namespace after the last chunk. Return None for a source without chunks.
        """
        names, after = list(self.states), ask.get("after")
        if after not in self.states:
            return self.states[names[-1]] if names else None
        last = self.bound[names[-1]].get(ask["task"])
        if last is None:
            return self.states[after]
        return self.states[next(n for n in names[names.index(after) :] if self.bound[n].get(ask["task"]) is last)]


def load(source: SourceCode, seconds: float, ran: Callable[[int], None] = lambda _: None) -> LoadedSource:
    """Execute the chunks of a source in one namespace.

    As in a notebook, definitions before an error remain, and later chunks still run. Call this function only inside the
    context manager ``tolerant_jax``.

    Args:
        seconds: limit of CPU time for each chunk.
        ran: called with the number of each finished chunk but the last.
    """
    loaded = LoadedSource()
    if any("XLA_FLAGS" in text for _, text in source["chunks"]):
        jax.devices()  # start the backend before the source can change the number of devices
    with mesh_contexts_left(), loaded.imports():
        for number, (name, text) in enumerate(source["chunks"]):
            loaded.files[name] = text
            linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
            try:
                with time_limit(seconds):
                    _execute(text, name, loaded, seconds)
            except BaseException as error:  # BaseException, to catch SystemExit and KeyboardInterrupt as well
                loaded.faults.append({**fault_of(error, loaded.files, seconds), "chunk": name})
            loaded.bound[name] = dict(loaded.space)
            last = number == len(source["chunks"]) - 1
            loaded.states[name] = loaded.bound[name] if last else as_they_are(loaded.space), mesh_is_set()
            if not last:
                ran(number)
    return loaded


def as_they_are(space: dict[str, Any], most: int = 100_000) -> dict[str, Any]:
    """Return a copy of a namespace with copied lists, dicts and sets, so that later cells cannot change the copy.

    Args:
        most: the maximum number of items to copy. Lists, dicts and sets beyond this limit, or nested more than eight
            levels deep, are shared instead.
    """
    copies: dict[int, Any] = {}
    left = most

    def copied(value: Any, depth: int) -> Any:
        nonlocal left
        if type(value) not in (dict, list, set):
            return value
        if id(value) not in copies:
            left -= len(value)
            if left < 0 or depth > 8 or not all(type(key) in (str, int) for key in value if type(value) is dict):
                # Copy no dict with keys that are not str or int, because comparing the keys may run learner code.
                return value
            copies[id(value)] = new = value.copy()
            for key in value if isinstance(new, dict) else range(len(new)) if isinstance(new, list) else ():
                new[key] = copied(value[key], depth + 1)
        return copies[id(value)]

    return {name: copied(value, 1) if name != "__builtins__" else value for name, value in space.items()}


def _execute(text: str, name: str, loaded: LoadedSource, seconds: float) -> None:
    rest = compile(text, name, "exec", dont_inherit=True)
    flags = rest.co_flags & MASK_FUTURE
    while True:
        try:
            return exec(rest, loaded.space)
        except NotInstalled as error:
            loaded.faults.append({**fault_of(error, loaded.files, seconds), "chunk": name})
            at = next((line for f, line in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename == name), 0)
            body = ast.parse(text).body
            left = [s for s in body if s.lineno > at]
            # If ``fig, ax = plt.subplots()`` fails, bind ``fig`` and ``ax`` to stand-ins, too.
            stopped = [n for s in body if s.lineno <= at <= (s.end_lineno or at) for n in ast.walk(s)]
            bound = {n.id for n in stopped if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            loaded.space.update(dict.fromkeys(bound, StandIn(error.module, error.line)))
            rest = compile(ast.Module(left, []), name, "exec", flags, dont_inherit=True)
