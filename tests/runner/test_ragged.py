"""Admit ragged_all_to_all only as JAX writes it, count its bytes, and run it although XLA:CPU cannot."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from grader.exercise import integers, normal
from grader.runner import execution, facts
from grader.runner.admission import ProgramRefused
from grader.runner.program import Program, canonical
from tests import interpreter
from tests.conftest import Traced, trace_text
from tests.runner.test_program import code_of

ROWS, ROOM, WIDTH = 6, 9, 2
MESHES: list[tuple[dict[str, int], Any]] = [
    ({"x": 4}, "x"), ({"x": 4, "y": 2}, "x"), ({"x": 4, "y": 2}, "y"), ({"x": 2, "y": 4}, ("x", "y")),
    ({"x": 2, "y": 4}, ("y", "x")),
]  # fmt: skip
TEXT = """
from jax import lax

def f(operand, output, starts, sizes, to, expected):
    return lax.ragged_all_to_all(operand, output, starts[0], sizes[0], to[0], expected[0], axis_name=AXIS)
"""


@pytest.fixture(autouse=True)
def _devices(devices: int) -> None:
    """Start eight simulated devices."""


def traced(mesh: dict[str, int], axis: Any, each: int = 1, text: str = TEXT) -> Traced:
    """Trace a body in which every device sends ``each`` slices of its ROWS rows to every member of its group."""
    return _traced(tuple(mesh.items()), axis, each, text)


@cache
def _traced(sizes: tuple, axis: Any, each: int, text: str) -> Traced:
    mesh = dict(sizes)
    n = members(mesh, axis)
    arrays = [normal(n * rows, WIDTH, spec=(axis,)) for rows in (ROWS, ROOM)]
    about = [integers(0, 2, n, n * each, spec=(axis,)) for _ in range(4)]
    return trace_text(text.replace("AXIS", repr(axis)), *arrays, *about, mesh=mesh, kind="body", out_specs=P(axis))


def members(mesh: dict[str, int], axis: Any) -> int:
    return int(np.prod([mesh[a] for a in ((axis,) if isinstance(axis, str) else axis)]))


def ran(made: Traced, inputs: list[np.ndarray]) -> np.ndarray:
    """Return the results as [members, ROOM, WIDTH]. Of the devices with equal results, one is enough."""
    header, blobs = execution.execute(made.request, made.program, [inputs])
    assert "added" in header and "outputs" in header, header
    assert header["added"] == []
    (about,) = header["outputs"][0]
    whole = np.zeros(about["shape"], np.float32)
    for ((a, b), _), blob in zip(about["slices"], blobs, strict=True):
        whole[a:b] = np.frombuffer(blob, np.float32).reshape(-1, WIDTH)
    return whole.reshape(-1, ROOM, WIDTH)


def sizes_that_fit(draw: Any, n: int, each: int) -> np.ndarray:
    """Draw the number of rows in each slice, as [sender, slice]. No device sends over ROWS or gets over ROOM rows."""
    sizes = np.zeros((n, n * each), np.int32)
    for i in range(n):
        for k in range(n * each):
            room = min(ROWS - sizes[i].sum(), ROOM - sizes[:, k // each * each : (k // each + 1) * each].sum())
            sizes[i, k] = draw(st.integers(0, min(3, int(room))))
    return sizes


def arguments(sizes: np.ndarray, each: int, seed: int = 0) -> list[np.ndarray]:
    """Return the six arguments of ragged_all_to_all for slices of these sizes. Receivers store rows by sender."""
    n, rng = len(sizes), np.random.default_rng(seed)
    operand, output = (rng.standard_normal((n * rows, WIDTH)).astype(np.float32) for rows in (ROWS, ROOM))
    starts = np.cumsum(sizes, 1, dtype=np.int32) - sizes
    to, expected = np.zeros_like(sizes), np.zeros_like(sizes)
    for j in range(n):
        arriving = sizes[:, j * each : (j + 1) * each]
        to[:, j * each : (j + 1) * each] = (np.cumsum(arriving) - arriving.reshape(-1)).reshape(arriving.shape)
        expected[j] = arriving.reshape(-1)
    return [operand, output, starts, sizes, to, expected]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.sampled_from(MESHES), st.sampled_from([1, 2]))
def test_ragged_all_to_all_computes_what_jax_documents_and_facts_hold(data: Any, where: Any, each: int) -> None:
    """Compare the runner, which moves blocks, with the tests' interpreter.

    The interpreter moves slice by slice, as JAX documents the operation, and counts the bytes.
    """
    mesh, axis = where
    made = traced(mesh, axis, each)
    n = members(mesh, axis)
    inputs = arguments(sizes_that_fit(data.draw, n, each), each)
    module = made.form.parse()
    with module.context:
        results, counts = interpreter.run(module, mesh, inputs)
    np.testing.assert_array_equal(ran(made, inputs), results[0][0].reshape(n, ROOM, WIDTH))
    (found,) = facts.read(module, mesh, {"a.py"}).collectives
    named = (axis,) if isinstance(axis, str) else axis
    assert (found.kind, found.axes, found.line) == ("ragged_all_to_all", tuple(a for a in mesh if a in named), 5)
    assert found.bytes == ROWS * WIDTH * 4
    for device, sent in enumerate(counts.sent):
        assert found.sent.least <= sent["ragged_all_to_all"] <= found.sent.most
        assert counts.ran[device]["ragged_all_to_all"] == found.count == 1


def test_sent_bytes_are_bounded_where_a_device_sends_rows_to_all() -> None:
    made = traced({"x": 4}, "x")
    n, sizes = 4, np.full((4, 4), 2, np.int32)
    inputs = arguments(sizes, 1)
    inputs[2] = np.zeros((n, n), np.int32)  # every device sends its first two rows to all devices
    module = made.form.parse()
    with module.context:
        results, counts = interpreter.run(module, {"x": 4}, inputs)
    np.testing.assert_array_equal(ran(made, inputs), results[0][0].reshape(n, ROOM, WIDTH))
    (found,) = facts.read(module, {"x": 4}, set()).collectives
    assert (counts.sent[0]["ragged_all_to_all"], found.sent.most) == (3 * 2 * WIDTH * 4, 3 * ROWS * WIDTH * 4)


@pytest.mark.parametrize(
    ("which", "value"),
    [(5, 3), (3, 3), (2, ROWS), (2, -1), (4, ROOM), (4, -1), (3, -1)],
    ids=["expected", "sent", "starts beyond", "starts before", "lands beyond", "lands before", "negative"],
)
def test_a_slice_that_does_not_fit_arrives_nowhere(which: int, value: int) -> None:
    """In XLA, the receiver's rows are undefined. In the grader, these rows stay unchanged."""
    inputs = arguments(np.full((4, 4), 1, np.int32), 1)
    made = traced({"x": 4}, "x")
    right = ran(made, inputs)
    inputs[which] = inputs[which].copy()
    inputs[which][1, 2] = value
    wrong, output = ran(made, inputs), inputs[1].reshape(4, ROOM, WIDTH)
    at = (2, int(inputs[4][1, 2])) if which != 5 else (1, int(arguments(np.full((4, 4), 1, np.int32), 1)[4][2, 1]))
    if which == 4:
        at = (2, 1)
    np.testing.assert_array_equal(wrong[at], output[at])
    assert not np.array_equal(right[at], output[at])
    same = np.ones(right.shape[:2], bool)
    same[at] = False
    np.testing.assert_array_equal(wrong[same], right[same])


