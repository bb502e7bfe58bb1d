"""Declarations of authors: an Exercise with its tasks, calls, checks, questions, misconceptions and alternatives.

An exercise is one Python file in ``solutions/NN_module/``, or two files if checks and misconceptions have their own
file. ``CONTRIBUTING.md`` explains an example. This package does not run or judge submissions.
"""

from grader.declared import AuthorError
from grader.exercise import draws
from grader.exercise.arguments import Array, array, axis, integers, like, normal
from grader.exercise.declarations import Alternative, Call, Cases, Check, Misconception, Task
from grader.exercise.exercise import Exercise
from grader.exercise.questions import (
    Choice,
    Code,
    Formula,
    Order,
    Quantity,
    Question,
    Scenario,
    Several,
    Spec,
    Table,
    Written,
    larger,
)

__all__ = [
    "Alternative",
    "Array",
    "AuthorError",
    "Call",
    "Cases",
    "Check",
    "Choice",
    "Code",
    "Exercise",
    "Formula",
    "Misconception",
    "Order",
    "Quantity",
    "Question",
    "Scenario",
    "Several",
    "Spec",
    "Table",
    "Task",
    "Written",
    "array",
    "axis",
    "draws",
    "integers",
    "larger",
    "like",
    "normal",
]
