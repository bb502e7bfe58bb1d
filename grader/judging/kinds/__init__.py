"""Kinds of answers, such as numbers and choices. Each kind has a class that reads, compares and shows its answers."""

from collections.abc import Mapping
from typing import Any

from grader.exercise import Choice, Code, Formula, Order, Quantity, Several, Spec, Table, Written
from grader.judging.kinds.choices import ChoiceKind, OrderKind, SeveralKind
from grader.judging.kinds.formulas import FormulaKind
from grader.judging.kinds.kind import AnswerKind
from grader.judging.kinds.quantities import QuantityKind
from grader.judging.kinds.specs import SpecKind
from grader.judging.kinds.tables import TableKind
from grader.judging.kinds.written import CodeKind, WrittenKind

KINDS: Mapping[type, type[AnswerKind[Any, Any]]] = {
    Quantity: QuantityKind,
    Spec: SpecKind,
    Choice: ChoiceKind,
    Several: SeveralKind,
    Order: OrderKind,
    Table: TableKind,
    Formula: FormulaKind,
    Written: WrittenKind,
    Code: CodeKind,
}
"""For each class that declares a kind of answer, the class that reads and judges the answers."""
