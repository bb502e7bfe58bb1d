"""A made-up question with its misconceptions, for tests that judge, print and prove questions."""

from __future__ import annotations

from typing import Any

from grader.exercise import Exercise, Misconception, Question


def declare(**options: Any) -> tuple[Question, list[Misconception]]:
    """Declare a question whose right answer is 559 us with n=559, and three misconceptions of it."""
    exercise = Exercise()
    options = {"unit": "us", "params": {"n": [559, 700]}, "model": "a made-up model", **options}

    @exercise.number(points=2, **options)
    def waiting(n):
        """A queue of {{ n }} waits. How long?"""
        return n * 1e-6

    @exercise.number(points=1, unit="us", params={"n": [559]})
    def other(n):
        """Another question."""
        return 3 * n * 1e-6

    @exercise.misconception(of=waiting)
    def both_ways(n):
        """You used both directions."""
        return n * 1e-6 / 2

    @exercise.misconception(of=waiting)
    def nearly_both_ways(n):
        """You used nearly both directions."""
        return n * 1e-6 / 2 * 1.015

    @exercise.misconception(of=other)
    def of_the_other(n):
        """A misconception of another question."""
        return n * 1e-6 * 5

    return waiting, list(exercise.misconceptions.values())
