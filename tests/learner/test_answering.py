"""The tracer traces learner code in every honest style. Functions and questions return plain values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from grader.exercise import integers, normal
from grader.learner.answering import reply_to
from grader.learner.loading import load
from grader.runner.execution import execute
from grader.wire.frames import decode
from grader.wire.meshes import make_mesh
from tests.learner.texts import IMPORTS, A, line_of

STYLES = {
    "one_expression": """
def f(a, *, mesh):
    return jax.shard_map(lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))(a)
""",
    "decorated": """
def f(a, *, mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))
    def local(a):
        return lax.psum(a, "x")
    return local(a)
""",
    "decorated_with_keywords": """
def f(a, *, mesh):
    @jax.shard_map(mesh=mesh, in_specs=(P("x", "y"),), out_specs=P(None, "y"))
    def local(a):
        return lax.psum(a, "x")
    return local(a)
""",
    "jit_inside": """
def f(a, *, mesh):
    @jax.jit
    def local(a):
        return lax.psum(a, "x")
    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y")))(a)
""",
    "jit_outside": """
@partial(jax.jit, static_argnames="mesh")
def f(a, *, mesh):
    return jax.shard_map(lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))(a)
""",
    "vma_off": """
def f(a, *, mesh):
    local = lambda a: lax.psum(a, "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"), check_vma=False)(a)
""",
    "the_old_import": """
from jax.experimental.shard_map import shard_map
def f(a, *, mesh):
    return shard_map(lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"), check_rep=False)(a)
""",
    "ring_in_a_fori_loop": """
def f(a, *, mesh):
    n = mesh.shape["x"]
    def local(a):
        def step(i, carry):
            total, moving = carry
            moving = lax.ppermute(moving, "x", [(j, (j + 1) % n) for j in range(n)])
            return total + moving, moving
        return lax.fori_loop(0, n - 1, step, (a, a))[0]
    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"), check_vma=False)(a)
""",
    "ring_in_a_scan": """
def f(a, *, mesh):
    n = mesh.shape["x"]
    def local(a):
        def step(carry, _):
            total, moving = carry
            moving = lax.ppermute(moving, "x", [(j, (j + 1) % n) for j in range(n)])
            return (total + moving, moving), None
        return lax.scan(step, (a, a), None, length=n - 1)[0][0]
    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"), check_vma=False)(a)
""",
    "ring_written_out": """
def f(a, *, mesh):
    n = mesh.shape["x"]
    def local(a):
        total = a
        for _ in range(n - 1):
            a = lax.ppermute(a, "x", [(j, (j + 1) % n) for j in range(n)])
            total += a
        return total
    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"), check_vma=False)(a)
""",
    "pvary": """
def f(a, *, mesh):
    def local(a):
        zero = lax.pvary(jnp.zeros_like(a), ("x",)) if False else jnp.zeros(a.shape)
        start = lax.pvary(jnp.zeros(a.shape), ("x", "y"))
        total = lax.fori_loop(0, 1, lambda i, t: t + a, start)
        return lax.psum(total + zero, "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))(a)
""",
    "helpers_and_constants": """
import math
import numpy as np
AXIS = "x"
WEIGHT = np.float32(1.0)
TABLE = jnp.ones((1,))
class Summer:
    def __call__(self, a):
        return helper(a * WEIGHT * TABLE[0])
def f(a, *, mesh):
    assert math.prod(mesh.axis_sizes) == mesh.size
    return jax.shard_map(Summer(), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))(a)
def helper(a):
    return lax.psum(a, AXIS)
""",
    "prints_left_in": """
print("loading")
def f(a, *, mesh):
    print(a.shape, a, mesh)
    def local(a):
        print(a)
        jax.debug.print("a = {}", a)
        jax.debug.print("sum {s}", s=a.sum(), ordered=True)
        jax.debug.callback(lambda a: print(a), a)
        return lax.psum(a, "x")
    jax.debug.visualize_array_sharding(a)
    jax.debug.inspect_array_sharding(a, callback=print)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))(a)
""",
    "annotated": """
from __future__ import annotations
from jax import Array
def f(a: Array, *, mesh: jax.sharding.Mesh) -> Array:
    return jax.shard_map(lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))(a)
""",
    "mesh_in_a_context": """
def f(a, *, mesh):
    with jax.set_mesh(mesh) if False else mesh:
        return jax.shard_map(lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))(a)
""",
    "vmap_and_remat": """
def f(a, *, mesh):
    local = jax.checkpoint(jax.vmap(lambda row: lax.psum(row, "x")))
    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))(a)
""",
    "a_demo_at_the_end": """
def f(a, *, mesh):
    return jax.shard_map(lambda a: lax.psum(a, "x"), mesh=mesh, in_specs=P("x", "y"), out_specs=P(None, "y"))(a)
if __name__ == "__main__":
    raise SystemExit("a demonstration")
