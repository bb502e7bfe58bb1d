"""Run exported programs: the results of each device, their cost, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.common.layout import owner_slices
from grader.exercise import Array, normal
from grader.runner import compiling, execution, facts
from grader.wire import limits
from grader.wire.frames import dtype_of, pack_array
from grader.wire.text import crash_reason
from tests.runner.test_program import ARGUMENT, code_of, honest

RNG = np.random.default_rng(0)
MESH = {"x": 4, "y": 2}
IMPORTS = """\
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
"""
SHIFT = f"""{IMPORTS}
def f(a, *, mesh):
    local = lambda a: lax.ppermute(a, "x", [(i, (i + 1) % 4) for i in range(4)])
    return jax.shard_map(local, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(a)
"""
A = normal(8, 4, spec=("x", "y"))


@pytest.fixture
def ran(traced: Callable[..., Any]) -> Callable[..., tuple[dict, list[np.ndarray], list[list[np.ndarray]]]]:
    """Return a function that runs a text and returns the header, all shards in order, and the drawn inputs."""

    def ran(text: str, *args: Array, runs: int = 1, **more: Any) -> tuple:
        made = traced(text, *args, **more)
        arrays = [*args, *([more["cotangent"]] if "cotangent" in more else [])]
        inputs = [[a.sample({}, RNG) for a in arrays] for _ in range(runs)]
        header, blobs = execution.execute(made.request, made.program, inputs)
        assert "outputs" in header, header
        abouts = [about for one in header["outputs"] for about in one for _ in about["slices"]]
        places = [where for one in header["outputs"] for about in one for where in about["slices"]]
        shards = [
            np.frombuffer(blob, dtype_of(about["dtype"])).reshape([b - a for a, b in where])
            for about, where, blob in zip(abouts, places, blobs, strict=True)
        ]
        return header, shards, inputs

    return ran


def refusal(reply: execution.Message) -> str:
    header, blobs = reply
    assert blobs == [] and "fault" in header and header["fault"]["kind"] == "refused"
    return header["fault"]["message"]


# -- outputs -----------------------------------------------------------------------------------


def test_an_unreduced_result_is_the_learners_fault() -> None:
    """A result that is not yet summed over devices must fail as the learner's mistake, and not stay pending."""
    result = 'tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}], unreduced={"x"}>}'
    code = code_of(honest().replace("-> tensor<8xf32> {", f"-> ({result}) {{", 1))
    ask: Any = {"args": [ARGUMENT], "cotangents": [], "steps": 1, "fed": [], "mesh": MESH, "files": []}
    header, _ = execution.execute(ask, code, [[np.arange(8, dtype=np.float32)]])
    words = {
        "refused": "is a sum over the devices missing?",
        "compile": "XLA cannot compile the program",
    }  # the first from JAX before 0.11, the second from later versions
    assert "fault" in header and words[header["fault"]["kind"]] in header["fault"]["message"]


def test_every_device_is_reported_with_its_slice_and_its_data(ran: Callable) -> None:
    header, shards, [[a]] = ran(SHIFT, A)
    (out,) = header["outputs"][0]
    assert (out["shape"], out["dtype"]) == ([8, 4], "float32")
    wanted = owner_slices((8, 4), ("x", "y"), MESH)
    assert [tuple(map(tuple, where)) for where in out["slices"]] == wanted
    for where, shard in zip(wanted, shards, strict=True):
        np.testing.assert_array_equal(shard, np.roll(a, 2, axis=0)[tuple(slice(*p) for p in where)])


def test_every_set_of_inputs_is_run(ran: Callable) -> None:
    header, shards, inputs = ran(SHIFT, A, runs=3)
    assert len(header["outputs"]) == 3 and len(shards) == 24
    for i, [a] in enumerate(inputs):
        np.testing.assert_array_equal(shards[8 * i], np.roll(a, 2, axis=0)[0:2, 0:2])


def test_results_are_a_flat_list_in_any_wrapping(ran: Callable) -> None:
    assert len(ran("def f(a, *, mesh):\n    return a, (a + 1,)\n", A)[0]["outputs"][0]) == 2
    assert len(ran("def f(a, *, mesh):\n    return (a,)\n", A)[0]["outputs"][0]) == 1


def test_replicas_come_from_every_device(ran: Callable) -> None:
    """The grader reads each device's copy. Copies may differ, although JAX treats them as equal."""
    text = f"""{IMPORTS}
def f(a, *, mesh):
    local = lambda a: a + lax.axis_index("x")
    return jax.shard_map(local, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)(a)
"""
    _, shards, [[a]] = ran(text, normal(3))
    for device, shard in enumerate(shards):
        np.testing.assert_array_equal(shard, a + np.float32(device // 2))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32", "uint8", "bool", "float8_e4m3fn"])
def test_every_type_comes_back(ran: Callable, dtype: str) -> None:
    text = (
        # Conversions of negative numbers to unsigned are undefined.
        f"def f(a, *, mesh):\n    return (abs(a) * 2).astype('{dtype}')\n"
    )
    header, shards, [[a]] = ran(text, normal(8, spec=("x",)))
    assert header["outputs"][0][0]["dtype"] == dtype
    wanted = (abs(a[0:2]) * 2).astype(dtype_of(dtype))
    assert shards[0].astype(np.float32) == pytest.approx(wanted.astype(np.float32))


def test_a_mesh_of_fewer_devices_than_there_are_is_fine(ran: Callable) -> None:
    header, shards, _ = ran("def f(a, *, mesh):\n    return a * 2\n", normal(6, spec=("x",)), mesh={"x": 3})
    assert [s["slices"] for s in header["outputs"][0]] == [[[[0, 2]], [[2, 4]], [[4, 6]]]]
    assert len(shards) == 3


def test_scalars_and_empty_arrays_come_back(ran: Callable) -> None:
    header, shards, [[a]] = ran(f"{IMPORTS}def f(a, *, mesh):\n    return jnp.max(a), a[:, :0]\n", A)
    assert [o["shape"] for o in header["outputs"][0]] == [[], [8, 0]]
    assert float(shards[0]) == a.max()


def test_gradients_are_those_of_the_function(ran: Callable) -> None:
    text = f"""{IMPORTS}
def f(a, b, *, mesh):
    local = lambda a, b: lax.psum(a @ b, "x")
    return jax.shard_map(local, mesh=mesh, in_specs=(P(None, "x"), P("x", None)), out_specs=P())(a, b)
"""
    args = normal(3, 8, spec=(None, "x")), normal(8, 5, spec=("x", None))
    header, shards, [[a, b, cotangent]] = ran(text, *args, wrt=("a", "b"), cotangent=normal(3, 5))
    assert [o["shape"] for o in header["outputs"][0]] == [[3, 5], [3, 8], [8, 5]]
    np.testing.assert_allclose(shards[0], a @ b, rtol=1e-4, atol=1e-5)

    def whole(number: int) -> np.ndarray:
        value = np.zeros(header["outputs"][0][number]["shape"])
        for where, shard in zip(header["outputs"][0][number]["slices"], shards[8 * number :], strict=False):
            value[tuple(slice(*p) for p in where)] = shard
        return value

    np.testing.assert_allclose(whole(1), cotangent @ b.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(whole(2), a.T @ cotangent, rtol=1e-4, atol=1e-5)


# -- facts -------------------------------------------------------------------------------------


def test_gathering_first_takes_more_memory_than_a_ring(ran: Callable) -> None:
    """After a gather, every device has all of B. In a ring, it has one block at a time."""
    gather = f"""{IMPORTS}
def f(a, b, *, mesh):
    local = lambda a, b: a @ lax.all_gather(b, "x", axis=1, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None))(a, b)
"""
    ring = f"""{IMPORTS}
def f(a, b, *, mesh):
    def local(a, b):
        me, out = lax.axis_index("x"), jnp.zeros((a.shape[0], 8 * b.shape[1]))
        def step(i, carry):
            out, b = carry
            out = lax.dynamic_update_slice(out, a @ b, (0, (me - i) % 8 * b.shape[1]))
            return out, lax.ppermute(b, "x", [(j, (j + 1) % 8) for j in range(8)])
        return lax.fori_loop(0, 8, step, (out, b))[0]
    return jax.shard_map(local, mesh=mesh, in_specs=(P("x", None), P(None, "x")), out_specs=P("x", None), check_vma=False)(a, b)
"""
    args = normal(8, 512, spec=("x", None)), normal(512, 64, spec=(None, "x"))
    (gathered, first, _), (rotated, second, _) = (ran(text, *args, mesh={"x": 8}) for text in (gather, ring))
    assert gathered["memory"] > 512 * 64 * 4 > 2 * rotated["memory"] > 0
    assert gathered["dot_flops"] == rotated["dot_flops"] == {"least": 2 * 1 * 512 * 64, "most": 2 * 1 * 512 * 64}
    assert len(first) == len(second)


def test_a_cached_result_gets_the_lines_of_each_program(ran: Callable, traced: Callable) -> None:
    """Two programs that differ only in line numbers run once. Each reply has the line numbers of its own program."""
    later = SHIFT.replace("def f(", "# a comment\n\n\ndef f(")
    value = RNG.standard_normal((8, 4)).astype(np.float32)
    replies = []
    for text in (SHIFT, later):
        made = traced(text, A)
        replies.append(execution.execute(made.request, made.program, [[value]]))
    (one, first), (two, second) = replies
    assert first is second  # only the first program ran
    assert two["collectives"][0]["line"] == one["collectives"][0]["line"] + 3


def test_a_program_runs_again_for_other_inputs(traced: Callable) -> None:
    made = traced(SHIFT, A)
    first, second = (
        execution.execute(made.request, made.program, [[np.full((8, 4), n, np.float32)]])[1] for n in (1, 2)
    )
    assert first != second


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(["x", "y", None]), st.sampled_from([(4, 2), (2, 4), (8, 1)]))
def test_layouts_are_read_from_the_devices(ran: Callable, spec: list, sizes: tuple[int, int]) -> None:
    mesh = dict(zip("xy", sizes, strict=True))
    text = f"{IMPORTS}def f(a, *, mesh):\n    return lax.with_sharding_constraint(a, NamedSharding(mesh, P(*{spec})))\n"
    header, _, _ = ran(text, normal(8, 8, 8), mesh=mesh)
    found = [tuple(map(tuple, where)) for where in header["outputs"][0][0]["slices"]]
    assert found == owner_slices((8, 8, 8), spec, mesh)


# -- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (normal(4, 8, spec=("x", "y")), "the program takes [((8, 4), 'float32')], expected [((4, 8), 'float32')]"),
        (normal(8, 4, spec=("x", "y"), dtype="bfloat16"), "expected [((8, 4), 'bfloat16')]"),
    ],
)
def test_a_program_of_other_arguments_is_refused(traced: Callable, other: Array, reason: str) -> None:
    """A hostile submission may return a program that was traced for other arguments than those of the request."""
    asked = traced("def f(a, *, mesh):\n    return a\n", other).request
    value = other.sample({}, RNG)
    assert reason in refusal(execution.execute(asked, traced(SHIFT, A).program, [[value]]))


def test_a_program_that_leaves_an_argument_out_is_refused(traced: Callable) -> None:
    asked = traced("def f(a, b, *, mesh):\n    return a\n", A, A).request
    value = A.sample({}, RNG)
    assert "the program takes" in refusal(execution.execute(asked, traced(SHIFT, A).program, [[value, value]]))


@pytest.mark.parametrize("garbage", [b"", b"\0", b"not a program", bytes(64), b"\xff" * 4096])
def test_bytes_that_are_no_program_are_refused(traced: Callable, garbage: bytes) -> None:
    asked = traced(SHIFT, A).request
    assert refusal(execution.execute(asked, garbage, [[A.sample({}, RNG)]])) == "the program cannot be read"


def test_a_huge_program_is_refused_before_it_is_read(traced: Callable) -> None:
    asked = traced(SHIFT, A).request
    reason = refusal(execution.execute(asked, bytes(limits.MAX_PROGRAM + 1), [[A.sample({}, RNG)]]))
    assert reason == "the program takes 4,194,305 bytes; 4,194,304 are the limit"


def test_a_program_that_needs_too_much_memory_is_refused(traced: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "MAX_MEMORY", 1 << 20)
    made = traced(f"{IMPORTS}def f(a, *, mesh):\n    return jnp.zeros((256, 1024)) + a[0, 0]\n", A)
    reason = refusal(execution.execute(made.request, made.program, [[A.sample({}, RNG)]]))
    assert reason == "the program needs 8 MiB over all devices; 1 MiB are the limit"


def test_results_that_are_too_large_are_refused(traced: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "MAX_OUTPUT", 8 * 128 - 1)
    made = traced("def f(a, *, mesh):\n    return a\n", normal(8, 4))
    reason = refusal(execution.execute(made.request, made.program, [[A.sample({}, RNG)]]))
    assert reason == "the results of all devices and runs together are larger than 64 MiB"


def test_a_sharded_result_counts_once(traced: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "MAX_OUTPUT", 128)
    made = traced(SHIFT, A)
    assert "outputs" in execution.execute(made.request, made.program, [[A.sample({}, RNG)]])[0]


def test_too_many_results_are_refused(traced: Callable) -> None:
    made = traced("def f(a, *, mesh):\n    return [a] * 65\n", A)
    assert (
        refusal(execution.execute(made.request, made.program, [[A.sample({}, RNG)]]))
        == "the program has more than 64 results"
    )


@pytest.mark.parametrize(
    "call",
    [
        "jax.pure_callback(lambda a: a, a, a)",
        "io_callback(lambda a: a, a, a)",
        "io_callback(lambda a: a, a, a, ordered=True)",
    ],
)
def test_a_host_callback_is_refused(traced: Callable, call: str) -> None:
    made = traced(f"{IMPORTS}from jax.experimental import io_callback\ndef f(a, *, mesh):\n    return {call}\n", A)
    header, _ = execution.execute(made.request, made.program, [[A.sample({}, RNG)]])
    assert (
        "fault" in header
        and header["fault"]["message"] == "uses a host callback, which the grader cannot run; remove it"
    )
    assert (header["fault"]["line"], header["fault"]["file"]) == ((7, "a.py") if "ordered" not in call else (None, ""))


def test_a_program_that_is_not_admitted_is_not_run(traced: Callable) -> None:
    made = traced(f"{IMPORTS}def f(a, *, mesh):\n    return jnp.linalg.cholesky(a.T @ a)\n", A)
    assert "outside XLA" in refusal(execution.execute(made.request, made.program, [[A.sample({}, RNG)]]))


# -- helper functions --------------------------------------------------------------------------


def test_only_collectives_of_the_source_are_marked(traced: Callable) -> None:
    module = traced(SHIFT, A).form.parse()
    facts.mark(module)
    text = module.operation.get_asm(enable_debug_info=True)
    assert text.count(facts.MARK) == 1 and "a.py" not in text


def test_inputs_are_unpacked_as_they_were_packed() -> None:
    runs = [[RNG.standard_normal((2, 3)).astype(np.float32), np.arange(4)] for _ in range(2)]
    packed = [[pack_array(a) for a in one] for one in runs]
    header: Any = {"inputs": [[about for about, _ in one] for one in packed]}
    for own, unpacked in zip(runs, execution.unpack_inputs(header, [b for one in packed for _, b in one]), strict=True):
        for a, b in zip(own, unpacked, strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("", ""),
        ("nothing to see", ""),
        ("F1121 06:00:00.123456 12 x.cc:3] Check failed: a == b\n*** stack\n", "F1121 06:00:00.... 12 x.cc:3] Check failed: a == b"),
        ("first error\nerror at 0xdeadbeef of 12345678\n\n", "error at ... of ..."),
        ("error " + "x" * 500, "error " + "x" * 194),
        ("error in by_hand_0123456789abcdef.3", "error in collective.3"),
    ],
)  # fmt: skip
def test_a_crash_is_reported_in_one_line_without_addresses(stderr: str, reason: str) -> None:
    assert crash_reason(stderr) == reason


