"""The right answers to a learner's questions, by the author's own functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import Exercise, Misconception, Number
from grader.judging.units import unit_of


def answers(course: Course, exercise: Exercise, student: str) -> dict[str, str]:
    """The right answers to a student's questions, as text with a unit."""
    return {q.name: answer_text(q, answer_of(q, course.params(q, student))) for q in exercise.numbers.values()}


def answer_of(question: Number | Misconception, params: Mapping[str, Any]) -> float:
    """What an author's function answers. Raises CourseError where it raises anything."""
    try:
        return question.fn(**params)
    except Exception as error:  # the function is the author's
        raise CourseError(f"{question.name} has no answer: {type(error).__name__}: {error}") from None


def answer_text(question: Number, value: float) -> str:
    """``value`` (in the course's base units) in the question's unit."""
    factor, _ = unit_of(question.unit)
    return f"{value / factor!r} {question.unit}".strip()
