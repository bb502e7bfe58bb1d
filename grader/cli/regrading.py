"""Find the adjustments (points given by hand, late penalties) that ``grade`` makes, and print changed scores."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.batch.changes import BONUS, SUMS, Change, by_student
from grader.batch.database import resumable
from grader.batch.folder import Folder
from grader.batch.handing_in import stated_in, times_of
from grader.batch.opening import ROSTER, has_database, names_set_aside, reading, students_with_files
from grader.batch.overrides import Adjustments, none, read_overrides
from grader.cli.console import out, say, tell
from grader.common.files import write_atomic
from grader.common.result import Report
from grader.common.text import a_few, composed, is_a_name, looks
from grader.course.loading import Course
from grader.intake.parsers import Parsers
from grader.intake.submission import Place, Submission
from grader.integrations.roster import Roster
from grader.reports.people import People, with_name
from grader.reports.points import counted, tidy
from grader.reports.summary import Summary
from grader.reports.tables import ASIDE, NOT_GRADED, NOTHING
from grader.reports.terminal import print_warnings
from grader.reports.untrusted import clean

MOST_SHOWN = 100  # The most students whose changes are printed. The page changes.html has all students.


@dataclass(frozen=True)
class Rosters:
    """The rosters (class lists).

    Attributes:
        named: the roster in which students are looked up. Without ``--roster``, this roster equals ``plain``.
        plain: the last plain roster (a CSV with a column ``id``), which the folder of reports keeps. It lists all
            students of the class, and may contain deadline extensions.
    """

    named: Roster | None
    plain: Roster | None

    def lists(self, student: str) -> bool:
        """Return whether the roster lists a student."""
        return self.named is not None and self.named.lists(student)

    def remarks(self, students: Collection[str], not_graded: Collection[str]) -> dict[str, str]:
        """Return the remarks for ``grades.csv`` on missing submissions, and on submissions that could not be graded.

        Args:
            students: the students with reports.
            not_graded: the names of submissions that could not be graded.
        """
        login = self.plain.login if self.plain else str
        set_aside = {login(name) for name in not_graded if name}
        reported = {student: login(student) for student in students}
        missing = self.plain.without([*students, *not_graded]) if self.plain else []
        return (
            dict.fromkeys(missing, NOTHING)
            | dict.fromkeys(sorted(set_aside - {*reported.values()}), NOT_GRADED)
            | {student: ASIDE for student, name in reported.items() if name in set_aside}
        )


def rosters_of(to: Path | None, named: Roster | None) -> Rosters:
    """Return the rosters of a run. ``named``: the roster that ``--roster`` names. ``to``: the folder of reports.

    Raises CourseError.
    """
    if named is not None and named.plain:
        return Rosters(named, named)
    kept = kept_roster(to) if to is not None else None
    return Rosters(named or kept, kept)


def kept_roster(to: Path) -> Roster | None:
    """Return the roster file in a folder of reports. If the file is missing, return the copy in the database."""
    path = to / ROSTER
    if path.is_file():
        return Roster(path)
    if not has_database(to):
        return None
    with reading(to) as database:
        data = database.roster()
    return Roster(path, data) if data is not None else None


def keep_roster(folder: Folder, plain: Roster | None) -> None:
    """Copy the roster into the folder of reports, for later commands.

    The file is written before the database. If the run is killed between the two writes, the next run treats the file
    as edited by the staff.
    """
    if plain is None or folder.dry:
        return
    path = folder.path / ROSTER
    with resumable():
        if not path.is_file() or path.read_bytes() != plain.data:
            write_atomic(path, plain.data)
    if folder.database.roster() != plain.data:
        folder.database.keep_roster(plain.data)


def adjustments(
    course: Course, to: Path, folders: Sequence[Path], places: dict[str, Place], submissions: Mapping[str, Submission],
    rosters: Rosters, names: Sequence[str], parsers: Parsers,
) -> Adjustments:  # fmt: skip
    """Return points given by hand, extensions and submission times. Print notes for the staff.

    Only the modules of the exercises ``names`` get submission times. Raises CourseError for an invalid file.
    """
    modules = [m.id for m in course.config.modules]
    login = spelling_on_file(to, rosters.named.login if rosters.named else str, submissions)
    stated = stated_in(folders, modules, login) if course.config.late else {}
    times, notes = times_of(course, places, submissions, stated, {course.module_of[name] for name in names}, parsers)
    for note in notes:
        tell("note", note)
    extension = rosters.plain.extensions(modules) if rosters.plain else none
    if rosters.plain and rosters.plain.has_extensions and course.config.late is None:
        tell("note", "the roster has extensions, but course.yaml has no late policy, so the extensions change nothing")
    return Adjustments(course.config, read_overrides(to), extension, times)


def spelling_on_file(to: Path, login: Callable[[str], str], here: Iterable[str] = ()) -> Callable[[str], str]:
    """Return a function that converts a name with ``login``, and spells the result as in the student's report or case.

    Two spellings of a name may differ in case or in Unicode form. The grader treats such spellings as one name, because
    they look alike on a page, and some file systems treat them as one file name.

    Args:
        here: students whose reports this run will write. A student without a report or case gets the spelling in
            ``here``.
    """
    aside = {*names_set_aside(to)}
    spellings = Counter(looks(name) for name in aside)
    # Two spellings that were set aside may be two students.
    one_name = (name for name in aside if spellings[looks(name)] == 1)
    reported = students_with_files(to)
    # A submission that needs review may have a name that no report can have. The staff may have renamed it since.
    there = {looks(name): name for name in (*here, *one_name, *reported) if is_a_name(name)}
    # Older versions kept two reports for two names that look alike, such as "ann lee" and "ann  lee".
    there |= {composed(name): name for name in reported}

    def spelled(name: str) -> str:
        name = login(name)
        return (there.get(composed(name)) or there.get(looks(name), name)) if is_a_name(name) else name

    return spelled


def make_in_class(to: Path, roster: Roster | None) -> Callable[[str], bool]:
    """Return a function that returns whether a student is on the roster, or has a report or case from earlier runs."""
    on_file = {*names_set_aside(to), *students_with_files(to)}
    return lambda name: name in on_file or bool(roster and roster.row_of(name))


def announce(folder: Folder, summary: Summary, people: People, *, quiet: bool) -> None:
    """Print the warnings, and which scores change, by how much and why, before any report is replaced.

    Args:
        people: names and sections of students.
    """
    changes = folder.changes
    if folder.unread:
        tell("warning", f"changes are unknown for students whose report on file is unreadable: {a_few(folder.unread)}")
    if folder.uncounted:
        tell(
            "warning",
            f"{folder.path}/reports has reports that are not in {folder.database.path.name}, "
            f"so the grader ignores them: {a_few(folder.uncounted)}; "
            "grade these students again, or move the files elsewhere",
        )
    if quiet:
        for warning in summary.warnings:
            tell("warning", warning)
        return
    print_warnings(summary, out)
    if folder.dry and not changes:
        say("no score on file would change")
    if changes:
        say_changes(by_student(changes), people, dry=folder.dry)
    if changes and not folder.dry:
        say(
            f"{folder.path}/changes.html and changes.csv record these changes; "
            "the new reports now replace the earlier ones"
        )


def say_changes(groups: Mapping[str, Sequence[Change]], people: People, *, dry: bool) -> None:
    """Print the changes of the first ``MOST_SHOWN`` students. ``dry`` is True in a dry run, which changes nothing."""
    by = [sum(c.by for c in own if c.what in SUMS) for own in groups.values()]
    fallen, risen = (sum(one * sign > 1e-9 for one in by) for sign in (-1, 1))
    kept = len(groups) - fallen - risen
    say(f"changes on file: {effects(fallen, risen, kept, dry=dry)}")
    for student, own in list(groups.items())[:MOST_SHOWN]:
        say(f"  {clean(with_name(student, people), 300)}: {sums_text(own)}")
        for change in (one for one in own if one.what not in SUMS):
            points = f"{tidy(change.before)} -> {tidy(change.after)}"
            say(f"    {clean(change.what, 200)}: {points}; {clean(change.why, 600)}")
    if len(groups) > MOST_SHOWN:
        say(f"  and {counted(len(groups) - MOST_SHOWN, 'more student')}")


def effects(fallen: int, risen: int, kept: int, *, dry: bool) -> str:
    """Return a text such as ``1 student's score falls, 2 students' scores rise``, without parts about 0 students."""
    parts = []
    for number, verb in ((fallen, "fall"), (risen, "rise"), (kept, "stay")):
        whose = f"{number} student's score" if number == 1 else f"{number} students' scores"
        does = f"would {verb}" if dry else verb + "s" * (number == 1)
        parts += [f"{whose} {does}"] if number else []
    return ", ".join(parts)


def sums_text(changes: Sequence[Change]) -> str:
    """Return a student's score changes as text, such as ``12 -> 13 of 22 (+1); bonus 2 -> 0 of 8 (-2)``."""
    sums = sorted((c for c in changes if c.what in SUMS), key=lambda c: SUMS.index(c.what))
    texts = [
        f"{tidy(c.before)} -> {tidy(c.after)} of {tidy(c.of)} ({'+' if c.by > 0 else ''}{tidy(c.by)})" for c in sums
    ]
    return "; ".join(f"{BONUS} {text}" if c.what == BONUS else text for c, text in zip(sums, texts, strict=True))


