"""The page's parts as HTML, by name. Functions passed to ``Regions.listen`` are called at each change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping


class Regions:
    """The page's parts as HTML, by name. Changes are numbered, and each part has the number of its last change.

    All methods are thread-safe.

    Attributes:
        closed: True if the page was closed, so that the server must end its streams of changes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}
        self._changed: dict[str, int] = {}
        self._number = 0
        self._wake: set[Callable[[], object]] = set()
        self.closed = False

    def put(self, texts: Mapping[str, str]) -> None:
        """Replace the parts in ``texts``. If any part changed, call the functions that were passed to ``listen``."""
        with self._lock:
            new = {name: text for name, text in texts.items() if self._texts.get(name) != text}
            if not new:
                return
            self._number += 1
            self._texts |= new
            self._changed |= dict.fromkeys(new, self._number)
            wake = list(self._wake)
        for one in wake:
            one()

    def close(self) -> None:
        with self._lock:
            self.closed, wake = True, list(self._wake)
        for one in wake:
            one()

    def since(self, number: int) -> tuple[int, dict[str, str]]:
        """Return the number of the last change, and the parts that changed after change ``number``."""
        with self._lock:
            return self._number, {name: self._texts[name] for name, at in self._changed.items() if at > number}

    def listen(self, wake: Callable[[], object]) -> Callable[[], None]:
        """Call ``wake`` after each change, from any thread. Return a function that ends these calls."""
        with self._lock:
            self._wake.add(wake)

        def stop() -> None:
            with self._lock:
                self._wake.discard(wake)

        return stop
