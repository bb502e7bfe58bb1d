"""Find the mistakes of a question before learners get it."""

from __future__ import annotations

from grader.exercise import Exercise
from grader.judging import problems
from grader.judging.problems import question_problems
from tests.question import declare


def test_two_answers_too_close_are_found():
    question, misconceptions = declare()
    assert list(question_problems(question, misconceptions)) == [
        "waiting: the answer of both_ways and the answer of nearly_both_ways are closer than the tolerance of 0.02, in 2 of 2 variants, "
        "first n=559: 279.5 us and 283.692 us"
    ]
    assert list(question_problems(question, misconceptions[:1])) == []


def test_bad_texts_and_bad_values_are_found():
    exercise = Exercise()

    @exercise.number(points=1, unit="us", params={"n": [0, 1]})
    def odd(n):
        """How long for {{ m }}?"""
        return n * 1.0

    @exercise.misconception(of=odd)
    def fails(n):
        """A misconception that cannot be computed."""
        return 1 / (n - 1)

    assert list(question_problems(odd, exercise.misconceptions.values())) == [
        "odd: the text of the question does not render, in 2 of 2 variants, first n=0: UndefinedError: 'm' is undefined",
        "odd: the right answer is not a valid number, in 1 of 2 variants, first n=0: "
        "ValueError: 0.0 is not a finite positive number",
        "odd: the answer of fails is not a valid number, in 2 of 2 variants, first n=0: "
        "ValueError: -1.0 is not a finite positive number",
    ]


def test_questions_without_variants_or_unit_are_found():
    nothing, _ = declare(where=lambda n: False)
    assert list(question_problems(nothing, [])) == ["waiting: no parameters satisfy its `where`"]
    unknown, _ = declare(unit="elephants")
    assert list(question_problems(unknown, [])) == [
        "waiting: unknown unit 'elephants': write for instance us, ms, KiB, GB/s, FLOP or token"
    ]


def test_the_number_of_examined_variants_is_limited(monkeypatch):
    monkeypatch.setattr(problems, "VARIANT_CAP", 10)
    question, misconceptions = declare(params={"n": range(1, 100)})
    assert "in 10 of 10 variants" in next(question_problems(question, misconceptions))


def test_a_question_without_numbers_of_its_own_has_no_first_variant():
    exercise = Exercise()

    @exercise.written(points=1, rubric="1 point: why.")
    def same_for_all():
        """Why?"""
        return " "

    told = "same_for_all: the right answer is not a valid text: ValueError: ' ' is not a text; return an example of a good answer for the staff"
    assert told in list(question_problems(exercise.questions["same_for_all"], []))
