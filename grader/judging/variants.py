"""Which parameters a learner's question has, and whose question a wrong answer fits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from grader.exercise import AuthorError, Number
from grader.judging.numbers import is_close
from grader.judging.reading import Answer
from grader.judging.units import unit_of


def params_for(question: Number, *, seed: str, student: str | None) -> dict[str, Any]:
    """Draw one variant of a question.

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
    return variants[int.from_bytes(digest, "big") % len(variants)]


def fits_another(
    question: Number, answer: Answer, own: Mapping[str, Any], others: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Other students whose question a wrong answer is right for: something for the staff to look at, never a verdict.

    Args:
        answer: as parsed.
        own: the parameters of the student who gave it.
        others: parameters by student.

    Returns:
        Their names, sorted; empty when the answer is right for ``own`` or is another kind of quantity.
    """
    if answer.dimension != unit_of(question.unit)[1] or is_close(answer.value, question(**own), question.rtol):
        return []
    return sorted(s for s, params in others.items() if is_close(answer.value, question(**params), question.rtol))
