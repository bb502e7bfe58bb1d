"""Implementation of ``shardlings grade``: a batch of folders, an appeal's check again, or an nbgrader assignment."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType

import typer

from grader import wing
from grader.batch import store
from grader.batch import why as appeals
from grader.batch.confined import parsing
from grader.batch.grade import Grader
from grader.batch.overrides import read_overrides
from grader.batch.suspicions import Suspicions
from grader.cli.backend import beside_at
from grader.cli.console import (
    BROKEN,
    UNUSABLE,
    busy,
    exit_code,
    going_to,
    out,
    print_json,
    progress,
    say,
    tell,
    tell_unusable,
)
from grader.cli.grade_options import GradeOptions
from grader.cli.handed_in import HandedIn, handed_in
from grader.cli.options import has_reports, need_jax, roster_in, solved_course_at
from grader.cli.regrading import (
    Rosters,
    StaffNotes,
    adjustments,
    announce,
    keep_roster,
    names_on_file,
    rosters,
)
from grader.common.cache import user_cache
from grader.common.files import write_atomic
from grader.common.text import a_few, composed
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.intake.reading import read
from grader.intake.students import find_submissions
from grader.integrations.roster import Roster
from grader.reports.appeal import render_appeal
from grader.reports.attention import Attention
from grader.reports.points import counted
from grader.reports.summary import Counts, Summary
from grader.reports.terminal import print_attention, print_summary, print_warnings
from grader.reports.untrusted import clean
from grader.sandbox.tiers import best_tier


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of a run.

    Attributes:
        not_graded: by student, why the submission was not graded.
        broken: whether the grader itself failed for any graded student.
    """

    summary: Summary
    not_graded: Mapping[str, str]
    broken: bool


def grade_batch(course: Course, options: GradeOptions) -> int:
    """Grade all submissions into the folder that the options name, and return the exit code."""
    assert options.to is not None
    to, now = options.to, datetime.now().astimezone()
    if any(to.resolve().is_relative_to(path.resolve()) for path in options.paths):
        # Otherwise the next run would take the reports for submissions.
        raise CourseError(f"--out {to} is in the folder of the submissions; choose a folder outside")
    known = rosters(to, roster_in(options.roster))
    with parsing(options.isolation) as parsers, grader_for(course, options) as (grader, where):
        if not has_reports(to):
            grader.warm()  # start workers while submissions are read; a first run needs them
        login = names_on_file(to, known.named.login if known.named else str)
        with busy("reading submissions", quiet=options.as_json):
            work = handed_in(course, [*options.paths], login, parsers)
        names = chosen_now(course, work, [*options.only], known.named, now)
        refuse_unusable(course, names)
        if course.seed_problem and options.as_json:  # without JSON the summary begins with it
            tell("warning", course.seed_problem)
        adjust = adjustments(course, to, options.paths, work.places, work.submissions, known, names, parsers)
        when = now.isoformat(timespec="seconds")
        with store.Folder(to, course, adjust, when=when, dry=options.dry_run) as folder:
            done = run_in(folder, grader, course, work, names, known, quiet=options.as_json)
    print_batch(folder, done.summary, where, as_json=options.as_json)
    for student, reason in done.not_graded.items():
        tell("shardlings", f"{student} was not graded: {reason}")
    return BROKEN if done.not_graded or done.broken else 0


@contextmanager
def grader_for(course: Course, options: GradeOptions) -> Iterator[tuple[Grader, str]]:
    """Yield a grader for these options, and a description of where it grades."""
    spread = spreading() if options.cluster else None
    tier = spread.tier_of(options.isolation) if spread else best_tier(options.isolation)
    devices, compiler = beside_at(options.backend, options.processes, course, tier)
    where = tier if devices is None else f"{tier}; values on {devices.text}"
    with user_cache(options.remember and not spread) as cache:
        grader = (
            spread.Spread(course, tier, options.cluster, tell_of_cluster, remember=options.remember)
            if spread
            else Grader(course, tier, options.jobs or 1, devices=devices, compiler=compiler, cache=cache)
        )
        with grader:
            yield grader, where


def run_in(
    folder: store.Folder,
    grader: Grader,
    course: Course,
    work: HandedIn,
    names: list[str],
    known: Rosters,
    *,
    quiet: bool,
) -> RunOutcome:
    """Grade the exercises ``names`` into an open folder, and finish the run."""
    if text := folder.taken.text(folder.path):
        tell("note", text)
    keep_roster(folder, known.plain)
    unusable = refuse_on_file(folder, course) if folder.database.students() else None
    graded, failures = store.grade_batch(
        grader,
        folder,
        work.submissions,
        names,
        lambda total, what: progress(total, what, quiet=quiet),
        lambda changes: announce(folder, changes, quiet=quiet),
    )
    not_graded = work.not_graded | {student: str(error) for student, error in failures.items()}
    if unusable is None:  # after grading, because loading every exercise would delay it
        unusable = others_unusable(course)
    return finish(course, folder, graded, not_graded, unusable, known, work.signed)


