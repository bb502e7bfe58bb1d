"""Output and exit codes of the commands."""

from __future__ import annotations

import contextlib
import json
import shlex
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from grader import Mistake
from grader.reports.untrusted import clean

if TYPE_CHECKING:
    from grader.common.result import Report

out = Console(emoji=False)
err = Console(stderr=True, emoji=False)

FAILED, UNUSABLE, BROKEN = 1, 2, 3
EVERY = 60.0
"""Seconds between progress lines in a log."""


def say(text: str, style: str | None = None) -> None:
    """Print one line of the results on stdout, unchanged and without wrapping."""
    out.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


@contextlib.contextmanager
def only_problems(quiet: bool) -> Iterator[None]:
    """If ``quiet``, print no results and no notes during the block, only warnings and errors."""
    before = out.quiet
    out.quiet = quiet or before
    try:
        yield
    finally:
        out.quiet = before


def tell(what: str, text: object) -> None:
    """Print ``what``, a colon and ``text`` as one line on stderr."""
    if out.quiet and what == "note":
        return
    err.print(f"{what}: {clean(text)}", markup=False, highlight=False, soft_wrap=True)


def failure(error: Exception) -> str:
    """Return why a submission could not be graded. If the grader itself failed, print the traceback for its authors."""
    if isinstance(error, Mistake | OSError):
        return str(error)
    traceback.print_tb(error.__traceback__)  # without the message, which may hold text of a submission
    what = f"the grader failed: {type(error).__name__}"
    return f"{what}: {error}" if str(error) else what


def tell_unusable(unusable: Mapping[str, str], what: str = "shardlings") -> None:
    """Print ``what``, a colon and the reason on stderr for each exercise that cannot be used."""
    for reason in unusable.values():
        tell(what, reason)


def going_to(folder: Path) -> str:
    """Return ``cd FOLDER && ``, the start of a command that users run in FOLDER; '' for the working directory."""
    return "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))} && "


def print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2, sort_keys=True, default=str))


@contextlib.contextmanager
def progress(total: int, what: str = "grading", *, quiet: bool, console: Console = err) -> Iterator[Any]:
    """Show a progress bar with the time left. Yield a function to call after each submission or exercise.

    If stderr is not a terminal, print a line now and then in place of the bar.

    Args:
        total: the number of submissions or exercises.
        what: the text before the bar.
        console: the console on which to show the bar. If the caller prints results on this console meanwhile,
            the bar stays below the results.
    """
    if not quiet and not console.is_terminal:
        yield _progress_lines(total, what) if console is err else lambda who: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[who]}"),
    )
    with Progress(*columns, console=console, disable=quiet, transient=True) as bar:
        task = bar.add_task(what, total=total, who="")
        yield lambda who: bar.update(task, advance=1, who=clean(who, 40))


def _progress_lines(total: int, what: str) -> Callable[[str], None]:
    """Return a function to call after each item. It prints the time left, at most once in ``EVERY`` seconds."""
    began = printed = monotonic()
    done = 0

    def step(_: str) -> None:
        nonlocal printed, done
        done, now = done + 1, monotonic()
        if now - printed >= EVERY and done < total:
            printed, left = now, (now - began) / done * (total - done)
            tell(
                what, f"{done} of {total} done, about {f'{left:.0f} s' if left < 120 else f'{left / 60:.0f} min'} left"
            )

    return step


def tell_slow(who: str, seconds: float) -> None:
    """Print the name of a student whose submission takes long to grade, and the seconds of grading so far."""
    tell("grading", f"{who}: {seconds:.0f} s so far")


@contextlib.contextmanager
def busy(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show ``what`` and the elapsed time during the block."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=err, disable=quiet or not err.is_terminal, transient=True) as bar:
        bar.add_task(what, total=None)
        yield


def exit_code(reports: list[Report], *, student: bool = False) -> int:
    """Return the exit code of a command. Wrong answers give 1 only in a learner's own work (``student``)."""
    exercises = [e for one in reports for e in one.exercises]
    if any(r.status == "broken" for e in exercises for r in e.waiting):
        return BROKEN
    results = [r for e in exercises for r in e.results]
    failed = any(r.status == "failed" or (r.status == "blocked" and r.kind == "check") for r in results)
    return FAILED if student and failed else 0
