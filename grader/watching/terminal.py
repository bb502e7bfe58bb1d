"""Read single key presses from a terminal. Restore the terminal's modes at the end, also after an error or a signal."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

try:
    import termios
    import tty
except ImportError:  # Windows lacks these modules: keys do not work there, but ``watch`` still checks files
    termios = tty = None

ARROW = re.compile(rb"\x1b(?:[\[O][0-9;?]*[ -/]*[@-~]?|.)?", re.DOTALL)  # arrow keys and similar keys are ignored


@contextlib.contextmanager
def keys(pressed: Callable[[str], None], resized: Callable[[], None]) -> Iterator[bool]:
    """Call ``pressed`` with each key, from a thread, and ``resized`` when the terminal's size changes.

    If the terminal disappears, ``pressed`` gets "". Yields True if keys work, because standard input is a terminal.
    """
    fd = _terminal()
    if fd is None:
        yield False
        return
    before = termios.tcgetattr(fd)  # pyright: ignore[reportOptionalMemberAccess]
    reader = threading.Thread(target=_read, args=(fd, pressed), daemon=True, name="keys")
    try:
        with _signals(fd, resized):
            tty.setcbreak(fd)  # pyright: ignore[reportOptionalMemberAccess]
            reader.start()
            yield True
    finally:
        # Setting the modes raises an error if the terminal has disappeared.
        with contextlib.suppress(Exception):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)  # pyright: ignore[reportOptionalMemberAccess]


def _terminal() -> int | None:
    """Return standard input's descriptor if it is a terminal, else None."""
    try:
        return sys.stdin.fileno() if termios is not None and sys.stdin.isatty() else None
    except (OSError, ValueError, AttributeError):
        return None


@contextlib.contextmanager
def _signals(fd: int, resized: Callable[[], None]) -> Iterator[None]:
    """Report a new size of the terminal, and turn signals that end the process into KeyboardInterrupt.

    After a stop (Ctrl-Z), set the terminal's modes again.
    """

    def back(*_: Any) -> None:
        with contextlib.suppress(Exception):
            tty.setcbreak(fd)  # pyright: ignore[reportOptionalMemberAccess]
        resized()

    end = signal.default_int_handler  # raises KeyboardInterrupt
    handlers = {signal.SIGWINCH: lambda *_: resized(), signal.SIGCONT: back, signal.SIGTERM: end, signal.SIGHUP: end}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _read(fd: int, pressed: Callable[[str], None]) -> None:
    with contextlib.suppress(OSError):
        while typed := os.read(fd, 64):
            for key in ARROW.sub(b"", typed).decode("utf-8", "ignore"):
                pressed(key)
    pressed("")
