"""Grade submissions with trees, steps and relations. The exercises are examples of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from grader.authoring.declarations import judged_modes, undecided_modes
from grader.authoring.mutants.making import mutants_of
from grader.batch.grade import Grader
from grader.batch.in_process import InProcess
from grader.batch.why import why
from grader.batch.workers import Workers
from grader.common.result import Result
from grader.course.build import build
from grader.course.loading import Course, load_course
from grader.course.reference import reference_source
from grader.intake.submission import Chunk, Source, Submission
from grader.sandbox.tiers import available
from tests.made_up import made_up
from tests.test_documented import EXAMPLES, course_of

TIER = next(t for t in ("sandlock", "bwrap", "none") if not available(t))
TEXTS = dict(EXAMPLES)


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    made = Workers(made_up(tmp_path_factory.mktemp("course")), TIER)
    yield made
    made.close()


@pytest.fixture
def course(request: pytest.FixtureRequest, tmp_path: Path) -> Course:
    name = request.param
    return course_of(tmp_path, name, TEXTS[name])


def submitted(course: Course, text: str) -> Submission:
    (name,) = course.module_of
    return Submission("ada", {name: Source(f"{name}.py", (Chunk(f"{name}.py", text),))}, (), "digest")


def right(course: Course, was: str = "", becomes: str = "") -> str:
    """Return the solution, with the text ``was`` replaced by ``becomes``."""
    text = reference_source(course.exercise(next(iter(course.module_of))), {})
    assert was in text
    return text.replace(was, becomes) if was else text


def graded(course: Course, workers: Workers, text: str, *, public: bool = False) -> dict[str, Result]:
    grader = Grader(course, TIER, here=cast(Any, workers))
    report = grader.grade(submitted(course, text), list(course.module_of), public=public)
    return {result.name: result for result in report.exercises[0].results}


trees, steps, relations = (pytest.mark.parametrize("course", [f"{page}_0"], indirect=True) for page in ("trees", "steps", "relations"))  # fmt: skip


# -- trees -------------------------------------------------------------------------------------


@trees
@pytest.mark.parametrize(
    ("was", "becomes", "told"),
    [
        ("(local)\n", "(params)\n", "with check_vma=True, on the mesh (x=4, y=2), grads['b']: on device (x=0, y=0), all values are wrong, the first at [0]; every value is 4 times too large, and 4 is the size of axis x: is there one sum too many?"),
        ('psum((loss, grads), "x")', 'psum(loss, "x"), jax.tree.map(lambda g: jax.lax.pmax(g, "x"), grads)', "with check_vma=True, on the mesh (x=4, y=2), grads['b']: on device (x=0, y=0), "),
        ('return jax.lax.psum((loss, grads), "x")', 'return jax.lax.psum(loss, "x"), {"w": grads["w"]}', "loss_and_grads: returned a dict of 'w' at [1], expected {'b', 'w'}"),
        ('return jax.lax.psum((loss, grads), "x")', "pass", "loss_and_grads: returned None, expected (loss, {'b', 'w'})"),
    ],
)  # fmt: skip
def test_reasons_name_the_mode_and_the_leaf(
    course: Course, workers: Workers, was: str, becomes: str, told: str
) -> None:
    result = graded(course, workers, right(course, was, becomes))["value"]
    assert (result.status, result.reason[: len(told)]) == ("failed", told)


@trees
def test_each_check_vma_mode_is_judged(course: Course, workers: Workers) -> None:
    inner = "loss, grads = jax.value_and_grad(lambda p: jnp.sum((x @ p['w'] + p['b'] - y) ** 2))(params)\n"
    head = "import jax\nimport jax.numpy as jnp\ndef loss_and_grads(params, x, y):\n    "
    unsummed = graded(course, workers, f"{head}{inner}    return jax.lax.psum(loss, 'x'), grads\n")["value"]
    assert unsummed.reason.startswith("with check_vma=False, on the mesh (x=4, y=2), grads['b']: ")
    assert unsummed.misconception == "never_summed"
    again = graded(course, workers, f"{head}{inner}    return jax.lax.psum((loss, grads), 'x')\n")["value"]
    assert again.reason.startswith("with check_vma=True, on the mesh (x=4, y=2), grads['b']: ")
    assert again.misconception == "summed_again"


@trees
def test_verify_reports_which_modes_are_judged(course: Course, tmp_path: Path) -> None:
    exercise = course.exercise("trees_0")
    assert list(judged_modes(exercise)) == ["loss_and_grads is judged with check_vma=True and with check_vma=False"]
    assert list(undecided_modes(exercise)) == []
    silent = course_of(tmp_path / "silent", "trees_0", TEXTS["trees_0"].replace('    check_vma="both",\n', ""))
    assert list(undecided_modes(silent.exercise("trees_0"))) == [
        "loss_and_grads takes a gradient inside shard_map, where check_vma decides what is summed: "
        'declare check_vma="both", True or False'
    ]


# -- steps -------------------------------------------------------------------------------------


@steps
def test_a_value_wrong_in_a_later_step_is_reported_with_the_step(course: Course, workers: Workers) -> None:
    late = right(course, 't = jax.lax.all_gather(params["w"], "x", tiled=True), opt["t"] + 1', 't = jax.lax.all_gather(params["w"], "x", tiled=True), opt["t"] * 2 + 1')  # fmt: skip
    result = graded(course, workers, late)["trained"]
    assert result.reason.startswith("on the mesh (x=4), step 2: opt['t']: on device (x=0), the value is wrong")


@steps
def test_results_that_cannot_be_fed_back_are_the_learners_fault(course: Course, workers: Workers) -> None:
    wide = right(course, "return step(params, opt, x, y)", "p, o, l = step(params, opt, x, y); return p | {'b': p['b'][:2]}, o, l")  # fmt: skip
    result = graded(course, workers, wide)["trained"]
    assert result.reason == "train_step: returned float32[2] for params['b'], the next step takes float32[3]"


@steps
def test_no_fed_back_result_breaks_a_check(course: Course, workers: Workers) -> None:
    for bad in ("jnp.nan", "1e38"):
        wild = right(course, "return step(params, opt, x, y)", f"p, o, l = step(params, opt, x, y); return p | {{'w': p['w'] * {bad}}}, o, l")  # fmt: skip
        found = graded(course, workers, wild)
        assert {r.status for r in found.values()} == {"failed", "blocked"}


@steps
def test_check_in_a_notebook_agrees_with_grading(course: Course) -> None:
    build(course)
    learners = load_course(course.root / "exercises" / "course.yaml")
    space: dict[str, Any] = {}
    exec(right(course), space)
    grader = Grader(learners, "none", here=InProcess(space))
    report = grader.grade(Submission("me", {"steps_0": Source("this notebook", ())}, (), ""), ["steps_0"], public=True)
    assert [(r.name, r.status) for r in report.exercises[0].results] == [("trained", "passed")]


@steps
def test_mutants_swap_the_keys_of_trees(course: Course) -> None:
    becomes = {m.becomes for m in mutants_of(course.exercise("steps_0")) if m.operator == "key"}
    assert any("opt['v'][n], opt['v'][n]" in text for text in becomes)
    assert any("{'m': v, 'v': m, 't': t}" in text for text in becomes)


# -- relations ---------------------------------------------------------------------------------


@pytest.mark.slow
@relations
def test_why_shows_every_call_that_a_relation_compares(course: Course) -> None:
    text = right(course, "jax.checkpoint(layer) if remat else layer", "layer")
    found = why(course, TIER, submitted(course, text), "memory", None)
    assert (found.result.status, found.result.misconception) == ("failed", "forgot_nothing")
    assert found.result.reason.startswith("on the mesh (x=4), the program needs ")
    asked = [line for line in found.lines if line.startswith("loss: ")]
    assert "'remat': True" in asked[0] and "'remat': False" in asked[1]
    assert [line.split(",")[0] for line in asked[:4]] == ["loss: mesh {'x': 4}"] * 2 + ["loss: mesh {'x': 2"] * 2
    # The grader runs the program once on public inputs, and twice on hidden inputs.
    assert len([line for line in found.lines if line.startswith("  run ")]) == 4 + 2 * 2


@pytest.mark.slow
@relations
def test_why_shows_all_meshes_of_a_relation(course: Course) -> None:
    found = why(course, TIER, submitted(course, right(course)), "scaling", None)
    assert found.result.status == "passed"
    assert [line[:24] for line in found.lines if not line.startswith("  ")] == [
        "loss: mesh {'x': 4}, dim", "loss: mesh {'x': 2, 'y':",
    ] * 3  # fmt: skip


@relations
def test_a_fault_of_one_call_is_reported_for_the_relation(course: Course, workers: Workers) -> None:
    text = right(course, "    def layer", "    assert not remat\n\n    def layer")
    found = graded(course, workers, text)
    assert [r.status for r in found.values()] == ["passed", "failed", "blocked", "blocked"]
    alone = TEXTS["relations_0"].replace(", after=[value, value_again]", "").replace("after=[value_again], ", "")
    other = course_of(course.root / "alone", "relations_0", alone)
    assert "loss: AssertionError" in graded(other, workers, text)["memory"].reason


@relations
def test_a_public_relation_hands_out_all_its_calls(course: Course) -> None:
    build(course)
    public = (course.root / "exercises" / "01_shown" / "_public" / "relations_0.py").read_text()
    assert "@exercise.check([again, kept], points=1, public=True, after=[value, value_again])" in public
    assert "484" not in public and "every_mesh" not in public


@pytest.mark.slow
def test_a_relation_of_two_tasks_keeps_both_in_a_mutant(tmp_path: Path) -> None:
    text = TEXTS["relations_0"]
    other = '\n\n@exercise.task(hints=["h"])\ndef twin(ws, x, *, mesh):\n    """The same."""\n    return jnp.sum(x)\n'
    asked = '\n\nso = exercise.call(twin, **arrays, dims=DIMS, hidden_dims=HIDDEN)\n\n\n@exercise.check([again, so], points=1)\ndef both(one, other):\n    """both"""\n'
    exercise = course_of(tmp_path, "relations_0", text + other + asked).exercise("relations_0")
    assert all("def twin" in m.text and "def loss" in m.text for m in mutants_of(exercise))
