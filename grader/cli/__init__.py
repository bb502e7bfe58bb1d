"""The commands. Each reads its input, calls one module, prints, and sets the exit code.

Exit codes: 0 all is well; 1 the work graded or the course proved has failures; 2 the command could
not be carried out (one line says why); 3 the grader itself failed for some submission, or a report on file does not hold.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from grader.authoring import scaffold
from grader.authoring import verify as verifier
from grader.batch import store
from grader.batch import why as appeals
from grader.batch.grade import Grader
from grader.batch.here import Here
from grader.cli import machine
from grader.common.result import Report
from grader.common.text import a_few
from grader.course import build as builder
from grader.course.loading import PACKAGED, Course, CourseError, find_course
from grader.exercise import AuthorError
from grader.intake.submission import SubmissionError, find_submissions, read
from grader.integrations import export
from grader.judging import numbers
from grader.reports import report
from grader.sandbox.tiers import NoIsolation, best_tier, environment

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__, rich_markup_mode=None)
out = Console()
err = Console(stderr=True)

FAILED, UNUSABLE, BROKEN = 1, 2, 3
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}  # these may name no file

CourseOption = Annotated[Path | None, typer.Option("--course", help="course.yaml or its folder; found by walking up")]
Isolation = Annotated[str, typer.Option("--isolation", help="auto, sandlock, bwrap or none")]
RosterOption = Annotated[
    Path | None, typer.Option("--roster", help="a gradebook exported from Canvas: who is behind which name")
]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON instead")]
Student = Annotated[
    str, typer.Option("--student", envvar="SHARDLINGS_STUDENT", help="who you are, where numbers differ")
]
Names = Annotated[list[str] | None, typer.Argument(help="exercises or modules; a unique beginning will do")]


def main() -> None:
    """Run a command; a user's mistake is one line, never a traceback."""
    try:
        app()
    except (CourseError, AuthorError, SubmissionError, NoIsolation, scaffold.ScaffoldError) as error:
        err.print(f"shardlings: {report.clean(error)}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(UNUSABLE)
    except OSError as error:
        if error.filename is None and error.errno not in FULL:
            raise
        told = f"cannot use {error.filename or 'where the output goes'}: {error.strerror}"
        err.print(
            f"shardlings: {report.clean(told)}; mend that and run the same command again",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
        sys.exit(UNUSABLE)
    except KeyboardInterrupt:
        err.print("shardlings: stopped; run the same command again to go on")
        sys.exit(130)


def points(value: float) -> str:
    """``1 point``, ``2.5 points``."""
    return f"{value:g} point{'' if value == 1 else 's'}"


def course_at(path: Path | None, handed_in: Sequence[Path] = (), *, packaged: bool = False) -> Course:
    """The course that was named, else the working directory's; never one that came with ``handed_in``.

    Learners' commands take the packaged one where there is no other (``packaged``), and say so.
    """
    if problem := machine.jax_problem():
        raise CourseError(problem)
    found = find_course(path, handed_in=handed_in, packaged=packaged)
    if path is None and found.root == PACKAGED:
        told = f"no course.yaml in {Path.cwd()} or above, so this is the course that was installed with shardlings"
        tell("note", f"{told}; for another go to its folder or pass --course")
    return found


def work_in(course: Course, work: Path | None) -> Path:
    """Where the learner's work is: ``--work``, else the course's folder; the packaged course is nobody's work."""
    usual = Path.cwd() if course.root == PACKAGED else course.root / "exercises" if course.solved else course.root
    place = work or usual
    if not place.exists():
        raise CourseError(f"no such file or folder: {place}")
    return place


@app.command("list")
def list_(course: CourseOption = None, as_json: AsJson = False) -> None:
    """List modules and exercises."""
    found = course_at(course, packaged=True)
    good, unusable = found.usable(found.module_of)
    rows = [
        {
            "module": module.id,
            "exercise": name,
            "title": found.exercise(name).title,
            "stars": found.exercise(name).stars,
            "points": found.exercise(name).points * module.weight,
            "extension": found.exercise(name).extension,
            "deadline": module.deadline.isoformat() if module.deadline else None,
        }
        for module in found.config.modules
        for name in module.exercises
        if name in good
    ]
    if as_json:
        print_json(rows)
    for module in () if as_json else found.config.modules:
        due = f" — due {module.deadline:%Y-%m-%d %H:%M}" if module.deadline else ""
        out.print(f"\n[bold]{module.id}[/bold]  {module.title}{due}", highlight=False)
        for row in rows:
            if row["module"] == module.id:
                extra = "  (extension)" if row["extension"] else ""
                stars = "*" * row["stars"]
                out.print(
                    f"  {row['exercise']:26} {stars:4} {points(row['points']):>11}  {row['title']}{extra}",
                    highlight=False,
                    markup=False,
                )
    tell_unusable(unusable)
    raise typer.Exit(UNUSABLE if unusable else 0)


def tell_unusable(unusable: Mapping[str, str], what: str = "shardlings") -> None:
    """A line for each exercise that cannot be used: the others can."""
    for reason in unusable.values():
        tell(what, reason)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="an exercise or a question")],
    hint: Annotated[int, typer.Option("--hint", help="show the first N hints of each task")] = 0,
    course: CourseOption = None,
    student: Student = "",
    as_json: AsJson = False,
) -> None:
    """Show an exercise: its statement, my numbers, what is checked, and hints when asked for."""
    found = course_at(course, packaged=True)
    good, unusable = found.usable(found.module_of)
    owners = [e for e in good if name in found.exercise(e).numbers]
    chosen = owners or asked_for(found, [name])
    tell_unusable({e: reason for e, reason in unusable.items() if e != chosen[0]}, "note")
    exercise = found.exercise(chosen[0])
    me = student_name(found, student)
    questions = [
        {
            "name": q.name,
            "points": q.points,
            "unit": q.unit,
            "text": numbers.render_question(q, found.params(q, me)),
        }
        for q in exercise.numbers.values()
        if not owners or q.name == name
    ]
    checks = [{"label": c.label, "points": c.points} for c in exercise.checks.values()]
    hints = {t.name: list(t.hints[:hint]) for t in exercise.tasks.values()} if hint else {}
    if as_json:
        print_json({"exercise": exercise.id, "statement": exercise.statement, "checks": checks,
                    "hidden_points": exercise.hidden_points, "questions": questions, "hints": hints})  # fmt: skip
        return
    if not owners:
        out.print(Markdown(builder.page(exercise)))
        if checks:
            out.print("\n[bold]Checked" + ("" if found.solved else " before you submit") + "[/bold]")
        for check in checks:
            out.print(f"  {check['points']:>4g}  {check['label']}", markup=False, highlight=False)
        if exercise.hidden_points:
            out.print(f"  {exercise.hidden_points:>4g}  hidden checks, when your work is graded")
    for question in questions:
        out.print(f"\nQuestion {question['name']} ({points(question['points'])})", style="bold")
        out.print(question["text"], markup=False, highlight=False)
    for task, told in hints.items():
        for number, text in enumerate(told, 1):
            out.print(f"\nHint {number} for {task}: {text}", markup=False, highlight=False)
    if exercise.tasks and not hints and not owners:
        out.print(f"\nStuck? shardlings show {exercise.id} --hint 1", style="dim")


