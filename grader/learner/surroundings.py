"""A time limit for learner code, and work that is done once before processes are forked."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from functools import cache
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from grader.wire.limits import KERNEL_SECONDS


class TimeLimit(BaseException):
    """Raised inside learner code when its time is over. A learner's ``except Exception`` does not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimit in this thread after ``seconds`` of CPU time of this process, if the system has timers.

    Wall time depends on the machine's load, so CPU time is limited. The parent process ends code that sleeps too long.
    ``counted_seconds`` decides whether the time is over, because the system's timer may count CPU time of other
    processes.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    begun = os.times()

    def over(signum: int, frame: Any) -> None:
        if (left := seconds - counted_seconds(begun)) <= 0:
            raise TimeLimit
        signal.setitimer(signal.ITIMER_PROF, left)

    try:
        before = signal.signal(signal.SIGPROF, over)
    except ValueError:  # Signals work only in the main thread. In other threads, the caller limits the time.
        yield
        return
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def counted_seconds(begun: os.times_result) -> float:
    """Return the CPU seconds since ``begun`` that count towards the limit.

    The first ``KERNEL_SECONDS`` of kernel time do not count. On a busy machine, the kernel hands out memory pages
    slowly, so code that allocates all memory could otherwise reach the time limit before the memory limit.
    """
    now = os.times()
    return now.user - begun.user + max(0.0, now.system - begun.system - KERNEL_SECONDS)


def prepare() -> None:
    """Make an MLIR context and trace a small program, so that forked child processes need not do this work.

    This function starts no JAX backend and no thread, because backends and threads do not survive a fork.
    """
    share_ir_context()
    mesh = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
    body = jax.shard_map(
        lambda x: jax.lax.psum(x @ x, "x"), mesh=mesh, in_specs=PartitionSpec(), out_specs=PartitionSpec()
    )
    jax.make_jaxpr(body)(jax.ShapeDtypeStruct((2, 2), "float32"))


def share_ir_context() -> None:
    """Use one MLIR context for all programs of a process, because making a context is slower than a small trace.

    A context keeps every program in memory, so each process that traces programs must end after one submission. If JAX
    has no ``make_ir_context``, each program has its own context.
    """
    from jax._src.interpreters import mlir

    make = getattr(mlir, "make_ir_context", None)
    if make is not None and not hasattr(make, "cache_info"):
        mlir.make_ir_context = cache(make)
        mlir.make_ir_context()
