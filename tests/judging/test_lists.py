"""Answers that are lists of options: several of the options, or all of them in order."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.exercise import AuthorError, Exercise, Question
from grader.judging.answers import heading, judge_answer, kind_of, params_for, read_back, render_question
from grader.learner.answering import composed_answer

RINGS = {"ring": "a ring", "tree": "a tree, of two levels", "line": "a line", "torus": "a torus"}
STEPS = {"wait": "wait", "send": "send the edges", "inner": "compute the inner part"}
DRAWN = {"wraps": {"order": ["tree", "ring", "line", "torus"]}, "steps": {"order": ["inner", "wait", "send"]}}
UNKNOWN = "not right, and not the result of a known misconception"


def asked(partial: bool) -> Exercise:
    exercise = Exercise()

    @exercise.several(points=2, options=RINGS, partial=partial)
    def wraps():
        """Which wrap around?"""
        return {"ring", "torus"}

    @exercise.misconception(of=wraps)
    def no_torus():
        """A torus is made of rings."""
        return ["ring"]

    @exercise.order(points=3, items=STEPS, partial=partial)
    def steps():
        """In which order?"""
        return ["send", "inner", "wait"]

    return exercise


def judged(name: str, value: Any, partial: bool = False) -> Any:
    exercise = asked(partial)
    raw = composed_answer(value)
    return judge_answer(exercise.questions[name], DRAWN[name], exercise.misconceptions.values(), raw)


@pytest.mark.parametrize(
    "value",
    ["B, D", "D B", "b,d", ["B", "D"], ("D", "B"), "['B', 'D']", "a ring; a torus", ["a torus", "B"], "a torus, ring"],
)
def test_several_options_are_read_in_every_form(value: Any) -> None:
    result = judged("wraps", value)
    assert (result.kind, result.status, result.earned) == ("several", "passed", 2)
    assert result.actual == "read as B: a ring; D: a torus" and result.expected == "B: a ring; D: a torus"


@pytest.mark.parametrize("value", ["C, A, B", "c a b", list("CAB"), "send the edges; compute the inner part; wait"])
def test_an_order_is_read_in_every_form(value: Any) -> None:
    result = judged("steps", value)
    assert (result.kind, result.status, result.earned) == ("order", "passed", 3)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("wraps", "B", "a known misconception leads to this answer"),
        ("wraps", "A, B, C, D", UNKNOWN),
        ("wraps", "a tree, of two levels", UNKNOWN),
        ("wraps", "B, B", "'B: a ring' is listed twice"),
        ("wraps", "B, a ring", "'B: a ring' is listed twice"),
        ("wraps", ["B"] * 99, "'B: a ring' is listed twice"),
        ("wraps", "B, Z", "'Z' is not an option: answer with A, B, C or D, or with the text of one option"),
        ("wraps", "BD", "'BD' is not an option: answer with A, B, C or D, or with the text of one option"),
        ("wraps", "Ｂ", "'Ｂ' is not an option: answer with A, B, C or D, or with the text of one option"),
        ("wraps", ["B", ["D"]], "answer with A, B, C or D, or with the text of one option"),
        ("wraps", {"B", "D"}, 'an answer is a list of letters or texts: ["...", "..."]'),
        ("wraps", 3, 'an answer is a list of letters or texts: ["...", "..."]'),
        ("wraps", "x" * 5_000_000, "'" + "x" * 37 + "...' is not an option: answer with A, B, C or D, or with the text of one option"),
        ("wraps", None, "not answered yet"), ("wraps", [], "not answered yet"), ("wraps", " ", "not answered yet"),
        ("steps", "A, B, C", UNKNOWN),
        ("steps", "A, B", "'C: send the edges' is missing: list all 3 items"),
        ("steps", "A, B, A", "'A: compute the inner part' is listed twice"),
        ("steps", "A, B, C, D", "'D' is not an option: answer with A, B or C, or with the text of one option"),
    ],
)  # fmt: skip
def test_reasons_for_wrong_lists(name: str, value: Any, reason: str) -> None:
    result = judged(name, value)
    assert (result.status, result.earned, result.reason) == ("failed", 0, reason)


@pytest.mark.parametrize(
    ("value", "earned"),
    [("B", 1), ("B, C", 0), ("A, C", 0), ("B, D, C", 1), ("A, B, C, D", 0), ("B, D", 2)],
)
def test_the_rule_of_partial_credit_for_several(value: str, earned: float) -> None:
    result = judged("wraps", value, partial=True)
    assert result.earned == pytest.approx(earned) and judged("wraps", value).earned == (2 if earned == 2 else 0)


@pytest.mark.parametrize(("value", "earned"), [("C, A, B", 3), ("C, B, A", 1), ("A, C, B", 1), ("B, A, C", 0)])
def test_the_rule_of_partial_credit_for_an_order(value: str, earned: float) -> None:
    assert judged("steps", value, partial=True).earned == pytest.approx(earned)
    assert judged("steps", value).earned == (3 if earned == 3 else 0)


@given(st.sets(st.sampled_from("ABCD"), min_size=1), st.permutations("ABC"))
def test_guessing_earns_nothing_on_average(some: set[str], order: list[str]) -> None:
    assert 0 <= judged("wraps", sorted(some), partial=True).earned <= 2
    assert 0 <= judged("steps", order, partial=True).earned <= 3
    both = [judged("steps", one, partial=True).earned for one in (order, order[::-1])]
    assert min(both) == 0, "an order and its reverse do not both earn points"


@given(st.recursive(st.none() | st.integers() | st.text(max_size=9), lambda part: st.lists(part, max_size=5)))
def test_any_answer_is_judged(value: Any) -> None:
    for name in DRAWN:
        assert judged(name, value, partial=True).status in ("failed", "passed")


def test_learners_read_the_options_the_form_and_the_rule() -> None:
    exercise = asked(True)
    wraps, steps = exercise.questions.values()
    assert (heading(wraps), heading(steps)) == ("some of A, B, C, D", "an order of A, B, C")
    assert render_question(wraps, DRAWN["wraps"]) == (
        "Which wrap around?\n\n- A: a tree, of two levels\n- B: a ring\n- C: a line\n- D: a torus\n\n"
        'Answer with a list of the letters or texts of all that apply: ["...", "..."]. You get the share of right '
        "options that you list, minus the share of wrong options that you list; a list of all options gets nothing."
    )
    assert render_question(steps, DRAWN["steps"]).endswith(
        'Answer with a list of the letters or texts of all items, in order: ["...", "..."]. You get the share of pairs '
        "in the right order, minus the share of pairs in the wrong order."
    )
    assert "share" not in render_question(asked(False).questions["wraps"], DRAWN["wraps"])


def test_keys_are_read_back_in_each_students_order_of_options() -> None:
    for question, student in itertools.product(asked(False).questions.values(), ("ada", "bo", "cy")):
        drawn = params_for(question, seed="s", student=student)
        kind = kind_of(question, drawn)
        want = kind.want(question(**drawn))
        assert kind.read(kind.written(want)) == want


def test_a_list_of_all_options_is_never_right() -> None:
    exercise = asked(False)
    result = read_back(exercise.questions["wraps"], DRAWN["wraps"], list("ABCD"))
    assert (result.status, result.reason) == ("failed", "you listed all options: some do not apply")
    result = read_back(exercise.questions["wraps"], DRAWN["wraps"], ["B"])
    assert (result.status, result.reason) == ("blocked", "read as B: a ring; the answer is judged after you submit")


@pytest.mark.parametrize(
    ("word", "what", "told"),
    [
        ("several", {"options": ["one", "two"]}, "`options` needs at least 3 entries, so that guessing earns little; it has 2"),
        ("several", {"options": ["a", "b", "a"]}, "`options` has 'a' twice"),
        ("several", {"options": list(map(str, range(27)))}, "`options` has 27 entries: give 26 at most, because each entry has a letter"),
        ("several", {"options": RINGS, "partial": 1}, "`partial` is the int 1, not True or False"),
        ("order", {"items": ["one", "two"]}, "`items` needs at least 3 entries, so that guessing earns little; it has 2"),
        ("order", {"items": {**STEPS, "right": "r"}}, "items: learners get the key 'right', which can give the answer away; use a word of the entry's text as its key"),
        ("order", {"items": STEPS, "params": {"order": [1]}}, "`params` has the name 'order', which the grader uses for the order of the options: choose another name"),
        ("order", {}, "exercise.order: items=... is missing"),
    ],
)  # fmt: skip
def test_invalid_declarations_of_lists_are_reported(word: str, what: dict[str, Any], told: str) -> None:
    with pytest.raises(AuthorError) as error:
        getattr(Exercise(), word)(points=1, **what)(lambda: 0)
    assert str(error.value) == told


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("wraps", ["ring", "loop"], "'loop' is not one of the options ring, tree, line, torus"),
        ("wraps", "ring", "'ring' is not a list of options"),
        ("wraps", ["ring", "ring"], "['ring', 'ring'] names an option twice"),
        ("wraps", [], "no option would be right; add an option such as 'none of these', so that some options are right and some are not"),
        ("wraps", list(RINGS), "all options would be right; add an option such as 'none of these', so that some options are right and some are not"),
        ("steps", ["send"], "['send'] lacks wait, inner"),
        ("steps", {"send"}, "{'send'} has no order: return a list"),
    ],
)  # fmt: skip
def test_a_key_that_is_not_a_list_of_options_is_reported(name: str, value: Any, told: str) -> None:
    question: Question = asked(False).questions[name]
    with pytest.raises(ValueError) as error:
        kind_of(question, {}).want(value)
    assert str(error.value) == told
