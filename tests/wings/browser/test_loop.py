"""The loop of ``watch --browser`` with a real grader: buttons, checks and pictures."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from grader.batch.grade import Grader
from grader.course.loading import load_course
from grader.watching.session import WatchSession
from grader.wing import WingError
from grader.wings.browser.loop import PageLoop, PageScreen, can_open
from tests.made_up import made_up

SECONDS = 120
RIGHT = """
import jax
from jax.sharding import PartitionSpec as P

def gather(a, *, mesh):
    f = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
"""


@pytest.fixture
def loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageLoop]:
    """Yield a running loop of a course with one exercise, and end it after the test."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    made_up(tmp_path)
    course = load_course(tmp_path / "course.yaml")
    (tmp_path / "work").mkdir()
    session = WatchSession(course, tmp_path / "work", "me", ["x1_gather"])
    made = PageLoop(session, lambda: Grader(course, "none"), Console(file=io.StringIO(), width=100), 0, "")
    thread = threading.Thread(target=made.run, kwargs={"anywhere": False})
    thread.start()
    yield made
    made.pressed("q")
    thread.join(SECONDS)
    made.close()
    assert not thread.is_alive()


def comes(loop: PageLoop, part: str, text: str) -> str:
    """Wait until a part of the page has this text, and return the part."""
    over = time.monotonic() + SECONDS
    while time.monotonic() < over:
        found = loop.regions.texts.get(part, "")
        if text in found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{part} has no {text!r}: {loop.regions.texts.get(part)}")


def saves(loop: PageLoop, text: str) -> None:
    (loop.session.place / "x1_gather.py").write_text(text)
    loop.saved()


def test_a_save_is_checked_and_drawn_and_buttons_work(loop: PageLoop) -> None:
    comes(loop, "head", "waiting for x1_gather.py")
    saves(loop, RIGHT.replace("return jax", "raise ValueError('no')\n    return jax"))
    comes(loop, "checks", "ValueError: no")
    comes(loop, "program", "There are no pictures: ValueError: no")
    assert loop.act("hint", "") and not loop.act("erase", "")
    comes(loop, "hints", "a nudge")
    saves(loop, RIGHT)
    comes(loop, "checks", "passed")
    drawn = comes(loop, "program", "all_gather over x")
    assert '<option value="1">' in drawn and "In time" in drawn
    assert loop.act("program", "1")
    comes(loop, "program", '<option value="1" selected>')
    assert loop.act("program", "no number")
    comes(loop, "program", '<option value="0" selected>')
    assert "<svg" in loop.timeline(700.0)
    assert loop.act("slice", "v5e:2x2")
    comes(loop, "program", "<option selected>v5e:2x2</option>")
    assert loop.act("slice", "v9:1x1")
    comes(loop, "program", "There are no pictures: ")
    assert loop.act("next", "")
    comes(loop, "head", "this is the last exercise")


def test_a_check_is_shown_if_a_request_in_the_background_ends_just_before_it(loop: PageLoop) -> None:
    saves(loop, RIGHT)
    comes(loop, "program", "all_gather over x")

    def until_idle() -> None:
        while loop.checker.busy:
            time.sleep(0.01)

    def in_the_background() -> None:
        until_idle()
        loop.checker.ask("learn", lambda _: None)
        until_idle()

    # Hold the loop until both requests have ended. Then it handles the result of "learn" before that of the check.
    ready = threading.Event()
    loop.events.put(lambda: bool(ready.wait(SECONDS)))
    loop.events.put(in_the_background)
    saves(loop, RIGHT.replace("return jax", "raise ValueError('no')\n    return jax"))
    loop.events.put(until_idle)
    ready.set()
    comes(loop, "checks", "ValueError: no")
    comes(loop, "program", "There are no pictures: ValueError: no")


def test_a_file_that_disappears_is_waited_for(loop: PageLoop) -> None:
    saves(loop, RIGHT)
    comes(loop, "program", "all_gather over x")
    (loop.session.place / "x1_gather.py").unlink()
    loop.saved()
    comes(loop, "head", "waiting for x1_gather.py")
    comes(loop, "program", "The pictures appear when you have a file of this exercise.")


def test_a_taken_port_starts_no_worker(loop: PageLoop) -> None:
    port = int(loop.server.address.split(":")[2].split("/")[0])

    def make() -> Grader:
        raise AssertionError("a worker was started")

    with pytest.raises(WingError, match=rf"^--port {port}: Address already in use"):
        PageLoop(loop.session, make, Console(file=io.StringIO()), port, "")


def test_a_long_address_is_one_line_of_a_narrow_terminal(loop: PageLoop) -> None:
    out = io.StringIO()
    screen = PageScreen(loop.session, Console(file=out, width=40), loop.regions)
    screen.address = f"https://hub.example/user/ada/proxy/8642/{'t' * 32}/"
    screen.print_address()
    assert out.getvalue() == f"page: {screen.address}\n"


@pytest.mark.parametrize(("variable", "opens"), [("BROWSER", True), ("DISPLAY", True), ("OTHER", False)])
def test_a_browser_is_opened_where_it_has_windows(monkeypatch: pytest.MonkeyPatch, variable: str, opens: bool) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv(variable, "x")
    assert can_open() is opens