def _timed(report: Report) -> set[str]:
    return {h.module for h in report.hand_ins}


class StaffNotes:
    """Collects notes for the staff from reports: unknown students, double reports, missing modules, missing times."""

    def __init__(self, course: Course, rosters: Rosters) -> None:
        self._rosters = rosters
        self._due = (
            {m.id for m in course.config.modules if m.deadline is not None} if course.config.late else set[str]()
        )
        self._strangers: list[str] = []
        self._by_login: dict[str, list[str]] = {}
        self._untimed: list[str] = []
        self._points: dict[str, float] = {}  # Points by module, without bonus exercises, which are optional.
        # One entry for each student: the name, the modules in the report, and the modules that the student handed in.
        self._modules: list[tuple[str, frozenset[str], frozenset[str]]] = []
        # To save memory, equal sets of modules are one object.
        self._sets: dict[frozenset[str], frozenset[str]] = {}

    def add(self, report: Report) -> None:
        required = [e for e in report.exercises if not e.extension]
        self._points |= {e.module: sum(x.points for x in required if x.module == e.module) for e in required}
        if (roster := self._rosters.named) is not None:
            self._by_login.setdefault(roster.login(report.student), []).append(report.student)
            if roster.row_of(report.student) is None:
                self._strangers.append(report.student)
        graded = self._shared(e.module for e in report.exercises)
        handed_in = self._shared(e.module for e in report.exercises if e.handed_in)
        self._modules.append((report.student, graded, handed_in))
        earning = {e.module for e in report.exercises if e.handed_in and e.earned > 0}
        if earning & self._due - _timed(report):
            self._untimed.append(report.student)

    def _shared(self, modules: Iterable[str]) -> frozenset[str]:
        of = frozenset(modules)
        return self._sets.setdefault(of, of)

    def attention(self, problems: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        """Yield (student, reason) for each case that needs review. The student is "" if several students are concerned.

        Args:
            problems: student and problem, for each override (points given by hand) that needs review.
        """
        yield from ((student, f"override: {problem}") for student, problem in problems)
        yield from ((student, "handed in, but is not on the roster") for student in self._strangers)
        for login, names in self._by_login.items():
            for name in names if len(names) > 1 else ():
                if name != login:
                    mend = "grade all folders of this student again with the roster, then remove this report"
                    drop = f"shardlings drop OUT {shlex.quote(name)}"
                    yield name, f"is the same student as {login} on the roster; {mend}: {drop}"
        yield from (("", text) for module in self._points if (text := self._lacking(module)))

    def _lacking(self, module: str) -> str:
        """Return a line that counts and names the students without a module; '' if there are none."""
        lacking = [student for student, _, handed_in in self._modules if module not in handed_in]
        if not lacking:
            return ""
        has = "has" if len(lacking) == 1 else "have"
        of = counted(len(self._modules), "student")
        line = f"{len(lacking)} of {of} {has} not handed in {module}: {a_few(self._named(lacking))}"
        ungraded = [student for student, graded, _ in self._modules if module not in graded]
        if not ungraded:
            return line
        of = f" of {a_few(self._named(ungraded))}" if ungraded != lacking else ""
        return f"{line}; the maximum score{of} does not include the module's {counted(self._points[module], 'point')}"

    def _named(self, students: Sequence[str]) -> list[str]:
        people = self._rosters.named.people(students) if self._rosters.named else {}
        return [with_name(student, people) for student in students]

    def untimed(self) -> str:
        """Return a line that names students without submission times, who get no late penalty; '' if there are none."""
        what = "these students have no submission time on file, so they get no late penalty"
        return f"{what}: {a_few(self._untimed)}; grade the folders of these students again" if self._untimed else ""
