"""A hint about a factor of two names the other mistakes that lead to this factor."""

from __future__ import annotations

import pytest

from grader.judging.causes import other_causes

QUESTION = "How long does the all-reduce of A, bfloat16[8, 8], take? W is the bandwidth of a link in both directions."


@pytest.mark.parametrize(
    ("hint", "factor", "question", "more"),
    [
        ("You forgot y.", 2, QUESTION, "check the bytes of a number, the directions of a link, the passes of a collective"),
        ("You forgot y.", 0.5, "How many bytes has A, float32[4]?", "check the bytes of a number"),
        ("You used one direction of the link.", 2, "How long does a gather of bfloat16[4] take?", "check the bytes of a number"),
        ("You counted 4 bytes a number.", 2, "How many bytes has A, bfloat16[4]?", ""),
        ("You counted one pass.", 0.5, "2 FLOPs per term", "check the FLOPs of a term"),
        ("", 2, "2 FLOPs per term", "check the FLOPs of a term"),
        ("You forgot y.", 3, QUESTION, ""),
        ("You forgot y.", 1.99, QUESTION, ""),  # another factor, near 2
        ("You forgot y.", None, QUESTION, ""),
        ("Either you used one direction, or you forgot y.", 2, QUESTION, ""),
        ("You counted half of the hops.", 0.5, "A is float32[4]", "check the bytes of a number"),
        ("Your answer is too large by a factor of two.", 2, QUESTION, ""),
    ],
)  # fmt: skip
def test_other_causes(hint: str, factor: float | None, question: str, more: str) -> None:
    assert other_causes(hint, factor, question) == (f"factor of two is wrong: {more}" if more else "")


def test_a_number_of_the_question_may_be_the_factor() -> None:
    assert other_causes("", 2, "2 FLOPs per term", (2, 8)) == (
        "factor of two is wrong: check the FLOPs of a term, the numbers of the question that are 2"
    )
    assert other_causes("You forgot y.", 2, "", (2, 8)) == ""
