"""Implementation of ``shardlings grade``."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path

import typer

from grader.batch import handing_in
from grader.batch.confined import parsing
from grader.batch.folder import Folder, grade_batch
from grader.batch.grade import Grader
from grader.batch.handing_in import Submissions
from grader.batch.review import Suspicions, keep_cases, note_set_aside
from grader.cli.class_reading import HandedIn, read_class
from grader.cli.console import (
    BROKEN,
    UNUSABLE,
    busy,
    exit_code,
    failure,
    out,
    print_json,
    progress,
    say,
    tell,
    tell_slow,
    tell_unusable,
)
from grader.cli.options import beside_at, cores, has_reports, roster_in
from grader.cli.regrading import (
    Rosters,
    StaffNotes,
    adjustments,
    announce,
    keep_roster,
    make_in_class,
    rosters_of,
    spelling_on_file,
)
from grader.cli.staff import GradeOptions
from grader.common.cache import user_cache
from grader.common.result import Report
from grader.common.text import a_few
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.intake.submission import ReviewCase, paths_of, reasons_of
from grader.integrations.roster import Roster
from grader.reports.people import People
from grader.reports.points import counted
from grader.reports.summary import Counts, Summary
from grader.reports.tables import NOTHING
from grader.reports.terminal import print_attention, print_summary
from grader.reports.untrusted import clean
from grader.reports.wording import standing_of
from grader.sandbox.tiers import best_tier


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of one run of ``grade``.

    Attributes:
        not_graded: why this run could not grade a submission, by student.
        broken: True if the grader itself failed in a check of at least one student.
        people: names and sections of students.
        graded, unchanged: the numbers of students with a new report and with the old report.
    """

    summary: Summary
    not_graded: Mapping[str, str]
    broken: bool
    people: People
    graded: int = 0
    unchanged: int = 0

    @property
    def line(self) -> str:
        """The last line of the output. Programs may read this line, so its words and their order must not change."""
        counts = {
            "graded": self.graded,
            "unchanged": self.unchanged,
            "not graded": len(self.not_graded),
            "needs review": len(self.summary.attention),
            "absent": self.summary.absent,
        }
        return "summary: " + ", ".join(f"{n} {what}" for what, n in counts.items())


def grade_class(course: Course, options: GradeOptions) -> int:
    """Grade all submissions, write the reports to the folder in the options, and return the exit code."""
    to, now = options.to, datetime.now().astimezone()
    if any(to.resolve().is_relative_to(path.resolve()) for path in options.paths):
        # If the reports were in the folder of submissions, the next run would grade them as submissions.
        raise CourseError(f"--out {to} is in the folder of the submissions; choose a folder outside")
    rosters = rosters_of(to, roster_in(options.roster))
    with (
        parsing(options.isolation) as parsers, grader_for(course, options) as (grader, where),
        Submissions() as submissions,
    ):  # fmt: skip
        if not has_reports(to):
            # No submission has a report, so all need grading. Start workers now, while submissions are read.
            grader.warm()
        login = spelling_on_file(to, rosters.named.login if rosters.named else str)
        with busy("reading submissions", quiet=options.as_json or options.quiet):
            in_class = make_in_class(to, rosters.named)
            handed_in = read_class(course, [*options.paths], login, parsers, submissions, in_class, rosters.lists)
        names = chosen_now(course, handed_in, [*options.only], rosters.named, now)
        refuse_unusable(course, names)
        # Without --json, the printed summary contains this warning.
        if course.seed_problem and options.as_json:
            tell("warning", course.seed_problem)
        adjust = adjustments(
            course, to, handed_in.folders, handed_in.places, handed_in.submissions, rosters, names, parsers
        )
        when = now.isoformat(timespec="seconds")
        with Folder(to, course, adjust, when=when, dry=options.dry_run) as folder:
            done = run_in(folder, grader, course, handed_in, names, rosters, options)
    print_batch(folder, done, where, as_json=options.as_json)
    if not options.as_json:
        typer.echo(done.line)
    for student, reason in done.not_graded.items():
        tell("shardlings", f"{student} was not graded: {reason}" if student else f"not graded: {reason}")
    return BROKEN if done.not_graded or done.broken else 0


