"""``shardlings nbgrader init``: a course folder in nbgrader's layout, one assignment per module.

Learners may see all files in ``source/``, which nbgrader releases. These files have only texts from ``exercises/``,
points, and nbgrader's metadata.

    DIR/nbgrader_config.py                     plugs the grader in; you may edit it, init never overwrites it
    DIR/source/<module>/<module>.ipynb         the module's notebook with nbgrader's metadata in its cells
    DIR/source/<module>/course.yaml, _public/  files that ``check`` needs in that notebook
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
import yaml

from grader.common.files import write_atomic
from grader.course import notebooks
from grader.course.build import stale
from grader.course.config import PUBLIC, CourseError
from grader.course.loading import Course
from grader.course.public import HEADER
from grader.exercise import Exercise, Question, Written
from grader.reports.points import counted

OUR_CHECK = "from grader.integrations.nbgrader.check import check"
CONFIG = '''\
"""nbgrader's settings for this course. `nbgrader --help-all` lists what else can be set."""

from grader.integrations.nbgrader.plugin import configure

c = get_config()  # noqa: F821  nbgrader defines it
c.CourseDirectory.course_id = {course_id!r}

# Submissions are graded by shardlings, in a sandbox; no notebook is executed.
configure(c, course={course!r})

# The course's checkout, with its solutions. Isolation: auto, sandlock, bwrap, or none (never for a class).
# c.Shardlings.course = {course!r}
# c.Shardlings.isolation = "auto"
# The number of submissions that are graded at a time during `nbgrader autograde`.
# c.Shardlings.jobs = 2

