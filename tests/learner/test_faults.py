"""For code that cannot be traced, the tracer returns a message of one line and the number of the code's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest

from grader.learner.faults import CONCRETE
from tests.learner.texts import IMPORTS, A, line_of

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
    "axis_outside_shard_map": (f"{IMPORTS}def f(a, *, mesh):\n    return lax.psum(a, 'x')  # here", "raised", "the axis 'x' is not defined here: call collectives over it only in the body of a jax.shard_map over 'x'"),
    "an_assertion_of_ones_own": ("def f(a, *, mesh):\n    axes = ('z',)\n    assert not axes  # here", "raised", "AssertionError"),
    "system_exit": ("def f(a, *, mesh):\n    raise SystemExit('bye')  # here", "raised", "SystemExit: bye"),
    "interrupt": ("def f(a, *, mesh):\n    raise KeyboardInterrupt  # here", "raised", "KeyboardInterrupt"),
    "too_much_memory": ("def f(a, *, mesh):\n    raise MemoryError  # here", "memory", "needs more memory than it may use"),
    "endless_recursion": ("def f(a, *, mesh):\n    return f(a, mesh=mesh)  # here", "raised", "RecursionError: maximum recursion depth exceeded"),
    "returns_text": ("def f(a, *, mesh):\n    return 'a'", "raised", "TypeError: function function"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_an_untraceable_program_is_reported_with_its_line(traced: Callable[..., Any], name: str) -> None:
    text, kind, message = FAULTS[name]
    fault = traced(text, A).fault
    assert fault["kind"] == kind
    assert fault["message"].startswith(message) and "\n" not in fault["message"]
    if "# here" in text:
        assert (fault["file"], fault["line"]) == ("a.py", line_of(text, "# here"))


OWN_MESHES = {  # for these meshes, JAX's error does not name the mesh that the learner should use
    "explicit": ("jax.make_mesh((4, 2), ('x', 'y'))", "uses a mesh of its own, with Explicit axes (the default of jax.make_mesh)"),
    "other_axes": ("Mesh(np.array(jax.devices()), ('x',))", "uses a mesh (x=8) of its own"),
    "fewer_devices": ("Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ('x', 'y'))", "uses a mesh of its own, with other devices, or with its devices in another order"),
    "another_order": ("Mesh(np.array(jax.devices()[::-1]).reshape(4, 2), ('x', 'y'))", "uses a mesh of its own, with other devices, or with its devices in another order"),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN_MESHES)
@pytest.mark.parametrize("where", ["a name of its own", "at the top", "no name"])
def test_use_of_an_own_mesh_is_reported(traced: Callable[..., Any], name: str, where: str) -> None:
    made, what = OWN_MESHES[name]
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
    assert message.endswith(f"{what}; use the mesh that the task gets, (x=4, y=2)"), message


def test_an_unrelated_own_mesh_is_not_mentioned(traced: Callable[..., Any]) -> None:
    unused = f"{IMPORTS}MESH = jax.make_mesh((8,), ('d',))\ndef f(a, *, mesh):\n    "
    for text in (
        f"{unused}return jax.shard_map(lambda a: a, mesh=mesh, in_specs=P('x', 'q'), out_specs=P('x', 'y'))(a)\n",
        f"{unused}print(MESH)\n    return a @ a\n",
        f"{unused}print(MESH)\n    raise ValueError('this mesh is none')\n",
    ):
        assert "of its own" not in traced(text, A).fault["message"]


def test_jaxs_own_not_implemented_error_is_no_unwritten_task(traced: Callable[..., Any]) -> None:
    text = f"{IMPORTS}def f(a, *, mesh):\n    local = lambda a: lax.pbroadcast(a, 'x', 0)\n    return jax.shard_map(local, mesh=mesh, in_specs=P('x', 'y'), out_specs=P('x', 'y'), check_vma=False)(a)\n"
    fault = traced(text, A).fault
    assert fault["kind"] == "raised"
    assert fault["message"].startswith("NotImplementedError: ")


def test_a_stubs_own_error_is_reported_as_unwritten_from_a_helper_too(traced: Callable[..., Any]) -> None:
    text = "def f(a, *, mesh):\n    return other(a)\ndef other(a):\n    raise NotImplementedError('other')\n"
    assert traced(text, A).fault["message"] == "not written yet (it raises NotImplementedError)"


def test_addresses_are_left_out_of_messages(traced: Callable[..., Any]) -> None:
    """Reports of equal submissions must be equal."""
    text = "class Odd: pass\ndef f(a, *, mesh):\n    raise ValueError(Odd())\n"
    assert traced(text, A).fault["message"].endswith("Odd object at 0x...>")


def test_a_message_that_cannot_be_shown_does_no_harm(traced: Callable[..., Any]) -> None:
    text = "class Bad(Exception):\n    def __str__(self): raise ValueError\ndef f(a, *, mesh):\n    raise Bad\n"
    assert traced(text, A).fault["message"] == "Bad: (its message cannot be shown)"


@pytest.mark.parametrize("result", ["'a'", "print", "[a, 'a']"])
def test_messages_contain_no_path_of_the_grader(traced: Callable[..., Any], result: str) -> None:
    """Reports contain no path, so that they are equal on all machines."""
    message = traced(f"def f(a, *, mesh):\n    return {result}\n", A).fault["message"]
    assert "answering.py" not in message and "/" not in message


def test_an_error_without_text_is_reported_by_its_name(traced: Callable[..., Any]) -> None:
    assert traced("def f(a, *, mesh):\n    raise KeyError\n", A).fault["message"] == "KeyError: raise KeyError"


def test_long_messages_are_cut(traced: Callable[..., Any]) -> None:
    fault = traced("def f(a, *, mesh):\n    raise ValueError('x' * 5000)\n", A).fault
    assert len(fault["message"]) < 700 and fault["message"].endswith("xxx...")


def test_a_function_name_with_callback_in_it_is_not_refused(traced: Callable[..., Any]) -> None:
    fault = traced("def f(a, *, mesh):\n    return my_callback(a)\n", A).fault
    assert (fault["kind"], fault["message"]) == ("raised", "NameError: name 'my_callback' is not defined")


def test_a_timeout_is_reported_without_file_and_line(traced: Callable[..., Any]) -> None:
    """Time can run out in any cell, and reports must be equal after each run."""
    cells = ["def one(): pass", "def f(a, *, mesh):\n    while True: one()\n"]
    fault = traced(cells, A, seconds=0.2).fault
    assert (fault["kind"], fault["line"], fault["file"]) == ("timeout", None, "")


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


def test_errors_that_are_known_by_name_are_jaxs() -> None:
    """The tracer recognizes some errors of JAX by name. This test fails if JAX renames them."""
    assert all(issubclass(getattr(jax.errors, name), Exception) for name in CONCRETE)