@contextmanager
def grader_for(course: Course, options: GradeOptions) -> Iterator[tuple[Grader, str]]:
    """Yield a grader for these options, and a text about the isolation and the devices that it uses."""
    elsewhere = options.elsewhere
    tier = elsewhere.tier_of(options.isolation) if elsewhere else best_tier(options.isolation)
    devices, compiler = beside_at(*options.beside, course, tier)
    where = tier if devices is None else f"{tier}; values on {devices.text}"
    with user_cache(options.remember and not elsewhere) as cache:
        grader = (
            elsewhere.grader(course, tier, remember=options.remember)
            if elsewhere
            else Grader(course, tier, options.jobs or cores(), devices=devices, compiler=compiler, cache=cache)
        )
        with grader:
            yield grader, where


def run_in(
    folder: Folder,
    grader: Grader,
    course: Course,
    handed_in: HandedIn,
    names: list[str],
    rosters: Rosters,
    options: GradeOptions,
) -> RunOutcome:
    """Grade the exercises ``names``, write the reports and the files about the class, and return the outcome."""
    quiet, new = options.as_json or options.quiet, []

    def say_graded(report: Report) -> None:
        new.append(report.student)
        if options.verbose:
            say(f"{clean(report.student, 100)}: {standing_of(report)}")

    if text := folder.taken.text(folder.path):
        tell("note", text)
    refuse_on_file(folder, course)
    keep_roster(folder, rosters.plain)
    if not quiet:
        grader.pool.slow = tell_slow
    graded, failures = grade_batch(
        grader,
        folder,
        handed_in.submissions,
        names,
        lambda total, what: progress(total, what, quiet=quiet),
        say_graded,
    )
    failed = [
        ReviewCase(student, failure(error), paths_of(handed_in.places[student])) for student, error in failures.items()
    ]
    done = finish(course, folder, graded, rosters, [*handed_in.cases, *failed], options.paths, quiet=quiet)
    return replace(done, graded=len(new), unchanged=len(graded) - len(new))


def chosen_now(course: Course, handed_in: HandedIn, only: list[str], roster: Roster | None, now: datetime) -> list[str]:
    """Return the exercises to grade, by default all in modules that count now. Print notes for the staff."""
    notes = list(handed_in.notes)
    if not only:
        only, note = modules_now(course, handed_in, now)
        notes.append(note)
    if roster and (strangers := [s for s in handed_in.places if roster.row_of(s) is None]):
        names = a_few(strangers)
        notes.append(f"these students are not on the roster; reports use the names of their submissions: {names}")
    for note in notes:
        tell("note", note)
    return course.asked(only, ": nothing to grade")


def modules_now(course: Course, handed_in: HandedIn, now: datetime) -> tuple[list[str], str]:
    """Return the modules that count now (see ``handing_in.counts_now``), and a note for the staff.

    If no module has a deadline and no student handed in anything, the list is empty, which selects all modules.

    Raises:
        CourseError: no module counts now, because deadlines are in the future.
    """
    modules = {m.id: m for m in course.config.modules}
    counts = handing_in.hand_ins(course, handed_in.submissions.values())
    asked = [name for name, number in counts.items() if handing_in.counts_now(modules[name], number, now)]
    early = [name for name, number in counts.items() if number and name not in asked]

    def shown(names: list[str]) -> str:
        students = counted(len(handed_in.places), "student")
        return ", ".join(f"{name} (handed in by {counts[name]} of {students})" for name in names)

    ahead = early or [name for name in counts if modules[name].deadline is not None]
    if ahead and not asked:
        raise CourseError(f"the deadlines of {shown(ahead)} are in the future; to grade now, use --only {ahead[0]}")
    later = f"; not yet due: {shown(early)}" if early else ""
    return asked, f"graded modules: {shown(asked) or 'all'}{later}; to grade other modules, use --only MODULE"


def refuse_unusable(course: Course, names: list[str]) -> None:
    """End the command if one of the exercises ``names`` cannot be used."""
    _, unusable = course.usable(names)
    if unusable:
        tell_unusable(unusable)
        raise typer.Exit(UNUSABLE)


