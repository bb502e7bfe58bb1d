"""The command ``leaderboard``: a page that ranks a class by step times."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.console import print_json, say, tell
from grader.cli.options import AsJson, RosterOption, roster_in
from grader.common.files import write_atomic
from grader.course.config import CourseError
from grader.integrations import export as exports
from grader.reports.pages import render_template
from grader.wings.leaderboard import board as boards

TEMPLATES = Path(__file__).parent / "templates"


def leaderboard(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="the folder of reports that grade wrote")],
    exercise: Annotated[
        str,
        typer.Option(
            "--exercise", help="rank by this exercise; default: the exercise in which students set a leaderboard_name"
        ),
    ] = "",
    file: Annotated[
        Path | None, typer.Option("--file", help="write the page to this file; default: OUT/leaderboard.html")
    ] = None,
    roster: RosterOption = None,
    as_json: AsJson = False,
) -> None:
    """Rank the students who set a leaderboard_name by the step time that the course's clock computes.

    The page and the table show only leaderboard names. For each student who set a name and is not ranked, a note gives
    the reason.
    """
    listed = roster_in(roster)
    known = [row["Student"] for row in listed.rows] if listed else []
    try:
        board = boards.leaderboard(exports.load(folder), exercise, known)
    except boards.NoBoard as problem:
        raise CourseError(str(problem)) from None
    path = file or folder / "leaderboard.html"
    write_atomic(path, render(board))
    for student, why in board.left_out.items():
        tell("note", f"{student} is not ranked: {why}")
    if best := ", ".join(place.student for place in board.places if place.rank <= 3):
        tell(
            "note",
            f"review the code of {best} before you show the page: the clock computes step times without running "
            "the programs",
        )
    if as_json:
        print_json([{"rank": place.rank, "name": place.name, "step": place.step} for place in board.places])
        return
    for place in board.places:
        say(f"{place.rank:3}  {place.name:36} {boards.milliseconds(place.step):>12}")
    say(f"wrote {path}")


def render(board: boards.Board) -> str:
    return render_template("leaderboard.html.j2", TEMPLATES, board=board, milliseconds=boards.milliseconds)
