"""What ``list`` and ``show`` print about a course. The cache keeps it, so that few commands load the exercises.

To load the exercises takes seconds, because they import JAX.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel

from grader.common.cache import user_cache
from grader.course.config import PUBLIC, README, CourseError
from grader.course.loading import Course
from grader.integrations.package import PACKAGE


class QuestionContents(BaseModel):
    """A question with a student's numbers. ``unit`` is '' if the answer has none."""

    name: str
    points: int | float
    kind: str
    unit: str
    text: str
    hints: list[str]


class ExerciseContents(BaseModel):
    """An exercise without its code.

    Attributes:
        checks: the label and the points of each check.
        tasks: the hints of each task.
        questions: the questions by name.
    """

    id: str
    title: str
    stars: int
    points: int | float
    extension: bool
    statement: str
    further: str
    checks: list[tuple[str, int | float]]
    hidden_points: int | float
    tasks: dict[str, list[str]]
    questions: dict[str, QuestionContents]

    @property
    def hints(self) -> dict[str, list[str]]:
        """Hints of each task and each question."""
        return self.tasks | {question.name: question.hints for question in self.questions.values()}


class CourseContents(BaseModel):
    """All exercises that can be used, and the reason why an exercise cannot be used.

    Attributes:
        pages: the text for all exercises of a module. A module whose README.md cannot be used has no page.
    """

    exercises: dict[str, ExerciseContents]
    unusable: dict[str, str]
    pages: dict[str, str]

    def page(self, course: Course, module: str) -> str:
        """Return a module's page. Raises CourseError if its README.md cannot be used."""
        from grader.course.stubs import module_page

        return self.pages.get(module) or module_page(course, module)

    def parts(self) -> dict[str, str]:
        """Return the exercise of each question and task."""
        return {part: e.id for e in self.exercises.values() for part in [*e.questions, *e.tasks]}


def contents_of(course: Course, student: str) -> CourseContents:
    """Return the contents of a course, from the cache if no file of the course and the grader has changed."""
    student = student if course.config.variants.mode == "per_student" else ""
    with user_cache() as cache:
        if cache is None:
            return _loaded(course, student)
        key = _key(course, student)
        if (kept := cache.get(key)) is not None:
            return CourseContents.model_validate_json(kept)
        found = _loaded(course, student)
        if not found.unusable:  # the reason may be outside of the files, such as a missing package
            cache.put(key, found.model_dump_json().encode())
        return found


def _loaded(course: Course, student: str) -> CourseContents:
    good, unusable = course.usable(course.module_of)
    return CourseContents(
        exercises={name: _exercise(course, name, student) for name in good},
        unusable=unusable,
        pages=dict(_pages(course)),
    )


def _exercise(course: Course, name: str, student: str) -> ExerciseContents:
    exercise = course.exercise(name)
    return ExerciseContents(
        id=exercise.id, title=exercise.title, stars=exercise.stars, points=exercise.points,
        extension=exercise.extension, statement=exercise.statement, further=exercise.further,
        checks=[(check.label, check.points) for check in exercise.checks.values()],
        hidden_points=exercise.hidden_points,
        tasks={task: list(of.hints) for task, of in exercise.tasks.items()},
        questions=_questions(course, name, student),
    )  # fmt: skip


def _questions(course: Course, name: str, student: str) -> dict[str, QuestionContents]:
    # Imported late, because these modules load JAX.
    from grader.exercise import Quantity
    from grader.judging.answers import kind_name, render_question

    return {
        q.name: QuestionContents(
            name=q.name,
            points=q.points,
            kind=kind_name(q),
            unit=q.answer.unit if isinstance(q.answer, Quantity) else "",
            text=render_question(q, course.params(q, student)),
            hints=list(q.hints),
        )
        for q in course.exercise(name).questions.values()
    }


def _pages(course: Course) -> Iterator[tuple[str, str]]:
    from grader.course.stubs import module_page

    for module in course.config.modules:
        try:
            yield module.id, module_page(course, module.id)
        except CourseError:  # ``show`` of this module raises the error again
            continue


def _key(course: Course, student: str) -> bytes:
    """Return a digest of the student and of all files that the contents depend on.

    The folder ``exercises`` also has the learner's own files. They are left out, because learners often change them.
    """
    places = [PACKAGE, course.root / "course.yaml"]
    for module in course.config.modules:
        places += [course.root / module.id / name for name in (PUBLIC, README)]
    if course.solved:
        places.append(course.root / "solutions")
    digest = hashlib.sha256(repr((student, version("jax"))).encode())
    for path in _files(places):
        digest.update(f"{path}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def _files(places: list[Path]) -> Iterator[Path]:
    for place in places:
        if place.is_file():
            yield place
        yield from sorted(p for p in place.rglob("*") if p.is_file() and p.suffix != ".pyc")
