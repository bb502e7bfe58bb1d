"""Time limits end endless code. The MLIR context that all children share changes no program."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import jax
import pytest

from grader.exercise import normal
from grader.learner import surroundings
from grader.learner.surroundings import share_ir_context
from grader.wire.limits import KERNEL_SECONDS
from tests.learner.texts import A


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
