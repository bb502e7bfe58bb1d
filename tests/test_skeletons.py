"""Fakes and disguises earn no additional points. Other tests show that the search finds a gain."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator

import pytest

from grader.batch.grade import Grader
from grader.common.result import ExerciseReport
from tests import skeletons, texts
from tests.disguises import BITS_TEXT, PAIRS_TEXT, disguises
from tests.faking import BRANCHES, Shown, fakes, shown

TRIES = 3
TIMED = "f1"


@pytest.fixture(scope="module")
def grader(devices: int) -> Iterator[Grader]:
    with texts.course_grader() as made:
        yield made


@pytest.fixture(scope="module")
def target(grader: Grader) -> skeletons.Target:
    return skeletons.targets(grader, TIMED)[0]


def fake(kind: str) -> Shown:
    return Shown(tuple(f for f in fakes() if f.name == kind), "dtype", BRANCHES["dtype"][0])


@pytest.mark.slow
def test_no_program_of_a_minute_gains(grader: Grader) -> None:
    found = skeletons.search(grader, 0, most=TRIES, only="c1 c3 e1 f1 f2 h2 h4")
    assert found.gains == [], str(found)
    assert sum(n for (of, _), n in found.tried.items() if of == "by") == 2 * TRIES and found.timed > TRIES // 4


def test_a_fake_that_the_report_takes_for_the_honest_program_has_gained(
    grader: Grader, target: skeletons.Target
) -> None:
    """The test marks all checks of a fake as passed. The search must report each check of its time as a gain.

    A shorter step is a gain only if the grader did not judge the fake's values.
    """
    text, task = target.texts[0], target.task.name
    how = fake("1x1 matmuls")
    programs = [shown(text.module, task, Shown(how.fakes, "", test)) for test in ("False", how.test)]
    honest, faked = (texts.graded(grader, target.exercise.id, program) for program in programs if program)
    right = {r.name: r.status for r in texts.results_of(honest, target.exercise, target.task).values()}
    assert set(right.values()) == {"passed"}
    assert skeletons.gained(grader, target, honest, honest) == ([], False)
    fooled = faked.model_copy(update={"results": honest.results})
    assert skeletons.gained(grader, target, fooled, honest) == ([], True)
    evidence = [two if two.step is not None else one for one, two in zip(honest.evidence, faked.evidence, strict=True)]
    fooled = fooled.model_copy(update={"evidence": evidence})
    gains, was_shown = skeletons.gained(grader, target, fooled, honest)
    assert was_shown and [g.split()[1] for g in gains[:-3]] == [c.name for c in target.timing]
    assert all("the honest program's takes" in g for g in gains[-3:])


def test_an_unused_fake_gains_nothing(grader: Grader, target: skeletons.Target) -> None:
    how = fake("matmuls in int8")
    program = shown(target.texts[0].module, target.task.name, Shown(how.fakes, "", "False"))
    assert program is not None
    report: ExerciseReport = texts.graded(grader, target.exercise.id, program)
    plain = texts.graded(grader, target.exercise.id, ast.unparse(target.texts[0].module))
    assert report.earned == plain.earned and skeletons.gained(grader, target, report, plain) == ([], False)


def test_every_fake_differs_from_the_honest_program_of_some_timed_task(grader: Grader) -> None:
    modules = [(t.texts[0].module, t.task.name) for t in skeletons.targets(grader, "f h2 m2")]
    for one in fakes():
        assert any(shown(module, task, Shown((one,), "", "True")) for module, task in modules), one.name


def test_every_condition_of_a_fake_is_valid_python(target: skeletons.Target, grader: Grader) -> None:
    for by in BRANCHES:
        for test in target.tests(grader, by):
            assert "{" not in test.replace("{k: v for", "").replace("in {", "").replace("[{", "") or by in (
                "exact sizes",
                "mesh",
                "static",
            )
            ast.parse(test, mode="eval")


def test_a_mesh_of_pairs_meets_every_device_once() -> None:
    space: dict = {}
    exec(PAIRS_TEXT.split("def again_psum")[0], space)
    for n in (4, 6, 8):
        rounds = [space["again_pairs"](n, turn) for turn in range(n - 1)]
        met = [tuple(sorted(pair)) for pairs in rounds for pair in pairs]
        assert sorted(met) == [(a, b) for a in range(n) for b in range(a + 1, n)]
        assert all(sorted(d for pair in pairs for d in pair) == [*range(n)] for pairs in rounds)


def test_a_copy_by_compare_is_the_array(devices: int) -> None:
    import jax
    import jax.numpy as jnp

    space: dict = {"jnp": jnp, "lax": jax.lax}
    exec(BITS_TEXT, space)
    for dtype in (jnp.float32, jnp.bfloat16):
        array = jax.random.normal(jax.random.key(0), (3, 5), dtype)
        assert (space["again_bits"](array) == array).all()


@pytest.mark.slow
def test_equal_seeds_give_equal_disguises() -> None:
    def first(seed: int) -> list[tuple[str, str]]:
        pick = random.Random(seed)
        return [(d.kind, d.by) for d in (disguises(pick, body=True) for _ in range(30))]

    assert first(1) == first(1) != first(2) and len({kind for kind, _ in first(1)}) > 6
