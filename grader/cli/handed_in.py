"""Read all submissions of a batch, and find files that name another student."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.batch import store
from grader.batch.handing_in import class_folders, unread_records
from grader.cli.console import tell
from grader.common.text import a_few, composed, looks, printable
from grader.course.loading import Course
from grader.intake.names import Signatures
from grader.intake.parsers import Parsers
from grader.intake.reading import read
from grader.intake.signed import others_named
from grader.intake.students import find_submissions
from grader.intake.submission import Case, Place, Submission, paths_of


@dataclass(frozen=True)
class HandedIn:
    """The submissions of a batch.

    Attributes:
        places: the folders and files of each submission, by student.
        submissions: the readable submissions, by student.
        cases: submissions that cannot be graded, and files that need review.
        folders: the folders of submissions in which ``submitted.csv`` counts (see ``class_folders``).
    """

    places: dict[str, Place]
    submissions: store.Submissions
    cases: list[Case]
    notes: list[str]
    folders: list[Path]


def handed_in(
    course: Course, paths: list[Path], login: Callable[[str], str], parsers: Parsers,
    is_known: Callable[[str], bool] = lambda _: False, on_roster: Callable[[str], bool] = lambda _: False,
) -> HandedIn:  # fmt: skip
    """Read all submissions in ``paths``, and warn about files that name another student.

    Args:
        login: returns a student's login for the name of a folder or file.
        is_known: returns whether a student without a submission in ``paths`` is in the class.
        on_roster: returns whether a student is on the roster (see ``find_submissions``).
    """
    found, notes, cases = find_submissions(paths, course.module_of, login, parsers, on_roster, is_known)
    given = course.handed_out
    names = Signatures(course.module_of, login, on_roster)
    places = dict(found)
    named: dict[str, str] = {}  # Student -> a note on files that name another student, or '' if no file does.
    spelled = {looks(student): student for student in (*(case.student for case in cases), *places)}

    def student_of(name: str) -> str:
        student = composed(login(composed(name)))
        return spelled.get(looks(student), student if is_known(student) else "")

    def submission_of(student: str) -> Submission:
        read_now = read(places[student], student, course.module_of, given, parsers)
        if student not in named:
            sources = [source.name for source in read_now.sources.values()]
            files = others_named(
                student, places[student], sources, names, student_of, parsers.for_submission(places[student])
            )
            named[student] = a_few([f"{printable(file)} names {other}" for file, other in files], 3)
        return read_now

    submissions, failures = store.read_all(list(places), submission_of)
    unread = [Case(student, str(error), paths_of(places[student])) for student, error in failures.items()]
    signed = {student: files for student, files in named.items() if files}
    swapped = [
        Case(student, f"check whose submission this is: {files}", paths_of(places[student]), graded=True)
        for student, files in signed.items()
    ]
    if others := [f"{student} ({files})" for student, files in signed.items()]:
        tell(
            "warning",
            f"files of these students name another student; check whose submissions they are: {a_few(others)}",
        )
    folders, unsure = class_folders(paths, places, cases, lambda name: bool(student_of(name)), on_roster)
    swapped += [_in_unsure(student, folder) for folder, students in unsure.items() for student in students]
    records = unread_records(paths, folders, unsure) if course.config.late else []
    return HandedIn(places, submissions, [*cases, *unread, *swapped, *records], notes, folders)


def _in_unsure(student: str, folder: Path) -> Case:
    """Return the case of a student in a folder that may be another student's folder."""
    shown = printable(str(folder))
    settle = f"to settle this, pass --roster, or grade the folder that holds {shown}"
    reason = f"check whose submission this is: {shown} may be a student's folder; {settle}"
    return Case(student, reason, (folder,), graded=True)
