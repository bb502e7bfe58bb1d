"""Automatic mutants of every reference: would the checks notice if a solution were slightly wrong?

A misconception is a wrong solution that an author thought of; mutants are the ones nobody thought of.
One node of a task's body (or of a private helper it uses) is changed, and the result is graded like a
submission, with all that ``grade`` asks. A mutant that passes every check of its task is either
equivalent, which ``solutions/equivalent_mutants.yaml`` says with a reason, or shows a hole in the checks.

Each operator takes a node and yields what could stand in its place. Nothing here runs a mutant: the
grader's workers do.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.authoring.seeds import SEEDS, is_luck, results_by_seed, results_of_task
from grader.batch.grade import Grader
from grader.common import syntax
from grader.common.result import Result
from grader.course import build
from grader.course.loading import Course, CourseError
from grader.exercise import Call, Exercise, Task

EQUIVALENT = "equivalent_mutants.yaml"
LEAST_KILLED = 0.98
Fate = Literal["killed", "equivalent", "survived", "broken"]

COLLECTIVES = {
    "psum", "pmean", "pmax", "pmin", "all_gather", "psum_scatter", "all_to_all", "ppermute", "pshuffle",
    "pbroadcast", "ragged_all_to_all",
}  # fmt: skip
RENAMED = {
    "psum": ["pmean", "pmax"], "pmean": ["psum", "pmax"], "pmax": ["psum", "pmin"], "pmin": ["psum", "pmax"],
    "max": ["min"], "min": ["max"], "maximum": ["minimum"], "minimum": ["maximum"], "any": ["all"], "all": ["any"],
    "argmax": ["argmin"], "argmin": ["argmax"], "floor": ["ceil"], "ceil": ["floor"], "prod": ["sum"],
    "sum": ["mean", "max"], "mean": ["sum"],
}  # fmt: skip
COUNTED = {"axis_index": 0, "axis_size": 1}  # what they are on a lone device
TRADED = {"matmul": (0, 1), "dot": (0, 1), "where": (1, 2), "select": (1, 2), "cond": (1, 2)}
# The dimension argument that a collective does without, as 0; and its position when it is not named.
DIMENSION = {"all_gather": ("axis", 3), "psum_scatter": ("scatter_dimension", 2)}
COMPARED: dict[type[ast.cmpop], list[ast.cmpop]] = {
    ast.Lt: [ast.LtE(), ast.GtE()], ast.LtE: [ast.Lt(), ast.Gt()], ast.Gt: [ast.GtE(), ast.LtE()],
    ast.GtE: [ast.Gt(), ast.Lt()], ast.Eq: [ast.NotEq()], ast.NotEq: [ast.Eq()], ast.Is: [ast.IsNot()],
    ast.IsNot: [ast.Is()], ast.In: [ast.NotIn()], ast.NotIn: [ast.In()],
}  # fmt: skip
COMPUTED: dict[type[ast.operator], list[ast.operator]] = {
    ast.Add: [ast.Sub()], ast.Sub: [ast.Add()], ast.Mult: [ast.FloorDiv()], ast.Div: [ast.Mult()],
    ast.FloorDiv: [ast.Mult(), ast.Div()], ast.Mod: [ast.FloorDiv()], ast.Pow: [ast.Mult()],
}  # fmt: skip
EINSUM = re.compile(r"[a-zA-Z,. ]+->[a-zA-Z ]*")
EPSILON, HUGE = 1e-3, 1e3  # floats outside are there for safety or as infinity; which ones, no check can see


@dataclass(frozen=True)
class Mutant:
    """A reference with one node changed.

    Attributes:
        operator: what was done, the operator's name.
        line: in the author's file.
        was, becomes: the lines that differ, as ``ast.unparse`` writes them.
        text: the whole submission.
    """

    exercise: str
    task: str
    operator: str
    line: int
    was: str
    becomes: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """A mutant, its fate, and the checks that failed it by looking at what it did (not because it never ran)."""

    mutant: Mutant
    fate: Fate
    seen_by: tuple[str, ...] = ()
    reason: str = ""


class Equivalent(BaseModel):
    """An entry of ``equivalent_mutants.yaml``: this mutant may survive, because it is a right solution too."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exercise: str
    task: str
    was: str
    becomes: str
    reason: str = Field(min_length=10)


