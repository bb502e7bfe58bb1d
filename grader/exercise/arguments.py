"""Hidden array arguments: what an author writes where a call's arrays are to be drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from grader import declared
from grader.declared import AuthorError
from grader.wire.frames import dtype_of


@dataclass(frozen=True)
class Array:
    """A hidden array argument: ``shape`` may name dimensions, which the call's ``dims`` give sizes."""

    shape: tuple[int | str, ...]
    spec: tuple
    dtype: str
    draw: str
    low: int = 0
    high: int = 0

    def sized(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        try:
            return tuple(dims[n] if isinstance(n, str) else n for n in self.shape)
        except KeyError as missing:
            raise AuthorError(f"no size given for dimension {missing}") from None

    def sample(self, dims: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
        shape = self.sized(dims)
        if self.draw == "normal":
            return rng.standard_normal(shape).astype(dtype_of(self.dtype))
        return rng.integers(self.low, self.high, shape).astype(dtype_of(self.dtype))


@declared.spelt("normal")
def normal(*shape: int | str, spec: Iterable = (), dtype: str = "float32") -> Array:
    """Standard normal values: ``normal("I", "J", spec=P("x", None))``."""
    return _array(shape, spec, dtype, "normal")


@declared.spelt("integers")
def integers(low: int, high: int, *shape: int | str, spec: Iterable = (), dtype: str = "int32") -> Array:
    """Integers in ``low <= n < high``."""
    if not (isinstance(low, int) and isinstance(high, int) and low < high):
        raise AuthorError(f"integers: low is {low!r} and high {high!r}: there are none between them")
    return _array(shape, spec, dtype, "integers", low, high)


def _array(shape: tuple, spec: Iterable, dtype: str, draw: str, low: int = 0, high: int = 0) -> Array:
    return Array(declared.shape(shape), declared.spec(spec, len(shape)), declared.dtype(dtype), draw, low, high)
