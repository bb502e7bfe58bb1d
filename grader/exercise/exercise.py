"""The Exercise of an author's file. Each method declares one item and adds it to the exercise."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from grader import declared
from grader.common.layout import Size
from grader.declared import AuthorError
from grader.exercise.calls import declared_call, related, timing_of
from grader.exercise.declarations import Alternative, Call, Cases, Check, Misconception, Task
from grader.exercise.question_methods import QuestionMethods
from grader.exercise.questions import Question
from grader.wire.frames import decode

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(eq=False)
class Exercise(QuestionMethods):
    """One exercise, which the author's file assigns to the name ``exercise``.

    Args:
        meshes: the default meshes of calls.
        stars: difficulty, 1 to 3.
        extension: whether the exercise's points are a bonus, not part of the module's total.
        hidden_points: points of checks that a learner's file lacks. ``build`` writes this number into the file.
        figures: for each question in a learner's file, the columns of the hardware table that its answer uses.

    Attributes:
        statement: the docstring of the exercise's file, up to ``## Going further``.
        further: the docstring below ``## Going further``. In learners' files, this text follows the code.
        source: the contents of the exercise's file.
        grading_source: the contents of the second file, with checks and misconceptions; "" if there is none.
        data: a digest of the module's data files, which its exercises may read.
    """

    meshes: Sequence[Mapping[str, int]] = ({"x": 4, "y": 2}, {"x": 2, "y": 4})
    stars: int = 1
    extension: bool = False
    hidden_points: float = 0.0
    figures: Mapping[str, Sequence[str]] = field(default_factory=dict)
    id: str = ""
    module: str = ""
    statement: str = ""
    further: str = ""
    source: str = ""
    grading_source: str = ""
    data: str = ""
    spaces: Sequence[Mapping[str, Any]] = ()  # for each file of the exercise, the names and values that it declares
    tasks: dict[str, Task] = field(default_factory=dict)
    questions: dict[str, Question] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    misconceptions: dict[str, Misconception] = field(default_factory=dict)
    alternatives: dict[str, Alternative] = field(default_factory=dict)

    def __post_init__(self) -> None:
        declared.meshes(self.meshes)
        declared.points(self.hidden_points)
        if isinstance(self.stars, bool) or self.stars not in (1, 2, 3):
            raise AuthorError(f"`stars` is {declared.a(self.stars)}, not 1, 2 or 3")

    # tasks

    @declared.spelt("exercise.task")
    def task(self, fn: Callable | None = None, *, axis_types: str = "auto", hints: Sequence[str] = ()) -> Any:
        """Declare a global JAX function. It gets arrays by position, but ``mesh`` and static keywords by name.

        ``axis_types="explicit"``: the mesh has Explicit axes, so types of arrays show how the arrays are sharded. The
        grader then calls ``jax.set_mesh``.
        """
        return self._declare(fn, "array", hints=hints, axis_types=declared.axis_types(axis_types))

    @declared.spelt("exercise.body")
    def body(
        self,
        *,
        out_specs: Any,
        check_vma: bool | Literal["both"] = False,
        axis_types: str = "auto",
        hints: Sequence[str] = (),
    ) -> Any:
        """Declare a per-device function; its ``in_specs`` are the specs of the call's arguments.

        Args:
            check_vma: as in ``jax.shard_map``. With "both", the grader judges the function with True and with False.
            axis_types: the type of the mesh axes, as for ``task``.
        """
        types = declared.axis_types(axis_types)
        if not isinstance(check_vma, bool) and check_vma != "both":
            raise AuthorError(f'`check_vma` is {declared.a(check_vma)}, not True, False or "both"')
        return self._declare(None, "body", hints=hints, out_specs=out_specs, check_vma=check_vma, axis_types=types)

    @declared.spelt("exercise.function")
    def function(self, fn: Callable | None = None, *, hints: Sequence[str] = ()) -> Any:
        """Declare a pure Python function, called by keyword with plain values."""
        return self._declare(fn, "function", hints=hints)

    def _declare(self, fn: Callable | None, kind: Any, *, hints: Sequence[str], **options: Any) -> Any:
        shown = declared.texts("hints", hints)
        if fn is not None:
            declared.function("the task for learners to write", fn, "def f(a, *, mesh)")

        def add(fn: Callable) -> Task:
            self.new_name(fn.__name__)
            task = Task(fn.__name__, kind, fn, hints=shown, **options)
            self.tasks[task.name] = task
            return task

        return add if fn is None else add(fn)

    @declared.spelt("exercise.given")
    def given(self, thing: F) -> F:
        """Give learners a helper function or a literal constant, unchanged."""
        return thing

    def helper(self, thing: F) -> F:
        """Declare a function or class that public checks use. Learners get it with the checks, not in their file."""
        return thing

    # calls and cases

    @declared.spelt("exercise.call")
    def call(
        self,
        task: Task,
        *,
        dims: Mapping[str, Size] | None = None,
        hidden_dims: Mapping[str, Size] | None = None,
        static: Mapping[str, Any] | None = None,
        hidden_static: Mapping[str, Any] | None = None,
        meshes: Sequence[Mapping[str, int]] | None = None,
        wrt: Sequence[str] = (),
        cotangent: Any = None,
        returns: Any = None,
        steps: int = 1,
        **args: Any,
    ) -> Call:
        """Declare a call of a traced task, for checks: ``exercise.call(matmul, a=normal(...), dims={"I": 48})``.

        Args:
            dims, hidden_dims: the size of every dimension, in runs that learners see and in hidden runs. A size is a
                number, or a multiple of an axis size such as ``4 * axis("x")``.
            static, hidden_static: static keywords of the task, in runs that learners see and in hidden runs.
            wrt: arguments with respect to which the grader differentiates the results that have a ``cotangent``.
            cotangent: a cotangent for each result; None for auxiliary results. By default, the first result is a loss.
            returns: the structure of the result, such as ``("loss", like("params", "grads"))``.
            steps: number of runs. A result with an argument's name becomes this argument in the next run; the grader
                draws all other arguments anew.
            args: an array, or a tree of arrays, for each argument of the task.
        """
        self._own_task(task, "call")
        return declared_call(
            task, args, meshes=self.meshes if meshes is None else meshes, dims=dims, hidden_dims=hidden_dims,
            static=static, hidden_static=hidden_static, wrt=wrt, cotangent=cotangent, returns=returns, steps=steps,
        )  # fmt: skip

    @declared.spelt("exercise.timing")
    def timing(
        self,
        call: Call,
        *,
        on: str,
        dims: Mapping[str, Size],
        hidden_dims: Mapping[str, Size] | None = None,
        meshes: Sequence[Mapping[str, int]] | None = None,
        axes: Mapping[str, Sequence[int]] | None = None,
        profile: str = "ideal",
    ) -> Call:
        """Declare a timing call: the program of ``call`` at other sizes, so that checks can judge its time.

        ``exercise.timing(call, on="v5e:2x4", dims={"I": 8192})``
        The grader traces and schedules the program (``seen.timeline``), but never runs it, so sizes may be realistic.
        Checks judge the time only if the operations of this program and of ``call``'s program differ only in sizes.

        Args:
            call: the small call, whose values are checked. If a dimension has another size for timing, the grader
                recognizes this dimension by a prime factor of its size in ``call``. This factor must divide the size of
                no other dimension, and must be larger than the number of devices.
            on: a slice. Every mesh must have as many devices as the slice has chips.
            dims, hidden_dims: the size of every dimension of ``call``, for timing.
            meshes: larger meshes with equal axis names, if the meshes of ``call`` have too few devices.
            axes: for each mesh axis, the slice's axes (0, 1, ...) that it covers. By default,
                ``clock.placement.placed`` chooses the axes.
            profile: the collectives that can overlap with compute: all ("ideal"), or those that do on a chip ("v5e").

        Raises:
            AuthorError: an argument is invalid, or the grader cannot recognize a dimension that changes its size.
        """
        return timing_of(call, on=on, dims=dims, hidden_dims=hidden_dims, meshes=meshes, axes=axes, profile=profile)

    @declared.spelt("exercise.cases")
    def cases(
        self,
        task: Task,
        *,
        public: Sequence[dict[str, Any]] | str,
        hidden: Callable[[np.random.Generator], Iterable[dict[str, Any]]] | None = None,
    ) -> Cases:
        """Declare many calls of a plain function.

        Args:
            public: argument sets that learners see. In learners' files, ``public`` is JSON with each argument set and
                its outcome.
            hidden: a function that draws more argument sets, from the public seed and from the course's seed. Learners'
                files lack this function. Messages may show failing sets from the public seed, but show no sets from the
                course's seed.
        """
        self._own_task(task, "cases")
        if hidden is not None:
            declared.function("`hidden`", hidden, "lambda rng: [...]")
        if isinstance(public, str):
            pairs = json.loads(public)
            return Cases(task, tuple(decode(args) for args, _ in pairs), hidden, tuple(o for _, o in pairs))
        if isinstance(public, Mapping) or not isinstance(public, Sequence):
            raise AuthorError(
                f'{task.name}: `public` is {declared.a(public)}, not a list of arguments such as [{{"n": 8}}]'
            )
        for case in public:
            given = declared.mapping(f"{task.name}: a public case", case, '{"n": 8}')
            declared.plain(f"{task.name}: argument", given)
            declared.takes(task.name, task.fn, given)
        return Cases(task, tuple(public), hidden)

    # Decorators that add checks, misconceptions and alternatives to the exercise.

    @declared.spelt("exercise.check")
    def check(
        self,
        call: Call | Cases | Sequence[Call],
        *,
        points: float,
        public: bool = False,
        after: Check | Sequence[Check] = (),
        every_mesh: bool = False,
    ) -> Callable[[Callable[..., None]], Check]:
        """Declare a check of calls. The decorated function calls functions of ``expect``, which raise Failure.

        Args:
            call: one call or several. For each mesh and set of inputs, the function gets one ``Seen`` for each call.
            after: checks that must pass before this one. For a timing call, these include its small call's first check.
            every_mesh: whether the function gets, for each call, a list with one ``Seen`` per mesh, in mesh order.
        """
        calls = related(call, declared.flag("every_mesh", every_mesh))
        worth, public = declared.points(points), declared.flag("public", public)
        before = tuple(dict.fromkeys([*self._names_of("after", after), *self._values_of(calls)]))

        def add(fn: Callable[..., None]) -> Check:
            self.new_name(fn.__name__)
            declared.takes_in_order(fn, len(calls))
            check = Check(fn.__name__, _first_paragraph(fn), fn, calls, worth, public, before, every_mesh)
            self.checks[check.name] = check
            return check

        return add

    @declared.spelt("exercise.misconception")
    def misconception(
        self,
        *,
        of: Task | Question | None = None,
        fails: Check | Sequence[Check] = (),
        form_of: Misconception | None = None,
        gives: Callable[..., None] | None = None,
        breaks: str | Sequence[str] = (),
    ) -> Callable[[Callable[..., Any]], Misconception]:
        """Declare a known wrong answer to a question, or a known wrong solution of a task.

        Args:
            fails: for a task, the checks that this wrong solution must fail.
            form_of: another misconception, if this misconception is a variant of it. All variants share the task, the
                hint and the list of checks. A submission gets the hint if its failures match the failures of one
                variant, or the failures that all variants share.
            gives: a function with the parameters of the first check in ``fails``. It raises Failure if the submission's
                results or collectives cannot come from this misconception. A task that draws random numbers needs
                ``gives``, because two programs with one misconception then have different results.
            breaks: the rules that this misconception breaks, quoted from the statement. If the statement has a table
                "What is checked", ``verify`` requires a misconception for each row, and for each sentence with "must".
        """
        if form_of is not None:
            of, fails = form_of.of, [self.checks[name] for name in form_of.fails]
        if of is not None and not isinstance(of, Task | Question):
            raise AuthorError(f"`of` is {declared.a(of)}, not a task or a question: write its name without quotes")
        if of is not None and {**self.tasks, **self.questions}.get(of.name) is not of:
            raise AuthorError(f"`of` is {declared.a(of)}, which belongs to another exercise")
        failing = self._names_of("fails", fails)
        broken = declared.kinds("`breaks`", breaks, str, "a text: quote a rule of the statement")

        def add(fn: Callable[..., Any]) -> Misconception:
            self.new_name(fn.__name__)
            of_ = self._only_task(fn.__name__) if of is None else of
            if isinstance(of_, Task) and not failing:
                raise AuthorError(f"the misconception {fn.__name__} names no check that it fails: add fails=...")
            if isinstance(of_, Question):
                if failing:
                    raise AuthorError(
                        f"the misconception {fn.__name__} is about a question, which has no checks: leave out `fails`"
                    )
                declared.takes(fn.__name__, fn, of_.params)
            declared.takes_keywords_of(of_.fn, fn)
            self._require_checks_of(of_, failing, fn.__name__)
            hint, form = (form_of.hint, form_of.name) if form_of else (_first_paragraph(fn), "")
            wrong = Misconception(fn.__name__, hint, fn, of_, failing, form, gives, broken)
            self.misconceptions[wrong.name] = wrong
            return wrong

        return add

    def _require_checks_of(self, of: Task | Question, failing: Iterable[str], wrong: str) -> None:
        for name in failing:
            if of not in (asked := self.checks[name].tasks):
                checked = " and ".join(task.name for task in asked)
                raise AuthorError(f"the misconception {wrong} is about {of.name}, but {name} judges {checked}")

    @declared.spelt("exercise.alternative")
    def alternative(self, *, of: Task | None = None) -> Callable[[Callable[..., Any]], Alternative]:
        """Declare another right solution of a task, which learners do not get. ``verify`` proves that it passes."""
        if of is not None and (not isinstance(of, Task) or self.tasks.get(of.name) is not of):
            raise AuthorError(f"`of` is {declared.a(of)}, not a task of this exercise: write its name without quotes")

        def add(fn: Callable[..., Any]) -> Alternative:
            self.new_name(fn.__name__)
            if of is None and len(self.tasks) != 1:
                raise AuthorError(f"the alternative {fn.__name__} does not name its task: add of=...")
            other = Alternative(fn.__name__, fn, of or next(iter(self.tasks.values())))
            self.alternatives[other.name] = other
            return other

        return add

    # helpers

    @property
    def points(self) -> float:
        """The points of all checks and questions, including checks that a learner's file lacks."""
        here = sum(c.points for c in self.checks.values()) + sum(n.points for n in self.questions.values())
        return here + self.hidden_points

    def checks_of(self, task: Task | Question) -> list[Check]:
        """Return the checks that judge this task, including checks that judge other tasks as well."""
        return [check for check in self.checks.values() if task in check.tasks]

    @property
    def title(self) -> str:
        """The first line of the statement."""
        return self.statement.splitlines()[0].lstrip("# ")

    @property
    def digest(self) -> str:
        """SHA-256 over the exercise's source files and its module's data files."""
        return hashlib.sha256(f"{self.source}\0{self.grading_source}{self.data}".encode()).hexdigest()

    def _own_task(self, task: Any, word: str) -> None:
        if not isinstance(task, Task):
            raise AuthorError(f"exercise.{word} is given {declared.a(task)}, not a task: write its name without quotes")
        if (task.kind == "function") != (word == "cases"):
            other = "exercise.cases(...)" if word != "cases" else "exercise.call(...)"
            raise AuthorError(f"{task.name} is declared by @exercise.{_WORD[task.kind]}, so use {other}")

    def _names_of(self, word: str, checks: Any) -> tuple[str, ...]:
        found = declared.kinds(f"`{word}`", checks, Check, "a check: write its name without quotes")
        for check in found:
            if self.checks.get(check.name) is not check:
                raise AuthorError(f"`{word}` names {check.name}, a check of another exercise")
        return tuple(check.name for check in found)

    def _values_of(self, calls: Sequence[Call | Cases]) -> Iterable[str]:
        """For each timing call in ``calls``, return the name of the first check of its small call."""
        for call in calls:
            small = call.small if isinstance(call, Call) else None
            yield from [check.name for check in self.checks.values() if small in check.calls][:1]

    def _only_task(self, name: str) -> Task:
        if len(self.tasks) != 1:
            raise AuthorError(f"the misconception {name} does not name its task or question: add of=...")
        return next(iter(self.tasks.values()))

    def new_name(self, name: str) -> None:
        """Raise AuthorError if the exercise already has an item of this name."""
        for kind in (self.tasks, self.questions, self.checks, self.misconceptions, self.alternatives):
            if name in kind:
                raise AuthorError(f"the name {name} is declared twice")


Exercise.__init__ = declared.spelt("Exercise")(Exercise.__init__)
_WORD = {"array": "task", "body": "body", "function": "function"}


def _first_paragraph(fn: Callable) -> str:
    text = inspect.cleandoc(fn.__doc__ or "").split("\n\n")[0].replace("\n", " ").strip()
    if not text:
        raise AuthorError(f"{fn.__name__} has no docstring: write the text that learners read")
    return text
