"""Which parameters a learner's question has, and whose question a wrong answer fits."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from grader.exercise import AuthorError, Choice, Question
from grader.exercise.questions import ORDER
from grader.judging.answers import wanted
from grader.judging.kinds import kind_name, kind_of
from grader.judging.units import BadAnswer

TELLING = ("number", "table")
"""Kinds of answers that nobody guesses."""


def params_for(question: Question, *, seed: str, student: str | None) -> dict[str, Any]:
    """Draw one variant of a question, and of a choice the order of its options.

    The draw is SHA-256 over (seed, question name, student), so it is the same in every process, on
    every platform and for every order of students; it changes only with the question's parameters.

    Args:
        seed: the course's, changed once per term.
        student: whose question; None: one variant that everybody shares.
    """
    variants = _variants(question)
    if not variants:
        raise AuthorError(f"{question.name}: no parameters satisfy its `where`")
    who = ["shared"] if student is None else ["student", student]  # a student may be called "shared"
    digest = hashlib.sha256(json.dumps([seed, question.name, *who]).encode()).digest()
    drawn = dict(variants[int.from_bytes(digest, "big") % len(variants)])
    if isinstance(question.answer, Choice):
        drawn[ORDER] = sorted(question.answer.options, key=lambda key: hashlib.sha256(digest + key.encode()).digest())
    return drawn


class OfAClass:
    """What everybody in a class drew of one question, and whose question a wrong answer is right for.

    Many drew alike: an answer is read once and held against each draw, not against each student.
    """

    def __init__(self, question: Question, params: Mapping[str, Mapping[str, Any]]) -> None:
        """Draws, of which nothing is worked out yet.

        Args:
            params: by student.
        """
        self.question = question
        self._alike: dict[str, tuple[Mapping[str, Any], list[str]]] = {}  # a draw and whose it is
        self._draw_of = {student: repr(drawn) for student, drawn in params.items()}
        for student in sorted(params):
            self._alike.setdefault(self._draw_of[student], (params[student], []))[1].append(student)
        self._right: dict[str, Any] = {}

    def fits_others(self, student: str, text: str) -> list[str]:
        """Others whose question a wrong answer is right for: something for the staff to look at, never a verdict.

        Args:
            student: who gave it.
            text: the answer, as it was shown back.

        Returns:
            Their names, sorted; empty when the answer is right for who gave it or cannot be read, and where a right one
            may be luck, as of a choice.
        """
        if kind_name(self.question) not in TELLING:
            return []
        own, _ = self._alike[self._draw_of[student]]
        kind = kind_of(self.question, own)  # of those that tell, the same for every draw
        try:
            given = kind.read(text)
        except BadAnswer:
            return []

        def fits(draw: str) -> bool:
            if draw not in self._right:
                self._right[draw] = wanted(self.question, self.question.fn, self._alike[draw][0], kind)
            return kind.distance(given, self._right[draw]) is not None

        if fits(self._draw_of[student]):
            return []
        whose = (who for draw, (drawn, who) in self._alike.items() if drawn != own and fits(draw))
        return sorted(itertools.chain.from_iterable(whose))


@cache
def _variants(question: Question) -> list[dict[str, Any]]:
    """All that can be drawn; a question stays as it was declared."""
    return list(question.variants())
