"""The checks get results of any dtype, shape and value. A check passes or fails, and never raises another error."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.common.layout import owner_slices
from grader.common.observation import Observation, Outcome, Sharded
from grader.common.result import Result
from grader.exercise import Exercise, integers, normal
from grader.expect import (
    Failure,
    expect_close,
    expect_equal,
    expect_outcomes,
    expect_spec,
    same_outcome,
)
from grader.judging.judge import judge_checks
from grader.judging.plan import Ask, plan
from grader.judging.seen import AskFinding, Finding
from grader.wire import frames as wire
from grader.wire.frames import NATIVE, dtype_of, pack_array, unpack_array, wide
from tests.seen import seen, sharded

MANY = settings(max_examples=150)
MESH = {"x": 4, "y": 2}
DTYPES = sorted(wire.DTYPES)
EVIL = [0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 3e38, 1e300, np.nan, np.inf, -np.inf]
SHAPES = [(), (0,), (8,), (8, 4), (4, 8), (0, 4), (8, 0), (8, 8), (1, 1), (2, 8, 4), (8, 4, 1)]
SPECS = [(), ("x",), ("y",), (None, "y"), (("x", "y"),), (("y", "x"),), ("x", "y"), ("x", None, "y")]
specs = st.sampled_from(SPECS)
seeds = st.integers(0, 1 << 32)


def test_all_types_that_jax_has_are_tried() -> None:
    known = {np.dtype(t).name for t in vars(jnp).values() if isinstance(t, type(jnp.float32))}
    assert {"int2", "int4", "uint4", "float8_e5m2", "float4_e2m1fn", "bfloat16", "complex64"} <= known <= set(DTYPES)


def filled(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(shape) < 0.3, rng.choice(EVIL, shape), rng.standard_normal(shape))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # ignore NumPy's warnings about overflows and infinities, which the test wants
        return np.asarray(values).astype(dtype_of(dtype))


def laid_out(value: np.ndarray, spec: tuple, due: str = "float32", per_device: bool = False) -> Sharded | None:
    try:
        slices = owner_slices(value.shape, spec, MESH)
    except ValueError:
        return None
    shards = [value[tuple(slice(a, b) for a, b in where)].copy() for where in slices]
    return Sharded(value.shape, value.dtype, MESH, slices, shards, np.dtype(due), per_device)


def results(draw: st.DrawFn, dtype: str | None = None) -> Sharded:
    name = dtype or draw(st.sampled_from(DTYPES))
    value = filled(draw(st.sampled_from(SHAPES)), name, draw(seeds))
    got = laid_out(value, draw(specs), draw(st.sampled_from(["float32", "bfloat16", "int32"])), draw(st.booleans()))
    assume(got is not None)
    assert got is not None
    if draw(st.booleans()):  # without check_vma, replicas may differ
        device = draw(st.integers(0, 7))
        got.shards[device] = filled(got.shards[device].shape, name, draw(seeds))
    return got


returned = st.composite(results)()
anything = returned | st.lists(returned, max_size=3) | st.lists(returned, max_size=3).map(tuple) | st.none()


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_comes_back_from_the_wire(dtype: str) -> None:
    for seed, shape in enumerate(SHAPES):
        array = filled(shape, dtype, seed)
        about, data = pack_array(array)
        back = unpack_array(about, data)
        assert back.dtype == array.dtype and back.shape == array.shape and back.tobytes() == array.tobytes()
        assert wide(back).dtype in (np.float64, np.complex128)


# -- words ---------------------------------------------------------------------------------------


@MANY
@given(anything, st.sampled_from(SHAPES), seeds, st.sampled_from(["as the arguments", None, *NATIVE, "bfloat16"]))
def test_values_of_any_kind_pass_or_fail(got: Any, shape: tuple[int, ...], seed: int, dtype: str | None) -> None:
    want = np.random.default_rng(seed).standard_normal(shape)
    for word in (expect_close, expect_equal):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                word(got, want, dtype=dtype)
            except Failure as failure:
                assert "\n" not in failure.reason and len(failure.reason) < 500
            else:
                assert got.dtype == (got.due if dtype == "as the arguments" else dtype or got.dtype)
                assert all(np.isfinite(wide(shard)).all() for shard in got.shards)


@MANY
@given(returned, st.sampled_from(["scaled", "moved", "same", "zero", "partial"]), st.data())
def test_values_near_the_reference_pass_or_fail(got: Sharded, how: str, data: st.DataObject) -> None:
    """These results are near the reference, because ``diagnose`` then tries more explanations."""
    want = np.nan_to_num(np.real(wide(got.value)), posinf=7.0, neginf=-7.0)
    if how == "scaled":
        want = want * data.draw(st.sampled_from([4, 0.5, 8, -1, 1e-9]))
    elif how == "moved":
        want = (
            np.roll(want, data.draw(st.integers(0, 8)), data.draw(st.integers(0, max(0, want.ndim - 1))))
            if want.ndim
            else want
        )
    elif how == "zero":
        want = 0 * want
    elif how == "partial":
        want = want + data.draw(st.sampled_from([1.0, 1e-3]))
    assume(np.isfinite(want).all())
    for word in (expect_close, expect_equal):
        try:
            word(got, want, dtype=None)
        except Failure as failure:
            assert failure.reason


@MANY
@given(anything, specs)
def test_layouts_of_any_kind_pass_or_fail(got: Any, spec: tuple) -> None:
    try:
        expect_spec(got, P(*spec))
    except Failure as failure:
        assert "\n" not in failure.reason


leaf = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(P("x", None))
    | st.sampled_from([10**400, -(2**70), 2.0**70, P(("x", "y")), slice(None), slice("a", 1.0, True)])
)  # fmt: skip
plain = st.recursive(
    leaf | st.builds(slice, leaf, leaf, leaf),
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.integers() | st.text(max_size=2) | st.booleans(), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip
outcomes = st.builds(Outcome, value=plain) | st.builds(Outcome, error=st.sampled_from(["ValueError", "NotPlain", "X"]))


@MANY
@given(outcomes, outcomes, st.booleans(), st.sampled_from([0.0, 0.1]), st.booleans())
def test_outcomes_of_any_kind_pass_or_fail(got: Outcome, want: Outcome, public: bool, rtol: float, ints: bool) -> None:
    try:
        expect_outcomes(seen(outcomes=[({"n": 1}, got, want)], public=public), rtol=rtol, ints=ints)
    except Failure as failure:
        assert "\n" not in failure.reason and len(failure.reason) < 1500
        assert not same_outcome(got, want, rtol, ints)


# -- through the judge ---------------------------------------------------------------------------


def asked(dtype: str = "float32", kind: str = "task") -> Exercise:
    exercise = Exercise(meshes=[MESH], id="x")

    def double(a, *, mesh):
        """Twice a."""

    task = exercise.task(double) if kind == "task" else exercise.body(out_specs=P("x"))(double)
    array = normal("I", "J", dtype=dtype) if "float" in dtype else integers(-4, 4, "I", "J", dtype=dtype)
    call = exercise.call(task, a=array, dims={"I": 8, "J": 4}, hidden_dims={"I": 16, "J": 4})

    @exercise.check(call, points=1, public=True)
    def value(seen):
        """it is doubled"""
        expect_close(seen.out, 2 * seen.a)

    @exercise.check(call, points=1, public=True)
    def layout(seen):
        """it is cut"""
        expect_spec(seen.out, P("x"))

    return exercise


def judged(exercise: Exercise, answer: Any) -> list[Result]:
    """Return the results of the checks if every run returns ``answer(ask, inputs)``, a list of arrays."""
    asks = plan(exercise, public=True, seed="s")
    found = [AskFinding(ask, Finding(Observation([answer(ask, one) for one in ask.inputs], [], 0))) for ask in asks]
    return judge_checks(exercise, found, public=True)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "float32"])
@pytest.mark.parametrize("kind", ["task", "body"])
def test_a_result_of_a_wrong_dtype_fails_and_is_never_the_graders_fault(dtype: str, kind: str) -> None:
    """In earlier versions float8 zeros passed the check, and an int4 result counted as the grader's fault."""
    for factor in (0, 2):

        def answer(ask: Ask, one: dict, factor: int = factor) -> list[Sharded]:
            return [sharded(np.clip(factor * one["a"], -1, 1), ("x",), ask.mesh, dtype, due=dtype)]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value, layout = judged(asked(kind=kind), answer)
        assert (value.status, layout.status) == ("failed", "passed")


