"""Group the operations of a body (a program, a loop's body or a branch) into units.

A unit is a kernel, a collective, a loop or a barrier. The core runs kernels one after another. Fusion follows rules
that ignore cost:

- Each matmul, convolution, reduction, sort, gather, scatter and collective is a unit.
- Cheap operations (elementwise operations, broadcasts, slices and the like) join the units that use their results.
- If only cheap operations use a matmul's result, these operations join the matmul. They must not need a collective or
  loop that the matmul does not need.
- A cheap operation becomes a kernel if a collective, a loop, a barrier or the body's result uses its value. It also
  becomes a kernel if, with the operations fused into it, it would have more than ``MAX_FUSED`` operands.
- A ``dynamic_update_slice`` is cheap if its array is filled with one number, and only one operation uses the result, an
  elementwise operation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from grader.clock.collectives import moves
from grader.wire.operations import Body, Operation, Operations

MATMULS = {"dot_general", "dot", "ragged_dot", "convolution"}
ROOTS = MATMULS | {
    "reduce", "reduce_window", "select_and_scatter", "sort", "top_k", "gather", "scatter", "dynamic_update_slice",
    "fft", "cholesky", "triangular_solve", "rng_bit_generator",
}  # fmt: skip
BLOCKS = {"while", "case", "if"}
ALIASES = {"reshape", "shard", "unshard", "sharding_constraint", "sharding_group", "propagation_barrier"}
TAKES_PART = {"slice", "dynamic_slice"}
# These operations are never fused into the end of a matmul.
NOT_AN_END = TAKES_PART | {"concatenate", "pad", "reverse", "dynamic_update_slice"}
ELEMENTWISE = {
    "abs", "add", "and", "atan2", "cbrt", "ceil", "clamp", "compare", "complex", "convert", "cosine",
    "count_leading_zeros", "divide", "exponential", "exponential_minus_one", "floor", "imag", "is_finite", "log",
    "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "not", "or", "popcnt", "power", "real",
    "reduce_precision", "remainder", "round_nearest_afz", "round_nearest_even", "rsqrt", "select", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor",
}  # fmt: skip
"""Operations in which each element of the result needs only the operands' elements at the same position."""
GIVEN = {"constant", "iota", "partition_id", "replica_id"}
MAX_FUSED = 128
"""The largest number of operands that a cheap operation and the operations fused into it may have together.

A cheap operation is fused into each unit that uses its result. Without a limit, the work of this module would grow with
the number of these units times the number of operands.
"""
MAX_CHAIN = 8
"""Largest number of operations in one chain at the end of a matmul."""
Kind = Literal["matmul", "kernel", "collective", "block", "barrier", "reshard"]


@dataclass
class Unit:
    """Operations that the clock schedules as one: a kernel, collective, loop or barrier.

    Attributes:
        at: the position of the unit's last operation in the body. Units are ordered by this position.
        root, inside: the unit's main operation, and the positions of all operations of the unit in the body.
        reads: for each input value, the number of its bytes that the unit reads.
        makes: the unit's output values.
        bytes: bytes read and written, each value once.
        after: indices of the units that must end before this unit starts.
        dies: True for an array update that overwrites the old array, because no later operation uses the old array.
    """

    at: int
    kind: Kind
    root: Operation
    inside: list[int] = field(default_factory=list)
    reads: dict[int, int] = field(default_factory=dict)
    makes: list[int] = field(default_factory=list)
    bytes: int = 0
    after: set[int] = field(default_factory=set)
    dies: bool = False

    @property
    def flops(self) -> int:
        return self.root.flops if self.kind == "matmul" else 0

    @property
    def collective(self) -> str:
        """The kind of the unit's collective; '' for other units."""
        return self.root.communication.kind if self.root.communication else ""


