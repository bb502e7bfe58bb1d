"""What an author declares: an Exercise with its tasks, calls, checks, questions and misconceptions.

An exercise is one Python file in ``solutions/NN_module/``, or two where the misconceptions stand in
one of their own; ``CONTRIBUTING.md`` walks through one.
Nothing here runs learner code or judges anything: these are declarations, read by ``build``
(what is given to learners), ``grade`` (what is asked of a submission) and ``verify``.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np

from grader import declared
from grader.declared import AuthorError
from grader.wire.frames import decode, dtype_of, is_inexact

USUAL_RTOL = 0.02
F = TypeVar("F", bound=Callable[..., Any])


# -- arguments ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Array:
    """A hidden array argument: ``shape`` may name dimensions, which the call's ``dims`` give sizes."""

    shape: tuple[int | str, ...]
    spec: tuple
    dtype: str
    draw: str
    low: int = 0
    high: int = 0

    def sized(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        try:
            return tuple(dims[n] if isinstance(n, str) else n for n in self.shape)
        except KeyError as missing:
            raise AuthorError(f"no size given for dimension {missing}") from None

    def sample(self, dims: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
        shape = self.sized(dims)
        if self.draw == "normal":
            return rng.standard_normal(shape).astype(dtype_of(self.dtype))
        return rng.integers(self.low, self.high, shape).astype(dtype_of(self.dtype))


@declared.spelt("normal")
def normal(*shape: int | str, spec: Iterable = (), dtype: str = "float32") -> Array:
    """Standard normal values: ``normal("I", "J", spec=P("x", None))``."""
    return _array(shape, spec, dtype, "normal")


@declared.spelt("integers")
def integers(low: int, high: int, *shape: int | str, spec: Iterable = (), dtype: str = "int32") -> Array:
    """Integers in ``low <= n < high``."""
    if not (isinstance(low, int) and isinstance(high, int) and low < high):
        raise AuthorError(f"integers: low is {low!r} and high {high!r}: there are none between them")
    return _array(shape, spec, dtype, "integers", low, high)


def _array(shape: tuple, spec: Iterable, dtype: str, draw: str, low: int = 0, high: int = 0) -> Array:
    return Array(declared.shape(shape), declared.spec(spec, len(shape)), declared.dtype(dtype), draw, low, high)


# -- declarations ------------------------------------------------------------------------------


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

    ``dims`` are what learners can try; ``grade`` asks for them and for ``hidden_dims`` (other, still unequal sizes).
    ``wrt`` asks for the vjp as well, with ``cotangent`` as the output's cotangent.
    """

    task: Task
    args: Mapping[str, Array]
    static: Mapping[str, Any]
    meshes: tuple[Mapping[str, int], ...]
    dims: Mapping[str, int]
    hidden_dims: Mapping[str, int]
    wrt: tuple[str, ...] = ()
    cotangent: Array | None = None

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


@dataclass(frozen=True)
class About:
    """What one draw of a question is about. ``verify`` proves of every draw that there can be such a thing.

    Attributes:
        mesh: the size of every axis of the mesh.
        arrays: (shape, spec) of each array; axes that a question divides a dimension by count as its spec.
        chip: whose slices the mesh (or ``slice``) must be one of.
        slice: chips along each axis of the slice, where the question says so.
        rings, lines: sizes of axes that wrap around, or do not, as the question or its answer takes them.
        heads: (query heads, KV heads).
        holds: bytes that one chip has to hold.
        least, most: bounds on the answer, such as the hops' latency and the hardware's bandwidth.
        branches: which of its alternatives a "longer of two" takes here, by name (``larger``).
    """

    mesh: Mapping[str, int] = field(default_factory=dict)
    arrays: Sequence[tuple[tuple[int, ...], Iterable]] = ()
    chip: str = ""
    slice: tuple[int, ...] = ()
    rings: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
    heads: tuple[int, int] = (1, 1)
    holds: float = 0.0
    least: float = 0.0
    most: float = math.inf
    branches: tuple[str, ...] = ()


def larger(**named: float) -> str:
    """The name of the largest: ``larger(hops=7e-6, bytes=2e-6)`` is "hops"."""
    return max(named, key=named.__getitem__)


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


@dataclass(eq=False)
class Number:
    """A numeric question. ``fn(**params)`` is the answer in SI (seconds, bytes, FLOP, ...).

    Where its author named no tolerance (``usual_rtol``), the course's takes the place of ``rtol``.
    ``about`` says what a draw is about; ``published`` are answers, in the question's unit, that can be read elsewhere.
    """

    name: str
    text: str
    fn: Callable[..., float]
    points: float
    unit: str
    rtol: float
    params: Mapping[str, Sequence[Any]]
    model: str
    where: Callable[..., bool] | None
    hints: tuple[str, ...] = ()
    usual_rtol: bool = False
    about: Callable[..., About] | None = None
    published: tuple[float, ...] = ()

    def __call__(self, **params: Any) -> float:
        return self.fn(**params)

    def variants(self) -> Iterator[dict[str, Any]]:
        """Every combination of parameters that ``where`` admits, in a fixed order."""
        for values in itertools.product(*self.params.values()):
            chosen = dict(zip(self.params, values, strict=True))
            if self.where is None or self.where(**chosen):
                yield chosen


@dataclass(frozen=True, eq=False)
class Misconception:
    """A known wrong answer: its docstring is the hint, its body the mutant that proves the checks."""

    name: str
    hint: str
    fn: Callable[..., Any]
    of: Task | Number
    fails: tuple[str, ...]


@dataclass(eq=False)
class Exercise:
    """One exercise. Assigned to the name ``exercise`` at the top of its file.

    Args:
        meshes: the meshes every call runs on, unless the call names its own.
        stars: difficulty, 1 to 3.
        extension: not counted in the module's total.
        hidden_points: what checks are worth that are not here; written by ``build`` into what learners get.

    ``source`` is the text of its file, ``grading_source`` that of the one beside it with checks and misconceptions, if any.
    """

    meshes: Sequence[Mapping[str, int]] = ({"x": 4, "y": 2}, {"x": 2, "y": 4})
    stars: int = 1
    extension: bool = False
    hidden_points: float = 0.0
    id: str = ""
    module: str = ""
    statement: str = ""
    source: str = ""
    grading_source: str = ""
    tasks: dict[str, Task] = field(default_factory=dict)
    numbers: dict[str, Number] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    misconceptions: dict[str, Misconception] = field(default_factory=dict)

    def __post_init__(self) -> None:
        declared.meshes(self.meshes)
        declared.points(self.hidden_points)
        if isinstance(self.stars, bool) or self.stars not in (1, 2, 3):
            raise AuthorError(f"stars is {declared.a(self.stars)}, not 1, 2 or 3")

    # tasks

    @declared.spelt("exercise.task")
    def task(self, fn: Callable | None = None, *, hints: Sequence[str] = ()) -> Any:
        """A global JAX function: array arguments by position, ``mesh`` and static keywords by name."""
        return self._declare(fn, "array", hints=hints)

    @declared.spelt("exercise.body")
    def body(self, *, out_specs: Any, check_vma: bool = False, hints: Sequence[str] = ()) -> Any:
        """A per-device function; ``in_specs`` are the specs of the call's arguments."""
        return self._declare(None, "body", hints=hints, out_specs=out_specs, check_vma=check_vma)

    @declared.spelt("exercise.function")
    def function(self, fn: Callable | None = None, *, hints: Sequence[str] = ()) -> Any:
        """A pure Python function, called by keyword with plain values."""
        return self._declare(fn, "function", hints=hints)

    def _declare(self, fn: Callable | None, kind: Any, *, hints: Sequence[str], **options: Any) -> Any:
        told = declared.texts("hints", hints)
        if fn is not None:
            declared.function("what is to be written", fn, "def f(a, *, mesh)")

        def add(fn: Callable) -> Task:
            self._new_name(fn.__name__)
            task = Task(fn.__name__, kind, fn, hints=told, **options)
            self.tasks[task.name] = task
            return task

        return add if fn is None else add(fn)

    @declared.spelt("exercise.given")
    def given(self, thing: F) -> F:
        """A helper function or a literal constant that learners get as it stands."""
        return thing

    # what is asked

    @declared.spelt("exercise.call")
    def call(
        self,
        task: Task,
        *,
        dims: Mapping[str, int] | None = None,
        hidden_dims: Mapping[str, int] | None = None,
        static: Mapping[str, Any] | None = None,
        meshes: Sequence[Mapping[str, int]] | None = None,
        wrt: Sequence[str] = (),
        cotangent: Array | None = None,
        **args: Array,
    ) -> Call:
        """Ask a traced task for its result: ``exercise.call(matmul, a=normal(...), dims={"I": 48})``."""
        self._own_task(task, "call")
        arrays = dict(args) | ({} if cotangent is None else {"cotangent": cotangent})
        for name, array in arrays.items():
            if not isinstance(array, Array):
                known = {"dims", "hidden_dims", "static", "meshes", "wrt", "cotangent"} - {name}
                told = f'argument {name} is {declared.a(array)}, not an array such as normal("I", "J")'
                raise AuthorError(f"{task.name}: {told}{declared.near(name, known)}")
        if bool(wrt) != (cotangent is not None):
            raise AuthorError(f"{task.name}: a call that asks for gradients needs both wrt and cotangent")
        for name in declared.texts("wrt", wrt):
            if name not in args:
                raise AuthorError(
                    f"{task.name}: wrt names {name!r}, which is no argument{declared.nearest(name, args)}"
                )
        keywords = declared.mapping("static", static or {}, '{"dim": 0}')
        declared.plain("static", keywords)
        shown = declared.dims("dims", dims)
        hidden = declared.dims("hidden_dims", hidden_dims) or shown
        if shown.keys() != hidden.keys():
            names = f"{', '.join(shown) or 'nothing'}, hidden_dims of {', '.join(hidden)}"
            raise AuthorError(f"{task.name}: dims gives sizes of {names}: both must name the same dimensions")
        chosen = declared.meshes(self.meshes if meshes is None else meshes)
        for (name, array), mesh in itertools.product(arrays.items(), chosen):
            declared.fits(name, array, shown, mesh, "dims")
            declared.fits(name, array, hidden, mesh, "hidden_dims")
        return Call(task, args, keywords, chosen, shown, hidden, tuple(wrt), cotangent)

    @declared.spelt("exercise.cases")
    def cases(
        self,
        task: Task,
        *,
        public: Sequence[dict[str, Any]] | str,
        hidden: Callable[[np.random.Generator], Iterable[dict[str, Any]]] | None = None,
    ) -> Cases:
        """Ask a function task for many values.

        Args:
            public: argument sets shown to learners (or, in what ``build`` writes, JSON of them with outcomes).
            hidden: draws more of them; left out of what learners are given.
        """
        self._own_task(task, "cases")
        if hidden is not None:
            declared.function("hidden", hidden, "lambda rng: [...]")
        if isinstance(public, str):
            pairs = json.loads(public)
            return Cases(task, tuple(decode(args) for args, _ in pairs), hidden, tuple(o for _, o in pairs))
        if isinstance(public, Mapping) or not isinstance(public, Sequence):
            raise AuthorError(
                f'{task.name}: public is {declared.a(public)}, not a list of arguments such as [{{"n": 8}}]'
            )
        for case in public:
            given = declared.mapping(f"{task.name}: a public case", case, '{"n": 8}')
            declared.plain(f"{task.name}: argument", given)
            declared.takes(task.name, task.fn, given)
        return Cases(task, tuple(public), hidden)

    # what is judged

    @declared.spelt("exercise.check")
    def check(
        self,
        call: Call | Cases,
        *,
        points: float,
        public: bool = False,
        after: Check | Sequence[Check] = (),
    ) -> Callable[[Callable[[Any], None]], Check]:
        """Judge a call. The function gets a ``Seen`` and raises through the words in ``expect``."""
        if not isinstance(call, Call | Cases):
            raise AuthorError(f"a check is of {declared.a(call)}, not of what exercise.call or exercise.cases returned")
        worth, before = declared.points(points), self._names_of("after", after)

        def add(fn: Callable[[Any], None]) -> Check:
            self._new_name(fn.__name__)
            check = Check(fn.__name__, _first_paragraph(fn), fn, call, worth, public, before)
            self.checks[check.name] = check
            return check

        return add

    @declared.spelt("exercise.number")
    def number(
        self,
        *,
        points: float,
        unit: str,
        params: Mapping[str, Sequence[Any]],
        model: str = "",
        rtol: float | None = None,
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
    ) -> Callable[[Callable[..., float]], Number]:
        """A numeric question; the docstring is its text (Jinja2 over the parameters)."""
        if not isinstance(unit, str):
            raise AuthorError(f'unit is {declared.a(unit)}, not a text such as "us"; "" for a plain number')
        worth, near, choices = declared.points(points), declared.rtol(rtol), declared.params(params)
        told = declared.texts("hints", hints)
        if where is not None:
            declared.takes("where", declared.function("where", where, "lambda X: X > 4"), choices)

        def add(fn: Callable[..., float]) -> Number:
            self._new_name(fn.__name__)
            text = inspect.cleandoc(fn.__doc__ or "")
            if not text:
                raise AuthorError(f"the question {fn.__name__} has no text (its docstring)")
            declared.takes(fn.__name__, fn, choices)
            question = Number(
                fn.__name__, text, fn, worth, unit, USUAL_RTOL if near is None else near, choices, model, where,
                told, usual_rtol=near is None,
            )  # fmt: skip
            self.numbers[question.name] = question
            return question

        return add

    @declared.spelt("exercise.about")
    def about(self, question: Number, facts: Callable[..., About], *, published: Sequence[float] = ()) -> None:
        """Say what a question is about: ``exercise.about(time, lambda chip, X, **_: About(chip=chip, rings=(X,)))``.

        A statement of its own, so that learners do not get it with the question.

        Args:
            facts: a function of the question's parameters.
            published: answers, in the question's unit, that no draw may have, since they can be read elsewhere.
        """
        if not isinstance(question, Number):
            raise AuthorError(f"about is told of {declared.a(question)}, not of a question (@exercise.number)")
        facts = declared.function("about", facts, "lambda X: About(rings=(X,))")
        declared.takes(f"what {question.name} is about", facts, question.params)
        question.about, question.published = facts, tuple(published)

    @declared.spelt("exercise.misconception")
    def misconception(
        self, *, of: Task | Number | None = None, fails: Check | Sequence[Check] = ()
    ) -> Callable[[Callable[..., Any]], Misconception]:
        """A known wrong solution of a task (``fails`` names the checks it must fail) or answer."""

        if of is not None and not isinstance(of, Task | Number):
            raise AuthorError(f"of is {declared.a(of)}, not a task or a question: write its name without quotes")
        if of is not None and {**self.tasks, **self.numbers}.get(of.name) is not of:
            raise AuthorError(f"of is {declared.a(of)} of another exercise")
        failing = self._names_of("fails", fails)

        def add(fn: Callable[..., Any]) -> Misconception:
            self._new_name(fn.__name__)
            of_ = self._only_task(fn.__name__) if of is None else of
            if isinstance(of_, Task) and not failing:
                raise AuthorError(f"the misconception {fn.__name__} names no check that it fails")
            if isinstance(of_, Number):
                if failing:
                    raise AuthorError(
                        f"the misconception {fn.__name__} is of a question, which has no checks: leave out fails"
                    )
                declared.takes(fn.__name__, fn, of_.params)
            for name in failing:
                if (asked := self.checks[name].call.task) is not of_:
                    raise AuthorError(f"the misconception {fn.__name__} is of {of_.name}, {name} checks {asked.name}")
            wrong = Misconception(fn.__name__, _first_paragraph(fn), fn, of_, failing)
            self.misconceptions[wrong.name] = wrong
            return wrong

        return add

    # helpers

    @property
    def points(self) -> float:
        """What all checks and questions are worth, those that only graders have included."""
        told = sum(c.points for c in self.checks.values()) + sum(n.points for n in self.numbers.values())
        return told + self.hidden_points

    @property
    def title(self) -> str:
        """The first line of the statement."""
        return self.statement.splitlines()[0].lstrip("# ")

    @property
    def digest(self) -> str:
        """Changes when anything about the exercise changes."""
        return hashlib.sha256(f"{self.source}\0{self.grading_source}".encode()).hexdigest()

    def _own_task(self, task: Any, word: str) -> None:
        if not isinstance(task, Task):
            raise AuthorError(f"exercise.{word} asks {declared.a(task)}, not a task: write its name without quotes")
        if (task.kind == "function") != (word == "cases"):
            other = "exercise.cases(...)" if word == "call" else "exercise.call(...)"
            raise AuthorError(f"{task.name} is declared by @exercise.{_WORD[task.kind]}: ask it with {other}")

    def _names_of(self, word: str, checks: Any) -> tuple[str, ...]:
        """The names of the checks that ``after`` or ``fails`` was given."""
        found = declared.kinds(word, checks, Check, "a check: write its name without quotes")
        for check in found:
            if self.checks.get(check.name) is not check:
                raise AuthorError(f"{word} names {check.name}, a check of another exercise")
        return tuple(check.name for check in found)

    def _only_task(self, name: str) -> Task:
        if len(self.tasks) != 1:
            raise AuthorError(f"say which task or question the misconception {name} is of: of=...")
        return next(iter(self.tasks.values()))

    def _new_name(self, name: str) -> None:
        for kind in (self.tasks, self.numbers, self.checks, self.misconceptions):
            if name in kind:
                raise AuthorError(f"the name {name} is declared twice")


Exercise.__init__ = declared.spelt("Exercise")(Exercise.__init__)
_WORD = {"array": "task", "body": "body", "function": "function"}


def _first_paragraph(fn: Callable) -> str:
    text = inspect.cleandoc(fn.__doc__ or "").split("\n\n")[0].replace("\n", " ").strip()
    if not text:
        raise AuthorError(f"{fn.__name__} has no docstring; learners read it as its label")
    return text