def asked_for(course: Course, names: list[str]) -> list[str]:
    """The exercises of these names, one at least."""
    if found := course.select(names):
        return found
    raise CourseError(f"there is no exercise in {', '.join(names) or 'the course'} yet")


def student_name(course: Course, student: str) -> str:
    if course.config.variants.mode == "per_student" and not student:
        raise CourseError("this course gives everyone their own numbers: say who you are with --student NAME "
                          "or export SHARDLINGS_STUDENT=NAME")  # fmt: skip
    return student or "me"


@app.command()
def check(
    names: Names = None,
    work: Annotated[
        Path | None, typer.Option("--work", help="your folder or notebook; default: exercises/ or here")
    ] = None,
    isolation: Annotated[
        str, typer.Option("--isolation", help="auto, sandlock, bwrap or none; for work that is not yours")
    ] = "none",
    course: CourseOption = None,
    student: Student = "",
    as_json: AsJson = False,
) -> None:
    """Check my own work with the public checks. Without isolation: it is your code on your machine."""
    found = course_at(course, [work] if work else [], packaged=True)
    chosen = asked_for(found, names or [])
    place, tier = work_in(found, work), best_tier(isolation)
    if tier != "none" and course is None and place.resolve().is_relative_to(found.root.resolve()) and not found.solved:
        raise CourseError(
            f"{found.root / 'course.yaml'} lies beside the work that is to be confined, and a course is code: "
            "pass the one to trust, --course FOLDER"
        )
    if tier == "none" and work is not None:
        tell("note", f"{place} is run as it is, without a sandbox; for work that is not yours pass --isolation auto")
    me = student_name(found, student)
    submission = read(place, me, found.module_of, found.handed_out)
    begun = [e for e in chosen if e in submission.sources]
    if not begun:
        first = chosen[0]
        raise CourseError(
            f"nothing of {', '.join(names or ['the course'])} in {place}: looked for files such as {first}.py and "
            f"{found.module_of[first]}.ipynb; go to your work or pass --work FOLDER"
        )
    chosen, unusable = found.usable(chosen if names else begun)
    tell_unusable(unusable)
    if not chosen:
        raise typer.Exit(UNUSABLE)
    with own_grader(found, tier) as grader:
        graded = grader.grade(submission, chosen, public=True)
    if as_json:
        typer.echo(graded.dumps(), nl=False)
    else:
        report.print_report(graded, out)
        if hidden := sum(found.exercise(name).hidden_points * found.weight(name) for name in chosen):
            out.print(f"Hidden checks decide on {points(hidden)} more when your work is graded.")
    raise typer.Exit(UNUSABLE if unusable else exit_code([graded], student=True))


