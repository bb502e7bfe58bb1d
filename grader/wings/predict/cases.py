"""The programs and sizes that the command ``profile`` times, and a model of these times with three parameters."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

COLLECTIVES = {"all_gather": 1, "all_reduce": 2}
"""How often a collective sends the array round the ring."""
LIMITS = {"alpha": (1e-12, 1e2), "beta": (1.0, 1e18), "flops": (1.0, 1e21)}
"""The plausible range of each parameter."""
PROGRAMS = Path(__file__).with_name("programs.py")


@dataclass(frozen=True)
class TimeModel:
    """A model of the times of collectives and matmuls on a machine.

    Attributes:
        alpha: the time of one hop without data, seconds.
        beta: the bandwidth of a link, bytes/s.
        flops: the rate of matmuls on one device, FLOP/s.
    """

    alpha: float
    beta: float
    flops: float


@dataclass(frozen=True)
class SizedProgram:
    """One program at one size.

    ``size``: for a collective, the bytes of the result on each device; for a matmul, the number of rows of its square
    matrices.
    """

    program: str
    size: int

    @property
    def size_text(self) -> str:
        if self.program not in COLLECTIVES:
            return f"{self.size}²"
        return f"{self.size >> 20} MiB" if self.size >> 20 else f"{self.size >> 10} KiB"

    def runs_on(self, devices: int) -> bool:
        """Return whether the arrays divide evenly by ``devices`` and, for a collective, there are several devices."""
        return self.size % (4 * devices) == 0 and (devices > 1 or self.program not in COLLECTIVES)

    def hops(self, devices: int) -> int:
        return COLLECTIVES[self.program] * (devices - 1)

    def crossed(self, devices: int) -> float:
        """Return the bytes that a collective on a ring of devices sends over each link in one direction."""
        return COLLECTIVES[self.program] * self.size * (devices - 1) / devices

    def flops(self, devices: int) -> float:
        """Return the FLOPs of a matmul on each device."""
        return 2 * self.size**3 / devices

    def seconds(self, line: TimeModel, devices: int) -> float:
        if self.program not in COLLECTIVES:
            return self.flops(devices) / line.flops
        return self.hops(devices) * line.alpha + self.crossed(devices) / line.beta


CASES = tuple(
    SizedProgram(program, size)
    for program, sizes in {
        "all_gather": (2**16, 2**19, 2**21, 2**23),
        "all_reduce": (2**16, 2**19, 2**21, 2**23),
        "matmul": (512, 1024, 2048),
    }.items()
    for size in sizes
)


def digest() -> str:
    return hashlib.sha256(PROGRAMS.read_bytes() + repr(CASES).encode()).hexdigest()[:16]


def cases_on(devices: int) -> list[SizedProgram]:
    return [case for case in CASES if case.runs_on(devices)]


def source() -> str:
    text = PROGRAMS.read_text(encoding="utf-8")
    return text[text.index("def all_gather") : text.index("def on_devices")].rstrip()
