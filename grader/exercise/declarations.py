"""All declarations except questions: tasks, calls, cases (argument sets), checks, misconceptions and alternatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from grader.common.layout import Size, sizes_on
from grader.common.observation import Timing
from grader.exercise.arguments import Array, CallResult, names_of
from grader.exercise.questions import Question
from grader.wire.frames import dtype_of, is_inexact
from grader.wire.trees import flat, leaves


@dataclass(frozen=True, eq=False)
class Task:
    """A function that the learner writes. ``kind`` says how the grader uses the function:

    - "function": a pure Python function. The grader calls it with plain arguments.
    - "array": a global JAX function with the keyword ``mesh``. The grader traces it.
    - "body": a per-device JAX function. The grader wraps it in ``jax.shard_map`` and traces it once for each value of
      ``check_vma`` in ``modes``.

    ``axis_types``: type of the mesh axes, "auto" or "explicit".
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
        """The values of ``check_vma`` with which the grader wraps a ``body`` task in ``shard_map``."""
        return (True, False) if self.check_vma == "both" else (bool(self.check_vma),)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)


@dataclass(frozen=True, eq=False)
class Call:
    """A call of a task that a check judges, with its arguments, sizes and meshes.

    Attributes:
        args: array arguments by name; trees of arrays are allowed.
        dims, static: the sizes of dimensions and the task's keyword arguments that learners see.
        hidden_dims, hidden_static: sizes and keyword arguments that learners' files lack, for the command ``grade``. If
            ``hidden_static`` is None, ``grade`` uses ``static`` instead.
        wrt: names of the arguments with respect to which the grader differentiates the task.
        cotangent: a tree with a cotangent for each result (None for auxiliary results); None for a call without
            gradients.
        returns: the structure (tree) of the result; None if the author declared none.
        steps: how often the program runs. A result with an argument's name becomes this argument in the next run.
        timing: for a timing call, the TPU slice and the profile of its timeline. The program of a timing call never
            runs.
        small: for a timing call, the small call that ``exercise.timing`` got. The grader runs only the small call's
            program, and checks judge its results.
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
    small: Call | None = None

    @property
    def drawn(self) -> dict[str, Any]:
        """The arguments by name and the cotangent, in the order in which the grader draws their values."""
        return dict(self.args) | ({} if self.cotangent is None else {"cotangent": self.cotangent})

    @property
    def arrays(self) -> dict[str, Array]:
        """All arrays whose values the grader draws, keyed by names such as ``params['w1']``."""
        return {name: a for of, tree in self.drawn.items() for name, a in leaves(tree, of) if a is not None}

    @property
    def results(self) -> list[CallResult] | None:
        """The arrays of the result, in order; None if the author did not declare how many arrays there are."""
        if self.returns is None:
            return [CallResult("")] if self.wrt else None
        return flat(self.returns)

    @property
    def names(self) -> Any:
        """The declared tree of the result, with the name of each array.

        Without declared results, a call with gradients has '' (one result without a name), and other calls have None.
        """
        return names_of(self.returns) if self.returns is not None else "" if self.wrt else None

    @property
    def arrays_due(self) -> int | None:
        """Number of arrays that a program returns, as results and gradients; None if ``results`` is None."""
        results = self.results
        return None if results is None else len(results) + sum(len(flat(self.args[name])) for name in self.wrt)

    @property
    def pulled(self) -> list[int]:
        """The positions of the results that have a cotangent."""
        return [i for i, a in enumerate(flat(self.cotangent)) if a is not None]

    @property
    def fed(self) -> set[str]:
        """Names of the arguments that each step takes from the results of the previous step."""
        names = {result.name.split("[")[0] for result in self.results or () if result.feeds is not None}
        return names if self.steps > 1 else set()

    def sizes(self, mesh: Mapping[str, int], *, hidden: bool) -> dict[str, int]:
        """Return the size of every dimension on this mesh."""
        return sizes_on(mesh, self.hidden_dims if hidden else self.dims)

    def keywords(self, *, hidden: bool) -> Mapping[str, Any]:
        """Return the task's static keywords: if ``hidden``, those that learners' files lack, else the public ones."""
        return self.hidden_static if hidden and self.hidden_static is not None else self.static

    @cached_property
    def dtype(self) -> np.dtype | None:
        """The dtype that a result must have if its check names no dtype.

        It is the argument dtype with the highest rank in type promotion (see ``_rank``). None if several dtypes have
        this rank, for example float32 and bfloat16.
        """
        dtypes = {dtype_of(a.dtype) for a in flat(list(self.args.values()))}
        widest = max(map(_rank, dtypes), default=0)
        found = {d for d in dtypes if _rank(d) == widest}
        return found.pop() if len(found) == 1 else None


def _rank(dtype: np.dtype) -> int:
    """Return a dtype's rank in JAX's type promotion: bool, integers, floats, complex numbers."""
    return 3 if dtype.kind in "cW" else 2 if is_inexact(dtype) else 0 if dtype.kind == "b" else 1


@dataclass(frozen=True, eq=False)
class Cases:
    """Argument sets (cases) for a plain function: a few public sets, and many sets that ``hidden(rng)`` draws.

    ``hidden`` draws once from the public seed, and once from the course's seed. Only sets from the course's seed are
    hidden inputs.

    ``expected`` has the encoded outcomes (values or errors) of the public sets, for learners' files, which lack the
    reference solution.
    """

    task: Task
    public: tuple[dict[str, Any], ...]
    hidden: Callable[[np.random.Generator], Iterable[dict[str, Any]]] | None
    expected: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, eq=False)
class Check:
    """One judged property of a submission. ``label``, which learners see, is the first paragraph of ``fn.__doc__``.

    The grader calls ``fn`` for each mesh and set of inputs, with one ``Seen`` (what the grader observed) for each of
    ``calls``. With ``every_mesh``, ``fn`` gets a list for each of ``calls``, with one ``Seen`` per mesh.
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
        """The check's first call. Most checks have only one call."""
        return self.calls[0]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks that the check judges, in the order of the calls, each task once."""
        return tuple(dict.fromkeys(call.task for call in self.calls))


def judged_calls(checks: Iterable[Check]) -> list[Call]:
    """Return the calls of ``checks``, each once, without cases of plain functions."""
    return [call for call in dict.fromkeys(call for check in checks for call in check.calls) if isinstance(call, Call)]


@dataclass(frozen=True, eq=False)
class Misconception:
    """A known wrong answer to a question, or a known wrong solution of a task, which must fail the checks ``fails``.

    ``Exercise.misconception`` describes ``gives`` and ``breaks``.

    Attributes:
        hint: the first paragraph of the docstring of ``fn``; for a variant, the hint of the other misconception.
        form_of: the name of another misconception, if this misconception is a variant of it; else "".
    """

    name: str
    hint: str
    fn: Callable[..., Any]
    of: Task | Question
    fails: tuple[str, ...]
    form_of: str = ""
    gives: Callable[..., None] | None = None
    breaks: tuple[str, ...] = ()

    @property
    def known_as(self) -> str:
        """The misconception's name in reports."""
        return self.form_of or self.name


@dataclass(frozen=True, eq=False)
class Alternative:
    """Another right solution of a task, which must pass every check. The docstring says how this solution differs."""

    name: str
    fn: Callable[..., Any]
    of: Task
