"""The messages between processes have the fields that ``wire/messages.py`` describes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import numpy as np
import pytest

from grader.common import formulas
from grader.common.dependency import COLLECTIVES
from grader.exercise.arguments import normal
from grader.runner import execution, poison
from grader.sandbox import worker as sandbox
from grader.wire import frames, messages
from tests.conftest import trace_text
from tests.sandbox.submissions import LIMITS, call

SUM = """
import jax
from jax.sharding import PartitionSpec as P
def f(a, *, mesh):
    return jax.shard_map(lambda a: jax.lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(a)
"""
A = normal(8, 4, spec=("x", None))
VALUES = [np.ones((8, 4), np.float32)]


def check(message: Mapping[str, Any], kind: Any) -> None:
    """Assert that a message has all required fields of a type, and no unknown fields."""
    every = get_type_hints(kind, include_extras=True)
    required = {n for n, of in every.items() if kind.__total__ and get_origin(of) is not NotRequired}
    assert required <= set(message) <= set(every), (kind.__name__, sorted(message))


def test_every_field_has_a_line_that_describes_it() -> None:
    text = Path(messages.__file__).read_text(encoding="utf-8")
    lines, classes = text.splitlines(), [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    fields = [field for one in classes for field in one.body if isinstance(field, ast.AnnAssign)]
    assert len(fields) > 80
    assert [lines[f.lineno - 1] for f in fields if "  # " not in lines[f.lineno - 1]] == []


@pytest.mark.parametrize("more", [{}, {"wrt": ("a",), "cotangent": normal()}, {"timing": True}])
def test_a_request_for_a_call_has_the_described_fields(devices: int, more: dict[str, Any]) -> None:
    made = trace_text(SUM.replace("(a)\n", "(a).sum()\n"), A, mesh={"x": 4}, **more)
    check(made.request, messages.CallAsk)
    for argument in made.request["args"]:
        check(argument, messages.Argument)
    for cotangent in made.request["cotangents"]:
        check(cotangent, messages.Cotangent)
    check(made.reply, messages.ChildMessage)
    if "timing" in more:
        check(execution.execute(made.request, made.program, [])[0], messages.RunnerAnswer)


def test_answers_of_a_runner_have_the_described_fields(devices: int) -> None:
    made = trace_text(SUM, A, mesh={"x": 4})
    for header, _ in (
        execution.execute(made.request, made.program, [VALUES]),
        execution.values(made.request, made.program, [VALUES], True),
        execution.times(made.request, made.program, 2, 1),
        poison.moved(made.request, made.program, [VALUES], COLLECTIVES, [0]),
        execution.execute(made.request, b"no program", [VALUES]),
    ):
        check(header, messages.RunnerAnswer)
        for result in header.get("outputs", [[]])[0]:
            check(result, messages.ResultArray)
    request: messages.FormulaText = {"text": "2*X", "names": ["X"], "points": [[1.0], [2.0]]}
    check(formulas.answer(request), messages.RunnerAnswer)
    check(formulas.answer({**request, "text": "2*"}), messages.RunnerAnswer)


def test_requests_to_workers_and_their_frames_have_the_described_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Mapping[str, Any]] = []

    def pack(header: Mapping[str, Any], blobs: list[bytes] | None = None, own: Any = frames.pack) -> bytes:
        sent.append(header)
        return own(header, blobs)

    monkeypatch.setattr(sandbox.frames, "pack", pack)
    source: messages.SourceCode = {"name": "a.py", "chunks": [["a.py", "import time\nq = 1\ndef f(): time.sleep(2)"]]}
    question: messages.NumberAsk = {"kind": "number", "task": "q"}
    with sandbox.Worker("trace", "none", 2, LIMITS) as worker:
        found = [frame for frame, _ in worker.trace(source, [question, call("f"), call("g")])]
    (asks, hidden), (code, request) = sent[:2], sent[2:]
    assert set(asks) == set(hidden) == {"asks"}
    check(code, messages.SourceCode)
    check(request, messages.TraceRequest)
    kinds = [frame["from"] for frame in found]
    assert kinds == ["child", "child", "child", "worker", "child", "child", "worker"]
    for frame in found:
        check(frame, messages.ChildFrame if frame["from"] == "child" else messages.KeeperFrame)
        check(frame.get("body", {}), messages.ChildMessage)
    assert found[-1].get("end") == messages.DONE


def test_every_kind_of_ask_has_one_type() -> None:
    kinds = [get_args(get_type_hints(kind)["kind"]) for kind in get_args(messages.TracerAsk)]
    assert kinds == [("number",), ("answer",), ("function",), ("array", "body")]