""",
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES)
def test_every_honest_style_computes_the_same(traced: Callable[..., Any], style: str) -> None:
    text = STYLES[style]
    future, rest = ("from __future__ import annotations\n", text.replace("from __future__ import annotations\n", "", 1))
    made = traced((future if "__future__" in text else "") + IMPORTS + rest, A)
    assert made.loading == []
    value = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
    header, blobs = execute(made.request, made.program, [[value]])
    assert "outputs" in header and header["outputs"][0][0]["shape"] == [2, 16]
    first = np.frombuffer(blobs[0], np.float32).reshape(2, 8)
    np.testing.assert_allclose(first, value.reshape(4, 2, 16).sum(0)[:, :8], rtol=1e-5, atol=1e-5)


def test_a_task_per_device_is_wrapped(traced: Callable[..., Any]) -> None:
    """In body tasks, learners write no shard_map: the tracer adds it. The tracer passes static keywords to the body."""
    text = f"{IMPORTS}\ndef f(a, *, axis):\n    return lax.psum(a, axis)\n"
    made = traced(text, A, kind="body", out_specs=P(None, "y"), static={"axis": "x"})
    assert made.form.results == (((2, 16), "float32"),)


def test_static_keywords_keep_their_types(traced: Callable[..., Any]) -> None:
    text = (
        "def f(a, *, mesh, dims, spec):\n    assert dims == (0, 1) and type(dims) is tuple, dims\n"
        "    assert type(spec).__name__ in ('P', 'PartitionSpec') and spec[0] == 'x', spec\n    return a\n"
    )
    assert traced(text, A, static={"dims": (0, 1), "spec": P("x", None)}).program


def test_the_same_text_is_the_same_program(traced: Callable[..., Any]) -> None:
    """A program's text has no debug information such as line numbers. So the grader runs identical programs once."""
    text = IMPORTS + STYLES["decorated"]

    def bare(text: str) -> str:
        return traced(text, A).form.text

    assert bare(text) == bare(text) == bare(f"# another comment\n{text}")
    assert bare(text) != bare(text.replace("psum", "pmax"))


def test_the_mesh_is_the_one_asked_for(traced: Callable[..., Any]) -> None:
    text = "def f(a, *, mesh):\n    assert dict(mesh.shape) == {'x': 2, 'y': 3}, mesh\n    return a\n"
    assert traced(text, normal(6, spec=("x",)), mesh={"x": 2, "y": 3}).program


def test_a_mesh_that_needs_more_devices_is_refused(devices: int) -> None:
    with pytest.raises(RuntimeError, match=r"the mesh \{'x': 16\} needs 16 devices, there are 8"):
        make_mesh({"x": 16})


def test_gradients_come_after_the_result(traced: Callable[..., Any]) -> None:
    text = "def f(a, b, *, mesh):\n    return (a * b.sum()).sum(1)\n"
    made = traced(text, normal(4, 6), normal(3), wrt=("b",), cotangent=normal(4))
    assert [shape for shape, _ in made.form.results] == [(4,), (3,)]


def test_a_near_name_is_suggested(traced: Callable[..., Any]) -> None:
    made = load({"name": "a", "chunks": [["a.py", "def matmul_locals(a): ..."]]}, 5)
    ask: Any = {"kind": "array", "task": "matmul_local"}
    reply, _ = reply_to(ask, made, 5)
    assert "fault" in reply and reply["fault"]["message"] == (
        "matmul_local is not defined; if you named it matmul_locals, rename it to matmul_local"
    )


def test_every_case_has_an_outcome_of_its_own(traced: Callable[..., Any]) -> None:
    text = "class Odd(ValueError): pass\ndef f(n):\n    if n < 0:\n        raise Odd('negative')  # here\n    return (n, [n / 2])\n"
    first, second = traced(text, cases=[{"n": 3}, {"n": -1}]).reply["values"]
    assert decode(first["value"]) == (3, [1.5])
    assert second == {
        "error": "Odd", "kinds": ["Odd", "ValueError"], "message": "negative", "line": line_of(text, "# here"),
    }  # fmt: skip


def test_an_error_is_reported_with_its_class_and_base_classes(traced: Callable[..., Any]) -> None:
    (found,) = traced("def f(n): raise KeyError(n)\n", cases=[{"n": 1}]).reply["values"]
    assert found["kinds"] == ["KeyError", "LookupError"]


def test_a_returned_value_that_is_not_plain_is_reported(traced: Callable[..., Any]) -> None:
    (found,) = traced("def f(n): return object()\n", cases=[{"n": 1}]).reply["values"]
    assert found["error"] == "NotPlain" and found["message"] == "returned something that is of type object"