@dataclass(frozen=True)
class Proof:
    """All mutants of an exercise, what must be mended, and the checks that nothing was seen to fail."""

    exercise: str
    verdicts: list[Verdict]
    problems: list[str]
    unproven: list[str]

    def count(self, fate: Fate) -> int:
        return sum(v.fate == fate for v in self.verdicts)

    @property
    def not_run(self) -> int:
        """Of the killed, how many could not even be traced on some mesh: they say little about the checks."""
        return sum(v.fate == "killed" and not v.seen_by for v in self.verdicts)


# -- operators: a node in, what could stand in its place out -----------------------------------


@dataclass(frozen=True)
class About:
    """What an operator may want to know of the task.

    Attributes:
        axes: names of mesh axes. everywhere: those that every mesh of the task has.
        plain: it is plain Python, not traced.
        outer: the ``return`` statements (by ``id``) whose value is global: those outside ``shard_map``.
        out_specs: all that the task names, as text.
        indices: differences modulo a length (by ``id``) that are an index, as in ``chunks[(me - 1) % n]``: without
            the remainder a negative one counts from the end, which is the same place.
    """

    axes: tuple[str, ...] = ("x", "y")
    everywhere: tuple[str, ...] = ("x",)
    plain: bool = False
    outer: frozenset[int] = frozenset()
    out_specs: frozenset[str] = frozenset()
    indices: frozenset[int] = frozenset()


def called(node: ast.AST) -> str:
    """``psum`` for ``psum(...)`` and ``jax.lax.psum(...)``, else nothing."""
    return last_name(node.func) if isinstance(node, ast.Call) else ""


def last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def with_args(call: ast.Call, args: Iterable[ast.expr]) -> ast.Call:
    return ast.Call(call.func, list(args), call.keywords)


def traded(items: list[Any], i: int, j: int) -> list[Any]:
    items = list(items)
    items[i], items[j] = items[j], items[i]
    return items


