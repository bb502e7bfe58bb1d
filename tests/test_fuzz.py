"""Every parser of submitted bytes gets arbitrary bytes. A parser accepts or refuses bytes, and never crashes."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grader.batch.replies import RunResult, observed, plain_values, reply_of
from grader.common.result import Report
from grader.exercise import Exercise, normal
from grader.intake.reading import read
from grader.judging.plan import plan
from grader.judging.units import BadAnswer, parse
from grader.wire import frames as wire
from grader.wire.frames import BadFrame
from tests.wire.streams import reader

FEW = settings(max_examples=60)
MANY = settings(max_examples=300)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


# -- frames ------------------------------------------------------------------------------------


@MANY
@given(st.binary(max_size=300))
@example(struct.pack("<I", 2**32 - 1))
@example(struct.pack("<I", 4) + b"[[[[")
@example(struct.pack("<I", 18) + b'{"blobs":[1e9999]}')
@example(struct.pack("<I", 15) + b'{"blobs": [-1]}')
def test_any_bytes_are_a_frame_or_refused(data: bytes):
    try:
        header, _ = wire.read_frame(reader(data), max_header=1000, max_blobs=1000)
    except (BadFrame, EOFError):
        return
    assert isinstance(header, dict)


@MANY
@given(plain, st.lists(st.binary(max_size=20), max_size=3))
def test_packed_data_are_read_back(value: Any, blobs: list[bytes]):
    header = {"value": value}
    found, back = wire.read_frame(reader(wire.pack(header, blobs)))
    assert back == blobs
    json.dumps(found, ensure_ascii=False).encode()  # fails if the text has a lone surrogate


@pytest.mark.parametrize("depth", [121, 500, 995, 5000, 1_000_000])
@pytest.mark.parametrize("pair", ["[]", '{"":', "{}"])
def test_deep_headers_are_refused(depth: int, pair: str):
    text = '{"x":' + (pair[0] * depth + pair[1] * depth if len(pair) == 2 else pair * depth + "0" + "}" * depth)
    text += ',"blobs":[]}'
    with pytest.raises(BadFrame):
        wire.read_frame(reader(struct.pack("<I", len(text)) + text.encode()))


def test_brackets_in_strings_are_no_nesting():
    header, _ = wire.read_frame(reader(wire.pack({"message": "[" * 5000 + '\\"{' * 100})))
    assert header["message"].startswith("[[[")


@pytest.mark.parametrize("text", [b'"\xed\xa0\x80"', b'"\\ud800"', b'"\\uDFFF x"', b'"\\ud83d\\ude00 \\ud83d"'])
def test_no_half_of_a_surrogate_pair_gets_through(text: bytes):
    data = b'{"x": ' + text + b', "blobs": []}'
    try:
        header, _ = wire.read_frame(reader(struct.pack("<I", len(data)) + data))
    except BadFrame:
        return
    header["x"].encode()


# -- values and arrays -------------------------------------------------------------------------


encoded = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.builds(
        lambda tag, body: {tag: body},
        st.sampled_from(["int", "float", "dict", "spec", "slice", "list", "tuple", "no"]),
        inner | st.lists(inner, max_size=4) | st.text(max_size=10),
    ),
    max_leaves=8,
)


@MANY
@given(encoded | plain)
@example({"float": "0x1p999999"})
@example({"int": "9" * 5000})
@example({"int": None})
@example({"spec": ["x", "x", {"tuple": [["x"]]}]})
@example({"dict": [[{"list": []}, 1]]})
def test_any_json_is_a_value_or_refused(data: Any):
    with contextlib.suppress(BadFrame):
        wire.decode(data)


@MANY
@given(st.fixed_dictionaries({"shape": plain, "dtype": st.text(max_size=12) | plain}), st.binary(max_size=64))
@example({"shape": [10**30, 0], "dtype": "float32"}, b"")
@example({"shape": [1], "dtype": "object"}, b"12345678")
@example({"shape": [1], "dtype": "finfo"}, b"1")
@example({"shape": [8], "dtype": "V1"}, b"12345678")
@example({"shape": [-1, -8], "dtype": "uint8"}, b"12345678")
def test_any_description_is_an_array_or_refused(about: dict[str, Any], data: bytes):
    try:
        found = wire.unpack_array(about, data)
    except BadFrame:
        return
    assert found.dtype.kind in "biufcV" and found.nbytes == len(data)


# -- replies -----------------------------------------------------------------------------------

exercise = Exercise(meshes=[{"x": 2}])


@exercise.task
def total(a, *, mesh):
    """A task."""


@exercise.function
def twice(n):
    """A function."""
    return 2 * n


call = exercise.call(total, a=normal("I", spec=("x",)), dims={"I": 4})
cases = exercise.cases(twice, public=[{"n": 1}, {"n": 2}])


@exercise.check(call, points=1)
def of_call(seen):
    """of the call"""


@exercise.check(cases, points=1)
def of_cases(seen):
    """of the cases"""


exercise.id = "x"
ASKS = plan(exercise, public=False, seed="s")
reply = st.dictionaries(st.sampled_from(["values", "raw", "program", "outputs", "fault", "facts"]), plain | encoded)


@MANY
@given(reply, st.lists(st.binary(max_size=10), max_size=2))
@example({"values": [{"value": {"float": "0x1p999999"}}] * 2}, [])
@example({"values": [{"error": [], "kinds": 3, "line": 10**100, "message": {}}] * 2}, [])
@example({"values": ["error", "error"]}, [])
def test_any_reply_is_a_finding(body: dict[str, Any], blobs: list[bytes]):
    for ask in ASKS:
        reply = reply_of(ask, body, blobs)
        finding = observed(ask, RunResult(body, blobs)) if ask.inputs else plain_values(ask, reply.body)
        assert reply.fault or finding.fault or finding.outcomes


observation = st.fixed_dictionaries(
    {
        "outputs": plain
        | st.lists(
            st.lists(
                st.fixed_dictionaries(
                    {"shape": plain, "dtype": st.sampled_from(["float32", "object", ""]), "slices": plain}
                ),
                max_size=2,
            ),
            max_size=3,
        ),
        "collectives": plain,
        "memory": plain,
        "flops": plain,
        "program": plain,
        "mapped": plain,
    }
)


@MANY
@given(observation, st.lists(st.binary(max_size=10), max_size=4))
def test_any_malformed_observation_is_broken(header: dict[str, Any], blobs: list[bytes]):
    found = observed(ASKS[0], RunResult(header, blobs)).fault
    assert found is not None and found.kind == "broken"  # "broken", because the runner is a part of the grader


# -- answers and files -------------------------------------------------------------------------


@MANY
@given(plain | st.text(alphabet="0123456789eE+-.,_ x*^kMGiBbs/µ%", max_size=40))
@example(10**400)
@example("1e309 us")
@example({"magnitude": float("nan"), "units": "us"})
@example({"magnitude": [[[]]], "units": "us" * 60})
def test_any_answer_is_read_or_refused(raw: Any):
    try:
        found = parse(raw, "us")
    except BadAnswer as error:
        assert "\n" not in str(error)
        return
    assert np.isfinite(found.value)


@FEW
@given(st.binary(max_size=400) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")),
       st.sampled_from(["c3_x.py", "03_m.ipynb", "work.zip"]))  # fmt: skip
@example(b'{"cells": [{"cell_type": "code", "source": ["\\ud800"]}]}', "03_m.ipynb")
@example(b"PK\x05\x06" + b"\xff" * 18, "work.zip")
def test_any_file_is_a_submission(tmp_path_factory: pytest.TempPathFactory, content: bytes, name: str):
    folder = tmp_path_factory.mktemp("x")
    (folder / name).write_bytes(content)
    found = read(folder, "eve", {"c3_x": "03_m"})
    for source in found.sources.values():
        for chunk in source.chunks:
            chunk.text.encode()


@MANY
@given(st.text() | plain.map(lambda v: json.dumps({"schema_version": 1, "student": v})))
def test_any_text_is_a_report_or_refused(text: str):
    with pytest.raises(ValueError):  # pydantic's ValidationError is a ValueError
        Report.loads(text)


# -- programs ----------------------------------------------------------------------------------

MUTATE = '''
import os, random, sys
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import numpy as np
from grader.runner.execution import execute
from grader.learner.answering import reply_to
from grader.learner.loading import load
from grader.learner.surroundings import tolerant_jax

ask = {"kind": "task", "task": "total", "mesh": {"x": 2}, "static": {}, "wrt": [], "cotangents": [], "takes": ["a"], "returns": None, "steps": 1, "fed": [], "files": [],
       "axis_types": "auto",
       "args": [{"name": "a", "shape": [4], "dtype": "float32", "spec": {"spec": ["x"]}}], "platform": "cpu"}
text = """
import jax
from jax.sharding import PartitionSpec as P
def total(a, *, mesh):
    return jax.shard_map(lambda a: jax.lax.psum(a, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(a)
"""
with tolerant_jax():
    _, (program,) = reply_to(ask, load({"name": "t", "chunks": [["t", text]]}, 60), 60)
values = [[np.arange(4, dtype=np.float32)]]
assert "outputs" in execute(ask, program, values)[0]
seed, count = int(sys.argv[1]), int(sys.argv[2])
for number in range(count):
    rng = random.Random(f"{seed}/{number}")
    data = bytearray(program)
    for _ in range(rng.choice([1, 2, 8, 64])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.2:
        del data[rng.randrange(len(data)):]
    reply, blobs = execute(ask, bytes(data), values)  # and raises nothing: that would be our own fault
    assert set(reply) & {"fault", "outputs"}, reply
    print(number, flush=True)
'''


@pytest.mark.slow
def test_mutated_programs_are_run_or_refused():
    """The programs run in a separate process. If MLIR aborts, a new process runs the next program."""
    root = Path(__file__).resolve().parent.parent
    done, aborts, count = 0, 0, 150
    while done < count and aborts < 10:
        ended = subprocess.run(
            [sys.executable, "-c", MUTATE, str(done), str(count - done)],
            capture_output=True, text=True, errors="replace", cwd=root, timeout=240, env=os.environ | {"PYTHONPATH": str(root)},
        )  # fmt: skip
        tried = len(ended.stdout.split())
        assert tried or ended.returncode < 0, ended.stderr[-2000:]
        done += tried
        if ended.returncode != 0:
            # A signal ended the process: XLA aborted, and the test raised no error.
            assert ended.returncode < 0, ended.stderr[-2000:]
            aborts, done = aborts + 1, done + 1
    assert done >= count