def test_an_unwritten_function_is_missing_not_wrong(traced: Callable[..., Any]) -> None:
    assert traced("def f(n): raise NotImplementedError\n", cases=[{"n": 1}]).fault["kind"] == "missing"


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("q = None", None),
        ("q = 3", 3),
        ("q = '3 us'", "3 us"),
        ("q = 2.5", 2.5),
        ("q = 1 << 60", 1 << 60),
        ("q = float('nan')", "nan"),
        ("q = float('-inf')", "-inf"),
        ("q = True", True),
        ("import numpy as np\nq = np.float32(2.5)", 2.5),
        ("import numpy as np\nq = np.array(3)", 3),
        ("import numpy as np\nq = np.longdouble(2.5)", 2.5),
        ("import numpy as np\nq = np.array(np.longdouble('inf'))", "inf"),
        ("import numpy as np\nq = np.clongdouble(2)", {"type": "clongdouble"}),
        ("import jax.numpy as jnp\nq = jnp.float32(2.5)", 2.5),
        ("import pint\nq = pint.UnitRegistry()('3 ms')", {"magnitude": 3.0, "units": "millisecond"}),
        ("q = 2**70", 2**70),
        ("q = 10**9999", "inf"),
        ("from fractions import Fraction\nq = Fraction(5, 2)", 2.5),
        ("from decimal import Decimal\nq = Decimal('4077.8')", 4077.8),
        ("from decimal import Decimal\nq = Decimal(3)", 3),
        ("q = [1]", {"type": "list"}),
        ("q = 'x' * 999", "x" * 200),
        ("", None),
    ],
)
def test_an_answer_comes_as_plain_json(text: str, raw: Any) -> None:
    program = load({"name": "a", "chunks": [["a.py", text]]}, 20)
    assert program.faults == []
    reply, blobs = reply_to({"kind": "number", "task": "q"}, program, 20)
    assert (reply, blobs) == ({"raw": raw}, [])
    assert "raw" in reply and type(reply["raw"]) is type(raw)


@pytest.mark.parametrize(
    ("text", "raw"),
    [
        ("q = None", None),
        ("q = 'B'", "B"),
        ("q = 3", 3),
        (
            "from jax.sharding import PartitionSpec as P\nq = P(('x', 'y'), None, 'z')",
            {"spec": [["x", "y"], None, "z"]},
        ),
        ("q = ('x', None)", ["x", None]),
        ("q = {'left': {'a': '3 us', 4: 2.5}}", {"dict": [["left", {"dict": [["a", "3 us"], ["4", 2.5]]}]]}),
        ("import numpy as np\nq = [np.float32(2.5), np.arange(2)]", [2.5, [0, 1]]),
        ("import pint\nq = [pint.UnitRegistry()('3 ms')]", [{"magnitude": 3.0, "units": "millisecond"}]),
        ("q = [float('nan'), 10**9999, {1, 2}]", ["nan", "inf", {"type": "set"}]),
        ("q = [[[[[[1]]]]]]", [[[[[{"type": "list"}]]]]]),
        ("q = [0] * 999", [0] * 64),
        ("q = {i: 0 for i in range(999)}", {"dict": [[str(i), 0] for i in range(64)]}),
        ("q = 'x' * 9999", "x" * 4000),
        ("q = []\nq.append(q)", [[[[[{"type": "list"}]]]]]),
    ],
)
def test_a_composed_answer_comes_as_plain_json(text: str, raw: Any) -> None:
    program = load({"name": "a", "chunks": [["a.py", text]]}, 20)
    assert program.faults == []
    reply, blobs = reply_to({"kind": "answer", "task": "q"}, program, 20)
    assert (reply, blobs) == ({"raw": raw}, [])
    assert json.loads(json.dumps(reply)) == reply


def test_an_answer_that_an_error_kept_from_being_assigned_has_this_reason() -> None:
    chunks = [["cell 1", "p = 1\nq = 1 / 0\n"], ["cell 2", "r = 2\n"]]
    program = load({"name": "a", "chunks": chunks}, 20)
    stopped = "q is not defined: cell 1 stopped at line 2: ZeroDivisionError: division by zero"
    for kind in ("number", "answer"):
        asks: list[Any] = [{"kind": kind, "task": name} for name in "pqrs"]
        got: dict[str, Any] = {ask["task"]: reply_to(ask, program, 20)[0] for ask in asks}
        assert got["p"] == {"raw": 1} and got["r"] == {"raw": 2} and got["s"] == {"raw": None}
        assert got["q"]["fault"]["message"] == stopped


def test_objects_that_give_each_other_as_items_are_refused_as_an_answer() -> None:
    text = "class Q:\n    def item(self): return R()\nclass R:\n    def item(self): return Q()\nq = Q()\n"
    reply, _ = reply_to({"kind": "number", "task": "q"}, load({"name": "a", "chunks": [["a.py", text]]}, 5), 5)
    assert "fault" in reply and reply["fault"]["type"] == "RecursionError"


def test_integer_arguments_have_their_dtype(traced: Callable[..., Any]) -> None:
    text = "def f(a, *, mesh):\n    assert a.dtype == 'int32', a.dtype\n    return a\n"
    assert traced(text, integers(0, 9, 8, spec=("x",))).program
