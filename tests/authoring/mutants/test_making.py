"""The places where operators change a reference, and the places that they leave unchanged."""

from __future__ import annotations

import ast

import pytest

from grader.authoring.mutants.making import _indices, differing, is_wrapped, variations
from grader.authoring.mutants.operators import TaskContext
from tests.mutated import TRACED, made


def test_no_mutant_removes_the_remainder_of_an_index_that_may_be_negative():
    for index, wraps in {"(i - 1) % n": True, "(i + 1) % n": False, "i % n": False}.items():
        assert is_wrapped(ast.parse(index, mode="eval").body) is wraps
    module = ast.parse("def f(c, i, n):\n    return c[(i - 1) % n]")
    index = next(n.slice for n in ast.walk(module) if isinstance(n, ast.Subscript))

    def texts(context: TaskContext) -> set[str]:
        return {text for _, _, text in variations(module, module.body[0], context)}

    gone = texts(TRACED) - texts(TaskContext(indices=frozenset({id(index)})))
    assert gone == {"def f(c, i, n):\n    return c[i - 1]"}


def test_operators_leave_messages_annotations_and_docstrings_unchanged():
    source = 'def f(a: P("x")) -> P("x"):\n    """x"""\n    raise ValueError("x" + "y")'
    assert made(source, "axis") == made(source, "arithmetic") == set()


def test_making_variations_leaves_the_syntax_tree_unchanged():
    module = ast.parse("def f(a):\n    return psum(a @ a, 'x') if a < 1 else [a, 2]")
    before = ast.unparse(module)
    assert len(list(variations(module, module.body[0], TRACED))) > 10
    assert ast.unparse(module) == before


def test_differing_returns_the_lines_that_changed():
    assert differing("a\nb\nc", "a\nd\nc") == ("b", "d")
    assert differing("a\nb\nc", "a\nc") == ("b", "")
    assert differing("a\n  b", "a\n  b\n  c") == ("", "c")


@pytest.mark.parametrize(
    ("line", "traced", "count"),
    [
        ("c[:, (i - 1) % n]", True, 1),
        ("c[(i - 1) % n, (j - 2) % n]", False, 2),
        ("[(i, (i - 1) % n) for i in range(n)]", True, 1),
        (
            "[(i, (i - 1) % n) for i in range(n)]",
            False,
            0,
        ),  # JAX does not wrap -1 to n - 1 here, because no array is indexed: these pairs are the task's result
        ("[(i, (i + 1) % n) for i in range(n)]", True, 0),
        ("(i - 1) % n", True, 0),
    ],
)
def test_no_mutant_removes_the_remainder_of_a_difference_that_jax_wraps(line: str, traced: bool, count: int) -> None:
    assert sum(map(is_wrapped, _indices(ast.parse(line), traced))) == count
