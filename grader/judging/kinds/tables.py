"""Answers that are a short table: one number per column or, if the table has rows, one number per row and column."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from grader.exercise import Table
from grader.exercise.questions import plain_name
from grader.judging.kinds.kind import AnswerKind, literal
from grader.judging.kinds.quantities import QuantityKind, numbers_of
from grader.judging.units import BadAnswer, ParsedAnswer, quote

LONGEST = 2000
Place = tuple[str, str]
"""(row, column); the row is '' if the table has no rows."""
Wants = Mapping[Place, float]
Givens = Mapping[Place, ParsedAnswer]
T = TypeVar("T")


@dataclass(frozen=True)
class TableKind(AnswerKind[Wants, Givens]):
    """A table; ``columns`` maps each column's name to the kind that reads its numbers."""

    columns: Mapping[str, QuantityKind]
    rows: tuple[str, ...]
    partial: bool = False

    name = "table"
    valid = "table of numbers"

    @classmethod
    def of(cls, answer: Table, drawn: Mapping[str, Any], rtol: float) -> TableKind:
        numbers = numbers_of(drawn)
        kinds = {name: QuantityKind(unit, rtol, True, numbers) for name, unit in answer.columns.items()}
        return cls(kinds, answer.rows, answer.partial)

    @staticmethod
    def heading(answer: Table) -> str:
        return ", ".join(answer.columns)

    @property
    def asked(self) -> Sequence[str]:
        return [*self._form, *(["Each right number earns its part of the points."] if self.partial else [])]

    @property
    def _form(self) -> Sequence[str]:
        units = ", ".join(f"{name} in {kind.unit}" if kind.unit else name for name, kind in self.columns.items())
        row = "{" + ", ".join(f'"{name}": ...' for name in self.columns) + "}"
        if not self.rows:
            return [f"Answer with {row}. Give bare numbers ({units}), or numbers with units."]
        lines = [f'- "{name}": {row}' for name in self.rows]
        return [
            "Answer with a table, a dict of these rows:",
            "",
            *lines,
            "",
            f"Give bare numbers ({units}), or numbers with units.",
        ]

    def want(self, value: Any) -> Wants:
        table = _exactly(value, self.rows) if self.rows else {"": value}
        found: dict[Place, float] = {}
        for row, cells in table.items():
            for column, number in _exactly(cells, tuple(self.columns)).items():
                found[row, column] = self.columns[column].want(number)
        return found

    def read(self, raw: Any) -> Givens:
        raw = self._parsed(raw) if isinstance(raw, str) else raw
        table = _named(raw, self.rows, "row") if self.rows else {"": raw}
        found: dict[Place, ParsedAnswer] = {}
        for row, cells in table.items():
            named = self._row(row, cells)
            for column, kind in self.columns.items():
                if kind.is_empty(named[column]):
                    raise BadAnswer(f"{_name(row, column)}: not answered yet")
                try:
                    found[row, column] = kind.read(named[column])
                except BadAnswer as error:
                    raise BadAnswer(f"{_name(row, column)}: {error}") from None
        return found

    def is_empty(self, raw: Any) -> bool:
        if isinstance(raw, dict) and set(raw) == {"dict"} and isinstance(raw["dict"], list):
            raw = [pair[1] for pair in raw["dict"] if isinstance(pair, list) and len(pair) == 2]
        if isinstance(raw, list):
            return all(map(self.is_empty, raw))
        return raw is None or (isinstance(raw, str) and not raw.strip())

    def distance(self, given: Givens, want: Wants) -> float | None:
        apart = [self.columns[place[1]].distance(given[place], want[place]) for place in want]
        return None if None in apart else max(d for d in apart if d is not None)

    def wrong_as(self, given: Givens, other: Wants, want: Wants) -> bool:
        return not set(self._wrong(given, want)) & set(self._wrong(given, other))

    def are_close(self, one: Wants, other: Wants) -> bool:
        return all(self.columns[place[1]].are_close(one[place], other[place]) for place in one)

    def shown(self, want: Wants) -> str:
        return self._text(want, lambda kind, number: kind.shown(number))

    def read_as(self, given: Givens) -> str:
        return self._text(given, lambda kind, answer: kind.read_as(answer))

    def written(self, want: Wants) -> str:
        return self._text(want, lambda kind, number: kind.written(number))

    def misfit(self, given: Givens) -> str:
        cells = ((place, self.columns[place[1]].misfit(cell)) for place, cell in given.items())
        return next((f"{_name(*place)}: {wrong}" for place, wrong in cells if wrong), "")

    def why(self, given: Givens, want: Wants) -> str:
        wrong = self._wrong(given, want)
        row, column = wrong[0]
        reason = self.columns[column].why(given[row, column], want[row, column])
        return f"{len(want) - len(wrong)} of {len(want)} are right; {_name(row, column)}: {reason}"

    def share(self, given: Givens, want: Wants) -> float:
        return 1 - len(self._wrong(given, want)) / len(want) if self.partial else 0.0

    def _wrong(self, given: Givens, want: Wants) -> list[Place]:
        return [place for place in want if self.columns[place[1]].distance(given[place], want[place]) is None]

    def _text(self, table: Mapping[Place, T], shown: Callable[[QuantityKind, T], str]) -> str:
        """Return the table as text that ``read`` accepts: ``left: bytes = 3 MiB; right: bytes = 5 MiB``."""
        lines = []
        for row in self.rows or ("",):
            cells = [f"{name} = {shown(kind, table[row, name])}" for name, kind in self.columns.items()]
            lines.append(f"{row}: {', '.join(cells)}" if row else ", ".join(cells))
        return "; ".join(lines)

    def _row(self, row: str, cells: Any) -> dict[str, Any]:
        if isinstance(cells, str) and len(self.columns) > 1:
            cells = self._parsed_cells(cells)
        if len(self.columns) == 1 and not isinstance(cells, list) and not (isinstance(cells, dict) and "dict" in cells):
            cells = [cells]
        where = f"{row}: " if row else ""
        return _named(cells, tuple(self.columns), "column", where)

    # text

    def _parsed(self, text: str) -> Any:
        if len(text) > LONGEST:
            raise BadAnswer(f"an answer has at most {LONGEST} characters, but this answer has {len(text)}")
        try:
            return _plain(literal(text.strip()))
        except ValueError:
            pass
        if not self.rows:
            return self._parsed_cells(text)
        lines = [line for line in re.split(r"[;\n]", text) if re.search(r"\w", line)]
        pairs = [list(pair) for line in lines if (pair := self._parsed_row(line))]
        return {"dict": pairs}

    def _parsed_row(self, line: str) -> tuple[str, Any] | None:
        """Return the name and the cells of the row in a line of text; None if the line has the columns' names."""
        name, _, rest = line.strip().strip("|").partition("|") if "|" in line else line.partition(":")
        if [plain_name(cell) for cell in rest.split("|")][: len(self.columns)] == [plain_name(c) for c in self.columns]:
            return None
        return name.strip(), self._parsed_cells(rest)

    def _parsed_cells(self, text: str) -> Any:
        cells = [cell.strip() for cell in re.split(r"[|\t\n;]|,(?!\d{3}\b)", text) if cell.strip()]
        named = [re.fullmatch(r"([^=:]+?)\s*[=:]\s*(.+)", cell) for cell in cells]
        known = {plain_name(column) for column in self.columns}
        if cells and all(found and plain_name(found[1]) in known for found in named):
            return {"dict": [[found[1], found[2]] for found in named if found]}
        return cells


