"""Schedules are sent as JSON, and readers do not trust them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from grader.wire.frames import BadFrame
from grader.wire.operations import Communication
from grader.wire.schedule import Instruction, Schedule, from_json, to_json

TALKS = Communication("permute", ((0, 1), (1, 0)), ("x",), 64)
BODY = (
    Instruction("matmul", "dot_general", cycles=5, flops=8),
    Instruction("collective", "permute", number=1, communication=TALKS),
)
WHOLE = Schedule(
    {"x": 2},
    (
        Instruction("start", "permute", number=0, communication=TALKS, file="f.py", line=3),
        Instruction("kernel", "copy", bytes=64),
        Instruction("done", "", number=0),
        Instruction("loop", "while", rounds=4, bodies=(BODY,)),
    ),
    1, 2, 3, 1, "jax 1, libtpu 2", "abc", ((((0, 4),), ((4, 8),)),),
)  # fmt: skip


def test_written_schedules_are_read_back() -> None:
    assert from_json(json.loads(json.dumps(to_json(WHOLE)))) == WHOLE
    assert WHOLE.held == 5 and len(list(WHOLE.walk())) == 6


def at(*path: Any) -> Callable[[Any, Any], None]:
    def put(data: Any, value: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        data[path[-1]] = value

    return put


@pytest.mark.parametrize(
    ("put", "value"),
    [
        (at("instructions", 0, "op"), "run"),
        (at("instructions", 0, "communication"), ["permute", [[0, 2]], ["x"], 64]),
        (at("instructions", 0, "communication"), ["permute", [[0]], ["x"], 64]),
        (at("instructions", 0, "communication"), ["all_gather", [], ["x"], 64]),
        (at("instructions", 0, "communication"), ["gossip", [[0, 1]], ["x"], 64]),
        (at("instructions", 0, "communication"), ["permute", [[0, 1]], ["y"], 64]),
        (at("instructions", 0, "communication"), None),
        (at("instructions", 2, "number"), 7),
        (at("instructions", 2, "op"), "kernel"),
        (at("instructions", 1, "bytes"), -1),
        (at("instructions", 1, "cycles"), 1.5),
        (at("instructions", 1, "cycles"), True),
        (at("instructions", 1, "cycles"), 1 << 200),
        (at("instructions", 1, "what"), "x" * 1000),
        (at("instructions", 3, "bodies"), []),
        (at("instructions", 1, "bodies"), [[]]),
        (at("instructions", 3, "bodies", 0, 1, "number"), 0),
        (at("instructions"), {}),
        (at("mesh"), [["x", 0]]),
        (at("temporaries"), None),
        (at("layouts"), [[[[0, 4]]]]),
        (at("by"), 3),
    ],
)
def test_data_that_are_no_schedule_are_refused(put: Callable[[Any, Any], None], value: Any) -> None:
    data = copy.deepcopy(to_json(WHOLE))
    put(data, value)
    with pytest.raises(BadFrame, match="not a schedule"):
        from_json(data)


def test_too_deeply_nested_loops_are_refused() -> None:
    body: list[Any] = []
    for _ in range(30):
        body = [{"op": "loop", "what": "while", "rounds": 1, "bodies": [body]}]
    with pytest.raises(BadFrame, match="nested too deeply"):
        from_json(to_json(WHOLE) | {"instructions": body})
