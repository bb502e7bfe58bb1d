"""What is timed: programs and sizes, and how long each should take by three numbers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

COLLECTIVES = {"all_gather": 1, "all_reduce": 2}
"""How often the array goes round the ring."""
LIMITS = {"alpha": (1e-12, 1e2), "beta": (1.0, 1e18), "flops": (1.0, 1e21)}
"""The least and the most that anybody could mean."""
PROGRAMS = Path(__file__).with_name("programs.py")


@dataclass(frozen=True)
class TimeModel:
    """A machine as three numbers: seconds of a hop, bytes/s of a link, FLOP/s of a device."""

    alpha: float
    beta: float
    flops: float


@dataclass(frozen=True)
class Case:
    """One program of one size: bytes of the array that is whole in the end, or the rows of square matrices."""

    program: str
    size: int

    @property
    def size_text(self) -> str:
        if self.program not in COLLECTIVES:
            return f"{self.size}²"
        return f"{self.size >> 20} MiB" if self.size >> 20 else f"{self.size >> 10} KiB"

    def runs_on(self, devices: int) -> bool:
        """Whether it can be cut so, and whether there is somebody to send to."""
        return self.size % (4 * devices) == 0 and (devices > 1 or self.program not in COLLECTIVES)

    def hops(self, devices: int) -> int:
        return COLLECTIVES[self.program] * (devices - 1)

    def crossed(self, devices: int) -> float:
        """Bytes over each link of a ring, one way round."""
        return COLLECTIVES[self.program] * self.size * (devices - 1) / devices

    def flops(self, devices: int) -> float:
        """FLOPs of each device."""
        return 2 * self.size**3 / devices

    def seconds(self, line: TimeModel, devices: int) -> float:
        if self.program not in COLLECTIVES:
            return self.flops(devices) / line.flops
        return self.hops(devices) * line.alpha + self.crossed(devices) / line.beta


CASES = tuple(
    Case(program, size)
    for program, sizes in {
        "all_gather": (2**16, 2**19, 2**21, 2**23),
        "all_reduce": (2**16, 2**19, 2**21, 2**23),
        "matmul": (512, 1024, 2048),
    }.items()
    for size in sizes
)


def digest() -> str:
    """Of the programs' text and sizes."""
    return hashlib.sha256(PROGRAMS.read_bytes() + repr(CASES).encode()).hexdigest()[:16]


def cases_on(devices: int) -> list[Case]:
    return [case for case in CASES if case.runs_on(devices)]


def source() -> str:
    """The functions that devices run, as they are written."""
    text = PROGRAMS.read_text(encoding="utf-8")
    return text[text.index("def all_gather") : text.index("def on_devices")].rstrip()