def _exactly(value: Any, names: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or set(value) != set(names):
        raise ValueError(f"{value!r} is not a dict with the keys {', '.join(names)}")
    return {name: value[name] for name in names}


def _named(raw: Any, names: tuple[str, ...], what: str, where: str = "") -> dict[str, Any]:
    """Return the values of ``raw`` by name. If ``raw`` is a list, its values are in the order of ``names``."""
    if isinstance(raw, list):
        if len(raw) != len(names):
            raise BadAnswer(f"{where}there are {len(names)} {what}s ({', '.join(names)}), but you gave {len(raw)}")
        return dict(zip(names, raw, strict=True))
    found: dict[str, Any] = {}
    known = {plain_name(name): name for name in names}
    for key, value in _pairs(
        raw, f"{where}write a dict with the {what}s {', '.join(names)}, or a list of their values in this order"
    ):
        name = known.get(plain_name(key))
        if name is None:
            raise BadAnswer(f"{where}there is no {what} {quote(key)}: the {what}s are {', '.join(names)}")
        if name in found:
            raise BadAnswer(f"{where}the {what} {name} is given twice")
        found[name] = value
    for name in names:
        if name not in found:
            raise BadAnswer(f"{where}the {what} {name} is missing")
    return found


def _pairs(raw: Any, due: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(raw, dict) or set(raw) != {"dict"} or not isinstance(raw["dict"], list):
        raise BadAnswer(due)
    for pair in raw["dict"]:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise BadAnswer(due)
        yield pair[0], pair[1]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {"dict": [[str(key), _plain(inner)] for key, inner in value.items()]}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError("the values are not all numbers or texts")


def _name(row: str, column: str) -> str:
    return f"{column} of {row}" if row else column
