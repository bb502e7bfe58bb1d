"""Facts from the text of the compiled program: collectives that the compiler added, and the FLOPs of one device.

XLA prints a compiled program as computations (functions) with instructions. If XLA does not print a loop's number of
rounds, this number is unknown. The *canonical program* is the learner's program before compilation (see ``program``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from grader.common.intervals import UNKNOWN, Interval, Path, sum_over_paths
from grader.common.observation import Collective, total
from grader.runner import flops
from grader.runner.admission import RAGGED, ProgramRefused
from grader.runner.flops import FREE, FlopCount
from grader.runner.groups import (
    Groups,
    are_partial,
    axis_groups,
    crossed_axes,
    cyclic_shift,
    sent_in_group,
    some_senders,
)
from grader.runner.hlo_text import Computation, HloInstruction, dtype_name, hlo_bytes, parse, shapes, trip_count, until
from grader.wire.limits import MAX_STEPS

KINDS = {
    "all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
    "all-to-all": "all_to_all", "ragged-all-to-all": "ragged_all_to_all", "collective-permute": "permute",
    "collective-broadcast": "broadcast",
}  # fmt: skip
# A kind of collective in the learner's program -> kinds that it may have in the compiled program. For example, XLA:CPU
# replaces a reduce-scatter by an all-reduce.
BECOMES = {"reduce_scatter": {"reduce_scatter", "all_reduce"}, "broadcast": {"broadcast", "permute"}}


# -- along the calls ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Visit:
    """An instruction of a compiled program, visited in one call of its computation (function).

    Attributes:
        of: the instruction.
        times: how often the instruction runs because of this call.
        path: the branches of conditionals that contain the instruction.
        data: the number of operands that may depend on the program's arguments; 0 if ``walk`` did not count them.
        shapes: the shapes of the computation's values, by name.
    """

    of: HloInstruction
    times: Interval
    path: Path
    data: int
    shapes: Mapping[str, str]


def walk(hlo: str, *, costed: bool = True) -> Iterator[Visit]:
    """Yield every instruction of the compiled program, once for each chain of calls that leads to it.

    ``costed``: True to set ``Visit.data``, the number of operands that may depend on the program's arguments.
    """
    computations, entry = parse(hlo)
    return _Walk(computations, costed).computation(entry, Interval.of(1), (), [])


class _Walk:
    def __init__(self, computations: dict[str, Computation], costed: bool) -> None:
        self.computations, self.costed = computations, costed
        self.steps = self.cases = 0

    def computation(self, name: str, times: Interval, path: Path, given: Sequence[bool]) -> Iterator[Visit]:
        """Yield the instructions of a computation, and of all computations that it calls.

        ``given``: for each parameter of the computation, True if it cannot depend on the program's arguments.
        """
        known: set[str] = set()
        shapes = {i.name: i.shape for i in self.computations.get(name, [])}
        for one in self.computations.get(name, []):
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise ProgramRefused(
                    "the compiled program has too many instructions "
                    "(each call of a function counts its instructions again)"
                )
            opcode = one.opcode.replace("-", "_")
            calls = list(self.calls(one, opcode, shapes)) if one.calls else []
            data = _data_of(one, opcode, given, known, bool(calls)) if self.costed else 0
            yield Visit(one, times, path, data, shapes)
            passed = [o in known for o in one.operands] if self.costed and opcode in ("fusion", "call") else []
            for called, often, branch in calls:
                yield from self.computation(called, times * often, path + branch, passed)

    def calls(self, one: HloInstruction, opcode: str, named: Mapping[str, str]) -> Iterator[tuple[str, Interval, Path]]:
        """Yield each computation that an instruction runs, how often it runs, and its branch in a conditional."""
        if opcode == "while":
            rounds = trip_count(one)
            yield from ((c, rounds + 1, ()) for c in one.called("condition"))
            yield from ((c, rounds, ()) for c in one.called("body"))
        elif opcode == "conditional":
            branches = one.called("branch_computations", "true_computation", "false_computation")
            case, self.cases = self.cases, self.cases + 1
            for number, called in enumerate(branches):
                yield called, Interval.of(1), ((case, number, len(branches)),)
        elif one.opcode.removesuffix("-start") not in KINDS:
            # Leave out arithmetic inside a collective, such as the sum of an all-reduce.
            often = applied(one, opcode, named)
            called = one.called("calls", "to_apply", "called_computations", "select", "scatter")
            yield from ((c, often, ()) for c in called)


def _data_of(one: HloInstruction, opcode: str, given: Sequence[bool], known: set[str], calls: bool) -> int:
    """Return how many operands are data, which means that they may depend on the program's arguments.

    If no operand is data, add the instruction's name to ``known``, the names of values that are not data.

    Args:
        given: for each parameter of the computation, True if it is not data.
        calls: whether the instruction calls a computation.
    """
    data = sum(o not in known for o in one.operands)
    if opcode == "parameter":
        number = int(one.text) if one.text.isdigit() else len(given)
        if number < len(given) and given[number]:
            known.add(one.name)
    elif not data and (not calls or opcode in ("fusion", "call")):
        known.add(one.name)
    return data


def applied(one: HloInstruction, opcode: str, named: Mapping[str, str]) -> Interval:
    """Return how often one execution of an instruction runs its computation. A reduction runs it once per element."""
    sizes = [math.prod(d) for o in one.operands for _, d in shapes(named.get(o, ""))[:1]]
    if opcode in ("fusion", "call", "async_start", "custom_call"):
        return Interval.of(1)
    if not sizes:
        return UNKNOWN
    if opcode in ("reduce", "map"):
        return Interval.of(sizes[0])
    if opcode == "scatter":
        return Interval.of(sizes[-1])
    if opcode in ("reduce_window", "select_and_scatter"):
        size = re.search(r"size=([\dx]+)", one.attributes.get("window", ""))
        window = math.prod(int(n) for n in size[1].split("x")) if size else 1
        return Interval.of(window * (math.prod(shapes(one.shape)[0][1]) if opcode == "reduce_window" else sizes[1]))
    return Interval(0, sizes[0] ** 2) if opcode == "sort" else UNKNOWN


# -- what the compiler added -------------------------------------------------------------------


def added_by_compiler(
    hlo: str, mesh: Mapping[str, int], marked: Mapping[int, Sequence[Collective]] | None = None
) -> list[Collective]:
    """Return the collectives that the compiler added to the canonical program.

    All other collectives of the compiled program are copies of the canonical program's collectives. A copy has the
    number that ``facts.mark`` gave the original, and its kind and axes fit the original. All copies of one original
    together run at most as often as the original. The number alone is not enough, because a collective that the
    compiler adds may inherit a number.

    Args:
        hlo: the text of the compiled program.
        mesh: axis sizes, in order.
        marked: the canonical program's collectives, keyed by their numbers from ``facts.mark``.
    """
    return unclaimed(
        [(v.of.marks, c) for v in walk(hlo, costed=False) for c in [collective(v, mesh)] if c is not None], marked or {}
    )


def unclaimed(
    found: Sequence[tuple[Sequence[int], Collective]], marked: Mapping[int, Sequence[Collective]]
) -> list[Collective]:
    """Return the collectives of a compiled program that do not come from a collective of the canonical program.

    ``found``: the compiled program's collectives, each with its numbers from ``facts.mark``. ``marked``: the canonical
    program's collectives, by these numbers.
    """
    claimed = [bool(marks) and all(_became(c, marked.get(m, [])) for m in marks) for marks, c in found]
    added = {i for i, is_claimed in enumerate(claimed) if not is_claimed}
    for mark, source in marked.items():
        copies = [i for i, (marks, _) in enumerate(found) if claimed[i] and mark in marks]
        surplus = _surplus([found[i][1] for i in copies], source)
        added |= set(sorted(copies, key=lambda i: -found[i][1].bytes)[:surplus])
    return [found[i][1] for i in sorted(added)]


def _surplus(copies: Sequence[Collective], source: Sequence[Collective]) -> int:
    """Return how many of ``copies`` the compiler must have added.

    ``copies``: the compiled program's collectives with one number from ``facts.mark``. ``source``: the canonical
    program's collectives with this number. The compiler may unroll a loop around a collective. So this function
    compares the numbers of runs if they are known, and otherwise the numbers of collectives.
    """
    runs, allowed = (total(cs, lambda c: Interval.of(1)) for cs in (copies, source))
    more = len(copies) - len(source)
    is_unrolled = allowed.known and runs.most <= allowed.most
    runs_more = runs.known and runs.most > allowed.most
    return max(1, more) if (more > 0 and not is_unrolled) or runs_more else 0


def _became(compiled: Collective, source: Sequence[Collective]) -> bool:
    """Return whether ``compiled`` may come from a collective in ``source``.

    Bytes and dtypes are not compared, because XLA may merge collectives or send wider dtypes.
    """
    return any(
        compiled.kind in BECOMES.get(c.kind, {c.kind})
        and (compiled.axes, compiled.partial) == (c.axes, c.partial)
        and (c.kind != "permute" or (compiled.senders, compiled.shift) == (c.senders, c.shift))
        for c in source
    )


def collective(visit: Visit, mesh: Mapping[str, int]) -> Collective | None:
    """Return an instruction as a ``Collective``; None if it is no collective or sends nothing."""
    one = visit.of
    kind = KINDS.get(one.opcode.removesuffix("-start"))
    if kind is None:
        return None
    arrays = [visit.shapes[o] for o in one.operands if o in visit.shapes]
    if kind == "permute":
        groups = listed(one.attributes.get("source_target_pairs", ""))
    else:
        groups = replica_groups(one.attributes, mesh)
    return made(kind, arrays, groups, mesh, visit.times, visit.path)


def made(
    kind: str, arrays: Sequence[str], groups: Groups | None, mesh: Mapping[str, int], times: Interval, path: Path
) -> Collective | None:
    """Return a ``Collective`` for a collective of the compiled program, or None if it sends nothing.

    Args:
        arrays: types of the operands, such as ``bf16[2,4]``.
        groups: None if the groups are unknown. The collective then counts as crossing every axis.
    """
    size = sum(map(hlo_bytes, arrays))
    operands = tuple((dtype_name(n), tuple(dims)) for array in arrays for n, dims in shapes(array))
    if kind == "permute":
        groups = groups or []
    axes = crossed_axes([list(range(math.prod(mesh.values())))] if groups is None else groups, mesh)
    if not axes:
        return None
    # A compiled program does not show how much a ragged all-to-all sends.
    sent = UNKNOWN if groups is None or kind == RAGGED else sent_in_group(kind, size, max(map(len, groups)))
    shift = sending = None
    if kind == "permute" and groups:
        shift, sending = cyclic_shift(groups, mesh), some_senders(groups, math.prod(mesh.values()))
        sent = sent if sending is None else Interval(0, sent.most)
    partial = kind != "permute" and (groups is None or are_partial(groups, axes, mesh))
    members_of = tuple(map(tuple, groups or ()))
    return Collective(
        kind, axes, size, sent, times, by_compiler=True, shift=shift, senders=sending, path=path,
        operands=operands, groups=members_of, partial=partial,
    )  # fmt: skip


def replica_groups(attributes: Mapping[str, str], mesh: Mapping[str, int]) -> Groups | None:
    """Return the groups of a collective from XLA's text; None if the text has an unknown form.

    The known forms are ``{{0,2},{1,3}}``, ``[2,4]<=[4,2]T(1,0)`` and ``mesh['a'=4,'b'=2] {'b'}``. A ``mesh`` may
    renumber its devices, as in ``mesh[...], device_ids=([4,2]T(1,0)) {'b'}``. The devices of a group may differ along a
    part of an axis only: ``'a':(2)2`` is the second factor of an axis of size 4 = 2 * 2.
    """
    devices = math.prod(mesh.values())
    text, ids = attributes.get("replica_groups", ""), np.arange(devices)

    def iota(dims: str, order: str | None) -> np.ndarray:
        grid = np.arange(devices).reshape([int(n) for n in dims.split(",")])
        return grid.transpose([int(n) for n in order.split(",")]) if order else grid

    if text.startswith("{{"):
        return listed(text)
    if match := re.fullmatch(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text):
        return iota(match[2], match[3]).reshape([int(n) for n in match[1].split(",")]).tolist()
    if not text.startswith("mesh["):
        return [list(range(devices))] if text in ("", "{}") else None
    if match := re.match(r"\(\[([\d,]+)\](?:T\(([\d,]+)\))?\)", attributes.get("device_ids", "")):
        ids = iota(match[1], match[2]).reshape(-1)
    inside, chosen = until(text.removeprefix("mesh["), "]")
    sizes = {n: int(s) for n, s in re.findall(_AXIS + r"=(\d+)", inside)}
    parts = re.findall(_AXIS + r"(?::\((\d+)\)(\d+))?", chosen or attributes.get("device_ids", ""))
    try:
        return axis_groups(sizes, ids.tolist(), [(n, int(b or 1), int(s) if s else None) for n, b, s in parts])
    except ValueError:  # the groups name an axis that does not exist, or do not fit the number of devices
        return None


_AXIS = r"'((?:[^'\\]|\\.)*)'"


def listed(text: str) -> Groups:
    return [[int(n) for n in part.split(",") if n] for part in re.findall(r"\{([\d,]+)\}", text)]


# -- arithmetic --------------------------------------------------------------------------------


def compiled_cost(hlo: str) -> FlopCount:
    """Return the FLOPs that one device executes in the compiled program."""
    costs = [(v.path, cost_of(v) * v.times) for v in walk(hlo)]
    return FlopCount(sum_over_paths((p, c.flops) for p, c in costs), sum_over_paths((p, c.dots) for p, c in costs))


def cost_of(visit: Visit) -> FlopCount:
    """Return the FLOPs of one instruction, without FLOPs of the computations that it calls."""
    one = visit.of
    name = one.opcode.replace("-", "_")
    dtype, result = next(iter(shapes(one.shape)), ("", []))
    left, right = (_operand_dims(visit, position) for position in (0, 1))
    is_complex = dtype.startswith("c")
    match name:
        case "dot":
            if left is None:
                return FlopCount(UNKNOWN, UNKNOWN)
            contracted = _numbers(one.attributes.get("lhs_contracting_dims", ""))
            return flops.dot(result, math.prod(left[d] for d in contracted), is_complex)
        case "convolution" if right is not None:
            outputs = one.attributes.get("dim_labels", "_o").split("->")[0].split("_")[1].index("o")
            return flops.dot(result, math.prod(right) // max(right[outputs], 1), is_complex)
        case "fft" if left is not None:
            return flops.fft(math.prod(left), math.prod(_numbers(one.attributes["fft_length"])))
        case "cholesky" | "triangular_solve":
            return flops.solve(math.prod(result), (left or [1])[-1])
        case "custom_call":
            target = one.attributes.get("custom_call_target", "").strip('"')
            return FREE if target in ("TopK", "Sharding") else FlopCount(UNKNOWN, UNKNOWN)
    if one.opcode.removesuffix("-start").removesuffix("-done").removesuffix("-update") in {*KINDS, "async", "copy"}:
        return FREE
    index = not result and dtype.startswith(("s", "u"))
    return flops.elementwise(name, result, is_complex, 0 if index else visit.data)


def _operand_dims(visit: Visit, position: int) -> list[int] | None:
    operands = visit.of.operands[position : position + 1]
    return next((dims for name in operands for _, dims in shapes(visit.shapes.get(name, ""))), None)


def _numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]
