"""Ctrl-C ends a command with one sentence, at any time.

By default, Ctrl-C while a command imports modules shows a traceback. Inside a callback (JAX has one in the garbage
collector), Python drops the KeyboardInterrupt, so that the command continues. Inside an import, the KeyboardInterrupt
may become an ImportError or, in C++ code, a crash.
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
AGAIN_AFTER = 0.05  # seconds after which an interruption is repeated if it came during an import or Python dropped it

_asked = threading.Event()


def stop_at_once() -> None:
    """Let Ctrl-C end the process at once, which is safe while the process only imports modules."""
    _on_interrupt(lambda *_: stop())


def stop_in_order() -> None:
    """Let Ctrl-C raise KeyboardInterrupt. If Python drops the exception, raise it again."""
    sys.unraisablehook = _raise_again
    _on_interrupt(_interrupt)


def asked() -> bool:
    """Return whether the user pressed Ctrl-C. Ctrl-C may cause errors that are raised later."""
    return _asked.is_set()


def stop() -> NoReturn:
    """Print SENTENCE and exit without Python's own exit, which would wait for threads and report the signal."""
    for stream, text in ((sys.stdout, ""), (sys.stderr, f"{SENTENCE}\n")):
        try:
            stream.write(text)
            stream.flush()
        except (OSError, ValueError, RuntimeError):  # the stream is closed, or in use at this moment
            continue
    os._exit(STOPPED)


def _on_interrupt(handler: Any) -> None:
    """Set the handler for Ctrl-C, unless the parent process made this process ignore Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _asked.set()
    if _importing(frame):  # C++ libraries break if an interruption occurs during their import
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
    """If Python dropped a KeyboardInterrupt in a callback, interrupt again when the callback is over."""
    if isinstance(dropped.exc_value, KeyboardInterrupt):
        _once_more()
    else:
        sys.__unraisablehook__(dropped)


def _once_more() -> None:
    again = threading.Timer(AGAIN_AFTER, _signal_again)
    again.daemon = True
    again.start()


def _signal_again() -> None:
    """Send a signal to the main thread, because a signal to another thread would not end a wait of the main thread."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        signal.raise_signal(signal.SIGINT)
