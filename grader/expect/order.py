"""What must be done before an operation can start, and what does not wait for it.

Operations go by StableHLO's names ("dot_general"), the kinds of collectives ("permute"), or "product", which is
every operation that multiplies matrices. What no result needs is left out: the compiler drops it.
"""

from __future__ import annotations

from typing import Literal, NoReturn

from grader.common.dependency import PRODUCTS, Dependency
from grader.common.observation import Seen
from grader.expect.failure import Failure
from grader.expect.mattering import idle_ones
from grader.wire.operations import KINDS, Operation

MAX_PAIRS = 1_000_000


def expect_not_waiting(seen: Seen, what: str, *, on: str = PRODUCTS, rounds: Literal["any", "same"] = "any") -> None:
    """No ``what`` needs the result of an ``on``, on any path: ``expect_not_waiting(seen, "permute", on="product")``.

    ``rounds="same"``: of those in the same round of the loop that it stands in; what the loop carries may come from any.
    """
    graph, those = _those(seen, what)
    sources = _sources(graph, on)
    for number in sorted(those):
        loop = _loop(graph, number) if rounds == "same" else None
        waited = sources & graph.before(number, within=loop)
        if waited:
            why = "it must be able to start without" + (" in the same round" if loop is not None else "")
            _fail(graph, number, f"waits for {_name(graph, min(waited))}, which {why}")


def expect_waits(seen: Seen, what: str, *, on: str) -> None:
    """Every ``what`` needs the result of some ``on``, on every path: ``expect_waits(seen, "all_reduce", on="product")``.

    A part of a result is not enough: the compiler may make that part alone.
    """
    graph, those = _those(seen, what)
    surely = graph.must(graph.results(_sources(graph, on)))
    for number in sorted(those - surely):
        _fail(graph, number, f"can start before there is the result of a {on}; it must wait for one")


def expect_beside(seen: Seen, what: str, of: str = PRODUCTS) -> None:
    """For every ``what`` there is an ``of``, in the same round of the same loop, and neither waits for the other.

    So they can run at the same time: ``expect_beside(seen, "permute")`` is a ring that can hide its permutes.
    An ``of`` of which no result changes when what it returns is changed is none (``mattering``).
    """
    graph, those = _those(seen, what)
    sources = _sources(graph, of)
    idle = idle_ones(seen, of)
    sources -= idle
    for number in sorted(those):
        loop = _loop(graph, number)
        near = {n for n in sources - {number} if _runs_with(graph, n, number)}
        tied = near & (graph.before(number, within=loop) | graph.may(graph.results({number}), within=loop))
        again = {_made_of(graph, n) for n in tied}  # the compiler makes once what is written twice
        if not any(_made_of(graph, n) not in again for n in near - tied):
            where = "in its round of the loop" if loop is not None else "in the program"
            why = f"has no {of} beside it: each one {where} waits for it, or it waits for that one"
            if idle:
                why += f"; {_name(graph, min(idle))} is not counted: no result changes when what it returns is changed"
            _fail(graph, number, why)


def expect_same_structure(seen: Seen, other: Seen) -> None:
    """Both have the same products and collectives: kinds, groups, loops and rounds, and what of them waits for what.

    ``seen`` is of a call whose values are judged, ``other`` of a timing call of the same task on the same mesh. So what is
    timed is the program that computes the right values, at other sizes, and not another one that a task has for large
    arrays. How large its arrays are is not compared: see ``expect_flops(at_least=...)`` and ``expect_traffic``.
    """
    one, two = (_structure(each) for each in (seen, other))
    if [what for _, what in one] == [what for _, what in two]:
        return
    place = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a[1] != b[1]), min(len(one), len(two)))
    names = [found[place][0] if place < len(found) else "nothing more" for found in (one, two)]
    if names[0] == names[1]:
        names[0] = "one that differs in its devices, its loops or what it waits for"
    raise Failure(
        f"at the sizes of the timing call it is another program than the one whose values are judged: of its products "
        f"and collectives number {place + 1} is {names[1]}, and with the values' sizes {names[0]}",
        expected=len(one),
        actual=len(two),
    )


