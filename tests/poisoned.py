"""Run test programs in-process, and find which of their collectives and matmuls affect the results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grader.batch.in_process import InProcess
from grader.batch.running import collect
from grader.common.observation import Seen
from grader.exercise import Array, Call, Task
from grader.intake.submission import Chunk, Source
from grader.judging.plan import Ask, inputs_of, rng
from grader.judging.seen import AskFinding, seen_of

MESH = {"x": 4, "y": 2}
IMPORTS = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

def mapped(local, ins, outs, mesh):
    return jax.shard_map(local, mesh=mesh, in_specs=ins, out_specs=outs, check_vma=False)

def ring(a, n=4, axis="x"):
    return lax.ppermute(a, axis, [(i, (i + 1) % n) for i in range(n)])
"""


def task() -> None: ...


def answered(
    text: str,
    *args: Array,
    mesh: Mapping[str, int] = MESH,
    wrt: tuple[str, ...] = (),
    cotangent: Array | None = None,
) -> AskFinding:
    """Run the task ``f`` of ``text`` with arrays ``a``, ``b``, ..., and return its answer."""
    call = Call(Task("f", "array", task), dict(zip("abcdef", args, strict=False)), {}, (mesh,), {}, {}, wrt, cotangent)
    ask = Ask(call, mesh, {}, list(inputs_of(call, mesh, {}, {}, rng("open", "here"))), exercise="one")
    source = Source("a.py", (Chunk("a.py", IMPORTS + text),))
    (found,), notes = collect(InProcess({}), source, [ask])
    assert not notes and found.finding.observation, (notes, found.finding)
    return found


def seen(text: str, *args: Array, **more: Any) -> Seen:
    """Run the task ``f`` once, and return the ``Seen`` that a check gets."""
    (found,) = seen_of(answered(text, *args, **more), learners_run=True)
    return found


def matter(what: str, text: str, *args: Array, **more: Any) -> list[bool]:
    """Change each collective (or matmul) in turn, and return for each whether the program's results change."""
    found = seen(text, *args, **more)
    assert found.poison is not None
    said = found.poison.matter(what)
    assert isinstance(said, list), said
    return said