def test_a_row_that_two_slices_claim_stays_as_it_was() -> None:
    inputs = arguments(np.full((4, 4), 1, np.int32), 1)
    inputs[4] = inputs[4].copy()
    inputs[4][1, 2] = inputs[4][0, 2]
    wrong = ran(traced({"x": 4}, "x"), inputs)
    np.testing.assert_array_equal(wrong[2, 0], inputs[1].reshape(4, ROOM, WIDTH)[2, 0])


def test_a_ragged_all_to_all_in_a_loop_runs_every_round() -> None:
    text = """
from jax import lax

def f(operand, output, starts, sizes, to, expected):
    def again(i, rows):
        return lax.ragged_all_to_all(rows, output, starts[0], sizes[0], to[0], expected[0], axis_name="x")[:6] * 2
    return lax.fori_loop(0, 3, again, operand)
"""
    made = traced({"x": 4}, "x", text=text)
    inputs = arguments(np.full((4, 4), 1, np.int32), 1)
    module = made.form.parse()
    with module.context:
        results, counts = interpreter.run(module, {"x": 4}, inputs)
    header, blobs = execution.execute(made.request, made.program, [inputs])
    assert header.get("added") == []
    np.testing.assert_array_equal(np.frombuffer(b"".join(blobs), np.float32), results[0][0].reshape(-1))
    (found,) = facts.read(module, {"x": 4}, set()).collectives
    assert found.rounds == counts.ran[0]["ragged_all_to_all"] == 3


