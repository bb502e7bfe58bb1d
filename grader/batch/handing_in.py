"""The submissions of a class: read them, count the modules that were handed in, and find submission times.

A time is in the staff's file ``submitted.csv`` or, for students without a line, in the submission.
"""

from __future__ import annotations

import os
import pickle
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Self

from grader.batch.late import EVERY, Handed
from grader.common.text import A_LINK, Line, a_few, lines_of, printable
from grader.course.config import YEARS, CourseError, LatePolicy, Module
from grader.course.loading import Course
from grader.intake.disk import entries_of
from grader.intake.facts import is_untouched
from grader.intake.parsers import Parsers
from grader.intake.submission import Place, ReviewCase, Submission, paths_of
from grader.intake.times import RECORD, STATED, handed_in_at
from grader.reports.points import counted

# The keys are (student, module), or (student, EVERY) for a time that holds for all modules.
Stated = Mapping[tuple[str, str], Handed]
COLUMNS = ("student", "time", "module")


class Submissions(Mapping[str, Submission]):
    """The submissions of a batch by student. They are in a temporary file, so memory does not grow with the class.

    Each submission is read once, so all parts of a run see the same files. Threads may read at the same time.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 (``__exit__`` closes it)
        self._spans: dict[str, tuple[int, int]] = {}  # Student -> position and number of bytes in the file.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # on a full disk, the last bytes cannot be written
            self._file.close()

    def add(self, submission: Submission) -> None:
        """Keep a submission. Raises CourseError if the temporary folder has no room."""
        data, start = pickle.dumps(submission), self._file.tell()
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            mend = "make room there or set TMPDIR, and run the same command again"
            raise CourseError(f"cannot write to {gettempdir()}: {error.strerror}; {mend}") from None
        self._spans[submission.student] = start, len(data)

    def __getitem__(self, student: str) -> Submission:
        start, size = self._spans[student]
        return pickle.loads(os.pread(self._file.fileno(), size, start))

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)


def hand_ins(course: Course, submissions: Iterable[Submission]) -> dict[str, int]:
    """Return the number of students who handed in each module.

    A file in which the student wrote nothing (``is_untouched``) does not count as handed in.
    """
    given = course.handed_out
    begun = [
        {course.module_of[e] for e, source in one.sources.items() if not is_untouched(source, given)}
        for one in submissions
    ]
    return {m.id: sum(m.id in modules for modules in begun) for m in course.config.modules if m.exercises}


def counts_now(module: Module, handed_in: int, now: datetime) -> bool:
    """Return True if a module counts for all students now.

    A module with a deadline counts after the deadline, because one early submission must not give all other students
    zero points. A module without a deadline counts if at least one student handed it in.

    Args:
        handed_in: the number of students who handed in the module.
    """
    return handed_in > 0 if module.deadline is None else module.deadline.astimezone() < now


# -- submission times --------------------------------------------------------------------------


def class_folders(
    paths: Iterable[Path], places: Mapping[str, Place], cases: Iterable[ReviewCase], in_class: Callable[[str], bool],
    on_roster: Callable[[str], bool],
) -> tuple[list[Path], dict[Path, list[str]]]:  # fmt: skip
    """Return the folders of submissions in ``paths``, and the students in each folder that may be a student's folder.

    A student can put folders and zips with any names, and a ``submitted.csv``, into a folder. So a folder is a folder
    of submissions for sure only if a student in it is on the roster, or if it has the submissions of several students
    and not a student's name.

    Args:
        places: the submissions' folders and files, by student.
        cases: cases for the staff. They include the submissions that are set aside.
        in_class: returns whether a student of the class has a name.
        on_roster: returns whether a student is on the roster.
    """
    own = {os.path.realpath(path) for place in places.values() for path in paths_of(place)}
    found = [(student, paths_of(place)) for student, place in places.items()]
    found += [(case.student, case.paths) for case in cases if case.student]
    sure: list[Path] = []
    unsure: dict[Path, list[str]] = {}
    named = {os.path.realpath(path): path for path in paths if path.is_dir()}
    for folder in (path for real, path in named.items() if real not in own):
        students = _students_in(folder, found)
        several = len(students) > 1 and not in_class(folder.resolve().name)
        if several or any(map(on_roster, students)):
            sure.append(folder)
        else:
            unsure[folder] = students
    return sure, unsure


def _students_in(folder: Path, found: Iterable[tuple[str, tuple[Path, ...]]]) -> list[str]:
    real = os.path.realpath(folder)
    return sorted({student for student, paths in found if any(os.path.realpath(path.parent) == real for path in paths)})


def stated_in(folders: Iterable[Path], modules: Sequence[str], login: Callable[[str], str]) -> Stated:
    """Return the latest submission times in the files ``submitted.csv`` of the folders.

    The function skips a ``submitted.csv`` that is a link. Raises CourseError for an invalid file.

    Args:
        folders: folders of submissions. Not students' folders, because a student could have written the file.
        login: returns a student's login for a name in the file.
    """
    found: dict[tuple[str, str], Handed] = {}
    for folder in folders:
        file = folder / STATED
        if file.is_file() and not file.is_symlink():
            for key, handed in read_stated(file, modules, login).items():
                _add_latest(found, key, handed)
    return found


def _add_latest(found: dict[tuple[str, str], Handed], key: tuple[str, str], handed: Handed) -> None:
    found[key] = max(found.get(key, handed), handed, key=lambda one: one.time)


def unread_records(paths: Iterable[Path], folders: Iterable[Path], unsure: Iterable[Path]) -> list[ReviewCase]:
    """Return a case for each record of submission times that ``stated_in`` does not read.

    Such a record is a link or no plain file, has a name that differs from ``submitted.csv``, is in a folder that may be
    a student's, or is in a folder that the staff did not name: ``grade submissions/*`` names the students' folders.

    Args:
        folders: the folders of submissions in ``paths``.
        unsure: the folders in ``paths`` that may be students' folders (see ``class_folders``).
    """
    found = {record: reason for folder in folders for record, reason in _unread_in(folder).items()}
    unread = "was not read, because its folder may be a student's folder"
    found |= {folder / STATED: unread for folder in unsure if os.path.lexists(folder / STATED)}
    named = {os.path.realpath(path) for path in paths if path.is_dir()}
    for path in paths:
        record = Path(os.path.abspath(path)).parent / STATED
        if os.path.lexists(record) and os.path.realpath(record.parent) not in named:
            found[record] = "was not read; put it into a folder of submissions, and grade this folder as a whole"
    return [
        ReviewCase("", f"{printable(str(record))} {reason}", (record,), graded=True) for record, reason in found.items()
    ]


def _unread_in(folder: Path) -> dict[Path, str]:
    """Return the records in a folder that are not read, each with a reason."""
    record = folder / STATED
    if record.is_symlink():
        return {record: f"{A_LINK}; put the file itself there"}
    if os.path.lexists(record):
        return {} if record.is_file() else {record: "is not a plain file, so it was not read"}
    named = [entry for entry in entries_of(folder, []) if RECORD.fullmatch(entry.name)]
    return {folder / entry.name: f"was not read; to use its times, rename it to {STATED}" for entry in named}


def read_stated(path: Path, modules: Sequence[str], login: Callable[[str], str] = str) -> dict[tuple[str, str], Handed]:
    """Return the times in a CSV file with the columns student, time and, optionally, module.

    If several lines are about one student and module, the latest time counts.

    Raises CourseError if the file cannot be read or lacks a required column. Also raises CourseError for a line without
    a student, without a valid time, or with a module that the course lacks.
    """
    try:
        lines = lines_of(path.read_bytes())
    except OSError as error:
        raise CourseError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise CourseError(f"{path}:{error}") from None
    header = _header_of(lines, path, modules)
    found: dict[tuple[str, str], Handed] = {}
    for number, line in lines[1:]:
        row = {name: cell.strip() for name, cell in zip(header, line, strict=False)}
        if not any(row.values()):
            continue
        module = row.get("module", "") or EVERY
        if module != EVERY and module not in modules:
            raise CourseError(f"{path}:{number}: no module {module!r} in the course")
        time = _time_in(row.get("time", ""))
        if time is None:
            shown = row.get("time", "")
            raise CourseError(
                f"{path}:{number}: {shown!r} is not a time; write 2026-11-02T23:59 or 2026-11-02 23:59+01:00"
            )
        if not row.get("student"):
            raise CourseError(f"{path}:{number}: no student")
        _add_latest(found, (login(row["student"]), module), Handed(time, STATED, for_all=module == EVERY))
    return found


def _time_in(text: str) -> datetime | None:
    """Return the time that a cell states; None if the cell has no date and time in the usual form."""
    # ``datetime.fromisoformat`` reads 23.59 as 59 hundredths of a second after 23:00, and 20261102 as a date.
    if not re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?", text, re.ASCII) or int(text[:4]) not in YEARS:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except ValueError:
        return None


def _header_of(lines: Sequence[Line], path: Path, modules: Collection[str]) -> list[str]:
    """Return the names of the columns.

    Raises CourseError if a required column is missing, if two columns have one name, or if the column of the
    modules has another name than ``module``.
    """
    header = [name.strip().lower() for name in lines[0][1]] if lines else []
    if not {"student", "time"} <= set(header):
        raise CourseError(
            f"{path}:1: no columns student and time; write the header student,time or student,time,module"
        )
    if twice := [name for name in COLUMNS if header.count(name) > 1]:
        raise CourseError(f"{path}:1: two columns {twice[0]}; keep one")
    if "module" not in header:
        found = (name for _, line in lines for name, cell in zip(header, line, strict=False) if cell.strip() in modules)
        if name := next(found, ""):
            raise CourseError(f"{path}:1: the column {name} names modules; rename it to module")
    return header


def times_of(
    course: Course, places: Mapping[str, Place], submissions: Mapping[str, Submission], stated: Stated,
    modules: Collection[str], parsers: Parsers | None = None,
) -> tuple[dict[str, dict[str, Handed]], list[str]]:  # fmt: skip
    """Return submission times by student and module, and notes for the staff. Without a late policy, both are empty.

    A module's time comes from the module's files in which the student wrote something. If the student wrote nothing in
    the module, the time comes from all files of the module. Then the time counts only if the report says that an
    exercise of the module was handed in.

    Args:
        stated: the times in the staff's ``submitted.csv``.
        modules: the modules that are graded now. All other modules get no times, because a student may have changed the
            files of a module after it was graded.
        parsers: the parsers of archives and time stamps; by default, parsers in this process.
    """
    if course.config.late is None:
        return {}, []
    given = course.handed_out
    times: dict[str, dict[str, Handed]] = {}
    sources: Counter[str] = Counter()
    for student, submission in submissions.items():
        begun: dict[str, list[str]] = {}
        unchanged: dict[str, list[str]] = {}
        for exercise, source in submission.sources.items():
            module = course.module_of[exercise]
            if module in modules:
                (unchanged if is_untouched(source, given) else begun).setdefault(module, []).append(source.name)
        files = unchanged | begun
        own = {m: _one(places[student], student, m, names, stated, parsers) for m, names in files.items()}
        times[student] = {m: at for m, at in own.items() if at is not None}
        sources.update(at.source for m, at in times[student].items() if m in begun)
    strangers = sorted({student for student, _ in stated} - times.keys())
    return times, _notes(course.config.late, sources, strangers)


def _one(
    place: Place, student: str, module: str, files: list[str], stated: Stated, parsers: Parsers | None
) -> Handed | None:
    if said := stated.get((student, module)) or stated.get((student, EVERY)):
        return said
    found = handed_in_at(place, files, parsers)
    return Handed(*found) if found else None


def _notes(policy: LatePolicy, sources: Mapping[str, int], strangers: Sequence[str]) -> list[str]:
    notes = []
    if weak := [f"{source} ({counted(n, 'case')})" for source, n in sources.items() if source != STATED]:
        cost = "points" if policy.trust == "file-dates" else "no points"
        notes.append(
            f"{STATED} gives no time for some submissions, so the grader uses {', '.join(weak)}. Students can set "
            "these times, and copying files changes them. In this course, a submission that is late according to one "
            f"of these times loses {cost}. To use your own record of times, write {STATED}, "
            "with the columns student and time, into the folder of submissions"
        )
    if strangers:
        notes.append(f"{STATED} names students without a graded submission: {a_few(strangers)}")
    return notes
