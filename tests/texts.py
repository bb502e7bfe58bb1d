"""Texts of single tasks' references, alternatives and misconceptions, as learners would submit them.

This module also grades such texts and runs them without the grader.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from grader.batch.grade import Grader
from grader.common.cache import Cache
from grader.common.result import ExerciseReport, Result
from grader.course.finding import find_course
from grader.course.reference import reference_source
from grader.exercise import Alternative, Call, Exercise, Misconception, Task
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.plan import Ask
from grader.sandbox.tiers import best_tier
from grader.wire.trees import flat, leaves, mapped, rebuilt

ROOT = Path(__file__).resolve().parent.parent
CACHED = 1 << 29


@dataclass(frozen=True)
class Text:
    """A submission with one task, and the definitions that the task needs.

    Attributes:
        by: "the reference", or the name of an alternative or a misconception.
    """

    exercise: Exercise
    task: Task
    by: str
    module: ast.Module

    def __str__(self) -> str:
        return f"{self.exercise.id} {self.task.name}, {self.by}"


class Hintless(Grader):
    """A grader that gives no hints, because it would have to run every misconception to find a hint."""

    def _with_hints(self, exercise: Exercise, results: list[Result], *_: Any) -> list[Result]:
        return results


@contextmanager
def course_grader() -> Iterator[Grader]:
    """Yield a grader of the repository's course. It caches the results of programs."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    with (
        TemporaryDirectory() as folder,
        Cache(Path(folder), CACHED) as cache,
        Hintless(find_course(ROOT), best_tier("auto"), 1, cache=cache) as made,
    ):
        yield made


def traced_tasks(grader: Grader, only: str = "") -> Iterator[tuple[Exercise, Task]]:
    """Yield every traced task. ``only`` has beginnings of exercise names, separated by spaces."""
    for name in grader.course.module_of:
        if not only or name.startswith(tuple(only.split())):
            exercise = grader.course.exercise(name)
            for task in exercise.tasks.values():
                if task.kind != "function" and exercise.checks_of(task):
                    yield exercise, task


def right_texts(exercise: Exercise, task: Task) -> list[Text]:
    """Return the texts of the task's reference and alternatives."""
    others = [a for a in exercise.alternatives.values() if a.of is task]
    return [text_of(exercise, task), *(text_of(exercise, task, other) for other in others)]


def wrong_texts(exercise: Exercise, task: Task) -> list[Text]:
    """Return the texts of the task's misconceptions."""
    return [text_of(exercise, task, m) for m in exercise.misconceptions.values() if m.of is task]


def text_of(exercise: Exercise, task: Task, other: Alternative | Misconception | None = None) -> Text:
    module = ast.parse(reference_source(exercise, {}, other))
    needed = {t.name for t in _asked_with(exercise, task)}
    return Text(exercise, task, other.name if other else "the reference", reaching(module, needed))


def _asked_with(exercise: Exercise, task: Task) -> set[Task]:
    """Return the task, and the tasks of all checks that must pass before the grader tries the task's checks."""
    checks = exercise.checks_of(task)
    for check in checks:  # grows
        checks += [exercise.checks[name] for name in check.after if exercise.checks[name] not in checks]
    return {task, *(t for check in checks for t in check.tasks)}


def reaching(module: ast.Module, names: set[str]) -> ast.Module:
    """Return the imports, and the definitions of ``names`` with all statements that they need."""
    defined = {name: s for s in module.body for name in _defines(s)}
    needed, queue = set[str](), [*names]
    while queue:
        name = queue.pop()
        if name in defined and name not in needed:
            needed.add(name)
            queue += [n.id for n in ast.walk(defined[name]) if isinstance(n, ast.Name)]
    imports = (ast.Import, ast.ImportFrom)
    return ast.Module([s for s in module.body if isinstance(s, imports) or needed & _defines(s)], [])


def _defines(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}


# -- graded ------------------------------------------------------------------------------------


def graded(grader: Grader, exercise: str, text: str) -> ExerciseReport:
    """Grade a submission that has only this text, and return the report."""
    source = Source(f"{exercise}.py", (Chunk(f"{exercise}.py", text),))
    return grader.grade(Submission("me", {exercise: source}, (), text), [exercise]).exercises[0]


