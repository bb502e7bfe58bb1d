"""The learner's commands: list, show, check and submit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.batch.begun import graded_if_begun
from grader.batch.compiling import Compiler
from grader.batch.devices import Devices
from grader.batch.grade import Grader
from grader.batch.here import Here
from grader.batch.submit import Ready
from grader.cli.backend import BackendOption, Processes, beside_at
from grader.cli.console import FAILED, UNUSABLE, busy, exit_code, out, points, print_json, say, tell, tell_unusable
from grader.cli.options import AsJson, CourseOption, Names, Student, Work, course_at, student_name, usual_place, work_in
from grader.common.result import Report
from grader.course.config import CourseError
from grader.course.finding import PACKAGED
from grader.course.loading import Course
from grader.course.stubs import page
from grader.exercise import Exercise, Quantity
from grader.intake.reading import read
from grader.intake.submission import Submission
from grader.judging.kinds import kind_name
from grader.judging.questions import render_question
from grader.reports.overview import print_first_failure, print_left, print_overview
from grader.reports.points import counted
from grader.reports.statement import print_markdown
from grader.reports.terminal import print_report
from grader.reports.untrusted import clean
from grader.reports.wording import first_failure, is_begun, is_unfinished
from grader.sandbox.tiers import best_tier, environment

LIST_WIDTH = 76
WITH_SOLUTIONS = "Hidden checks and answers were judged as well, since the solutions are here."


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
    else:
        print_list(found, rows)
    tell_unusable(unusable)
    raise typer.Exit(UNUSABLE if unusable else 0)


def print_list(course: Course, rows: list[dict[str, Any]]) -> None:
    """Each module with the rows of its exercises; names stand whole, however narrow the terminal."""
    for module in course.config.modules:
        due = f" — due {module.deadline:%Y-%m-%d %H:%M}" if module.deadline else ""
        out.print(f"\n[bold]{module.id}[/bold]  {module.title}{due}", highlight=False)
        listed = [row for row in rows if row["module"] == module.id]
        if out.width >= LIST_WIDTH:
            table = Table.grid(padding=(0, 2, 0, 0))
            for row in listed:
                table.add_row(f"  {row['exercise']:26}", f"{'*' * row['stars']:4}", f"{worth(row):>17}", row["title"])
            out.print(table, highlight=False, markup=False)
            continue
        for row in listed:
            say(f"  {row['exercise']}", style="bold")
            about = Text(f"{'*' * row['stars']} {worth(row)}  {row['title']}")
            out.print(Padding(about, (0, 0, 0, 4)), highlight=False)


def worth(row: Mapping[str, Any]) -> str:
    """``2 points``, ``2.5 bonus points``."""
    amount = points(row["points"])
    return amount.replace(" ", " bonus ") if row["extension"] else amount


def show(
    name: Annotated[str, typer.Argument(help="an exercise or a question")],
    hint: Annotated[int, typer.Option("--hint", min=0, help="show the first N hints, and nothing else")] = 0,
    course: CourseOption = None,
    student: Student = "",
    as_json: AsJson = False,
) -> None:
    """Show an exercise: its statement, my numbers and what is checked; or hints alone, of a task, a question or all of it."""
    found = course_at(course, packaged=True)
    _, unusable = found.usable(found.module_of)
    several, only = found.find(name, lambda exercise: [*exercise.questions, *exercise.tasks])
    if len(several) > 1:
        raise CourseError(f"{name} has several exercises: show one of {', '.join(several)}")
    chosen = several[0]
    tell_unusable({e: reason for e, reason in unusable.items() if e != chosen}, "note")
    exercise = found.exercise(chosen)
    hints = hints_of(exercise, only, hint)
    if only in exercise.tasks:  # a function is told of where its exercise is
        if not hint:
            tell("note", f"{only} is a function of {chosen}")
        only = None
    questions = questions_for(found, exercise, student_name(found, student), only)
    if as_json:
        checks = [{"label": c.label, "points": c.points} for c in exercise.checks.values()]
        print_json({"exercise": exercise.id, "statement": exercise.statement, "checks": checks,
                    "hidden_points": exercise.hidden_points, "questions": questions, "hints": hints})  # fmt: skip
        return
    if hint:
        print_hints(exercise, name, hints, hint)
        return
    if only is None:
        print_statement(exercise, solved=found.solved)
    for question in questions:
        out.print(f"\nQuestion {question['name']} ({points(question['points'])})", style="bold")
        out.print(question["text"], markup=False, highlight=False)
    if only is None:
        steps = [f"Write: {written_in(found, exercise)}", f"Check: shardlings check {exercise.id}"]
        if hints_of(exercise, None, 1):
            steps.append(f"Stuck? shardlings show {exercise.id} --hint 1")
        out.print("\n" + "\n".join(steps), style="dim", markup=False, highlight=False)


def hints_of(exercise: Exercise, only: str | None, most: int) -> dict[str, list[str]]:
    """The first hints of each task and question that has any, or of the one of this name."""
    named = {**exercise.tasks, **exercise.questions}
    return {name: list(of.hints[:most]) for name, of in named.items() if of.hints[:most] and only in (None, name)}


def print_hints(exercise: Exercise, name: str, hints: Mapping[str, Sequence[str]], most: int) -> None:
    """The hints alone: who asks for one has read the statement."""
    for of, texts in hints.items():
        for number, text in enumerate(texts, 1):
            out.print(f"Hint {number} for {of}: {text}", markup=False, highlight=False)
    if not hints:
        say(f"there are no hints for {name}")
    elif any(most < len(owner.hints) for of in hints if (owner := {**exercise.tasks, **exercise.questions}[of])):
        say(f"More? shardlings show {name} --hint {most + 1}", style="dim")


def written_in(course: Course, exercise: Exercise) -> str:
    """The file to write into, as it is named from here, and the notebook beside it; by name where they lie elsewhere."""
    if course.root == PACKAGED:
        return "shardlings start FOLDER copies the exercises, to write into"
    module = course.module_of[exercise.id]
    path = usual_place(course) / module / f"{exercise.id}.py"
    return f"{os.path.relpath(path) if path.is_file() else path.name} or {module}.ipynb beside it"


def questions_for(course: Course, exercise: Exercise, student: str, only: str | None) -> list[dict[str, Any]]:
    """The exercise's questions, or the one of this name, with the student's numbers."""
    return [
        {
            "name": q.name,
            "points": q.points,
            "kind": kind_name(q),
            "unit": q.answer.unit if isinstance(q.answer, Quantity) else "",
            "text": render_question(q, course.params(q, student)),
        }
        for q in exercise.questions.values()
        if only in (None, q.name)
    ]


def print_statement(exercise: Exercise, *, solved: bool) -> None:
    """What is to be done, and what is checked of it."""
    print_markdown(page(exercise), out)
    if exercise.checks:
        out.print("\n[bold]Checked" + ("" if solved else " before you submit") + "[/bold]")
    for check in exercise.checks.values():
        out.print(f"  {check.points:>4g}  {check.label}", markup=False, highlight=False)
    if exercise.hidden_points:
        out.print(f"  {exercise.hidden_points:>4g}  hidden checks, when your work is graded")


def check(
    names: Names = None,
    work: Work = None,
    isolation: Annotated[
        str, typer.Option("--isolation", help="auto, sandlock, bwrap or none; for work that is not yours")
    ] = "none",
    backend: BackendOption = "cpu",
    processes: Processes = 1,
    course: CourseOption = None,
    student: Student = "",
    as_json: AsJson = False,
) -> None:
    """Check my own work with the public checks; where the solutions are, with all, and my answers, too.

    Without names: what is begun and what is not, and the first failure. Without isolation: it is your code on your machine.
    """
    found = course_at(course, [work] if work else [], packaged=True)
    chosen = found.asked(names or [])
    place, tier = work_in(found, work), best_tier(isolation)
    if tier != "none" and course is None:
        refuse_course_beside(found, place)
    if tier == "none" and work is not None:
        tell("note", f"{place} is run as it is, without a sandbox; for work that is not yours pass --isolation auto")
    submission = read(place, student_name(found, student), found.module_of, found.handed_out)
    begun = begun_of(found, submission, chosen, names or ["the course"], place)
    chosen, unusable = found.usable(chosen if names else begun)
    tell_unusable(unusable)
    if not chosen:
        raise typer.Exit(UNUSABLE)
    in_short = not (as_json or names or len(chosen) == 1)
    doing = f"checking {counted(len(chosen), 'exercise')}, a second or more for each"
    beside = beside_at(backend, processes, found, tier)
    with own_grader(found, tier, *beside) as grader, busy(doing, quiet=as_json):
        grade = partial(graded_if_begun, grader) if in_short else grader.grade
        graded = grade(submission, chosen, public=not found.solved)
    if in_short:
        print_in_short(found, graded)
    elif as_json:
        typer.echo(graded.dumps(), nl=False)
    else:
        print_report(graded, out)
        print_judged(found, chosen)
        for name in traced_and_wrong(found, graded)[:1]:
            say(f"What your functions do, collective by collective: shardlings explain {name}", style="dim")
    left = any(not e.handed_in for e in graded.exercises)
    raise typer.Exit(UNUSABLE if unusable else exit_code([graded], student=True) or (FAILED if left else 0))


def traced_and_wrong(course: Course, graded: Report) -> list[str]:
    """The exercises in which a program of the learner's fails for what it does: ``explain`` shows that."""
    return [
        e.exercise
        for e in graded.exercises
        for r in [first_failure(e)]
        if r is not None and r.status == "failed" and not is_unfinished(r) and r.kind == "check"
        if (task := course.exercise(e.exercise).tasks.get(r.task)) and task.kind != "function"
    ]


