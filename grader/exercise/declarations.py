"""What is declared beside questions: tasks, calls, cases, checks and misconceptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from grader.common.sizes import Size, sizes_on
from grader.exercise.arguments import Array
from grader.exercise.questions import Question
from grader.wire.frames import dtype_of, is_inexact


@dataclass(frozen=True, eq=False)
class Task:
    """Something the learner writes. ``kind`` says how it is asked:

    function: pure Python, called with plain arguments;
    array: a global JAX function that takes ``mesh`` as a keyword, traced;
    body: a per-device JAX function, wrapped in ``jax.shard_map`` and traced.
    """

    name: str
    kind: Literal["function", "array", "body"]
    fn: Callable[..., Any]
    hints: tuple[str, ...] = ()
    out_specs: Any = None
    check_vma: bool = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


@dataclass(frozen=True, eq=False)
class Call:
    """What is asked of a task: array arguments, static keywords, dimensions and meshes.

    ``dims`` and ``static`` are what learners can try; ``grade`` asks for them and for ``hidden_dims`` (other, still
    unequal sizes) with ``hidden_static`` (None: as ``static``).
    ``wrt`` asks for the vjp as well, with ``cotangent`` as the output's cotangent.
    """

    task: Task
    args: Mapping[str, Array]
    static: Mapping[str, Any]
    meshes: tuple[Mapping[str, int], ...]
    dims: Mapping[str, Size]
    hidden_dims: Mapping[str, Size]
    wrt: tuple[str, ...] = ()
    cotangent: Array | None = None
    hidden_static: Mapping[str, Any] | None = None

    @property
    def arrays(self) -> dict[str, Array]:
        """The arguments by name and the cotangent, in the order in which they are drawn."""
        return dict(self.args) | ({"cotangent": self.cotangent} if self.cotangent else {})

    def sizes(self, mesh: Mapping[str, int], *, hidden: bool) -> dict[str, int]:
        """The size of every dimension on this mesh."""
        return sizes_on(mesh, self.hidden_dims if hidden else self.dims)

    def keywords(self, *, hidden: bool) -> Mapping[str, Any]:
        """The static keywords."""
        return self.hidden_static if hidden and self.hidden_static is not None else self.static

    @cached_property
    def dtype(self) -> np.dtype | None:
        """What a result has unless its check says otherwise: the arguments' dtype, floats before integers.

        None where the arguments do not settle it, as float32 and bfloat16 together.
        """
        dtypes = {dtype_of(a.dtype) for a in self.args.values()}
        widest = max(map(_rank, dtypes), default=0)
        found = {d for d in dtypes if _rank(d) == widest}
        return found.pop() if len(found) == 1 else None


def _rank(dtype: np.dtype) -> int:
    """Which kind of numbers swallows which in JAX: bool, integers, floats, complex numbers."""
    return 3 if dtype.kind in "cW" else 2 if is_inexact(dtype) else 0 if dtype.kind == "b" else 1


@dataclass(frozen=True, eq=False)
class Cases:
    """Many plain argument sets for a function task: a few public, many hidden (drawn by ``hidden(rng)``).

    ``expected`` holds the outcomes of the public ones, encoded, where the reference is not at hand.
    """

    task: Task
    public: tuple[dict[str, Any], ...]
    hidden: Callable[[np.random.Generator], Iterable[dict[str, Any]]] | None
    expected: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class Check:
    """One judged property. ``label`` (the docstring) is what the learner reads."""

    name: str
    label: str
    fn: Callable[[Any], None]
    call: Call | Cases
    points: float
    public: bool
    after: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Misconception:
    """A known wrong answer: its docstring is the hint, its body the mutant that proves the checks."""

    name: str
    hint: str
    fn: Callable[..., Any]
    of: Task | Question
    fails: tuple[str, ...]
