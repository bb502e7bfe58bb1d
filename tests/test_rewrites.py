"""Honest programs in other styles pass. Other tests show that the search finds a refused honest program."""

from __future__ import annotations

import ast
import contextlib
import functools
import random
from collections.abc import Iterator

import numpy as np
import pytest

from grader.batch.grade import Grader
from grader.common.result import ExerciseReport
from tests import rewrites, skeletons, texts
from tests.rewriting import rewrites as ways
from tests.rewriting import written_again

PROGRAMS = 20
LEAST = 40  # styles that change some text of an exercise
TIMED = ["f2", "h2"]
# F1 and F3 resemble F2, and a program of M2 takes 30 s of CPU time. By hand: python -m tests.rewrites --only m2
BY_HAND = ["f1", "f3", "m2"]
MAPPED = "return jax.shard_map(lambda a: {}, mesh=mesh, in_specs=P('x'), out_specs={})(a)"
# For each rewrite: the last line of a task, and a type that the rewritten program must have. U is unreduced, R is
# reduced.
TYPED = {
    "sums of unreduced": (MAPPED.format("jax.lax.psum(a, 'x')", "P()"), "{U:x}"),
    "gathers to reduced": (MAPPED.format("jax.lax.all_gather(a, 'x')", "P('x')"), "{R:x}"),
    "copies by reduced": (MAPPED.format("a + jax.lax.pcast(jax.numpy.ones(4), 'x', to='varying')", "P('x')"), "{R:x}"),
    "an Explicit mesh": (MAPPED.format("2 * a", "P('x')"), "Explicit"),
    "results unreduced": (MAPPED.format("jax.lax.psum(a, 'x')", "P()"), "P(unreduced={'x'}"),
    "operands reduced": ("return jax.sharding.reshard(a @ jax.numpy.ones((4, 3)), P('x', None))", "{R:x}"),
    "reshard by shard_map": ("return jax.sharding.reshard(jax.sharding.reshard(a, P('x', reduced={'y'})), P('x'))", "preduced"),
}  # fmt: skip


@pytest.fixture(scope="module")
def grader(devices: int) -> Iterator[Grader]:
    """Yield a grader. In this process JAX can also run programs."""
    with texts.course_grader() as made:
        yield made


def again(way: str, text: str, seed: int = 0) -> str:
    """Return a rewritten program without its imports and helpers."""
    found = written_again(ast.parse(text), [w for w in ways() if w.name == way], random.Random(seed))
    assert found is not None
    return found[found.index("def f") :].strip()


@pytest.mark.slow
def test_references_and_alternatives_in_other_styles_pass(grader: Grader) -> None:
    found = rewrites.search(grader, 0, most=PROGRAMS, only="a b c e1 g2 g3 g4 h1 j3")
    assert found.refused == [], str(found)
    assert found.tried.total() == PROGRAMS and len(found.by_way) > PROGRAMS // 3


@pytest.mark.slow
@pytest.mark.parametrize("exercise", TIMED)
def test_a_timed_exercise_passes_in_every_style(grader: Grader, exercise: str) -> None:
    found = rewrites.cover(grader, exercise, 0)
    assert found.refused == [], str(found)
    assert len(found.ways()) > LEAST, str(found)


def test_every_timed_exercise_has_its_search(grader: Grader) -> None:
    timed = {target.exercise.id.split("_")[0] for target in skeletons.targets(grader, "")}
    assert timed == {*TIMED, *BY_HAND}


