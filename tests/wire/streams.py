"""Bytes as a stream."""

from __future__ import annotations

from collections.abc import Callable


def reader(data: bytes) -> Callable[[int], bytes]:
    """Return a function ``read(n)`` that returns the next ``n`` bytes of the data, and raises EOFError at the end."""
    left = [data]

    def take(n: int) -> bytes:
        part, left[0] = left[0][:n], left[0][n:]
        if len(part) < n:
            raise EOFError
        return part

    return take