# c.Exchange.root = "/srv/nbgrader/exchange"
# c.LateSubmissionPlugin.penalty_method = "zero"
'''


@lru_cache(10_000)
def cell_name(exercise: str, name: str) -> str:
    """Return the id of an exercise's cell. ``name`` is a task, a question, or "check" for the check cell."""
    return notebooks.cell("markdown", f"{exercise}-{name}", "").id


def check_cell(exercise: str) -> str:
    return cell_name(exercise, "check")


def solution_cells(exercise: Exercise) -> dict[str, str]:
    """Return a dict from each task and question of an exercise to the id of its solution cell."""
    return {name: cell_name(exercise.id, name) for name in (*exercise.tasks, *exercise.questions)}


def cell_points(course: Course, exercise: str) -> float:
    """Return the points of an exercise's check cell, without the points of answers in words; 0 for an extension."""
    found = course.exercise(exercise)
    by_hand = sum(question.points for question in written_questions(found))
    return 0.0 if found.extension else round((found.points - by_hand) * course.weight(exercise), 6)


def written_questions(exercise: Exercise) -> list[Question]:
    """Return the questions with answers in words, which a person grades in nbgrader's formgrader."""
    return [question for question in exercise.questions.values() if isinstance(question.answer, Written)]


def init(course: Course, folder: Path) -> list[str]:
    """Write or update the folder, and return the changed paths. An existing ``nbgrader_config.py`` stays unchanged."""
    if not course.solved:
        raise CourseError("an nbgrader course needs the author's checkout, but this course has no solutions/")
    if stale(course):
        raise CourseError("exercises/ is not current; run: shardlings build")
    config = CONFIG.format(course_id=course.config.name, course=str(course.root.resolve() / "course.yaml"))
    made = {} if (folder / "nbgrader_config.py").exists() else {"nbgrader_config.py": config}
    for module in course.config.modules:
        if module.exercises:
            made |= {f"source/{module.id}/{path}": text for path, text in _assignment(course, module.id).items()}
    there = {path: (folder / path).read_text(encoding="utf-8") for path in made if (folder / path).is_file()}
    changed = [path for path, text in made.items() if there.get(path) != text]
    for path in changed:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / path, made[path])
    return changed


def course_of(folder: Path) -> Path | None:
    """Return the path of the course that the folder's nbgrader_config.py names; None if nbgrader finds no course."""
    if not (folder / "nbgrader_config.py").is_file():
        return None
    try:
        from nbgrader.apps import AutogradeApp
    except ImportError:
        return None
    app: Any = AutogradeApp()
    app.initialize(["--log-level=ERROR"], root=str(folder.resolve()))
    named = app.config.Shardlings.get("course")
    return folder / str(named) if named else None


def _assignment(course: Course, module: str) -> dict[str, str]:
    """Return the files of one module's assignment (path -> content): the notebook, and public files that it needs."""
    given = course.root / "exercises"
    listed = course.module(module).exercises
    public = yaml.safe_load((given / "course.yaml").read_text(encoding="utf-8"))
    public["modules"] = [m for m in public["modules"] if m["id"] == module]
    files = {f"{module}/{PUBLIC}/{e}.py": (given / module / PUBLIC / f"{e}.py").read_text("utf-8") for e in listed}
    files["course.yaml"] = HEADER + yaml.safe_dump(public, sort_keys=False, allow_unicode=True)
    files[f"{module}.ipynb"] = source_notebook(course, module)
    return files


def source_notebook(course: Course, module: str) -> str:
    """Return the module's notebook for learners, with nbgrader's metadata in its cells."""
    notebook = nbformat.reads(notebooks.notebook(course, module), as_version=4)
    roles: dict[str, Any] = {}
    for name in course.module(module).exercises:
        exercise = course.exercise(name)
        roles |= {ident: _marks(ident, solution=True) for ident in solution_cells(exercise).values()}
        for question in written_questions(exercise):
            worth = 0.0 if exercise.extension else round(question.points * course.weight(name), 6)
            ident = cell_name(name, question.name)
            roles[ident] = _marks(ident, solution=True, points=worth)
        roles[check_cell(name)] = _marks(check_cell(name), points=cell_points(course, name))
    for cell in notebook.cells:
        cell.source = cell.source.replace("from grader.notebook import check", OUR_CHECK)
        if cell.id in roles:
            cell.metadata["nbgrader"] = roles[cell.id]
        else:
            cell.metadata.update(deletable=False, editable=cell.cell_type == "code")
    for name in course.module(module).exercises:
        cell = next(c for c in notebook.cells if c.id == check_cell(name))
        cell.source = f"{in_plain_words(course, name)}\n{cell.source}"
    nbformat.validate(notebook)
    return nbformat.writes(notebook) + "\n"


def _marks(ident: str, *, solution: bool = False, points: float | None = None) -> dict[str, Any]:
    graded = {} if points is None else {"points": points}
    grade = points is not None
    marks = {"schema_version": 3, "grade_id": ident, "grade": grade, "solution": solution, "task": False}
    return marks | {"locked": grade and not solution} | graded


def in_plain_words(course: Course, name: str) -> str:
    """Return comment lines with the points of an exercise's checks. For hidden checks, only the total is shown."""
    exercise, weight = course.exercise(name), course.weight(name)
    total = round(exercise.points * weight, 6)
    worth = counted(total, "point") + (", a bonus" if exercise.extension else "")
    lines = [f"# Checks of {name} ({worth}). Here the checks use public inputs. Grading also uses hidden inputs:"]
    public = [c for c in exercise.checks.values() if c.public]
    lines += [f"# {c.points * weight:>5g}  {c.label}" for c in public]
    hidden = sum(c.points * weight for c in exercise.checks.values() if not c.public)
    if hidden:
        lines.append(
            f"# {round(hidden, 6):>5g}  for hidden checks of the statement's other rules; they run only in grading"
        )
    lines += [f"# {q.points * weight:>5g}  {_asked(q)}" for q in exercise.questions.values()]
    return "\n".join(lines)


def _asked(question: Question) -> str:
    if isinstance(question.answer, Written):
        return f"question {question.name}, graded by the staff"
    return (
        f"question {question.name}, within {100 * question.rtol:g}%" if question.rtol else f"question {question.name}"
    )


def texts_given(course: Course) -> frozenset[str]:
    """Return the texts of code cells in which learners write nothing. Grading leaves out cells with these texts."""
    setup = notebooks.setup(course)
    ours = setup.replace("from grader.notebook import check", OUR_CHECK)
    return frozenset(text.strip() for text in (setup, ours, notebooks.by_hand(course.config.devices)))
