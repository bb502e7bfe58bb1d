"""What learners write is traced: every honest style; and what cannot be is told, with its line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax.core import Tracer
from jax.sharding import PartitionSpec as P

from grader.exercise import integers, normal
from grader.learner import looks
from grader.learner.answering import answer
from grader.learner.loading import as_they_are, load
from grader.learner.surroundings import share_ir_context
from grader.runner.execution import execute
from grader.wire.frames import decode
from grader.wire.meshes import make_mesh
from grader.wire.text import describe_load

A = normal(8, 16, spec=("x", "y"))
IMPORTS = """\
import functools
from functools import partial
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
"""


def line_of(text: str, part: str) -> int:
    (line,) = [n for n, line in enumerate(text.splitlines(), 1) if part in line]
    return line


# -- honest styles -----------------------------------------------------------------------------

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
    assert header["outputs"][0][0]["shape"] == [2, 16]
    first = np.frombuffer(blobs[0], np.float32).reshape(2, 8)
    np.testing.assert_allclose(first, value.reshape(4, 2, 16).sum(0)[:, :8], rtol=1e-5, atol=1e-5)


def test_a_task_per_device_is_wrapped(traced: Callable[..., Any]) -> None:
    """Learners of body tasks write no shard_map; static keywords come along."""
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
    """But for debug information: so identical work is run once."""
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


def test_jax_is_as_it_was_after_learner_code(traced: Callable[..., Any]) -> None:
    before, had, frames = jax.debug.print, hasattr(jax.lax, "pvary"), jax.config.values["jax_traceback_filtering"]
    traced(IMPORTS + STYLES["prints_left_in"], A)
    traced("raise ValueError", A)
    assert jax.debug.print is before and hasattr(jax.lax, "pvary") == had
    assert jax.config.values["jax_traceback_filtering"] == frames


# -- what cannot be traced ---------------------------------------------------------------------

FAULTS = {
    "missing": ("", "missing", "f is not defined"),
    "not_a_function": ("f = 3", "missing", "f is a int, not a function"),
    "not_written": ("def f(a, *, mesh):\n    raise NotImplementedError('f')  # here", "missing", "not written yet (it raises NotImplementedError)"),
    "a_typo": ("def f(a, *, mesh):\n    return aa  # here", "raised", "NameError: name 'aa' is not defined"),
    "in_a_helper": ("def f(a, *, mesh):\n    return helper(a)\ndef helper(a):\n    return 1 / 0  # here", "raised", "ZeroDivisionError: division by zero"),
    "below_jax": (f"{IMPORTS}def f(a, *, mesh):\n    return jax.jit(lambda a: a @ a)(a)  # here", "raised", "TypeError: dot_general requires contracting dimensions to have the same shape, got (16,) and (8,)."),
    "no_mesh": ("def f(a):\n    return a", "raised", "TypeError: f() got an unexpected keyword argument 'mesh'"),
    "float": ("def f(a, *, mesh):\n    return a * float(a[0, 0])  # here", "untraceable", "cannot be traced: it needs the values of an array"),
    "branch": ("def f(a, *, mesh):\n    if a.sum() > 0:  # here\n        return a", "untraceable", "cannot be traced: it needs the values"),
    "numpy": ("import numpy as np\ndef f(a, *, mesh):\n    return np.asarray(a)  # here", "untraceable", "cannot be traced: it needs the values"),
    "item": ("def f(a, *, mesh):\n    return a[0, 0].item()  # here", "untraceable", "cannot be traced: it needs the values"),
    "mask": ("def f(a, *, mesh):\n    return a[a > 0]  # here", "untraceable", "cannot be traced: it needs the values"),
    "unknown_axis_in_a_spec": (f"{IMPORTS}def f(a, *, mesh):\n    return jax.shard_map(lambda a: a, mesh=mesh, in_specs=P('z'), out_specs=P('z'))(a)  # here", "raised", "ValueError: "),
    "unknown_axis": (f"{IMPORTS}def f(a, *, mesh):\n    return jax.shard_map(lambda a: lax.psum(a, 'z'), mesh=mesh, in_specs=P('x', 'y'), out_specs=P())(a)  # here", "raised", "there is no axis 'z' here; the mesh has 'x', 'y'"),
    "unknown_axis_unchecked": (f"{IMPORTS}def f(a, *, mesh):\n    local = lambda a: lax.all_gather(a, ('x', 'z'))  # here\n    return jax.shard_map(local, mesh=mesh, in_specs=P('x', 'y'), out_specs=P(), check_vma=False)(a)", "raised", "there is no axis 'z' here; the mesh has 'x', 'y'"),
    "unknown_axis_in_pcast": (f"{IMPORTS}def f(a, *, mesh):\n    local = lambda a: lax.pcast(a, 'z', to='varying')  # here\n    return jax.shard_map(local, mesh=mesh, in_specs=P('x', 'y'), out_specs=P())(a)", "raised", "there is no axis 'z' here; the mesh has 'x', 'y'"),
    "axis_outside_shard_map": (f"{IMPORTS}def f(a, *, mesh):\n    return lax.psum(a, 'x')  # here", "raised", "the axis 'x' is not bound here: a collective over it belongs into the body of a jax.shard_map over 'x'"),
    "an_assertion_of_ones_own": ("def f(a, *, mesh):\n    axes = ('z',)\n    assert not axes  # here", "raised", "AssertionError"),
    "system_exit": ("def f(a, *, mesh):\n    raise SystemExit('bye')  # here", "raised", "SystemExit: bye"),
    "interrupt": ("def f(a, *, mesh):\n    raise KeyboardInterrupt  # here", "raised", "KeyboardInterrupt"),
    "too_much_memory": ("def f(a, *, mesh):\n    raise MemoryError  # here", "memory", "ran out of the memory it is allowed"),
    "endless_recursion": ("def f(a, *, mesh):\n    return f(a, mesh=mesh)  # here", "raised", "RecursionError: maximum recursion depth exceeded"),
    "returns_text": ("def f(a, *, mesh):\n    return 'a'", "raised", "TypeError: function function"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_what_cannot_be_traced_is_told_in_one_line_with_its_line(traced: Callable[..., Any], name: str) -> None:
    text, kind, message = FAULTS[name]
    fault = traced(text, A).fault
    assert fault["kind"] == kind
    assert fault["message"].startswith(message) and "\n" not in fault["message"]
    if "# here" in text:
        assert (fault["file"], fault["line"]) == ("a.py", line_of(text, "# here"))


OWN_MESHES = {  # where JAX finds fault, and says nothing of the mesh that was not used
    "explicit": ("jax.make_mesh((4, 2), ('x', 'y'))", "uses a mesh of its own, with Explicit axes (jax.make_mesh makes them, unless told otherwise)"),
    "other_axes": ("Mesh(np.array(jax.devices()), ('x',))", "uses a mesh (x=8) of its own"),
    "fewer_devices": ("Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ('x', 'y'))", "uses a mesh of its own, with other devices or in another order"),
    "another_order": ("Mesh(np.array(jax.devices()[::-1]).reshape(4, 2), ('x', 'y'))", "uses a mesh of its own, with other devices or in another order"),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN_MESHES)
@pytest.mark.parametrize("where", ["a name of its own", "at the top", "no name"])
def test_a_mesh_of_the_tasks_own_is_named(traced: Callable[..., Any], name: str, where: str) -> None:
    made, told = OWN_MESHES[name]
    top, inside, used = {
        "a name of its own": ("", f"mesh = {made}", "mesh"),
        "at the top": (f"MESH = {made}", "pass", "MESH"),
        "no name": ("", "pass", made),
    }[where]
    text = (
        f"{IMPORTS}import numpy as np\nfrom jax.sharding import Mesh\n{top}\ndef f(a, *, mesh):\n    {inside}\n"
        f"    return jax.shard_map(lambda a: a, mesh={used}, in_specs=P('x', 'y'), out_specs=P('x', 'y'))(a)\n"
    )
    message = traced(text, A).fault["message"]
    assert message.endswith(f"{told}; work on the mesh that is given, (x=4, y=2)"), message


def test_of_a_mesh_that_is_not_the_trouble_nothing_is_told(traced: Callable[..., Any]) -> None:
    unused = f"{IMPORTS}MESH = jax.make_mesh((8,), ('d',))\ndef f(a, *, mesh):\n    "
    for text in (
        f"{unused}return jax.shard_map(lambda a: a, mesh=mesh, in_specs=P('x', 'q'), out_specs=P('x', 'y'))(a)\n",
        f"{unused}print(MESH)\n    return a @ a\n",
        f"{unused}print(MESH)\n    raise ValueError('this mesh is none')\n",
    ):
        assert "of its own" not in traced(text, A).fault["message"]


def test_what_jax_has_not_implemented_is_no_unwritten_task(traced: Callable[..., Any]) -> None:
    text = f"{IMPORTS}def f(a, *, mesh):\n    local = lambda a: lax.pbroadcast(a, 'x', 0)\n    return jax.shard_map(local, mesh=mesh, in_specs=P('x', 'y'), out_specs=P('x', 'y'), check_vma=False)(a)\n"
    fault = traced(text, A).fault
    assert fault["kind"] == "raised"
    assert fault["message"].startswith("NotImplementedError: ")


def test_a_stubs_own_error_is_told_as_unwritten_from_a_helper_too(traced: Callable[..., Any]) -> None:
    text = "def f(a, *, mesh):\n    return other(a)\ndef other(a):\n    raise NotImplementedError('other')\n"
    assert traced(text, A).fault["message"] == "not written yet (it raises NotImplementedError)"


def test_a_near_name_is_suggested(traced: Callable[..., Any]) -> None:
    made = load({"name": "a", "chunks": [["a.py", "def matmul_locals(a): ..."]]}, 5)
    reply, _ = answer({"kind": "array", "task": "matmul_local"}, made, 5)
    assert reply["fault"]["message"] == ("matmul_local is not defined; is matmul_locals meant to be it? rename it")


def test_a_loop_that_never_ends_is_told(traced: Callable[..., Any]) -> None:
    fault = traced("def f(a, *, mesh):\n    while True: pass\n", A, seconds=0.3).fault
    assert (fault["kind"], fault["message"]) == ("timeout", "did not finish within 0.3 s")
    assert fault["line"] is None  # where the time ran out is chance, and reports are the same every time


def test_swallowing_every_exception_does_not_swallow_the_time_limit(traced: Callable[..., Any]) -> None:
    text = "def f(a, *, mesh):\n    try:\n        while True: pass\n    except Exception:\n        return a\n"
    assert traced(text, A, seconds=0.3).fault["kind"] == "timeout"


def test_the_timer_is_as_it_was_afterwards(traced: Callable[..., Any]) -> None:
    before = signal.getsignal(signal.SIGPROF)
    traced("def f(a, *, mesh):\n    while True: pass\n", A, seconds=0.1)
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_addresses_are_left_out_of_messages(traced: Callable[..., Any]) -> None:
    """Reports are the same every time."""
    text = "class Odd: pass\ndef f(a, *, mesh):\n    raise ValueError(Odd())\n"
    assert traced(text, A).fault["message"].endswith("Odd object at 0x...>")


def test_a_message_that_cannot_be_shown_does_no_harm(traced: Callable[..., Any]) -> None:
    text = "class Bad(Exception):\n    def __str__(self): raise ValueError\ndef f(a, *, mesh):\n    raise Bad\n"
    assert traced(text, A).fault["message"] == "Bad: (its message cannot be shown)"


@pytest.mark.parametrize("result", ["'a'", "print", "[a, 'a']"])
def test_no_path_of_ours_is_told(traced: Callable[..., Any], result: str) -> None:
    """A report holds no path: it is the same wherever it was made."""
    message = traced(f"def f(a, *, mesh):\n    return {result}\n", A).fault["message"]
    assert "answering.py" not in message and "/" not in message


def test_an_error_without_text_is_told_by_its_name(traced: Callable[..., Any]) -> None:
    assert traced("def f(a, *, mesh):\n    raise KeyError\n", A).fault["message"] == "KeyError: raise KeyError"


def test_long_messages_are_cut(traced: Callable[..., Any]) -> None:
    fault = traced("def f(a, *, mesh):\n    raise ValueError('x' * 5000)\n", A).fault
    assert len(fault["message"]) < 700 and fault["message"].endswith("xxx...")


# -- loading -----------------------------------------------------------------------------------


def test_a_syntax_error_is_told_with_its_line(traced: Callable[..., Any]) -> None:
    made = traced("x = 1\ndef f(a, *, mesh)\n    return a\n", A)
    assert [(f["kind"], f["line"], f["message"]) for f in made.loading] == [("syntax", 2, "SyntaxError: expected ':'")]
    assert made.fault["message"] == "f is not defined: a.py stopped at line 2: SyntaxError: expected ':'"


def test_an_exit_while_loading_is_a_fault_and_what_was_defined_before_counts(traced: Callable[..., Any]) -> None:
    made = traced("def f(a, *, mesh):\n    return a\nimport sys\nsys.exit(3)\n", A)
    assert [(f["type"], f["line"], f["chunk"]) for f in made.loading] == [("SystemExit", 4, "a.py")]
    assert made.program


def test_cells_after_an_error_are_run(traced: Callable[..., Any]) -> None:
    """As in a notebook: a scratch cell that fails takes nothing else with it."""
    made = traced(["import jax", "b = c", "x = 1\n1 / 0\nx = 2", "def f(a, *, mesh):\n    return a * x\n"], A)
    assert [(f["chunk"], f["line"], f["type"]) for f in made.loading] == [
        ("cell 2", 1, "NameError"),
        ("cell 3", 2, "ZeroDivisionError"),
    ]
    assert made.program


def test_a_later_cell_replaces_an_earlier_one(traced: Callable[..., Any]) -> None:
    cells = ["def f(a, *, mesh):\n    raise NotImplementedError", "def f(a, *, mesh):\n    return a"]
    assert traced(cells, A).program
    assert traced(cells[::-1], A).fault["kind"] == "missing"


def test_a_line_is_counted_in_its_cell(traced: Callable[..., Any]) -> None:
    fault = traced(["x = 1\ny = 2\n", "\ndef f(a, *, mesh):\n    return 1 / 0\n"], A).fault
    assert (fault["file"], fault["line"]) == ("cell 2", 3)


def test_the_cell_that_stopped_before_a_task_is_named(traced: Callable[..., Any]) -> None:
    fault = traced(["y = 1", "import jax.nowhere_to_be_found\ndef f(a, *, mesh):\n    return a\n"], A).fault
    assert fault["message"] == (
        "f is not defined: cell 2 stopped at line 1: ModuleNotFoundError: No module named 'jax.nowhere_to_be_found'"
    )


def test_loading_for_ever_is_told(traced: Callable[..., Any]) -> None:
    made = traced("while True: pass\n", A, seconds=0.3)
    assert [f["kind"] for f in made.loading] == ["timeout"]


def test_future_imports_of_the_grader_are_not_inherited(traced: Callable[..., Any]) -> None:
    cases = traced("def f(n: int): return str(f.__annotations__['n'])\n", cases=[{"n": 1}])
    assert cases.reply["values"] == [{"value": "<class 'int'>"}]


# -- functions and questions -------------------------------------------------------------------


def test_every_case_has_an_outcome_of_its_own(traced: Callable[..., Any]) -> None:
    text = "class Odd(ValueError): pass\ndef f(n):\n    if n < 0:\n        raise Odd('negative')  # here\n    return (n, [n / 2])\n"
    first, second = traced(text, cases=[{"n": 3}, {"n": -1}]).reply["values"]
    assert decode(first["value"]) == (3, [1.5])
    assert second == {
        "error": "Odd", "kinds": ["Odd", "ValueError"], "message": "negative", "line": line_of(text, "# here"),
    }  # fmt: skip


def test_kinds_of_a_plain_error_are_itself(traced: Callable[..., Any]) -> None:
    (found,) = traced("def f(n): raise KeyError(n)\n", cases=[{"n": 1}]).reply["values"]
    assert found["kinds"] == ["KeyError", "LookupError"]


def test_what_is_not_plain_is_told(traced: Callable[..., Any]) -> None:
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
    reply, blobs = answer({"kind": "number", "task": "q"}, program, 20)
    assert (reply, blobs) == ({"raw": raw}, [])
    assert type(reply["raw"]) is type(raw)


def test_an_answer_whose_item_is_itself_is_refused() -> None:
    text = "class Q:\n    def item(self): return self\nq = Q()\n"
    reply, _ = answer({"kind": "number", "task": "q"}, load({"name": "a", "chunks": [["a.py", text]]}, 5), 5)
    assert reply["fault"]["type"] == "RecursionError"


def test_integer_arguments_have_their_dtype(traced: Callable[..., Any]) -> None:
    text = "def f(a, *, mesh):\n    assert a.dtype == 'int32', a.dtype\n    return a\n"
    assert traced(text, integers(0, 9, 8, spec=("x",))).program


def test_a_name_with_callback_in_it_is_no_callback(traced: Callable[..., Any]) -> None:
    fault = traced("def f(a, *, mesh):\n    return my_callback(a)\n", A).fault
    assert (fault["kind"], fault["message"]) == ("raised", "NameError: name 'my_callback' is not defined")


def test_where_the_time_ran_out_is_not_told(traced: Callable[..., Any]) -> None:
    """It is chance, here: one cell or the other."""
    cells = ["def one(): pass", "def f(a, *, mesh):\n    while True: one()\n"]
    fault = traced(cells, A, seconds=0.2).fault
    assert (fault["kind"], fault["line"], fault["file"]) == ("timeout", None, "")


def test_a_shared_context_changes_no_program(traced: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from jax._src.interpreters import mlir

    monkeypatch.setattr(mlir, "make_ir_context", mlir.make_ir_context)  # put back afterwards
    text = "import jax\ndef f(a, *, mesh):\n    return jax.numpy.sin(a) @ a.T\n"

    alone = traced(text, normal(8, 12)).form
    share_ir_context()
    assert [traced(text, normal(8, 12)).form for _ in range(3)] == [alone] * 3
    assert mlir.make_ir_context() is mlir.make_ir_context()


# -- what may be looked at while tracing -------------------------------------------------------

VALUES = "cannot be traced: it needs the values of an array (float(), if, np.asarray, .item() ...)"


@pytest.mark.parametrize(
    "line",
    [
        "return a * float(a[0, 0])",
        "return jnp.asarray(np.asarray(a))",
        "return a if a[0, 0] > 0 else -a",
        "return a * jax.device_get(a).sum()",
        "return a.addressable_shards[0].data + jnp.zeros((2, 8))",
        "assert float(a.sum()) == 3.5\n    return a",
    ],
)
def test_a_program_that_depends_on_values_it_was_shown_is_no_program(traced: Callable[..., Any], line: str) -> None:
    fault = traced(f"{IMPORTS}import numpy as np\ndef f(a, *, mesh):\n    {line}\n", A).fault
    assert fault["kind"] == "untraceable" and fault["message"].startswith(VALUES)
    assert (fault["line"], fault["file"]) == (9, "a.py")


def test_in_a_shard_map_and_in_a_jit_arrays_say_no_more_than_to_any_caller(traced: Callable[..., Any]) -> None:
    for wrapped in ("jax.jit(local)", 'jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))'):
        text = f"{IMPORTS}def f(a, *, mesh):\n    def local(a):\n        print(a.sharding)\n        return a\n    return {wrapped}(a)\n"
        fault = traced(text, A).fault
        assert fault["kind"] == "raised" and fault["line"] == line_of(text, "print"), fault
        assert "The 'sharding' attribute is not available on traced array" in fault["message"]


def test_looks_are_answered_for_the_gradients_too(traced: Callable[..., Any]) -> None:
    text = f"{IMPORTS}def f(a, *, mesh):\n    c = a * a\n    assert c.sharding.spec == P('x', 'y') == a.sharding.spec\n    return c\n"
    assert traced(text, A, wrt=("a",), cotangent=A).program


def test_what_looks_see_is_the_layout_that_a_call_would_show(traced: Callable[..., Any]) -> None:
    text = (
        f"{IMPORTS}def f(a, *, mesh):\n    c = jax.device_put(a, NamedSharding(mesh, P('y')))\n"
        "    assert c.sharding == NamedSharding(mesh, P('y')) and c.addressable_shards[0].data.shape == (4, 16)\n"
        "    assert [s.index[0].start for s in c.addressable_shards[:2]] == [0, 4], c.addressable_shards[:2]\n"
        "    return c\n"
    )
    assert traced(text, A).program


def test_looks_are_limited(traced: Callable[..., Any]) -> None:
    text = f"{IMPORTS}def f(a, *, mesh):\n    for i in range(17):\n        a.sharding\n    return a\n"
    fault = traced(text, A).fault
    assert "The 'sharding' attribute is not available" in fault["message"] and fault["line"] == line_of(
        text, "a.sharding"
    )


def test_jax_is_as_it_was_afterwards(traced: Callable[..., Any]) -> None:
    """Every stand-in is taken back, and no mesh, setting or look of one ask reaches the next."""
    owners = [jax, jax.debug, jax.lax, jax.sharding, jax.profiler, jax.distributed, type(jax.config), Tracer, jax.set_mesh]  # fmt: skip
    before = [dict(o.__dict__) for o in owners]
    text = f"{IMPORTS}jax.set_mesh(jax.make_mesh((8,), ('x',)))\nimport nothing_such\ndef f(a, *, mesh):\n    jax.set_mesh(mesh)\n    mesh.__enter__()\n    print(a.sharding)\n    return a\n"
    assert traced(text, A).program
    assert [dict(o.__dict__) for o in owners] == before
    assert jax.sharding.get_mesh().empty and jax.sharding.get_abstract_mesh().empty
    assert jax._src.mesh.thread_resources.env.physical_mesh.empty  # type: ignore[attr-defined]


def test_a_mesh_set_by_one_ask_is_not_in_force_for_the_next(devices: int) -> None:
    text = (
        f"{IMPORTS}def g(): jax.set_mesh(jax.make_mesh((8,), ('x',)))\ndef h(): return jax.sharding.get_mesh().empty\n"
    )
    program = load({"name": "a", "chunks": [["a.py", text]]}, 20)
    asks = [{"kind": "function", "task": name, "cases": [{"dict": []}]} for name in "gh"]
    assert [answer(ask, program, 20)[0] for ask in asks] == [{"values": [{"value": None}]}, {"values": [{"value": True}]}]  # fmt: skip


def test_jax_still_has_what_the_stand_ins_take_the_place_of() -> None:
    """Where this fails, JAX has changed: see ``tolerance`` and ``looks``, and run ``test_styles`` with it."""
    assert isinstance(jax.set_mesh, type) and callable(jax._src.core.trace_state_clean)  # type: ignore[attr-defined]
    assert "jax_num_cpu_devices" in jax.config.values  # type: ignore[attr-defined]
    assert isinstance(jax._src.mesh.thread_resources.stack, list)  # type: ignore[attr-defined]
    named = {*looks.ATTRIBUTES, *looks.CALLED} - {"__format__"}
    below = [kind for kind in Tracer.__subclasses__() if named & set(kind.__dict__)]
    assert named <= set(Tracer.__dict__) and below == []


def test_a_state_is_that_after_the_chunk_or_where_the_task_was_last_written(devices: int) -> None:
    cells = ["def f(): return X\nX = 1", "X = 2\ng = lambda: X", "def f(): return 10 * X\nX = 3", "X = 4\ndel g"]
    program = load({"name": "a", "chunks": [[f"cell {i}", c] for i, c in enumerate(cells, 1)]}, 20)

    def value(task: str, after: str | None) -> Any:
        ask = {"kind": "function", "task": task, "cases": [{"dict": []}], "after": after}
        reply, _ = answer(ask, program, 20)
        return reply["values"][0]["value"] if "values" in reply else reply["fault"]["message"]

    assert value("f", "cell 1") == 30  # written anew in cell 3
    assert value("f", "cell 4") == value("f", None) == value("f", "no such cell") == 40
    assert value("g", "cell 2") == 2 and value("g", "cell 3") == 3
    assert value("g", None) == "g is not defined"
    assert value("f", "cell 1") == 30


# -- modules that are not there ----------------------------------------------------------------


def test_a_state_is_kept_whatever_its_values_hold() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    round_and_round: dict[str, Any] = {"a": [1]}
    round_and_round["self"] = round_and_round
    shared = [{1, 2}]
    kept = as_they_are({"deep": deep, "r": round_and_round, "s": shared, "t": shared, "big": list(range(200_000))})
    key = type("Key", (), {"__hash__": lambda self: 1 // len(calls)})()
    calls: list[int] = [1]
    odd = {key: [1]}
    calls.clear()
    assert as_they_are({"odd": odd})["odd"] is odd and as_they_are({"odd": {1, "a"}}) == {"odd": {1, "a"}}
    round_and_round["a"].append(2)
    shared[0].add(3)
    assert kept["r"]["a"] == [1] and kept["r"]["self"] is kept["r"]
    assert kept["s"] == [{1, 2}] and kept["s"] is kept["t"] and len(kept["big"]) == 200_000


def test_a_module_that_is_not_there_is_told_where_it_is_used(traced: Callable[..., Any]) -> None:
    made = traced("import einops_not_there as e\n\n\ndef f(a, *, mesh):\n    return e.rearrange(a)\n", A)
    assert (
        made.fault["message"]
        == "einops_not_there is not installed where this is graded; line 1 imports it, line 5 uses it"
    )
    assert made.fault["line"] == 5
    assert [describe_load(f) for f in made.loading] == [
        "a.py imports einops_not_there at line 1, which is not installed where this is graded"
    ]


def test_what_uses_an_absent_module_at_the_top_is_left_out_and_told(traced: Callable[..., Any]) -> None:
    text = (
        "from __future__ import annotations\nimport plot_not_there as plt\nplt.plot([1])\nfig, ax = plt.subplots(\n    2)\n"
        "ax[0].plot()\ndef f(a: Unknown, *, mesh):\n    return a\n"
    )
    made = traced(text, A)
    assert made.program
    assert [describe_load(f) for f in made.loading][1:] == [
        f"a.py stopped at line {n}: plot_not_there is not installed where this is graded; line 2 imports it, line {n} uses it"
        for n in (3, 4, 6)
    ]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("from jax import no_such_name", "ImportError: cannot import name 'no_such_name' from 'jax'"),
        ("import jax.no_such_module", "ModuleNotFoundError: No module named 'jax.no_such_module'"),
        ("from . import sibling", "ImportError: attempted relative import with no known parent package"),
    ],
)
def test_a_misspelt_import_is_an_error_as_ever(traced: Callable[..., Any], line: str, told: str) -> None:
    (fault,) = traced(f"{line}\ndef f(a, *, mesh): ...\n", A).loading
    assert fault["message"].startswith(told) and "/" not in fault["message"]


def test_a_module_that_may_not_be_read_is_not_there_either(traced: Callable[..., Any], monkeypatch: Any) -> None:
    class Refusing:
        def find_spec(self, name: str, *rest: Any) -> None:
            if name == "forbidden_module":
                raise PermissionError(13, "Permission denied", "/usr/lib/somewhere/forbidden_module.py")

    monkeypatch.setattr(sys, "meta_path", [Refusing(), *sys.meta_path])
    assert traced("import forbidden_module\ndef f(a, *, mesh):\n    return a\n", A).program


# -- words ---------------------------------------------------------------------------------------


def test_an_assertion_without_words_shows_its_line(traced: Callable[..., Any]) -> None:
    text = "def f(a, *, mesh):\n    assert a.shape == (4, 8)\n    return a\n"
    assert traced(text, A).fault["message"] == "AssertionError: assert a.shape == (4, 8)"
    assert traced(text.replace("(4, 8)", "(4, 8), 'no'"), A).fault["message"] == "AssertionError: no"
    made = traced("def f():\n    assert 1 + 1 == 3\n", kind="function", cases=[{}])
    assert made.reply["values"][0]["message"] == "assert 1 + 1 == 3"


def test_the_useful_half_of_jaxs_advice_is_kept(traced: Callable[..., Any]) -> None:
    text = f'{IMPORTS}def f(a, *, mesh):\n    local = lambda a: lax.all_gather(a, "y", axis=1, tiled=True)\n    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x"))(a)\n'
    message = traced(text, A).fault["message"]
    assert "implies that the corresponding output value is replicated across mesh axis 'y'" in message
    assert "consider disabling the check by passing the check_vma=False argument to `jax.shard_map`" in message
    assert not message.endswith("...") and "The mesh given has shape" not in message


def test_no_folder_of_the_grading_machine_is_shown(traced: Callable[..., Any]) -> None:
    text = "def f(a, *, mesh):\n    open('/nowhere/at all/x-@~/secret.txt')\n"
    assert traced(text, A).fault["message"] == "FileNotFoundError: [Errno 2] No such file or directory: 'secret.txt'"
    text = (
        "def f(a, *, mesh):\n    raise ValueError('see https://docs.jax.dev/en/latest/x.html; /home/me/a/b.py, a/b')\n"
    )
    assert traced(text, A).fault["message"] == "ValueError: see https://docs.jax.dev/en/latest/x.html; b.py, a/b"
