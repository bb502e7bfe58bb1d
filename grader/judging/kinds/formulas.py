"""Answers that are a formula. Two formulas count as equal if their values are equal at randomly chosen points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from grader.common.formulas import LONGEST, BadFormula, evaluate, points_of
from grader.exercise import Formula
from grader.judging.kinds.kind import AnswerKind
from grader.judging.units import BadAnswer

RTOL = 1e-6
"""Relative tolerance of each value, so that constants may have few digits.

Where the right value is 0, the tolerance is relative to the largest right value.
"""


@dataclass(frozen=True)
class Evaluated:
    """A formula and its values at the drawn points. Two formulas are equal if their values are equal."""

    text: str = field(compare=False)
    values: tuple[float, ...]


@dataclass(frozen=True)
class FormulaKind(AnswerKind[Evaluated, Evaluated]):
    """A formula. ``symbols`` maps each symbol to its possible values, from which the grader chooses at random.

    The method ``want`` evaluates an author's formula. A sandboxed process evaluates a learner's formula, and ``read``
    gets ``{"formula": text, "values": [...]}`` or ``{"problem": reason}`` from it.
    """

    symbols: Mapping[str, Sequence[float]]

    name = "formula"
    valid = "formula"

    @classmethod
    def of(cls, answer: Formula, drawn: Mapping[str, Any], rtol: float) -> FormulaKind:
        return cls(answer.symbols)

    @staticmethod
    def heading(answer: Formula) -> str:
        return f"a formula of {', '.join(answer.symbols)}"

    @property
    def asked(self) -> Sequence[str]:
        names = list(self.symbols)
        return [f'Answer with a formula of {", ".join(names)}, as a text in quotes such as "2*{names[-1]}**2".']

    def want(self, value: Any) -> Evaluated:
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not a text: return the formula in quotes")
        try:
            return Evaluated(value.strip(), tuple(evaluate(value, list(self.symbols), points_of(self.symbols))))
        except BadFormula as error:
            raise ValueError(f"{value[:LONGEST]!r}: {error}") from None

    def read(self, raw: Any) -> Evaluated:
        match raw:
            case {"formula": str(text), "values": [*values]}:
                return Evaluated(" ".join(text.split()), tuple(map(float, values)))
            case {"problem": str(problem)}:
                raise BadAnswer(problem)
        raise BadAnswer("write the formula as a text in quotes")

    def distance(self, given: Evaluated, want: Evaluated) -> float | None:
        scale = max(map(abs, want.values))
        apart = [abs(g - w) / (abs(w) or scale or 1.0) for g, w in zip(given.values, want.values, strict=True)]
        return max(apart) if max(apart) <= RTOL else None

    def are_close(self, one: Evaluated, other: Evaluated) -> bool:
        return self.distance(one, other) is not None or self.distance(other, one) is not None

    def shown(self, want: Evaluated) -> str:
        return want.text

    def raw(self, text: str) -> Any:
        return {"formula": text, "values": list(self.want(text).values)}

    def read_as(self, given: Evaluated) -> str:
        return given.text