def results_of(report: ExerciseReport, exercise: Exercise, task: Task) -> dict[str, Result]:
    """Return the results of a task's checks."""
    names = {check.name for check in exercise.checks_of(task)}
    return {r.name: r for r in report.results if r.name in names}


# -- run directly ------------------------------------------------------------------------------


def computes(text: str, like: str, task: Task, asks: list[Ask]) -> str:
    """Run two programs on all asks with data, and return the first difference of their results; '' if there is none.

    As in the grader, programs may set a mesh inside ``jax.jit`` and may use names that new versions of JAX removed.
    """
    from grader.learner.surroundings import tolerant_jax

    with tolerant_jax():
        return _difference(text, like, task, asks)


def _difference(text: str, like: str, task: Task, asks: list[Ask]) -> str:
    functions = []
    for source in (text, like):
        space: dict[str, Any] = {"__name__": "submission"}
        try:
            exec(compile(source, "submission", "exec"), space)  # this is safe, because the text comes from this test
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        functions.append(space[task.name])
    for ask in asks:
        if isinstance(ask.of, Call) and ask.of.task is task and ask.inputs and not ask.hidden_inputs:
            try:
                one = _came_to(functions[0], ask, ask.of)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
            if problem := _differ(one, _came_to(functions[1], ask, ask.of)):
                return f"{dict(ask.mesh)}: {problem}"
    return ""


def _came_to(function: Any, ask: Ask, call: Call) -> list[Any]:
    """Run a function on the inputs of an ask's first step, and return the results and gradients."""
    import jax
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P

    kind = AxisType.Explicit if call.task.axis_types == "explicit" else AxisType.Auto
    sizes = tuple(ask.mesh.values())
    devices = jax.devices()[: int(np.prod(sizes))]
    mesh = jax.make_mesh(sizes, tuple(ask.mesh), axis_types=(kind,) * len(sizes), devices=devices)
    specs = {name: mapped(lambda array: P(*array.spec), tree) for name, tree in call.args.items()}
    given, inputs = {}, ask.inputs[0]
    for name, tree in call.args.items():
        values = [jax.device_put(value, NamedSharding(mesh, P(*array.spec))) for (_, array), (_, value) in
                  zip(leaves(tree, name), leaves(inputs[name], name), strict=True)]  # fmt: skip
        given[name] = rebuilt(tree, values)
    static = dict(ask.static)
    if call.task.kind == "body":
        local = jax.shard_map(
            lambda *args: function(*args, **static), mesh=mesh, in_specs=tuple(specs.values()),
            out_specs=call.task.out_specs, check_vma=ask.check_vma,
        )  # fmt: skip
    else:

        def local(*args: Any) -> Any:
            return function(*args, mesh=mesh, **static)

    if kind is AxisType.Explicit:
        with jax.set_mesh(mesh):
            return jax.tree.leaves(jax.jit(local)(*given.values()))
    if not call.wrt:
        return jax.tree.leaves(jax.jit(local)(*given.values()))
    due = flat(inputs["cotangent"]) if "cotangent" in inputs else []

    def with_gradients(given: dict[str, Any], due: list[Any]) -> Any:
        out, back = jax.vjp(lambda wrt: local(*(given | wrt).values()), {n: given[n] for n in call.wrt})
        results, structure = jax.tree.flatten(out)
        cotangents = [jax.numpy.zeros_like(r) for r in results]
        for at, value in zip(call.pulled, [v for v in due if v is not None], strict=True):
            cotangents[at] = jax.numpy.asarray(value, results[at].dtype)
        return out, back(jax.tree.unflatten(structure, cotangents))

    return jax.tree.leaves(jax.jit(with_gradients)(given, due))


def _differ(found: list[Any], due: list[Any]) -> str:
    if len(found) != len(due):
        return f"{len(found)} arrays for {len(due)}"
    for one, two in zip(found, due, strict=True):
        if one.shape != two.shape or one.dtype != two.dtype:
            return f"{one.dtype}{one.shape} for {two.dtype}{two.shape}"
        a, b = (np.asarray(v).astype(np.float64) for v in (one, two))
        largest = float(np.nanmax(np.abs(b), initial=0.0))
        near = 1e-2 if one.dtype.itemsize < 4 else 1e-4
        if not np.allclose(a, b, near, near * largest, equal_nan=True):
            return f"values differ by {np.nanmax(np.abs(a - b)):g} of {largest:g}"
    return ""