def own_grader(course: Course, tier: str = "none") -> Grader:
    """For one's own work: usually without isolation, and in this process where there is no fork (Windows)."""
    if hasattr(os, "fork"):
        return Grader(course, tier)
    os.environ.update(environment(course.config.devices) | {"PATH": os.environ.get("PATH", "")})
    return Grader(course, "none", here=Here({}))


@app.command()
def grade(
    paths: Annotated[list[Path], typer.Argument(help="folders with one folder per student, or students' files")],
    to: Annotated[
        Path | None, typer.Option("--out", help="where reports go; an interrupted run is resumed there")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("-j", "--jobs", min=1, max=64, help="submissions graded at a time [default: 1]")
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="grade only these exercises or modules")] = None,
    isolation: Isolation = "auto",
    nbgrader: Annotated[
        Path | None, typer.Option("--nbgrader", help="an nbgrader course folder; PATHS is then one assignment")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="with --nbgrader: write unchanged submissions anew")] = False,
    why: Annotated[
        tuple[str, str],
        typer.Option("--why", metavar="STUDENT CHECK", help="decide one check again from scratch, and lay it open"),
    ] = ("", ""),
    roster: RosterOption = None,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Grade submissions with all checks, in a sandbox. Writes a report for each, grades.csv and a summary."""
    if any(why):
        if nbgrader is not None:
            raise CourseError(
                f"pass the student's folder, not --nbgrader: grade {nbgrader}/submitted/{why[0]} --why ..."
            )
        raise typer.Exit(decided_again(paths, to, course, isolation, roster, *why, as_json=as_json))
    if nbgrader is not None:
        raise typer.Exit(grade_nbgrader(nbgrader, [str(p) for p in paths], jobs or 0, isolation, again, as_json))
    if to is None:
        raise CourseError("say where the reports go: --out FOLDER")
    found = course_at(course, paths)
    if not found.solved:
        raise CourseError("grading needs the solutions; this is what learners are given")
    names = found.select(only or [])
    tier = best_tier(isolation)
    known = export.Roster(roster) if roster else None
    students, notes, not_graded = find_submissions(paths, found.module_of, known.login if known else str)
    given = found.handed_out
    jobs_of = {s: lambda s=s, p=p: read(p, s, found.module_of, given) for s, p in students}
    submissions, failures = store.read_all(jobs_of)
    asked: dict[str, int] = {}
    if not only:
        asked = store.assignments(found, submissions.values(), datetime.now().astimezone())
        names = found.select(list(asked))  # where nobody handed in anything: all
        counts = ", ".join(f"{module} (handed in by {n} of {len(students)})" for module, n in asked.items())
        notes.append(f"graded here: {counts or 'everything'}; --only MODULE names others")
    if known and (strangers := [s for s, _ in students if known.row_of(s) is None]):
        notes.append(f"not in the roster, graded under the name that is there: {a_few(strangers)}")
    for note in notes:
        tell("note", note)
    if not names:
        raise CourseError(f"there is no exercise in {', '.join(only or asked)} yet: nothing to grade")
    _, unusable = found.usable(found.module_of)
    tell_unusable({e: reason for e, reason in unusable.items() if e not in names}, "note")
    if asked_too := {e: reason for e, reason in unusable.items() if e in names}:
        tell_unusable(asked_too)
        raise typer.Exit(UNUSABLE)
    if found.seed_problem:
        tell("warning", found.seed_problem)
    with store.Folder(to, found) as folder, Grader(found, tier, jobs or 1) as grader:
        refuse_on_file(folder, unusable)
        graded, more = store.grade_batch(
            grader, folder, submissions, names, lambda total: progress(total, quiet=as_json)
        )
        not_graded |= {student: str(error) for student, error in (failures | more).items()}
        reports = folder.reports()
        summary = report.summarise(
            reports,
            not_graded=not_graded,
            extensions=frozenset(e for e in found.module_of if e not in unusable and found.exercise(e).extension),
            warnings=[found.seed_problem] if found.seed_problem else [],
        )
        folder.finish(reports, summary)
    if earlier := sorted({r.student for r in reports} - {r.student for r in graded} - not_graded.keys()):
        who = a_few(earlier)
        tell("note", f"as graded before, and not in these folders: {who}; delete {to}/reports/NAME.json to drop one")
    if as_json:
        typer.echo(json.dumps(summary.model_dump(mode="json"), indent=2, sort_keys=True))
    else:
        report.print_summary(summary, out)
        if folder.suspicions:
            told = f"{folder.suspicions} wrong answers are right for another student's numbers: {to}/integrity.json"
            out.print(told, highlight=False, soft_wrap=True)
        out.print(f"\nReports: {to}/index.html, {to}/grades.csv  (isolation: {tier})", highlight=False, soft_wrap=True)
    for student, reason in not_graded.items():
        tell("shardlings", f"{student} was not graded: {reason}")
    raise typer.Exit(BROKEN if not_graded else exit_code(graded))


def refuse_on_file(folder: store.Folder, unusable: Mapping[str, str]) -> None:
    """Grades are added to those on file, and what these count for is not known of an exercise that cannot be used."""
    for name in dict.fromkeys(e.exercise for r in folder.reports() for e in r.exercises):
        if name in unusable:
            raise CourseError(
                f"{folder.path} holds grades of {name}, which cannot be used; mend it or choose another --out"
            )


def tell(what: str, text: str) -> None:
    """One line beside the results."""
    err.print(f"{what}: {report.clean(text)}", markup=False, highlight=False, soft_wrap=True)


def decided_again(
    paths: list[Path], to: Path | None, course: Path | None, isolation: str, roster: Path | None, student: str, check: str,
    *, as_json: bool,
) -> int:  # fmt: skip
    """One check of one student's work, and the report on file beside it; the exit code."""
    found = course_at(course, paths)
    if not found.solved:
        raise CourseError("grading needs the solutions; this is what learners are given")
    known = export.Roster(roster) if roster else None
    students, _, _ = find_submissions(paths, found.module_of, known.login if known else str)
    if student not in (there := dict(students)):
        raise CourseError(
            f"nobody called {student!r} in {', '.join(map(str, paths))}; there are {a_few(sorted(there))}"
        )
    submission = read(there[student], student, found.module_of, found.handed_out)
    kept = store.report_of(to, student) if to else None
    decided = appeals.why(found, best_tier(isolation), submission, check, kept)
    if as_json:
        print_json(
            {"result": decided.result.model_dump(mode="json"), "lines": decided.lines, "differs": decided.differs}
        )
    else:
        result = decided.result
        lines = [
            f"{result.name}: {result.status}, {result.earned:g} of {result.points:g}",
            result.reason,
            *decided.lines,
        ]
        on_file = ["as in the report on file"] if decided.kept else [f"no report of {student} on file"]
        for line in filter(None, [*lines, *(decided.differs or on_file)]):
            indent = line[: len(line) - len(line.lstrip())]
            out.print(indent + report.clean(line), markup=False, highlight=False, soft_wrap=True)
    if decided.differs:
        tell(
            "shardlings",
            f"the report on file does not hold: {len(decided.differs)} things differ; grade {student} again",
        )
    return BROKEN if decided.differs else 0