def spreading() -> ModuleType:
    """Return the module that grades on a cluster. Raises CourseError if its packages are not installed."""
    try:
        return wing.needed("cluster", "--cluster")
    except ModuleNotFoundError as missing:
        raise CourseError(
            f"--cluster needs {missing.name}, which is not installed; {wing.install('[cluster]')}"
        ) from None


def tell_of_cluster(text: str) -> None:
    tell("cluster", text)


def chosen_now(course: Course, work: HandedIn, only: list[str], roster: Roster | None, now: datetime) -> list[str]:
    """Return the exercises to grade: those of ``--only``, else those due or handed in. Print notes for the staff."""
    notes = list(work.notes)
    if not only:
        asked = store.assignments(course, work.submissions.values(), now)
        only = list(asked)  # empty, which means all, if there are no submissions
        counts = ", ".join(f"{module} (handed in by {n} of {len(work.places)})" for module, n in asked.items())
        notes.append(f"graded here: {counts or 'everything'}; use --only MODULE for others")
    if roster and (strangers := [s for s in work.places if roster.row_of(s) is None]):
        notes.append(f"not on the roster, graded under the name of the submission: {a_few(strangers)}")
    for note in notes:
        tell("note", note)
    return course.asked(only, ": nothing to grade")


def refuse_unusable(course: Course, names: list[str]) -> None:
    """End the command if one of these exercises cannot be used. Loads no other exercise."""
    _, unusable = course.usable(names)
    if unusable:
        tell_unusable(unusable)
        raise typer.Exit(UNUSABLE)


def others_unusable(course: Course) -> Mapping[str, str]:
    """Return all unusable exercises with reasons, and print these as notes. Those to be graded are usable."""
    _, unusable = course.usable(course.module_of)
    tell_unusable(unusable, "note")
    return unusable


def refuse_on_file(folder: store.Folder, course: Course) -> Mapping[str, str]:
    """Return the unusable exercises. Raises CourseError if one of them is on file.

    New grades are added to those on file, and the weight of an unusable exercise is unknown.
    """
    unusable = others_unusable(course)
    on_file = folder.database.reports() if unusable else ()
    for name in dict.fromkeys(e.exercise for r in on_file for e in r.exercises):
        if name in unusable:
            raise CourseError(
                f"{folder.path} holds grades of {name}, which cannot be used; mend it or choose another --out"
            )
    return unusable


def finish(
    course: Course, folder: store.Folder, graded: Collection[str], not_graded: Mapping[str, str],
    unusable: Mapping[str, str], known: Rosters, signed: Mapping[str, str],
) -> RunOutcome:  # fmt: skip
    """Write the class files, including students graded in earlier runs. Each report is read once."""
    students = folder.database.students()
    counts = Counts(frozenset(e for e in course.module_of if e not in unusable and course.exercise(e).extension))
    notes, suspicions, broken = StaffNotes(course, known), Suspicions(course), False
    for report in folder.database.reports():
        for part in (counts, notes, suspicions):
            part.add(report)
        broken = broken or (report.student in graded and exit_code([report]) == BROKEN)
    folder.suspicions = suspicions.found(students)
    missing = known.plain.without([*students, *not_graded]) if known.plain else []
    whose = [(student, f"whose submission is it? {files}") for student, files in signed.items()]
    summary = counts.summary(
        not_graded=not_graded,
        warnings=[course.seed_problem] if course.seed_problem else [],
        suspicions=folder.suspicions,
        also=[*whose, *notes.attention(folder.adjust.problems)],
        absent=len(missing),
    )
    people = known.named.people([*students, *not_graded, *missing]) if known.named else None
    folder.finish(summary, missing, people)
    if text := notes.untimed():
        tell("note", text)
    if missing:
        tell("note", f"on the roster, but handed in nothing (0 in grades.csv): {a_few(missing)}")
    if earlier := sorted({*students} - {*graded} - not_graded.keys()):
        who, to = a_few(earlier), folder.path
        tell("note", f"graded before and not in these folders: {who}; to take a student out: shardlings drop {to} NAME")
    return RunOutcome(summary, not_graded, broken)


def print_batch(folder: store.Folder, summary: Summary, tier: str, *, as_json: bool) -> None:
    """Print an overview of the class and where to read more. ``tier``: the isolation, and other devices used."""
    if as_json:
        changes = [asdict(change) for change in folder.changes]
        print_json(summary.model_dump(mode="json") | {"changes": changes})
        return
    to = folder.path
    if folder.dry:  # the whole summary would push the changes off the screen
        print_warnings(summary, out)
        print_attention(summary.attention, out)
    else:
        print_summary(summary, out)
    if any(one.kind == "by hand" for one in summary.attention):
        out.print(f"Points by hand go into {to}/overrides.yaml: docs/term.md", highlight=False, soft_wrap=True)
    if folder.suspicions:
        text = f"{len(folder.suspicions)} wrong answers are right for another student's numbers: {to}/integrity.json"
        out.print(text, highlight=False, soft_wrap=True)
    if folder.dry:
        out.print(f"\nNothing was written to {to}  (isolation: {tier})", highlight=False, soft_wrap=True)
        return
    out.print(f"\nReports: {to}/index.html, {to}/grades.csv  (isolation: {tier})", highlight=False, soft_wrap=True)


