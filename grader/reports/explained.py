"""Facts about one program: arrays and their shardings, collectives, memory, arithmetic."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.clock import LiveMemory, Timeline
from grader.common.intervals import ZERO, Interval
from grader.common.layout import show_sizes, show_spec
from grader.common.observation import Collective, Fault, total
from grader.common.pipelines import Pipeline
from grader.common.routes import Route
from grader.reports.roofline import Roofline, roofline_of


@dataclass(frozen=True)
class Placed:
    """An array and its layout on the devices.

    Attributes:
        spec: the array's PartitionSpec, or None if no spec describes the layout.
        local: the distinct shapes of the devices' parts. If the array is cut evenly, there is one shape.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    spec: tuple | None
    local: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Explained:
    """The facts about a task's program on one mesh, with arrays of one size.

    Attributes:
        fault: the reason why there is no program. Then no other fact is known.
        traffic: the bytes that a device sends over each mesh axis or group of axes, see ``Seen.traffic``.
        ran: True if the program was compiled and run. If not, results and XLA's memory figure are unknown.
        memory: bytes of temporaries per device, as XLA reports them.
        live: the largest number of bytes that a device holds at once, by liveness analysis.
        stored: an estimate of ``live`` on a TPU, whose compiler stores some float32 values in bfloat16; 0 if unknown.
        flops: the FLOPs of one device.
        dot_flops: the FLOPs of one device in matmuls.
        routes: the rings of devices along which permutes send data.
        pipelines: lines of devices. Each device computes data, and a permute sends the data to the next device.
        elsewhere: a text about the difference between results on real devices and on simulated devices; empty if the
            user named no real devices.
        measured: a text about the program's time on the real devices, if the program has a timeline.
        predicted: a text about the time that the learner predicted.
        compiled: a text about the TPU compiler's schedule of this program, if known.
        profiles: a text about the step times with two profiles, if they differ (see ``explained_text.profiles_text``).
        program: SHA-256 of the program's canonical form.
        timeline: the program's timeline, if the user asked for one.
        untimed: the reason why the program has no timeline.
    """

    exercise: str
    task: str
    mesh: Mapping[str, int]
    dims: Mapping[str, int]
    arguments: Sequence[Placed] = ()
    results: Sequence[Placed] = ()
    collectives: Sequence[Collective] = ()
    traffic: Mapping[str, Interval] = dataclasses.field(default_factory=dict)
    memory: int = 0
    flops: Interval = ZERO
    dot_flops: Interval = ZERO
    ran: bool = True
    live: LiveMemory | None = None
    stored: int = 0
    routes: Sequence[Route] = ()
    pipelines: Sequence[Pipeline] = ()
    elsewhere: str = ""
    measured: str = ""
    predicted: str = ""
    compiled: str = ""
    profiles: str = ""
    program: str = ""
    timeline: Timeline | None = None
    untimed: str = ""
    fault: Fault | None = None

    @property
    def title(self) -> str:
        """The title, such as ``matmul on x=4, y=2 with I=24, J=32``."""
        sized = f" with {show_sizes(self.dims)}" if self.dims else ""
        return f"{self.task} on {show_sizes(self.mesh)}{sized}"

    @property
    def other_flops(self) -> Interval:
        """The FLOPs outside matmuls.

        ``dot_flops`` may exceed ``flops``, because XLA can remove matmuls before ``flops`` are counted. Then the result
        is 0.
        """
        least, most = self.flops.least - self.dot_flops.least, self.flops.most - self.dot_flops.most
        return Interval(max(0, min(least, most)), max(0, most) if not math.isnan(most) else math.inf)

    @property
    def roofline(self) -> Roofline | None:
        """The roofline model of the program; None if the program has no timeline, no matmuls or an unknown chip."""
        return roofline_of(self.timeline, sum(sent.most for sent in self.traffic.values())) if self.timeline else None

    @property
    def alike(self) -> list[tuple[Collective, Interval]]:
        """Pairs (collective, number of runs). Collectives with equal lines, kinds, axes and bytes share a pair."""
        groups: dict[tuple, list[Collective]] = {}
        for c in self.collectives:
            groups.setdefault((c.kind, c.over, c.bytes, c.sent, c.file, c.line, c.shift, c.by_compiler), []).append(c)
        return [(same[0], total(same, lambda c: Interval.of(1))) for same in groups.values()]


def alike(programs: Iterable[Explained]) -> list[Explained]:
    """Return the programs of one task. If all programs have equal faults, return only the first program."""
    found = list(programs)
    return found[:1] if found[0].fault is not None and len({p.fault for p in found}) == 1 else found


def as_data(explained: Explained) -> dict[str, Any]:
    """Return the facts as JSON data, without measured and predicted times."""
    data: dict[str, Any] = {name: getattr(explained, name) for name in ("exercise", "task")}
    data |= {"mesh": dict(explained.mesh), "dims": dict(explained.dims)}
    if explained.fault is not None:
        return data | {"fault": dataclasses.asdict(explained.fault)}
    line = explained.timeline  # all its times are in picoseconds
    return (
        data
        | {
            "arguments": [_array(a) for a in explained.arguments],
            "results": [_array(r) for r in explained.results],
            "collectives": [_collective(c) for c in explained.collectives],
            "traffic": {axes: _interval(sent) for axes, sent in explained.traffic.items()},
            "memory": _memory(explained),
            "flops": {"matmuls": _interval(explained.dot_flops), "others": _interval(explained.other_flops)},
            "routes": [dataclasses.asdict(route) for route in explained.routes],
            "pipelines": [dataclasses.asdict(pipeline) for pipeline in explained.pipelines],
            "timeline": dataclasses.asdict(line) | {"idle": line.idle, "lanes": line.lanes} if line else None,
            "roofline": [dataclasses.asdict(p) for p in explained.roofline.points] if explained.roofline else None,
            "untimed": explained.untimed or None,
        }
        | {name: text for name in ("elsewhere", "compiled", "profiles") if (text := getattr(explained, name))}
    )


def _memory(explained: Explained) -> dict[str, Any]:
    return {
        "xla": explained.memory if explained.ran else None,
        "live": dataclasses.asdict(explained.live) if explained.live else None,
        "stored": explained.stored or None,
    }


def _array(placed: Placed) -> dict[str, Any]:
    return dataclasses.asdict(placed) | {"spec": show_spec(placed.spec), "local": [list(s) for s in placed.local]}


def _collective(c: Collective) -> dict[str, Any]:
    numbers = {name: _interval(getattr(c, name)) for name in ("sent", "rounds", "count")}
    named = {name: getattr(c, name) for name in ("kind", "bytes", "file", "line", "by_compiler", "shift", "partial")}
    return named | {"axes": list(c.axes)} | numbers


def _interval(value: Interval) -> Any:
    """Return a number if the interval is exact, else ``{"least", "most"}``; ``most`` is null if there is no bound."""
    if value.exact:
        return value.most
    return {"least": value.least, "most": value.most if value.known else None}
