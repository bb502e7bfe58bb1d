"""The surroundings of learner code: a time limit, a tolerant JAX, and work that is done before processes are forked.

In a *tolerant* JAX, calls that work outside of tracing also work while a learner's function is traced.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.debug
import jax.profiler
from jax._src import core
from jax._src.mesh import thread_resources
from jax.sharding import AbstractMesh, AxisType, PartitionSpec

from grader.learner import looks
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


# -- before processes are forked -------------------------------------------------------------------


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
        mlir.make_ir_context = functools.cache(make)
        mlir.make_ir_context()


# -- a tolerant JAX --------------------------------------------------------------------------------


@contextlib.contextmanager
def tolerant_jax() -> Iterator[None]:
    """Ignore debug prints and changes of JAX's settings during the block, and accept names that JAX has removed.

    Tracebacks keep JAX's own stack frames, because ``faults.unbound_axis`` reads them. Enter this context only once per
    source (a learner's file or notebook), because entering and leaving take a twentieth of the time of a trace.
    """
    frames = jax.config.jax_traceback_filtering  # type: ignore[attr-defined]
    update = jax.config.update
    update("jax_traceback_filtering", "off")
    try:
        with contextlib.ExitStack() as undo:
            undo.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            for owner, name, stand_in in stand_ins():
                undo.enter_context(_in_place_of(owner, name, stand_in))
            yield
    finally:
        update("jax_traceback_filtering", frames)


def stand_ins() -> Iterator[tuple[Any, str, Any]]:
    """Yield (owner, name, replacement) for each attribute of JAX to replace, or to add if JAX has removed it."""
    # These functions call the host, which is impossible in an exported program.
    for name in ("print", "callback", "breakpoint", "visualize_array_sharding", "inspect_array_sharding"):
        yield jax.debug, name, _nothing
    # JAX replaced pvary by pcast, and use_mesh by set_mesh.
    if not hasattr(jax.lax, "pvary"):
        yield jax.lax, "pvary", lambda x, axis_name: jax.lax.pcast(x, axis_name, to="varying")
    if not hasattr(jax.sharding, "use_mesh"):
        yield jax.sharding, "use_mesh", jax.set_mesh
    # Settings in learner code would change later traces. JAX also refuses some of the calls below once devices exist.
    yield type(jax.config), "update", _known_setting
    yield jax.distributed, "initialize", _nothing
    yield jax.distributed, "shutdown", _nothing
    yield jax.profiler, "start_trace", _nothing
    yield jax.profiler, "stop_trace", _nothing
    yield jax.profiler, "trace", contextlib.nullcontext
    yield from ((core.Tracer, name, stand_in) for name, stand_in in looks.stand_ins().items())
    yield jax, "device_get", looks.with_shown(jax.device_get)
    # Patch the class itself, because learners may call it by another name than jax.set_mesh.
    yield jax.set_mesh, "__init__", _anywhere(jax.set_mesh.__init__)
    yield jax.sharding, "get_mesh", _anywhere(jax.sharding.get_mesh)


def _nothing(*args: Any, **options: Any) -> None:
    return None


def _known_setting(config: Any, name: str, value: Any) -> None:
    """Ignore a learner's change of a JAX setting. Like JAX, raise AttributeError for an unknown setting."""
    if name not in config.values:
        raise AttributeError(f"Unrecognized config option: {name}")


@contextlib.contextmanager
def _in_place_of(owner: Any, name: str, stand_in: Any) -> Iterator[None]:
    absent = object()
    was = owner.__dict__.get(name, absent)
    setattr(owner, name, stand_in)
    try:
        yield
    finally:
        if was is not absent:
            setattr(owner, name, was)
        elif name in owner.__dict__:
            delattr(owner, name)


# -- the current mesh --------------------------------------------------------------------------


def mesh_is_set() -> bool:
    """Return whether ``jax.set_mesh(mesh)`` or ``mesh.__enter__()`` is still in effect."""
    return not (jax.sharding.get_mesh().empty and thread_resources.env.physical_mesh.empty)


def _anywhere(own: Callable) -> Callable:
    """Make a function usable inside ``jax.jit``, although JAX refuses to run it there. The grader traces tasks in jit.

    Inside a shard_map, the function still raises JAX's error, because the mesh that it sets or returns would lack the
    shard_map's manual axes.
    """

    @functools.wraps(own)
    def called(*args: Any, **options: Any) -> Any:
        if AxisType.Manual in jax.sharding.get_abstract_mesh().axis_types:
            return own(*args, **options)
        with _in_place_of(core, "trace_state_clean", lambda: True):
            return own(*args, **options)

    return called


@contextlib.contextmanager
def mesh_contexts_left() -> Iterator[None]:
    """After the block, exit the mesh contexts that learner code left open (``jax.set_mesh``, ``mesh.__enter__()``)."""
    depth = len(thread_resources.stack)
    try:
        with jax.set_mesh(None):  # type: ignore[arg-type]
            yield
    finally:
        while len(thread_resources.stack) > depth:
            thread_resources.env.physical_mesh.__exit__(None, None, None)