def refuse_on_file(folder: Folder, course: Course) -> None:
    """End the command if the summary of the last run has an exercise of the course that cannot be used now.

    If this run does not grade an exercise, the new report gets a copy of the stored result. A result of an unusable
    exercise cannot be copied, because the exercise's weight is unknown.
    """
    last = folder.database.last_run()
    on_file = [e["exercise"] for e in json.loads(last[0])["exercises"]] if last else []
    _, unusable = course.usable([name for name in on_file if name in course.module_of])
    tell_unusable(unusable, "note")
    if unusable:
        raise CourseError(
            f"{folder.path} holds grades of {next(iter(unusable))}, an exercise that cannot be loaded; "
            "mend the exercise or choose another --out"
        )


def finish(
    course: Course, folder: Folder, graded: Collection[str], rosters: Rosters, cases: Sequence[ReviewCase],
    read: Sequence[Path], *, quiet: bool,
) -> RunOutcome:  # fmt: skip
    """Print the changes of scores, write the files about the class, and return the outcome.

    The files also list students and cases from earlier runs.

    Args:
        cases: the submissions and files of this run that need review.
        read: the paths that this run read.
    """
    students = folder.database.students()
    login = rosters.named.login if rosters.named else str
    on_file = keep_cases(folder.database, folder.path, cases, read, graded, login)
    not_graded, set_aside = reasons_of(cases), reasons_of(on_file)
    remarks = rosters.remarks(students, set_aside)
    missing = [student for student, remark in remarks.items() if remark == NOTHING]
    note_set_aside(folder.database, remarks)
    counts = Counts()
    notes, suspicions, broken = StaffNotes(course, rosters), Suspicions(course), False
    for report in folder.database.reports():
        for part in (counts, notes, suspicions):
            part.add(report)
        broken = broken or (report.student in graded and exit_code([report]) == BROKEN)
    folder.suspicions = suspicions.found(students)
    summary = counts.summary(
        not_graded=set_aside,
        warnings=[*folder.warnings(), *([course.seed_problem] if course.seed_problem else [])],
        suspicions=folder.suspicions,
        also=[*reasons_of(on_file, graded=True).items(), *notes.attention(folder.adjust.problems)],
        absent=len(missing),
    )
    people = rosters.named.people([*students, *set_aside, *missing]) if rosters.named else None
    shown = folder.database.people() if people is None else people
    announce(folder, summary, shown, quiet=quiet)
    folder.finish(summary, remarks, people)
    if text := notes.untimed():
        tell("note", text)
    if missing:
        tell("note", f"these students on the roster have no submission (0 points in grades.csv): {a_few(missing)}")
    if earlier := sorted({*students} - {*graded} - not_graded.keys()):
        who, to = a_few(earlier), folder.path
        tell(
            "note",
            f"these students were graded in an earlier run, but this run's folders lack their submissions: {who}; "
            f"to take a student out: shardlings drop {to} NAME",
        )
    return RunOutcome(summary, not_graded, broken, shown)


def print_batch(folder: Folder, done: RunOutcome, where: str, *, as_json: bool) -> None:
    """Print an overview of the class and the paths of the reports. ``where`` names the isolation and the devices."""
    summary = done.summary
    if as_json:
        changes = [asdict(change) for change in folder.changes]
        print_json(summary.model_dump(mode="json") | {"changes": changes})
        return
    to = folder.path
    # After a dry run, a complete summary would push the list of changes off the screen.
    if folder.dry:
        print_attention(summary.attention, out, done.people)
    else:
        print_summary(summary, out, done.people)
    if any(one.kind == "by hand" for one in summary.attention):
        text = f"Points by hand go into {to}/overrides.yaml; `shardlings docs term` describes this file"
        out.print(text, highlight=False, soft_wrap=True)
    if folder.suspicions:
        wrong = counted(len(folder.suspicions), "wrong answer")
        text = f"{wrong} would be right with another student's numbers; see {to}/integrity.json"
        out.print(text, highlight=False, soft_wrap=True)
    if folder.dry:
        out.print(f"\nNothing was written to {to}  (isolation: {where})", highlight=False, soft_wrap=True)
        return
    out.print(f"\nReports: {to}/index.html, {to}/grades.csv  (isolation: {where})", highlight=False, soft_wrap=True)
