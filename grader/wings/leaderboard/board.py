"""A class's leaderboard: students who asked for a place, in the order of the clock's step times for their programs.

It shows only names that students chose. These are untrusted, and names of persons in the class are refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from grader.common.result import ExerciseReport, Report

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _-]{0,29}")


@dataclass(frozen=True)
class Place:
    """A line of the board. ``step``: picoseconds. Equal times share a rank. ``student`` is for the staff only."""

    rank: int
    name: str
    step: int
    student: str


@dataclass(frozen=True)
class Board:
    """The places, best first. ``left_out``: students who asked but have no place, with reasons, for the staff only."""

    exercise: str
    title: str
    places: list[Place]
    left_out: dict[str, str] = field(default_factory=dict)


class NoBoard(Exception):
    """There is nothing to rank, or no exercise was chosen. The message is one line."""


def leaderboard(reports: Iterable[Report], exercise: str = "", known: Sequence[str] = ()) -> Board:
    """Return the board of one exercise: students who passed all of its checks and gave a name.

    Args:
        exercise: its id; "" for the one in which names were given.
        known: names of persons, besides the reports' students, that must not be used here.

    Raises:
        NoBoard: no student asked for a place, or students did in several exercises.
    """
    reports = list(reports)
    asked = [
        (r.student, e) for r in reports for e in r.exercises if e.pseudonym.strip() and exercise in ("", e.exercise)
    ]
    names = sorted({e.exercise for _, e in asked})
    if len(names) != 1:
        raise NoBoard(
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
    """Return the step time of the first program that was timed at sizes that learners see, or None."""
    return next((e.step for e in report.evidence if e.step is not None and not e.secret), None)


def milliseconds(step: int) -> str:
    return f"{step / 1e9:.3f} ms"


def _problem(report: ExerciseReport, persons: Sequence[str]) -> str:
    """Return why this report has no place, or "" if it has one."""
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
    """Return whether a name may mean a person: all words of one are in the other, or they differ only in blanks."""
    one, other = _words(name), _words(person)
    return bool(other) and (set(one) <= set(other) or set(other) <= set(one) or "".join(one) == "".join(other))


def _words(name: str) -> list[str]:
    """Return the words of a name without accents, case, punctuation and an address's host."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name.split("@")[0]) if not unicodedata.combining(c))
    return re.findall(r"[^\W_]+", plain.casefold())


def _placed(found: Sequence[tuple[int, str, str]]) -> list[Place]:
    """Return the places with ranks, and with numbers for names that occur several times."""
    steps, seen, places = [step for step, _, _ in found], Counter[str](), []
    for step, name, student in found:
        seen[name.casefold()] += 1
        again = seen[name.casefold()]
        places.append(Place(1 + steps.index(step), name if again == 1 else f"{name} ({again})", step, student))
    return places