def print_judged(course: Course, names: Sequence[str]) -> None:
    """What was judged of these exercises, where that is not plain."""
    if course.solved:
        out.print(WITH_SOLUTIONS)
    elif hidden := sum(course.exercise(name).hidden_points * course.weight(name) for name in names):
        out.print(f"Hidden checks decide on {points(hidden)} more when your work is graded.")


def print_in_short(course: Course, graded: Report) -> None:
    """A line for each exercise that is begun, the first failure, and how to see more."""
    print_overview(graded, {m.id: m.title for m in course.config.modules}, out)
    out.print()
    if failing := print_first_failure(graded, out):
        out.print()
        say(
            f"All of it: shardlings check {failing.exercise}; again whenever you save: shardlings watch {failing.exercise}"
        )
    elif waiting := next((e.exercise for e in graded.exercises if not is_begun(e)), None):
        say(f"Next: shardlings show {waiting}, then shardlings watch {waiting}")
    if course.solved:
        out.print(WITH_SOLUTIONS)


def refuse_course_beside(course: Course, place: Path) -> None:
    """Work that is to be confined may not choose the course that judges it."""
    if place.resolve().is_relative_to(course.root.resolve()) and not course.solved:
        raise CourseError(
            f"{course.root / 'course.yaml'} lies beside the work that is to be confined, and a course is code: "
            "pass the one to trust, --course FOLDER"
        )


