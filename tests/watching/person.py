"""Simulate a person who starts a command in a terminal, types, resizes the terminal and reads the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120
MARK = b"\0"
"""A byte that a screen ignores. It is written behind the last byte of a command that has ended."""


class Person:
    """A terminal that runs a command. ``raw`` has every byte that the command wrote."""

    def __init__(self, *words: str, cwd: Path, columns: int = 80, lines: int = 60, **env: str) -> None:
        self.screen = pyte.Screen(columns, lines)
        self.stream, self.raw = pyte.ByteStream(self.screen), b""
        self.master, self.terminal = pty.openpty()
        self._size(columns, lines)
        self.before: list[Any] = termios.tcgetattr(self.terminal)
        hidden = ("XLA_FLAGS", "JAX_PLATFORMS", "SHARDLINGS_STUDENT", "COLUMNS", "LINES", "NO_COLOR")
        clean = {k: v for k, v in os.environ.items() if k not in hidden}
        self.command = subprocess.Popen(
            [sys.executable, "-m", "grader", *words], cwd=cwd, stdin=self.terminal, stdout=self.terminal,
            stderr=self.terminal, start_new_session=True, preexec_fn=self._own,
            env=clean | {"TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **env},
        )  # fmt: skip

    def _own(self) -> None:
        """Make this terminal the command's controlling terminal, so that Ctrl-C and new sizes always reach it."""
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def _size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def __enter__(self) -> Person:
        return self

    def __exit__(self, *error: object) -> None:
        if self.command.poll() is None:
            os.killpg(self.command.pid, signal.SIGKILL)
            self.command.wait()
        os.close(self.master)
        os.close(self.terminal)

    @property
    def shown(self) -> str:
        """Return the content of the screen, without blanks at line ends."""
        return "\n".join(line.rstrip() for line in self.screen.display).strip("\n")

    def types(self, text: str) -> None:
        os.write(self.master, text.encode())

    def resizes(self, columns: int, lines: int) -> None:
        self._size(columns, lines)
        self.screen.resize(lines, columns)

    def looks(self, seconds: float = 0.1) -> str:
        """Read the command's output for this many seconds, and return the screen."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:  # no process writes to the terminal any more
                    return self.shown
                self.raw += data
                self.stream.feed(data)
        return self.shown

    def sees(self, *texts: str, seconds: float = SECONDS) -> str:
        """Wait until the screen shows all of these texts, and return the screen. A line end counts as a blank."""

        def shown() -> bool:
            flat = " ".join(self.shown.split())
            return all(text in flat for text in texts)

        return self._waits(shown, texts, seconds)

    def sees_line(self, line: str, seconds: float = SECONDS) -> str:
        """Wait until the screen shows this line, without its first and last blanks, and return the screen."""
        return self._waits(lambda: line in map(str.strip, self.shown.splitlines()), line, seconds)

    def misses(self, text: str, seconds: float = SECONDS) -> str:
        """Wait until the screen no longer shows this text, and return the screen."""
        return self._waits(lambda: text not in " ".join(self.shown.split()), f"a screen without {text}", seconds)

    def _waits(self, until: Callable[[], bool], what: object, seconds: float) -> str:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.looks(0.05)
            if until():
                return self.shown
        raise AssertionError(f"never seen: {what}\n--- the screen:\n{self.shown}")

    def leaves(self) -> int:
        """Wait until the command has ended, and return its exit code."""
        end = time.monotonic() + SECONDS
        while self.command.poll() is None and time.monotonic() < end:
            self.looks(0.05)
        assert self.command.returncode is not None, self.shown
        while not select.select([], [self.terminal], [], 0)[1]:
            self.looks(0.05)
        os.write(self.terminal, MARK)
        while not self.raw.endswith(MARK):
            self.looks(0.05)
        return self.command.returncode

    @property
    def modes(self) -> list[Any]:
        """Return the terminal's modes."""
        return termios.tcgetattr(self.terminal)
