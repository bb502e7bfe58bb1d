"""Find the students and their submissions in the folders and files from the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from grader.common.text import A_LINK, a_few, composed, first_notes, printable
from grader.intake.disk import ARCHIVES, SUFFIXES, entries_of
from grader.intake.listing import files_in_folder
from grader.intake.names import Quality, best_match, is_called_final, is_called_old, is_unsigned, looked_for, owner
from grader.intake.parsers import Parsers
from grader.intake.submission import NothingToGrade, Place, Unreadable, paths_of
from grader.intake.times import STATED
from grader.wire import limits
from grader.wire.text import closest

_LONGEST = 100  # The most characters of a student's name.
_JOINERS = "\u200c\u200d"  # Invisible characters that are parts of words in several scripts.


class FoundSubmissions(NamedTuple):
    """The submissions in the paths of a command: (student, paths) for each student, and texts about all other files.

    Attributes:
        notes: a line for each file that was skipped.
        set_aside: by student or file, why a submission cannot be graded.
    """

    students: list[tuple[str, Place]]
    notes: list[str]
    set_aside: dict[str, str]


def find_submissions(
    paths: Sequence[Path], exercises: Mapping[str, str], login: Callable[[str], str] = str,
    parsers: Parsers | None = None,
) -> FoundSubmissions:  # fmt: skip
    """Find the students and their submissions.

    A file's name without the exercise or module is the student's name: alice for "alice_c3_contracting.py". Several
    ``.py`` files or notebooks with one student's name are one submission.

    A folder belongs to one student, and has the student's name, if it directly contains one of these:

    - a module's folder or ``exercises/``;
    - a file without a student's name;
    - two or more submitted files, all with one student's name, and no folders and zips.

    In any other folder, each folder, each ``.zip`` and each file with a student's name belongs to one student. If two
    or more folders hold submissions, a file beside these folders is graded only if its name has a student's name (see
    ``_strays``).

    Args:
        login: a function from a name in another system, such as Canvas, to the student's name.
        parsers: parsers of archives; the default parsers run in this process.

    Raises:
        NothingToGrade: a path does not exist, or the paths hold no submission.
    """
    notes: list[str] = []
    aside: dict[str, str] = {}
    places: dict[str, dict[str, Path]] = {}
    for path in map(Path, paths):
        # Unlike Path.exists, os.path.exists never raises an exception.
        if not os.path.exists(path):
            raise NothingToGrade(f"no such file or folder: {printable(str(path))}{_did_you_mean(path)}")
        for name, place in _students_at(path, exercises, notes, aside, parsers or Parsers()):
            student = composed(login(composed(name)))
            if not _is_a_name(student):
                _set_aside(
                    aside,
                    student,
                    f"{printable(str(place))}: this is no student's name; rename it to at most {_LONGEST} "
                    "visible characters that do not start with a dot or a blank",
                )
            else:
                places.setdefault(student, {}).setdefault(os.path.realpath(place), place)
    students = _alone(places, aside)
    if not students:
        raise NothingToGrade("; ".join([*notes, *aside.values()]) or "nothing to grade: name a folder of submissions")
    return FoundSubmissions(students, list(first_notes(notes)), dict(sorted(aside.items())))


def _set_aside(aside: dict[str, str], name: str, reason: str) -> None:
    known = aside.get(name, "")
    if reason not in known:
        aside[name] = f"{known}; {reason}" if known else reason


def _is_a_name(student: str) -> bool:
    """Return whether pages, screens and file names can all show the student's name without changes."""
    visible = all(c.isprintable() or c in _JOINERS for c in student)
    return 0 < len(student) <= _LONGEST and visible and not student.startswith(".") and student == student.strip()


def _alone(places: Mapping[str, Mapping[str, Path]], aside: dict[str, str]) -> list[tuple[str, Place]]:
    """Return students with unique names, and add all other students to ``aside``.

    Names that differ only in case are not unique, because reports are files with these names.
    """
    groups: dict[str, list[tuple[str, Place]]] = {}
    for student, found in sorted(places.items()):
        groups.setdefault(_looks(student), []).extend((student, place) for place in _submitted(list(found.values())))
    for group in groups.values():
        if len(group) > 1:
            names = dict.fromkeys(student for student, _ in group)
            reason = _is_there_twice(list(names), [place for _, place in group])
            for name in names:
                _set_aside(aside, name, reason)
    return sorted(group[0] for group in groups.values() if len(group) == 1)


def _looks(student: str) -> str:
    """Return a key that is equal for names that look alike on a page, or that differ only in case."""
    return " ".join("".join(c for c in student if c not in _JOINERS).split()).casefold()


def _submitted(paths: list[Path]) -> list[Place]:
    """Return one submission with all paths if all are ``.py`` files or notebooks; else one submission for each path."""
    are_parts = len(paths) > 1 and all(p.suffix.lower() in SUFFIXES and not p.is_dir() for p in paths)
    return [tuple(paths)] if are_parts else list(paths)


