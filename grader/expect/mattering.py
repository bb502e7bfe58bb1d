"""Find the operations that matter: an operation matters if changing its results changes a result of the task.

A check that requires operations counts only operations that matter. The program of a timing call never runs. Its
operations matter if they matter in its small call, which has an equal program with smaller arrays. If the grader makes
no runs with changed operations, an operation matters if a result depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from grader.common import dependency
from grader.common.dependency import MATMUL
from grader.common.intervals import Interval
from grader.common.observation import Collective, Fault, Seen
from grader.expect.failure import Failure, prefix
from grader.wire.operations import KINDS, MATMULS, Body, Operation, Operations


class CannotSay(Exception):
    """The grader failed while it ran a program with changed operations, so it does not know which operations matter."""


def collectives_that_matter(seen: Seen) -> list[Collective]:
    """Return the collectives whose values change a result, and all collectives that the compiler added."""
    found = _matter(seen, dependency.COLLECTIVES)
    return [c for c in seen.collectives if c.number is None or found is None or found[c.number]]


def those_that_matter(seen: Seen, what: str) -> set[int] | None:
    """Return the indices, in ``walk`` order, of the collectives or matmuls that matter; None if unknown.

    ``what``: ``dependency.COLLECTIVES``, or ``dependency.MATMULS`` for matmuls.
    """
    found = _matter(seen, what)
    if found is None or seen.operations is None:
        return None
    every = dependency.numbers(seen.operations, what)
    return {n for n, matters in zip(every, found, strict=True) if matters}


def idle_ones(seen: Seen, name: str) -> set[int]:
    """Return the indices, in ``walk`` order, of the operations named ``name`` that do not matter."""
    found: set[int] = set()
    for what, named in ((dependency.MATMULS, (MATMUL, *MATMULS)), (dependency.COLLECTIVES, KINDS)):
        chosen = those_that_matter(seen, what) if name in named else None
        if chosen is not None and seen.operations is not None:
            found |= set(dependency.numbers(seen.operations, what)) - chosen
    return found


def flops_that_matter(seen: Seen) -> Interval:
    """Return a device's FLOPs in matmuls whose values change a result.

    A matmul written as multiplications and sums adds 0 FLOPs.
    """
    chosen = those_that_matter(seen, dependency.MATMULS)
    if chosen is None or seen.operations is None:
        return seen.dot_flops
    done = matmul_flops(seen.operations, chosen)
    if all(op.manual for op in seen.operations.walk() if op.flops):
        return done
    # Outside shard_map, a matmul has the FLOPs of whole arrays, and each device computes a part. So compute the
    # share of FLOPs that matter from whole arrays, and apply it to a device's FLOPs.
    every = matmul_flops(seen.operations)
    least, most = (
        d / e if e and e < math.inf else 1.0 for d, e in ((done.least, every.least), (done.most, every.most))
    )
    return Interval(seen.dot_flops.least * least, seen.dot_flops.most * most if most else 0)


def idle_note(seen: Seen) -> str:
    """Return text that names the first matmul whose values change no result; '' if there is none."""
    chosen = those_that_matter(seen, dependency.MATMULS)
    if chosen is None or seen.operations is None:
        return ""
    for number, op in enumerate(seen.operations.walk()):
        if op.name in MATMULS and number not in chosen:
            return f"; {prefix(op.file, op.line)}{op.name} is not counted: no result of the task depends on its values"
    return ""


def matmul_flops(program: Operations, chosen: Collection[int] | None = None) -> Interval:
    """Return the FLOPs of matmuls over all paths and rounds of loops.

    ``chosen``: the matmuls to include, as indices in the order of ``walk``; None for all matmuls.
    """
    numbers = {id(op): n for n, op in enumerate(program.walk())}

    def of_body(body: Body) -> Interval:
        return sum((of_one(op) for op in body.operations), Interval(0, 0))

    def of_one(op: Operation) -> Interval:
        if op.name == "while":
            condition, body = map(of_body, op.bodies)
            rounds = Interval(0, math.inf) if op.rounds is None else Interval.of(op.rounds)
            return condition * (rounds + 1) + body * rounds
        if op.bodies:
            each = [of_body(body) for body in op.bodies]
            return Interval(min(n.least for n in each), max(n.most for n in each))
        return Interval.of(op.flops if chosen is None or numbers[id(op)] in chosen else 0)

    return of_body(program.main)


def _matter(seen: Seen, what: str) -> list[bool] | None:
    if seen.poison is None:
        return None if seen.operations is None else dependency.alive(seen.operations, what)
    found = seen.poison.matter(what)
    if not isinstance(found, Fault):
        return list(found)
    if found.kind == "broken":
        raise CannotSay(found.message)
    raise Failure(
        f"the grader changes the results of the program's {what} to find the {what} that matter, "
        f"but the changed program fails: {found.message}"
    )
