"""A cache that evicts the least recently used values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LRUCache(Generic[T]):
    """A cache that evicts the least recently used values.

    Args:
        most: the largest total size of the cached values.
        size: a function that returns the size of one value.
    """

    def __init__(self, most: int, size: Callable[[T], int]) -> None:
        self.most, self.size, self.held = most, size, 0
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the cached value of a key, or call ``make`` and cache its value."""
        if key in self._values:
            self._values.move_to_end(key)
            return self._values[key]
        value = self._values[key] = make()
        self.held += self.size(value)
        while self.held > self.most:
            self.held -= self.size(self._values.popitem(last=False)[1])
        return value
