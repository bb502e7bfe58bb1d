"""Published times of collectives on TPUs, with their sources. ``docs/clock_tables.py`` compares them with the clock."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grader.clock import placed
from grader.clock.collectives import duration
from grader.wire.operations import Communication

BOOK = "[book](https://jax-ml.github.io/scaling-book/sharding/), pop quiz 2, time from a profile"
MARIN = "[marin 6736](https://github.com/marin-community/marin/issues/6736), time per additional round of a loop"
IRONWOOD = (
    "[accelerator-microbenchmarks](https://github.com/AI-Hypercomputer/accelerator-microbenchmarks/blob/main/"
    "Ironwood/guides/collectives/all_gather.md), time from the bytes and the published bandwidth"
)


@dataclass(frozen=True)
class Measured:
    """One published time.

    Attributes:
        source: the publication.
        on: the slice.
        mesh: size of each mesh axis.
        kind: the kind of collective.
        over: the mesh axis over which it communicates.
        bytes: bytes of a device's input.
        us: microseconds.
        axes: the slice axes that each mesh axis uses. If None, the clock chooses the first slice axes that fit.
    """

    source: str
    on: str
    mesh: Mapping[str, int]
    kind: str
    over: str
    bytes: int
    us: float
    axes: Mapping[str, Sequence[int]] | None = field(default=None)

    @property
    def clock(self) -> float:
        """Return the clock's time in microseconds."""
        place = placed(self.on, self.mesh, self.axes)
        return duration(Communication(self.kind, self._groups(), (self.over,), self.bytes), place)[0] / 1e6

    def _groups(self) -> tuple[tuple[int, ...], ...]:
        names = list(self.mesh)
        size, stride = self.mesh[self.over], math.prod(self.mesh[a] for a in names[names.index(self.over) + 1 :])
        firsts = [d for d in range(math.prod(self.mesh.values())) if d // stride % size == 0]
        groups = tuple(tuple(d + k * stride for k in range(size)) for d in firsts)
        if self.kind != "permute":
            return groups
        return tuple((group[k], group[(k + 1) % size]) for group in groups for k in range(size))


def ironwood(rows: int, gigabytes: float, bandwidth: float) -> Measured:
    """Return the time of a gather of float32[rows, 8, 128] over four chips. Both cores of each chip gather at once."""
    mesh, axes = {"core": 2, "chip": 4}, {"core": [3], "chip": [0, 1]}
    return Measured(IRONWOOD, "7x:2x2x1", mesh, "all_gather", "chip", 4096 * rows, 1e6 * gigabytes / bandwidth, axes)


MEASURED = [
    Measured(BOOK, "v5e:4x8", {"x": 8, "y": 4}, "all_gather", "y", 2048 * 8192 * 2 // 4, 680),
    Measured(BOOK, "v5e:4x8", {"x": 8, "y": 4}, "all_gather", "y", 256 * 256 * 2 // 4, 8),
    Measured(MARIN, "v5p:1x2x2", {"x": 4}, "permute", "x", 2**14, 5.5),
    Measured(MARIN, "v5p:1x2x2", {"x": 4}, "permute", "x", 2**20, 16.94),
    Measured(MARIN, "v5p:1x2x2", {"x": 4}, "permute", "x", 2**26, 781.98),
    Measured(MARIN, "v6e:2x4", {"x": 8}, "permute", "x", 2**14, 5.9),
    Measured(MARIN, "v6e:2x4", {"x": 8}, "permute", "x", 2**20, 17.45),
    Measured(MARIN, "v6e:2x4", {"x": 8}, "permute", "x", 2**26, 776.34),
    ironwood(64, 0.001572864, 71.7703034),
    ironwood(256, 0.006291456, 129.1869148),
    ironwood(1024, 0.025165824, 161.9040742),
    ironwood(4096, 0.100663296, 174.765465),
    ironwood(16384, 0.402653184, 178.7714158),
]