@pytest.mark.parametrize("dtype", ["bfloat16", "int8", "complex64", "float8_e4m3fn", "bool"])
def test_rows_of_any_type_are_moved(dtype: str) -> None:
    """Replace float32 by ``dtype`` in a program that JAX wrote, and run it with rows of this type."""
    made = traced({"x": 4}, "x")
    text = made.form.text
    names = {"bfloat16": "bf16", "int8": "i8", "complex64": "complex<f32>", "float8_e4m3fn": "f8E4M3FN", "bool": "i1"}
    code = code_of(text.replace("xf32>", f"x{names[dtype]}>"))
    ask: Any = made.request | {
        "args": [a | ({"dtype": dtype} if i < 2 else {}) for i, a in enumerate(made.request["args"])]
    }
    from grader.wire.frames import dtype_of

    inputs = arguments(np.full((4, 4), 1, np.int32), 1)
    inputs[:2] = [np.abs(10 * a).astype(np.int8).astype(dtype_of(dtype)) for a in inputs[:2]]
    header, blobs = execution.execute(ask, code, [inputs])
    assert "fault" not in header, header
    got = np.frombuffer(b"".join(blobs), dtype_of(dtype)).reshape(4, ROOM, WIDTH)
    np.testing.assert_array_equal(got[2, 1], inputs[0].reshape(4, ROWS, WIDTH)[1, 2])


# -- refused forms -----------------------------------------------------------------------------

CALL = (
    "%0 = stablehlo.custom_call @TARGET(OPERANDS) {api_version = 4 : i32, backend_config = {channel_id = 1 : i64, "
    "replica_groups = GROUPS}MORE} : (TYPES) -> tensor<8x2xf32>"
)
TYPES = ["tensor<8x2xf32>"] * 2 + ["tensor<4xi32>"] * 4
GROUPS = "dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>"
ARGUMENTS = [
    {"shape": s, "dtype": d, "spec": {"spec": []}} for s, d in [([8, 2], "float32")] * 2 + [([4], "int32")] * 4
]


def form(call: str = CALL, *, types: list[str] = TYPES, groups: str = GROUPS, more: str = "", **swap: Any) -> Program:
    names = [f"%a{i}" for i in range(len(types))]
    text = call.replace("OPERANDS", ", ".join(names)).replace("TYPES", ", ".join(types)).replace("GROUPS", groups)
    for old, new in swap.items():
        text = text.replace(old, new)
    text = text.replace("MORE", more).replace("TARGET", "ragged_all_to_all")
    takes = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    out = text.rpartition("-> ")[2]
    module = (
        'module { sdy.mesh @mesh = <["x"=4, "y"=2]> func.func public @main('
        + f"{takes}) -> {out} {{ {text}\nreturn %0 : {out} }} }}"
    )
    kinds = {"f32": "float32", "i32": "int32", "bf16": "bfloat16"}
    asked = []
    for kind in types:
        *shape, element = kind.removeprefix("tensor<").removesuffix(">").split("x")
        asked.append({"shape": [int(n) for n in shape], "dtype": kinds[element], "spec": {"spec": []}})
    return canonical(code_of(module), {"x": 4, "y": 2}, asked, set())


