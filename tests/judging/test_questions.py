"""The text of a question that a learner reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.exercise import Exercise, Question
from grader.exercise.questions import Quantity
from grader.hardware import describe, hbm_time, latency, matmul_time
from grader.judging.answers import render_question, render_text
from tests.question import declare


def test_a_question_is_rendered_with_unit_and_model():
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
def test_paragraphs_are_joined_and_lists_and_code_keep_their_lines(text: str, shown: str):
    question = Question("waiting", text, lambda: 1.0, 1, Quantity("us", 0.02))
    assert render_text(question, {}) == shown


def test_the_hardware_row_is_printed_once_for_each_chip():
    exercise = Exercise()

    @exercise.number(points=1, unit="", params={"chip": ["v5e"], "rival": ["H100", "v5e"]})
    def versus(chip, rival):
        """{{ chip }} or {{ rival }}?"""
        return matmul_time(1, chip) + matmul_time(1, rival)

    lines = render_question(versus, {"chip": "v5e", "rival": "H100"}).splitlines()
    assert lines[2] == "Answer with a bare number."
    assert [line.split(": ")[:2] for line in lines[3:]] == [["Hardware", "v5e"], ["Hardware", "H100"]]
    assert render_question(versus, {"chip": "v5e", "rival": "v5e"}).count("Hardware") == 1


def test_the_hardware_row_has_the_figures_that_the_answer_uses():
    exercise = Exercise()

    @exercise.number(points=1, unit="s", params={"chip": ["v5e", "v5p"], "n": [1, 2]})
    def read_time(chip, n):
        """How long does {{ chip }} take?"""
        return hbm_time(1, chip) if n == 1 else latency(4)

    @exercise.number(points=1, unit="", params={"chip": ["v5e"]})
    def counted(chip):
        """How many?"""
        return 1.0

    @exercise.number(points=1, unit="", params={"chip": ["v5e"]})
    def fails(chip):
        """How many?"""
        raise NotImplementedError

    line = render_question(read_time, {"chip": "v5e", "n": 1}).splitlines()[-1]  # the line is the same for n=2
    assert line == f"Hardware: {describe('v5e', {'hbm_bw', 'hop'})}." and "HBM" in line and "ICI" not in line
    assert "Hardware" not in render_question(counted, {"chip": "v5e"})
    assert render_question(fails, {"chip": "v5e"}).endswith(f"Hardware: {describe('v5e')}.")
    declared = replace(fails, figures=("bf16",))  # a learner's file also declares the figures
    assert render_question(declared, {"chip": "v5e"}).endswith(f"Hardware: {describe('v5e', {'bf16'})}.")
