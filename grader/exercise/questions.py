"""A numeric question, and what each draw of it is about."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class About:
    """What one draw of a question is about. ``verify`` proves of every draw that there can be such a thing.

    Attributes:
        mesh: the size of every axis of the mesh.
        arrays: (shape, spec) of each array; axes that a question divides a dimension by count as its spec.
        chip: whose slices the mesh (or ``slice``) must be one of.
        slice: chips along each axis of the slice, where the question says so.
        rings, lines: sizes of axes that wrap around, or do not, as the question or its answer takes them.
        heads: (query heads, KV heads).
        holds: bytes that one chip has to hold.
        least, most: bounds on the answer, such as the hops' latency and the hardware's bandwidth.
        branches: which of its alternatives a "longer of two" takes here, by name (``larger``).
    """

    mesh: Mapping[str, int] = field(default_factory=dict)
    arrays: Sequence[tuple[tuple[int, ...], Iterable]] = ()
    chip: str = ""
    slice: tuple[int, ...] = ()
    rings: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
    heads: tuple[int, int] = (1, 1)
    holds: float = 0.0
    least: float = 0.0
    most: float = math.inf
    branches: tuple[str, ...] = ()


def larger(**named: float) -> str:
    """The name of the largest: ``larger(hops=7e-6, bytes=2e-6)`` is "hops"."""
    return max(named, key=named.__getitem__)


@dataclass(eq=False)
class Number:
    """A numeric question. ``fn(**params)`` is the answer in SI (seconds, bytes, FLOP, ...).

    Where its author named no tolerance (``usual_rtol``), the course's takes the place of ``rtol``.
    ``about`` says what a draw is about; ``published`` are answers, in the question's unit, that can be read elsewhere.
    """

    name: str
    text: str
    fn: Callable[..., float]
    points: float
    unit: str
    rtol: float
    params: Mapping[str, Sequence[Any]]
    model: str
    where: Callable[..., bool] | None
    hints: tuple[str, ...] = ()
    usual_rtol: bool = False
    about: Callable[..., About] | None = None
    published: tuple[float, ...] = ()

    def __call__(self, **params: Any) -> float:
        return self.fn(**params)

    def variants(self) -> Iterator[dict[str, Any]]:
        """Every combination of parameters that ``where`` admits, in a fixed order."""
        for values in itertools.product(*self.params.values()):
            chosen = dict(zip(self.params, values, strict=True))
            if self.where is None or self.where(**chosen):
                yield chosen