class Fused:
    """The units (kernels, collectives, loops, barriers) of one body: of a whole program, a loop's body or a branch.

    Attributes:
        units: the units in program order, each after all units that it needs.
        same: value -> the earlier value that it equals, for values such as the result of a reshape.
    """

    def __init__(self, program: Operations, body: Body, *, owns_arguments: bool) -> None:
        """Fuse a body. ``owns_arguments`` is True if the body may overwrite its arguments, as a loop's body may."""
        self.program, self.body = program, body
        self.ops = body.operations
        self.kept = set() if owns_arguments else set(body.arguments)
        self.same: dict[int, int] = {}
        self.maker: dict[int, int] = {}
        self.uses: dict[int, list[int]] = {}
        self.needed = self._needed()
        self._number_values()
        self.large = self._large()
        # Position of a cheap operation that is fused into a matmul's end -> position of the matmul.
        self.joined: dict[int, int] = {}
        self.ends: dict[int, list[int]] = {}
        self._join_matmuls()
        self.units: list[Unit] = []
        self._make_units()

    # These methods find the operations that make and use each value.

    def _needed(self) -> set[int]:
        """Return the positions of the operations that the body's results depend on."""
        makers = {v: i for i, op in enumerate(self.ops) for v in op.results}
        left = [makers[v] for v in self.body.results if v in makers]
        found: set[int] = set()
        while left:
            i = left.pop()
            if i not in found:
                found.add(i)
                left += [makers[v] for v in takes(self.ops[i]) if v in makers]
        return found

    def _number_values(self) -> None:
        self.results = set()
        for i, op in enumerate(self.ops):
            if i not in self.needed:
                continue
            if self._is_alias(op):
                self.same |= {r: self.of(o) for r, o in zip(op.results, op.operands, strict=False)}
                continue
            for v in op.results:
                self.maker[v] = i
            for v in dict.fromkeys(map(self.of, takes(op))):
                self.uses.setdefault(v, []).append(i)
        self.results = {self.of(v) for v in self.body.results}

    def _is_alias(self, op: Operation) -> bool:
        if op.name == "broadcast_in_dim":  # a broadcast that only adds dimensions of size 1 is a reshape
            return 0 < self.size(op.operands[0]) == self.size(op.results[0])
        return op.name in ALIASES or (op.communication is not None and not moves(op.communication))

    def of(self, value: int) -> int:
        return self.same.get(value, value)

    def size(self, value: int) -> int:
        """Return the bytes of an array; 0 for a single number."""
        about = self.program.values[value]
        return about.bytes if about.shape else 0

    def using(self, unit: Unit, value: int, *, but: Operation | None = None) -> Iterator[Operation]:
        """Yield the unit's operations whose results depend on ``value``, except the operation ``but``."""
        derived = {value}
        for op in (self.ops[i] for i in unit.inside):
            if op is not but and not derived.isdisjoint(map(self.of, op.operands)):
                derived |= set(op.results)
                yield op

    def light(self, i: int) -> bool:
        op = self.ops[i]
        heavy = op.communication is not None or op.name in ROOTS | BLOCKS | {"optimization_barrier", "reshard"}
        return not heavy or self._is_filled(i)

    def _is_filled(self, i: int) -> bool:
        """Return True if ``i`` is a ``dynamic_update_slice`` that is cheap (see the module's docstring)."""
        op = self.ops[i]
        if op.name != "dynamic_update_slice":
            return False
        filled, use = self.maker.get(self.of(op.operands[0])), self._only_use(op.results[0])
        return (
            use is not None
            and self.ops[use].name in ELEMENTWISE
            and filled is not None
            and self.ops[filled].name == "broadcast_in_dim"
            and not self.size(self.of(self.ops[filled].operands[0]))
        )

    def _large(self) -> set[int]:
        """Return the cheap operations that become kernels because of the limit ``MAX_FUSED`` on operands."""
        found: set[int] = set()
        inside: dict[int, set[int]] = {}  # for each cheap operation: itself and the operations fused into it
        for i in sorted(self.needed):
            if self._is_alias(self.ops[i]) or not self.light(i):
                continue
            before = {i}
            for v in map(self.of, self.ops[i].operands):
                before |= inside.get(self.maker.get(v, -1), set())
            if sum(len(self.ops[j].operands) for j in before) > MAX_FUSED:
                found.add(i)
            else:
                inside[i] = before
        return found

    # These methods fuse operations into the end of a matmul.

    def _join_matmuls(self) -> None:
        """Fuse cheap operations into a preceding matmul.

        For example, ``acc + a @ b`` is one kernel if ``acc`` is computed before the matmul.
        """
        needs = self._waits_for()
        for i in sorted(self.needed):
            if self.ops[i].name not in MATMULS:
                continue
            end, value = i, self.ops[i].results[0]
            while (chain := self._chain(value)) and all(self._ends_with(i, j, needs) for j in chain):
                self.joined |= dict.fromkeys(chain, i)
                self.ends.setdefault(i, []).extend(chain)
                end, value = chain[-1], self.ops[chain[-1]].results[0]
            if end != i:
                needs[i] |= needs[end]

    def _chain(self, value: int) -> list[int]:
        """Return all operations that use a matmul's result ``value``, to fuse them into the matmul; [] if impossible.

        The list has a single operation, or several elementwise operations with one result, as in ``g - g * y * y``.
        """
        chain: list[int] = []
        left = {value}
        while len(chain) < MAX_CHAIN and left.isdisjoint(self.results):
            j = min(j for v in left for j in self.uses[v] if j not in chain)
            chain.append(j)
            left = {v for v in {*left, *self.ops[j].results} if v in self.results or {*self.uses.get(v, [])} - {*chain}}
            if left == {self.ops[j].results[0]}:
                together = len(chain) == 1 or all(self.ops[j].name in ELEMENTWISE for j in chain)
                return chain if together else []
        return []

    def _only_use(self, value: int) -> int | None:
        uses = self.uses.get(value, [])
        return uses[0] if len(uses) == 1 and value not in self.results else None

    def _ends_with(self, matmul: int, j: int, needs: dict[int, int]) -> bool:
        op = self.ops[j]
        if not self.light(j) or j in self.large or op.name in NOT_AN_END or j in self.joined or len(op.results) != 1:
            return False
        if needs[j] & ~needs[matmul]:
            return False
        return max(self._roots_of(j), default=matmul) <= matmul

    def _roots_of(self, j: int) -> set[int]:
        """Return the positions of the units' main operations that ``j`` needs, directly or through cheap operations."""
        found, left, been = set(), [j], set()
        while left:
            for v in map(self.of, self.ops[left.pop()].operands):
                i = self.maker.get(v)
                if i is None or i in been:
                    continue
                been.add(i)
                if not self.light(i) or i in self.large:
                    found.add(i)
                elif i not in self.joined:
                    left.append(i)
                else:
                    found.add(self.joined[i])
        return found

    def _waits_for(self) -> dict[int, int]:
        """Return, for each operation, a bit mask of the collectives and loops that the operation needs."""
        found: dict[int, int] = {}
        bit = 1
        for i in sorted(self.needed):
            op, mask = self.ops[i], 0
            for v in map(self.of, takes(op)):
                if v in self.maker:
                    mask |= found[self.maker[v]]
            if not self._is_alias(op) and not self.light(i) and op.name not in ROOTS | {"optimization_barrier"}:
                mask, bit = mask | bit, bit << 1
            found[i] = mask
        return found

    # These methods make the units, which are kernels, collectives, loops and barriers.

    def _make_units(self) -> None:
        roots = [i for i in sorted(self.needed) if not self._is_alias(self.ops[i]) and not self.light(i)]
        self.alone = self._left_over(roots) | self.large
        self.made_by: dict[int, int] = {}
        for i in sorted({*roots, *self.alone}, key=lambda i: (self.ends.get(i, [i])[-1], i)):
            unit = self._unit(i)
            for v in unit.makes:
                self.made_by[v] = len(self.units)
            self.units.append(unit)
        for unit in self.units:
            unit.after = {self.made_by[v] for v in unit.reads if v in self.made_by}

    def _left_over(self, roots: list[int]) -> set[int]:
        """Return the cheap operations that are not fused into a unit, so that each of them becomes a kernel."""
        used = [self.of(v) for i in roots if self.ops[i].name not in ROOTS for v in takes(self.ops[i])]
        return {self.maker[v] for v in [*self.results, *used] if self._is_left_over(v)}

    def _is_left_over(self, value: int) -> bool:
        i = self.maker.get(value)
        return i is not None and self.light(i) and i not in self.joined

    def _unit(self, i: int) -> Unit:
        op, ends = self.ops[i], self.ends.get(i, [])
        unit = Unit(ends[-1] if ends else i, self._kind(i), op, [i, *ends])
        unit.makes = [self.ops[unit.at].results[0]] if ends else list(op.results)
        whole = self._reads(unit)
        unit.bytes = self._bytes(unit, whole)
        return unit

    def _kind(self, i: int) -> Kind:
        op = self.ops[i]
        if op.communication is not None:
            return "collective"
        if op.name == "reshard":
            return "reshard"
        if op.name in BLOCKS:
            return "block"
        if op.name == "optimization_barrier":
            return "barrier"
        return "matmul" if op.name in MATMULS else "kernel"

    def _reads(self, unit: Unit) -> dict[int, int]:
        """Return the bytes of each input value of a unit, and add cheap operations fused into it to ``unit.inside``."""
        own = {v for i in unit.inside for v in self.ops[i].results}
        left, been = list(unit.inside), set(unit.inside)
        while left:
            i = left.pop()
            op = self.ops[i]
            for n, v in enumerate(map(self.of, takes(op))):
                if v in own:
                    continue
                made = self.maker.get(v)
                if made is not None and self.light(made) and made not in self.joined and made not in self.alone:
                    if made not in been:
                        been.add(made)
                        left.append(made)
                        unit.inside.append(made)
                    continue
                part = self.size(op.results[0]) if op.name in TAKES_PART and n == 0 else self.size(v)
                unit.reads[v] = min(unit.reads.get(v, 0) + part, self.size(v))
        unit.inside.sort()
        return unit.reads

    def _bytes(self, unit: Unit, reads: dict[int, int]) -> int:
        op, written = unit.root, sum(map(self.size, unit.makes))
        if unit.kind in ("collective",):
            return op.communication.bytes if op.communication else 0
        if unit.kind in ("block", "barrier", "reshard"):
            return 0
        operands = [self.of(v) for v in op.operands]
        if op.name == "gather":
            return 2 * written + self.size(operands[1])
        if op.name == "sort":
            return 2 * written * max(1, math.ceil(math.log2(max(op.length, 2))))
        if op.name in ("dynamic_update_slice", "scatter"):
            return self._update(unit, operands)
        return sum(reads.values()) + written

    def _update(self, unit: Unit, operands: list[int]) -> int:
        """Return the bytes that an array update moves, including a copy if a later operation uses the old array."""
        op = unit.root
        arrays = operands[:1] if op.name == "dynamic_update_slice" else operands[: len(op.results)]
        if op.name == "scatter":
            each = 3 * sum(map(self.size, operands[len(arrays) + 1 :])) + self.size(operands[len(arrays)])
        else:
            each = 2 * self.size(operands[1])
        unit.dies = all(self.may_write(v, unit.at) for v in arrays)
        for v, made in zip(arrays, op.results, strict=True):
            # If the kernel does not read the updated array, the kernel makes and writes the whole array, usually zeros.
            if v not in unit.reads:
                each += self.size(made)
            elif not self.may_write(v, unit.at):
                each += 2 * self.size(v)
        return each

    def may_write(self, value: int, at: int) -> bool:
        """Return True if the operation at ``at`` may overwrite a value, because no operation uses the value later."""
        later = self.uses.get(value, [-1])[-1] > at
        # A value that the body neither makes nor gets as an argument belongs to outer code, which may still use it.
        owned = value in self.maker or value in self.body.arguments
        return owned and value not in self.kept and value not in self.results and not later


def takes(op: Operation) -> list[int]:
    """Return the values that an operation uses: its operands, and outer values that its bodies (loop, branch) use."""
    if not op.bodies:
        return list(op.operands)
    return list(dict.fromkeys([*op.operands, *(v for body in op.bodies for v in _free(body))]))


def _free(body: Body) -> list[int]:
    made, found = set(body.arguments), []
    for op in body.operations:
        found += [v for v in takes(op) if v not in made]
        made |= set(op.results)
    return [*found, *(v for v in body.results if v not in made)]
