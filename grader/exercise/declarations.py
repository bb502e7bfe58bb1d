"""What is declared beside questions: tasks, calls, cases, checks, misconceptions and alternatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from grader.common.observation import Timing
from grader.common.sizes import Size, sizes_on
from grader.exercise.arguments import Array
from grader.exercise.questions import Question
from grader.exercise.results import CallResult, names_of
from grader.wire.frames import dtype_of, is_inexact
from grader.wire.trees import flat, leaves


@dataclass(frozen=True, eq=False)
class Task:
    """Something the learner writes. ``kind`` says how it is asked:

    function: pure Python, called with plain arguments;
    array: a global JAX function that takes ``mesh`` as a keyword, traced;
    body: a per-device JAX function, wrapped in ``jax.shard_map`` and traced.

    A body is asked with each ``check_vma`` of ``modes``.
    ``axis_types``: what the axes of the mesh are, "auto" or "explicit".
    """

    name: str
    kind: Literal["function", "array", "body"]
    fn: Callable[..., Any]
    hints: tuple[str, ...] = ()
    out_specs: Any = None
    check_vma: bool | Literal["both"] = False
    axis_types: str = "auto"

    @property
    def modes(self) -> tuple[bool, ...]:
        """With which ``check_vma`` a body is wrapped, one after the other."""
        return (True, False) if self.check_vma == "both" else (bool(self.check_vma),)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


@dataclass(frozen=True, eq=False)
class Call:
    """What is asked of a task: array arguments, static keywords, dimensions and meshes.

    ``dims`` and ``static`` are what learners can try; ``grade`` asks for them and for ``hidden_dims`` (other, still
    unequal sizes) with ``hidden_static`` (None: as ``static``). ``args`` may be trees of arrays. ``returns`` is the
    tree of the result, None where nobody says; ``wrt`` asks for the vjp as well, with ``cotangent`` as the result's, of
    its structure (None: its first leaf is a loss, whose is one). The task is run ``steps`` times; what it returns under
    an argument's name is that argument of the next step. ``timing`` is of calls that are traced and laid out in time,
    never run: their arrays hold no data. ``timed`` is the call whose values are judged: the same program at sizes that
    can be run.
    """

    task: Task
    args: Mapping[str, Any]
    static: Mapping[str, Any]
    meshes: tuple[Mapping[str, int], ...]
    dims: Mapping[str, Size]
    hidden_dims: Mapping[str, Size]
    wrt: tuple[str, ...] = ()
    cotangent: Any = None
    hidden_static: Mapping[str, Any] | None = None
    returns: Any = None
    steps: int = 1
    timing: Timing | None = None
    timed: Call | None = None

    @property
    def drawn(self) -> dict[str, Any]:
        """The arguments by name and the cotangent, in the order in which they are drawn."""
        return dict(self.args) | ({} if self.cotangent is None else {"cotangent": self.cotangent})

    @property
    def arrays(self) -> dict[str, Array]:
        """All that is drawn, leaf by leaf."""
        return {name: a for of, tree in self.drawn.items() for name, a in leaves(tree, of) if a is not None}

    @property
    def results(self) -> list[CallResult] | None:
        """The arrays of the result, in order; None where nobody says how many there are."""
        if self.returns is None:
            return [CallResult("")] if self.wrt else None
        return flat(self.returns)

    @property
    def names(self) -> Any:
        """The tree of the result with the name of each array; None where nobody says."""
        return names_of(self.returns) if self.returns is not None else "" if self.wrt else None

    @property
    def arrays_due(self) -> int | None:
        """How many arrays a program of it gives, results and gradients; None where nobody says."""
        results = self.results
        return None if results is None else len(results) + sum(len(flat(self.args[name])) for name in self.wrt)

    @property
    def pulled(self) -> list[int]:
        """Positions of the results that have a cotangent of their own."""
        return [i for i, a in enumerate(flat(self.cotangent)) if a is not None]

    @property
    def fed(self) -> set[str]:
        """Arguments that are results of the step before."""
        names = {result.name.split("[")[0] for result in self.results or () if result.feeds is not None}
        return names if self.steps > 1 else set()

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
        dtypes = {dtype_of(a.dtype) for a in flat(list(self.args.values()))}
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
    """One judged property. ``label`` (the docstring) is what the learner reads.

    ``fn`` gets a ``Seen`` for each of ``calls``, of the same mesh and run; with ``every_mesh`` a list of them, one for
    every mesh, in place of each.
    """

    name: str
    label: str
    fn: Callable[..., None]
    calls: tuple[Call | Cases, ...]
    points: float
    public: bool
    after: tuple[str, ...]
    every_mesh: bool = False

    @property
    def call(self) -> Call | Cases:
        """The first of its calls, the only one of most checks."""
        return self.calls[0]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Whose results it judges, the first call's first, each once."""
        return tuple(dict.fromkeys(call.task for call in self.calls))


@dataclass(frozen=True, eq=False)
class Misconception:
    """A known wrong answer: its docstring is the hint, its body the mutant that proves the checks.

    ``form_of`` names the misconception that this is another form of. ``gives`` gets what its first check gets, and
    fails unless a program comes to what this mistake comes to.
    """

    name: str
    hint: str
    fn: Callable[..., Any]
    of: Task | Question
    fails: tuple[str, ...]
    form_of: str = ""
    gives: Callable[..., None] | None = None

    @property
    def known_as(self) -> str:
        """The name that reports give it."""
        return self.form_of or self.name


@dataclass(frozen=True, eq=False)
class Alternative:
    """Another right solution of a task, written otherwise, which has to pass every check; its docstring says how."""

    name: str
    fn: Callable[..., Any]
    of: Task
