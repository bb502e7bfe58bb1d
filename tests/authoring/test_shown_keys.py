"""Texts that contain the key of a question: as a formula with equal values, a number, a PartitionSpec or an option."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from grader.authoring.learners_texts import Text
from grader.authoring.shown_keys import formulas_in, named_options, shown_formulas, shown_values
from grader.exercise import Exercise, Question


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("each sends V·(X − 1)/X. How many?", ["V * (X - 1) / X", "X - 1"]),
        ("2*{{ I }}*{{ J }}/{{ X }}", ["2 * I * J / X"]),
        ("2·I·J / X·Y", ["2 * I * J / X * Y"]),  # 2·I·J / X is a part of this formula, and is not reported on its own
        ("(2*I*J/X)/W", ["2 * I * J / X / W"]),
        ("V/W + 2*I*J", ["V / W + 2 * I * J", "V / W", "2 * I * J"]),
        ("I, X of an all-gather", []),
        ("a word 2 I*J", ["2 * I * J"]),
        ("2 I²(X − 1) / X bytes of V", ["2 * I ** 2 * (X - 1) / X", "I ** 2", "X - 1"]),
        (r"$\frac{2 I^2}{X} \cdot J$", ["2 * I ** 2 / X * J", "I ** 2"]),
        ("I // X", ["I / X"]),
        ("2 ⋅ [I × J] ⁄ X", ["2 * (I * J) / X", "I * J"]),
        ("float32[I, J]", []),
        ("of X (the devices)", []),
        ("max(V, 2*X)", ["max(V, 2 * X)", "2 * X"]),
        ("(I*", []),
    ],
)
def test_formulas_of_names_are_found_in_prose(text: str, found: list[str]) -> None:
    assert [ast.unparse(node) for node in formulas_in(text, ["I", "J", "X", "V"])] == found


def number(text: str = "{{ I }} and {{ X }}?", unit: str = "MiB") -> Question:
    def fn(I: int, X: int) -> float:
        return 2 * I * I / X

    fn.__doc__ = text
    return Exercise().number(points=1, unit=unit, params={"I": [4096, 5120, 6144], "X": [4, 8]})(fn)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("I·I·2 / X bytes", ["I * I * 2 / X"]),
        ("2*I**2/X/2**20 MiB", ["2 * I ** 2 / X / 2 ** 20"]),
        ("4*I*I/X", []),
        ("I*I/X", []),  # the key counts bytes, this formula counts elements
        ("2*I*I/X*8", []),
    ],
)
def test_a_formula_shows_a_key_if_its_values_are_equal_in_every_draw(text: str, shown: list[str]) -> None:
    assert list(shown_formulas(number(), [Text("the statement", text)])) == [("the statement", one) for one in shown]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{{ I }} on {{ X }}: {{ 2 * I * I / X / 2**20 }} MiB?", "8.0"),
        ("{{ I }} on {{ X }}: {{ 2 * I * I // X }} bytes?", "8388608 bytes"),
        ("{{ I }} on {{ X }}: {{ 2 * I * I / X / 2**20 }} of them?", "8.0"),
        ("{{ I }} on {{ X }}: in KiB {{ 2 * I * I / X / 2**10 }}?", "8192.0 KiB"),
        ("{{ I }} on {{ X }}: 8 MiB?", ""),  # the text has the key in one draw only
        ("{{ I }} on {{ X }}?", ""),
    ],
)
def test_a_text_that_has_the_key_in_every_draw_shows_it(text: str, shown: str) -> None:
    texts = [Text("the docstring of fn", text), Text("the statement", text)]
    assert [found for _, found in shown_values(number(text), texts)] == ([shown] if shown else [])


def asked(kind: str, key: Any, text: str = "Which?", **options: Any) -> Question:
    def fn(**drawn: Any) -> Any:
        return key(**drawn) if callable(key) else key

    fn.__doc__ = text
    return getattr(Exercise(), kind)(points=1, **options)(fn)


OPTIONS = {"ring": "a ring", "line": "a line", "torus": "a torus", "wrap": "a ring of rings"}


@pytest.mark.parametrize(
    ("kind", "key", "text", "shown"),
    [
        ("choice", "ring", "Think of a ring.", "a ring"),
        ("choice", "ring", "Think of a `ring`: `a ring`.", "a ring"),
        ("choice", "ring", "Think of a ring or a line.", ""),
        ("choice", "ring", "Think of a ring of rings.", ""),
        ("several", ["ring", "torus"], "A torus and a ring.", "a torus, a ring"),
        ("several", ["ring", "torus"], "A torus.", ""),
        ("choice", "ring", "Which?\n\n- A: a ring\n- B: a line", ""),
        ("choice", "ring", "a ring", ""),  # this text belongs to the option, so it does not show the key
    ],
)
def test_a_text_that_names_only_right_options_shows_the_key(kind: str, key: Any, text: str, shown: str) -> None:
    question = asked(kind, key, options=OPTIONS)
    assert [found for _, found in shown_values(question, [Text("the statement", text)])] == ([shown] if shown else [])


def test_an_order_is_shown_only_by_all_items_in_order() -> None:
    question = asked("order", ["line", "ring", "torus"], items={"ring": "send", "line": "cut", "torus": "wait"})
    texts = [Text("right", "Cut, send and wait."), Text("wrong", "Send, cut and wait."), Text("part", "Cut and send.")]
    assert list(shown_values(question, texts)) == [("right", "cut, send, wait")]


def test_a_table_entry_and_a_layout_in_a_text_are_found() -> None:
    exercise = Exercise()

    @exercise.table(points=1, columns={"rows": "", "bytes": "KiB"}, params={"X": [2, 4, 8]})
    def parts(X):
        """A device has {{ 64 // X }} rows."""
        return {"rows": 64 / X, "bytes": 2**20 / X}

    @exercise.spec(points=1, axes=["x", "y"], params={"axis": ["x", "y"]})
    def layout(axis):
        """The rows are cut: P("{{ axis }}", None)."""
        return (axis, None)

    for question, shown in ((parts, "32"), (layout, 'P("x", None)')):
        (found,) = shown_values(question, [Text(f"the docstring of {question.name}", question.text)])
        assert found[1] == shown


def test_longer_options_are_found_first() -> None:
    assert named_options("A ring of rings, then a Line; a ring.", OPTIONS) == ["wrap", "line", "ring"]
