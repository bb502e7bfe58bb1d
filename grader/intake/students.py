"""Find the students and their submissions in the folders and files from the command line."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePath
from typing import NamedTuple

from grader.common.text import A_LINK, A_NAME, a_few, first_notes, is_a_name, looks, printable
from grader.intake.disk import ARCHIVES, SUFFIXES, entries_of, files_in_folder
from grader.intake.names import Quality, Signatures, best_match, is_called_final, is_called_old, looked_for
from grader.intake.parsers import Parsers
from grader.intake.submission import NothingToGrade, Place, ReviewCase, Unreadable, paths_of
from grader.intake.times import RECORD
from grader.wire import limits
from grader.wire.text import closest

_LONGEST_NUMBER = 4  # The most digits of a copy's number. A longer number is a student's number.
_NO_NAME = f"this is no student's name; rename it to {A_NAME}"
_NAMELESS = "is beside other submissions and names no student; move it into a folder named after the student"
_NO_LINKS = f"{A_LINK}; put the files themselves there"


class FoundSubmissions(NamedTuple):
    """The submissions in the paths of a command.

    Attributes:
        students: (student, paths) for each student who can be graded.
        notes: a line for each file that was skipped.
        cases: the submissions that cannot be graded, and files that may belong to a submission.
    """

    students: list[tuple[str, Place]]
    notes: list[str]
    cases: list[ReviewCase]


def find_submissions(
    paths: Sequence[Path], exercises: Mapping[str, str], login: Callable[[str], str] = str,
    parsers: Parsers | None = None, on_roster: Callable[[str], bool] = lambda _: False,
    in_class: Callable[[str], bool] = lambda _: False,
) -> FoundSubmissions:  # fmt: skip
    """Find the students and their submissions.

    A file's name without the exercise or module is the student's name: alice for "alice_c3_contracting.py". Several
    ``.py`` files or notebooks with the name of one student are one submission.

    A folder belongs to one student, and has the student's name, if it directly contains one of these:

    - a module's folder or ``exercises/``, or a file without a student's name, unless other entries of the folder are
      submissions of several students;
    - two or more submitted files, all with one student's name, and no folders and zips.

    A folder with the name of a student on the roster belongs to this student. So does a folder with the name of a
    student who has a report, if it holds one submission, and this submission's name is not on the roster. If most of
    the folders in ``paths`` that are beside each other belong to one student, each of them does.

    In any other folder, each folder, each ``.zip`` and each file with a student's name belongs to one student. A file
    beside the submissions of several students is graded only if its name has a student's name (see ``_strays``).

    A student with several submissions is set aside, because nothing shows which submission was handed in last. A file
    that may hold a submission (``_sort_others``) counts as a submission.

    Args:
        login: a function from a name in another system, such as Canvas, to the student's name.
        parsers: parsers of archives; the default parsers run in this process.
        on_roster: returns whether a student is on the roster. Names on the roster are students' names, even if they are
            numbers, or words for versions such as "bak".
        in_class: returns whether a student is on the roster, or has a report or case from earlier runs.

    Raises:
        NothingToGrade: a path does not exist, or the paths hold no submission and no case.
    """
    notes: list[str] = []
    cases: list[ReviewCase] = []
    others: list[Path] = []
    names, parsers = Signatures(exercises, login, on_roster, in_class), parsers or Parsers()
    places = _places([*map(_expect_path, paths)], names, notes, cases, others, parsers)
    groups = _by_looks(places)
    unclear = _sort_others(others, groups, names, notes, cases)
    students = _alone(groups, unclear, cases)
    if not students and not cases:
        raise NothingToGrade("; ".join(notes) or "nothing to grade: name a folder of submissions")
    return FoundSubmissions(students, list(first_notes(notes)), list(dict.fromkeys(cases)))


def _places(
    paths: Sequence[Path], names: Signatures, notes: list[str], cases: list[ReviewCase], others: list[Path],
    parsers: Parsers,
) -> dict[str, dict[str, Path]]:  # fmt: skip
    """Return the paths of each student's submissions, by student and real path."""
    places: dict[str, dict[str, Path]] = {}
    own = _folders_of_students(paths, names, parsers)
    for path in paths:
        found = (
            [(path.resolve().name, path)] if path in own else _students_at(path, names, notes, cases, others, parsers)
        )
        for name, place in found:
            student = names.student(name)
            if place == path and len({*paths}) > 1 and _is_nameless(place, names):
                cases.append(ReviewCase("", f"{printable(str(place))} {_NAMELESS}", (place,)))
            elif not is_a_name(student):
                cases.append(ReviewCase(student, f"{printable(str(place))}: {_NO_NAME}", (place,)))
            else:
                places.setdefault(student, {}).setdefault(os.path.realpath(place), place)
    return places


