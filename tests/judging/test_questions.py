"""What a learner gets of a question."""

from __future__ import annotations

import pytest

from grader.exercise import Exercise, Question
from grader.exercise.questions import Quantity
from grader.judging.answers import render_question, render_text
from tests.question import declare


def test_what_a_learner_gets():
    question, _ = declare()
    assert render_question(question, {"n": 700}) == (
        "A queue of 700 waits. How long?\n\nAnswer in us (a bare number), or with a unit.\nModel: a made-up model."
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A line\nand its end.", "A line and its end."),
        ("`C` is cut.\nHow long?", "`C` is cut. How long?"),
        ("- one\n- two", "- one\n- two"),
        ("```\ncode\n```", "```\ncode\n```"),
    ],
)
def test_a_paragraph_is_one_line_and_lists_and_code_keep_theirs(text: str, shown: str):
    question = Question("waiting", text, lambda: 1.0, 1, Quantity("us", 0.02))
    assert render_text(question, {}) == shown


def test_the_hardware_row_is_printed_once_for_each_chip():
    exercise = Exercise()

    @exercise.number(points=1, unit="", params={"chip": ["v5e"], "rival": ["H100", "v5e"]})
    def versus(chip, rival):
        """{{ chip }} or {{ rival }}?"""
        return 1.0

    lines = render_question(versus, {"chip": "v5e", "rival": "H100"}).splitlines()
    assert lines[2] == "Answer with a bare number."
    assert [line.split(": ")[:2] for line in lines[3:]] == [["Hardware", "v5e"], ["Hardware", "H100"]]
    assert render_question(versus, {"chip": "v5e", "rival": "v5e"}).count("Hardware") == 1
