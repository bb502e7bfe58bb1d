"""Check plain values that another process wrote: each has the type that it should, or an error says what is wrong."""

from __future__ import annotations

from typing import Any


def as_list(data: Any) -> list[Any]:
    """Raises TypeError."""
    if not isinstance(data, list):
        raise TypeError("not a list")
    return data


def as_dict(data: Any) -> dict[str, Any]:
    """Raises TypeError."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise TypeError("not a dictionary")
    return data


def as_text(data: Any, *, most: int = 300) -> str:
    """A name of at most so many characters. Raises TypeError."""
    if not isinstance(data, str) or len(data) > most:
        raise TypeError("not a name")
    return data


def as_size(data: Any, *, least: int = 0, most: int = 1 << 100) -> int:
    """FLOPs of a loop of loops are never multiplied out, so a hundred bits are plenty. Raises ValueError."""
    if type(data) is not int or not least <= data <= most:
        raise ValueError(f"{str(data)[:40]} is no size from {least} to {most}")
    return data
