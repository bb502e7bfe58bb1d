"""Tasks on a mesh with Explicit axes: types have shardings, and a plain P(...) means the mesh of the context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.declared import AuthorError
from grader.exercise import Exercise, normal
from grader.runner.execution import execute
from tests.conftest import Traced

MESH = {"x": 4, "y": 2}
HEAD = """
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P, reshard
"""
A, B = normal(8, 16, spec=(None, "x")), normal(16, 4, spec=("x", None))
MATMUL = "def f(a, b, *, mesh):\n    return jnp.einsum('ij,jk->ik', a, b, out_sharding={})"


@pytest.fixture
def explicit(traced: Callable[..., Traced]) -> Callable[..., Traced]:
    def explicit(text: str, *args: Any, axis_types: str = "explicit", **more: Any) -> Traced:
        return traced(HEAD + text, *args, mesh=MESH, axis_types=axis_types, **more)

    return explicit


def run(made: Traced, *arrays: np.ndarray) -> Any:
    header, _ = execute(made.request, made.program, [list(arrays)])
    return header


def drawn(*arrays: Any) -> list[np.ndarray]:
    return [array.sample({}, np.random.default_rng(0)) for array in arrays]


def kinds(header: dict[str, Any]) -> list[tuple[str, tuple[str, ...], bool]]:
    assert "fault" not in header, header
    return [(c["kind"], tuple(c["axes"]), c["by_compiler"]) for c in header["collectives"]]


@pytest.mark.parametrize(
    ("text", "arrays", "sent"),
    [
        (MATMUL.format("P('x', None)"), (A, B), ["all_reduce"]),  # XLA:CPU turns a reduce-scatter into an all-reduce
        (MATMUL.format("P(None, None)"), (A, B), ["all_reduce"]),
        (MATMUL.format("NamedSharding(mesh, P(None, None))"), (A, B), ["all_reduce"]),
        ("def f(a, *, mesh):\n    return reshard(a, P(None, None))", (A,), ["all_gather"]),
        ("def f(a, *, mesh):\n    return reshard(a, P('x', None))", (A,), ["all_to_all"]),
        ("def f(a, *, mesh):\n    return a + jnp.zeros(a.shape, out_sharding=P(None, 'x'))", (A,), []),
        (
            "def f(a, b, *, mesh):\n    partial = jnp.einsum('ij,jk->ik', a, b, out_sharding=P(unreduced={'x'}))\n"
            "    return reshard(partial + partial, P('x', None))",
            (A, B), ["all_reduce"],
        ),
        (
            "def f(a, b, *, mesh):\n    return jax.sharding.auto_axes(lambda a, b: a @ b, out_sharding=P(None, None))(a, b)",
            (A, B), ["all_reduce"],
        ),
    ],
)  # fmt: skip
def test_the_compiler_adds_the_collectives_that_types_require(
    explicit: Callable[..., Traced], text: str, arrays: tuple, sent: list[str]
) -> None:
    header = run(explicit(text, *arrays), *drawn(*arrays))
    assert kinds(header) == [(kind, ("x",), True) for kind in sent]


def test_a_result_with_unreduced_axes_is_refused(explicit: Callable[..., Traced]) -> None:
    header = run(explicit(MATMUL.format("P(None, None, unreduced={'x'})"), A, B), *drawn(A, B))
    assert "is a sum over the devices missing?" in header["fault"]["message"]


def test_a_learner_sees_the_types(explicit: Callable[..., Traced]) -> None:
    text = """
def f(a, *, mesh):
    assert mesh.axis_types == (AxisType.Explicit,) * 2
    assert jax.typeof(a).sharding.spec == P(None, 'x') and a.sharding.spec == P(None, 'x')
    return a
"""
    assert kinds(run(explicit(text, A), *drawn(A))) == []
    assert "AssertionError" in explicit(text, A, axis_types="auto").fault["message"]


def test_an_ambiguous_sharding_type_is_an_error_with_its_line(explicit: Callable[..., Traced]) -> None:
    fault = explicit("def f(a, b, *, mesh):\n    return a @ b", A, B).fault
    assert (fault["line"], fault["type"]) == (7, "ShardingTypeError")
    fault = explicit("def f(a, *, mesh):\n    return lax.with_sharding_constraint(a, P('x', None))", A).fault
    assert "Please use `jax.sharding.reshard`" in fault["message"]


def test_an_own_mesh_without_explicit_axes_is_reported(explicit: Callable[..., Traced]) -> None:
    text = """
def f(a, *, mesh):
    own = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    return jax.shard_map(lambda a: a, mesh=own, in_specs=P(None, "x"), out_specs=P(None, "x"))(a)
"""
    assert (
        explicit(text, A)
        .fault["message"]
        .endswith(
            "uses a mesh of its own, with axes that are not Explicit; use the mesh that the task gets, (x=4, y=2)"
        )
    )


def test_axes_in_a_shard_map_are_manual(explicit: Callable[..., Traced]) -> None:
    text = "def f(a):\n    return lax.psum(a, 'x')"
    from jax.sharding import PartitionSpec as P

    header = run(explicit(text, A, kind="body", out_specs=P(None, None)), *drawn(A))
    assert kinds(header) == [("all_reduce", ("x",), False)] and header["mapped"]


@pytest.mark.parametrize("spec", [("x", None), (None, None), (None, "y")])
def test_the_cotangent_has_the_type_of_the_result(explicit: Callable[..., Traced], spec: tuple) -> None:
    """The layouts of the learner's result and of the reference may differ. Gradients work then, too."""
    cotangent = normal(8, 4, spec=spec)
    made = explicit(MATMUL.format("P('x', None)"), A, B, wrt=("a", "b"), cotangent=cotangent)
    a, b, c = drawn(A, B, cotangent)
    header, blobs = execute(made.request, made.program, [[a, b, c]])
    assert "outputs" in header, header
    gradient = header["outputs"][0][1]
    whole = np.zeros((8, 16), np.float32)
    for ((i, j), (k, m)), blob in zip(gradient["slices"], blobs[8:16], strict=True):
        whole[i:j, k:m] = np.frombuffer(blob, np.float32).reshape(j - i, m - k)
    np.testing.assert_allclose(whole, c @ b.T, rtol=1e-5, atol=1e-5)


def test_axis_types_are_declared_by_name() -> None:
    with pytest.raises(AuthorError, match='`axis_types` is the str \'manual\', not "auto" or "explicit"'):
        Exercise().task(axis_types="manual")
    with pytest.raises(AuthorError, match='`axis_types` is None, not "auto" or "explicit"'):
        Exercise().body(out_specs=(), axis_types=None)  # type: ignore[arg-type]
