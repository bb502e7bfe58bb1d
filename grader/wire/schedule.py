"""A compiler's schedule of a program, as plain data: its instructions in the order in which a device runs them.

The optional package ``chip`` reads the schedule from the text of a program that was compiled for a TPU. The schedule
has the compiler's estimate of cycles for each kernel. For a collective, it only shows where the collective starts and
where the program waits for the result. The judging process gets the schedule as JSON. It does not trust the JSON, so
``from_json`` checks the JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from grader.wire.frames import BadFrame
from grader.wire.operations import KINDS, Communication, as_dict, as_list, as_size, as_text

OPS = ("kernel", "matmul", "collective", "start", "done", "loop", "branches")
MAX_INSTRUCTIONS = 20_000  # largest number of instructions; each instruction in a loop is counted only once
MAX_LEVELS = 16


@dataclass(frozen=True)
class Instruction:
    """One instruction that takes time, or that starts or ends an asynchronous collective.

    Attributes:
        op: "matmul" (a kernel with a matmul), "kernel" (any other kernel), "collective" (the core waits for its end),
            "start" and "done" (of a collective that runs while the core computes), "loop", or "branches" (a
            conditional, in which only one branch runs).
        what: what the instruction does: "dot_general", "copy", or a collective's kind.
        cycles: for a kernel, the compiler's estimate of its cycles.
        bytes: for a kernel without an estimate of cycles, the bytes that it reads and writes; else 0.
        flops: FLOPs of the kernel's matmuls.
        number: the number of a collective, equal for its "start" and "done"; -1 for all other instructions.
        communication: for "collective" and "start", the groups, axes and size.
        joined: for a matmul, the numbers of the collectives whose results the kernel adds to the matmul's result. The
            kernel reads these results only after its multiplications, and no other instruction uses them.
        rounds: for a loop, the number of rounds; None if the compiled text does not show the number.
        bodies: for a loop, its body; for branches, all branches.
        file, line: the place in the learner's source, if known.
    """

    op: str
    what: str
    cycles: int = 0
    bytes: int = 0
    flops: int = 0
    number: int = -1
    communication: Communication | None = None
    joined: tuple[int, ...] = ()
    rounds: int | None = None
    bodies: tuple[tuple[Instruction, ...], ...] = ()
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Schedule:
    """A compiled program, as each device runs it. All devices run equal instructions.

    Attributes:
        mesh: axis sizes in order; devices are numbered row-major.
        instructions: in the order in which the compiler scheduled them.
        arguments, results, temporaries: bytes on one chip, including padding.
        aliased: bytes of results that reuse the memory of arguments.
        by: versions of the software that made the schedule, "jax 0.10.2, libtpu 0.0.42.1".
        program: SHA-256 of the program in its canonical form.
        layouts: for each result and each device (in mesh order), (start, end) of the device's part along each
            dimension.
        added: collectives that the compiler added, as JSON that is not checked yet; None if the schedule has no such
            list.
    """

    mesh: dict[str, int]
    instructions: tuple[Instruction, ...]
    arguments: int
    results: int
    temporaries: int
    aliased: int = 0
    by: str = ""
    program: str = ""
    layouts: tuple[tuple[tuple[tuple[int, int], ...], ...], ...] = field(default=(), repr=False)
    added: tuple[dict[str, Any], ...] | None = None

    @property
    def held(self) -> int:
        """Bytes of a chip's memory that the program needs."""
        return self.arguments + self.results + self.temporaries - self.aliased

    def walk(self) -> Iterator[Instruction]:
        """Yield all instructions in order: each instruction, then the instructions in its bodies."""
        stack = [iter(self.instructions)]
        while stack:
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
                continue
            yield found
            stack.append(inner for body in found.bodies for inner in body)


# -- as JSON -----------------------------------------------------------------------------------

USUAL: dict[str, Any] = {
    "cycles": 0, "bytes": 0, "flops": 0, "number": -1, "rounds": None, "file": None, "line": None,
}  # fmt: skip
SIZES = ("arguments", "results", "temporaries", "aliased")


def to_json(schedule: Schedule) -> dict[str, Any]:
    return {
        "mesh": [[axis, size] for axis, size in schedule.mesh.items()],
        "instructions": [_one_to_json(one) for one in schedule.instructions],
        **{name: getattr(schedule, name) for name in SIZES},
        "by": schedule.by,
        "program": schedule.program,
        "layouts": [[[list(cut) for cut in part] for part in layout] for layout in schedule.layouts],
        "added": None if schedule.added is None else list(schedule.added),
    }


