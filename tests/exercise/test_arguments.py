"""Draw functions of arguments: the inputs that they may use, the values that they may return; declared results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.exercise import Array, AuthorError, Call, Exercise, array, axis, draws, integers, like, normal
from grader.judging.plan import Ask, plan
from grader.wire.frames import is_inexact

MESHES = [{"x": 4, "y": 2}, {"x": 2, "y": 4}]
PARAMS = {"w": normal(4, 3), "b": normal(3, dtype="bfloat16")}


def called(meshes: Any = MESHES, **what: Any) -> Exercise:
    """Return an exercise with one call, which one public check judges."""
    exercise = Exercise(meshes=meshes)

    @exercise.task
    def f(*args, mesh):
        """f"""

    @exercise.check(exercise.call(f, **what), points=1, public=True)
    def value(seen):
        """value"""

    return exercise


def asks(public: bool = False, seed: str = "s", **what: Any) -> list[Ask]:
    return plan(called(**what), public=public, seed=seed)


def drawn(value: Any, dtype: str = "float32", *shape: int) -> np.ndarray:
    return array(*(shape or (3,)), draw=lambda rng, shape: value, dtype=dtype).sample({}, np.random.default_rng(0))


# -- inputs of draw functions ------------------------------------------------------------------


def test_a_draw_function_gets_the_generator_and_the_shape() -> None:
    (one, *_), (again, *_) = (
        asks(public=True, a=array("I", 3, draw=lambda rng, shape: rng.permuted(np.tile([1, 2, 3], (shape[0], 1)), axis=1)), dims={"I": 8})
        for _ in range(2)
    )  # fmt: skip
    assert one.inputs[0]["a"].dtype == np.float32 and (np.sort(one.inputs[0]["a"]) == [1, 2, 3]).all()
    assert one.digest == again.digest


def test_a_draw_may_use_earlier_arguments_keywords_dimensions_and_the_mesh() -> None:
    found: list[Any] = []

    def related(rng, shape, n, a, E, cap, mesh, scale=1):
        found.append((n, a, E, cap, mesh))
        return np.repeat(a[:1], len(a)) * scale

    exercise = called(
        a=integers(0, 9, "I", dtype="uint8"), n=normal(2, dtype="bfloat16"), b=array("I", draw=related, dtype="int16"),
        dims={"I": 8, "E": axis("x")}, static={"cap": 2}, hidden_static={"cap": 3},
    )  # fmt: skip
    first, *_, last = plan(exercise, public=False, seed="s")
    assert (first.inputs[0]["b"] == first.inputs[0]["a"][0]).all() and first.inputs[0]["b"].dtype == np.int16
    n, a, E, cap, mesh = found[0]
    assert n.dtype == np.float64 and a.dtype == np.uint64 and (a == first.inputs[0]["a"]).all()
    assert (E, cap, mesh) == (4, 2, {"x": 4, "y": 2}) and found[-1][2:] == (2, 3, {"x": 2, "y": 4})
    assert last.static == {"cap": 3}


def test_the_cotangent_is_drawn_last_and_may_use_all_arguments() -> None:
    cotangent = array("I", draw=lambda rng, shape, a: -a)
    (ask, *_) = asks(public=True, a=normal("I"), wrt=["a"], cotangent=cotangent, dims={"I": 4})
    assert (ask.inputs[0]["cotangent"] == -ask.inputs[0]["a"]).all()


def test_drawn_values_cannot_be_changed() -> None:
    def overwrite(rng, shape, a):
        a[:] = 0
        return a

    (ask, *_) = asks(public=True, a=normal("I"), b=array("I", draw=overwrite), dims={"I": 4})
    assert ask.inputs[0]["a"].all() and not ask.inputs[0]["b"].any()
    with pytest.raises(ValueError, match="read-only"):
        ask.inputs[0]["a"][0] = 1


def test_a_further_argument_does_not_change_the_earlier_ones() -> None:
    with_it = asks(a=normal("I"), b=array("I", draw=lambda rng, shape: rng.random(shape)), dims={"I": 4})
    without = asks(a=normal("I"), dims={"I": 4})
    assert all((x.inputs[0]["a"] == y.inputs[0]["a"]).all() for x, y in zip(with_it, without, strict=True))


def later(rng, shape, b):
    return b


def no_such(rng, shape, capp):
    return shape


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ({"a": 3}, "f: argument a is the int 3, not an array such as normal(\"I\", \"J\")"),
        ({"a": array(2, draw=later), "b": normal(2)}, "f: a is drawn from b, but `draw` can use only arguments before a"),
        ({"a": array(2, draw=later)}, "f: a is drawn from 'b', which is not an earlier argument, a static keyword or a dimension; there are mesh"),
        ({"a": array(2, draw=no_such), "static": {"cap": 2}}, "f: a is drawn from 'capp', which is not an earlier argument, a static keyword or a dimension; did you mean 'cap'?"),
        ({"a": array(2, draw=lambda rng, shape, a: a)}, "f: a is drawn from a, but `draw` can use only arguments before a"),
        ({"hidden_static": {"cap": 3}}, "f: `static` gives values of nothing and `hidden_static` gives values of cap: both must name the same keywords"),
        ({"static": {"cap": 3}, "hidden_static": {"Cap": 3}}, "f: `static` gives values of cap and `hidden_static` gives values of Cap: both must name the same keywords"),
        ({"static": {"cap": 3}, "hidden_static": {}}, "f: `static` gives values of cap and `hidden_static` gives values of nothing: both must name the same keywords"),
        ({"static": {"cap": 3}, "hidden_static": {"cap": object}}, "hidden_static cap is the type object, which cannot be sent to the learner's process: is of type type"),
        ({"static": {"cap": 3}, "hidden_static": [3]}, '`hidden_static` is the list [3], not a dict such as {"dim": 0}'),
        ({"hidden_stati": {"cap": 3}}, "f: argument hidden_stati['cap'] is the int 3, not an array such as normal(\"I\", \"J\"); did you mean 'hidden_static'?"),
        ({"dims": {"I": axis("z")}}, "dims: the size of dimension I, axis('z'), uses the axis 'z', but the mesh {'x': 4, 'y': 2} lacks it"),
        ({"dims": {"I": 0 * axis("x")}}, "dims: dimension I has the size 0 * axis('x'); write a positive multiple such as 4 * axis(\"x\")"),
        ({"a": normal("I", spec=("y",)), "dims": {"I": 3 * axis("x")}}, "a: dimension I = 6 in dims cannot be cut into 4 equal parts on the mesh {'x': 2, 'y': 4}"),
        ({"a": normal("I", spec=("x",)), "dims": {"I": axis("x")}, "hidden_dims": {"I": axis("y")}}, "a: dimension I = 2 in hidden_dims cannot be cut into 4 equal parts on the mesh {'x': 4, 'y': 2}"),
    ],
)  # fmt: skip
def test_an_impossible_call_is_reported_when_it_is_declared(what: dict[str, Any], told: str) -> None:
    with pytest.raises(AuthorError) as error:
        called(**what)
    assert str(error.value) == told


@pytest.mark.parametrize(
    ("draw", "told"),
    [
        (3, "`draw` is the int 3, not a function such as lambda rng, shape: rng.permutation(shape[0])"),
        (lambda rng: rng, "`draw` takes (rng), not a generator and a shape: lambda rng, shape: rng.permutation(shape[0])"),
        (lambda **all: 0, "`draw` takes (all), not a generator and a shape: lambda rng, shape: rng.permutation(shape[0])"),
        (lambda rng, shape, n, /: 0, "`draw` takes n by position only, but the grader passes related inputs by name: remove the /"),
        (dict, "`draw` is the type dict, which does not show its parameters: write lambda rng, shape: rng.permutation(shape[0])"),
    ],
)  # fmt: skip
def test_a_wrong_draw_function_is_reported_when_it_is_declared(draw: Any, told: str) -> None:
    with pytest.raises(AuthorError) as error:
        array("I", draw=draw)
    assert str(error.value) == told
    with pytest.raises(AuthorError, match=r"^array: draw=\.\.\. is missing$"):
        array("I")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


# -- results of draw functions -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "dtype", "told"),
    [
        (lambda rng, shape: np.zeros(2), "float32", "the drawn array has shape (2,), expected (3,)"),
        (lambda rng, shape: 0, "float32", "the drawn array has shape (), expected (3,)"),
        (lambda rng, shape: ["a"] * 3, "float32", "the drawn array has dtype <U1, which is not a type of numbers"),
        (lambda rng, shape: [None] * 3, "float32", "the drawn array has dtype object, which is not a type of numbers"),
        (lambda rng, shape: [0, np.nan, 0], "float32", "the drawn array has NaN or infinite values"),
        (lambda rng, shape: [0, 0, -np.inf], "bfloat16", "the drawn array has NaN or infinite values"),
        (lambda rng, shape: [0, 0, 1e30], "float16", "the drawn value 1e+30 (float64) does not fit into float16"),
        (lambda rng, shape: [0, 0, 0.5], "int32", "the drawn value 0.5 (float64) does not fit into int32"),
        (lambda rng, shape: [0, 0, 128], "int8", "the drawn value 128 (int64) does not fit into int8"),
        (lambda rng, shape: [0, 0, -1], "uint64", "the drawn value -1 (int64) does not fit into uint64"),
        (lambda rng, shape: [0, 1, 2], "bool", "the drawn value 2 (int64) does not fit into bool"),
        (lambda rng, shape: [0, 0, (1 << 24) + 1], "float32", "the drawn value 16777217 (int64) does not fit into float32"),
        (lambda rng, shape: [0, 0, 1j], "float32", "the drawn value 1j (complex128) does not fit into float32"),
        (lambda rng, shape: 1 / 0, "float32", "its function `draw` raises ZeroDivisionError: division by zero"),
        (lambda rng, shape: [[0], [0, 1], []], "float32", "its function `draw` raises ValueError: setting an array element with a sequence."),
    ],
)  # fmt: skip
def test_a_wrong_drawn_value_is_reported_with_its_argument(draw: Callable, dtype: str, told: str) -> None:
    with pytest.raises(AuthorError) as error:
        asks(public=True, a=normal(2), idx=array(3, draw=draw, dtype=dtype))
    assert str(error.value).startswith(f"f: argument idx: {told}") and "\n" not in str(error.value)


def test_an_integer_that_its_dtype_does_not_hold_is_reported() -> None:
    with pytest.raises(AuthorError, match=r"^f: argument a: the drawn value [0-9]+ \(int64\) does not fit into int8$"):
        asks(public=True, a=integers(0, 1000, 64, dtype="int8"))


def test_normal_draws_complex_values_of_variance_one() -> None:
    (ask,) = asks(public=True, a=normal(10_000, dtype="complex64"))[:1]
    drawn = ask.inputs[0]["a"]
    assert drawn.dtype == np.complex64
    assert np.var(drawn) == pytest.approx(1, abs=0.05)
    assert np.std(drawn.real) == pytest.approx(np.std(drawn.imag), rel=0.05)
    assert abs(np.corrcoef(drawn.real, drawn.imag)[0, 1]) < 0.05


def test_complex_values_without_an_imaginary_part_fit_into_floats() -> None:
    assert drawn(np.asarray([1 + 0j, 2, 3]), "float32").tolist() == [1, 2, 3]


NAMES = ["bool", "int8", "uint8", "int32", "uint64", "int64", "float16", "bfloat16", "float32", "complex64", "int4"]
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.integers(-300, 300) | st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(NUMBERS, min_size=3, max_size=3), st.sampled_from(NAMES))
def test_drawn_values_are_kept_exactly_or_refused(values: list[float], dtype: str) -> None:
    """Floats may be rounded to floats. All other values are kept exactly, or refused."""
    asked = np.asarray(values)
    try:
        held = drawn(asked, dtype)
    except AuthorError:
        return
    assert held.dtype.name == dtype and not held.flags.writeable
    for was, now in zip(asked.tolist(), held.tolist(), strict=True):
        if is_inexact(asked.dtype) and is_inexact(held.dtype):
            assert abs(was - now) <= float(ml_dtypes.finfo(held.dtype).eps) * abs(was) + 1e-6
        else:
            assert was == now


# -- sizes -------------------------------------------------------------------------------------


def test_a_dimension_may_follow_the_mesh() -> None:
    dims = {"E": axis("x"), "T": 3 * axis("x") * axis("y"), "U": axis("y") * 2, "S": axis("x") * axis("x"), "J": 5}
    found = asks(public=True, a=normal("E", "T"), b=normal("U", "S", "J"), dims=dims)
    assert [dict(a.dims) for a in found] == [
        {"E": 4, "T": 24, "U": 4, "S": 16, "J": 5}, {"E": 2, "T": 24, "U": 8, "S": 4, "J": 5},
    ]  # fmt: skip
    assert [a.inputs[0]["b"].shape for a in found] == [(4, 16, 5), (8, 4, 5)]
    assert [a.for_runner([])["args"][0]["shape"] for a in found] == [[4, 24], [2, 24]]


def test_axis_sizes_do_not_depend_on_the_order_of_factors() -> None:
    assert 4 * axis("x") * axis("y") == axis("y") * 2 * axis("x") * 2
    assert str(4 * axis("y") * axis("x")) == "4 * axis('x') * axis('y')"
    for wrong in ('axis("x") / 2', 'axis("x") + 1', '1.5 * axis("x")', 'True * axis("x")'):
        with pytest.raises(TypeError, match="unsupported operand"):
            eval(wrong)
    for name in (3, "", "x y"):
        with pytest.raises(AuthorError, match=r'^`axis` is given the (int|str) ?.*, not a name such as "x"$'):
            axis(name)  # type: ignore[arg-type]


# -- keywords that only graders use ------------------------------------------------------------


def test_hidden_keywords_are_used_with_hidden_sizes() -> None:
    what: dict[str, Any] = {"a": normal("I"), "static": {"cap": 2}, "hidden_static": {"cap": 3}}
    graded = asks(**what, dims={"I": 8}, hidden_dims={"I": 12})
    assert [(a.dims["I"], a.static["cap"], a.hidden_inputs) for a in graded] == [
        (8, 2, False), (8, 2, False), (12, 3, False), (12, 3, False), (12, 3, True), (12, 3, True),
    ]  # fmt: skip
    assert [a.static["cap"] for a in asks(public=True, **what, dims={"I": 8})] == [2, 2]
    assert graded[0].for_runner([])["static"] == {"cap": 2} and graded[2].for_runner([])["static"] == {"cap": 3}


def test_different_keywords_make_different_programs() -> None:
    found = asks(a=normal("I"), dims={"I": 8}, static={"cap": 2}, hidden_static={"cap": 3})
    assert [a.static["cap"] for a in found] == [2, 2, 3, 3, 3, 3] and len({a.program_key for a in found}) == 4


def test_without_hidden_keywords_all_asks_have_equal_keywords() -> None:
    found = asks(a=normal("I"), dims={"I": 8}, static={"cap": 2})
    assert [a.static for a in found] == [{"cap": 2}] * 4 and len({a.program_key for a in found}) == 2


# -- ready-made draws --------------------------------------------------------------------------


SHAPES = st.lists(st.integers(1, 5), min_size=2, max_size=3).map(tuple)


def sample(draw: Callable, shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    return Array(shape, (), dtype, draw).sample({}, np.random.default_rng(seed))


@given(SHAPES, st.integers(0, 99))
def test_the_ready_made_draws_have_their_stated_properties(shape: tuple[int, ...], seed: int) -> None:
    n = shape[-1]
    assert (np.sort(sample(draws.permutation, shape, "int32", seed), axis=-1) == np.arange(n)).all()
    assert (sample(draws.one_hot, shape, "bool", seed).sum(axis=-1) == 1).all()
    likely = sample(draws.probabilities, shape, "float32", seed)
    assert (likely > 0).all() and np.allclose(likely.sum(axis=-1), 1)
    mask = sample(draws.causal_mask, shape, "bool", seed)
    assert (mask == np.tril(np.ones(shape, bool))).all()
    steps = np.diff(sample(draws.segments, shape, "int32", seed), axis=-1, prepend=0)
    assert ((steps == 0) | (steps == 1)).all() and not steps[..., 0].any()


def test_each_row_of_a_permutation_is_drawn_separately() -> None:
    rows = sample(draws.permutation, (50, 8), "int32")
    assert len({row.tobytes() for row in rows}) > 45
    assert len({row.tobytes() for row in sample(draws.one_hot, (50, 8), "int32")}) == 8


def test_a_calls_arrays_are_in_the_order_in_which_they_are_drawn() -> None:
    call = called(b=normal(2), a=normal(2), wrt=["a"], cotangent=normal(2)).checks["value"].call
    assert isinstance(call, Call) and list(call.arrays) == ["b", "a", "cotangent"]


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
