"""Let learner code inspect traced arrays: ``print(c.sharding)``, ``assert c.sharding == ...``, ``np.asarray(c)``.

A traced array has no layout and no values. Outside the grader, learners run their tasks on sharded arrays, so they may
write code that inspects layouts and values. When such code inspects a traced array, this module computes the array: it
runs the program's steps up to the array on random inputs with the requested shardings. Learner code then gets an array
with the right layout and made-up values.

The traced program must not depend on made-up values. So this module traces the task twice, with different random
inputs, and compares the two programs.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer, eval_jaxpr

from grader.wire.limits import MAX_LOOKS

# Properties (ATTRIBUTES) and methods (CALLED) of a computed array that a traced array lacks. The names in LAYOUT show
# only the layout. All other names show values.
ATTRIBUTES = {
    "sharding", "committed", "device", "is_fully_addressable", "is_fully_replicated", "addressable_shards",
    "global_shards",
}  # fmt: skip
CALLED = {
    "devices", "on_device_size_in_bytes", "addressable_data", "item", "tolist", "tobytes", "__array__", "__bool__",
    "__int__", "__float__", "__complex__", "__index__", "__format__",
}  # fmt: skip
LAYOUT = {
    "sharding", "committed", "device", "devices", "is_fully_addressable", "is_fully_replicated",
    "on_device_size_in_bytes",
}  # fmt: skip


class ArrayRead(BaseException):
    """Raised to stop a trace where learner code inspects an array that has not been computed yet."""

    def __init__(self, array: Any) -> None:
        self.array = array


class ValueDependent(Exception):
    """Raised if a traced program depends on values that the grader made up.

    ``line``: where learner code first inspected values.
    """

    def __init__(self, line: int, file: str) -> None:
        super().__init__()
        self.line, self.file = line, file


class Looks:
    """Learner code's inspections of arrays, in order, while one task is traced on one mesh.

    ``shown`` has the computed array that each inspection gets, or None if the computation failed. After a failure,
    learner code inspects the traced array itself, and JAX usually raises an error.
    """

    def __init__(self, files: Collection[str]) -> None:
        self.files = files
        self.shown: list[Any] = []
        self.count = 0
        self.trace: Any = None
        self.first_value: tuple[int, str] | None = None  # line and file of the first inspection of values

    def watch(self, task: Callable) -> Callable:
        """Return a function that stores the JAX trace of its arguments, and then calls ``task``.

        ``look`` returns computed arrays only in this trace. In an inner jit or shard_map, it returns None.
        """

        def watched(*args: Any, **static: Any) -> Any:
            self.count = 0
            self.trace = getattr(next((a for a in args if isinstance(a, Tracer)), None), "_trace", None)
            return task(*args, **static)

        return watched

    def look(self, array: Any, *, values: bool) -> Any:
        """Return the computed array that learner code gets when it inspects ``array``; None if there is none."""
        place = self._learners_line()
        if place is None or self.trace is None or getattr(array, "_trace", None) is not self.trace:
            return None
        number, self.count = self.count, self.count + 1
        if number >= MAX_LOOKS:
            return None
        if number >= len(self.shown):
            raise ArrayRead(array)
        found = self.shown[number]
        if found is None or (found.shape, found.dtype) != (array.shape, array.dtype):
            return None
        if values and self.first_value is None:
            self.first_value = place
        return found

    def _learners_line(self) -> tuple[int, str] | None:
        """Return the line and file of learner code that inspects an array, or None if JAX's own code inspects it."""
        frame = sys._getframe(1)
        while frame is not None:
            name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
            if file in self.files:
                return frame.f_lineno, file
            if name != __name__ and name.split(".")[0] != "numpy":
                return None
            frame = frame.f_back
        return None


def settled(
    task: Callable,
    static: Mapping[str, Any],
    arguments: Sequence[tuple[tuple[int, ...], Any, Any]],
    files: Collection[str],
    export: Callable[[Callable], bytes],
) -> bytes:
    """Return the program ``export(task)``. While the task is traced, code that inspects an array sees a computed array.

    Raises ValueDependent if the program depends on the values of computed arrays.

    Args:
        task, static: the task and its keywords, called as ``task(*arrays, **static)``.
        arguments: shape, dtype and sharding of each array.
        export: traces a function and returns the program as MLIR bytecode.
    """
    found: list[bytes] = []
    # A program records the source lines of its callers. So both traces must be called from one source line. Otherwise,
    # the two programs would differ.
    for sign in (1, -1):
        looks, program = _settled(task, static, arguments, files, export, sign)
        found.append(program)
        if looks.first_value is None:
            return program
        first = looks.first_value
    if found[0] != found[1]:
        raise ValueDependent(*first)
    return found[0]


