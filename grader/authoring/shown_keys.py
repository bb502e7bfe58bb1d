"""Find keys (right answers of questions) in learners' texts: a formula that equals the key, or the key's value.

A *draw* is one random choice of a question's numbers. This module compares formulas by their values in all draws, so it
finds a formula in any notation.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeGuard

from grader.authoring.keys import entries_of, longest_unit, units_of
from grader.authoring.learners_texts import Text
from grader.common.formulas import FUNCTIONS, BadFormula, evaluate, points_of
from grader.common.syntax import expression
from grader.exercise import Choice, Formula, Question, Written
from grader.exercise.questions import plain_name
from grader.judging.answers import kind_of, render_text, some_variants, wanted
from grader.judging.kinds.choices import ChoiceKind, ListedKind, OrderKind
from grader.judging.kinds.kind import AnswerKind
from grader.judging.kinds.tables import TableKind
from grader.judging.units import BadAnswer, unit_of

DRAWS = 60
"""The largest number of draws of one question that are tried."""
LONGEST = 40
"""The largest number of tokens of a formula."""
PLAIN = {"\\cdot": "*", "\\times": "*", "//": "/"}
"""Signs of LaTeX and the operator ``//``, each with the operator that replaces it."""
OPERATORS = ("**", *"+-*/(),")
ASCII = str.maketrans("·×⋅∙−÷⁄∕", "****-///")
"""Operators of other notations, each with Python's operator."""
SIGNS = ASCII | str.maketrans(dict(zip("[]{}`", "()   ", strict=True)) | {"²": "**2", "^": "**"})
"""Signs of other notations, each with Python's sign. Braces and backticks become spaces."""
FRACTION = re.compile(r"\\d?frac\{([^{}]*)\}\{([^{}]*)\}")
TOKEN = re.compile(r"\\(?:cdot|times)|[^\W\d]\w*(?:\.\w+)*|\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\*\*|//|\S")
ANSWER = re.compile(r"(?<![\w.])\d[\d_,]*\.?\d*(?:[eE][-+]?\d+)?|\bP\([^()]*(?:\([^()]*\)[^()]*)*\)")
"""A number or a PartitionSpec."""
LISTED = re.compile(r"^- [A-Z]: .*$", re.MULTILINE)
"""The list of options below a question's text."""
RTOL = 1e-9


def shown_formulas(question: Question, texts: Sequence[Text]) -> Iterator[tuple[str, str]]:
    """Yield (place, formula) for each formula in a text that always equals the right answer or an entry of it."""
    names, points, keys = _values(question)
    if not any(points):
        return
    for one in texts:
        for node in formulas_in(one.text, names):
            with suppress(BadFormula):
                found = evaluate(ast.unparse(node), names, points)
                if any(_equal(found, key) for key in keys if len({*key}) > 1):
                    yield one.place, ast.unparse(node)


def _equal(found: Sequence[float], key: Sequence[float]) -> bool:
    return all(math.isclose(f, k, rel_tol=RTOL) for f, k in zip(found, key, strict=True))


Key = tuple[Mapping[str, Any], AnswerKind, Any]
"""(draw, kind of answer, key)."""


def keys_of(question: Question) -> list[Key]:
    """Return the right answer for each draw; [] if the author's function fails, or if a person grades the question."""
    if isinstance(question.answer, Written):
        return []
    try:
        kinds = [(drawn, kind_of(question, drawn)) for drawn in some_variants(question, DRAWS)]
        return [(drawn, kind, wanted(question, question.fn, drawn, kind)) for drawn, kind in kinds]
    except Exception:  # another part of ``verify`` reports invalid keys
        return []


def _values(question: Question) -> tuple[list[str], list[list[float]], list[list[float]]]:
    """Return the names of numeric parameters, the parameters' values in each draw, and the numbers in right answers.

    A formula question has symbols in place of parameters. Each entry of a table gives two lists, with one number for
    each draw: the first list is in base units, the second in the entry's unit. A single number counts as one entry.
    """
    known, units = keys_of(question), units_of(question)
    if isinstance(question.answer, Formula):
        symbols = question.answer.symbols
        return list(symbols), points_of(symbols), [list(key.values) for _, _, key in known]
    names = [name for name, values in question.params.items() if all(map(_is_number, values))]
    answers = [entries_of(key) for _, _, key in known]
    keys = []
    for place in answers[0] if units and answers else ():
        values = [answer[place] for answer in answers]
        factor = unit_of(units[place[1]])[0]
        keys += [values, [value / factor for value in values]]
    return names, [[float(drawn[name]) for name in names] for drawn, _, _ in known], keys


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def formulas_in(text: str, names: Sequence[str]) -> Iterator[ast.expr]:
    """Yield each formula in a text, and the formula's parts (see ``_parts``).

    A formula has an operator. At least one of ``names`` is among the tokens around it (see ``_runs``).
    """
    for run in _runs(text, {*names}):
        start = 0
        while start < len(run) and not {*names}.isdisjoint(run):
            found, start = _longest(run, start)
            for node in _parts(found) if found else ():
                if any(isinstance(inner, ast.BinOp) for inner in ast.walk(node)):
                    yield node


def _parts(node: ast.expr, is_part: bool = True) -> Iterator[ast.expr]:
    """Yield a formula and its parts. In ``a * b / c``, the parts are ``a``, ``b`` and ``c``, but not ``a * b``."""
    if is_part:
        yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _parts(child, not (_is_product(node) and _is_product(child) and child is node.left))


def _is_product(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Sub)