def _expect_path(path: str | Path) -> Path:
    """Return the path. Raises NothingToGrade if it does not exist."""
    path = Path(path)
    # Unlike Path.exists, os.path.exists never raises an exception.
    if not os.path.exists(path):
        raise NothingToGrade(f"no such file or folder: {printable(str(path))}{_did_you_mean(path)}")
    return path


_Groups = Mapping[str, list[tuple[str, Place]]]
"""(student, paths) of all submissions whose students' names look alike, by the key that ``looks`` returns."""


def _by_looks(places: Mapping[str, Mapping[str, Path]]) -> _Groups:
    groups: dict[str, list[tuple[str, Place]]] = {}
    for student, found in sorted(places.items()):
        groups.setdefault(looks(student), []).extend((student, place) for place in _submitted(list(found.values())))
    return groups


def _alone(groups: _Groups, unclear: Mapping[str, list[Path]], cases: list[ReviewCase]) -> list[tuple[str, Place]]:
    """Return students with one submission and a unique name, and add all other students to ``cases``.

    Names that differ only in case are not unique, because reports are files with these names.

    Args:
        unclear: files that may hold another submission, by the key that ``looks`` returns for the student's name.
    """
    alone: list[tuple[str, Place]] = []
    for key, group in groups.items():
        places: list[Place] = [*(place for _, place in group), *unclear.get(key, ())]
        if len(places) == 1:
            alone.append(group[0])
            continue
        names = list(dict.fromkeys(student for student, _ in group))
        paths = tuple(path for place in places for path in paths_of(place))
        cases += [ReviewCase(name, _is_there_twice(names, paths), paths) for name in names]
    return sorted(alone)


def _submitted(paths: list[Path]) -> list[Place]:
    """Return one submission with all paths if all are ``.py`` files or notebooks; else one submission for each path."""
    are_parts = len(paths) > 1 and all(p.suffix.lower() in SUFFIXES and not p.is_dir() for p in paths)
    return [tuple(paths)] if are_parts else list(paths)


def _is_there_twice(names: list[str], paths: Sequence[Path]) -> str:
    who = f"{names[0]} has" if len(names) == 1 else f"{' and '.join(names)} (names that look alike) have"
    where = " and ".join(printable(str(path)) + " (a link)" * path.is_symlink() for path in paths)
    mend = "put the submissions into one folder, or rename one if they are from two students"
    return f"{who} several submissions: {where}; {mend}"


def _did_you_mean(path: Path) -> str:
    try:
        meant = closest(path.name, os.listdir(path.parent), 0.6)
    except OSError:
        return ""
    return f"; did you mean {printable(str(path.parent / meant))}?" if meant else ""


def _folders_of_students(paths: Sequence[Path], names: Signatures, parsers: Parsers) -> set[Path]:
    """Return the folders that each belong to one student.

    In ``grade submissions/*``, most folders show that all of them belong to students. A student can put folders with
    the names of other students into a folder. These must not become the submissions of the other students.
    """
    folders = [path for path in paths if path.is_dir()]
    found = {path for path in folders if _is_students(path, names, parsers)}
    beside = Counter(path.resolve().parent for path in found)
    beside.subtract(path.resolve().parent for path in folders if path not in found)
    return {path for path in folders if path in found or beside[path.resolve().parent] > 0}


def _is_students(path: Path, names: Signatures, parsers: Parsers) -> bool:
    if names.on_roster(path.resolve().name):
        return True
    entries = _sort_entries(path, names.exercises, [])
    entries = entries.without(_strays(path, entries, names, parsers))
    within = [_owner(file, names) for file in (*entries.zips, *entries.named)]
    within += [folder.name for folder in entries.folders]
    is_alone = len({looks(names.student(name)) for name in within}) == 1 and not any(map(names.on_roster, within))
    return (is_alone and names.in_class(names.student(path.resolve().name))) or _is_one_student(entries, names)