def _settled(
    task: Callable, static: Mapping[str, Any], arguments: Sequence, files: Collection[str], export: Callable, sign: int
) -> tuple[Looks, bytes]:
    looks, so_far = Looks(files), SoFar()
    watched = looks.watch(task)
    arrays: list[Any] = []
    with _answered_by(looks):
        while True:
            try:
                return looks, export(watched)
            except ArrayRead:
                arrays = arrays or [jax.device_put(_made_up(s, d, sign), where) for s, d, where in arguments]
                looks.shown.append(_computed(watched, static, arrays, so_far))
            except AssertionError as error:
                if looks.first_value is None:
                    raise
                raise ValueDependent(*looks.first_value) from error  # the assertion might hold for real values


def _computed(watched: Callable, static: Mapping[str, Any], arrays: Sequence[Any], so_far: SoFar) -> Any:
    """Return the array that learner code inspects next, computed from made-up inputs; None if the computation fails."""

    def until_the_look(*arrays: Any) -> Any:
        try:
            watched(*arrays, **static)
        except ArrayRead as asked:
            return asked.array
        return None

    try:
        made = jax.make_jaxpr(until_the_look)(*arrays)
        try:
            return so_far.evaluated(made, arrays)
        except Exception:
            return jax.jit(until_the_look)(*arrays)
    except Exception:  # the error occurs again while the whole program is traced
        return None


class SoFar:
    """The results of a program's first steps, kept so that the next inspection computes only later steps."""

    def __init__(self) -> None:
        self.values: list[Any] = []  # values of all variables that the computed steps bind
        self.steps = 0

    def evaluated(self, made: Any, arrays: Sequence[Any]) -> Any:
        program = made.jaxpr
        old, new = program.eqns[: self.steps], program.eqns[self.steps :]
        known, bound = _bound(old), _bound(new)
        if len(known) != len(self.values):  # the program changed between traces, for instance by random choices
            self.values, self.steps = [], 0
            return self.evaluated(made, arrays)
        rest = program.replace(
            eqns=new, invars=[*program.invars, *known], outvars=[*bound, *program.outvars], debug_info=None
        )
        *values, found = eval_jaxpr(rest, made.consts, *arrays, *self.values)
        self.values += values
        self.steps = len(program.eqns)
        return found


def _bound(steps: Sequence[Any]) -> list[Any]:
    return [v for step in steps for v in step.outvars if type(v).__name__ != "DropVar"]


def _made_up(shape: tuple[int, ...], dtype: Any, sign: int) -> np.ndarray:
    """Return random values for an argument. A float has opposite signs for ``sign`` 1 and -1. Integers are 0 or 1."""
    draw = np.random.default_rng(len(shape) + sum(shape))
    if np.issubdtype(dtype, np.integer) or dtype == np.bool_:
        return draw.integers(0, 2, (2, *shape))[(sign - 1) // 2].astype(dtype)
    first = draw.standard_normal(shape)
    return (first if sign > 0 else -first * draw.uniform(0.5, 2, shape)).astype(dtype)


# -- replacements for JAX ----------------------------------------------------------------------

_now: list[Looks] = []  # the tasks that are being traced, innermost last


@contextlib.contextmanager
def _answered_by(looks: Looks) -> Iterator[None]:
    _now.append(looks)
    try:
        yield
    finally:
        _now.remove(looks)


def _shown(array: Any, name: str) -> Any:
    return _now[-1].look(array, values=name not in LAYOUT) if _now else None


def stand_ins() -> dict[str, Any]:
    """Return replacements for attributes of ``jax.core.Tracer``, which use the computed arrays of ``Looks``."""
    ready = {
        "block_until_ready": lambda self: self,
        "copy_to_host_async": lambda self: None,
        "is_deleted": lambda self: False,
        "delete": lambda self: None,
    }
    return ready | {n: _attribute(n) for n in ATTRIBUTES} | {n: _method(n) for n in CALLED}


def _attribute(name: str) -> property:
    own = getattr(Tracer, name)

    def get(array: Any) -> Any:
        found = _shown(array, name)
        return own.__get__(array) if found is None else getattr(found, name)

    return property(get)


def _method(name: str) -> Callable:
    own = getattr(Tracer, name)

    def call(array: Any, *args: Any, **options: Any) -> Any:
        found = None if (name, *args) == ("__format__", "") else _shown(array, name)
        return own(array, *args, **options) if found is None else getattr(found, name)(*args, **options)

    return call


def with_shown(device_get: Callable) -> Callable:
    """Return a variant of ``jax.device_get`` that replaces each traced array by its computed array, if there is one.

    JAX's own ``device_get`` would not find the computed arrays, because ``look`` returns None to JAX's code.
    """

    def get(x: Any) -> Any:
        leaves, tree = jax.tree.flatten(x)
        found = [_shown(a, "__array__") if isinstance(a, Tracer) else None for a in leaves]
        return device_get(tree.unflatten([a if f is None else f for a, f in zip(leaves, found, strict=True)]))

    return get