def _structure(seen: Seen) -> list[tuple[str, tuple]]:
    """Products and collectives in order: each one's name, and what two programs are compared by."""
    if seen.operations is None:
        raise Failure("the program is too large for the order of its operations to be judged; use lax.fori_loop")
    graph = Dependency(seen.operations)
    chosen = sorted(set().union(*(graph.named(name) for name in (PRODUCTS, *KINDS))))
    if len(chosen) * len(graph.places) > MAX_PAIRS:
        raise Failure("the program has too many products and collectives to be compared; use lax.fori_loop")
    at = {number: i for i, number in enumerate(chosen)}
    found = []
    for number in chosen:
        place = graph.places[number]
        loops = tuple(graph.places[n].op.rounds for n in place.loops)
        needs = frozenset(at[n] for n in graph.before(number) if n in at)
        about = place.op.communication
        kind = (about.kind, about.groups) if about else (place.op.name, ())
        found.append((_kind(place.op), (*kind, loops, len(place.doubts), needs)))
    return found


def _kind(op: Operation) -> str:
    about = op.communication
    return f"{about.kind} over {' and '.join(about.axes)}" if about and about.axes else op.name


def _those(seen: Seen, what: str) -> tuple[Dependency, set[int]]:
    """The operations that are asked about; of collectives those that ``seen`` has. Raises Failure where there are none."""
    if seen.operations is None:
        raise Failure("the program is too large for the order of its operations to be judged; use lax.fori_loop")
    graph = Dependency(seen.operations)
    found = graph.named(what)
    if what in KINDS:
        chosen = [c for c in seen.collectives if c.kind == what]
        if any(c.place is None for c in chosen):
            raise Failure(f"a {what} is put in by the compiler: what it waits for cannot be read from the program")
        found &= {c.place for c in chosen if c.place is not None}
    if not found:
        raise Failure(f"the program has no {what} that its results need{' ' if seen.part else ''}{seen.part}")
    if len(found) * len(graph.places) > MAX_PAIRS:
        raise Failure(f"the program has too many {what} for their order to be judged; use lax.fori_loop")
    return graph, found


def _sources(graph: Dependency, name: str) -> set[int]:
    found = graph.named(name)
    if not found:
        raise Failure(f"the program has no {name} that its results need: nothing can be said of what waits for one")
    return found


def _loop(graph: Dependency, number: int) -> int | None:
    """The innermost loop around an operation."""
    return graph.places[number].loops[-1] if graph.places[number].loops else None


def _runs_with(graph: Dependency, other: int, number: int) -> bool:
    """Whether one operation runs in every round of the innermost loop around another in which that one runs."""
    loop, place = _loop(graph, number), graph.places[other]
    return (loop is None or loop in place.loops) and place.doubts <= graph.places[number].doubts


def _made_of(graph: Dependency, number: int) -> tuple[str, tuple[int, ...]]:
    op = graph.places[number].op
    return op.name, op.operands


def _fail(graph: Dependency, number: int, why: str) -> NoReturn:
    line = _line(graph.places[number].op)
    raise Failure(f"{line}{': ' if line else ''}{_name(graph, number, line=False)} {why}", where=line)


def _name(graph: Dependency, number: int, *, line: bool = True) -> str:
    """``permute of float32[16, 24] over x`` and its line."""
    op = graph.places[number].op
    arrays = [graph.program.values[v] for v in op.operands[:1]]
    about = op.communication
    kind, axes = (about.kind, f" over {' and '.join(about.axes)}") if about and about.axes else (op.name, "")
    at = f" in {_line(op)}" if line and op.line else ""
    return f"{kind}{''.join(f' of {a.dtype}{list(a.shape)}' for a in arrays)}{axes}{at}"


def _line(op: Operation) -> str:
    cell = f"{op.file}, " if op.file and op.file.startswith("cell") else ""
    return f"{cell}line {op.line}" if op.line else ""
