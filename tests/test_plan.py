"""What is asked: which meshes, shapes and inputs, and that the tracer never gets a value."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.exercise import AuthorError, Exercise, integers, normal
from grader.plan import HIDDEN_RUNS, Ask, plan, rng


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


def of_values(asks: list[Ask]) -> list[bytes]:
    return [array.tobytes() for ask in asks for one in ask.inputs for array in one.values()]


@given(st.text(), st.text())
def test_what_the_tracer_is_told_does_not_depend_on_the_seed(first: str, second: str) -> None:
    """So no input can be in it, not even in disguise."""
    one, two = (plan(an_exercise(), public=False, seed=seed) for seed in (first, second))
    told = [json.dumps([ask.for_tracer(["a.py"]) for ask in asks]) for asks in (one, two)]
    assert told[0] == told[1]
    assert (of_values(one) == of_values(two)) == (first == second)


def test_public_and_hidden_asks_draw_other_values_of_one_seed() -> None:
    public, hidden = (plan(an_exercise(), public=p, seed="s") for p in (True, False))
    assert {d["I"] for d in (a.dims for a in public) if d} == {16}
    assert not set(of_values(public)) & set(of_values(hidden))


def test_what_a_check_is_called_with_does_not_depend_on_where_the_others_stand() -> None:
    exercise = an_exercise()
    before = {a.of: of_values([a]) for a in plan(exercise, public=False, seed="s") if a.inputs}
    exercise.checks = dict(reversed(exercise.checks.items()))
    after = {a.of: of_values([a]) for a in plan(exercise, public=False, seed="s") if a.inputs}
    assert before == after and len(before) == 2


def test_two_exercises_draw_other_values() -> None:
    one, two = an_exercise(), an_exercise()
    two.id = "another"
    assert of_values(plan(one, public=False, seed="s"))[0] != of_values(plan(two, public=False, seed="s"))[0]


def test_a_call_is_asked_once_for_all_its_checks() -> None:
    exercise = an_exercise(second=False)
    count = len(plan(exercise, public=False, seed="s"))
    call = exercise.checks["value"].call

    @exercise.check(call, points=1, after=exercise.checks["value"])
    def again(seen):
        """again"""

    assert len(plan(exercise, public=False, seed="s")) == count


def a_function(hidden: Any = None) -> Exercise:
    exercise = Exercise()

    @exercise.function
    def f(n, of=()):
        """f"""

    cases = exercise.cases(f, public=[{"n": 1}, {"n": 2, "of": (3, None)}], hidden=hidden)

    @exercise.check(cases, points=1, public=True)
    def value(seen):
        """value"""

    return exercise


def test_hidden_cases_come_after_the_public_ones_and_are_the_same_every_time() -> None:
    exercise = a_function(lambda rng: [{"n": int(rng.integers(1 << 40))} for _ in range(3)])
    (public,), (hidden,), (again,), (other,) = (
        plan(exercise, public=p, seed=seed) for p, seed in ((True, "s"), (False, "s"), (False, "s"), (False, "t"))
    )
    assert public.cases == [{"n": 1}, {"n": 2, "of": (3, None)}]
    assert hidden.cases[:2] == public.cases and len(hidden.cases) == 5
    assert hidden.cases == again.cases != other.cases


def test_a_function_is_asked_with_its_arguments_and_with_nothing_it_should_return() -> None:
    request = plan(a_function(), public=False, seed="s")[0].for_tracer([])
    assert request == {
        "kind": "function",
        "task": "f",
        "cases": [{"dict": [["n", 1]]}, {"dict": [["n", 2], ["of", {"tuple": [3, None]}]]}],
    }


def test_a_question_is_asked_by_its_name_alone() -> None:
    assert plan(an_exercise(), public=False, seed="s")[-1].for_tracer(["a.py"]) == {
        "kind": "number",
        "task": "question",
    }


def test_a_cotangent_is_the_last_input_and_is_described() -> None:
    exercise = Exercise(meshes=[{"x": 2}])

    @exercise.body(out_specs=("x", None))
    def f(a):
        """f"""

    call = exercise.call(
        f, a=normal("I", 4, spec=("x",)), dims={"I": 6}, wrt=("a",), cotangent=normal("I", spec=("x",))
    )

    @exercise.check(call, points=1)
    def value(seen):
        """value"""

    (ask,) = plan(exercise, public=False, seed="s")
    assert [list(one) for one in ask.inputs] == [["a", "cotangent"]] * 3
    assert [[a.shape for a in run] for run in ask.arrays()] == [[(6, 4), (6,)]] * 3
    request = ask.for_tracer([])
    assert request["cotangent"] == {"name": "cotangent", "shape": [6], "dtype": "float32", "spec": {"spec": ["x"]}}
    assert (request["kind"], request["wrt"], request["out_specs"]) == ("body", ["a"], {"tuple": ["x", None]})


def test_a_size_that_nobody_gave_is_the_authors_fault() -> None:
    exercise = Exercise()

    @exercise.task
    def f(a, *, mesh):
        """f"""

    call = exercise.call(f, a=normal("I", "J"), dims={"I": 4})

    @exercise.check(call, points=1)
    def value(seen):
        """value"""

    with pytest.raises(AuthorError, match="no size given for dimension 'J'"):
        plan(exercise, public=False, seed="s")


def test_a_generator_depends_on_seed_and_place_and_does_not_mix_them_up() -> None:
    drawn = {s + "|" + w: rng(s, w).integers(1 << 62) for s, w in (("a", "b"), ("ab", ""), ("", "ab"), ("a", "c"))}
    assert len(set(drawn.values())) == 4
    assert rng("a", "b").integers(1 << 62) == drawn["a|b"]