@contextlib.contextmanager
def progress(total: int, *, quiet: bool) -> Iterator[Any]:
    """A bar with the time left; yields a function to call after each submission."""
    columns = (
        TextColumn("grading"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[who]}"),
    )
    with Progress(*columns, console=err, disable=quiet, transient=True) as bar:
        task = bar.add_task("grading", total=total, who="")
        yield lambda who: bar.update(task, advance=1, who=report.clean(who, 40))


def exit_code(reports: list[Report], *, student: bool = False) -> int:
    """A batch with wrong answers is a success; one's own work with failures is not."""
    results = [r for one in reports for e in one.exercises for r in e.results]
    if any(r.status == "broken" for r in results):
        return BROKEN
    failed = any(r.status == "failed" or (r.status == "blocked" and r.kind == "check") for r in results)
    return FAILED if student and failed else 0


@app.command()
def build(
    force: Annotated[
        bool, typer.Option("--force", help="also replace files that were worked on; they are kept in exercises.bak/")
    ] = False,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Write exercises/ from solutions/. What somebody worked on there is left alone and named."""
    done = builder.build(course_at(course), force=force)
    if as_json:
        print_json(vars(done))
        return
    for path in done.changed:
        out.print(f"exercises/{path}", highlight=False, markup=False)
    for path, place in done.saved.items():
        told = f"replaced exercises/{path}; what was worked on there is now {place}"
        out.print(told, highlight=False, markup=False, soft_wrap=True)
    for path in done.left:
        out.print(f"left alone, for it was worked on: exercises/{path}", highlight=False, markup=False, soft_wrap=True)
    if done.left:
        told = "to replace what was left alone and keep it in exercises.bak/: shardlings build --force"
        out.print(told, style="dim", soft_wrap=True)
    elif not done.changed:
        out.print("exercises/ is current")
    if done.changed:
        out.print(f"{len(done.changed)} files changed")


@app.command()
def verify(
    names: Names = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, max=64)] = 2,
    isolation: Isolation = "none",
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=1000, help="seeds to try misconceptions with")] = 1,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Prove the course: references, stubs, misconceptions, questions, and that nothing leaks."""
    found = course_at(course)
    if not found.solved:
        raise CourseError("there is no solutions/ here to prove")
    chosen = found.select(names or [])
    told: dict[str, list[str]] = {}
    if found.seed_problem:
        tell("warning", found.seed_problem)

    def proven(name: str, problems: list[str]) -> None:
        told[name] = problems
        if not as_json:
            out.print(f"{'✗' if problems else '✓'} {name}", highlight=False)
            for problem in problems:
                out.print(f"    {report.clean(problem)}", markup=False, highlight=False, soft_wrap=True)

    with Grader(found, best_tier(isolation), jobs) as grader:
        count = verifier.verify(found, grader, chosen, proven, seeds)
    if as_json:
        print_json(told)
    else:
        slips = sum(len(found.exercise(n).misconceptions) for n in found.usable(chosen)[0])
        what = f"{len(chosen)} exercises, {slips} misconceptions"
        out.print(f"{what}: {'nothing to mend' if not count else f'{count} problems'}")
    raise typer.Exit(FAILED if count else 0)


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="MODULE/EXERCISE, such as 03_matmuls/c6_batched; or the word course")],
    folder: Annotated[Path | None, typer.Argument(help="for a new course: a folder that is new or empty")] = None,
    course: CourseOption = None,
) -> None:
    """Start a new exercise, or a course of your own (new course FOLDER), that passes verify as it stands."""
    if name == "course":
        if folder is None:
            raise scaffold.ScaffoldError("say where the course goes: shardlings new course FOLDER")
        scaffold.new_course(folder)
        go = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
        told = f"wrote a course to {folder}; next: {go}shardlings build && shardlings verify"
    else:
        if folder is not None:
            raise scaffold.ScaffoldError(
                f"a new exercise goes into its course; for a new course: shardlings new course {folder}"
            )
        found = course_at(course)
        path = scaffold.new(found, name)
        if path.parent.name not in {module.id for module in found.config.modules}:
            tell("note", f"{path.parent.name} is a new module, the last in course.yaml; its title is yours to choose")
        told = f"wrote {path}; edit it, then: shardlings build && shardlings verify {path.stem}"
    out.print(told, markup=False, highlight=False, soft_wrap=True)


