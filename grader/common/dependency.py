"""Dependencies between a program's operations, through operands and through the conditions of loops and branches.

An operation waits for its operands: if it uses any part of a value, it waits for the whole value. A *path* is one way
through the program's branches and loops. The method ``may`` returns the operations that wait for given values on at
least one path, and ``must`` returns the operations that wait on every path. With the argument ``within`` (the number of
a loop), ``may`` and ``before`` use only operations in the loop, and only dependencies inside one round.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from grader.common.observation import Collective, Fault
from grader.wire import operations
from grader.wire.operations import Body, Operation, Operations

MAX_PASSES = 64
MATMUL = "matmul"  # name for every operation that multiplies matrices
COLLECTIVES, MATMULS = "collectives", "matmuls"
LARGEST_BOUND = 1e-3
"""A result counts as changed if it moves by more than this fraction of its largest value, whatever its dtype. The
fraction is small, because one training step changes parameters only a little."""


@dataclass(frozen=True)
class OperationContext:
    """An operation, with the loops and branches around it.

    Attributes:
        loops: numbers of the loops around the operation, outermost first.
        under: values that decide whether the operation runs: the conditions of loops, and the values that select a
            branch.
        carried: the operands of the loops around the operation. A loop starts only when all its operands are computed.
        runs: False if the operation never runs, because a loop around it has no rounds.
        doubts: the branches and loops around the operation that perhaps do not run. A branch is (number of the
            conditional, index of the branch). A loop is (number of the loop, 0).
    """

    op: Operation
    loops: tuple[int, ...] = ()
    under: tuple[int, ...] = ()
    carried: tuple[int, ...] = ()
    runs: bool = True
    doubts: frozenset[tuple[int, int]] = frozenset()


class Dependency:
    """Dependencies between a program's operations, which are numbered in the order of ``Operations.walk``."""

    def __init__(self, program: Operations) -> None:
        self.program = program
        self.places: list[OperationContext] = []
        # Argument or result of a loop or branch -> the values that it may equal. For a loop's result, these include the
        # results of the loop's condition, which decide when the loop ends.
        self.parents: dict[int, tuple[int, ...]] = {}
        self.maker: dict[int, int] = {}  # Value -> the operation that makes it.
        self.loop_of: dict[int, int] = {}  # Argument of a loop's condition or body -> the loop.
        self._place(program.main, OperationContext(Operation("", (), ())))
        # The reverse of ``parents``: value -> the values that may equal it or depend on it.
        self.children: dict[int, list[int]] = {}
        for value, made_of in self.parents.items():
            for parent in made_of:
                self.children.setdefault(parent, []).append(value)
        self.users: dict[int, list[int]] = {}  # value -> the operations that use it directly
        for number, place in enumerate(self.places):
            for value in (*place.op.operands, *place.under):
                self.users.setdefault(value, []).append(number)
        self.needed = self._needed()

    def _place(self, body: Body, around: OperationContext) -> None:
        """Number the operations of a body in the order of ``walk``: an operation, then the operations in its bodies."""
        for op in body.operations:
            number = len(self.places)
            self.places.append(replace(around, op=op))
            for value in op.results:
                self.maker[value] = number
            if op.name == "while":
                self._place_loop(number, op, around)
            elif op.bodies:
                for i, value in enumerate(op.results):
                    self.parents[value] = tuple(branch.results[i] for branch in op.bodies)
                for i, branch in enumerate(op.bodies):
                    doubts = around.doubts | ({(number, i)} if len(op.bodies) > 1 else set())
                    self._place(branch, replace(around, under=(*around.under, *op.operands), doubts=doubts))

    def _place_loop(self, number: int, op: Operation, around: OperationContext) -> None:
        condition, body = op.bodies
        for i, (value, first, last) in enumerate(zip(op.results, op.operands, body.results, strict=True)):
            # A loop's result can equal the loop's operand only if it is possible that the loop runs zero rounds.
            self.parents[value] = (*(() if op.rounds else (first,)), last, *condition.results)
            for argument in (condition.arguments[i], body.arguments[i]):
                self.parents[argument] = (first, last)
                self.loop_of[argument] = number
        inside = replace(around, loops=(*around.loops, number), carried=(*around.carried, *op.operands))
        self._place(condition, inside)
        doubts = around.doubts | (set() if op.rounds else {(number, 0)})
        under = (*around.under, *condition.results)
        self._place(body, replace(inside, under=under, runs=around.runs and op.rounds != 0, doubts=doubts))

    def _needed(self) -> set[int]:
        """Return the operations that a result of the program depends on. The compiler drops all other operations."""
        found: set[int] = set()
        seen: set[int] = set()
        left = list(self.program.main.results)
        while left:
            value = left.pop()
            if value in seen:
                continue
            seen.add(value)
            left += self.parents.get(value, ())
            number = self.maker.get(value)
            if number is not None and number not in found:
                found.add(number)
                place = self.places[number]
                left += [*(() if place.op.bodies else place.op.operands), *place.under, *self._chosen_by(place.op)]
        return {n for n in found if self.places[n].runs}

    def _chosen_by(self, op: Operation) -> tuple[int, ...]:
        return op.operands if op.bodies and op.name != "while" else ()

    # -- which operations ----------------------------------------------------------------------

    def named(self, name: str) -> set[int]:
        """Return the operations with this name on which a result of the program depends.

        ``name``: a StableHLO name, a kind of collective, or "matmul".
        """
        return {n for n in self.needed if name in _names(self.places[n].op)}

    def results(self, numbers: Iterable[int]) -> set[int]:
        return {value for n in numbers for value in self.places[n].op.results}

    # -- may -----------------------------------------------------------------------------------

    def may(self, values: Collection[int], *, within: int | None = None, enter: bool = False) -> set[int]:
        """Return the operations that wait for at least one of ``values`` on at least one path through the program.

        Args:
            values: numbers of values.
            within: number of a loop. Dependencies through values that this loop carries to its next round are ignored.
            enter: whether the operations in a loop also wait for all operands of the loop.
        """
        entered = self._entered() if enter else {}
        found: set[int] = set()
        seen: set[int] = set()
        left = list(values)
        while left:
            value = left.pop()
            if value in seen:
                continue
            seen.add(value)
            left += [v for v in self.children.get(value, ()) if within is None or self._inside(v, within)]
            for number in (*self.users.get(value, ()), *entered.get(value, ())):
                place = self.places[number]
                if number in found or (within is not None and within not in place.loops):
                    continue
                found.add(number)
                if place.op.name != "while":  # a loop's result need not wait for all values that the loop waits for
                    left += place.op.results
        return found

    def before(self, number: int, *, within: int | None = None) -> set[int]:
        """Return the operations that the operation ``number`` waits for on some path. ``within``: see ``may``."""
        found: set[int] = set()
        seen: set[int] = set()
        left = [*self.places[number].op.operands, *self.places[number].under]
        while left:
            value = left.pop()
            if value in seen or not (within is None or self._inside(value, within)):
                continue
            seen.add(value)
            left += self.parents.get(value, ())
            maker = self.maker.get(value)
            if maker is None or maker in found:
                continue
            found.add(maker)
            place = self.places[maker]
            left += () if place.op.name == "while" else (*place.op.operands, *place.under)
        return found

    def _inside(self, value: int, loop: int) -> bool:
        """Return whether an operation inside the loop makes ``value``; False for a value that the loop carries."""
        if value in self.loop_of:
            return loop in self.places[self.loop_of[value]].loops
        return value in self.maker and loop in self.places[self.maker[value]].loops

    def _entered(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, place in enumerate(self.places):
            for value in place.carried:
                found.setdefault(value, []).append(number)
        return found

    # -- must ----------------------------------------------------------------------------------

    def must(self, values: Collection[int], *, enter: bool = False) -> set[int]:
        """Return the operations that wait for at least one of ``values`` on every path. ``enter``: see ``may``."""
        return _Surely(self, frozenset(values), enter).found()


def placed(found: Sequence[Collective], program: Operations | None, *, cotangents: int) -> list[Collective]:
    """Return the collectives ``found`` with their fields ``place`` and ``backward`` filled in from ``program``.

    ``place`` is a collective's position in the program, and ``backward`` is whether it waits for a cotangent. If
    ``program`` has other collectives than ``found``, return ``found`` unchanged.

    Args:
        found: the collectives, in program order. The list has the collectives of a function once for each call of the
            function.
        cotangents: how many of the program's arguments are cotangents; they are the last arguments.
    """
    if program is None:
        return list(found)
    operations = list(program.walk())
    places = [n for n, op in enumerate(operations) if _moves(op)]
    written = [c for c in found if not c.by_compiler]
    communications = [c for n in places if (c := operations[n].communication)]
    if [(c.kind, c.axes, c.groups) for c in written] != [(c.kind, c.axes, c.groups) for c in communications]:
        return list(found)
    backward = _waiting(places, program, cotangents) if cotangents and places else {}
    numbers = iter(places)
    return [c if c.by_compiler else replace(c, place=(n := next(numbers)), backward=backward.get(n)) for c in found]


def _waiting(places: Sequence[int], program: Operations, cotangents: int) -> dict[int, bool | None]:
    """Return, for each operation in ``places``, whether it waits for the program's last ``cotangents`` arguments.

    None means that the operation waits only on some paths.
    """
    graph, last = Dependency(program), program.main.arguments[-cotangents:]
    may, must = graph.may(last, enter=True), graph.must(last, enter=True)
    return {n: True if n in must else None if n in may else False for n in places}


def _moves(op: Operation) -> bool:
    """Return whether an operation is a collective that sends data, unlike a collective over an axis of size 1."""
    if op.communication is None:
        return False
    groups = op.communication.groups
    return any(a != b for a, b in groups) if op.communication.kind == "permute" else any(len(g) > 1 for g in groups)


def _names(op: Operation) -> tuple[str, ...]:
    kind = op.communication.kind if op.communication else op.name
    return (op.name, kind, MATMUL) if op.flops else (op.name, kind)


class _Surely:
    """A search for the operations that wait for ``values`` on every path through the program.

    The search walks over all operations repeatedly, until a walk finds no further operation that waits.
    """

    def __init__(self, graph: Dependency, values: frozenset[int], enter: bool) -> None:
        self.graph, self.values, self.enter = graph, values, enter
        self.waits: dict[int, bool] = {}
        self.number = 0
        self.operations: set[int] = set()
        self.changed = False

    def found(self) -> set[int]:
        for _ in range(MAX_PASSES):
            self.number, self.operations, self.changed = 0, set(), False
            self.body(self.graph.program.main, False)
            if not self.changed:
                return self.operations
        return set()

    def of(self, value: int) -> bool:
        return value in self.values or self.waits.get(value, False)

    def body(self, body: Body, under: bool) -> None:
        for op in body.operations:
            number, self.number = self.number, self.number + 1
            if under or any(self.of(v) for v in op.operands):
                self.operations.add(number)
            if op.name == "while":
                self.loop(op, under)
            elif op.bodies:
                self.branches(op, under)
            else:
                self.waits |= dict.fromkeys(op.results, number in self.operations)

    def loop(self, op: Operation, under: bool) -> None:
        condition, body = op.bodies
        believed = self.carried(op)
        under = under or (self.enter and any(self.of(v) for v in op.operands))
        self.body(condition, under)
        inside = under or any(self.of(v) for v in condition.results)
        self.body(body, inside)
        self.changed |= self.carried(op) != believed
        for i, value in enumerate(op.results):
            last = self.of(body.results[i])
            self.waits[value] = inside or (last and (bool(op.rounds) or self.of(op.operands[i])))

    def carried(self, op: Operation) -> list[bool]:
        """Return, for each value that a loop carries, whether it waits for ``self.values`` in every round.

        The method also stores the answers in ``waits``, for the arguments of the loop's condition and body.
        """
        condition, body = op.bodies
        found: list[bool] = []
        for i, first in enumerate(op.operands):
            last = body.results[i]
            again = op.rounds == 1 or last in self.values or self.waits.get(last, True)
            found.append(self.of(first) and again)
            self.waits[condition.arguments[i]] = self.waits[body.arguments[i]] = found[-1]
        return found

    def branches(self, op: Operation, under: bool) -> None:
        under = under or any(self.of(v) for v in op.operands)
        for branch in op.bodies:
            self.body(branch, under)
        for i, value in enumerate(op.results):
            self.waits[value] = under or all(self.of(branch.results[i]) for branch in op.bodies)


# -- operations that matter --------------------------------------------------------------------

# An operation matters if other values in place of its results change a result of the program. Collectives and matmuls
# are numbered separately, both in the order of ``Operations.walk``. A trial run (``Poison``) shows whether an operation
# matters. For a program without trial runs, ``alive`` counts every operation on which a result depends, even a matmul
# whose result is multiplied by 0.


class Poison(Protocol):
    """A trial: run a program again with other values in place of an operation's results."""

    def matter(self, what: str) -> Sequence[bool] | Fault:
        """Return, for each operation of the kind ``what``, whether it matters; a Fault if the trial runs failed."""
        ...


def numbers(program: Operations, what: str) -> list[int]:
    """Return the positions in ``walk`` of a program's operations of the kind ``what`` (collectives or matmuls)."""
    return [
        n
        for n, op in enumerate(program.walk())
        if (op.name in operations.MATMULS if what == MATMULS else op.communication is not None)
    ]


def alive(program: Operations, what: str) -> list[bool]:
    """Return, for each operation of the kind ``what``, whether a result of the program depends on it."""
    needed = Dependency(program).needed
    return [n in needed for n in numbers(program, what)]
