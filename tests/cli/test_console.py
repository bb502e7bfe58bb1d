"""The output of long commands while they work."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from grader.cli import console


def terminal(wide: int = 100) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=wide, color_system=None)


def shown(on: Console) -> str:
    return on.file.getvalue()  # type: ignore[attr-defined]


def test_a_bar_says_what_is_done_of_how_many_and_for_whom() -> None:
    on = terminal()
    with console.progress(2, "grading the solutions first", quiet=False, console=on) as step:
        step("c1_no_\x1b[31mcommunication")
        step("c2")
    text = shown(on)
    assert "grading the solutions first" in text and "2/2" in text and "c2" in text and "\x1b[31m" not in text


def test_what_is_to_be_typed_elsewhere_begins_with_the_way_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert console.going_to(Path()) == "" == console.going_to(tmp_path)
    assert console.going_to(Path("my own")) == "cd 'my own' && "


def test_what_has_no_steps_says_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    on = terminal()
    monkeypatch.setattr(console, "err", on)
    with console.busy("checking 3 exercises"):
        pass
    assert "checking 3 exercises" in shown(on) and "0:00:00" in shown(on)


def test_in_a_log_a_line_a_minute_says_how_much_is_done_and_how_long_the_rest_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, clock = Console(file=io.StringIO(), force_terminal=False, width=40), iter(range(0, 4000, 25))
    monkeypatch.setattr(console, "err", log)
    monkeypatch.setattr(console, "monotonic", lambda: next(clock))
    with console.progress(9, "grading", quiet=False, console=log) as step:
        for _ in range(9):
            step("\x1b[31mada")
    assert shown(log).splitlines() == [
        "grading: 3 of 9 done, about 2 min left",
        "grading: 6 of 9 done, about 75 s left",
    ]


@pytest.mark.parametrize("quiet", [True, False])
def test_no_bar_is_drawn_outside_of_a_terminal(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    on = terminal() if quiet else Console(file=io.StringIO(), force_terminal=False)
    monkeypatch.setattr(console, "err", on)
    with console.progress(1, quiet=quiet, console=on) as step, console.busy("checking", quiet=True):
        step("ada")
    with console.busy("checking", quiet=quiet):
        pass
    assert shown(on) == ""


def test_who_takes_long_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Console(file=io.StringIO(), force_terminal=False, width=40)
    monkeypatch.setattr(console, "err", log)
    console.tell_slow("sleeper", 40.2)
    assert shown(log) == "grading: sleeper: 40 s so far\n"