def test_only_the_groups_of_a_ragged_all_to_all_are_kept() -> None:
    """The canonical form drops all other attributes of the custom call, such as effects and channels."""
    plain = form()
    assert plain.text.count("ragged_all_to_all") == 1
    for more in (", has_side_effect = true", ', mhlo.frontend_attributes = {x = "y"}', ', whatever = "z"'):
        assert form(more=more).text == plain.text
    swaps: list[dict[str, Any]] = [{"channel_id = 1": "channel_id = 7"}, {"channel_id = 1 : i64, ": ""}]
    assert all(form(**swap).text == plain.text for swap in swaps)


def with_type(place: int, kind: str) -> list[str]:
    return [kind if i == place else t for i, t in enumerate(TYPES)]


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ({"groups": "dense<[[0, 2, 4, 6]]> : tensor<1x4xi64>"}, "do not contain every device of the mesh once"),
        ({"groups": "dense<[[0, 2, 4, 6], [1, 3, 5, 5]]> : tensor<2x4xi64>"}, "do not contain every device"),
        ({"groups": "dense<[[0, 2, 4, 6], [1, 3, 5, -1]]> : tensor<2x4xi64>"}, "do not contain every device"),
        ({"groups": "dense<[[0, 2, 4, 6], [1, 3, 5, 8]]> : tensor<2x4xi64>"}, "do not contain every device"),
        ({"groups": "dense<[[7, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>"}, "do not contain every device"),
        ({"groups": '"x"'}, "does not name its groups of devices"),
        ({"groups": "dense<1.0> : tensor<2x4xf32>"}, "does not name its groups of devices"),
        ({"replica_groups": "other_groups"}, "does not name its groups of devices"),
        ({"backend_config": "frontend_config"}, "does not name its groups of devices"),
        ({"types": TYPES[:5]}, "does not have six operands and one result"),
        ({"types": with_type(0, "tensor<8x3xf32>")}, r"cannot move rows of float32\[8, 3\] into float32\[8, 2\]"),
        ({"types": with_type(0, "tensor<8x2xbf16>")}, r"cannot move rows of bfloat16\[8, 2\] into float32\[8, 2\]"),
        (
            {"types": with_type(0, "tensor<0x2xf32>")},
            "needs at least one row and a multiple of 4 slices, but has 0 rows to send, 8 rows for the result and 4 slices",
        ),
        ({"types": with_type(1, "tensor<9x2xf32>")}, "has a result whose type differs from its output operand"),
        (
            {"types": with_type(3, "tensor<8xi32>")},
            "needs vectors of integers, with one number for each slice, as offsets and sizes",
        ),
        (
            {"types": with_type(5, "tensor<4xf32>")},
            "needs vectors of integers, with one number for each slice, as offsets and sizes",
        ),
        (
            {"types": TYPES[:2] + ["tensor<3xi32>"] * 4},
            "needs at least one row and a multiple of 4 slices, but has 8 rows to send, 8 rows for the result and 3 slices",
        ),
        ({"TARGET": "ragged_all_to_all_v2"}, "calls 'ragged_all_to_all_v2' outside XLA"),
    ],
)
def test_a_ragged_all_to_all_that_jax_does_not_write_is_refused(program: dict[str, Any], message: str) -> None:
    with pytest.raises(ProgramRefused, match=message):
        form(**program)
