"""Find which operations wait for which: a second derivation of ``grader.common.dependency``.

The interpreter (``tests.interpreter``) stores for each value the executions on which the value depends. An operation
in a branch or a loop depends on the condition of the branch or loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.interpreter import Array, Machine, Values

WATCHED = {"stablehlo.dot_general": "dot_general", "stablehlo.collective_permute": "permute"}
Path = tuple[Any, ...]


@dataclass(frozen=True)
class Ran:
    """One execution of a watched operation. ``number``: the operation's position, after all calls are inlined."""

    number: int
    # For each enclosing loop, outermost first: (number of the loop's execution, round in this execution).
    rounds: tuple[tuple[int, int], ...]
    time: int

    def in_round_of(self, other: Ran) -> bool:
        """Return whether this execution is in the same round as ``other``, in the innermost loop around ``other``."""
        return self.rounds[: len(other.rounds)] == other.rounds


class Watch(Machine):
    """An interpreter that records on which executions each execution of a watched operation depends.

    Attributes:
        waited: for each watched execution, the executions on which it depends.
    """

    def __init__(self, module: Any, mesh: Mapping[str, int]) -> None:
        super().__init__(module, mesh)
        self.numbers = {key: n for n, key in enumerate(self.written_out(self.functions["main"], ()))}
        self.kinds = [WATCHED[key[-1].name] for key in self.numbers]
        self.waited: dict[Ran, frozenset[Ran]] = {}
        self.marks: dict[Any, frozenset[Ran]] = {}
        self.under: list[frozenset[Ran]] = [frozenset()]
        self.rounds: tuple[tuple[int, int], ...] = ()
        self.calls: Path = ()
        self.returned: list[frozenset[Ran]] = []
        self.loops = 0

    def written_out(self, op: Any, calls: Path) -> Iterator[Path]:
        """Yield every watched operation, with the path of calls from ``main`` to the operation."""
        for region in op.regions:
            for inner in (o.operation for block in region for o in block):
                if inner.name in WATCHED:
                    yield (*calls, inner)
                elif inner.name == "func.call":
                    yield from self.written_out(self.functions[inner.attributes["callee"].value], (*calls, inner))
                else:
                    yield from self.written_out(inner, calls)

    def of(self, values: Sequence[Any]) -> frozenset[Ran]:
        return frozenset().union(self.under[-1], *(self.marks.get(v, frozenset()) for v in values))

    def take(self, arguments: Sequence[Any], marks: Sequence[frozenset[Ran]]) -> None:
        self.marks |= dict(zip(arguments, marks, strict=True))

    def block(self, block: Any, env: dict, who: list[int]) -> list[Values]:
        found = super().block(block, env, who)
        *_, last = list(block)
        self.returned = [self.of([o]) for o in last.operation.operands]
        return found

    def step(self, op: Any, env: dict, who: list[int]) -> list[Values]:
        before = self.calls
        if op.name in ("func.call", "sdy.manual_computation"):
            inner = self.functions[op.attributes["callee"].value] if op.name == "func.call" else op
            self.calls += (op,) if op.name == "func.call" else ()
            self.take(inner.regions[0].blocks[0].arguments, [self.of([o]) for o in op.operands])
        found = super().step(op, env, who)
        self.calls = before
        if op.name in ("func.call", "sdy.manual_computation", "stablehlo.while", "stablehlo.case"):
            self.take(op.results, self.returned)
            return found
        made = self.of(op.operands)
        if op.name in WATCHED:
            ran = Ran(self.numbers[(*self.calls, op)], self.rounds, len(self.waited))
            self.waited[ran] = made
            made |= {ran}
        self.take(op.results, [made] * len(op.results))
        return found

    def loop(self, op: Any, env: dict, who: list[int]) -> list[Values]:
        condition, body = (region.blocks[0] for region in op.regions)
        state: list[Values] = [list(env[o]) for o in op.operands]
        marks = [self.of([o]) for o in op.operands]
        number, rounds, self.loops = self.loops, 0, self.loops + 1
        while True:
            self.take(condition.arguments, marks)
            (go,) = self.block(condition, env | dict(zip(condition.arguments, state, strict=True)), who)
            (chosen,) = self.returned
            if not bool(go[who[0]]):
                break
            self.under.append(self.under[-1] | chosen)
            around, self.rounds, rounds = self.rounds, (*self.rounds, (number, rounds)), rounds + 1
            self.take(body.arguments, marks)
            state = self.block(body, env | dict(zip(body.arguments, state, strict=True)), who)
            marks, self.rounds = self.returned, around
            self.under.pop()
        self.returned = [m | chosen for m in marks]
        return state

    def choose(self, op: Any, env: dict, who: list[int]) -> list[Values]:
        index = min(int(env[op.operands[0]][who[0]]), len(op.regions) - 1)
        self.under.append(self.of([op.operands[0]]))
        found = self.block(op.regions[index].blocks[0], dict(env), who)
        self.under.pop()
        return found


def watched(module: Any, mesh: Mapping[str, int], inputs: Sequence[Array]) -> Watch:
    machine = Watch(module, mesh)
    machine.main(inputs)
    return machine
