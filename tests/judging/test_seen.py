"""Build the trees, steps and gradients that a check sees from flat arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from grader.common.observation import Observation
from grader.exercise import Exercise, like, normal
from grader.expect import expect_close
from grader.judging.judge import judge_checks
from grader.judging.plan import Ask, plan
from grader.judging.seen import AskFinding, Finding, seen_of
from tests.seen import sharded


def an_exercise(look: Any = lambda seen: None, **more: Any) -> Exercise:
    exercise = Exercise(meshes=[{"x": 2}])

    @exercise.task
    def step(params, x, *, mesh):
        """One step."""

    params = {"w": normal(4), "b": normal(2, dtype="bfloat16")}
    call = exercise.call(step, params=params, x=normal(4), returns=(like("params"), "loss"), **more)

    @exercise.check(call, points=1)
    def value(seen):
        """value"""
        look(seen)

    return exercise


def answered(exercise: Exercise, *factors: float) -> list[AskFinding]:
    """Answer all asks. Each step returns ``b``, ``w``, a loss and the gradients, all filled with the step's factor."""

    def observed(ask: Ask) -> Observation:
        shapes = [((2,), "bfloat16"), ((4,), "float32"), ((), "float32")]
        shapes += [((2,), "bfloat16"), ((4,), "float32")] if ask.of.wrt else []  # type: ignore[union-attr]
        chosen = [factors[at % len(factors)] for at in range(len(ask.inputs))]
        return Observation([[sharded(np.full(s, f), (), ask.mesh, d) for s, d in shapes] for f in chosen], [], 0)

    return [AskFinding(ask, Finding(observed(ask))) for ask in plan(exercise, public=False, seed="s")]


def test_a_result_has_its_structure_and_each_leaf_its_name_and_dtype() -> None:
    first = answered(an_exercise(wrt=["params"]), 1.0)[0]
    (seen,) = seen_of(first, learners_run=False)
    params, loss = seen.out
    assert [(a.name, a.due.name) for a in (params["b"], params["w"])] == [
        ("params['b']", "bfloat16"), ("params['w']", "float32"),
    ]  # fmt: skip
    assert (loss.name, loss.due) == ("loss", None)  # the arguments do not determine the dtype of the loss
    grads = seen.grads["params"]
    assert [grads[n].name for n in ("b", "w")] == ["the gradient of params['b']", "the gradient of params['w']"]
    assert grads["b"].due.name == "bfloat16" and seen.params["w"].dtype == np.float64 and seen.steps == []


def test_a_step_begins_with_the_results_of_the_previous_step() -> None:
    first, *_ = found = answered(an_exercise(steps=3), 1.0, 2.0, 3.0)
    (seen,) = seen_of(first, learners_run=False)
    assert [step.params["w"][0] for step in seen.steps[1:]] == [1, 2]
    assert [step.out[1].value for step in seen.steps] == [1, 2, 3] and seen.out[1].value == 3
    assert (seen.params["w"] == seen.steps[0].params["w"]).all() and seen.params["w"][0] not in (1, 2)
    assert len({step.x.tobytes() for step in seen.steps}) == 3  # each step has a new x
    assert seen.out[0]["w"].name == "step 3: params['w']"
    secret = [list(seen_of(a, learners_run=False)) for a in found if a.ask.hidden_inputs]
    assert [len(runs) for runs in secret] == [2] and all(len(run.steps) == 3 for run in secret[0])


def test_later_steps_receive_only_arguments_that_are_not_fed_back() -> None:
    ask = plan(an_exercise(steps=3), public=False, seed="s")[0]
    assert [list(one) for one in ask.inputs] == [["params", "x"], ["x"], ["x"]]
    assert [a.shape for a in ask.arrays()[0]] == [(2,), (4,), (4,), (4,), (4,)]
    assert ask.for_runner([])["fed"] == [[0, 0], [1, 1]]


def test_no_returned_value_breaks_the_check_of_the_next_step() -> None:
    def look(seen: Any) -> None:
        for step in seen.steps:
            expect_close(step.out[1], np.exp(step.params["w"]).sum() * 0 + 1e5, dtype="float32")

    exercise = an_exercise(look, steps=2)
    (result,) = judge_checks(exercise, answered(exercise, 1e5), public=False)
    assert (result.status, result.reason) == (
        "failed", "step 2: loss: the results of the previous step lead to NaN or infinite values",
    )  # fmt: skip


def test_operations_are_tried_on_the_mesh_of_most_axes_and_when_graded_on_hidden_dimensions() -> None:
    exercise = Exercise(meshes=[{"x": 8, "y": 1}, {"x": 2, "y": 2}])

    @exercise.task
    def double(a, *, mesh):
        """Twice."""

    call = exercise.call(double, a=normal("I"), dims={"I": 8}, hidden_dims={"I": 16})

    @exercise.check(call, points=1, public=True)
    def value(seen):
        """value"""

    class Never:
        def matter(self, what: str) -> list[bool]:
            raise AssertionError

    def tried(public: bool) -> set[tuple]:
        """Return (size of x, dimension I, inputs are hidden) for each ask with operations that the grader tries."""
        found = set()
        for ask in plan(exercise, public=public, seed="s"):
            outputs = [[sharded(np.zeros(ask.dims["I"]), (), ask.mesh)] for _ in ask.inputs]
            of_program = Finding(Observation(outputs, [], 0, poison=Never()))
            for seen in seen_of(AskFinding(ask, of_program), learners_run=public):
                found |= {(ask.mesh["x"], ask.dims["I"], ask.hidden_inputs)} if seen.poison else set()
        return found

    assert tried(public=True) == {(2, 8, False)}
    assert tried(public=False) == {(2, 16, False), (2, 16, True)}
