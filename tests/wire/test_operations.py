"""Operations as JSON: written data are read back, and everything else is refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.wire.frames import BadFrame
from grader.wire.operations import (
    LONGEST_KEPT,
    MAX_USES,
    Body,
    Communication,
    Operation,
    Operations,
    Value,
    from_json,
    from_text,
    to_json,
    to_text,
)

ROUND = Communication("permute", ((0, 1), (1, 0)), ("x",), 32)
PROGRAM = Operations(
    {"x": 2},
    (Value((8,), "float32", 2), *[Value((4, 2), "bfloat16")] * 4, Value((), "int32"), Value((4, 2), "bfloat16")),
    Body(
        (0,),
        (
            Operation("shard", (0,), (1,)),
            Operation("constant", (), (5,), number=-3),
            Operation(
                "while", (1,), (2,), rounds=4, line=7, file="a.py",
                bodies=(Body((6,), (), (5,)), Body((3,), (Operation("collective_permute", (3,), (4,), communication=ROUND),), (4,)),),
            ),
        ),
        (2,),
    ),
)  # fmt: skip


def test_written_operations_are_read_back() -> None:
    assert from_json(json.loads(json.dumps(to_json(PROGRAM)))) == PROGRAM


def test_bytes_are_what_one_device_holds() -> None:
    assert [v.bytes for v in PROGRAM.values] == [16, 16, 16, 16, 16, 4, 16]


def test_a_walk_visits_operations_in_bodies() -> None:
    assert [op.name for op in PROGRAM.walk()] == ["shard", "constant", "while", "collective_permute"]


def changed(path: list[Any], value: Any) -> Any:
    data = copy.deepcopy(to_json(PROGRAM))
    place: Any = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return data


OPS = ["main", 1]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["mesh"], [["x", 0]]),
        (["values", 0], [[1 << 40, 1 << 40], "float32", 1]),
        (["values", 0], [[8], "object", 1]),
        (["values", 0], [[8], "float32", 0]),
        (["values", 0], [[-8], "float32", 1]),
        (["values", 0], [[True], "float32", 1]),
        ([*OPS, 0, "in"], [9]),
        ([*OPS, 0, "in"], [2]),  # this value does not exist yet
        ([*OPS, 0, "out"], [0]),  # this value exists already
        ([*OPS, 0, "name"], 3),
        ([*OPS, 0, "flops"], -1),
        ([*OPS, 0, "flops"], 1.5),
        ([*OPS, 1, "number"], 1 << 80),
        ([*OPS, 1, "direction"], "NEXT"),
        ([*OPS, 1, "direction"], ["LT"]),
        ([*OPS, 2, "rounds"], "many"),
        ([*OPS, 2, "line"], -1),
        ([*OPS, 2, "bodies"], [[[3], [], []]] * 2),
        ([*OPS, 2, "bodies", 1, 1, 0, "communication"], ["permute", [[0, 2]], ["x"], 32]),
        ([*OPS, 2, "bodies", 1, 1, 0, "communication"], ["permute", [[0]], ["x"], 32]),
        ([*OPS, 2, "bodies", 1, 1, 0, "communication"], ["gossip", [[0, 1]], ["x"], 32]),
        ([*OPS, 2, "bodies", 1, 1, 0, "communication"], ["permute", [[0, 1]], ["z"], 32]),
        (["main"], [[0], []]),
    ],
)  # fmt: skip
def test_data_that_are_no_program_are_refused(path: list[Any], value: Any) -> None:
    with pytest.raises(BadFrame, match="not a program"):
        from_json(changed(path, value))


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**20) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["mesh", "values", "main", "in", "out", "name"]), inner, max_size=6)
    ),
)


@settings(max_examples=300)
@given(plain)
def test_anything_is_a_program_or_refused(data: Any) -> None:
    with pytest.raises(BadFrame):
        from_json(data)


def nested(levels: int) -> Any:
    data: list[Any] = [[], [], []]
    for _ in range(levels):
        data = [[], [{"name": "case", "in": [0], "out": [], "bodies": [data]}], []]
    return {"mesh": [["x", 2]], "values": [[[], "int32", 1]], "main": [[0], *data[1:]]}


def test_too_deeply_nested_operations_are_refused() -> None:
    assert from_json(nested(16)).main
    with pytest.raises(BadFrame, match="nested too deeply"):
        from_json(nested(17))


def test_the_number_of_uses_of_values_is_limited() -> None:
    """Readers follow every use of a value, and 5,000 operations with 5,000 operands would have millions of uses."""

    def program(uses: int) -> Any:
        all_of_it = {"name": "concatenate", "in": [0] * uses, "out": [1]}
        return {"mesh": [["x", 2]], "values": [[[], "int32", 1]] * 2, "main": [[0], [all_of_it], [1]]}

    assert len(from_json(program(MAX_USES - 1)).main.operations[0].operands) == MAX_USES - 1
    with pytest.raises(BadFrame, match="the operands of all operations are more than"):
        from_json(program(MAX_USES))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[" * 500 + "]" * 500, "nested too deeply"),
        ("{}", "not a program"),
    ],
)
def test_text_that_is_no_operations_is_a_bad_frame(text: str, why: str) -> None:
    with pytest.raises(BadFrame, match=why):
        from_text(text)


def test_operations_come_back_from_text() -> None:
    program = Operations({"x": 2}, (Value((4,), "float32"),), Body((0,), (), (0,)))
    assert from_text(to_text(program)) == program


def test_equal_texts_are_taken_apart_once_unless_they_are_long() -> None:
    short = to_text(PROGRAM)
    assert from_text(short) is from_text(str(short))
    long = short + " " * LONGEST_KEPT
    assert from_text(long) is not from_text(long) and from_text(long) == PROGRAM