def _runs(text: str, names: set[str]) -> Iterator[list[str]]:
    """Yield lists of consecutive tokens that may be formulas. In ``2 I (X - 1)``, the missing ``*`` signs are added."""
    run: list[str] = []
    for token in [*_tokens(text), ";"]:
        joint = _joint(run, token, names)
        if joint is None:
            yield run
        run = [token] if joint is None and _starts(token) else [] if joint is None else [*run, *joint, token]


def _joint(run: Sequence[str], token: str, names: set[str]) -> list[str] | None:
    """Return the tokens to add between ``run`` (the start of a formula) and ``token``; None if ``token`` cannot follow.

    The result is ["*"] where the text leaves out a multiplication sign, as in ``2 I``, and [] elsewhere.
    """
    before = run[-1] if run else "+"
    if not _starts(token):
        is_outside = token == "," and run.count("(") <= run.count(")")
        return [] if token in OPERATORS and not is_outside else None
    if not _ends(before) or (token == "(" and before in FUNCTIONS):
        return []
    is_factor = before in names or not before[0].isalpha()
    return ["*"] if is_factor and (token in names or token == "(") else None


def _tokens(text: str) -> list[str]:
    """Return the tokens of a text, with signs such as × and ² written as in Python."""
    tokens: list[str] = TOKEN.findall(FRACTION.sub(r"((\1)/(\2))", text).translate(SIGNS))
    return [PLAIN.get(token, token) for token in tokens]


def _starts(token: str) -> bool:
    return token[0].isalnum() or token == "("


def _ends(token: str) -> bool:
    return token[0].isalnum() or token == ")"


def _longest(run: list[str], start: int) -> tuple[ast.expr | None, int]:
    """Return the longest formula that starts at the token ``run[start]``, and the index of the token after it."""
    for stop in range(min(len(run), start + LONGEST), start + 2, -1):
        if _ends(run[stop - 1]):
            with suppress(SyntaxError, ValueError, RecursionError):
                return expression(" ".join(run[start:stop])).body, stop
    return None, start + 1


def shown_values(question: Question, texts: Sequence[Text]) -> Iterator[tuple[str, str]]:
    """Yield (place, answer) for each text that shows, in every draw, an answer that the grader accepts.

    If the right answer varies between draws, only the question's own text is searched, with the drawn numbers filled
    in. If the right answer is always the same choice of options, all texts are searched. Other constant answers are not
    searched for.

    A text shows a table if the text contains an entry of the table. It shows a choice of options if it names exactly
    the right options. It shows an order of items if it names all items in this order.
    """
    keys, filled = keys_of(question), _texts(question)
    if not keys or not filled or isinstance(question.answer, Formula):
        return
    varies = any(not kind.are_close(keys[0][2], want) for _, kind, want in keys)
    if not (varies or isinstance(question.answer, Choice)):
        return
    options = {_plain(text) for _, kind, _ in keys for text in _options(kind).values()}
    for one in texts:
        if one.place == f"the docstring of {question.name}":
            shown = filled
        elif varies or _plain(one.text) in options:
            # Only the question's own text has drawn numbers, so other texts cannot show an answer that varies. A text
            # that is one of the options does not show that this option is right.
            continue
        else:
            shown = [LISTED.sub("", one.text)] * len(keys)
        found = [_answer_in(text, kind, want) for text, (_, kind, want) in zip(shown, keys, strict=True)]
        if all(found):
            yield one.place, found[0]


def _texts(question: Question) -> list[str]:
    try:
        return [render_text(question, drawn) for drawn in some_variants(question, DRAWS)]
    except Exception:  # another part of ``verify`` reports invalid texts
        return []


def _answer_in(text: str, kind: AnswerKind, want: Any) -> str:
    if isinstance(kind, TableKind):
        found = (_written_in(text, kind.columns[column], value) for (_, column), value in want.items())
        return next(filter(None, found), "")
    if not (options := _options(kind)):
        return _written_in(text, kind, want)
    keys, right = named_options(text, options), [want] if isinstance(want, str) else [*want]
    same = keys == right if isinstance(kind, OrderKind) else sorted(keys) == sorted(right)
    return ", ".join(options[key] for key in keys) if same else ""


def _options(kind: AnswerKind) -> Mapping[str, str]:
    one = kind.one if isinstance(kind, ListedKind) else kind
    return one.options if isinstance(one, ChoiceKind) else {}


def _written_in(text: str, kind: AnswerKind, want: Any) -> str:
    """Return the first PartitionSpec or number in a text that is an accepted answer; '' for none.

    A number may have any unit that the text names.
    """
    units = dict.fromkeys(["", *filter(longest_unit, re.findall(r"[A-Za-z]+", text))])
    for found in ANSWER.finditer(text):
        for part in [f"{found[0]} {unit}".strip() for unit in units] if found[0][0].isdigit() else [found[0]]:
            with suppress(BadAnswer):
                if kind.distance(kind.read(part), want) is not None:
                    return part
    return ""


def _plain(text: str) -> str:
    return plain_name(text.replace("`", ""))


def named_options(text: str, options: Mapping[str, str]) -> list[str]:
    """Return the keys of the options whose texts occur in a text, in order of their first occurrence."""
    by_text = {_plain(shown): key for key, shown in options.items()}
    longest_first = "|".join(map(re.escape, sorted(by_text, key=len, reverse=True)))
    found = re.findall(rf"(?<!\w)(?:{longest_first})(?!\w)", _plain(text))
    return list(dict.fromkeys(by_text[shown] for shown in found))
