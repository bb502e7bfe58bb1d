"""Questions, kinds of answers, and scenarios."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader import declared
from grader.common.formulas import is_symbol
from grader.declared import AuthorError

USUAL_RTOL = 0.02
LEAST_OPTIONS = 3
MOST_OPTIONS = 26
"""Largest number of options: each option has a letter."""
LONGEST_OPTION = 160
MOST_ENTRIES = 24
LEAST_POINTS = 8
"""Least number of points at which formulas are compared. At fewer points, different formulas may agree."""
ORDER = "order"
"""The parameter that holds a choice's option keys in the order shown to a learner."""
TELLING = {"right", "correct", "answer", "solution", "true", "wrong", "false", "incorrect"}


@dataclass(frozen=True)
class Scenario:
    """The chip, mesh and arrays of a question, for one draw (random choice) of the question's parameters.

    The command ``verify`` checks that the chip, mesh and arrays of every draw can exist.

    Attributes:
        mesh: the size of every axis of the mesh.
        arrays: (shape, spec) of each array. If the question divides a dimension by the size of a mesh axis, the spec
            shards the dimension over this axis.
        chip: the chip. The chip must have a slice with the shape ``slice`` and with axes of the sizes in ``rings`` and
            ``lines``. If a scenario has no ``slice``, ``rings`` or ``lines``, the chip must have a slice with as many
            chips as the mesh.
        slice: chips along each axis of the slice, if the question names a slice.
        rings: sizes of axes for which the question or its answer assumes a ring.
        lines: sizes of the mesh axes that are lines (not rings) in the question or its answer.
        heads: (query heads, KV heads).
        holds: bytes that one chip has to hold.
        least, most: bounds on the answer. For a time, ``least`` may be the latency of the hops; for a rate, ``most``
            may be a link's bandwidth.
        branches: names of amounts. If the answer is the largest or smallest of several amounts, ``branches`` names the
            amount that is the answer in this draw (see ``larger``).
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
    """Return the name of the largest number: ``larger(hops=7e-6, bytes=2e-6)`` is "hops"."""
    return max(named, key=named.__getitem__)


# -- kinds of answers --------------------------------------------------------------------------


@dataclass(frozen=True)
class Quantity:
    """A number.

    Attributes:
        unit: the unit of an answer that names no unit.
        rtol: relative tolerance; None for the course's tolerance.
    """

    unit: str
    rtol: float | None = None


@dataclass(frozen=True)
class Spec:
    """A PartitionSpec over the mesh axes ``axes``."""

    axes: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """One of several options. ``options``: the text of each option by its key.

    The question's function returns the key of the right option. Learners see all keys.
    """

    options: Mapping[str, str]


@dataclass(frozen=True)
class Several(Choice):
    """All options that apply.

    ``partial``: True if each right option earns a part of the points, and each wrong option costs a part.
    """

    partial: bool = False


@dataclass(frozen=True)
class Order(Choice):
    """All options, in the right order. ``partial``: True if each pair in the right order earns a part of the points."""

    partial: bool = False


@dataclass(frozen=True)
class Formula:
    """A formula as a string. ``symbols``: for each symbol, the values at which the grader compares two formulas."""

    symbols: Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Table:
    """Numbers by row and column. ``columns``: the unit of each column. Without rows, each column has one number.

    ``partial``: True if each right number earns its part of the points.
    """

    columns: Mapping[str, str]
    rows: tuple[str, ...] = ()
    rtol: float | None = None
    partial: bool = False


@dataclass(frozen=True)
class Written:
    """A text that a person grades. ``rubric``: the staff's rules for points, as a text or as items with points."""

    rubric: str | Mapping[str, tuple[float, str]]

    @property
    def rules(self) -> str:
        """The rubric as one text."""
        if isinstance(self.rubric, str):
            return self.rubric
        return "; ".join(f"{name} ({points:g}): {text}" for name, (points, text) in self.rubric.items())


@dataclass(frozen=True)
class Code(Written):
    """The code of a task, which a person grades. ``task``: the task's name."""

    task: str = ""


Answer = Quantity | Spec | Choice | Several | Order | Table | Formula | Written | Code


