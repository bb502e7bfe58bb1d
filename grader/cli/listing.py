"""Output of ``shardlings list`` and ``shardlings show``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.cli.console import UNUSABLE, out, print_json, say, tell, tell_unusable
from grader.cli.contents import CourseContents, ExerciseContents, QuestionContents, contents_of
from grader.cli.options import usual_place
from grader.course.config import FURTHER, CourseError, Module
from grader.course.finding import PACKAGED
from grader.course.loading import Course
from grader.reports.points import counted
from grader.reports.statement import print_markdown

LIST_WIDTH = 76


def list_all(found: Course, *, as_json: bool) -> int:
    """Print all modules with their exercises, and return the exit code."""
    contents = contents_of(found, "")
    rows = [row for module in found.config.modules for row in rows_of(module, contents)]
    if as_json:
        print_json(rows)
    else:
        for module in found.config.modules:
            print_module(module, [row for row in rows if row["module"] == module.id])
    tell_unusable(contents.unusable)
    return UNUSABLE if contents.unusable else 0


def rows_of(module: Module, contents: CourseContents) -> list[dict[str, Any]]:
    """Return a row for each exercise of a module that can be used."""
    return [
        {
            "module": module.id,
            "exercise": exercise.id,
            "title": exercise.title,
            "stars": exercise.stars,
            "points": exercise.points * module.weight,
            "extension": exercise.extension,
            "deadline": module.deadline.isoformat() if module.deadline else None,
        }
        for name in module.exercises
        if (exercise := contents.exercises.get(name))
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
    contents = contents_of(found, student)
    if module := found.module_called(name):
        found.asked([name])
        tell_unusable({e: why for e, why in contents.unusable.items() if e in module.exercises}, "note")
        show_module(found, module, contents, alone=bool(hint or more), as_json=as_json)
        return
    several, only = found.find(name, contents.parts)
    if len(several) > 1:
        raise CourseError(f"{name} has several exercises: show one of {', '.join(several)}")
    chosen = several[0]
    if chosen in contents.unusable:
        raise CourseError(contents.unusable[chosen])
    tell_unusable(contents.unusable, "note")
    exercise = contents.exercises[chosen]
    hints = hints_of(exercise, only, hint)
    # A task, unlike a question, is shown with its whole exercise.
    if only in exercise.tasks:
        if not hint:
            tell("note", f"{only} is a function of {chosen}")
        only = None
    questions = [q for q in exercise.questions.values() if only in (None, q.name)]
    if as_json:
        print_json(as_data(exercise, questions, hints))
    elif hint:
        print_hints(exercise, name, hints, hint)
    elif more:
        there = f"{FURTHER}\n\n{exercise.further}"
        print_markdown(there if exercise.further else f"{chosen} has no text below 'Going further'.", out)
    else:
        print_one(found, exercise, questions, whole=only is None)


def as_data(
    exercise: ExerciseContents, questions: Sequence[QuestionContents], hints: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Return JSON data for ``show --json``."""
    return {
        "exercise": exercise.id,
        "statement": exercise.statement,
        "further": exercise.further,
        "checks": [{"label": label, "points": points} for label, points in exercise.checks],
        "hidden_points": exercise.hidden_points,
        "questions": [question.model_dump(exclude={"hints"}) for question in questions],
        "hints": hints,
    }


def show_module(found: Course, module: Module, contents: CourseContents, *, alone: bool, as_json: bool) -> None:
    """Print a module's notes and the list of its exercises. Raises CourseError if the user asked for hints or for more.

    Args:
        alone: whether the user asked for a part of a single exercise, such as a hint.
    """
    rows = rows_of(module, contents)
    if alone:
        one = rows[0]["exercise"] if rows else module.exercises[0]
        raise CourseError(f"{module.id} is a module: name one of its exercises, such as {one}")
    page = contents.page(found, module.id)
    if as_json:
        print_json({"module": module.id, "title": module.title, "page": page, "exercises": rows})
        return
    print_markdown(page, out)
    print_module(module, rows)


def print_one(found: Course, exercise: ExerciseContents, questions: Sequence[QuestionContents], *, whole: bool) -> None:
    """Print questions. If ``whole``, print the statement first, and the next commands at the end."""
    if whole:
        print_statement(exercise, solved=found.solved)
    for question in questions:
        out.print(f"\nQuestion {question.name} ({counted(question.points, 'point')})", style="bold")
        out.print(question.text, markup=False, highlight=False)
    if whole:
        steps = [f"Write: {written_in(found, exercise.id)}", f"Check: shardlings check {exercise.id}"]
        if hints_of(exercise, None, 1):
            steps.append(f"Stuck? shardlings show {exercise.id} --hint 1")
        if exercise.further:
            steps.append(f"More: shardlings show {exercise.id} --more")
        out.print("\n" + "\n".join(steps), style="dim", markup=False, highlight=False)


def hints_of(exercise: ExerciseContents, only: str | None, most: int) -> dict[str, list[str]]:
    """Return the first ``most`` hints of each task and question, or only of the task or question named ``only``."""
    return {name: hints[:most] for name, hints in exercise.hints.items() if hints[:most] and only in (None, name)}


def print_hints(exercise: ExerciseContents, name: str, hints: Mapping[str, Sequence[str]], most: int) -> None:
    """Print hints without the statement, because learners read the statement before they ask for hints."""
    for of, texts in hints.items():
        for number, text in enumerate(texts, 1):
            out.print(f"Hint {number} for {of}: {text}", markup=False, highlight=False)
    if not hints:
        say(f"there are no hints for {name}")
    elif any(most < len(exercise.hints[of]) for of in hints):
        say(f"More? shardlings show {name} --hint {most + 1}", style="dim")


def written_in(course: Course, exercise: str) -> str:
    """Return a text that names the file and the notebook to write into, or the command that copies these files."""
    if course.root == PACKAGED:
        return "shardlings start FOLDER copies the exercises for you to write into"
    module = course.module_of[exercise]
    path = usual_place(course) / module / f"{exercise}.py"
    return f"{os.path.relpath(path) if path.is_file() else path.name} or {module}.ipynb beside it"


def print_statement(exercise: ExerciseContents, *, solved: bool) -> None:
    """Print the statement and the checks."""
    print_markdown(exercise.statement, out)
    if exercise.checks:
        out.print("\n[bold]Checked" + ("" if solved else " before you submit") + "[/bold]")
    for label, points in exercise.checks:
        out.print(f"  {points:>4g}  {label}", markup=False, highlight=False)
    if exercise.hidden_points:
        out.print(f"  {exercise.hidden_points:>4g}  for hidden checks, which run when your submission is graded")
