"""The measured times of each program's calls, and a ``TimeModel`` fitted to these times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import numpy as np

from grader.wings.predict.cases import CASES, SizedProgram, TimeModel


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