def test_results_of_recently_used_programs_are_cached() -> None:
    made: list[str] = []

    def reply(name: str) -> execution.Message:
        made.append(name)
        return {"program": name}, [bytes(6000)]

    remembered = compiling.LRUCache(25_000, execution.size_of)  # room for two replies, including overhead
    for name in ["a", "b", "a", "c", "a", "b"]:
        assert remembered.get(name, lambda n=name: reply(n))[0] == {"program": name}
    assert made == ["a", "b", "c", "b"]
    assert remembered.get("huge", lambda: ({}, [bytes(30_000)]))[1] == [bytes(30_000)]
    assert remembered.held == 0


def test_jax_compiles_a_replaced_module() -> None:
    """The grader replaces ``lowered._lowering._hlo``.

    If JAX keeps its module elsewhere, JAX compiles the old module, and this test fails.
    """
    stand_in: Any = jax.jit(lambda x: x * 0).lower(1.0)
    program: Any = jax.jit(lambda x: x + 1).lower(1.0)
    assert stand_in._lowering._hlo is not None
    stand_in._lowering._hlo = program._lowering._hlo
    assert stand_in.compile()(1.0) == 2.0


def test_a_compiler_option_that_this_xla_does_not_have_is_left_out(
    ran: Callable[..., tuple], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "QUICKLY", {"xla_no_such_option": True, "xla_backend_optimization_level": 0})
    header, shards, ((a,),) = ran(SHIFT.replace("i + 1", "i + 3"), A, mesh=MESH)
    assert header["collectives"] and (shards[0] == a[2:4, :2]).all()
    assert compiling.QUICKLY == {"xla_backend_optimization_level": 0}