def _students_at(
    path: Path, names: Signatures, notes: list[str], cases: list[ReviewCase], others: list[Path], parsers: Parsers
) -> list[tuple[str, Path]]:
    """Return (student's name, path) for a file, or for each submission in a folder of several students."""
    exercises = names.exercises
    if not path.is_dir():
        if path.suffix.lower() in (*SUFFIXES, ".zip"):
            return [(_owner(path, names), path)]
        others.append(path)
        return []
    entries = _sort_entries(path, exercises, notes)
    stray = _strays(path, entries, names, parsers)
    for file in stray:
        reason = (
            f"{printable(str(file))} is beside the submissions of several students and names no student; "
            f"move it into a student's folder. If all of {printable(str(path))} is one student's submission, "
            "put that folder into a new folder and grade the new folder"
        )
        cases.append(ReviewCase("", reason, (file,)))
    entries = entries.without(stray)
    loose = [(_owner(file, names), file) for file in (*entries.zips, *entries.named)]
    if loose or any(_holds_work(folder, exercises, parsers) for folder in entries.folders):
        others += entries.others
        # A student whose folder has no submitted files is graded, too, and gets zero with a reason.
        return [*((folder.name, folder) for folder in entries.folders), *loose]
    example = f"{printable(path.resolve().name)}/alice/{next(iter(exercises), 'exercise')}.py"
    notes.append(f"nothing to grade in {printable(str(path))}: {looked_for(exercises)}, as in {example}")
    return []


@dataclass(frozen=True)
class _InFolder:
    """A folder's entries. ``named``: ``.py`` files and notebooks that are named after an exercise or module."""

    folders: list[Path]
    zips: list[Path]
    named: list[Path]
    others: list[Path]

    def without(self, stray: Sequence[Path]) -> _InFolder:
        """Return the entries without the files and folders in ``stray``."""
        folders, zips, named = ([p for p in part if p not in stray] for part in (self.folders, self.zips, self.named))
        return _InFolder(folders, zips, named, self.others)


def _sort_entries(folder: Path, exercises: Mapping[str, str], notes: list[str]) -> _InFolder:
    found = _InFolder([], [], [], [])
    for entry in entries_of(folder, notes):
        path = folder / entry.name
        if entry.is_symlink():
            found.others.append(path)
        elif entry.is_dir(follow_symlinks=False):
            found.folders.append(path)
        elif path.suffix.lower() == ".zip":
            found.zips.append(path)
        elif path.suffix.lower() in SUFFIXES and best_match(path.stem, exercises).quality != Quality.NONE:
            found.named.append(path)
        else:
            found.others.append(path)
    return found


def _sort_others(
    others: Sequence[Path], groups: _Groups, names: Signatures, notes: list[str], cases: list[ReviewCase]
) -> dict[str, list[Path]]:
    """Return the files that may hold another submission of a student, by the key of the student's name (``looks``).

    All other files get a case if they may belong to a submission, and a note if they cannot.

    Args:
        others: files that are not named like submissions. This includes ``.py`` files and notebooks that are not
            named after an exercise, all files that are neither ``.py`` files, notebooks nor zips, and all links.
    """
    unclear: dict[str, list[Path]] = {}
    passed_over: list[str] = []
    for path in others:
        shown, why = printable(str(path)), _why_unread(path, names.exercises)
        stems = (path.name, stem_of(path.name), stem_of(path.stem))  # bob.smith, bob.tar.gz, bob.pdf
        keys = (looks(names.student(names.owner(stem))) for stem in stems)
        key = next((one for one in keys if one in groups), "")
        if key and why:
            unclear.setdefault(key, []).append(path)
        elif key:
            student = groups[key][0][0]
            reason = f"{shown} is beside the submission and was not read; check whether it belongs to the submission"
            cases.append(ReviewCase(student, reason, (path,), graded=True))
        elif why:
            cases.append(ReviewCase(_student_in(path, names), f"{shown} {why}", (path,)))
        elif not RECORD.fullmatch(path.name):
            passed_over.append(printable(path.name))
    if passed_over:
        kinds = "submissions are folders, .zip files, .py files and notebooks (.ipynb)"
        notes.append(f"not read: {a_few(passed_over)}; {kinds}")
    return unclear


def _why_unread(path: Path, exercises: Mapping[str, str]) -> str:
    """Return why a file cannot be read, as text to follow its name; '' if it cannot hold a submission."""
    suffix = path.suffix.lower()
    if path.is_symlink():
        return _NO_LINKS if suffix in ("", ".zip", *SUFFIXES, *ARCHIVES) or os.path.isdir(path) else ""
    if suffix in SUFFIXES:
        return (
            "is not named after an exercise; rename it, or move it into a folder named after the student "
            f"({looked_for(exercises)})"
        )
    if suffix in ARCHIVES or not suffix:
        return "is neither a folder nor a .zip; unpack it into a folder named after the student, then remove this file"
    return ""