def _is_there_twice(names: list[str], places: list[Place]) -> str:
    who = f"{names[0]} has" if len(names) == 1 else f"{' and '.join(names)} (names that look alike) have"
    where = " and ".join(printable(str(path)) for place in places for path in paths_of(place))
    mend = "put them into one folder, or rename one of them if they are from two students"
    return f"{who} several submissions: {where}; {mend}"


def _did_you_mean(path: Path) -> str:
    try:
        meant = closest(path.name, os.listdir(path.parent), 0.6)
    except OSError:
        return ""
    return f"; did you mean {printable(str(path.parent / meant))}?" if meant else ""


def _students_at(
    path: Path, exercises: Mapping[str, str], notes: list[str], aside: dict[str, str], parsers: Parsers
) -> list[tuple[str, Path]]:
    if not path.is_dir():
        if path.suffix.lower() in (*SUFFIXES, ".zip"):
            return [(owner(path.stem, exercises), path)]
        notes.append(f"skipped {printable(str(path))}: it is not a .py file, a notebook (.ipynb) or a .zip")
        return []
    entries = _sort_entries(path, exercises, notes)
    folders, zips, named = entries.folders, entries.zips, entries.named
    stray = _strays(folders, named, exercises, parsers)
    for file in stray:
        reason = f"{printable(str(file))} is beside the students' folders and is in none of them; move it into one"
        _set_aside(aside, file.name, reason)
    named = [file for file in named if file not in stray]
    if _is_one_student(folders, zips, named, exercises):
        return [(path.resolve().name, path)]
    loose = [(owner(file.stem, exercises), file) for file in (*zips, *named)]
    if loose or any(_holds_work(folder, exercises, parsers) for folder in folders):
        _tell_others(entries, exercises, notes, aside)
        # A student whose folder has no submitted files is graded, too, and gets zero with a reason.
        return [*((folder.name, folder) for folder in folders), *loose]
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
    links: list[Path]


def _sort_entries(folder: Path, exercises: Mapping[str, str], notes: list[str]) -> _InFolder:
    found = _InFolder([], [], [], [], [])
    for entry in entries_of(folder, notes):
        path = folder / entry.name
        if entry.is_symlink():
            found.links.append(path)
        elif entry.is_dir(follow_symlinks=False):
            found.folders.append(path)
        elif path.suffix.lower() == ".zip":
            found.zips.append(path)
        elif path.suffix.lower() in SUFFIXES and best_match(path.stem, exercises).quality != Quality.NONE:
            found.named.append(path)
        else:
            found.others.append(path)
    return found


def _tell_others(entries: _InFolder, exercises: Mapping[str, str], notes: list[str], aside: dict[str, str]) -> None:
    """Add a note or a reason for each entry of the folder that may be a submission but belongs to no student."""
    for link in entries.links:
        _set_aside(aside, link.name, f"{printable(str(link))} {A_LINK}; put the files themselves there")
    passed_over: list[str] = []
    for path in entries.others:
        shown, suffix = printable(str(path)), path.suffix.lower()
        if suffix in SUFFIXES:
            reason = (
                f"{shown} is not named after an exercise; rename it, or move it into a folder named after the student "
                f"({looked_for(exercises)})"
            )
            _set_aside(aside, path.name, reason)
        elif suffix in ARCHIVES or not suffix:
            reason = f"{shown} is neither a folder nor a .zip; unpack it into a folder named after the student"
            _set_aside(aside, path.name, reason)
        elif path.name != STATED:
            passed_over.append(printable(path.name))
    if passed_over:
        notes.append(f"not read: {a_few(passed_over)}")


def _is_one_student(
    folders: Sequence[Path], zips: Sequence[Path], named: Sequence[Path], exercises: Mapping[str, str]
) -> bool:
    modules = set(exercises.values())
    if any(f.name in modules or f.name == "exercises" for f in folders):
        return True
    if any(is_unsigned(f.stem, exercises) for f in named):
        return True
    owners = {owner(f.stem, exercises) for f in named}
    return len(named) > 1 and len(owners) == 1 and not folders and not zips


def _strays(
    folders: Sequence[Path], named: Sequence[Path], exercises: Mapping[str, str], parsers: Parsers
) -> list[Path]:
    """Return the files without a student's name if several folders contain submitted files; else [].

    If such a file were graded, it would merge all students' folders into one submission. Folders called old or final do
    not count.
    """
    unsigned = [file for file in named if is_unsigned(file.stem, exercises)]
    if not unsigned or any(f.name in exercises.values() or f.name == "exercises" for f in folders):
        return []
    others = (f for f in folders if not is_called_old(f.name) and not is_called_final(f.name))
    return unsigned if sum(_holds_work(folder, exercises, parsers) for folder in others) > 1 else []


def _holds_work(folder: Path, exercises: Mapping[str, str], parsers: Parsers) -> bool:
    try:
        files = files_in_folder(folder, [], parsers.for_submission(folder))
        # Later files do not matter, because ``read`` reads at most MAX_FILES files.
        names = (file.stem for file in islice(files, limits.MAX_FILES))
        return any(best_match(name, exercises).quality != Quality.NONE for name in names)
    except Unreadable:
        # Return True, so that ``read`` reads this folder and reports that it is unreadable.
        return True
