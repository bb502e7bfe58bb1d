"""Which parameters a learner's question has, and whose question a wrong answer fits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
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
    variants = list(question.variants())
    if not variants:
        raise AuthorError(f"{question.name}: no parameters satisfy its `where`")
    who = ["shared"] if student is None else ["student", student]  # a student may be called "shared"
    digest = hashlib.sha256(json.dumps([seed, question.name, *who]).encode()).digest()
    drawn = dict(variants[int.from_bytes(digest, "big") % len(variants)])
    if isinstance(question.answer, Choice):
        drawn[ORDER] = sorted(question.answer.options, key=lambda key: hashlib.sha256(digest + key.encode()).digest())
    return drawn


def fits_another(
    question: Question, text: str, own: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Other students whose question a wrong answer is right for: something for the staff to look at, never a verdict.

    Args:
        text: the answer, as it was shown back.
        own: the parameters of the student who gave it.
        others: parameters by student.

    Returns:
        Their names, sorted; empty when the answer is right for ``own`` or cannot be read, and where a right one may be luck,
        as of a choice.
    """
    if kind_name(question) not in TELLING or _fits(question, text, own):
        return []
    return sorted(student for student, params in others.items() if _fits(question, text, params))


def _fits(question: Question, text: str, params: Mapping[str, Any]) -> bool:
    kind = kind_of(question, params)
    try:
        given = kind.read(text)
    except BadAnswer:
        return False
    return kind.distance(given, wanted(question, question.fn, params, kind)) is not None
