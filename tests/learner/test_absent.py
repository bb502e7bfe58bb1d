"""If learner code imports a missing module, only code that uses this module fails."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from typing import Any

import pytest

from grader.learner.absent import NotInstalled, StandIn, stood_in
from grader.wire.text import describe_load
from tests.learner.texts import A


def test_a_module_that_is_not_there_is_reported_where_it_is_used(traced: Callable[..., Any]) -> None:
    made = traced("import einops_not_there as e\n\n\ndef f(a, *, mesh):\n    return e.rearrange(a)\n", A)
    assert (
        made.fault["message"]
        == "einops_not_there is not installed where your submission is graded; line 1 imports it, line 5 uses it"
    )
    assert made.fault["line"] == 5
    assert [describe_load(f) for f in made.loading] == [
        "a.py imports einops_not_there at line 1, which is not installed where your submission is graded"
    ]


def test_a_top_level_use_of_an_absent_module_is_skipped_and_reported(traced: Callable[..., Any]) -> None:
    text = (
        "from __future__ import annotations\nimport plot_not_there as plt\nplt.plot([1])\nfig, ax = plt.subplots(\n    2)\n"
        "ax[0].plot()\ndef f(a: Unknown, *, mesh):\n    return a\n"
    )
    made = traced(text, A)
    assert made.program
    assert [describe_load(f) for f in made.loading][1:] == [
        f"a.py stopped at line {n}: plot_not_there is not installed where your submission is graded; line 2 imports it, line {n} uses it"
        for n in (3, 4, 6)
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("from jax import no_such_name", "ImportError: cannot import name 'no_such_name' from 'jax'"),
        ("import jax.no_such_module", "ModuleNotFoundError: No module named 'jax.no_such_module'"),
        ("from . import sibling", "ImportError: attempted relative import with no known parent package"),
    ],
)
def test_a_misspelt_import_is_an_error(traced: Callable[..., Any], line: str, message: str) -> None:
    (fault,) = traced(f"{line}\ndef f(a, *, mesh): ...\n", A).loading
    assert fault["message"].startswith(message) and "/" not in fault["message"]


def test_an_unreadable_module_counts_as_absent(traced: Callable[..., Any], monkeypatch: Any) -> None:
    class Refusing:
        def find_spec(self, name: str, *rest: Any) -> None:
            if name == "forbidden_module":
                raise PermissionError(13, "Permission denied", "/usr/lib/somewhere/forbidden_module.py")

    monkeypatch.setattr(sys, "meta_path", [Refusing(), *sys.meta_path])
    assert traced("import forbidden_module\ndef f(a, *, mesh):\n    return a\n", A).program


def test_the_import_statement_calls_the_replaced_builtin() -> None:
    """Only the namespace of the source has a replacement of ``builtins.__import__``. Other code calls Python's own."""
    own, space, notes = builtins.__import__, {"__name__": "theirs"}, []
    with stood_in(space, lambda *note: notes.append(note), lambda file, line: line == 2):
        exec(compile("import plot_not_there.inner as p, math\n", "a.py", "exec"), space)
        with pytest.raises(ModuleNotFoundError):
            exec(compile("\nimport plot_not_there\n", "a.py", "exec"), space)  # line 2 counts as guarded
        with pytest.raises(ModuleNotFoundError):
            import plot_not_there  # noqa: F401  # pyright: ignore[reportMissingImports]
    assert isinstance(space["p"], StandIn) and notes == [("plot_not_there", 1, "a.py")]
    assert builtins.__import__ is own


@pytest.mark.parametrize(
    "use",
    [
        "8 / p", "p / 8", "8 - p", "p ** 2", "2 ** p", "p // 2", "p % 2", "-p", "p < 3", "3 >= p", "[1] @ p", "int(p)", "3 in p",
        "divmod(p, 2)", "round(p)", "p << 1", "p & 1",
    ],
)  # fmt: skip
def test_each_operator_names_the_import_of_a_missing_module(use: str) -> None:
    with pytest.raises(
        NotInstalled, match=r"^helpers is not installed where your submission is graded; line 3 imports it$"
    ):
        eval(use, {"p": StandIn("helpers", 3).size})
