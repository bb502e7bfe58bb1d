"""The asks of an exercise have meshes, shapes and inputs. The tracer gets the shapes, but no values of inputs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.exercise import AuthorError, Exercise, integers, normal
from grader.judging.plan import HIDDEN_SETS, Ask, plan, rng


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


def calls(exercise: Exercise, *, secret: bool, seed: str = "s") -> list[Ask]:
    return [a for a in plan(exercise, public=False, seed=seed) if a.inputs and a.hidden_inputs == secret]


def test_a_grader_asks_all_that_learners_can_try_then_hidden_sizes_then_hidden_inputs() -> None:
    public = [a for a in plan(an_exercise(second=False), public=True, seed="s") if a.inputs]
    asks = [a for a in plan(an_exercise(second=False), public=False, seed="s") if a.inputs]
    assert [(a.dims["I"], len(a.inputs), a.hidden_inputs) for a in asks] == [
        (16, 1, False), (16, 1, False), (24, 1, False), (24, 1, False), (24, HIDDEN_SETS, True), (24, HIDDEN_SETS, True),
    ]  # fmt: skip
    assert of_values(asks[:2]) == of_values(public)
    assert len(set(of_values(asks))) == len(of_values(asks))


def test_a_call_that_learners_do_not_have_is_asked_on_hidden_sizes_only() -> None:
    exercise = an_exercise()
    hidden = exercise.checks["before"].call
    assert {(a.dims["I"], a.hidden_inputs) for a in calls(exercise, secret=False) if a.of is hidden} == {(16, False)}


def test_reported_inputs_do_not_depend_on_the_seed_and_hidden_ones_do() -> None:
    first, again, other = (plan(an_exercise(), public=False, seed=seed) for seed in "sst")
    shown, secret = (
        [of_values([a for a in asks if a.hidden_inputs == late]) for asks in (first, again, other)]
        for late in (False, True)
    )
    assert shown[0] == shown[1] == shown[2]
    assert secret[0] == secret[1] and not set(secret[0]) & set(secret[2])


def test_an_added_check_does_not_change_the_inputs_of_other_checks() -> None:
    with_it = [a for a in calls(an_exercise(), secret=True) if a.dims["I"] == 24]
    without = calls(an_exercise(second=False), secret=True)
    assert of_values(with_it) == of_values(without)


def test_asks_with_hidden_inputs_use_programs_that_were_already_asked_for() -> None:
    exercise = an_exercise()
    assert {a.program_key for a in calls(exercise, secret=True)} <= {
        a.program_key for a in calls(exercise, secret=False)
    }


def test_the_tracer_gets_shapes_and_specs_and_no_value() -> None:
    ask = calls(an_exercise(second=False), secret=True)[0]
    request = ask.for_runner(["a.py"])
    text = json.dumps(request)
    assert request["args"][0] == {"name": "a", "shape": [24, 8], "dtype": "float32", "spec": {"spec": ["x", None]}}
    assert set(request) == {
        "kind", "task", "mesh", "args", "takes", "static", "returns", "wrt", "cotangents", "steps", "fed", "out_specs",
        "check_vma", "axis_types", "platform", "files",
    }  # fmt: skip
    for number in ask.inputs[0]["a"].ravel()[:20]:
        assert repr(float(number))[:8] not in text


def of_values(asks: list[Ask]) -> list[bytes]:
    return [array.tobytes() for ask in asks for one in ask.inputs for array in one.values()]


@given(st.text(), st.text())
def test_requests_to_the_tracer_do_not_depend_on_the_seed(first: str, second: str) -> None:
    """The seed determines the hidden inputs. A request that does not depend on the seed contains no hidden inputs."""
    one, two = (plan(an_exercise(), public=False, seed=seed) for seed in (first, second))
    asked = [json.dumps([ask.for_tracer(["a.py"]) for ask in asks]) for asks in (one, two)]
    assert asked[0] == asked[1]
    one, two = ([a for a in asks if a.hidden_inputs] for asks in (one, two))
    assert (of_values(one) == of_values(two)) == (first == second)


def test_hidden_inputs_differ_from_all_inputs_that_learners_have() -> None:
    for seed in ("s", "public"):
        asks = plan(an_exercise(), public=False, seed=f"{seed}/hidden")
        assert not set(of_values([a for a in asks if a.hidden_inputs])) & set(
            of_values([a for a in asks if not a.hidden_inputs])
        )


def test_inputs_of_a_check_do_not_depend_on_the_order_of_checks() -> None:
    exercise = an_exercise()
    before = {a.program_key: of_values([a]) for a in calls(exercise, secret=True)}
    exercise.checks = dict(reversed(exercise.checks.items()))
    after = {a.program_key: of_values([a]) for a in calls(exercise, secret=True)}
    assert before == after and len(before) == 4


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


def test_seedless_cases_follow_public_ones_and_hidden_cases_are_separate() -> None:
    exercise = a_function(lambda rng: [{"n": int(rng.integers(1 << 40))} for _ in range(3)])
    (public,) = plan(exercise, public=True, seed="s")
    (shown, secret), (shown_again, again), (shown_other, other) = (plan(exercise, public=False, seed=s) for s in "sst")
    assert public.cases == [{"n": 1}, {"n": 2, "of": (3, None)}]
    assert shown.cases[:2] == public.cases and len(shown.cases) == 5 and not shown.hidden_inputs
    assert shown.cases == shown_again.cases == shown_other.cases
    assert len(secret.cases) == 3 and secret.cases == again.cases != other.cases and secret.hidden_inputs


def test_a_function_is_asked_with_its_arguments_and_with_nothing_it_should_return() -> None:
    request = plan(a_function(), public=False, seed="s")[0].for_tracer([])
    assert request == {
        "kind": "function",
        "task": "f",
        "cases": [{"dict": [["n", 1]]}, {"dict": [["n", 2], ["of", {"tuple": [3, None]}]]}],
    }


def test_a_question_is_asked_by_its_name_alone() -> None:
    (ask,) = [a for a in plan(an_exercise(), public=False, seed="s") if a.task == "question"]
    assert ask.for_tracer(["a.py"]) == {
        "kind": "number",
        "task": "question",
    }


def test_a_cotangent_is_the_last_input_and_is_described() -> None:
    exercise = Exercise(meshes=[{"x": 2}])

    @exercise.body(out_specs=P("x"))
    def f(a):
        """f"""

    call = exercise.call(
        f, a=normal("I", 4, spec=("x",)), dims={"I": 6}, wrt=("a",), cotangent=normal("I", spec=("x",))
    )

    @exercise.check(call, points=1)
    def value(seen):
        """value"""

    (ask,) = calls(exercise, secret=True)
    assert [list(one) for one in ask.inputs] == [["a", "cotangent"]] * HIDDEN_SETS
    assert [[a.shape for a in run] for run in ask.arrays()] == [[(6, 4), (6,)]] * HIDDEN_SETS
    request = ask.for_runner([])
    (cotangent,) = request["cotangents"]
    assert cotangent == {"name": "cotangent", "shape": [6], "dtype": "float32", "spec": {"spec": ["x"]}, "of": 0}
    assert (request["kind"], request["wrt"], request["out_specs"]) == ("body", ["a"], {"tuple": [{"spec": ["x"]}]})


def test_a_missing_size_is_the_authors_fault() -> None:
    exercise = Exercise()

    @exercise.task
    def f(a, *, mesh):
        """f"""

    with pytest.raises(AuthorError, match=r"^no size given for dimension 'J' of a: add it to dims$"):
        exercise.call(f, a=normal("I", "J"), dims={"I": 4})


def test_a_generator_depends_on_seed_and_place_separately() -> None:
    drawn = {s + "|" + w: rng(s, w).integers(1 << 62) for s, w in (("a", "b"), ("ab", ""), ("", "ab"), ("a", "c"))}
    assert len(set(drawn.values())) == 4
    assert rng("a", "b").integers(1 << 62) == drawn["a|b"]


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        (lambda rng: [{"n": 1 / 0}], "f: drawing hidden cases raises ZeroDivisionError: division by zero"),
        (lambda rng: 3, "f: drawing hidden cases raises TypeError: 'int' object is not iterable"),
        (lambda rng: [3], 'f: a hidden case is the int 3, not a dict such as {"n": 8}'),
    ],
)
def test_hidden_cases_that_cannot_be_drawn_are_the_authors_fault(hidden: Any, message: str) -> None:
    exercise = Exercise()

    @exercise.function
    def f(n):
        """f"""

    cases = exercise.cases(f, public=[{"n": 1}], hidden=hidden)

    @exercise.check(cases, points=1)
    def value(seen):
        """value"""

    with pytest.raises(AuthorError) as error:
        plan(exercise, public=False, seed="s")
    assert str(error.value) == message