def _student_in(path: Path, names: Signatures) -> str:
    """Return the student who is named in a file's name; "" if the name has no student's name (``is_unsigned``)."""
    stem = stem_of(path.name)
    if names.is_unsigned(stem):
        return ""
    student = names.student(names.owner(stem))
    return student if is_a_name(student) else path.name


def stem_of(file: str) -> str:
    """Return a file's name without the suffixes of submissions and archives: bob.smith for bob.smith.tar.gz."""
    while (suffix := PurePath(file).suffix) and suffix.lower() in (*SUFFIXES, *ARCHIVES, ".zip"):
        file = file.removesuffix(suffix)
    return file


def _owner(file: Path, names: Signatures) -> str:
    return names.owner(stem_of(file.name))


def _is_one_student(entries: _InFolder, names: Signatures) -> bool:
    if any(_is_nameless(path, names) for path in (*entries.folders, *entries.named)):
        return True
    owners = {_owner(file, names) for file in entries.named}
    return len(entries.named) > 1 and len(owners) == 1 and not entries.folders and not entries.zips


def _is_of_course(folder: Path, names: Signatures) -> bool:
    """Return True if a folder's name is ``exercises`` or a module's id, and no student on the roster has this name."""
    own = {"exercises", *(module.lower() for module in names.exercises.values())}
    return folder.name.lower() in own and not names.on_roster(folder.name)


def _is_nameless(place: Path, names: Signatures) -> bool:
    """Return True if the name of a folder, zip or named file has no student's name."""
    return _is_of_course(place, names) if place.is_dir() else names.is_unsigned(stem_of(place.name))


def _strays(path: Path, entries: _InFolder, names: Signatures, parsers: Parsers) -> list[Path]:
    """Return the files and folders without a student's name that are beside the submissions of several students.

    If such a file or folder were graded, it would merge the submissions of all students into one submission. There are
    several students in these cases:

    - A student on the roster has a file, or a folder that holds submitted files.
    - Files have the names of at least two students.
    - At least two students have files, or folders that hold submitted files, and these students outnumber the course's
      own folders.

    Folders called old or final do not count if no student on the roster has this name. A student with the folder's own
    name does not count, either.
    """
    exercises = names.exercises
    course = [folder for folder in entries.folders if _is_of_course(folder, names)]
    files = (*entries.zips, *entries.named)
    unsigned = [*course, *(file for file in files if _is_nameless(file, names))]
    if not unsigned:
        return []
    own = {looks(path.resolve().name)}
    signed = {looks(_owner(file, names)) for file in files if _is_signed(file, names)} - own
    others = [folder for folder in entries.folders if _may_be_students(folder, names)]
    students = signed | {looks(folder.name) for folder in others if _holds_work(folder, exercises, parsers)} - own
    several = len(signed) > 1 or len(students) > max(1, len(course)) or any(map(names.on_roster, students))
    return unsigned if several else []


def _may_be_students(folder: Path, names: Signatures) -> bool:
    """Return False for the course's own folders, and for folders that are called old or final."""
    if _is_of_course(folder, names):
        return False
    return names.on_roster(folder.name) or not (is_called_old(folder.name) or is_called_final(folder.name))


def _is_signed(file: Path, names: Signatures) -> bool:
    """Return True if a file's name has a student's name. The number in 2_c3_contracting.py may be a version's."""
    name = _owner(file, names)
    is_number = name.isdigit() and len(name) <= _LONGEST_NUMBER and file.suffix.lower() != ".zip"
    return not names.is_unsigned(stem_of(file.name)) and (names.on_roster(name) or not is_number)


def _holds_work(folder: Path, exercises: Mapping[str, str], parsers: Parsers) -> bool:
    try:
        files = files_in_folder(folder, [], parsers.for_submission(folder))
        # Later files do not matter, because ``read`` reads at most MAX_FILES files.
        names = (file.stem for file in islice(files, limits.MAX_FILES))
        return any(best_match(name, exercises).quality != Quality.NONE for name in names)
    except Unreadable:
        # Return True, so that ``read`` reads this folder and reports that it is unreadable.
        return True
