"""Make every mutant of a reference solution: in each mutant, one mutation operator has changed one syntax node."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from grader.authoring.mutants.operators import OPERATORS, TaskContext, looked_up, replaced
from grader.common import syntax
from grader.course.reference import reference_source
from grader.course.statements import names_reached, statements
from grader.exercise import Exercise, Task
from grader.exercise.declarations import judged_calls


@dataclass(frozen=True)
class Mutant:
    """A reference solution with one node changed.

    Attributes:
        operator: name of the mutation operator that changed the node.
        line: line number in the author's file.
        was, becomes: the lines that differ, as ``ast.unparse`` writes them.
        text: the source code of the whole submission.
    """

    exercise: str
    task: str
    operator: str
    line: int
    was: str
    becomes: str
    text: str


def mutants_of(exercise: Exercise) -> list[Mutant]:
    return [m for task in exercise.tasks.values() for m in mutants_of_task(exercise, task)]


def mutants_of_task(exercise: Exercise, task: Task) -> list[Mutant]:
    """Return every distinct mutant of one task. A mutant's source has only the task and the functions that it uses."""
    module, lines = task_module(exercise, task)
    known = [p for p in statements(exercise) if p.kind == "private" or p.name == task.name]
    mutable = {p.name for p in known if p.name}
    whole, context = ast.unparse(module), context_of(exercise, task, module)
    found: dict[str, Mutant] = {}
    for statement in module.body:
        if defined(statement) in mutable:
            offset = lines[defined(statement)] - statement.lineno
            for operator, line, text in variations(module, statement, context):
                if text != whole and text not in found:
                    was, becomes = differing(whole, text)
                    found[text] = Mutant(exercise.id, task.name, operator, line + offset, was, becomes, text + "\n")
    return list(found.values())


def task_module(exercise: Exercise, task: Task) -> tuple[ast.Module, dict[str, int]]:
    """Return one task's reference solution, and the author's line number of every definition.

    To save tracing, the module has another task only if this task uses it, or if a check compares the two tasks.
    """
    parts = statements(exercise)
    module = syntax.parse(reference_source(exercise, {}))
    ours = {defined(s): s for s in module.body if defined(s)}
    needed = {task.name, *(other.name for check in exercise.checks_of(task) for other in check.tasks)}
    needed |= names_reached([ours[name] for name in needed], ours)
    module.body = [s for s in module.body if not defined(s) or defined(s) in needed]
    return module, {p.name: p.node.lineno for p in parts if p.name}


def defined(statement: ast.stmt) -> str:
    """Return the name that a top-level statement defines, else ''."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return statement.name
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else ""


def context_of(exercise: Exercise, task: Task, module: ast.Module) -> TaskContext:
    calls = judged_calls(exercise.checks_of(task))
    meshes = [mesh for call in calls if call.task is task for mesh in call.meshes]
    axes = tuple(dict.fromkeys(["x", "y", *(axis for mesh in meshes for axis in mesh)]))
    body = next(s for s in module.body if defined(s) == task.name)
    return TaskContext(
        axes=axes,
        everywhere=tuple(axis for axis in axes if all(axis in mesh for mesh in meshes)),
        plain=task.kind == "function",
        outer=frozenset(id(r) for r in own_returns(body)) if task.kind == "array" else frozenset(),
        out_specs=_out_specs(body),
        indices=frozenset(id(n) for n in _indices(module, task.kind != "function") if is_wrapped(n)),
        keys=_keys(module, axes),
    )


def _out_specs(body: ast.stmt) -> frozenset[str]:
    calls = [n for n in ast.walk(body) if isinstance(n, ast.Call)]
    return frozenset(ast.unparse(k.value) for n in calls for k in n.keywords if k.arg == "out_specs")


def _keys(module: ast.Module, axes: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the module's lookups such as ``params["w1"]``, but not ``mesh.shape["x"]`` with a mesh axis."""
    found = [key for n in ast.walk(module) if (key := looked_up(n)) is not None]
    return tuple(dict.fromkeys(key for key in found if key[1] not in axes))


def _indices(module: ast.Module, traced: bool) -> Iterator[ast.expr]:
    """Yield each index, such as ``i`` in ``a[i]``. If JAX traces the task, also yield the numbers in permutations."""
    for node in ast.walk(module):
        match node:
            case ast.Subscript(slice=ast.Tuple(elts=indices)):
                yield from indices
            case ast.Subscript(slice=index):
                yield index
            case ast.ListComp(elt=ast.Tuple(elts=[source, target])) if traced:
                yield from (source, target)


def is_wrapped(index: ast.expr) -> bool:
    """Return True for ``(a - b) % n``."""
    match index:
        case ast.BinOp(left=ast.BinOp(op=ast.Sub()), op=ast.Mod()):
            return True
    return False


def own_returns(node: ast.AST) -> Iterator[ast.Return]:
    """Yield the ``return`` statements of a function, but not of functions defined inside the function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield from own_returns(child)


def variations(module: ast.Module, statement: ast.stmt, context: TaskContext) -> Iterator[tuple[str, int, str]]:
    """Yield (operator, line number, source code of the changed module) for every change of one node of a statement."""
    for parent, field, index, line in slots(statement, statement.lineno):
        kept = getattr(parent, field)
        node = kept if index is None else kept[index]
        for operator in OPERATORS:
            for new in operator(node, context):
                setattr(parent, field, new if index is None else replaced(kept, index, new))
                yield operator.__name__, line, ast.unparse(module)
                setattr(parent, field, kept)


def slots(parent: ast.AST, line: int) -> Iterator[tuple[ast.AST, str, int | None, int]]:
    """Yield the place of each node below ``parent``: (parent node, field, index in a list field, line number).

    Nodes that should not change a result, as in annotations, docstrings and ``raise`` statements, are skipped.
    """
    for field, value in ast.iter_fields(parent):
        if field in ("annotation", "returns", "type_params"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.stmt | ast.expr | ast.keyword | ast.comprehension):
                continue
            at = getattr(child, "lineno", line)
            yield parent, field, index, at
            if not is_text(child) and not (isinstance(child, ast.keyword) and child.arg in ("check_vma", "strict")):
                yield from slots(child, at)


def is_text(node: ast.AST) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, ast.Raise | ast.JoinedStr)


def differing(old: str, new: str) -> tuple[str, str]:
    """Return the differing lines of ``old`` and of ``new``, each joined by ``; ``."""
    a, b = ([line.strip() for line in text.splitlines()] for text in (old, new))
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return "; ".join(a), "; ".join(b)
