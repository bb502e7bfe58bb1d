"""Output of ``shardlings list`` and ``shardlings show``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.cli.console import UNUSABLE, out, print_json, say, tell, tell_unusable
from grader.cli.options import usual_place
from grader.course.config import CourseError, Module
from grader.course.finding import PACKAGED
from grader.course.loading import Course
from grader.course.stubs import further, module_page
from grader.exercise import Exercise, Quantity
from grader.judging.answers import kind_name, render_question
from grader.reports.points import counted
from grader.reports.statement import print_markdown

LIST_WIDTH = 76


def list_all(found: Course, *, as_json: bool) -> int:
    """Print all modules with their exercises, and return the exit code."""
    good, unusable = found.usable(found.module_of)
    rows = [row for module in found.config.modules for row in rows_of(found, module, good)]
    if as_json:
        print_json(rows)
    else:
        for module in found.config.modules:
            print_module(module, [row for row in rows if row["module"] == module.id])
    tell_unusable(unusable)
    return UNUSABLE if unusable else 0


def rows_of(found: Course, module: Module, good: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each exercise of a module. ``good``: the exercises that can be loaded; only these get rows."""
    return [
        {
            "module": module.id,
            "exercise": name,
            "title": found.exercise(name).title,
            "stars": found.exercise(name).stars,
            "points": found.exercise(name).points * module.weight,
            "extension": found.exercise(name).extension,
            "deadline": module.deadline.isoformat() if module.deadline else None,
        }
        for name in module.exercises
        if name in good
    ]


