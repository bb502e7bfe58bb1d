"""The event loop of ``watch``: it redraws the screen after a save, a key or a finished check."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from grader.course.config import CourseError
from grader.watching.checker import Checker, Done, Work
from grader.watching.screen import Screen
from grader.watching.session import WatchSession

STILL = 3.0
"""Seconds after which an unfinished check is shown as still running."""


class WatchLoop:
    """The event loop's state: the session, the screen and the checker. ``make`` makes a grader."""

    def __init__(self, session: WatchSession, make: Callable[[], Any], screen: Screen) -> None:
        self.session, self.screen = session, screen
        self.events: SimpleQueue[Any] = SimpleQueue()
        self.checker = Checker(make, self.events.put)
        self._waiting = ""
        self._asked: Work | None = None  # The user's newest request, until its result is handled.

    # Other threads, and signal handlers, call the methods ``saved``, ``pressed`` and ``resized``.

    def saved(self) -> None:
        self.events.put(self._saved)

    def pressed(self, key: str) -> None:
        self.events.put(lambda: self._pressed(key))

    def resized(self) -> None:
        self.events.put(self.screen.again)

    def close(self) -> None:
        self.checker.close()

    def run(self, *, anywhere: bool) -> None:
        """Run until the user quits. With ``anywhere``, begin with the first unfinished exercise."""
        self.session.look()
        if anywhere and len(self.session.names) > 1:
            self._ask("start", self.session.check_all())
        else:
            self._look()
        while True:
            try:
                event = self.events.get(timeout=STILL if self._waiting else None)
            except Empty:
                self.screen.still(self._waiting)
                self._waiting = ""
                continue
            if isinstance(event, Done):
                self._done(event)
            elif event() is False:
                return

    def _saved(self) -> None:
        if self.session.look():
            self.screen.question = ""
            self._check()

    def _look(self) -> None:
        """Read the files and check the current exercise."""
        self.session.look()
        self._check()

    def _check(self) -> None:
        if self.session.source is None:
            self.screen.nothing()
        else:
            self._ask(f"check {self.session.exercise.id}", self.session.check())

    def _ask(self, name: str, work: Work) -> None:
        self.checker.ask(name, work)
        self._waiting, self._asked = name, work
        self.screen.checking(name)

    def _done(self, done: Done) -> None:
        if self._asked not in (None, done.work):
            # The screen will show the result of the user's newer request.
            return
        self._asked = None
        if done.name != "learn":
            self._waiting = ""
            self._show(done)
        if not self.checker.busy and (idle := self._when_idle()):
            self.checker.ask(*idle)

    def _when_idle(self) -> tuple[str, Work] | None:
        """Return (name, work) that prepares hints while no request waits; None if nothing is left to prepare."""
        work = self.session.learn()
        return ("learn", work) if work else None

    def _show(self, done: Done) -> None:
        value = done.value
        if done.error is not None:
            self.screen.failed(done.error)
        elif done.name == "start":
            self.session.start(value)
            self._look()
        elif done.name == "list":
            self.screen.progress(value)
        elif done.name == "explain":
            self.screen.explained(value)
        elif value.exercise == self.session.exercise.id and self.session.source is not None:
            self.session.report = value
            self.screen.result(done.seconds)

    # keys

    def _pressed(self, key: str) -> bool:
        """Handle a key. Return False if the key ends ``watch``."""
        if key == "" or (key in "qQ\x04" and not self.screen.question):
            return False
        if self.screen.question:
            self.screen.question = ""
            self._reset() if key in "yY" else self.screen.again()
            return True
        # Show the exercise again, because messages appear below it.
        if self.screen.elsewhere and key.lower() in "npxr":
            self.screen.again()
        actions = {"h": self._hint, "n": lambda: self._move(1), "p": lambda: self._move(-1), "l": self._list,
                   "x": self._explain, "r": self._ask_reset}  # fmt: skip
        actions.get(key.lower(), self.screen.again)()
        return True

    def _hint(self) -> None:
        self.session.hint()
        self.screen.again(hints=True)

    def _move(self, step: int) -> None:
        if self.session.move(step):
            self._look()
        else:
            self.screen.say("this is the last exercise" if step > 0 else "this is the first exercise")

    def _list(self) -> None:
        self._ask("list", self.session.check_all())

    def _explain(self) -> None:
        try:
            self._ask("explain", self.session.explain())
        except CourseError as error:
            self.screen.say(str(error))

    def _ask_reset(self) -> None:
        if self.session.source is None:
            self.screen.say("there is no file to reset")
            return
        self.screen.ask(f"reset {self.session.where} to the handed-out file? a backup of your file will be kept. y/n")

    def _reset(self) -> None:
        try:
            kept = self.session.reset()
        except (CourseError, OSError) as error:
            self.screen.say(str(error))
            return
        self.screen.news = f"reset; your file is kept as {kept.name}"
        self._saved()
