"""Check that a large program equals a small program, except for sizes.

The large program is timed but never runs. If it equals a small program that gives right values, the grader assumes that
the large program's values are right, too. Equal programs have equal operations in equal order, with equal operands (by
position), dtypes and attributes. A substitution of sizes, such as 13 by 4,096, must turn each size in the small program
into the size in the large program.

In messages, the small program is *the judged program*, and the large program *the timed program*.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from grader.common.substitution import Substitution
from grader.wire.operations import Body, Communication, Operation, Operations

NUMBER = re.compile(r"(?<![a-z\d])\d+")  # Matches a number, but not the 64 of i64.
# The result shapes of these operations follow from operands and attributes, which other methods compare.
FOLLOWS = {"concatenate", "convolution", "pad", "reduce_window", "slice"}
ROUNDS = 2  # A loop over N devices may have N - 2 to N + 2 rounds.
# A size may differ from a dimension's size by at most WINDOW. For example, a window of 4 entries has T - 3 positions
# along a dimension of size T.
WINDOW = 3
# The most arguments whose sizes ``sums`` adds up. Each set of arguments can add a pair of sizes to ``sums``, so with n
# arguments ``sums`` can have 2^n pairs.
MAX_SUMMED = 12
# The judged program may read a larger fraction of an array than the timed program. For example, the first 8 rows are a
# larger fraction of the judged program's smaller array. For each such read, take the difference between the two
# fractions. The sum of the differences over the program may be at most MOST_LOST.
MOST_LOST = Fraction(1, 2)
TAKES_PART = {"dynamic_slice", "gather", "pad", "reduce_window", "slice", "top_k"}  # Negative padding cuts an array.


@dataclass(frozen=True)
class Difference:
    """The first difference between two programs, with its line in the large program (if unknown, in the small one)."""

    message: str
    line: int | None = None
    file: str = ""


def difference(small: Operations, large: Operations, sizes: Substitution) -> Difference | None:
    """Return the first difference between the programs, except for sizes that ``sizes`` converts; None if equal."""
    return _Matching(small, large, sizes).first_difference()


@dataclass
class _Matching:
    """Comparison of two programs. A *pair* is a size in the small program and its counterpart in the large program.

    Attributes:
        sizes: the substitution. It turns a size in the small program into the size in the large program.
        sums: for each set of arguments, the pair of their total numbers of elements. A program may join these arguments
            in one flat array.
        follows: pairs of sizes that result from earlier operations such as slices, concatenations and collectives.
            Substitution need not convert these pairs exactly (see ``fits``).
    """

    small: Operations
    large: Operations
    sizes: Substitution
    sums: set[tuple[int, int]] = field(default_factory=set)
    follows: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Compute ``sums``, which stays empty unless the substitution converts the size of each argument."""
        sizes = [[math.prod(p.values[v].shape) for v in _arguments(p)] for p in (self.small, self.large)]
        pairs = list(zip(*sizes, strict=False))[:MAX_SUMMED]
        if all(self.fits(*pair) for pair in pairs):
            sums = {(0, 0)}
            for a, b in pairs:
                sums |= {(a + x, b + y) for x, y in sums}
            self.sums = sums

    def first_difference(self) -> Difference | None:
        one = two = None
        small, large = list(self.small.walk()), list(self.large.walk())
        for one, two in zip(small, large, strict=False):
            what = self.kinds(one, two) or self.numbers(one, two) or self.shapes(one, two)
            if what:
                return self.differ(one, two, what)
        if len(small) != len(large) and one is not None and two is not None:
            return self.differ(
                one, two, f"the timed program has {len(large)} operations, but the judged program has {len(small)}"
            )
        if (self.small.main.arguments, self.small.main.results) != (self.large.main.arguments, self.large.main.results):
            return Difference(
                "the results of the timed program and of the judged program come from different operations"
            )
        return self.shrinking_parts()

    def differ(self, one: Operation, two: Operation, what: str) -> Difference:
        at = two if two.line else one
        return Difference(what, at.line, at.file or "")

    # These methods compare an operation of the judged program with the matching operation of the timed program.

    def kinds(self, one: Operation, two: Operation) -> str:
        """Describe the first difference; '' if none. Sizes, attributes and rounds of loops are not compared."""
        if one.name != two.name:
            return f"the timed program has {_of(two, self.large)} where the judged program has {_of(one, self.small)}"
        if one.operands != two.operands or one.results != two.results or _bodies(one) != _bodies(two):
            return f"{_of(two, self.large)} has operands or results that differ from those in the judged program"
        for name in ("precision", "direction", "manual"):
            if (timed := getattr(two, name)) != (judged := getattr(one, name)):
                return f"{two.name} has {name} {timed} where the judged program has {judged}"
        dtypes = [[program.values[v].dtype for v in op.results] for op, program in self.both(one, two)]
        if dtypes[0] != dtypes[1]:
            return f"{two.name} returns {', '.join(dtypes[1])} where the judged program returns {', '.join(dtypes[0])}"
        return self.communication(one, two)

    def both(self, one: Operation, two: Operation) -> Sequence[tuple[Operation, Operations]]:
        return (one, self.small), (two, self.large)

    def communication(self, one: Operation, two: Operation) -> str:
        if one.communication is None or two.communication is None:
            return ""
        judged, timed = one.communication, two.communication
        if self.small.mesh == self.large.mesh:
            equal = judged.groups == timed.groups
        else:
            equal = judged.axes == timed.axes and self.devices(judged, timed)
        return (
            ""
            if equal
            else f"{two.name} communicates between different devices in the timed program and in the judged program"
        )

    def devices(self, judged: Communication, timed: Communication) -> bool:
        """Return True if a collective communicates between the same devices in both programs, except for sizes.

        The substitution must turn the sizes of the small program's groups into the sizes of the large program's groups.
        In a permute, sources and targets must be equally far apart. Either the number of pairs or the number of idle
        devices (which send nothing) must fit (see ``fits``).
        """
        if judged.kind != "permute":
            sizes = [{len(group) for group in each.groups} for each in (judged, timed)]
            return {self.sizes.of(n) for n in sizes[0]} == sizes[1]
        around = tuple(self.small.mesh.values())  # on two devices, the next device is also the previous device
        ways = [
            {tuple(step % n for step, n in zip(way, around, strict=True)) for way in _ways(each.groups, program.mesh)}
            for each, program in ((judged, self.small), (timed, self.large))
        ]
        pairs = [len(each.groups) for each in (judged, timed)]
        idle = [math.prod(p.mesh.values()) - n for p, n in zip((self.small, self.large), pairs, strict=True)]
        return ways[0] == ways[1] and (self.fits(*pairs) or self.fits(*idle))

    # These methods check conditions on the whole program.

    def shrinking_parts(self) -> Difference | None:
        """Return a difference if parts of fixed size make up most of a small array, but little of the large array.

        For example, ten rows at each end of an array cover all of 11 rows, but few of 4,096 rows. A program that
        computes only these rows has right values when it is small, but does little of the work when it is large.
        """
        lost, cuts = Fraction(0), set()
        for one, two, rounds in _zipped(self.small.main, self.large.main, (1, 1)):
            cut = one.name, one.operands, one.attributes
            if one.name not in TAKES_PART or cut in cuts or self.grows(one, two):
                continue
            cuts.add(cut)
            parts = [
                times * min(Fraction(_size(program, op.results[0]), _size(program, op.operands[0]) or 1), 1)
                for (op, program), times in zip(self.both(one, two), rounds, strict=True)
            ]
            lost += max(parts[0] - parts[1], Fraction(0))
            if lost > MOST_LOST:
                arrays = [program.values[op.operands[0]] for op, program in self.both(one, two)]
                judged, timed = (f"{array.dtype}{list(array.shape)}" for array in arrays)
                what = f"parts of fixed size, such as those of this {one.name}, make up most of {judged}"
                return self.differ(
                    one, two, f"{what} in the judged program, but a small part of {timed} in the timed program"
                )
        return None

    def grows(self, one: Operation, two: Operation) -> bool:
        """Return True if an operation takes a larger part of an array in the large program (``two``).

        For a gather, the array of indices must be larger. For other operations, the part must grow in each dimension in
        which the array grows. The part's two sizes must fit the substitution or be in ``sums``.
        """
        if one.name == "gather":
            text = one.attributes
            batch = re.search(r"start_indices_batching_dims = \[([\d, ]*)\]", text)
            vector = re.search(r"index_vector_dim = (\d+)", text)
            left_out = {
                int(n) for n in re.findall(r"\d+", f"{batch[1] if batch else ''} {vector[1] if vector else ''}")
            }
            indices = zip(*(program.values[op.operands[1]].shape for op, program in self.both(one, two)), strict=True)
            return any(a != b for dim, (a, b) in enumerate(indices) if dim not in left_out)
        wholes, parts = (
            zip(
                *(program.values[v].shape for v, program in zip(values, (self.small, self.large), strict=True)),
                strict=True,
            )
            for values in ((one.operands[0], two.operands[0]), (one.results[0], two.results[0]))
        )
        return all(
            whole[0] == whole[1] or part in self.sums or (part[0] != part[1] == self.sizes.of(part[0]))
            for whole, part in zip(wholes, parts, strict=True)
        )

    # Each of these methods compares operations of one kind.

    def numbers(self, one: Operation, two: Operation) -> str:
        """Return the difference in the attributes of two operations or in the rounds of two loops, as text, or ''."""
        judged, timed = (NUMBER.sub("#", op.attributes) for op in (one, two))
        if judged != timed:
            return f"{two.name} differs: {_differing(one.attributes, two.attributes)}"
        if not self.rounds(one.rounds, two.rounds):
            return (
                f"the loop has {two.rounds} rounds where the judged program has {one.rounds}{self.due(one.rounds or 0)}"
            )
        if one.name in ("slice", "pad"):
            return self.slice(one, two) if one.name == "slice" else self.pad(one, two)
        for a, b in zip(_numbers(one), _numbers(two), strict=True):
            if not (self.fits(a, b) or (a == b and self.may_count_dimensions(one, a))):
                return f"{two.name} has {b:,} where the judged program has {a:,}{self.due(a)}"
        return ""

    def may_count_dimensions(self, op: Operation, number: int) -> bool:
        """Return True if a number in an attribute may be the index of a dimension.

        Unlike sizes, such an index is equal in both programs. An index is less than the rank. A size that differs
        between the programs has a prime factor larger than the number of devices. So a number up to the number of
        devices cannot be such a size.
        """
        ranks = [len(self.small.values[v].shape) for v in (*op.operands, *op.results)]
        return number < max(ranks, default=0) and number <= math.prod(self.small.mesh.values())

    def rounds(self, one: int | None, two: int | None) -> bool:
        """Return True if the substitution turns the small program's number of rounds into the large program's.

        A small number may be added to both numbers first. For example, N - 1 rounds become N rounds, and substitution
        turns one N into the other.
        """
        if one is None or two is None:
            return one == two
        return self.fits(one, two) or self.near(one, two, ROUNDS)

    def slice(self, one: Operation, two: Operation) -> str:
        """Return the difference between slices as text, or ''.

        A bound must fit (see ``fits``), counted from the array's start or from its end.
        """
        wholes = [program.values[op.operands[0]].shape for op, program in self.both(one, two)]
        bounds = [_by_name(op.attributes) for op in (one, two)]
        for name in ("start_indices", "limit_indices", "strides"):
            for whole, a, b in zip(zip(*wholes, strict=True), bounds[0][name], bounds[1][name], strict=True):
                from_end = name != "strides" and self.fits(whole[0] - a, whole[1] - b)
                if not (self.fits(a, b) or from_end):
                    return f"slice cuts at {b:,} where the judged program cuts at {a:,}{self.due(a)}"
        return ""

    def pad(self, one: Operation, two: Operation) -> str:
        """Compare pads, and return the difference as text, or ''.

        In each dimension, the two programs' amounts of padding before the array must fit (see ``fits``), and so must
        the amounts after the array. If only one of them fits, the result's size must fit. For example, ``x`` has N
        rows, and the transpose of ``x[:8]`` adds 0 rows before and N - 8 rows after. The result has N rows. Here 0 and
        N fit, but N - 8 does not.
        """
        amounts = [_by_name(op.attributes) for op in (one, two)]
        wholes = [program.values[op.results[0]].shape for op, program in self.both(one, two)]
        for dim, whole in enumerate(zip(*wholes, strict=True)):
            low, high, inner = (
                tuple(each[name][dim] for each in amounts)
                for name in ("edge_padding_low", "edge_padding_high", "interior_padding")
            )
            right = [self.fits(*pair) for pair in (low, high)]
            if not self.fits(*inner) or not (all(right) or (any(right) and self.fits(*whole))):
                (a, b) = low if not right[0] else high
                return f"the timed program's pad adds {b:,} elements, but the judged program's adds {a:,}{self.due(a)}"
        return ""

    def shapes(self, one: Operation, two: Operation) -> str:
        inherited = {
            pair
            for x, y in zip(one.operands, two.operands, strict=True)
            for pair in zip(self.small.values[x].shape, self.large.values[y].shape, strict=False)
        }
        for x, y in zip(one.results, two.results, strict=True):
            pairs = list(zip(self.small.values[x].shape, self.large.values[y].shape, strict=False))
            if len(self.small.values[x].shape) != len(self.large.values[y].shape):
                timed, judged = len(self.large.values[y].shape), len(self.small.values[x].shape)
                return f"the result of {two.name} has rank {timed}, but rank {judged} in the judged program"
            if one.name == "concatenate":
                self.follows |= self.partial_sums(one, two)
            odd = [pair for pair in pairs if pair not in inherited and not self.fits(*pair)]
            known = one.name in FOLLOWS or one.communication or (one.name == "reshape" and len(odd) == 1)
            if odd and not known:
                (a, b) = odd[0]
                return f"{_of(two, self.large)} has a size of {b:,} where the judged program has {a:,}{self.due(a)}"
            self.follows |= set(odd)
        return ""

    def partial_sums(self, one: Operation, two: Operation) -> set[tuple[int, int]]:
        """Return, for each part of a concatenation, a pair: where the part ends in the small and in the large program.

        Later slices may cut at these positions.
        """
        (along,) = _numbers(one)[:1]
        sizes = [[program.values[v].shape[along] for v in op.operands] for op, program in self.both(one, two)]
        ends = [list(itertools.accumulate(each)) for each in sizes]
        return set(zip(*ends, strict=True))

    def fits(self, judged: int, timed: int) -> bool:
        """Return True if the size ``timed`` of the large program is right for the small program's size ``judged``.

        The size is right if the substitution turns ``judged`` into ``timed``, or if the pair is in ``sums``. For a pair
        in ``follows``, ``timed`` may also be larger than the substituted size, or fit after a small number is added to
        both sizes (see ``near``).

        A ``timed`` much smaller than the substituted size is wrong. Otherwise, a learner's program could build the 11
        rows that the small program needs from arrays of 5 and 6 rows. The large program would then also have 11 rows,
        although it needs 4,096.
        """
        due, pair = self.sizes.of(judged), (judged, timed)
        if due == timed or pair in self.sums:
            return True
        return pair in self.follows and (timed >= due or self.near(judged, timed, WINDOW))

    def near(self, judged: int, timed: int, most: int) -> bool:
        """Return True if substitution changes ``judged + k`` to ``timed + k`` for a k with 1 <= abs(k) <= ``most``."""
        few = [k for n in range(1, most + 1) for k in (n, -n) if judged + k > 0]
        return any(self.sizes.of(judged + k) == timed + k != judged + k for k in few)

    def due(self, judged: int) -> str:
        """Return a phrase with the substituted size of ``judged``; '' if it equals ``judged`` or is no whole number."""
        grown = self.sizes.of(judged)
        return f", so {int(grown):,} is expected here" if grown != judged and grown.denominator == 1 else ""


