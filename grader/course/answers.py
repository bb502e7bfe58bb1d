"""Right answers to a learner's questions, computed by the author's functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grader.course.config import CourseError
from grader.course.loading import Course
from grader.exercise import Exercise, Misconception, Question
from grader.judging.answers import kind_of, wanted


def answers(course: Course, exercise: Exercise, student: str) -> dict[str, str]:
    """Return the right answer to each question, by the question's name, as text that the student could write."""
    return {q.name: answer_by(q, q, course.params(q, student)) for q in exercise.questions.values()}


def answer_by(author: Question | Misconception, question: Question, params: Mapping[str, Any]) -> str:
    """Return the answer for ``params`` that the author's function of a question or misconception gives.

    Raises CourseError if the function raises an error.
    """
    try:
        kind = kind_of(question, params)
        return kind.written(wanted(question, author.fn, params, kind))
    except Exception as error:  # the author's function may raise any error
        raise CourseError(f"{author.name} has no answer: {type(error).__name__}: {error}") from None