def _one_to_json(one: Instruction) -> dict[str, Any]:
    found: dict[str, Any] = {"op": one.op, "what": one.what}
    found |= {name: getattr(one, name) for name, value in USUAL.items() if getattr(one, name) != value}
    if (c := one.communication) is not None:
        found["communication"] = [c.kind, [list(group) for group in c.groups], list(c.axes), c.bytes]
    if one.joined:
        found["joined"] = list(one.joined)
    if one.bodies:
        found["bodies"] = [[_one_to_json(inner) for inner in body] for body in one.bodies]
    return found


def from_json(data: Any) -> Schedule:
    """Return the schedule that ``to_json`` wrote in another process. Raises BadFrame for JSON that is no schedule."""
    try:
        mesh = {as_text(axis): as_size(size, least=1) for axis, size in as_list(data["mesh"])}
        reading = _Reading(mesh)
        instructions = reading.body(data["instructions"], 0)
        sizes = {name: as_size(data[name]) for name in SIZES}
        layouts = tuple(_layout(layout, math.prod(mesh.values())) for layout in as_list(data["layouts"]))
        by, program = as_text(data["by"]), as_text(data["program"])
        added = None if data.get("added") is None else tuple(map(as_dict, as_list(data["added"])))
        return Schedule(mesh, instructions, by=by, program=program, layouts=layouts, added=added, **sizes)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise BadFrame(f"not a schedule: {error}") from error


def _layout(data: Any, devices: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    if len(as_list(data)) != devices:
        raise ValueError("a result's layout does not have one part for each device")
    return tuple(tuple((as_size(a), as_size(b)) for a, b in as_list(part)) for part in data)


@dataclass
class _Reading:
    """A decoder of instructions. Raises ValueError or KeyError if a "start" and its "done" are not in one body."""

    mesh: dict[str, int]
    count: int = 0
    numbers: set[int] = field(default_factory=set)

    def body(self, data: Any, level: int) -> tuple[Instruction, ...]:
        if level > MAX_LEVELS:
            raise ValueError("nested too deeply")
        under_way: set[int] = set()
        found = []
        for about in as_list(data):
            one = self.one(about, level)
            if one.op in ("collective", "start") and (one.communication is None or one.number in self.numbers):
                raise ValueError("a collective has no groups of devices, or another collective has its number")
            if one.op in ("collective", "start"):
                self.numbers.add(one.number)
            if one.op == "start":
                under_way.add(one.number)
            elif one.op == "done":
                under_way.remove(one.number)
            found.append(one)
        if under_way:
            raise ValueError("a collective has a start and no done")
        return tuple(found)

    def one(self, data: Any, level: int) -> Instruction:
        self.count += 1
        if self.count > MAX_INSTRUCTIONS or data["op"] not in OPS:
            raise ValueError("there are too many instructions, or one is of an unknown kind")
        about = data.get("communication")
        bodies = tuple(self.body(body, level + 1) for body in as_list(data.get("bodies", [])))
        if (data["op"] == "loop" and len(bodies) != 1) or (bodies and data["op"] not in ("loop", "branches")):
            raise ValueError("a loop needs one body, and only loops and branches have bodies")
        return Instruction(
            data["op"],
            as_text(data["what"]),
            cycles=as_size(data.get("cycles", 0)),
            bytes=as_size(data.get("bytes", 0)),
            flops=as_size(data.get("flops", 0)),
            number=as_size(data["number"]) if "number" in data else -1,
            communication=None if about is None else self.communication(about),
            joined=tuple(as_size(n) for n in as_list(data.get("joined", []))),
            rounds=None if data.get("rounds") is None else as_size(data["rounds"]),
            bodies=bodies,
            file=None if data.get("file") is None else as_text(data["file"]),
            line=None if data.get("line") is None else as_size(data["line"]),
        )

    def communication(self, data: Any) -> Communication:
        kind, groups, axes, size = as_list(data)
        if kind not in KINDS or not set(as_list(axes)) <= set(self.mesh):
            raise ValueError(f"there is no collective {kind!r} over {axes!r}")
        most = math.prod(self.mesh.values()) - 1
        found = tuple(tuple(as_size(d, most=most) for d in as_list(group)) for group in as_list(groups))
        if not found or any(not group or (kind == "permute" and len(group) != 2) for group in found):
            raise ValueError("no device communicates")
        return Communication(kind, found, tuple(axes), as_size(size))
