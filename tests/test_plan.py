"""What is asked: which meshes, shapes and inputs, and that the tracer never gets a value."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from grader.exercise import Exercise, integers, normal
from grader.plan import HIDDEN_RUNS, plan


def an_exercise(*, second: bool = True) -> Exercise:
    exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 8, "y": 1}])
    exercise.id = "made_up"

    @exercise.task
    def f(a, b, *, mesh):
        """f"""

    args: dict[str, Any] = {"a": normal("I", 8, spec=("x", None)), "b": integers(0, 9, "I")}
    call = exercise.call(f, dims={"I": 16}, hidden_dims={"I": 24}, static={"dim": (0, 1)}, **args)
    other = exercise.call(f, dims={"I": 16}, **args)

    if second:

        @exercise.check(other, points=1)
        def before(seen):
            """before"""

    @exercise.check(call, points=1, public=True)
    def value(seen):
        """value"""

    @exercise.number(points=1, unit="us", params={"n": [1, 2]})
    def question(n):
        """How long?"""
        return n

    return exercise


def test_public_asks_have_public_sizes_and_one_set_of_inputs() -> None:
    asks = plan(an_exercise(), public=True, seed="s")
    assert [(dict(a.mesh), len(a.inputs)) for a in asks[:2]] == [({"x": 4, "y": 2}, 1), ({"x": 8, "y": 1}, 1)]
    assert asks[0].inputs[0]["a"].shape == (16, 8) and asks[0].inputs[0]["b"].dtype == np.int32
    assert asks[-1].task == "question"
    assert len(asks) == 3


def test_hidden_asks_have_other_sizes_and_several_sets_of_different_inputs() -> None:
    asks = [a for a in plan(an_exercise(second=False), public=False, seed="s") if a.inputs]
    assert {len(a.inputs) for a in asks} == {HIDDEN_RUNS}
    values = [one["a"] for a in asks for one in a.inputs]
    assert all(v.shape == (24, 8) for v in values)
    assert len({v.tobytes() for v in values}) == len(values)


def test_inputs_depend_on_the_seed_and_on_nothing_else() -> None:
    first, again = (plan(an_exercise(), public=False, seed="s") for _ in range(2))
    other = plan(an_exercise(), public=False, seed="t")
    assert first[0].inputs[0]["a"].tobytes() == again[0].inputs[0]["a"].tobytes()
    assert first[0].inputs[0]["a"].tobytes() != other[0].inputs[0]["a"].tobytes()


def test_a_check_more_does_not_change_the_inputs_of_the_others() -> None:
    with_it = [a for a in plan(an_exercise(), public=False, seed="s") if a.inputs and a.dims["I"] == 24]
    without = [a for a in plan(an_exercise(second=False), public=False, seed="s") if a.inputs]
    assert with_it[0].inputs[0]["a"].tobytes() == without[0].inputs[0]["a"].tobytes()


def test_the_tracer_gets_shapes_and_specs_and_no_value() -> None:
    ask = plan(an_exercise(second=False), public=False, seed="s")[0]
    request = ask.for_tracer(["a.py"])
    text = json.dumps(request)
    assert request["args"][0] == {"name": "a", "shape": [24, 8], "dtype": "float32", "spec": {"spec": ["x", None]}}
    assert set(request) == {
        "kind", "task", "mesh", "args", "static", "wrt", "cotangent", "out_specs", "check_vma", "platform", "files",
    }  # fmt: skip
    for number in ask.inputs[0]["a"].ravel()[:20]:
        assert repr(float(number))[:8] not in text
