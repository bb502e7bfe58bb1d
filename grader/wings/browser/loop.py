"""The event loop of ``watch --browser``.

The page shows each change of the state. Buttons on the page work like keys in the terminal.
"""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console

from grader.batch.explaining import Wanted
from grader.course.config import CourseError
from grader.intake.submission import Source
from grader.reports.explained import Explained
from grader.watching.checker import Done, Work
from grader.watching.loop import WatchLoop
from grader.watching.screen import Screen
from grader.watching.session import WatchSession
from grader.wings.browser.server import Regions, Server
from grader.wings.browser.view import PageState, render, usual_slice

PICTURES = "pictures"


class PageScreen(Screen):
    """A screen that draws on the terminal and updates the page.

    Attributes:
        shown: the state that only the page has, such as the program that the learner chose.
    """

    def __init__(self, session: WatchSession, console: Console, regions: Regions) -> None:
        super().__init__(session, console)
        self.regions, self.shown, self.address = regions, PageState(), ""

    def publish(self) -> None:
        self.regions.put(render(self.session, self.shown))

    def result(self, seconds: float) -> None:
        super().result(seconds)
        self._status(f"checked at {self._took}")

    def nothing(self) -> None:
        super().nothing()
        module = self.session.course.module_of[self.session.exercise.id]
        self._status(f"waiting for {self.session.exercise.id}.py or {module}.ipynb")

    def checking(self, name: str) -> None:
        super().checking(name)
        self._status("checking …", busy=True)

    def still(self, name: str) -> None:
        super().still(name)
        self._status("still checking; save the file again to stop an endless loop", busy=True)

    def say(self, text: str) -> None:
        super().say(text)
        self._status(text)

    def _status(self, text: str, *, busy: bool = False) -> None:
        self.shown.status, self.shown.busy = text, busy
        self.publish()

    def _draw(self) -> None:
        super()._draw()
        self.print_address()
        self.publish()

    def print_address(self) -> None:
        """Print the page's address as one line, because users copy it from the terminal."""
        if self.address:
            text = self.paper.text(f"page: {self.address}", "bright_black")
            self.paper.console.print(text, soft_wrap=True)


class PageLoop(WatchLoop):
    """The event loop of ``watch`` with a page. The page's server runs from the call of ``run`` until ``close``.

    Args:
        make: a function that returns a new grader.
        port: the page's port; 0 for any free port.
        at: the address at which the browser reaches the page through a proxy; "" without a proxy.

    Raises:
        WingError: the port or address cannot be used.
    """

    screen: PageScreen

    def __init__(self, session: WatchSession, make: Callable[[], Any], console: Console, port: int, at: str) -> None:
        self.regions = Regions()
        # Create the server before workers start, because its creation may raise an error.
        self.server = Server(self.regions, self.act, self.timeline, port, at)
        super().__init__(session, make, PageScreen(session, console, self.regions))
        self._pictured: object = None  # The exercise, function, source and slice that the newest pictures show.
        self._drawing: Work | None = None  # The newest request for pictures.

    def run(self, *, anywhere: bool) -> None:
        self.screen.publish()
        self.server.start()
        self.screen.address = self.server.address
        self.screen.print_address()
        if can_open():
            webbrowser.open(self.server.once())
        super().run(anywhere=anywhere)

    def close(self) -> None:
        self.server.close()
        super().close()

    # The threads of the page's server run ``act`` and ``timeline``.

    def act(self, name: str, value: str) -> bool:
        """Queue the action of the page's button ``name``. Return False if the page has no such button.

        ``value``: the program's index for the button "program", or the TPU slice, such as "v5e:2x4", for "slice".
        """
        actions: dict[str, Callable[[], None]] = {
            "hint": self._hint,
            "next": lambda: self._move(1),
            "previous": lambda: self._move(-1),
            "program": lambda: self._choose(value),
            "slice": lambda: self._lay_on(value),
        }
        if name not in actions:
            return False
        self.events.put(lambda: actions[name]())
        return True

    def timeline(self, width: float) -> str:
        return self.screen.shown.timeline(width)

    def _ask(self, name: str, work: Work) -> None:
        # The checker may replace or stop the request for pictures. So ask for pictures again after this request.
        self._pictured = self._drawing = None
        super()._ask(name, work)

    # the program's pictures

    def _choose(self, number: str) -> None:
        self.screen.shown.choose(int(number) if number.isascii() and number.isdecimal() else 0)
        self.screen.publish()

    def _lay_on(self, on: str) -> None:
        self.screen.shown.on = on
        self._pictured = self._drawing = None
        if not self.checker.busy and (idle := self._when_idle()):
            self.checker.ask(*idle)

    def _when_idle(self) -> tuple[str, Work] | None:
        """Return (name, work) for the checker to do while no check runs; None if there is nothing to do."""
        return self._pictures() or super()._when_idle()

    def _pictures(self) -> tuple[str, Work] | None:
        session, shown = self.session, self.screen.shown
        about = (session.exercise.id, session.function, session.source, shown.on)
        if session.source is None or about == self._pictured:
            return None
        self._pictured, self._drawing = about, None
        try:
            work = session.explain(Wanted(on=shown.on), usual_slice(session.exercise, session.course))
        except CourseError as error:
            self._drawn(session.source, (), str(error))
            return None
        self._drawing = work
        return PICTURES, work

    def _show(self, done: Done) -> None:
        if done.name != PICTURES:
            super()._show(done)
        elif done.work is self._drawing and self.session.source is not None:
            self._drawn(self.session.source, done.value or (), str(done.error or ""))

    def _drawn(self, source: Source, programs: Sequence[Explained], problem: str) -> None:
        self.screen.shown.explained(self.session.exercise.id, source, programs, problem)
        self.screen.publish()


def can_open() -> bool:
    """Return True if this machine can show a graphical browser. A text browser would cover the terminal's screen."""
    windows = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return bool(windows or os.environ.get("BROWSER"))
