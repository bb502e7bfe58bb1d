"""The output of long commands while they run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from grader.cli import console
from grader.common.result import ByHand
from grader.intake.submission import Unreadable
from grader.reports.summary import broken_results
from tests.reports.example_reports import exercise, make_report, result


def terminal(wide: int = 100) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=wide, color_system=None)


def shown(on: Console) -> str:
    return on.file.getvalue()  # type: ignore[attr-defined]


def test_a_progress_bar_shows_the_counts_and_the_current_name() -> None:
    on = terminal()
    with console.progress(2, "grading the solutions first", quiet=False, console=on) as step:
        step("c1_no_\x1b[31mcommunication")
        step("c2")
    text = shown(on)
    assert "grading the solutions first" in text and "2/2" in text and "c2" in text and "\x1b[31m" not in text


def test_names_and_code_with_colons_become_no_emoji(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("a[:b:] of :x:")
    console.tell("note", "a[:b:] of :x:")
    assert tuple(capsys.readouterr()) == ("a[:b:] of :x:\n", "note: a[:b:] of :x:\n")


def test_a_command_for_another_folder_begins_with_cd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert console.going_to(Path()) == "" == console.going_to(tmp_path)
    assert console.going_to(Path("my own")) == "cd 'my own' && "


def test_work_without_steps_shows_its_title_and_elapsed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    on = terminal()
    monkeypatch.setattr(console, "err", on)
    with console.busy("checking 3 exercises"):
        pass
    assert "checking 3 exercises" in shown(on) and "0:00:00" in shown(on)


def test_in_a_log_progress_is_a_line_a_minute_with_the_time_left(
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


def test_a_slow_submission_is_shown_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Console(file=io.StringIO(), force_terminal=False, width=40)
    monkeypatch.setattr(console, "err", log)
    console.tell_slow("sleeper", 40.2)
    assert shown(log) == "grading: sleeper: 40 s so far\n"


def test_only_results_without_final_points_give_the_exit_code_of_a_broken_check() -> None:
    broken = exercise([result("value", "broken", earned=0)])
    by_bob = ByHand(by="Bob", reason="read", graded=0, was=0)
    assert console.exit_code([make_report(broken)]) == console.BROKEN
    whole = make_report(broken.model_copy(update={"by_hand": by_bob}))
    assert console.exit_code([whole]) == 0 and whole.unjudged == 0
    assert broken_results(make_report(broken)) and not broken_results(whole)


def test_an_error_of_the_grader_names_its_type_and_shows_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """An empty reason, such as that of ``MemoryError()``, would tell the staff nothing."""
    try:
        raise MemoryError
    except MemoryError as error:
        assert console.failure(error) == "the grader failed: MemoryError"
    assert "test_console.py" in capsys.readouterr().err
    assert console.failure(Unreadable("x.py cannot be read")) == "x.py cannot be read"
    assert console.failure(OSError(28, "No space left on device")) == "[Errno 28] No space left on device"
    assert capsys.readouterr().err == ""