@dataclass(eq=False)
class Question:
    """A question. ``fn(**params)`` returns the answer; numbers are in base units (seconds, bytes, FLOP, ...).

    Attributes:
        usual_rtol: the course's relative tolerance, used if the author names none.
        scenario: returns the chip, mesh and arrays for one choice of the parameters.
        published: answers, in the question's unit, that students could copy from a publication.
        title: the label in reports; if '', the label is the text's first sentence that ends in a question mark.
        figures: in learners' files, the columns of the hardware table that the answer uses. None in the author's file.
    """

    name: str
    text: str
    fn: Callable[..., Any]
    points: float
    answer: Answer
    params: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    model: str = ""
    where: Callable[..., bool] | None = None
    hints: tuple[str, ...] = ()
    usual_rtol: float = USUAL_RTOL
    scenario: Callable[..., Scenario] | None = None
    published: tuple[float, ...] = ()
    title: str = ""
    figures: tuple[str, ...] | None = None

    def __call__(self, **params: Any) -> Any:
        return self.answered_by(self.fn, params)

    def answered_by(self, fn: Callable[..., Any], drawn: Mapping[str, Any]) -> Any:
        """Return the answer that ``fn`` gives for a learner's parameters ``drawn``.

        ``fn`` is the function of the question or of a misconception.
        """
        return fn(**{name: drawn[name] for name in self.params})

    @property
    def rtol(self) -> float:
        """The relative tolerance; 0 for answers that are not numbers."""
        if isinstance(self.answer, Quantity | Table):
            return self.usual_rtol if self.answer.rtol is None else self.answer.rtol
        return 0.0

    def variants(self) -> Iterator[dict[str, Any]]:
        """Yield every combination of parameters for which ``where`` returns True, in a fixed order."""
        for values in itertools.product(*self.params.values()):
            chosen = dict(zip(self.params, values, strict=True))
            if self.where is None or self.where(**chosen):
                yield chosen


# -- declarations ------------------------------------------------------------------------------


def declared_question(
    answer: Answer, *, points: Any, params: Any, model: str, where: Any, hints: Any, title: Any
) -> Callable[[Callable[..., Any]], Question]:
    """Return a decorator that makes a function into a question. Raises AuthorError for invalid arguments."""
    worth, choices, shown = declared.points(points), declared.params(params), declared.texts("hints", hints)
    if not isinstance(title, str) or "\n" in title:
        raise AuthorError(f"`title` is {declared.a(title)}, not one line of text")
    if isinstance(answer, Choice) and ORDER in choices:
        raise AuthorError(
            f"`params` has the name {ORDER!r}, which the grader uses for the order of the options: choose another name"
        )
    if isinstance(answer, Written) and not isinstance(answer.rubric, str):
        total = sum(each for each, _ in answer.rubric.values())
        if not math.isclose(total, worth):
            raise AuthorError(
                f"rubric: the points of the items add up to {total:g}, but the question has {worth:g} points"
            )
    if where is not None:
        declared.takes("where", declared.function("`where`", where, "lambda X: X > 4"), choices)

    def made(fn: Callable[..., Any]) -> Question:
        text = inspect.cleandoc(fn.__doc__ or "")
        if not text:
            raise AuthorError(f"the question {fn.__name__} has no docstring: write the question's text there")
        declared.takes(fn.__name__, fn, choices)
        return Question(fn.__name__, text, fn, worth, answer, choices, model, where, shown, title=title.strip())

    return made


def quantity(unit: Any, rtol: Any) -> Quantity:
    if not isinstance(unit, str):
        raise AuthorError(f'`unit` is {declared.a(unit)}, not a text such as "us"; "" for a plain number')
    return Quantity(unit, declared.rtol(rtol))


def spec(axes: Any) -> Spec:
    found = declared.texts("axes", axes)
    if not found or len(set(found)) < len(found) or not all(axis.isidentifier() for axis in found):
        raise AuthorError(f'`axes` is {declared.a(axes)}, not the names of a mesh\'s axes such as ["x", "y"]')
    return Spec(found)


def choice(options: Any) -> Choice:
    return Choice(_options("options", options))


def several(options: Any, partial: Any) -> Several:
    return Several(_options("options", options), declared.flag("partial", partial))


def order(items: Any, partial: Any) -> Order:
    return Order(_options("items", items), declared.flag("partial", partial))


