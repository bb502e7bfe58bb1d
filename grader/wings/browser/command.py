"""The option ``watch --browser``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console

from grader.watching.loop import WatchLoop
from grader.watching.session import WatchSession
from grader.wing import EXTRAS, WingError, install

PACKAGES = ("markdown_it", "starlette", "uvicorn")


def page(session: WatchSession, make: Callable[[], Any], console: Console, port: int, at: str) -> WatchLoop:
    """Return an event loop for ``watch`` that also serves a page to the browser.

    Args:
        session: the exercises, and the state of the current exercise.
        make: a function that returns a new grader.
        port: the page's port; 0 for any free port.
        at: the address at which the browser reaches the page through a proxy; "" without a proxy.

    Raises:
        WingError: a package of the extra ``browser`` is not installed, or the port or address cannot be used.
    """
    try:
        from grader.wings.browser.loop import PageLoop
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        raise WingError(f"--browser needs {error.name}; {install(EXTRAS['browser'])}") from None
    return PageLoop(session, make, console, port, at)
