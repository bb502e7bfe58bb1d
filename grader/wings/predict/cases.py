"""The programs and sizes that the command ``profile`` times, their measured times, and a model of these times."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np

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


# -- measured times ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Timed:
    """Seconds of one program's calls. ``first``: the first call, which also compiles. ``seconds``: the later calls."""

    case: SizedProgram
    first: float
    seconds: tuple[float, ...]

    @property
    def typical(self) -> float:
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """The interquartile range of the calls' times, relative to the median."""
        low, _, high = quantiles(self.seconds, n=4)
        return (high - low) / self.typical


@dataclass(frozen=True)
class Fit:
    """A ``TimeModel`` fitted to measured times. A parameter is None if the times do not determine it.

    ``alpha`` and ``beta`` come from the all-gathers, and ``flops`` from the largest matmul.
    """

    alpha: float | None
    beta: float | None
    flops: float | None

    def seconds(self, case: SizedProgram, devices: int) -> float | None:
        if case.program == "matmul":
            return case.seconds(TimeModel(0, 1, self.flops), devices) if self.flops else None
        return None if self.beta is None else case.seconds(TimeModel(self.alpha or 0, self.beta, 1), devices)


def timed(calls: Sequence[Mapping[str, Any]]) -> list[Timed]:
    """Return the times of each program. The time of a call includes the wait for its result."""
    found = []
    for case in CASES:
        took = [c["ready"] - c["called"] for c in calls if (c["program"], c["size"]) == (case.program, case.size)]
        if took:
            found.append(Timed(case, took[0], tuple(took[1:])))
    return found


def fit(measured: Sequence[Timed], devices: int) -> Fit:
    """Fit the model to measured times by least squares of relative errors, so that all sizes have equal influence."""
    gathers = [one for one in measured if one.case.program == "all_gather"]
    alpha = beta = None
    if len(gathers) > 1:
        took = np.array([one.typical for one in gathers])
        slope, start = np.polyfit([one.case.crossed(devices) for one in gathers], took, 1, w=1 / took)
        alpha = float(start) / (devices - 1) if start > 0 else None
        beta = 1 / float(slope) if slope > 0 else None
    matmuls = [one for one in measured if one.case.program == "matmul"]
    flops = matmuls[-1].case.flops(devices) / matmuls[-1].typical if matmuls else None
    return Fit(alpha, beta, flops)


def learners_log(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls of all-gathers in the form that the learner's function ``durations`` (exercise L2) takes."""
    return [
        {"bytes": c["size"]} | {key: c[key] for key in ("cut", "called", "returned", "ready")}
        for c in calls
        if c["program"] == "all_gather"
    ]