def replaced(items: list[Any], i: int, new: Any) -> list[Any]:
    return [*items[:i], new, *items[i + 1 :]]


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def axis(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """Another axis of the mesh, wherever one is named."""
    if isinstance(node, ast.Constant) and node.value in about.axes:
        yield from (ast.Constant(a) for a in about.axes if a != node.value)


def spec(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """An entry of a PartitionSpec dropped, added or moved to another dimension."""
    if called(node) not in ("P", "PartitionSpec"):
        return
    assert isinstance(node, ast.Call)
    named = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}
    unused = [ast.Constant(a) for a in about.axes if a not in named]
    for i, entry in enumerate(node.args):
        for new in unused if is_none(entry) else [ast.Constant(None)]:
            yield with_args(node, replaced(node.args, i, new))
    for i, j in itertools.combinations(range(len(node.args)), 2):
        yield with_args(node, traded(node.args, i, j))
    if len(node.args) == 1:
        yield with_args(node, [ast.Constant(None), *node.args])
    if not node.args:
        yield from (with_args(node, [new]) for new in unused)


def order(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """A tuple or list the other way round (axes, specs, pairs of a permutation), or without one of its names."""
    if not isinstance(node, ast.Tuple | ast.List) or len(node.elts) < 2 or not isinstance(node.ctx, ast.Load):
        return
    kind = type(node)
    yield kind(node.elts[::-1], ast.Load())
    if all(isinstance(e, ast.Constant) and isinstance(e.value, str) for e in node.elts):
        yield from (kind([*node.elts[:i], *node.elts[i + 1 :]], ast.Load()) for i in range(len(node.elts)))


def collective(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """A collective left out or done twice; a device that takes itself for the only one."""
    name = called(node)
    if name in COUNTED:
        yield ast.Constant(COUNTED[name])
    if name in COLLECTIVES and isinstance(node, ast.Call) and node.args:
        yield node.args[0]
        yield with_args(node, [node, *node.args[1:]])


def dimension(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """Dimension 1 and tiled=True where a collective was content without; split and concat dimensions traded."""
    if not isinstance(node, ast.Call) or called(node) not in COLLECTIVES:
        return
    keywords = {k.arg: k for k in node.keywords}
    name, position = DIMENSION.get(called(node), ("", 0))
    if name and name not in keywords and len(node.args) <= position:
        yield ast.Call(node.func, node.args, [*node.keywords, ast.keyword(name, ast.Constant(1))])
    if name and "tiled" not in keywords:
        yield ast.Call(node.func, node.args, [*node.keywords, ast.keyword("tiled", ast.Constant(True))])
    if {"split_axis", "concat_axis"} <= set(keywords):
        other = {"split_axis": "concat_axis", "concat_axis": "split_axis"}
        swapped = [ast.keyword(k.arg, keywords[other.get(k.arg or "", k.arg)].value) for k in node.keywords]
        yield ast.Call(node.func, node.args, swapped)


def name(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """A function's near relative: psum and pmean, max and min."""
    if not isinstance(node, ast.Call):
        return
    for other in RENAMED.get(called(node), []):
        if isinstance(node.func, ast.Attribute):
            yield ast.Call(ast.Attribute(node.func.value, other, ast.Load()), node.args, node.keywords)
        elif other in RENAMED:
            yield ast.Call(ast.Name(other, ast.Load()), node.args, node.keywords)


def constant(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """True for False, integers one more and one less, moderate floats doubled."""
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield ast.Constant(value + 1)
        yield ast.Constant(value - 1)
    elif isinstance(value, float) and EPSILON <= abs(value) <= HUGE:
        yield ast.Constant(value * 2)


def bounds(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """One round more or less of a loop."""
    if not isinstance(node, ast.Call):
        return
    which = {"range": range(len(node.args))[:2], "fori_loop": range(len(node.args))[:2]}.get(called(node), ())
    for i in which:
        for near in one_off(node.args[i]):
            yield with_args(node, replaced(node.args, i, near))
    if called(node) == "scan":
        for i, given in enumerate(node.keywords):
            for near in one_off(given.value) if given.arg == "length" else ():
                yield ast.Call(node.func, node.args, replaced(node.keywords, i, ast.keyword("length", near)))


def one_off(bound: ast.expr) -> Iterator[ast.expr]:
    if not isinstance(bound, ast.Constant | ast.Starred):  # the operator ``constant`` sees to those
        yield ast.BinOp(bound, ast.Add(), ast.Constant(1))
        yield ast.BinOp(bound, ast.Sub(), ast.Constant(1))


def comparison(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """The border moved to the other side, and the opposite."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in COMPARED[type(op)]:
                yield ast.Compare(node.left, replaced(node.ops, i, other), node.comparators)


def arithmetic(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """Another operator, a remainder not taken (a ring that does not wrap), a sign or a negation dropped."""
    if isinstance(node, ast.BinOp):
        yield from (ast.BinOp(node.left, other, node.right) for other in COMPUTED.get(type(node.op), []))
        if isinstance(node.op, ast.Mod) and id(node) not in about.indices:
            yield node.left
    elif isinstance(node, ast.AugAssign):
        yield from (ast.AugAssign(node.target, other, node.value) for other in COMPUTED.get(type(node.op), []))
        yield ast.Pass()
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand


def condition(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """A condition negated, or taken for always or never true. (Of a comparison, ``comparison`` has the opposite.)"""
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
        if not isinstance(node.test, ast.Compare):
            yield ast.IfExp(negated(node.test), node.body, node.orelse)
    elif isinstance(node, ast.If):
        tests: list[ast.expr] = [ast.Constant(True), ast.Constant(False)]
        if not isinstance(node.test, ast.Compare):
            tests.append(negated(node.test))
        yield from (ast.If(test, node.body, node.orelse) for test in tests)
    elif isinstance(node, ast.While) and not isinstance(node.test, ast.Compare):
        yield ast.While(negated(node.test), node.body, node.orelse)
    elif isinstance(node, ast.comprehension):
        for i, test in enumerate(node.ifs):
            yield comprehension(node, [*node.ifs[:i], *node.ifs[i + 1 :]])
            if not isinstance(test, ast.Compare):
                yield comprehension(node, replaced(node.ifs, i, negated(test)))


def negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def comprehension(node: ast.comprehension, ifs: list[ast.expr]) -> ast.comprehension:
    return ast.comprehension(node.target, node.iter, ifs, node.is_async)


def result(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """A plain function that returns the same whatever it is given; an error that is not raised."""
    if isinstance(node, ast.Return) and about.plain:
        yield from (ast.Return(ast.Constant(value)) for value in (None, 0, 1))
    elif isinstance(node, ast.Raise):
        yield ast.Pass()


def operands(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """Operands traded, one of a product transposed, the letters of an einsum's result reversed."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield ast.BinOp(node.right, ast.MatMult(), node.left)
        yield ast.BinOp(transposed(node.left), ast.MatMult(), node.right)
        yield ast.BinOp(node.left, ast.MatMult(), transposed(node.right))
        yield transposed(node)
    elif isinstance(node, ast.Call) and called(node) in TRADED:
        i, j = TRADED[called(node)]
        if len(node.args) > j:
            yield with_args(node, traded(node.args, i, j))
        if called(node) in ("matmul", "dot"):
            yield from (with_args(node, replaced(node.args, k, transposed(a))) for k, a in enumerate(node.args[:2]))
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and EINSUM.fullmatch(node.value):
        left, right = node.value.split("->")
        yield ast.Constant(f"{left}->{right[::-1]}")
        yield ast.Constant(f"{','.join(left.split(',')[::-1])}->{right}")


def detour(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """The right values at a needless price: every device sends its result round and takes its own back."""
    if isinstance(node, ast.Return) and node.value and not about.plain and id(node) not in about.outer:
        for a in about.everywhere:
            yield wrapped("jax.lax.all_gather(_, {0!r})[jax.lax.axis_index({0!r})]", a, node.value)
            yield wrapped("jax.lax.pmax(_, {0!r})", a, node.value)


def relaid(node: ast.AST, about: About) -> Iterator[ast.AST]:
    """The right values in another layout: the result cut over an axis, or whole on every device."""
    if isinstance(node, ast.Return) and node.value and id(node) in about.outer:
        for entry in ["", *(repr(a) for a in about.everywhere)]:
            if not {f"P({entry})", f"P({entry}, None)"} & about.out_specs:
                place = f"jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec({entry}))"
                yield wrapped(f"jax.lax.with_sharding_constraint(_, {place})", "", node.value)


def wrapped(template: str, a: str, value: ast.expr) -> ast.Return:
    """``return template`` with ``value`` in the place of ``_``."""
    tree = syntax.expression(template.format(a))
    return ast.Return(_InPlaceOf(value).visit(tree).body)


class _InPlaceOf(ast.NodeTransformer):
    """Puts an expression where the name ``_`` is."""

    def __init__(self, value: ast.expr) -> None:
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == "_" else node


def transposed(node: ast.expr) -> ast.expr:
    return ast.Attribute(node, "T", ast.Load())


OPERATORS: list[Callable[[ast.AST, About], Iterator[ast.AST]]] = [
    axis, spec, order, collective, dimension, name, constant, bounds, comparison, arithmetic, condition, result,
    operands, detour, relaid,
]  # fmt: skip


# -- making mutants ----------------------------------------------------------------------------


def mutants_of(exercise: Exercise) -> list[Mutant]:
    return [m for task in exercise.tasks.values() for m in mutants_of_task(exercise, task)]


def mutants_of_task(exercise: Exercise, task: Task) -> list[Mutant]:
    """Every different mutant of one task; the texts hold only the task and what it uses."""
    module, lines = task_module(exercise, task)
    known = [p for p in build.statements(exercise) if p.kind == "private" or p.name == task.name]
    mutable = {p.name for p in known if p.name}
    whole, about = ast.unparse(module), about_task(exercise, task, module)
    found: dict[str, Mutant] = {}
    for statement in module.body:
        if defined(statement) in mutable:
            offset = lines[defined(statement)] - statement.lineno
            for operator, line, text in variations(module, statement, about):
                if text != whole and text not in found:
                    was, becomes = differing(whole, text)
                    found[text] = Mutant(exercise.id, task.name, operator, line + offset, was, becomes, text + "\n")
    return list(found.values())


def task_module(exercise: Exercise, task: Task) -> tuple[ast.Module, dict[str, int]]:
    """The reference of one task, imports and helpers included, and the author's line of every definition.

    Other tasks stay out unless this one uses them: they need not be traced for each mutant.
    """
    parts = build.statements(exercise)
    module = syntax.parse(build.reference_source(exercise, {}))
    ours = {defined(s): s for s in module.body if defined(s)}
    needed, queue = {task.name}, [task.name]
    while queue:
        read = {n.id for n in ast.walk(ours[queue.pop()]) if isinstance(n, ast.Name)}
        new = [n for n in ours if n in read - needed]
        needed |= set(new)
        queue += new
    module.body = [s for s in module.body if not defined(s) or defined(s) in needed]
    return module, {p.name: p.node.lineno for p in parts if p.name}


def defined(statement: ast.stmt) -> str:
    """The name that a top-level statement defines."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return statement.name
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    return target.id if isinstance(target, ast.Name) else ""


def about_task(exercise: Exercise, task: Task, module: ast.Module) -> About:
    calls = [c.call for c in exercise.checks.values() if c.call.task is task]
    meshes = [mesh for call in calls if isinstance(call, Call) for mesh in call.meshes]
    axes = tuple(dict.fromkeys(["x", "y", *(a for mesh in meshes for a in mesh)]))
    everywhere = tuple(a for a in axes if all(a in mesh for mesh in meshes))
    body = next(s for s in module.body if defined(s) == task.name)
    outer = frozenset(id(r) for r in own_returns(body)) if task.kind == "array" else frozenset()
    calls_made = [n for n in ast.walk(body) if isinstance(n, ast.Call)]
    specs = frozenset(ast.unparse(k.value) for n in calls_made for k in n.keywords if k.arg == "out_specs")
    indices = frozenset(id(n.slice) for n in ast.walk(module) if isinstance(n, ast.Subscript) and is_wrapped(n.slice))
    return About(axes, everywhere, task.kind == "function", outer, specs, indices)


def is_wrapped(index: ast.expr) -> bool:
    """``(a - b) % n``."""
    match index:
        case ast.BinOp(left=ast.BinOp(op=ast.Sub()), op=ast.Mod()):
            return True
    return False


def own_returns(node: ast.AST) -> Iterator[ast.Return]:
    """The ``return`` statements of a function itself, not of those defined inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield from own_returns(child)


def variations(module: ast.Module, statement: ast.stmt, about: About) -> Iterator[tuple[str, int, str]]:
    """(operator, line, text of the module) for every change of one node of a statement."""
    for parent, field, index, line in slots(statement, statement.lineno):
        kept = getattr(parent, field)
        node = kept if index is None else kept[index]
        for operator in OPERATORS:
            for new in operator(node, about):
                setattr(parent, field, new if index is None else replaced(kept, index, new))
                yield operator.__name__, line, ast.unparse(module)
                setattr(parent, field, kept)


def slots(parent: ast.AST, line: int) -> Iterator[tuple[ast.AST, str, int | None, int]]:
    """Where the nodes below ``parent`` sit (parent, field, index) and their line.

    Nothing is changed in signatures, annotations, messages of errors, ``check_vma`` and zip's ``strict`` (which
    change no result), or in what only says how a tree is built (names, contexts, operators).
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
    """The lines in which two texts differ, joined by ``; ``."""
    a, b = ([line.strip() for line in text.splitlines()] for text in (old, new))
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return "; ".join(a), "; ".join(b)


# -- grading them ------------------------------------------------------------------------------


def impatient(course: Course) -> Course:
    """The course with shorter limits: mutants may never end, references are small."""
    config = course.config
    limits = config.limits.model_copy(
        update={
            "trace_seconds": min(5.0, config.limits.trace_seconds),
            "run_seconds": min(20.0, config.limits.run_seconds),
        }
    )
    return Course(course.root, config.model_copy(update={"limits": limits}))


def prove(
    grader: Grader,
    names: list[str],
    listed: list[Equivalent],
    step: Callable[[str], None] = lambda who: None,
    seeds: int = 1,
) -> list[Proof]:
    """Grade every mutant of these exercises, ``grader.jobs`` at a time; ``step`` is called after each.

    With several ``seeds`` a mutant that dies must die with each of them.
    """
    exercises = [grader.course.exercise(name) for name in names]
    allowed = {(e.exercise, e.task, e.was, e.becomes) for e in listed}

    def judge(mutant: Mutant) -> Verdict:
        known = (mutant.exercise, mutant.task, mutant.was, mutant.becomes) in allowed
        verdict = judge_mutant(grader, mutant, known, seeds)
        step(mutant.task)
        return verdict

    with ThreadPoolExecutor(grader.jobs) as pool:
        running = [(e, [pool.submit(judge, m) for m in mutants_of(e)]) for e in exercises]
        proofs = []
        for exercise, jobs in running:
            verdicts = [job.result() for job in jobs]
            found = list(problems(grader, exercise, verdicts, listed))
            proofs.append(Proof(exercise.id, verdicts, found, unproven(exercise, verdicts)))
    return proofs


def judge_mutant(grader: Grader, mutant: Mutant, known: bool = False, seeds: int = 1) -> Verdict:
    """Killed by a failed check of its task; ``broken`` when it is the grader that fails."""
    text = mutant.text
    results = results_of(grader, mutant.exercise, mutant.task, text)
    if any(never_ran(r) for r in results) and (again := unchecked(text)):
        text = again
        results = results_of(grader, mutant.exercise, mutant.task, text)
    seen_by = tuple(r.name for r in results if r.status == "failed" and not never_ran(r))
    broken = next((r for r in results if r.status == "broken"), None)
    if broken is not None:
        return Verdict(mutant, "broken", seen_by, f"{broken.name}: {broken.reason}")
    failed = next((r for r in results if r.status == "failed"), None)
    if failed is not None:
        escape = escaped(grader, mutant, text, results, seeds)
        return Verdict(mutant, "survived" if escape else "killed", seen_by, escape or f"{failed.name}: {failed.reason}")
    return Verdict(mutant, "equivalent" if known else "survived")


def escaped(grader: Grader, mutant: Mutant, text: str, results: list[Result], seeds: int) -> str:
    """How a mutant that was killed gets away all the same: with another seed, or with a check that it fails in public."""
    passed = {r.name for r in results if r.status == "passed" and r.public}
    shown = results_of(grader, mutant.exercise, mutant.task, text, public=True) if passed else []
    for result in shown:
        if result.name in passed and result.status == "failed":
            return f"passes {result.name} when graded, which it fails in public"
    if seeds > 1 and all(is_luck(r) for r in results if r.status == "failed"):
        exercise = grader.course.exercise(mutant.exercise)
        by_seed = results_by_seed(grader, exercise, text, SEEDS[:seeds], mutant.task)
        lucky = sum(all(r.status == "passed" for r in one.values()) for one in by_seed)
        if lucky:
            return f"passes every check of {mutant.task} with {lucky} of {seeds} seeds"
    return ""


def results_of(grader: Grader, exercise: str, task: str, text: str, *, public: bool = False) -> list[Result]:
    """The results of one task's checks, for a file that holds this text."""
    plans = [grader.plan(exercise, public)]
    return list(results_of_task(grader, grader.course.exercise(exercise), text, task, plans, public=public)[0].values())


def unchecked(text: str) -> str:
    """The same with ``check_vma=False``, as a learner writes when JAX refuses; nothing where that changes nothing."""
    tree, changed = syntax.parse(text), False
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and maps_devices(node) and not any(k.arg == "check_vma" for k in node.keywords):
            node.keywords.append(ast.keyword("check_vma", ast.Constant(False)))
            changed = True
    return ast.unparse(tree) + "\n" if changed else ""


def maps_devices(call: ast.Call) -> bool:
    """``shard_map(...)`` or ``partial(shard_map, ...)``."""
    made = called(call)
    return made == "shard_map" or (made == "partial" and bool(call.args) and last_name(call.args[0]) == "shard_map")


def never_ran(result: Result) -> bool:
    """Whether a check failed because there was nothing to look at; such a reason starts with the task's name."""
    return re.search(rf"(^|: |, ){re.escape(result.task)}(:| is )", result.reason) is not None


# -- what it comes to --------------------------------------------------------------------------


def problems(grader: Grader, exercise: Exercise, verdicts: list[Verdict], listed: list[Equivalent]) -> Iterator[str]:
    """What must be mended in one exercise, one line each; survivors first."""
    for task in exercise.tasks.values():
        text = ast.unparse(task_module(exercise, task)[0]) + "\n"
        for result in results_of(grader, exercise.id, task.name, text):
            if result.status != "passed":
                yield f"{task.name}: the reference itself does not pass {result.name} ({result.reason})"
    for verdict in verdicts:
        if verdict.fate == "survived":
            yield f"{told(verdict.mutant)} {verdict.reason or f'passes every check of {verdict.mutant.task}'}"
        if verdict.fate == "broken":
            yield f"{told(verdict.mutant)} breaks the grader in {verdict.reason}"
    alive = {key(v.mutant) for v in verdicts if v.fate == "equivalent"}
    for entry in listed:
        if entry.exercise == exercise.id and key(entry) not in alive:
            yield f"{EQUIVALENT} lists a mutant of {entry.task} that does not survive: `{entry.was}` -> `{entry.becomes}`"


def key(one: Mutant | Equivalent) -> tuple[str, str, str, str]:
    return one.exercise, one.task, one.was, one.becomes


def told(mutant: Mutant) -> str:
    return f"line {mutant.line}, {mutant.operator}: `{mutant.was}` -> `{mutant.becomes or '(nothing)'}`"


def unproven(exercise: Exercise, verdicts: list[Verdict]) -> list[str]:
    """Checks that no misconception names and no mutant that ran has failed."""
    proven = {name for slip in exercise.misconceptions.values() for name in slip.fails}
    proven |= {name for verdict in verdicts for name in verdict.seen_by}
    return [name for name in exercise.checks if name not in proven]


def course_problems(course: Course, proofs: list[Proof], listed: list[Equivalent]) -> Iterator[str]:
    """What concerns no exercise of the course: entries of exercises that are gone, and too many survivors.

    The share counts only where all exercises were tried: a small one may have a few equivalent mutants.
    """
    for entry in listed:
        if entry.exercise not in course.module_of:
            yield f"{EQUIVALENT} names the exercise {entry.exercise}, which is not in the course"
    total = sum(len(p.verdicts) for p in proofs)
    killed = sum(p.count("killed") for p in proofs)
    if {p.exercise for p in proofs} == set(course.module_of) and killed < LEAST_KILLED * total:
        yield f"{killed} of {total} mutants are killed, which is under {LEAST_KILLED:.0%}"


def equivalents(course: Course) -> list[Equivalent]:
    """The mutants that authors declare equivalent. Raises CourseError naming the entry at fault."""
    path: Path = course.root / "solutions" / EQUIVALENT
    if not path.is_file():
        return []
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except yaml.YAMLError as error:
        raise CourseError(f"{path}: not YAML: {error}") from None
    if not isinstance(entries, list):
        raise CourseError(f"{path}: a list of entries is expected")
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(Equivalent.model_validate(entry))
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(str(part) for part in problem["loc"]) or "entry"
            raise CourseError(f"{path}: entry {number}: {field}: {problem['msg']}") from None
    return found


def as_json(proofs: list[Proof], others: list[str]) -> dict[str, Any]:
    """Counts, all that is not killed, and problems, for ``--json``."""
    rows = [
        {
            "exercise": proof.exercise,
            "mutants": len(proof.verdicts),
            **{fate: proof.count(fate) for fate in get_args(Fate)},
            "not_run": proof.not_run,
            "alive": [
                {"fate": v.fate, "task": v.mutant.task, "operator": v.mutant.operator, "line": v.mutant.line,
                 "was": v.mutant.was, "becomes": v.mutant.becomes}
                for v in proof.verdicts if v.fate != "killed"
            ],
            "problems": proof.problems,
            "unproven": proof.unproven,
        }
        for proof in proofs
    ]  # fmt: skip
    return {"exercises": rows, "problems": others}
