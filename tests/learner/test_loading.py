"""A source runs chunk by chunk: an error stops only its own chunk, and earlier definitions stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from grader.learner.answering import reply_to
from grader.learner.loading import as_they_are, load
from grader.wire.messages import FunctionAsk
from tests.learner.texts import A


def test_a_syntax_error_is_reported_with_its_line(traced: Callable[..., Any]) -> None:
    made = traced("x = 1\ndef f(a, *, mesh)\n    return a\n", A)
    assert [(f["kind"], f["line"], f["message"]) for f in made.loading] == [("syntax", 2, "SyntaxError: expected ':'")]
    assert made.fault["message"] == "f is not defined: a.py stopped at line 2: SyntaxError: expected ':'"


def test_an_exit_while_loading_is_a_fault_and_what_was_defined_before_counts(traced: Callable[..., Any]) -> None:
    made = traced("def f(a, *, mesh):\n    return a\nimport sys\nsys.exit(3)\n", A)
    assert [(f["type"], f["line"], f["chunk"]) for f in made.loading] == [("SystemExit", 4, "a.py")]
    assert made.program


def test_cells_after_an_error_are_run(traced: Callable[..., Any]) -> None:
    """As in a notebook, a scratch cell that fails stops no other cell."""
    made = traced(["import jax", "b = c", "x = 1\n1 / 0\nx = 2", "def f(a, *, mesh):\n    return a * x\n"], A)
    assert [(f["chunk"], f["line"], f["type"]) for f in made.loading] == [
        ("cell 2", 1, "NameError"),
        ("cell 3", 2, "ZeroDivisionError"),
    ]
    assert made.program


def test_a_later_cell_replaces_an_earlier_one(traced: Callable[..., Any]) -> None:
    cells = ["def f(a, *, mesh):\n    raise NotImplementedError", "def f(a, *, mesh):\n    return a"]
    assert traced(cells, A).program
    assert traced(cells[::-1], A).fault["kind"] == "missing"


def test_a_line_is_counted_in_its_cell(traced: Callable[..., Any]) -> None:
    fault = traced(["x = 1\ny = 2\n", "\ndef f(a, *, mesh):\n    return 1 / 0\n"], A).fault
    assert (fault["file"], fault["line"]) == ("cell 2", 3)


def test_an_undefined_task_is_reported_with_the_cell_that_stopped(traced: Callable[..., Any]) -> None:
    fault = traced(["y = 1", "import jax.nowhere_to_be_found\ndef f(a, *, mesh):\n    return a\n"], A).fault
    assert fault["message"] == (
        "f is not defined: cell 2 stopped at line 1: ModuleNotFoundError: No module named 'jax.nowhere_to_be_found'"
    )


def test_endless_loading_is_reported_as_a_timeout(traced: Callable[..., Any]) -> None:
    made = traced("while True: pass\n", A, seconds=0.3)
    assert [f["kind"] for f in made.loading] == ["timeout"]


def test_future_imports_of_the_grader_are_not_inherited(traced: Callable[..., Any]) -> None:
    cases = traced("def f(n: int): return str(f.__annotations__['n'])\n", cases=[{"n": 1}])
    assert cases.reply["values"] == [{"value": "<class 'int'>"}]


def test_a_state_is_that_after_a_chunk_or_the_last_definition(devices: int) -> None:
    cells = ["def f(): return X\nX = 1", "X = 2\ng = lambda: X", "def f(): return 10 * X\nX = 3", "X = 4\ndel g"]
    program = load({"name": "a", "chunks": [[f"cell {i}", c] for i, c in enumerate(cells, 1)]}, 20)

    def value(task: str, after: str | None) -> Any:
        ask: FunctionAsk = {"kind": "function", "task": task, "cases": [{"dict": []}], "after": after}
        reply: Any = reply_to(ask, program, 20)[0]
        return reply["values"][0]["value"] if "values" in reply else reply["fault"]["message"]

    assert value("f", "cell 1") == 30  # cell 3 replaces the function of cell 1
    assert value("f", "cell 4") == value("f", None) == value("f", "no such cell") == 40
    assert value("g", "cell 2") == 2 and value("g", "cell 3") == 3
    assert value("g", None) == "g is not defined"
    assert value("f", "cell 1") == 30


@pytest.mark.parametrize(
    ("last", "want"),
    [
        ("answer.append(3)", [1]),
        ("answer += [3]", [1]),
        ("scratch = 0", [1]),
        ("answer = [2]", [2]),
        ("answer = [2]\n\ncheck", [2]),
    ],
)
def test_a_list_is_read_as_it_was_after_its_check_cell_or_its_last_definition(last: str, want: list[int]) -> None:
    cells = ["answer = [1]", "check = 0", *last.split("\n\n"), "answer.append(4)"]
    program = load({"name": "a", "chunks": [[f"cell {i}", c] for i, c in enumerate(cells, 1)]}, 20)
    ask: FunctionAsk = {"kind": "function", "task": "answer", "cases": [], "after": "cell 2"}
    state = program.state_for(ask)
    assert state is not None and state[0]["answer"] == want


def test_a_state_is_kept_with_any_values() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    round_and_round: dict[str, Any] = {"a": [1]}
    round_and_round["self"] = round_and_round
    shared = [{1, 2}]
    kept = as_they_are({"deep": deep, "r": round_and_round, "s": shared, "t": shared, "big": list(range(200_000))})
    key = type("Key", (), {"__hash__": lambda self: 1 // len(calls)})()
    calls: list[int] = [1]
    odd = {key: [1]}
    calls.clear()
    assert as_they_are({"odd": odd})["odd"] is odd and as_they_are({"odd": {1, "a"}}) == {"odd": {1, "a"}}
    round_and_round["a"].append(2)
    shared[0].add(3)
    assert kept["r"]["a"] == [1] and kept["r"]["self"] is kept["r"]
    assert kept["s"] == [{1, 2}] and kept["s"] is kept["t"] and len(kept["big"]) == 200_000
