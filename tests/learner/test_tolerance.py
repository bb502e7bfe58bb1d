"""Stand-ins replace parts of JAX only while learner code runs, and JAX still has these parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest
from jax.core import Tracer

from grader.learner import looks
from grader.learner.answering import answer
from grader.learner.loading import load
from grader.learner.tolerance import stand_ins, tolerant_jax
from tests.learner.test_answering import STYLES
from tests.learner.texts import IMPORTS, A


def test_jax_settings_are_restored_after_learner_code(traced: Callable[..., Any]) -> None:
    before, had, frames = jax.debug.print, hasattr(jax.lax, "pvary"), jax.config.values["jax_traceback_filtering"]
    traced(IMPORTS + STYLES["prints_left_in"], A)
    traced("raise ValueError", A)
    assert jax.debug.print is before and hasattr(jax.lax, "pvary") == had
    assert jax.config.values["jax_traceback_filtering"] == frames


def test_every_stand_in_is_removed_after_tracing(traced: Callable[..., Any]) -> None:
    """No mesh or setting of one ask is left for the next ask."""
    owners = [jax, jax.debug, jax.lax, jax.sharding, jax.profiler, jax.distributed, type(jax.config), Tracer, jax.set_mesh]  # fmt: skip
    before = [dict(o.__dict__) for o in owners]
    text = f"{IMPORTS}jax.set_mesh(jax.make_mesh((8,), ('x',)))\nimport nothing_such\ndef f(a, *, mesh):\n    jax.set_mesh(mesh)\n    mesh.__enter__()\n    print(a.sharding)\n    return a\n"
    assert traced(text, A).program
    assert [dict(o.__dict__) for o in owners] == before
    assert jax.sharding.get_mesh().empty and jax.sharding.get_abstract_mesh().empty
    assert jax._src.mesh.thread_resources.env.physical_mesh.empty  # type: ignore[attr-defined]


def test_a_mesh_set_by_one_ask_is_unset_for_the_next(devices: int) -> None:
    text = (
        f"{IMPORTS}def g(): jax.set_mesh(jax.make_mesh((8,), ('x',)))\ndef h(): return jax.sharding.get_mesh().empty\n"
    )
    program = load({"name": "a", "chunks": [["a.py", text]]}, 20)
    asks = [{"kind": "function", "task": name, "cases": [{"dict": []}]} for name in "gh"]
    assert [answer(ask, program, 20)[0] for ask in asks] == [{"values": [{"value": None}]}, {"values": [{"value": True}]}]  # fmt: skip


def test_jax_still_has_every_function_that_stand_ins_replace() -> None:
    """If this test fails, JAX has changed. Then adapt ``tolerance`` and ``looks``, and run ``test_answering``."""
    assert isinstance(jax.set_mesh, type) and callable(jax._src.core.trace_state_clean)  # type: ignore[attr-defined]
    assert "jax_num_cpu_devices" in jax.config.values  # type: ignore[attr-defined]
    assert isinstance(jax._src.mesh.thread_resources.stack, list)  # type: ignore[attr-defined]
    named = {*looks.ATTRIBUTES, *looks.CALLED} - {"__format__"}
    below = [kind for kind in Tracer.__subclasses__() if named & set(kind.__dict__)]
    assert named <= set(Tracer.__dict__) and below == []


def test_every_name_that_is_replaced_is_one_of_jaxs(devices: int) -> None:
    """JAX need not have old names and methods of computed arrays. If this test fails, JAX has moved a function."""
    names = {(getattr(owner, "__name__", ""), name) for owner, name, _ in stand_ins() if not hasattr(owner, name)}
    computed = {
        ("Tracer", name) for name in ("block_until_ready", "copy_to_host_async") if hasattr(jax.numpy.ones(1), name)
    }
    assert names <= {("jax.lax", "pvary"), ("jax.sharding", "use_mesh"), *computed}
    assert jax.config.update.__func__ is type(jax.config).update
    assert "trace_state_clean" in jax.set_mesh.__init__.__code__.co_names  # ``_anywhere`` replaces this function


def test_stand_ins_are_called_instead_of_jaxs_functions(devices: int) -> None:
    before = jax.config.values["jax_enable_x64"]
    with tolerant_jax():
        for name in ("print", "callback", "breakpoint", "visualize_array_sharding", "inspect_array_sharding"):
            assert getattr(jax.debug, name)() is None
        jax.config.update("jax_enable_x64", not before)
        with pytest.raises(AttributeError, match="Unrecognized config option: no_such"):
            jax.config.update("no_such", 1)
        jax.distributed.initialize("nowhere:1", 2, 0)
        jax.distributed.shutdown()
        jax.profiler.start_trace("nowhere")
        jax.profiler.stop_trace()
        with jax.profiler.trace("nowhere"):
            pass
        assert jax.make_jaxpr(lambda x: (jax.set_mesh(None), x)[1])(
            1.0
        )  # JAX's own set_mesh raises an error during a trace
        assert jax.device_get(jax.numpy.ones(2)).tolist() == [1, 1]
    assert jax.config.values["jax_enable_x64"] == before