def print_module(module: Module, rows: list[dict[str, Any]]) -> None:
    """Print a module and the rows of its exercises. Names are never shortened, even on a narrow terminal."""
    due = f" — due {module.deadline:%Y-%m-%d %H:%M}" if module.deadline else ""
    out.print(f"\n[bold]{module.id}[/bold]  {module.title}{due}", highlight=False)
    if out.width >= LIST_WIDTH:
        table = Table.grid(padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(f"  {row['exercise']:26}", f"{'*' * row['stars']:4}", f"{worth(row):>17}", row["title"])
        out.print(table, highlight=False, markup=False)
        return
    for row in rows:
        say(f"  {row['exercise']}", style="bold")
        about = Text(f"{'*' * row['stars']} {worth(row)}  {row['title']}")
        out.print(Padding(about, (0, 0, 0, 4)), highlight=False)


def worth(row: Mapping[str, Any]) -> str:
    """Return an exercise's points as text: ``2 points`` or ``2.5 bonus points``."""
    amount = counted(row["points"], "point")
    return amount.replace(" ", " bonus ") if row["extension"] else amount


def show_one(found: Course, name: str, student: str, *, hint: int, more: bool, as_json: bool) -> None:
    """Print the module, exercise or question with this name, with the student's numbers.

    Args:
        hint: the number of hints to print; 0 to print everything else.
        more: True to print only the text below 'Going further'.
    """
    good, unusable = found.usable(found.module_of)
    if module := found.module_called(name):
        found.asked([name])
        tell_unusable({e: reason for e, reason in unusable.items() if e in module.exercises}, "note")
        show_module(found, module, good, alone=bool(hint or more), as_json=as_json)
        return
    several, only = found.find(name, lambda exercise: [*exercise.questions, *exercise.tasks])
    if len(several) > 1:
        raise CourseError(f"{name} has several exercises: show one of {', '.join(several)}")
    chosen = several[0]
    tell_unusable({e: reason for e, reason in unusable.items() if e != chosen}, "note")
    exercise = found.exercise(chosen)
    hints = hints_of(exercise, only, hint)
    # A task, unlike a question, is shown with its whole exercise.
    if only in exercise.tasks:
        if not hint:
            tell("note", f"{only} is a function of {chosen}")
        only = None
    questions = questions_for(found, exercise, student, only)
    if as_json:
        checks = [{"label": c.label, "points": c.points} for c in exercise.checks.values()]
        print_json({"exercise": exercise.id, "statement": exercise.statement, "further": exercise.further,
                    "checks": checks, "hidden_points": exercise.hidden_points, "questions": questions,
                    "hints": hints})  # fmt: skip
    elif hint:
        print_hints(exercise, name, hints, hint)
    elif more:
        print_markdown(further(exercise) or f"{chosen} has no text below 'Going further'.", out)
    else:
        print_one(found, exercise, questions, whole=only is None)


def show_module(found: Course, module: Module, good: Sequence[str], *, alone: bool, as_json: bool) -> None:
    """Print a module's notes and the list of its exercises. Raises CourseError if the user asked for hints or for more.

    Args:
        good: the exercises that can be loaded.
        alone: whether the user asked for a part of a single exercise, such as a hint.
    """
    rows = rows_of(found, module, good)
    if alone:
        one = rows[0]["exercise"] if rows else module.exercises[0]
        raise CourseError(f"{module.id} is a module: name one of its exercises, such as {one}")
    page = module_page(found, module.id)
    if as_json:
        print_json({"module": module.id, "title": module.title, "page": page, "exercises": rows})
        return
    print_markdown(page, out)
    print_module(module, rows)


def print_one(found: Course, exercise: Exercise, questions: list[dict[str, Any]], *, whole: bool) -> None:
    """Print questions. If ``whole``, print the statement first, and the next commands at the end."""
    if whole:
        print_statement(exercise, solved=found.solved)
    for question in questions:
        out.print(f"\nQuestion {question['name']} ({counted(question['points'], 'point')})", style="bold")
        out.print(question["text"], markup=False, highlight=False)
    if whole:
        steps = [f"Write: {written_in(found, exercise)}", f"Check: shardlings check {exercise.id}"]
        if hints_of(exercise, None, 1):
            steps.append(f"Stuck? shardlings show {exercise.id} --hint 1")
        if exercise.further:
            steps.append(f"More: shardlings show {exercise.id} --more")
        out.print("\n" + "\n".join(steps), style="dim", markup=False, highlight=False)


def hints_of(exercise: Exercise, only: str | None, most: int) -> dict[str, list[str]]:
    """Return the first ``most`` hints of each task and question, or only of the task or question named ``only``."""
    named = {**exercise.tasks, **exercise.questions}
    return {name: list(of.hints[:most]) for name, of in named.items() if of.hints[:most] and only in (None, name)}


def print_hints(exercise: Exercise, name: str, hints: Mapping[str, Sequence[str]], most: int) -> None:
    """Print hints without the statement, because learners read the statement before they ask for hints."""
    for of, texts in hints.items():
        for number, text in enumerate(texts, 1):
            out.print(f"Hint {number} for {of}: {text}", markup=False, highlight=False)
    if not hints:
        say(f"there are no hints for {name}")
    elif any(most < len(owner.hints) for of in hints if (owner := {**exercise.tasks, **exercise.questions}[of])):
        say(f"More? shardlings show {name} --hint {most + 1}", style="dim")


def written_in(course: Course, exercise: Exercise) -> str:
    """Return a text that names the file and the notebook to write into, or the command that copies these files."""
    if course.root == PACKAGED:
        return "shardlings start FOLDER copies the exercises for you to write into"
    module = course.module_of[exercise.id]
    path = usual_place(course) / module / f"{exercise.id}.py"
    return f"{os.path.relpath(path) if path.is_file() else path.name} or {module}.ipynb beside it"


def questions_for(course: Course, exercise: Exercise, student: str, only: str | None) -> list[dict[str, Any]]:
    """Return the exercise's questions, or the question named ``only``, with the student's numbers."""
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
    """Print the statement and the checks."""
    print_markdown(exercise.statement, out)
    if exercise.checks:
        out.print("\n[bold]Checked" + ("" if solved else " before you submit") + "[/bold]")
    for check in exercise.checks.values():
        out.print(f"  {check.points:>4g}  {check.label}", markup=False, highlight=False)
    if exercise.hidden_points:
        out.print(f"  {exercise.hidden_points:>4g}  for hidden checks, which run when your submission is graded")
