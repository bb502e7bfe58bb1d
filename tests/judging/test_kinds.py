"""Answers that are not numbers: layouts, choices and tables are read, judged and explained."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.exercise import AuthorError, Exercise, Misconception, Question
from grader.judging.answers import OfAClass, heading, judge_answer, kind_of, params_for, read_back, render_question
from grader.judging.kinds.choices import ChoiceKind
from grader.judging.kinds.quantities import TWICE, QuantityKind
from grader.judging.kinds.specs import SpecKind
from grader.judging.kinds.tables import TableKind
from grader.judging.problems import question_problems
from grader.judging.units import BadAnswer
from grader.learner.answering import composed_answer
from tests.question import declare

OPTIONS = {
    "gather": "an all-gather of {{ n }} parts",
    "reduce": "an all-reduce",
    "none": "Nothing at all.",
    "8": "8 permutes",
}


def asked() -> tuple[dict[str, Question], list[Misconception]]:
    exercise = Exercise()

    @exercise.spec(points=1, axes=["x", "y"], params={"n": [1, 2]})
    def layout(n):
        """How is it cut in {{ n }}?"""
        return P(("x", "y"), None) if n == 1 else P(None, "y")

    @exercise.misconception(of=layout)
    def swapped(n):
        """The other way round."""
        return P(("y", "x")) if n == 1 else P("y")

    @exercise.choice(points=1, options=OPTIONS, params={"n": [2, 4]})
    def sent(n):
        """What is sent?"""
        return "gather" if n == 2 else "reduce"

    @exercise.misconception(of=sent)
    def nothing(n):
        """Something must be."""
        return "none"

    @exercise.table(
        points=2, columns={"bytes": "MiB", "time": "us"}, rows=["all_gather", "left over"], params={"n": [1, 2]}
    )
    def costs(n):
        """What does it cost?"""
        return {"all_gather": {"bytes": n * 2**20, "time": 3e-6}, "left over": {"bytes": 0, "time": 5e-6}}

    @exercise.misconception(of=costs)
    def none_left(n):
        """Time is left over too."""
        return {**costs(n=n), "left over": {"bytes": 0, "time": 0}}

    @exercise.table(points=2, columns={"hops": "", "time": "us"})
    def few():
        """How far, how long?"""
        return {"hops": 3, "time": 3e-6}

    return exercise.questions, list(exercise.misconceptions.values())


QUESTIONS, MISCONCEPTIONS = asked()
N = {"n": 1}
ORDERED = {"n": 2, "order": ["reduce", "8", "gather", "none"]}


def judged(name: str, value: Any, drawn: dict[str, Any] | None = None) -> Any:
    """Judge a value that a learner assigned."""
    usual = ORDERED if name == "sent" else N if QUESTIONS[name].params else {}
    return judge_answer(QUESTIONS[name], drawn or usual, MISCONCEPTIONS, composed_answer(value))


# -- specs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        P(("x", "y")), P(("x", "y"), None), P(("x", "y"), None, None), (("x", "y"), None), [["x", "y"], None], [("x", "y")],
        "P(('x', 'y'))", 'P(("x", "y"), None)', "PartitionSpec(('x', 'y'))", "jax.sharding.PartitionSpec(('x', 'y'), None,)",
        " P( ('x','y') ) ", "(('x', 'y'), None)", "[('x', 'y')]", "('x', 'y'), None", P(("x", "y"), ()), "P(['x', 'y'], None)",
        "P((x, y))", "(x, y), None", "P((x, y), None)",
    ],
)  # fmt: skip
def test_a_spec_is_read_in_every_form(value: Any) -> None:
    result = judged("layout", value)
    assert (result.status, result.earned, result.kind, result.actual) == ("passed", 1, "spec", "read as P(('x', 'y'))")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (P("x", "y"), "not right: the axes are right, but they cut other dimensions of the array"),
        (P(None, ("x", "y")), "not right: the axes are right, but they cut other dimensions of the array"),
        (P("x"), "not right, and not the result of a known misconception"),
        (P(), "not right, and not the result of a known misconception"),
        ("P()", "not right, and not the result of a known misconception"),
        ("x", "not right, and not the result of a known misconception"),
        (("x", "y"), "not right: the axes are right, but they cut other dimensions of the array"),
        (P(("y", "x")), "a known misconception leads to this answer"),
        (P("z"), "there is no axis 'z': the mesh has x, y"),
        ("P(x)", "not right, and not the result of a known misconception"),
        ("P('x', 'x')", "the axis x is named twice: an axis cuts one dimension"),
        ("P('x'", "\"P('x'\" cannot be read: write it like P(\"x\", None)"),
        ("P(__import__('os'))", "\"P(__import__('os'))\" cannot be read: write it like P(\"x\", None)"),
        (3, 'an answer is a PartitionSpec: write it like P("x", None)'),
        ([3], 'a dimension has None, an axis or a tuple of axes: write it like P("x", None)'),
        ([[["x"]]], 'a dimension has None, an axis or a tuple of axes: write it like P("x", None)'),
        ({"x": 1}, 'an answer is a PartitionSpec: write it like P("x", None)'),
        (P.UNCONSTRAINED, 'an answer is a PartitionSpec: write it like P("x", None)'),
        (P(P.UNCONSTRAINED), 'a dimension has None, an axis or a tuple of axes: write it like P("x", None)'),
        ("P(" * 99 + "'x'" + ")" * 99, "an answer has at most 200 characters, but this answer has 300"),
        (None, "not answered yet"),
        ("  ", "not answered yet"),
    ],
)  # fmt: skip
def test_reasons_for_wrong_specs(value: Any, reason: str) -> None:
    result = judged("layout", value)
    assert (result.status, result.reason, result.earned) == ("failed", reason, 0)
    assert result.expected == "P(('x', 'y'))"


@pytest.mark.parametrize(
    ("value", "shown", "reason"),
    [
        (P(("x", "y"), unreduced=frozenset({"z"})), "P(('x', 'y'), unreduced={'z'})", ""),
        ("P((x, y), unreduced={z})", "P(('x', 'y'), unreduced={'z'})", ""),
        ('P(("x", "y"), None, unreduced=frozenset({"z"}))', "P(('x', 'y'), unreduced={'z'})", ""),
        (P(("x", "y")), "P(('x', 'y'))", "not right: these are not the unreduced axes"),
        (
            P("x", unreduced=frozenset({"z"})),
            "P('x', unreduced={'z'})",
            "not right, and not the result of a known misconception",
        ),
        (P(unreduced=frozenset({"x"})), "P(unreduced={'x'})", "not right, and not the result of a known misconception"),
        (
            "P('x', unreduced={'x'})",
            "",
            "the axis x is named twice: an axis cuts one dimension, or is unreduced",
        ),
        (P("x", unreduced=frozenset({"w"})), "", "there is no axis 'w': the mesh has x, y, z"),
        (P("x", reduced=frozenset({"z"})), "", 'an answer is a PartitionSpec: write it like P("x", None)'),
    ],
)
def test_unreduced_axes_must_agree(value: Any, shown: str, reason: str) -> None:
    exercise = Exercise()

    @exercise.spec(points=1, axes=["x", "y", "z"])
    def layout():
        """How?"""
        return P(("x", "y"), unreduced=frozenset({"z"}))

    result = judge_answer(layout, {}, [], composed_answer(value))
    assert (result.reason, result.status) == (reason, "failed" if reason else "passed")
    assert not shown or result.actual == f"read as {shown}"


def test_a_wrong_order_of_axes_in_a_tuple_is_reported() -> None:
    exercise = Exercise()

    @exercise.spec(points=1, axes=["x", "y"])
    def layout():
        """How?"""
        return P(("x", "y"))

    reason = judge_answer(layout, {}, [], composed_answer(P(("y", "x")))).reason
    assert reason == "each dimension has the right axes, but a tuple has the wrong order: put its major axis first"


ENTRY = st.sampled_from([None, "x", "y", "z"]) | st.permutations(["x", "y", "z"]).flatmap(
    lambda axes: st.integers(0, 3).map(lambda k: tuple(axes[:k]))
)
SPECS = st.lists(ENTRY, max_size=4).filter(
    lambda spec: len(named := [a for e in spec for a in ([e] if isinstance(e, str) else e or ())]) == len(set(named))
)


@given(SPECS, SPECS)
def test_two_specs_are_one_answer_exactly_where_their_layouts_are_the_same(one: list, other: list) -> None:
    exercise = Exercise()

    @exercise.spec(points=1, axes=["x", "y", "z"])
    def layout():
        """How?"""
        return P(*one)

    def canonical(spec: list) -> list:
        found = [[e] if isinstance(e, str) else list(e or ()) for e in spec]
        return list(itertools.dropwhile(lambda e: not e, reversed(found)))

    kind = kind_of(layout, {})
    for raw in (composed_answer(P(*other)), composed_answer(other), repr(tuple(other)), f"P({repr(other)[1:-1]})"):
        assert (kind.distance(kind.read(raw), kind.want(layout())) is not None) == (canonical(one) == canonical(other))
    want = kind.want(layout())
    assert kind.read(kind.written(want)) == want == kind.read(kind.shown(want))


# -- choices -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        "C", "c", " c) ", "(C)", "[c]", "C.", "C:", "an all-gather of 2 parts", "An All-Gather of 2 parts.", "gather",
        "an all gather", "an_all_gather", "C: an all-gather of 2 parts",
    ],
)  # fmt: skip
def test_a_choice_is_read_by_letter_or_by_text(value: Any) -> None:
    result = judged("sent", value)
    assert (result.status, result.kind, result.actual) == ("passed", "choice", "read as C: an all-gather of 2 parts")


@pytest.mark.parametrize(
    ("value", "read", "reason"),
    [
        ("A", "read as A: an all-reduce", "not right, and not the result of a known misconception"),
        (8, "read as B: 8 permutes", "not right, and not the result of a known misconception"),
        (8.0, "read as B: 8 permutes", "not right, and not the result of a known misconception"),
        ("D", "read as D: Nothing at all.", "a known misconception leads to this answer"),
        ("nothing", "read as D: Nothing at all.", "a known misconception leads to this answer"),
        ("E", None, "'E' is not an option: answer with A, B, C or D, or with the text of one option"),
        ("an all-", None, "'an all-' is the start of several options: answer with A, B, C or D, or with the text of one option"),
        ("C: an all-reduce", None, "'C: an all-reduce' is not an option: answer with A, B, C or D, or with the text of one option"),
        (".", None, "'.' is the start of several options: answer with A, B, C or D, or with the text of one option"),
        (True, None, "answer with A, B, C or D, or with the text of one option"),
        (["A"], None, "answer with A, B, C or D, or with the text of one option"),
        ("x" * 5000, None, "'" + "x" * 37 + "...' is not an option: answer with A, B, C or D, or with the text of one option"),
        ("", None, "not answered yet"),
    ],
)  # fmt: skip
def test_reasons_for_wrong_choices(value: Any, read: str | None, reason: str) -> None:
    result = judged("sent", value)
    assert (result.status, result.actual, result.reason) == ("failed", read, reason)


def test_a_letter_refers_to_the_option_in_the_shown_order() -> None:
    for order in itertools.permutations(OPTIONS):
        drawn = {"n": 2, "order": list(order)}
        letter = "ABCD"[order.index("gather")]
        assert f"- {letter}: an all-gather of 2 parts" in render_question(QUESTIONS["sent"], drawn).splitlines()
        assert judged("sent", letter, drawn).status == "passed"
        assert read_back(QUESTIONS["sent"], drawn, letter).reason == (
            f"read as {letter}: an all-gather of 2 parts; the answer is judged after you submit"
        )


@pytest.mark.parametrize(
    ("value", "status", "reason"),
    [
        ("3 MiB", "failed", "the question asks for a time, but you gave an amount of data"),
        (-4, "failed", "the answer is positive, but you gave -4 us"),
        ("many", "failed", "'many' cannot be read: write one number and a unit, like 28.5 KiB"),
        ("4 ms", "blocked", "read as 4 ms; the answer is judged after you submit"),
        (None, "blocked", "not answered yet"),
    ],
)
def test_impossible_answers_are_reported_before_grading(value: Any, status: str, reason: str) -> None:
    result = read_back(declare()[0], {"n": 2}, value)
    assert (result.status, result.earned, result.reason) == (status, 0, reason)


def test_a_table_cell_that_cannot_be_right_is_reported() -> None:
    table = read_back(QUESTIONS["costs"], {"n": 2}, [["3 MiB", "5 us"], ["1 MiB", "7 KiB"]])
    assert (table.status, table.reason) == (
        "failed",
        "time of left over: the question asks for a time, but you gave an amount of data",
    )


def test_each_learner_has_an_order_of_their_own_that_stays() -> None:
    sent = QUESTIONS["sent"]
    drawn = [params_for(sent, seed="s", student=str(i)) for i in range(200)]
    assert drawn == [params_for(sent, seed="s", student=str(i)) for i in range(200)]
    assert len({tuple(d["order"]) for d in drawn}) == 24 and all(sorted(d["order"]) == sorted(OPTIONS) for d in drawn)
    places = [d["order"].index(sent(n=d["n"])) for d in drawn]
    assert all(30 < places.count(place) < 70 for place in range(4))
    assert params_for(sent, seed="t", student="1") != params_for(sent, seed="s", student="1")
    other = params_for(sent, seed="s", student=None)
    assert other == params_for(sent, seed="s", student=None) and set(other) == {"n", "order"}
    assert set(params_for(QUESTIONS["layout"], seed="s", student=None)) == {"n"}


# -- tables ------------------------------------------------------------------------------------


RIGHT = [
    {"all_gather": {"bytes": 1, "time": 3}, "left over": {"bytes": 0, "time": 5}},
    {"left-over": {"time": "5 us", "bytes": "0 B"}, "All Gather": {"time": "0.003 ms", "bytes": "1024 KiB"}},
    {"all_gather": [1, 3], "left over": (0.0, "5us")},
    [[1, 3], [0, 5]],
    ((1, 3), {"bytes": 0, "time": 5.05}),
    "all_gather: 1 MiB, 3 us\nleft over: 0, 5 us",
    "all_gather: bytes = 1 MiB, time = 3 us; left_over: time = 5 us, bytes = 0",
    "| all_gather | 1 MiB | 3 us |\n| left over | 0 | 5 |",
    "|  | bytes | time |\n|---|---|---|\n| all_gather | 1 MiB | 3 us |\n| left over | 0 | 5 |",
    '{"all_gather": {"bytes": 1, "time": 3}, "left over": {"bytes": 0, "time": 5}}',
    "[[1, 3], [0, 5]]",
    "all_gather: bytes: 1, time: 3\n\nleft over: bytes: 0, time: 5\n",
]


@pytest.mark.parametrize("value", RIGHT)
def test_a_table_is_read_in_every_form(value: Any) -> None:
    result = judged("costs", value)
    assert (result.status, result.kind, result.earned, result.reason) == ("passed", "table", 2, "")
    assert judged("costs", result.actual.removeprefix("read as ")).status == "passed"


def test_a_table_may_be_an_array() -> None:
    import numpy as np

    assert judged("costs", np.array([[1, 3], [0, 5.0]])).status == "passed"
    assert (
        judged("costs", np.array([1.0, 3])).reason
        == "all_gather: write a dict with the columns bytes, time, or a list of their values in this order"
    )


@pytest.mark.parametrize(
    "value",
    [{"hops": 3, "time": "3 us"}, [3, 3], (3, "3 us"), "hops = 3, time = 3 us", "3, 3 us", "time: 3 us\nhops: 3"],
)
def test_numbers_with_names_are_a_table_without_rows(value: Any) -> None:
    result = judged("few", value)
    assert (result.status, result.actual) == ("passed", "read as hops = 3, time = 3 us")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([[2.2, 3], [0, 5]], "3 of 4 are right; bytes of all_gather: not right, and not the result of a known misconception; the size is plausible, so check the formula first, then the units"),
        ([[2, 3], [0, 5]], f"3 of 4 are right; bytes of all_gather: not right, and not the result of a known misconception; {TWICE}"),
        ([["1 us", 3], [0, 5]], "3 of 4 are right; bytes of all_gather: the question asks for an amount of data, but you gave a time"),
        ([[1, 3000], [1, 5]], "2 of 4 are right; time of all_gather: the digits are right but the unit is not: you are off by a power of 1000"),
        ([[1, 3], [1, 5]], "3 of 4 are right; bytes of left over: not right, and not the result of a known misconception"),
        ([[1, 3], [0, 0]], "a known misconception leads to this answer"),
        ([[1, -3], [0, 5]], "3 of 4 are right; time of all_gather: the answer is positive, but you gave -3 us"),
        ([[1, None], [0, 5]], "time of all_gather: not answered yet"),
        ([[None, None], [None, ""]], "not answered yet"),
        ({"all_gather": {"bytes": None}}, "not answered yet"),
        ([[1, "many"], [0, 5]], "time of all_gather: 'many' cannot be read: write one number and a unit, like 28.5 KiB"),
        ([[1, float("nan")], [0, 5]], "time of all_gather: 'nan' cannot be read: write one number and a unit, like 28.5 KiB"),
        ([[1, [3]], [0, 5]], "time of all_gather: an answer is a number or a text with a unit, not a list"),
        ([[1, 3]], "there are 2 rows (all_gather, left over), but you gave 1"),
        ([[1], [0, 5]], "all_gather: there are 2 columns (bytes, time), but you gave 1"),
        ({"all_gather": [1, 3]}, "the row left over is missing"),
        ({"all_gather": {"bytes": 1}, "left over": [0, 5]}, "all_gather: the column time is missing"),
        ({"all_gather": [1, 3], "right over": [0, 5]}, "there is no row 'right over': the rows are all_gather, left over"),
        ({"all_gather": [1, 3], "all-gather": [0, 5]}, "the row all_gather is given twice"),
        (3, "write a dict with the rows all_gather, left over, or a list of their values in this order"),
        ("3", "write a dict with the rows all_gather, left over, or a list of their values in this order"),
        (P("x"), "write a dict with the rows all_gather, left over, or a list of their values in this order"),
        ("x" * 3000, "an answer has at most 2000 characters, but this answer has 3000"),
        ("[" * 1500, "the row all_gather is missing"),
    ],
)  # fmt: skip
def test_reasons_for_wrong_tables(value: Any, reason: str) -> None:
    result = judged("costs", value)
    assert (result.status, result.reason) == ("failed", reason)
    assert result.expected == "all_gather: bytes = 1 MiB, time = 3 us; left over: bytes = 0 MiB, time = 5 us"


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9), st.just(0.0) | st.floats(1e-9, 1e9))
def test_a_written_table_is_read_back(first: float, second: float, third: float) -> None:
    kind = kind_of(QUESTIONS["costs"], N)
    want = kind.want({"all_gather": {"bytes": first, "time": second}, "left over": {"bytes": third, "time": second}})
    for text in (kind.written(want), kind.shown(want)):
        assert kind.distance(kind.read(text), want) is not None


# -- all kinds ---------------------------------------------------------------------------------


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=9)
    | st.sampled_from(["P('x')", "A", "3 us"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["dict", "spec", "type", "magnitude", "units", "x"]), inner, max_size=2)
        | st.fixed_dictionaries({"dict": st.lists(st.tuples(st.text(max_size=5), inner).map(list), max_size=3)})
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(sorted(QUESTIONS)))
def test_any_answer_is_read_or_refused_in_a_line(raw: Any, name: str) -> None:
    drawn = ORDERED if name == "sent" else N if QUESTIONS[name].params else {}
    kind = kind_of(QUESTIONS[name], drawn)
    try:
        given_ = kind.read(raw)
    except BadAnswer as error:
        assert "\n" not in str(error) and len(str(error)) < 400
    else:
        assert kind.read(kind.read_as(given_)) is not None
    assert judge_answer(QUESTIONS[name], drawn, MISCONCEPTIONS, raw).status in ("passed", "failed")


@given(st.text(alphabet="P()'\"xy,[]{}:|=;\n 0123.usMiBAC", max_size=60), st.sampled_from(sorted(QUESTIONS)))
def test_any_text_is_read_or_refused(text: str, name: str) -> None:
    assert judged(name, text).status in ("passed", "failed")


def test_statements_of_questions_describe_the_answers_form() -> None:
    assert [heading(q) for q in QUESTIONS.values()] == [
        "a PartitionSpec",
        "one of A, B, C, D",
        "bytes, time",
        "hops, time",
    ]
    shown = {
        name: render_question(q, ORDERED if name == "sent" else N if q.params else {}) for name, q in QUESTIONS.items()
    }
    assert shown["layout"] == "How is it cut in 1?\n\nAnswer with a PartitionSpec over x, y, such as P('x', None)."
    assert shown["sent"] == (
        "What is sent?\n\n- A: an all-reduce\n- B: 8 permutes\n- C: an all-gather of 2 parts\n- D: Nothing at all.\n\n"
        "Answer with the letter or the text of one option."
    )
    assert shown["costs"] == (
        'What does it cost?\n\nAnswer with a table, a dict of these rows:\n\n- "all_gather": {"bytes": ..., "time": ...}\n'
        '- "left over": {"bytes": ..., "time": ...}\n\nGive bare numbers (bytes in MiB, time in us), or numbers with units.'
    )
    assert shown["few"] == (
        'How far, how long?\n\nAnswer with {"hops": ..., "time": ...}. Give bare numbers (hops, time in us), or numbers with units.'
    )


def test_only_tables_are_compared_with_other_students_answers() -> None:
    others = {"bo": {"n": 2}, "cy": {"n": 1}}
    right = judged("costs", [[2, 3], [0, 5]], {"n": 2}).actual.removeprefix("read as ")

    def others_of(name: str, text: str, own: dict[str, Any], others: dict[str, Any]) -> list[str]:
        return OfAClass(QUESTIONS[name], {"ada": own, **others}).fits_others("ada", text)

    assert others_of("costs", right, {"n": 1}, others) == ["bo"]
    assert others_of("costs", right, {"n": 2}, others) == []
    assert others_of("layout", "P(None, 'y')", {"n": 1}, others) == []
    assert others_of("sent", "A: an all-reduce", ORDERED, {"bo": {**ORDERED, "n": 4}}) == []


# -- declarations of authors -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "what", "told"),
    [
        ("spec", {"axes": "x"}, "`axes` is the str 'x', not a list of texts: write axes=[...]"),
        ("spec", {"axes": []}, "`axes` is the list [], not the names of a mesh's axes such as [\"x\", \"y\"]"),
        ("spec", {"axes": ["x", "x"]}, "`axes` is the list ['x', 'x'], not the names of a mesh's axes such as [\"x\", \"y\"]"),
        ("spec", {}, "exercise.spec: axes=... is missing"),
        ("choice", {"options": ["one", "two"]}, "`options` needs at least 3 entries, so that guessing earns little; it has 2"),
        ("choice", {"options": ["one", "one", "two"]}, "`options` has 'one' twice"),
        ("choice", {"options": "abc"}, "`options` is the str 'abc', not a list of texts: write options=[...]"),
        ("choice", {"options": {"a": "one", "b": "two", "right": "three"}}, "options: learners get the key 'right', which can give the answer away; use a word of the entry's text as its key"),
        ("choice", {"options": ["one", "two", " "]}, "options: ' ' has the str ' ', not a line of 160 characters or fewer"),
        ("choice", {"options": ["one", "two", "three"], "params": {"order": [1]}}, "`params` has the name 'order', which the grader uses for the order of the options: choose another name"),
        ("table", {"columns": {}}, "`columns` is empty: give at least one column with its unit"),
        ("table", {"columns": ["bytes"]}, '`columns` is the list [\'bytes\'], not a dict such as {"bytes": "MiB", "time": "us"}'),
        ("table", {"columns": {"bytes": 3}}, "columns: bytes has the unit the int 3, not a text such as \"us\""),
        ("table", {"columns": {"a b": "", "A_b": ""}}, "`columns` has names that are too similar: a b, A_b"),
        ("table", {"columns": dict.fromkeys("abcde", ""), "rows": list("abcde")}, "the table has 25 entries; one question can have at most 24"),
    ],
)  # fmt: skip
def test_invalid_declarations_of_questions_are_reported(word: str, what: dict[str, Any], told: str) -> None:
    with pytest.raises(AuthorError) as error:
        getattr(Exercise(), word)(points=1, **what)
    assert str(error.value) == told


def problems(word: str, answer: Any, *misconceptions: Any, **what: Any) -> list[str]:
    """Make a question with this answer, and misconceptions with these answers. Return the problems of the question."""
    exercise = Exercise()

    def q(**params):
        """What?"""
        return answer(**params)

    def misconception(of: Question, i: int, wrong: Any) -> None:
        def answered(**params):
            """A misconception."""
            return wrong(**params)

        answered.__name__ = f"misconception{i}"
        exercise.misconception(of=of)(answered)

    question = getattr(exercise, word)(points=1, **what)(q)
    for i, wrong in enumerate(misconceptions):
        misconception(question, i, wrong)
    return list(question_problems(question, exercise.misconceptions.values()))


THREE = {"options": ["one", "two", "three"]}
PAIR: dict[str, Any] = {"columns": {"a": "us", "b": ""}, "params": {"n": [1, 2]}}


def test_answers_of_a_wrong_kind_and_right_misconceptions_are_reported() -> None:
    assert problems("spec", lambda: P("x"), lambda: P("x", "y"), axes=["x", "y"]) == []
    assert problems("spec", lambda: P("x"), lambda: P("x", None), axes=["x"]) == [
        "q: the right answer and the answer of misconception0 are equal: P('x') and P('x')"
    ]
    assert problems("spec", lambda: P("z"), axes=["x"]) == [
        "q: the right answer is not a valid PartitionSpec: ValueError: there is no axis 'z': the mesh has x"
    ]
    assert problems("choice", lambda: "two", lambda: "three", **THREE) == []
    assert problems("choice", lambda: "four", lambda: "three", **THREE) == [
        "q: the right answer is not a valid option: ValueError: 'four' is not one of the options one, two, three"
    ]
    assert problems("choice", lambda: "two", lambda: "two", **THREE)[0].startswith(
        "q: the right answer and the answer of misconception0 are equal"
    )
    assert problems("table", lambda n: {"a": n, "b": 1}, lambda n: {"a": 3 * n, "b": 1}, **PAIR) == []
    assert problems("table", lambda n: {"a": n, "b": 1}, lambda n: {"a": 2, "b": 1}, **PAIR) == [
        "q: the right answer and the answer of misconception0 are closer than the tolerance of 0.02, in 1 of 2 variants, first n=2: "
        "a = 2e+06 us, b = 1 and a = 2e+06 us, b = 1"
    ]
    assert problems("table", lambda n: {"a": n}, **PAIR) == [
        "q: the right answer is not a valid table of numbers, in 2 of 2 variants, first n=1: ValueError: {'a': 1} is not a dict with the keys a, b"
    ]
    assert problems("table", lambda n: {"a": n, "b": -1}, **PAIR)[0].endswith("-1.0 is not a finite positive number")


def test_options_that_look_alike_are_reported() -> None:
    same = {"options": {"a1": "{{ n }} hops", "a2": "2 hops", "a3": "none"}, "params": {"n": [1, 2]}}
    assert problems("choice", lambda n: "a2", **same) == [
        "q: the options cannot be shown, in 1 of 2 variants, first n=2: "
        "ValueError: the option '2 hops' is equal to another option, or to the letter of an option"
    ]
    assert problems("choice", lambda: "b", options=["b", "two", "three"])[0].startswith(
        "q: the options cannot be shown"
    )
    assert "'m' is undefined" in problems("choice", lambda: "two", options=["one", "two", "{{ m }}"])[0]


def test_backticks_in_options_are_ignored() -> None:
    kind = ChoiceKind({"gather": "an all-gather of `A`", "none": "nothing"})
    assert kind.read("an all-gather of A") == kind.read("an all-gather of `A`") == "gather"
    assert kind.shown("gather") == "A: an all-gather of `A`"
    assert problems("choice", lambda: "b1", options={"b1": "a ring", "b2": "`a ring`", "b3": "a line"})[0].startswith(
        "q: the options cannot be shown"
    )


def test_the_text_of_an_option_is_read_before_the_key_of_another() -> None:
    kind = ChoiceKind({"ring": "a line", "line": "ring", "tree": "a tree"})
    assert kind.read("ring") == "line" and kind.read("line") == "line" and kind.read("tree") == "tree"


@pytest.mark.parametrize("text", ["[1, 1or 2]", "P(1if 1else 2)", r"{'\d': 1}"])
def test_pythons_warnings_about_answers_are_not_shown(text: str) -> None:
    for kind in (SpecKind(("x",)), TableKind({"n": QuantityKind("", 0.02)}, ("a", "b"))):
        with pytest.raises(BadAnswer), warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            kind.read(text)
        assert found == []


@pytest.mark.parametrize("text", ["{[]: 1}", "{{}}", "{'a': {[]}}", "\ud800", "-" * 400 + "1", "[" * 400], ids=ascii)
def test_texts_that_python_cannot_evaluate_are_wrong_answers(text: str) -> None:
    """Python raises a TypeError for some literals. It must not stop the grading of the student."""
    for kind in (SpecKind(("x",)), TableKind({"n": QuantityKind("", 0.02)}, ("a", "b"))):
        with pytest.raises(BadAnswer):
            kind.read(text)


# -- partial credit ----------------------------------------------------------------------------


def with_partial(points: float = 3.0) -> tuple[Question, list[Misconception]]:
    exercise = Exercise()

    @exercise.table(
        points=points, columns={"bytes": "MiB", "time": "us"}, rows=["a", "b"], params={"n": [1, 2]}, partial=True
    )
    def costs(n):
        """What do the two collectives cost?"""
        return {"a": {"bytes": n * 2**20, "time": n * 1e-6}, "b": {"bytes": 5 * n * 2**20, "time": 7 * n * 1e-6}}

    @exercise.misconception(of=costs)
    def late(n):
        """You forgot the latency."""
        return {**costs(n=n), "b": {"bytes": 5 * n * 2**20, "time": 6 * n * 1e-6}}

    return costs, list(exercise.misconceptions.values())


@pytest.mark.parametrize(
    ("raw", "status", "earned", "reason"),
    [
        ("a: 1, 1; b: 5, 7", "passed", 3.0, ""),
        ("a: 1, 1; b: 5, 9", "failed", 2.25, "3 of 4 are right; time of b: "),
        ("a: 1, 2; b: 6, 9", "failed", 0.75, "1 of 4 are right; time of a: "),
        ("a: 2, 2; b: 6, 9", "failed", 0.0, "0 of 4 are right; bytes of a: "),
        ("a: 1, 1; b: 5, 6", "failed", 2.25, "a known misconception leads to this answer"),
        ("a: 1, 1; b: 5, 0", "failed", 2.25, "3 of 4 are right; time of b: "),
        ("a: 1, 1; b: 5", "failed", 0.0, "b: "),  # some entries are missing
        (None, "failed", 0.0, "not answered yet"),
    ],
)
def test_each_right_number_earns_its_part(raw: Any, status: str, earned: float, reason: str) -> None:
    question, misconceptions = with_partial()
    result = judge_answer(question, {"n": 1}, misconceptions, raw)
    assert (result.status, result.earned) == (status, earned) and result.reason.startswith(reason)


@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        ("2, 6, 10", "Twice too much."),
        ("1, 6, 5", "Twice too much."),  # the other numbers are right
        ("1, 6, 10", "Twice too much."),
        ("2, 3, 5", "Either: Twice too much.\n\nOr: You took the slower link for b."),
        ("1, 3, 10", ""),  # three misconceptions fit
        ("2, 7, 5", ""),
        ("1, 7, 10", ""),
    ],
)
def test_a_table_gets_the_hints_of_the_misconceptions_that_give_all_its_wrong_numbers(raw: str, hint: str) -> None:
    exercise = Exercise()

    @exercise.table(points=1, columns={"a": "us", "b": "us", "c": "us"})
    def times():
        """How long does each part take?"""
        return {"a": 1e-6, "b": 3e-6, "c": 5e-6}

    @exercise.misconception(of=times)
    def doubled():
        """Twice too much."""
        return {"a": 2e-6, "b": 6e-6, "c": 10e-6}

    @exercise.misconception(of=times)
    def last_twice():
        """You counted the last part twice."""
        return {"a": 1.5e-6, "b": 3e-6, "c": 10e-6}

    @exercise.misconception(of=times)
    def slower():
        """You took the slower link for b."""
        return {"a": 2e-6, "b": 9e-6, "c": 10e-6}

    assert judge_answer(times, {}, list(exercise.misconceptions.values()), raw).hint == hint


def test_a_table_says_that_each_number_counts() -> None:
    question, _ = with_partial()
    assert render_question(question, {"n": 1}).endswith("\nEach right number earns its part of the points.")
    assert "earns" not in render_question(QUESTIONS["costs"], N)


def test_parts_of_thirds_are_rounded() -> None:
    assert judge_answer(*(with_partial(1 / 3)[0], {"n": 1}, [], "a: 1, 1; b: 5, 9")).earned == 0.25


def test_partial_is_true_or_false() -> None:
    with pytest.raises(AuthorError, match=r"^`partial` is the str 'yes', not True or False$"):
        Exercise().table(points=1, columns={"bytes": "MiB"}, params={"n": [1]}, partial="yes")  # pyright: ignore[reportArgumentType]