def test_only_the_dtype_of_the_arguments_passes() -> None:
    for dtype in ("float32", "bfloat16", "float16", "int32", "int8"):
        right, _ = judged(
            asked(dtype), lambda ask, one, d=dtype: [sharded(2 * one["a"], ("x",), ask.mesh, d, due="int4")]
        )
        assert right.status == "passed", (dtype, right.reason)
        wrong, _ = judged(asked(dtype), lambda ask, one: [sharded(2 * one["a"], ("x",), ask.mesh, "float64")])
        assert wrong.status == "failed"


@pytest.mark.parametrize("many", [0, 2, 3])
def test_a_wrong_number_of_results_fails_and_is_never_the_graders_fault(many: int) -> None:
    for result in judged(asked(), lambda ask, one: [sharded(2 * one["a"], ("x",), ask.mesh)] * many):
        assert result.status == "failed"
        assert result.reason.endswith("is a return missing?" if many == 0 else f"not a tuple of {many}")


def test_any_result_is_judged() -> None:
    """For results of every dtype, shape and layout, each check passes or fails."""
    exercise = asked()
    for seed, (dtype, shape, spec) in enumerate(itertools.product(DTYPES, SHAPES, SPECS)):
        got = laid_out(filled(shape, dtype, seed), spec)
        if got is not None and seed % 7 == 0:
            for result in judged(exercise, lambda ask, one, got=got: [got]):
                assert result.status in ("passed", "failed"), (dtype, shape, spec, result.reason)


def test_values_are_judged_in_the_dtype_that_jax_uses() -> None:
    """The tested arrays (int4, float8 and others) are results of JAX programs."""
    for name in ("int4", "uint2", "float8_e5m2", "float4_e2m1fn", "bfloat16", "complex64", "bool"):
        zeros = np.asarray(jax.jit(lambda name=name: jnp.zeros((8, 4), name))())
        about, data = pack_array(zeros)
        value, _ = judged(asked(), lambda ask, one, a=about, d=data: [laid_out(unpack_array(a, d), ("x",))])
        assert value.status == "failed" and f"the result is {name}, expected float32" in value.reason