@app.command()
def doctor(
    attack: Annotated[
        bool, typer.Option("--attack", help="run the attack corpus here and print what it gained")
    ] = False,
    isolation: Isolation = "auto",
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, max=64)] = 2,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Say what works on this machine and what to install; with --attack, try to break it."""
    if attack:
        raise typer.Exit(machine.attack(best_tier(isolation), jobs))
    try:
        found = course_at(course)
    except CourseError:
        found = None
    lines = machine.examine(found.config.devices if found else 8, found, isolation)
    if found and found.seed_problem:
        lines.append(machine.Line("seed", False, found.seed_problem))
    if as_json:
        print_json([vars(line) for line in lines])
    else:
        for line in lines:
            out.print(
                f"{'✓' if line.ok else '✗'} {line.name}: {line.told}", markup=False, highlight=False, soft_wrap=True
            )
    raise typer.Exit(FAILED if any(line.needed and not line.ok for line in lines) else 0)


def grade_nbgrader(folder: Path, assignments: list[str], jobs: int, isolation: str, again: bool, as_json: bool) -> int:
    """Grade an nbgrader assignment into its gradebook; the exit code."""
    if problem := machine.jax_problem():
        raise CourseError(problem)
    if len(assignments) != 1:
        raise CourseError("with --nbgrader DIR, name one assignment: shardlings grade --nbgrader DIR ASSIGNMENT")
    try:
        from grader.integrations.nbgrader import batch
    except ModuleNotFoundError as missing:
        raise CourseError(f"{missing.name} is not installed; run: pip install 'shardlings[nbgrader]'") from None
    asked = "" if isolation == "auto" else isolation
    done = batch.grade(
        folder, assignments[0], lambda total: progress(total, quiet=as_json), jobs=jobs, isolation=asked, again=again
    )
    if as_json:
        print_json(vars(done))
    else:
        told = f"{len(done.graded)} graded, {len(done.kept)} as before  (isolation: {done.tier})"
        out.print(told, highlight=False)
        out.print(f"next: cd {folder} && nbgrader generate_feedback {assignments[0]}", style="dim", soft_wrap=True)
        if done.no_secret:
            told = f"not through the exchange, so nbgrader release_feedback stops at them: {a_few(done.no_secret)}; "
            tell("note", f"{told}hand them feedback/STUDENT/{assignments[0]}/ yourself")
        needed = [report.Attention(student=s, reason="; ".join(why)) for s, why in done.attention.items()]
        report.print_attention(needed, out)
    for student in done.pending:
        tell("shardlings", f"{student} waits for a person: the grader itself failed there")
    for student, error in done.failures.items():
        tell("shardlings", f"{student} was not graded: {error}")
    return BROKEN if done.failures or done.pending else 0


@app.command()
def submit(
    module: Annotated[str, typer.Argument(help="the module to hand in")],
    work: Annotated[
        Path | None, typer.Option("--work", help="your folder or notebook; default: exercises/ or here")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="write a zip there, even where nbgrader could take the work")
    ] = None,
    course: CourseOption = None,
    student: Student = "",
) -> None:
    """Hand in a module: runs the public checks, says what is missing, and gives it to nbgrader or makes a zip."""
    from grader.batch import submit as submitting
    from grader.integrations.nbgrader import exchange

    found = course_at(course, [work] if work else [], packaged=True)
    listed = found.module(module)
    place, who = work_in(found, work), student_name(found, student)
    with own_grader(found) as grader:
        ready = submitting.prepare(found, listed.id, place, who, grader)
    report.print_report(ready.report, out)
    for exercise, tasks in ready.missing.items():
        told = f"missing in {exercise}: {report.clean(', '.join(tasks))}"
        out.print(told, style="yellow", markup=False, highlight=False, soft_wrap=True)
    near = (place.resolve(), place.resolve() / listed.id)
    inside = next((p for p in near if (p / f"{listed.id}.ipynb").is_file()), None)
    if to is None and inside is not None and inside.name == listed.id and exchange.configured():
        told = f"handed in: {exchange.submit(inside)}"
    else:
        path = submitting.write_zip(found, listed.id, place, ready, to or Path(), student or submitting.login())
        told = f"wrote {path}; upload it as it is"
    out.print(told, style="bold", markup=False, highlight=False, soft_wrap=True)


@app.command("export")
def export_(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="what grade wrote; for gradescope: the zip to write")],
    to: Annotated[str, typer.Option("--to", help="csv, canvas or gradescope")],
    file: Annotated[Path | None, typer.Option("--file", help="where to write; default: in OUT")] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="gradescope: these exercises or modules")] = None,
    isolation: Isolation = "auto",
    roster: RosterOption = None,
    course: CourseOption = None,
) -> None:
    """Write grades for others to import: csv (a line per check), canvas, or a Gradescope autograder."""
    from grader.integrations import gradescope

    if to == "gradescope":
        path = folder if folder.suffix == ".zip" else folder / "autograder.zip"
        found = course_at(course)
        names = found.select(only or [])
        gradescope.write_zip(found, names, path, isolation=isolation)
        worth = f"set the assignment to {gradescope.points(found, names):g} points; extensions count on top of them"
        out.print(worth, markup=False, highlight=False, soft_wrap=True)
    elif to == "csv":
        path = file or folder / "results.csv"
        export.write_csv(export.load(folder), path)
    elif to == "canvas":
        path, found = file or folder / "canvas.csv", course_at(course)
        extensions = frozenset(e for e in found.module_of if found.exercise(e).extension)
        known = export.Roster(roster) if roster else None
        for student in export.write_canvas(export.load(folder), path, extensions, known):
            tell("note", f"{student} is not in the roster, and not in the file")
    else:
        raise CourseError(f"no format {to!r}; there are csv, canvas and gradescope")
    out.print(f"wrote {path}", markup=False, highlight=False, soft_wrap=True)


nbgrader_app = typer.Typer(no_args_is_help=True, help="Course folders for nbgrader.", rich_markup_mode=None)
app.add_typer(nbgrader_app, name="nbgrader")


@nbgrader_app.command("init")
def nbgrader_init(
    folder: Annotated[Path, typer.Argument(help="the course folder to make or refresh")],
    course: CourseOption = None,
) -> None:
    """Make a course folder for nbgrader: one assignment per module, and the grader plugged in."""
    from grader.integrations.nbgrader import folder as folders

    changed = folders.init(course_at(course), folder)
    for path in changed:
        out.print(f"{folder}/{path}", highlight=False, markup=False, soft_wrap=True)
    out.print(f"{len(changed)} files written" if changed else f"{folder} is current")
    if changed:
        out.print(f"next: cd {folder} && nbgrader generate_assignment MODULE", style="dim", soft_wrap=True)


@nbgrader_app.command("scan")
def nbgrader_scan(
    folder: Annotated[Path, typer.Argument(help="nbgrader's course folder")],
    course: CourseOption = None,
) -> None:
    """Look for what students must not get, in everything that nbgrader has made or collected.

    Without --course: the course that the folder's nbgrader_config.py names.
    """
    from grader.integrations.nbgrader import folder as folders
    from grader.integrations.nbgrader import scan

    found = course_at(course or folders.course_of(folder), [folder])
    if not found.solved:
        raise CourseError("there is no solutions/ here to look for; go to the course's folder or pass --course")
    if not any((folder / step).is_dir() for step in scan.STEPS):
        raise CourseError(f"{folder} is no course folder of nbgrader's: it has no source/, release/ or submitted/")
    told = [f"{path}: {what}" for path, what in scan.scan(found, folder)]
    for line in told:
        out.print(report.clean(line, 400), markup=False, highlight=False, soft_wrap=True)
    out.print(f"{len(told)} leaks" if told else "nothing leaks")
    raise typer.Exit(FAILED if told else 0)


def print_json(data: Any) -> None:
    typer.echo(json.dumps(data, indent=2, sort_keys=True, default=str))


@app.command()
def mutants(
    names: Names = None,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, max=64)] = 2,
    isolation: Isolation = "none",
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=1000, help="seeds to try mutants with")] = 1,
    course: CourseOption = None,
    as_json: AsJson = False,
) -> None:
    """Prove the checks: change every reference a little, in every way we know, and see that it fails."""
    from grader.authoring import mutants as mutation

    found = course_at(course)
    if not found.solved:
        raise CourseError("there is no solutions/ here to change")
    chosen, listed = found.select(names or []), mutation.equivalents(found)
    found = mutation.impatient(found)
    chosen, unusable = found.usable(chosen)
    tell_unusable(unusable)
    total = sum(len(mutation.mutants_of(found.exercise(n))) for n in chosen)
    with Grader(found, best_tier(isolation), jobs) as grader, progress(total, quiet=as_json) as step:
        proofs = mutation.prove(grader, chosen, listed, step, seeds)
    others = list(mutation.course_problems(found, proofs, listed))
    if as_json:
        print_json(mutation.as_json(proofs, others))
    else:
        head = f"{'exercise':26} {'mutants':>8} {'killed':>8} {'(not run)':>10} {'equivalent':>11} {'survived':>9}"
        out.print(head, highlight=False)
        for proof in proofs:
            killed, same, alive = (proof.count(fate) for fate in ("killed", "equivalent", "survived"))
            dead = f"{len(proof.verdicts):8} {killed:8} {proof.not_run:10}"
            out.print(f"{proof.exercise:26} {dead} {same:11} {alive:9}", highlight=False)
            for problem in proof.problems:
                out.print(f"    {report.clean(problem, 400)}", markup=False, highlight=False, soft_wrap=True)
            for name in proof.unproven:
                out.print(f"    nothing proves that {name} can fail", markup=False, highlight=False)
        total, killed = sum(len(p.verdicts) for p in proofs), sum(p.count("killed") for p in proofs)
        out.print(f"{total} mutants, {killed} killed ({killed / max(total, 1):.1%})", highlight=False)
        for problem in others:
            out.print(report.clean(problem), markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(UNUSABLE if unusable else FAILED if others or any(p.problems for p in proofs) else 0)


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main()
