"""IPython syntax is replaced only where a statement starts."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from grader.intake import notebooks
from grader.intake.notebooks import neutralise
from tests.handed_in import PIECES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%matplotlib inline\na = 1", "pass  # %matplotlib inline\na = 1"),
        ("if a:\n    !ls -l 'x\nb = 2", "if a:\n    pass  # !ls -l 'x\nb = 2"),
        ("jnp.sum?", "pass  # jnp.sum?"),
        ("?jnp\n%%time?", "pass  # ?jnp\npass  # %%time?"),
        ("a = !ls\nb = a", "a = None  # a = !ls\nb = a"),
        ("  x.y['k'] = %env HOME", "  x.y['k'] = None  # x.y['k'] = %env HOME"),
        ("a, b = !ls", "a = b = None  # a, b = !ls"),
        ("*a, = !ls", "a = None  # *a, = !ls"),
        ("!echo a \\\n  b\nc = 1", "pass  # !echo a \\\n#   b\nc = 1"),
        ("pip install jax\na = 1", "pass  # pip install jax\na = 1"),
        ("%time a = f(\n    1)\n!ls", "a = f(\n    1)\npass  # !ls"),
        ("%timeit f(1)", "pass  # %timeit f(1)"),
        ("%%time\na = 1", "# %%time\na = 1"),
        ("\n%%capture out\n%%timeit -n 1\n!ls\na = 1", "\n# %%capture out\n# %%timeit -n 1\npass  # !ls\na = 1"),
        ("%%bash\nrm -rf /", ""),
        ("%%writefile c3_contracting.py\na = 1", ""),
        ("%%time\n%%html\n<b>", ""),
    ],
)
def test_ipython_syntax_is_replaced(text: str, expected: str):
    assert neutralise(text)[0] == expected


@pytest.mark.parametrize(
    "kept",
    [
        's = """\n%matplotlib inline\n!ls\nwhat?\n"""',
        "s = '''it's\n%x\n'''",
        "a = (7\n%3\n)",
        "a = 7 \\\n%3",
        "s = 'a \\\n%b'",
        "a = [1,  # ( don't\n%x\n]",
        "b = 1 != 2",
        "f(a=1)\n# what?",
        "'a = %'",
        "a['x = %s']",
    ],
)
def test_only_statements_are_replaced(kept: str):
    text, left_out = neutralise(f"{kept}\n%magic")
    assert text == f"{kept}\npass  # %magic"
    assert left_out == ["%magic"]


def test_a_magic_in_brackets_that_never_close_is_left_for_python_to_report():
    assert neutralise("f(\n%x") == ("f(\n%x", [])


def test_warnings_in_learner_code_are_no_errors():
    assert neutralise(r"a = '\d'") == (r"a = '\d'", [])


STATEMENTS = [
    "",
    "a = 7\\\n%3",
    "s = '''\n!ls\n?\n'''",
    "b = (1\n%2)",
    "x = 1 != 2",
    "# a?",
    "r = r'\\''",
    'f"{a!r}"',
    "if a:\n    s = '%x'\n    t = '\\\n!y'",
    "d = {'a':\n1}",
    "def f(): pass",
]
PYTHON = st.lists(st.sampled_from(STATEMENTS)).map("\n".join)


@hypothesis_settings(max_examples=500)
@given(PIECES | st.text(max_size=60))
def test_replacing_ipython_syntax_keeps_line_numbers(text: str):
    changed, left_out = neutralise(text)
    assert changed.count("\n") == text.count("\n") or (changed == "" and left_out[-1].startswith("%%"))
    assert left_out or changed == text


@given(PYTHON)
def test_python_is_not_changed(text: str):
    ast.parse(text)
    assert neutralise(text) == (text, [])
    assert notebooks.without_line_magics(text, []) == text
    assert neutralise(f"{text}\n%x") == (f"{text}\npass  # %x", ["%x"])


LONG = {
    "magics": "%x\n" * 60_000,
    "cell magics": "%%time\n" * 25_000,
    "empty lines": "\n" * 190_000 + "%",
    "blanks": " \t" * 90_000 + "%",
    "strings": '"""' * 60_000 + "\n%x",
    "no end of a string": "'" * 190_001 + "\n%x\\",
    "assignments": "x = " * 40_000 + "%y",
    "names": "x, " * 60_000 + "\n%x",
    "brackets": "(" * 190_000 + "\n%",
    "minus": "-" * 190_000 + "?",
    "help": "?" * 190_000,
    "a name and blanks": "a" + " " * 190_000 + "\n%x",
    "a long name": "a" * 190_000 + "\n%x",
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_long_cells_are_processed_in_linear_time(text: str):
    neutralise(text)  # a quadratic algorithm would take minutes


def test_a_cell_above_the_length_limit_is_not_changed():
    text = "%x\n" * 100_000
    assert neutralise(text) == (text, [])