def _options(word: str, options: Any) -> dict[str, str]:
    if not isinstance(options, Mapping):
        listed = declared.texts(word, options)
        if twice := next((text for text in listed if listed.count(text) > 1), ""):
            raise AuthorError(f"`{word}` has {twice!r} twice")
        options = {text: text for text in listed}
    found = declared.mapping(f"`{word}`", options, '{"ring": "a ring", "line": "a line", "tree": "a tree"}')
    if len(found) < LEAST_OPTIONS:
        raise AuthorError(
            f"`{word}` needs at least {LEAST_OPTIONS} entries, so that guessing earns little; it has {len(found)}"
        )
    if len(found) > MOST_OPTIONS:
        raise AuthorError(
            f"`{word}` has {len(found)} entries: give {MOST_OPTIONS} at most, because each entry has a letter"
        )
    for key, text in found.items():
        if not isinstance(text, str) or not text.strip() or "\n" in text or len(text) > LONGEST_OPTION:
            raise AuthorError(
                f"{word}: {key!r} has {declared.a(text)}, not a line of {LONGEST_OPTION} characters or fewer"
            )
        if key.lower() in TELLING:
            raise AuthorError(
                f"{word}: learners get the key {key!r}, which can give the answer away; "
                "use a word of the entry's text as its key"
            )
    return found


def formula(symbols: Any) -> Formula:
    found = declared.mapping("`symbols`", symbols, '{"D": [2, 4, 8], "W": [1e9, 2e9, 3e9]}')
    if not found:
        raise AuthorError("`symbols` is empty: give at least one symbol with its possible values")
    for name, values in found.items():
        if not is_symbol(name):
            raise AuthorError(f"symbols: {name!r} cannot be a symbol: use a name that Python does not define")
        if isinstance(values, str) or not isinstance(values, Sequence) or not all(map(_is_finite, values)):
            raise AuthorError(f"symbols: {name} has {declared.a(values)}, not a list of numbers such as [2, 4, 8]")
        if len(set(values)) < LEAST_OPTIONS:
            raise AuthorError(f"symbols: {name} needs at least {LEAST_OPTIONS} values; it has {len(set(values))}")
    if (count := math.prod(len(set(values)) for values in found.values())) < LEAST_POINTS:
        raise AuthorError(
            f"symbols: their values give {count} points at which to compare formulas, but {LEAST_POINTS} are needed"
        )
    return Formula(found)


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def table(columns: Any, rows: Any, rtol: Any, partial: Any) -> Table:
    units = declared.mapping("`columns`", columns, '{"bytes": "MiB", "time": "us"}')
    names = declared.texts("rows", rows)
    if not units:
        raise AuthorError("`columns` is empty: give at least one column with its unit")
    for name, unit in units.items():
        if not isinstance(unit, str):
            raise AuthorError(f'columns: {name} has the unit {declared.a(unit)}, not a text such as "us"')
    if (count := len(units) * max(len(names), 1)) > MOST_ENTRIES:
        raise AuthorError(f"the table has {count} entries; one question can have at most {MOST_ENTRIES}")
    for word, every in (("columns", list(units)), ("rows", list(names))):
        if len({plain_name(name) for name in every}) < len(every) or not all(plain_name(name) for name in every):
            raise AuthorError(f"`{word}` has names that are too similar: {', '.join(every)}")
    return Table(units, names, declared.rtol(rtol), declared.flag("partial", partial))


def written(rubric: Any) -> Written:
    if isinstance(rubric, Mapping) and rubric:
        return Written(_items(rubric))
    if not isinstance(rubric, str) or not rubric.strip():
        raise AuthorError(
            f"`rubric` is {declared.a(rubric)}: write items, or a text that says which answer earns which points"
        )
    return Written(inspect.cleandoc(rubric))


def code(task: str, rubric: Any) -> Code:
    return Code(written(rubric).rubric, task)


def _items(rubric: Mapping[Any, Any]) -> dict[str, tuple[float, str]]:
    found: dict[str, tuple[float, str]] = {}
    for name, item in declared.mapping("`rubric`", rubric, '{"gathers": (1, "B is gathered first")}').items():
        if not name.isidentifier():
            raise AuthorError(f"rubric: {name!r} is not a valid name of an item; write a Python name such as gathers")
        match item:
            case (int() | float() as worth, str(text)) if text.strip() and not isinstance(worth, bool) and worth > 0:
                found[name] = (worth, " ".join(text.split()))
            case _:
                raise AuthorError(f'rubric: {name} has {declared.a(item)}, not points and a text: (1, "...")')
    return found


def plain_name(name: str) -> str:
    """Normalize a name that learners write: ``All-gather``, ``all gather`` and ``all_gather`` become equal."""
    return " ".join(re.split(r"[\s_-]+", name.strip().casefold()))
