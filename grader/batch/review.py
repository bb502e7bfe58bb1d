"""Submissions, files and answers that the staff must review.

- *Cases* are submissions and files. A run reads only the folders that its command names. So a submission that an
  earlier run set aside would disappear from the class page if a later run read other folders. The grader keeps each
  case until a run reads its files again.
- *Suspicions* are wrong answers that would be right with another student's numbers, and so may be copied from that
  student. In some courses, questions have different numbers for each student. Only the staff sees the suspicions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader.batch.database import Database
from grader.common.result import READ_AS, Report
from grader.common.text import SET_ASIDE, looks
from grader.course.loading import Course
from grader.intake.students import stem_of
from grader.intake.submission import ReviewCase
from grader.judging.answers import OfAClass
from grader.reports.summary import name_of
from grader.reports.tables import ASIDE


def keep_cases(
    database: Database, out: Path, found: Sequence[ReviewCase], read: Collection[Path], graded: Iterable[str] = (),
    login: Callable[[str], str] = str,
) -> list[ReviewCase]:  # fmt: skip
    """Add the cases of this run to those in the database, and return all of them.

    An earlier case stays until a run has read all its files again. If the files were moved or deleted, the case stays
    until a run has read a submission of the case's student. A case without a student ends when its files are gone.

    Args:
        out: the folder of reports. The database of a dry run is elsewhere.
        found: the cases of this run.
        read: the paths that this run read.
        graded: the students whose submissions this run read.
        login: a function from a name in another system, such as Canvas, to the student's name.
    """
    base = Path(os.path.realpath(out))
    # A case may be about a link itself, or about the path that the link leads to. So add both paths of each link.
    now = [*map(_real, read), *(Path(os.path.realpath(path)) for path in read)]
    seen = {looks(login(name)) for name in (*graded, *_names_in(found))}
    cases: dict[ReviewCase, None] = {}
    for case in database.cases():
        left = _unread(_files(case), base, now)
        there = any(os.path.lexists(base / path) for file in left for path in file)
        followed = case.followed or _is_followed(case.student, seen, login)
        if there or (not followed and (left or not case.relative)):
            cases[replace(_with_files(case, left, base), followed=followed)] = None
    for case in found:
        files = [(_real(path),) for path in case.paths]
        cases[replace(_with_files(case, files, base), student=name_of(case.student))] = None
    database.set_cases(list(cases))
    return list(cases)


def _files(case: ReviewCase) -> list[tuple[Path, ...]]:
    """Return the places of each file of a stored case: relative to the folder of reports, and absolute.

    With the relative place, the folder of reports and the submissions can move together. With the absolute place, only
    one of them can move.
    """
    return [*zip(case.relative, case.paths or case.relative, strict=True)]


def _unread(files: Sequence[tuple[Path, ...]], base: Path, read: Sequence[Path]) -> list[tuple[Path, ...]]:
    """Return the files that were read at neither place."""
    return [file for file in files if not any(_is_read(base / path, read) for path in file)]


def _with_files(case: ReviewCase, files: Sequence[tuple[Path, ...]], base: Path) -> ReviewCase:
    """Return the case with these files. A file that exists at one of its places has only this place."""
    there = [[path for path in file if os.path.lexists(base / path)][:1] or file for file in files]
    relative = tuple(Path(os.path.relpath(base / places[0], base)) for places in there)
    return replace(case, paths=tuple(Path(os.path.normpath(base / places[-1])) for places in there), relative=relative)


def _names_in(cases: Iterable[ReviewCase]) -> Iterator[str]:
    """Yield the names of students and files. Older versions named a case after a file."""
    for case in cases:
        yield name_of(case.student)
        yield from (path.name for path in case.paths)


def note_set_aside(database: Database, remarks: Mapping[str, str]) -> None:
    """Add a note to the report of each student with the remark ASIDE (``remarks``, for grades.csv).

    Before the next run calls this function, ``Folder.settle`` replaces the report by a report without the note.
    """
    for student, remark in remarks.items():
        if remark == ASIDE and (stored := database.stored(student)):
            counts = stored.counts.model_copy(update={"notes": [*stored.counts.notes, SET_ASIDE]})
            database.replace_reports(student, replace(stored, counts=counts))


def _is_followed(student: str, seen: AbstractSet[str], login: Callable[[str], str]) -> bool:
    """Return True if ``student`` is in ``seen`` or is empty. Older versions named cases after files, too."""
    return not student or not seen.isdisjoint(looks(login(name)) for name in (student, stem_of(student)))


def _real(path: Path) -> Path:
    """Return the absolute path. Links are followed, except if the path itself is a link."""
    return Path(os.path.realpath(path.parent)) / path.name if path.name else Path(os.path.realpath(path))


def _is_read(path: Path, read: Sequence[Path]) -> bool:
    """Return whether a path in ``read`` is or contains the file."""
    path = Path(os.path.normpath(path))
    return any(path.is_relative_to(one) for one in read)


# -- suspicions --------------------------------------------------------------------------------

Suspicion = dict[str, Any]
"""A wrong answer. Keys: ``student``, ``question``, and ``fits``, the other students whose numbers fit the answer."""


class Suspicions:
    """Collects wrong answers, one report at a time. If all students get equal numbers, this object collects nothing."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._drawn = course.config.variants.mode == "per_student"
        # (exercise, question) -> (position among all wrong answers, student, answer) of each wrong answer.
        self._wrong: dict[tuple[str, str], list[tuple[int, str, str]]] = {}
        self._count = 0

    def add(self, report: Report) -> None:
        known = self._course.module_of if self._drawn else ()
        for part in report.exercises:
            questions = self._course.exercise(part.exercise).questions if part.exercise in known else ()
            for result in part.results:
                failed = result.kind != "check" and result.status == "failed" and result.actual
                if failed and result.name in questions:
                    answer = str(result.actual).removeprefix(READ_AS)
                    own = self._wrong.setdefault((part.exercise, result.name), [])
                    own.append((self._count, report.student, answer))
                    self._count += 1

    def found(self, students: Sequence[str]) -> list[Suspicion]:
        """Return the wrong answers that would be right with another student's numbers, in the order of the reports."""
        numbered = (one for exercise, name in self._wrong for one in self._fitting(exercise, name, students))
        return [suspicion for _, suspicion in sorted(numbered, key=lambda one: one[0])]

    def _fitting(self, exercise: str, name: str, students: Sequence[str]) -> Iterator[tuple[int, Suspicion]]:
        """Yield (position among the wrong answers to all questions, suspicious answer) for one question."""
        question = self._course.exercise(exercise).questions[name]
        drawn = OfAClass(question, {s: self._course.params(question, s) for s in students})
        for number, student, answer in self._wrong[exercise, name]:
            if others := drawn.fits_others(student, answer):
                yield number, {"student": student, "question": name, "fits": others}