def decide_again(options: GradeOptions) -> int:
    """Decide one check of one submission again, compare it with the report on file, and return the exit code."""
    (typed, check), to, html, paths = options.why, options.to, options.html, [*options.paths]
    student = composed(typed)
    found = solved_course_at(options.course, paths)
    if html is not None and not html.parent.is_dir():
        raise CourseError(f"there is no folder {html.parent} to write {html.name} into; make it first")
    known = rosters(to, roster_in(options.roster)).named
    login = known.login if known else str
    with parsing(options.isolation) as parsers:
        students, _, _ = find_submissions(paths, found.module_of, names_on_file(to, login) if to else login, parsers)
        if student not in (there := dict(students)):
            where = ", ".join(map(str, paths))
            raise CourseError(f"no student {student!r} in {where}; there are {a_few(sorted(there))}")
        submission = read(there[student], student, found.module_of, found.handed_out, parsers)
    kept = store.on_file(to, student) if to else None
    tier = best_tier(options.isolation)

    def fresh() -> Grader:
        beside = beside_at(options.backend, options.processes, found, tier, remember=False)
        return Grader(found, tier, **beside._asdict())

    by_hand = read_overrides(to) if to else ()
    with busy(f"deciding {check} again from scratch: some seconds for each function", quiet=options.as_json):
        decided = appeals.why(found, tier, submission, check, kept, fresh, by_hand)
    if options.as_json:
        print_json(
            {"result": decided.result.model_dump(mode="json"), "lines": decided.lines, "differs": decided.differs}
        )
    else:
        print_decision(decided, student)
    if html is not None:
        write_page(html, decided)
    if decided.differs:
        differences = counted(len(decided.differs), "difference")
        tell("shardlings", f"the verdict differs from the report on file: {differences}; grade {student} again")
    return BROKEN if decided.differs else 0


def write_page(html: Path, decided: appeals.Why) -> None:
    """Write the page. Raises CourseError if that fails."""
    try:
        write_atomic(html, render_appeal(decided.page))
    except OSError as error:
        raise CourseError(f"cannot write {html}: {error.strerror}") from None
    tell("note", f"wrote {html}; it shows hidden data, so keep it among the staff")


def print_decision(decided: appeals.Why, student: str) -> None:
    """Print the verdict, its reasons, and the comparison with the report on file."""
    result = decided.result
    lines = [
        f"{result.name}: {result.status}, {result.earned:g} of {result.points:g}",
        result.reason,
        *decided.lines,
    ]
    on_file = ["as in the report on file"] if decided.kept else [f"no report of {student} on file"]
    for line in filter(None, [*lines, *(decided.differs or on_file)]):
        indent = line[: len(line) - len(line.lstrip())]
        say(indent + clean(line))


def grade_nbgrader(options: GradeOptions) -> int:
    """Grade an nbgrader assignment into its gradebook, and return the exit code."""
    need_jax()
    if len(options.paths) != 1:
        raise CourseError("with --nbgrader DIR, name one assignment: shardlings grade --nbgrader DIR ASSIGNMENT")
    try:
        from grader.integrations.nbgrader import batch
    except ModuleNotFoundError as missing:
        raise CourseError(f"{missing.name} is not installed; run: pip install 'nbgrader>=0.9.5,<0.10'") from None
    assert options.nbgrader is not None
    folder, assignment = options.nbgrader, str(options.paths[0])
    spread = spreading() if options.cluster else None
    done = batch.grade(
        folder, assignment, lambda total, what: progress(total, what, quiet=options.as_json), jobs=options.jobs or 0,
        isolation="" if options.isolation == "auto" else options.isolation, again=options.again,
        remember=options.remember, elsewhere=spread and spread.OnCluster(options.cluster, tell_of_cluster),
    )  # fmt: skip
    if options.as_json:
        print_json(vars(done))
    else:
        out.print(f"{len(done.graded)} graded, {len(done.kept)} unchanged  (isolation: {done.tier})", highlight=False)
        out.print(f"class page, for the staff: {done.page}", highlight=False, soft_wrap=True)
        out.print(
            f"next: {going_to(folder)}nbgrader generate_feedback {assignment}",
            style="dim",
            soft_wrap=True,
        )
        if done.no_secret:
            outside = (
                f"nbgrader release_feedback fails for submissions from outside the exchange: {a_few(done.no_secret)}"
            )
            tell("note", f"{outside}; give these students feedback/STUDENT/{assignment}/ yourself")
        needed = [Attention(student=s, reason="; ".join(why)) for s, why in done.attention.items()]
        print_attention(needed, out)
    for student in done.pending:
        tell("shardlings", f"{student} needs review: the grader itself failed")
    for student, error in done.failures.items():
        tell("shardlings", f"{student} was not graded: {error}")
    return BROKEN if done.failures or done.pending else 0
