"""The ``check_vma`` modes in which the grader judges a body (a task's function for ``shard_map``).

The mode changes the gradients that a body computes. With ``check_vma=True``, JAX sums a replicated weight's gradient
over the devices. With False, each device gets the gradient of its own loss.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from grader.authoring.mutants.nodes import last_name
from grader.course.statements import Statement, names_reached, statements, word_of
from grader.exercise import Exercise

GRADIENTS = {"grad", "value_and_grad", "vjp", "linear_transpose", "jacrev", "hessian"}


def judged_modes(exercise: Exercise) -> Iterator[str]:
    """Yield a line with the modes of each ``shard_map`` body that computes a gradient or has two modes."""
    for part in _bodies(exercise):
        modes = exercise.tasks[part.name].modes
        if len(modes) > 1 or _takes_gradient(part, exercise):
            yield f"{part.name} is judged with {' and with '.join(f'check_vma={mode}' for mode in modes)}"


def undecided_modes(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each ``shard_map`` body that computes a gradient and declares no mode."""
    for part in _bodies(exercise):
        named = {k.arg for d in _decorators(part) if isinstance(d, ast.Call) for k in d.keywords}
        if "check_vma" not in named and _takes_gradient(part, exercise):
            yield (
                f"{part.name} takes a gradient inside shard_map, where check_vma decides what is summed: "
                'declare check_vma="both", True or False'
            )


def _bodies(exercise: Exercise) -> list[Statement]:
    return [p for p in statements(exercise) if p.kind == "task" and exercise.tasks[p.name].kind == "body"]


def _decorators(part: Statement) -> list[ast.expr]:
    assert isinstance(part.node, ast.FunctionDef)
    return [d for d in part.node.decorator_list if word_of(d)]


def _takes_gradient(part: Statement, exercise: Exercise) -> bool:
    known = {p.name: p.node for p in statements(exercise) if p.kind in ("private", "given") and p.name}
    nodes = [part.node, *(known[name] for name in names_reached([part.node], known))]
    named = {last_name(n) for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)}
    return bool(named & GRADIENTS)
