"""Ctrl-C ends a command with one sentence, wherever it meets it.

Left to itself, Python shows a traceback while it still imports; drops the interruption where it comes into a callback
(JAX has one in the garbage collector), so that the command goes on; and raises it in the middle of imports, which make
an ImportError of it or, in C++, a crash.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any, NoReturn

STOPPED = 130
SENTENCE = "shardlings: stopped; run the same command again to go on"
AGAIN_AFTER = 0.05  # seconds, until what cannot be interrupted may be over

_asked = threading.Event()


def stop_at_once() -> None:
    """Let Ctrl-C end the process at once, which is safe while it only imports."""
    _on_interrupt(lambda *_: stop())


def stop_in_order() -> None:
    """Let Ctrl-C raise KeyboardInterrupt, again if one was dropped; afterwards ``asked`` returns True."""
    sys.unraisablehook = _raise_again
    _on_interrupt(_interrupt)


def asked() -> bool:
    """Whether somebody wanted this to stop: what is raised since then follows from it."""
    return _asked.is_set()


def stop() -> NoReturn:
    """Print the sentence and end without Python's own exit, which would wait for threads and report the signal."""
    for stream, text in ((sys.stdout, ""), (sys.stderr, f"{SENTENCE}\n")):
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError, RuntimeError):  # nobody reads any more, or it is being written to just now
            continue
    os._exit(STOPPED)


def _on_interrupt(handler: Any) -> None:
    """Unless whoever started this wants interruptions to be ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _asked.set()
    if _importing(frame):  # libraries in C++ do not survive it in the middle
        _once_more()
        return
    raise KeyboardInterrupt


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _raise_again(dropped: Any) -> None:
    """What is raised in a callback goes nowhere; an interruption comes back when the callback is over."""
    if isinstance(dropped.exc_value, KeyboardInterrupt):
        _once_more()
    else:
        sys.__unraisablehook__(dropped)


def _once_more() -> None:
    again = threading.Timer(AGAIN_AFTER, _signal_again)
    again.daemon = True
    again.start()


def _signal_again() -> None:
    """To the main thread: it may wait for something, and only its own signals end that."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
