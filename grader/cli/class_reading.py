"""Read all submissions of a batch, and find files that name another student.

A submission names students in stamps of ``shardlings submit``, and in names of files and folders. Students can write
any stamp and name. So the name of another student costs no points, and only gives the staff a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grader.batch.handing_in import Submissions, class_folders, unread_records
from grader.cli.console import tell
from grader.common.text import a_few, composed, looks, printable
from grader.course.loading import Course
from grader.intake.archives import MANIFEST
from grader.intake.names import Quality, Signatures, best_match
from grader.intake.parsers import Parsers
from grader.intake.reading import read
from grader.intake.students import find_submissions, stem_of
from grader.intake.submission import Place, ReviewCase, Unreadable, paths_of
from grader.intake.times import student_in


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
    submissions: Submissions
    cases: list[ReviewCase]
    notes: list[str]
    folders: list[Path]


def read_class(
    course: Course, paths: list[Path], login: Callable[[str], str], parsers: Parsers, submissions: Submissions,
    in_class: Callable[[str], bool] = lambda _: False, on_roster: Callable[[str], bool] = lambda _: False,
) -> HandedIn:  # fmt: skip
    """Read all submissions in ``paths``, and warn about files that name another student.

    Args:
        login: returns a student's login for the name of a folder or file.
        submissions: gets the submissions that are read.
        in_class: returns whether a student without a submission in ``paths`` is in the class.
        on_roster: returns whether a student is on the roster (see ``find_submissions``).
    """
    found, notes, cases = find_submissions(paths, course.module_of, login, parsers, on_roster, in_class)
    handed_out = course.handed_out
    names = Signatures(course.module_of, login, on_roster)
    places = dict(found)
    spelled = {looks(student): student for student in (*(case.student for case in cases), *places)}

    def student_of(name: str) -> str:
        student = composed(login(composed(name)))
        return spelled.get(looks(student), student if in_class(student) else "")

    unread: list[ReviewCase] = []
    signed: dict[str, str] = {}  # Student -> the files that name another student.
    for student, place in places.items():
        try:
            submission = read(place, student, course.module_of, handed_out, parsers)
            sources = [source.name for source in submission.sources.values()]
            files = others_named(student, place, sources, names, student_of, parsers.for_submission(place))
        except Unreadable as error:
            unread.append(ReviewCase(student, str(error), paths_of(place)))
            continue
        submissions.add(submission)
        if files:
            signed[student] = a_few([f"{printable(file)} names {other}" for file, other in files], 3)
    swapped = [
        ReviewCase(student, f"check whose submission this is: {files}", paths_of(places[student]), graded=True)
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


def _in_unsure(student: str, folder: Path) -> ReviewCase:
    """Return the case of a student in a folder that may be another student's folder."""
    shown = printable(str(folder))
    settle = f"to settle this, pass --roster, or grade the folder that holds {shown}"
    reason = f"check whose submission this is: {shown} may be a student's folder; {settle}"
    return ReviewCase(student, reason, (folder,), graded=True)


def parts_with_names(
    place: Place, sources: Sequence[str], names: Signatures, parsers: Parsers
) -> Iterator[tuple[str, str]]:
    """Yield (file, student's name) for the parts of a submission that may name a student.

    In a folder, the parts are the graded files, the folders and zips that contain them, and all stamps (written by
    ``shardlings submit``). In a ``.zip``, the stamp is the only part. A single file has no parts. The name is '' for a
    part that names no student.

    Args:
        sources: names of the graded files, relative to ``place``.
    """
    for path in paths_of(place):
        if path.is_dir():
            yield MANIFEST, student_in(path, parsers)
            for part in dict.fromkeys(part for name in sources for part in _parts(name)):
                yield part, _owner(stem_of(PurePosixPath(part).name), names)
                if part.lower().endswith(".zip"):
                    yield part, student_in(path / part, parsers)
        elif path.suffix.lower() == ".zip":
            yield path.name, student_in(path, parsers)


def _parts(name: str) -> list[str]:
    """Return a source's path, and the paths of all folders and zips that contain it."""
    parts = PurePosixPath(name).parts
    return ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]


def _owner(stem: str, names: Signatures) -> str:
    """Return the student's name in the name of a file, folder or zip; '' for the name of an exercise or module."""
    quality = best_match(stem, names.exercises).quality
    return names.owner(stem) if quality in (Quality.CONTAINS, Quality.NONE) else ""


def others_named(
    student: str,
    place: Place,
    sources: Sequence[str],
    names: Signatures,
    student_of: Callable[[str], str],
    parsers: Parsers,
) -> list[tuple[str, str]]:
    """Return (file, other student) for each file of a submission that names another student of the class.

    ``student_of`` returns the student of the class who has a given name, or '' for an unknown name.
    """
    found = ((file, student_of(name)) for file, name in parts_with_names(place, sources, names, parsers) if name)
    return list(dict.fromkeys((file, other) for file, other in found if other not in ("", student)))
