"""A bounded memo: of what is made again and again the latest is there already."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Lately(Generic[T]):
    """What was made lately, by key, as much as ``most`` holds. Any thread may use it.

    Args:
        most: the sum of the sizes, in whatever its user counts.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: OrderedDict[Any, tuple[T, int]] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], tuple[T, int]]) -> T:
        """``make``: the thing, and its size."""
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key][0]
        made, size = make()
        with self._lock:
            if key not in self._made:
                self._made[key] = made, size
                self._held += size
            while self._held > self._most:
                self._held -= self._made.popitem(last=False)[1][1]
        return made
