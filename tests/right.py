"""Right submissions: the reference and every alternative of the whole course, as students would submit them."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path

from grader.course.loading import Course
from grader.course.reference import answers, reference_source


def right_sources(course: Course, name: str) -> list[str]:
    """Return the solutions of an exercise that earn all points: its reference, then its alternatives."""
    exercise = course.exercises[name]
    perfect = answers(course, exercise, "perfect")
    replaced = [None, *exercise.alternatives.values()]
    return [reference_source(exercise, perfect, one) for one in replaced]


def right_class(course: Course, folder: Path, module: str = "") -> list[str]:
    """Write one folder per student, and return the students' names. With ``module``, only exercises of this module.

    Student 0 submits the reference of each exercise, and student n the n-th alternative of each exercise that has it.
    """
    names = [name for name in course.exercises if module in ("", course.module_of[name])]
    students = []
    for number, texts in enumerate(zip_longest(*(right_sources(course, name) for name in names))):
        students.append(f"right{number}")
        place = folder / students[-1]
        place.mkdir(parents=True)
        for name, text in zip(names, texts, strict=True):
            if text is not None:
                (place / f"{name}.py").write_text(text, encoding="utf-8")
    return students
