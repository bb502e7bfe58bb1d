"""Time limits end endless code. The MLIR context that all children share changes no program."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import jax
import pytest
from jax.core import Tracer

from grader.exercise import normal
from grader.learner import looks, surroundings
from grader.learner.answering import reply_to
from grader.learner.loading import load
from grader.learner.surroundings import share_ir_context, stand_ins, tolerant_jax
from grader.wire.limits import KERNEL_SECONDS
from grader.wire.messages import FunctionAsk
from tests.learner.test_answering import STYLES
from tests.learner.texts import IMPORTS, A


def test_a_loop_that_never_ends_is_reported(traced: Callable[..., Any]) -> None:
    fault = traced("def f(a, *, mesh):\n    while True: pass\n", A, seconds=0.3).fault
    assert (fault["kind"], fault["message"]) == ("timeout", "did not finish within 0.3 s")
    assert fault["line"] is None  # no line, because time runs out on a random line and reports must be reproducible


def test_swallowing_every_exception_does_not_swallow_the_time_limit(traced: Callable[..., Any]) -> None:
    text = "def f(a, *, mesh):\n    try:\n        while True: pass\n    except Exception:\n        return a\n"
    assert traced(text, A, seconds=0.3).fault["kind"] == "timeout"


def test_the_timer_is_restored_after_a_timeout(traced: Callable[..., Any]) -> None:
    before = signal.getsignal(signal.SIGPROF)
    traced("def f(a, *, mesh):\n    while True: pass\n", A, seconds=0.1)
    assert signal.getsignal(signal.SIGPROF) is before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_an_early_timer_signal_does_not_end_a_program(traced: Callable[..., Any]) -> None:
    """The timer may count ticks of other processes, so a signal ends a program only if its own CPU time is used up."""
    text = "import os, signal\ndef f(a, *, mesh):\n    os.kill(os.getpid(), signal.SIGPROF)\n    return a\n"
    assert traced(text, A, seconds=60).reply == {"program": True}


@pytest.mark.parametrize(
    ("system", "counted"), [(KERNEL_SECONDS / 2, 3.0), (KERNEL_SECONDS, 3.0), (KERNEL_SECONDS + 2, 5.0)]
)
def test_system_time_counts_only_beyond_the_allowance(
    system: float, counted: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KERNEL_SECONDS of system time are free, because allocation of memory takes longer on a busy machine."""
    begun = os.times()
    now = os.times_result((begun.user + 3, begun.system + system, 0, 0, 0))
    monkeypatch.setattr(os, "times", lambda: now)
    assert surroundings.counted_seconds(begun) == pytest.approx(counted)


def test_a_shared_context_changes_no_program(traced: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from jax._src.interpreters import mlir

    monkeypatch.setattr(mlir, "make_ir_context", mlir.make_ir_context)  # monkeypatch restores this after the test
    text = "import jax\ndef f(a, *, mesh):\n    return jax.numpy.sin(a) @ a.T\n"

    alone = traced(text, normal(8, 12)).form
    share_ir_context()
    assert [traced(text, normal(8, 12)).form for _ in range(3)] == [alone] * 3
    assert mlir.make_ir_context() is mlir.make_ir_context()


def test_jax_lowers_in_the_context_that_children_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """This test fails if JAX no longer makes its contexts with ``mlir.make_ir_context``, which is replaced."""
    from jax._src.interpreters import mlir

    monkeypatch.setattr(mlir, "make_ir_context", mlir.make_ir_context)  # monkeypatch restores this after the test
    share_ir_context()
    lowered = jax.jit(lambda x: x + 1).lower(1.0).compiler_ir("stablehlo")
    assert lowered is not None and lowered.context == mlir.make_ir_context()


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
    asks: list[FunctionAsk] = [{"kind": "function", "task": name, "cases": [{"dict": []}]} for name in "gh"]
    assert [reply_to(ask, program, 20)[0] for ask in asks] == [{"values": [{"value": None}]}, {"values": [{"value": True}]}]  # fmt: skip


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