def begun_of(course: Course, submission: Submission, chosen: list[str], names: list[str], place: Path) -> list[str]:
    """Those of the chosen exercises that the work has, one at least."""
    if begun := [e for e in chosen if e in submission.sources]:
        return begun
    first = chosen[0]
    raise CourseError(
        f"nothing of {', '.join(names)} in {place}: looked for files such as {first}.py and "
        f"{course.module_of[first]}.ipynb; go to your work or pass --work FOLDER"
    )


def own_grader(
    course: Course, tier: str = "none", devices: Devices | None = None, compiler: Compiler | None = None
) -> Grader:
    """For one's own work: usually without isolation, and in this process where there is no fork (Windows)."""
    if hasattr(os, "fork"):
        return Grader(course, tier, devices=devices, compiler=compiler)
    os.environ.update(environment(course.config.devices) | {"PATH": os.environ.get("PATH", "")})
    return Grader(course, "none", here=Here({}, compiler), compiler=compiler)


def submit(
    module: Annotated[str, typer.Argument(help="the module to hand in")],
    work: Work = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="write a zip there, even where nbgrader could take the work")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="print every result, as check does")] = False,
    course: CourseOption = None,
    student: Student = "",
) -> None:
    """Hand in a module: runs the public checks, says what is missing, and gives it to nbgrader or makes a zip."""
    from grader.batch import submit as submitting
    from grader.integrations.nbgrader import exchange

    found = course_at(course, [work] if work else [], packaged=True)
    listed = found.module_begun(module)
    place, who = work_in(found, work), student_name(found, student)
    near = (place.resolve(), place.resolve() / listed.id)
    inside = next((p for p in near if p.name == listed.id and (p / f"{listed.id}.ipynb").is_file()), None)
    exchanged = inside if to is None and exchange.configured() else None
    named = "" if exchanged else student or submitting.login()  # asked before anything is checked
    with own_grader(found) as grader, busy(f"checking {listed.id}, some seconds"):
        ready = submitting.prepare(found, listed.id, place, who, grader)
    if full:
        print_report(ready.report, out)
    else:
        print_left(ready.report, {listed.id: listed.title}, out)
    print_missing(ready)
    if exchanged:
        say(f"handed in: {exchange.submit(exchanged)}", style="bold")
    else:
        path = submitting.write_zip(found, listed.id, place, ready, to or Path(), named)
        say(f"wrote {path}; upload it as it is", style="bold")


def print_missing(ready: Ready) -> None:
    """What is not done yet in exercises that are begun; which are not begun stands above."""
    for exercise in filter(is_begun, ready.report.exercises):
        if tasks := ready.missing.get(exercise.exercise):
            say(f"missing in {exercise.exercise}: {clean(', '.join(tasks))}", style="yellow")