def _ways(pairs: Sequence[Sequence[int]], mesh: Mapping[str, int]) -> set[tuple[int, ...]]:
    """Return the different moves from sources to their targets.

    A move has the number of steps along each mesh axis. Each axis is a ring, so steps go round the shorter way. Steps
    backwards are negative. ``pairs``: (source, target) pairs of device numbers.
    """
    found, sizes = set(), list(mesh.values())
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    for source, target in pairs:
        steps = [(target // s % n - source // s % n) % n for s, n in zip(strides, sizes, strict=True)]
        found.add(tuple(step if 2 * step <= n else step - n for step, n in zip(steps, sizes, strict=True)))
    return found


def _zipped(one: Body, two: Body, rounds: tuple[int, int]) -> Iterator[tuple[Operation, Operation, tuple[int, int]]]:
    """Yield, for each pair of operations of two equal bodies, the operations and how often each program runs them."""
    for a, b in zip(one.operations, two.operations, strict=True):
        yield a, b, rounds
        inside = rounds if a.name != "while" else (rounds[0] * (a.rounds or 1), rounds[1] * (b.rounds or 1))
        for bodies in zip(a.bodies, b.bodies, strict=True):
            yield from _zipped(*bodies, inside)


def _size(program: Operations, value: int) -> int:
    return math.prod(program.values[value].shape)


def _arguments(program: Operations) -> list[int]:
    """Return indices into ``program.values`` of each device's inputs: the shards in a shard_map, else the arguments."""
    cut = [op.results[0] for op in program.main.operations if op.name == "shard"]
    return cut or list(program.main.arguments)


def _numbers(op: Operation) -> list[int]:
    return [int(n) for n in NUMBER.findall(op.attributes)]


def _by_name(attributes: str) -> Mapping[str, list[int]]:
    """Parse attributes, such as ``start_indices = array<i64: 0, 5>``, into lists by name."""
    found = re.findall(r"(\w+) = array<i64(?:: ([-\d, ]*))?>", attributes)
    return {name: [int(n) for n in re.findall(r"-?\d+", numbers)] for name, numbers in found}


def _bodies(op: Operation) -> Any:
    return [(body.arguments, body.results) for body in op.bodies]


def _differing(one: str, two: str) -> str:
    for a, b in itertools.zip_longest(one.split(", "), two.split(", "), fillvalue="nothing"):
        if NUMBER.sub("#", a) != NUMBER.sub("#", b):
            return f"{b[:60] or 'another value'} where the judged program has {a[:60] or 'another value'}"
    return "its attributes differ"


def _of(op: Operation, program: Operations) -> str:
    """Describe an operation: ``dot_general of bfloat16[16, 24] and bfloat16[24, 8]``."""
    arrays = [program.values[v] for v in op.operands[:2]]
    return f"{op.name}{' of ' if arrays else ''}{' and '.join(f'{a.dtype}{list(a.shape)}' for a in arrays)}"
