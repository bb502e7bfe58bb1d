"""Declarations of a call's results, steps and gradients."""

from __future__ import annotations

from typing import Any

import pytest

from grader.exercise import AuthorError, Call, Exercise, integers, like, normal

PARAMS = {"w": normal(4, 3), "b": normal(3, dtype="bfloat16")}


def a_call(**more: Any) -> Call:
    exercise = Exercise(meshes=[{"x": 2}])

    @exercise.task
    def f(params, x, n, *, mesh):
        """f"""

    return exercise.call(f, params=more.pop("params", PARAMS), x=normal(2, 4), n=integers(0, 1), **more)


def test_results_have_the_names_and_dtypes_of_the_arguments_they_are_like() -> None:
    call = a_call(returns=(like("params"), {"x": "x", "loss": "loss"}))
    assert call.results is not None
    assert [(r.name, r.dtype, r.feeds) for r in call.results] == [
        ("params['b']", "bfloat16", 0), ("params['w']", "float32", 1), ("loss", "", None), ("x", "float32", 2),
    ]  # fmt: skip
    assert call.names == ({"w": "params['w']", "b": "params['b']"}, {"x": "x", "loss": "loss"})


def test_results_become_arguments_only_in_calls_with_steps() -> None:
    returns = (like("params"), "loss")
    assert a_call(returns=returns).fed == set() and a_call(returns=returns, steps=2).fed == {"params"}
    assert a_call(returns=(like("params"), "x"), steps=2).fed == {"params", "x"}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"returns": like("parms")}, "`like` names 'parms', not an argument; did you mean 'params'?"),
        ({"returns": (like("params"), like("params"))}, "`returns` has two results that are called params['b']"),
        (
            {"returns": ("loss", "loss")},
            "`returns` has two results that are called loss: give one of them another name",
        ),
        ({"returns": ("loss", 3)}, "`returns` has the int 3, not a name"),
        ({"returns": ()}, "`returns` has the tuple (), not a name"),
        ({"returns": "a loss"}, "`returns` has the str 'a loss', not a name"),
        (
            {"returns": "params"},
            "`returns` has only some arrays of the argument params; to return all, write `like('params')`",
        ),
        ({"returns": like("x", "params")}, "`returns` has only some arrays of the argument params"),
        ({"steps": 0}, "f: `steps` is the int 0, not a count"),
        (
            {"steps": 3},
            "f: steps=3 needs a result that replaces an argument in the next step: name this result after the argument",
        ),
        (
            {"steps": 3, "returns": ("loss", like("params", "grads"))},
            "f: steps=3 needs a result that replaces an argument in the next step",
        ),
        ({"wrt": ["n"]}, "f: `wrt` names 'n', but n has the dtype int32, which has no gradient"),
        ({"wrt": ["x"], "cotangent": (normal(2), None)}, "f: `cotangent` is a tuple of 2, expected one array"),
        (
            {"wrt": ["x"], "returns": ("loss", "aux"), "cotangent": normal(2)},
            "f: `cotangent` is one array, expected (loss, aux)",
        ),
        (
            {"wrt": ["x"], "returns": ("loss", "aux"), "cotangent": (None, None)},
            "f: `cotangent` has no array; leave `cotangent` out if the first result is a loss",
        ),
        ({"params": {}}, "f: params is the dict {}, which has no arrays"),
        ({"params": {"a": [normal(2), 3]}}, "f: argument params['a'][1] is the int 3, not an array"),
        ({"params": {1: normal(2)}}, "f: a key of params is the int 1, not a name"),
    ],
)
def test_impossible_declarations_are_reported_in_one_line(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(AuthorError) as error:
        a_call(**asked)
    assert str(error.value).startswith(told)


def test_a_result_prefix_that_is_no_identifier_is_refused() -> None:
    with pytest.raises(AuthorError, match="like: `name` is the str 'my grads', not a name"):
        like("params", "my grads")


def test_out_specs_that_do_not_fit_the_returned_tree_are_refused() -> None:
    exercise = Exercise(meshes=[{"x": 2}])

    @exercise.body(out_specs=((), ()))
    def f(x):
        """f"""

    with pytest.raises(AuthorError, match=r"f: out_specs is a tuple of 2, expected \{'a', 'b'\}"):
        exercise.call(f, x=normal(2), returns={"a": "a", "b": "b"})
