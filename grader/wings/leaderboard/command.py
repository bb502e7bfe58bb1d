"""The command ``leaderboard``: a page that ranks a class by the step times that ``grader.clock`` computes.

The leaderboard shows only names that students chose. These names are untrusted, and a chosen name must not be the name
of a person in the class.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from grader.cli.console import print_json, say, tell
from grader.cli.options import AsJson, RosterOption, roster_in
from grader.common.files import write_atomic
from grader.common.result import ExerciseReport, Report
from grader.course.config import CourseError
from grader.integrations import export as exports
from grader.reports.pages import render_template

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
    """Rank students by the step time that the clock computes.

    The leaderboard ranks the students who set a leaderboard_name, by the time of the course's clock. The page and the
    table show only leaderboard names. For each student who set a name and is not ranked, a note gives the reason.
    """
    listed = roster_in(roster)
    known = [row["Student"] for row in listed.rows] if listed else []
    board = ranked(exports.load(folder), exercise, known)
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
        say(f"{place.rank:3}  {place.name:36} {milliseconds(place.step):>12}")
    say(f"wrote {path}")


def render(board: Board) -> str:
    return render_template("leaderboard.html.j2", TEMPLATES, board=board, milliseconds=milliseconds)


# -- the leaderboard ---------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,29}")


@dataclass(frozen=True)
class Place:
    """A line of the leaderboard. Places with equal step times have equal ranks.

    Attributes:
        name: the name that the student chose.
        step: the step time, picoseconds.
        student: the student, whom only the staff may see.
    """

    rank: int
    name: str
    step: int
    student: str


@dataclass(frozen=True)
class Board:
    """The leaderboard of one exercise: its places (lines), in the order of the step times.

    ``left_out``: for each student who set a name but has no place, the reason.
    """

    exercise: str
    title: str
    places: list[Place]
    left_out: dict[str, str] = field(default_factory=dict)


def ranked(reports: Iterable[Report], exercise: str = "", known: Sequence[str] = ()) -> Board:
    """Return the leaderboard of one exercise: students who passed all checks of the exercise and set a name.

    Args:
        exercise: the exercise's id. If it is "", choose the only exercise in which students set names.
        known: names of further persons in the class, which students must not choose.

    Raises:
        CourseError: no student set a name; or ``exercise`` is "", and students set names in several exercises.
    """
    reports = list(reports)
    asked = [
        (r.student, e) for r in reports for e in r.exercises if e.pseudonym.strip() and exercise in ("", e.exercise)
    ]
    names = sorted({e.exercise for _, e in asked})
    if len(names) != 1:
        raise CourseError(
            f"students set names in {', '.join(names)}: choose one exercise with --exercise"
            if names
            else f"no student set a leaderboard_name{f' in {exercise}' if exercise else ''}"
        )
    persons = [*(r.student for r in reports), *known]
    found: list[tuple[int, str, str]] = []
    left_out: dict[str, str] = {}
    for student, report in asked:
        if problem := _problem(report, persons):
            left_out[student] = problem
        else:
            found.append((step_of(report) or 0, " ".join(report.pseudonym.split()), student))
    return Board(names[0], asked[0][1].title, _placed(sorted(found)), left_out)


def step_of(report: ExerciseReport) -> int | None:
    """Return a step's picoseconds for the first timed program without hidden inputs; None without such a program."""
    return next((e.step for e in report.evidence if e.step is not None and not e.secret), None)


def milliseconds(step: int) -> str:
    return f"{step / 1e9:.3f} ms"


def _problem(report: ExerciseReport, persons: Sequence[str]) -> str:
    """Return the reason why this report has no place on the leaderboard, or "" if it has a place."""
    if any(r.status != "passed" for r in report.results if r.kind == "check"):
        return "some checks did not pass"
    if not step_of(report):
        return "no program was timed"
    if not _NAME.fullmatch(" ".join(report.pseudonym.split())):
        return "a name has at most 30 characters: letters from A to Z, digits, blanks, - and _"
    if any(_means(report.pseudonym, person) for person in persons):
        return "the name is a student's name in the class"
    return ""


def _means(name: str, person: str) -> bool:
    """Return whether one of the two names has all words of the other, or the names differ only in blanks."""
    one, other = _words(name), _words(person)
    return bool(other) and (set(one) <= set(other) or set(other) <= set(one) or "".join(one) == "".join(other))


def _words(name: str) -> list[str]:
    """Return the words of a name in lower case, without accents, punctuation and the host of an e-mail address."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.split("@")[0]) if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+", plain.casefold())


def _placed(found: Sequence[tuple[int, str, str]]) -> list[Place]:
    """Return the places for sorted triples (step time, chosen name, student). A repeated name ends in " (2)"."""
    steps, seen, places = [step for step, _, _ in found], Counter[str](), []
    for step, name, student in found:
        seen[name.casefold()] += 1
        again = seen[name.casefold()]
        places.append(Place(1 + steps.index(step), name if again == 1 else f"{name} ({again})", step, student))
    return places