def test_a_right_program_that_is_refused_is_found(grader: Grader, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test lets the grader refuse every program. The search must report only programs with right values."""

    def refused(grader: Grader, exercise: str, text: str) -> ExerciseReport:
        report = texts.graded(grader, exercise, text)
        failed = [r.model_copy(update={"status": "failed", "reason": "no"}) for r in report.results]
        return report.model_copy(update={"results": failed})

    monkeypatch.setattr(rewrites, "graded", refused)
    exercise = grader.course.exercise("c1_no_communication")
    (text,) = texts.right_texts(exercise, exercise.tasks["matmul_local"])
    found, right = rewrites.Found(), ast.unparse(text.module)
    rewrites.try_one(grader, text, "as it is", right, found)
    assert {r.check for r in found.refused} == {c.name for c in exercise.checks_of(text.task)}
    rewrites.try_one(grader, text, "other values", right.replace("a @ b", "2 * (a @ b)"), found)
    assert found.tried == {exercise.id: 1} and sum(found.other.values()) == 1
    assert "values differ by" in str([*found.other])
    (context,) = (way for way in ways() if way.name == "mesh of the context")
    program = written_again(ast.parse(right), [context], random.Random(0))
    assert program is not None  # it sets a mesh inside jax.jit, which the grader allows and JAX alone refuses
    rewrites.try_one(grader, text, context.name, program, found)
    assert found.tried == {exercise.id: 2}, str(found.other)


def test_equal_seeds_give_equal_tries(grader: Grader) -> None:
    def first(seed: int) -> list[str]:
        found = rewrites.programs(grader, seed, "c3 f1")
        return [f"{text} {[way.name for way in ways]}" for (text, ways), _ in zip(found, range(20), strict=False)]

    assert first(3) == first(3) != first(4)


def test_a_helper_takes_the_place_of_an_operator_or_a_function() -> None:
    assert "return again_matmul(a, b)" in again("matmul: einsum", "def f(a, b):\n    return a @ b")
    assert "again_psum(a, 'x')" in again("axes in tuples", "def f(a):\n    return jax.lax.psum(a, 'x')")
    assert "jnp.transpose(a)" in again("methods as functions", "def f(a):\n    return a.T")
    both = again("methods as functions", "def f(a):\n    return a.sum(0) + jnp.sum(a, 0)")
    assert "jnp.sum(a, 0) + jnp.sum(a, 0)" in both


@pytest.mark.usefixtures("devices")
@pytest.mark.parametrize("way", TYPED)
def test_types_of_partial_sums_and_of_copies_change_no_value(way: str) -> None:
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    line, shown = TYPED[way]
    explicit = "reshard" in line
    kind = AxisType.Explicit if explicit else AxisType.Auto
    mesh = jax.make_mesh((4, 2), ("x", "y"), axis_types=(kind, kind))
    array = jax.device_put(np.arange(32.0).reshape(8, 4), NamedSharding(mesh, PartitionSpec("x")))
    text = f"import jax\nfrom jax.sharding import PartitionSpec as P\ndef f(a, mesh):\n    {line}\n"
    module = written_again(ast.parse(text), [w for w in ways() if w.name == way], random.Random(0))
    assert module is not None
    found = []
    with jax.set_mesh(mesh) if explicit else contextlib.nullcontext():
        for source in (text, module):
            space: dict = {}
            exec(source, space)
            function = jax.jit(functools.partial(space["f"], mesh=mesh))
            found.append((np.asarray(function(array)), shown in str(jax.make_jaxpr(function)(array))))
    (due, untyped), (value, typed) = found
    assert (value == due).all() and typed and not untyped


def test_a_range_becomes_a_loop_of_jax() -> None:
    text = "def f(a):\n    c = a\n    for i in range(3):\n        d = c * i\n        c = c + d\n    return c"
    for way in ("range as fori", "range as fori peeled", "range as scan peeled", "range as fori unrolled"):
        space: dict = {}
        module = written_again(ast.parse(text), [w for w in ways() if w.name == way], random.Random(0))
        assert module is not None and "jax.lax." in module
        exec(module, space)
        assert space["f"](2) == 12, way  # (2 + 0) + 1 * 2 = 4, 4 + 2 * 4 = 12


def test_a_loop_that_does_more_than_give_names_values_stays() -> None:
    text = "def f(a):\n    c = []\n    for i in range(3):\n        c.append(a)\n    return c"
    assert written_again(ast.parse(text), [w for w in ways() if w.name == "range as fori"], random.Random(0)) is None


def test_variables_are_renamed_and_arguments_are_not() -> None:
    found = again(
        "other variables", "def f(a):\n    total = a\n    def g(b):\n        return b + total\n    return g(total)"
    )
    assert "total" not in found and "def f(a)" in found and "(b)" in found
    space: dict = {}
    exec(found, space)
    assert space["f"](2) == 4


def test_statements_that_need_each_other_keep_their_order() -> None:
    text = "def f(a):\n    b = a + 1\n    c = b * 2\n    d = a - 1\n    c = c + d\n    return (b, c, d)"
    orders = {again("other order", text, seed) for seed in (2, 3, 4, 6)}
    for order in orders:
        space: dict = {}
        exec(order, space)
        assert space["f"](3) == (4, 10, 2)
    assert len(orders) > 1
