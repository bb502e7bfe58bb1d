"""Trees of arguments and results of a traced task, and gradients of parts of its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.exercise import Exercise, like, normal
from grader.exercise.declarations import Call
from grader.judging.plan import Ask
from grader.learner.answering import reply_to
from grader.learner.loading import load
from grader.learner.surroundings import tolerant_jax
from grader.runner.execution import execute
from grader.wire.messages import CallAsk, ChildMessage

HEAD = "import jax\nimport jax.numpy as jnp\nfrom jax.sharding import PartitionSpec as P\n"
PARAMS = {"w": normal(4, 3), "b": normal(3)}
SIMPLE = "def f(params, x, *, mesh):\n    y = x @ params['w'] + params['b']\n"


def a_call(kind: str = "task", **more: Any) -> Call:
    exercise = Exercise(meshes=[{"x": 2}])
    options = {"out_specs": more.pop("out_specs"), "check_vma": False} if kind == "body" else {}

    def f(params, x, *, mesh=None): ...

    task = getattr(exercise, kind)(**options)(f)
    return exercise.call(task, params=PARAMS, x=normal(2, 4), **more)


def traced(call: Call, text: str) -> tuple[ChildMessage, bytes, CallAsk]:
    request = Ask(call, {"x": 2}).for_runner(["a.py"])
    with tolerant_jax():
        reply, blobs = reply_to(request, load({"name": "a", "chunks": [["a.py", HEAD + text]]}, 60), 60)
    return reply, (blobs or [b""])[0], request


@pytest.fixture
def ran() -> Callable[[Call, str, list[np.ndarray]], list[np.ndarray]]:
    """Return a function that runs a task and returns the results of device 0. Each device has whole arrays."""

    def run(call: Call, text: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
        reply, code, request = traced(call, text)
        assert reply == {"program": True}, reply
        header, blobs = execute(request, code, [inputs])
        assert "outputs" in header, header
        (about,) = header["outputs"]
        return [np.frombuffer(blob, a["dtype"]).reshape(a["shape"]) for a, blob in zip(about, blobs[::2], strict=True)]

    return run


B, W, X = np.arange(3, dtype=np.float32), np.arange(12, dtype=np.float32).reshape(4, 3), np.ones((2, 4), np.float32)
Y = X @ W + B


def fault(call: Call, text: str) -> str:
    reply, *_ = traced(call, text)
    assert "fault" in reply, reply
    return reply["fault"]["message"]


def test_a_tree_goes_in_with_its_keys_and_comes_out_in_the_declared_order(ran: Callable) -> None:
    call = a_call(returns={"y": "y", "again": like("params", "again")})
    text = SIMPLE + "    return {'y': y, 'again': params}\n"
    b, w, y = ran(call, text, [B, W, X])
    assert (b == B).all() and (w == W).all() and (y == Y).all()


def test_a_body_gets_and_gives_trees(ran: Callable) -> None:
    from jax.sharding import PartitionSpec as P

    call = a_call("body", returns=("y", like("params", "again")), out_specs=P())
    text = "def f(params, x):\n    return [x @ params['w'] + params['b'], {'b': params['b'], 'w': params['w']}]\n"
    y, b, w = ran(call, text, [B, W, X])
    assert (b == B).all() and (w == W).all() and (y == Y).all()


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("y", "returned one array, expected (loss, {'b', 'w'})"),
        ("y.sum(), params['w']", "returned one array at [1], expected {'b', 'w'}"),
        ("y.sum(), params | {'c': 1}", "returned a dict of 'b', 'c', 'w' at [1], expected {'b', 'w'}"),
        ("(y, y), params", "returned a tuple of 2 at [0], expected one array, loss"),
        ("None, params", "returned None for loss, expected one array; is a return missing?"),
        ("None", "returned None, expected (loss, {'b', 'w'})"),
    ],
)
def test_a_result_of_wrong_structure_is_reported_in_one_line(returned: str, told: str) -> None:
    call = a_call(returns=("loss", like("params", "grads")))
    assert fault(call, f"{SIMPLE}    return {returned}\n") == told


def test_without_a_cotangent_the_first_result_is_the_loss(ran: Callable) -> None:
    call = a_call(returns=("loss", "y"), wrt=["params"])
    loss, y, b, w = ran(call, SIMPLE + "    return jnp.sum(y ** 2), y\n", [B, W, X, np.float32(1)])
    assert loss == (Y**2).sum() and (y == Y).all()
    np.testing.assert_allclose(b, 2 * Y.sum(0))
    np.testing.assert_allclose(w, 2 * X.T @ Y)


def test_a_loss_is_one_number() -> None:
    call = a_call(wrt=["x"])
    assert fault(call, SIMPLE + "    return y\n") == (
        "returned an array of shape (2, 3) for the loss, expected one number, shape ()"
    )


def test_a_loss_that_is_a_python_number_has_gradients_of_zero(ran: Callable) -> None:
    """A constant loss is a wrong answer, not an error of the grader."""
    loss, x = ran(a_call(wrt=["x"]), SIMPLE + "    return 1.5\n", [B, W, X, np.float32(1)])
    assert loss == 1.5 and not x.any() and x.shape == X.shape


def test_results_without_a_cotangent_are_auxiliary(ran: Callable) -> None:
    call = a_call(returns={"count": "count", "y": "y"}, wrt=["x"], cotangent={"count": None, "y": normal(2, 3)})
    ct = np.full((2, 3), 2, np.float32)
    count, y, x = ran(call, SIMPLE + "    return {'y': y, 'count': jnp.argmax(y) * 0 + 7}\n", [B, W, X, ct])
    assert count == 7 and (y == Y).all()
    np.testing.assert_allclose(x, ct @ W.T)


def test_the_sharding_of_a_leaf_can_be_inspected(ran: Callable) -> None:
    call = a_call(returns="y")
    (y,) = ran(
        call, "def f(params, x, *, mesh):\n    print(params['w'].sharding)\n    return x @ params['w']\n", [B, W, X]
    )
    assert (y == X @ W).all()
