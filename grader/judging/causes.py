"""Other causes of a wrong number that a misconception explains.

Many mistakes make a number twice or half as large as the right one. A misconception names only one of these mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

EITHER = re.compile(
    r"\b(either|factor of two|(twice|half|half of) the (right|answer|time|bytes)|may have)\b", re.IGNORECASE
)
"""Matches a hint that already says that the factor can have several causes."""


@dataclass(frozen=True)
class Cause:
    """A possible cause of a factor of two.

    Attributes:
        text: what to check, for the learner.
        asked: matches a question in which this mistake is possible.
        named: matches a hint that names this mistake.
    """

    text: str
    asked: re.Pattern[str]
    named: re.Pattern[str]


DTYPE = re.compile(r"\b(bfloat16|float32|int8)\b")
CAUSES = (
    Cause("the bytes of a number", DTYPE, re.compile(rf"{DTYPE.pattern}|\bbytes (a|per) |not (their )?bytes")),
    Cause(
        "the directions of a link",
        re.compile(r"\blink|direction|\bring"),
        re.compile(r"direction|one[- ]way|both ways|\bW1\b"),
    ),
    Cause("the passes of a collective", re.compile(r"reduce"), re.compile(r"all-reduce|all-gather|\bpass|\bphase")),
    Cause("the FLOPs of a term", re.compile(r"FLOP"), re.compile(r"FLOP|multiplication")),
)


def other_causes(hint: str, factor: float | None, question: str, drawn: Sequence[float] = ()) -> str:
    """Return what to check because of other mistakes that lead to this wrong number; '' if there are none.

    Args:
        hint: the hint of the misconception that leads to the number; '' if no misconception leads to it.
        factor: the wrong number divided by the right one; None if the answer is no number.
        question: the question's text and its model.
        drawn: the numbers drawn for the question.
    """
    doubled = factor is not None and any(abs(factor / due - 1) < 1e-3 for due in (2, 0.5))
    if not doubled or EITHER.search(hint):
        return ""
    texts = [cause.text for cause in CAUSES if cause.asked.search(question) and not cause.named.search(hint)]
    if 2 in drawn and not hint:
        texts.append("the numbers of the question that are 2")
    return f"factor of two is wrong: check {', '.join(texts)}" if texts else ""
