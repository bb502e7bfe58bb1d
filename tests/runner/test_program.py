"""The canonical form has everything that affects a program's result. Programs that do more than compute are refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from grader.exercise import normal
from grader.runner import admission, execution, program
from grader.runner.admission import ProgramRefused
from grader.runner.program import canonical
from tests.again import made_again

MESH = {"x": 4, "y": 2}
FILES = {"a.py"}
ARGUMENT = {"shape": [8], "dtype": "float32", "spec": {"spec": ["x"]}}
MESHES = 'sdy.mesh @mesh = <["x"=4, "y"=2]>'
MAIN = "func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> { %0 = stablehlo.negate %a : tensor<8xf32> return %0 : tensor<8xf32> }"
SUM = """"stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = HANDLE, type = 1>,
  replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %lr = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %lr : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>"""


def code_of(text: str) -> bytes:
    """Return the MLIR bytecode of a module, which may be hostile."""
    from jax.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo  # noqa: F401

    context = make_ir_context()
    context.allow_unregistered_dialects = True
    code = io.BytesIO()
    ir.Module.parse(text, context).operation.write_bytecode(code)
    return code.getvalue()


def form(text: str, *, files: set[str] = FILES) -> program.Program:
    return canonical(code_of(text), MESH, [ARGUMENT], files)


def main(body: str, result: str = "%0") -> str:
    return f"func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {{ {body}\nreturn {result} : tensor<8xf32> }}"


def honest(body: str = "%0 = stablehlo.negate %a : tensor<8xf32>", more: str = "") -> str:
    return f"module {{ {MESHES} {main(body)} {more} }}"


# -- the canonical form ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        honest().replace("module {", 'module @other attributes {mhlo.num_partitions = 1 : i32, jax.anything = "x"} {'),
        honest("%0 = stablehlo.negate %a {mhlo.frontend_attributes = {secret = \"1\"}} : tensor<8xf32>"),
        honest("%0 = stablehlo.negate %a {note = 3 : i32, mhlo.sharding = \"{replicated}\"} : tensor<8xf32>"),
        honest().replace("%a: tensor<8xf32>)", "%a: tensor<8xf32> {tf.aliasing_output = 0 : i32, sdy.sharding = #sdy.sharding<@mesh, [{}]>})"),
        honest().replace("%a: tensor<8xf32>)", '%a: tensor<8xf32> {mhlo.memory_kind = "pinned_host"})'),
        honest().replace("-> tensor<8xf32> {", '-> (tensor<8xf32> {jax.result_info = "result[0]"}) {', 1),
        honest().replace("{ %0", "attributes {execution_thread = \"host\"} { %0"),
        honest('%0 = stablehlo.negate %a : tensor<8xf32> loc("a.py":7:1)'),
        honest('%0 = stablehlo.negate %a : tensor<8xf32> loc("somebody_elses.py":7:1)'),
        honest().replace("%a", "%b").replace("%0", "%anything"),
        honest().replace("@mesh", "@anything"),
        honest().replace("@mesh", "@f0"),
    ],
)  # fmt: skip
def test_text_without_effect_is_not_in_the_canonical_form(text: str) -> None:
    assert form(text).text == form(honest()).text


def test_names_of_functions_and_channels_do_not_change_the_form() -> None:
    def text(first: str, second: str, handle: int) -> str:
        calls = f"%1 = func.call @{first}(%a) : (tensor<8xf32>) -> tensor<8xf32> %0 = func.call @{second}(%1) : (tensor<8xf32>) -> tensor<8xf32>"
        functions = [
            f"func.func private @{name}(%a: tensor<8xf32>) -> tensor<8xf32> {{ %0 = {inner} return %0 : tensor<8xf32> }}"
            for name, inner in (
                (first, SUM.replace("HANDLE", str(handle))),
                (second, "stablehlo.abs %a : tensor<8xf32>"),
            )
        ]
        return honest(calls, " ".join(functions))

    forms = {
        form(text(*names, handle)).text
        for names in (("g", "h"), ("h", "g"), ("f1", "f0"), ("_1", "_2"))
        for handle in (1, 77)
    }
    assert len(forms) == 1


def test_the_canonical_form_is_the_programs_full_text() -> None:
    once = form(honest("%0 = " + SUM.replace("HANDLE", "5")))
    assert once.parse().operation.get_asm(enable_debug_info=False) == once.text
    assert form(once.text) == once


def test_arguments_have_the_requested_shardings_not_the_programs() -> None:
    text = honest().replace("%a: tensor<8xf32>)", '%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})')
    assert '[{"x"}]' in form(text).text and '[{"y"}]' not in form(text).text


def test_the_name_of_a_mesh_does_not_change_the_form() -> None:
    """JAX writes the mesh's name into attributes of arguments. A crafted name must not add attributes there."""
    name = "mesh, [{\\22y\\22}]>, jax.buffer_donor = true, note.x = #sdy.sharding<@mesh"
    text = f'module {{ sdy.mesh @"{name}" = <["x"=4, "y"=2]> {MESHES} {main("%0 = stablehlo.negate %a : tensor<8xf32>")} }}'
    assert '@main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})' in form(text).text
    body, empty = "%0 = sdy.sharding_constraint %a <@{}, [{{}}]> : tensor<8xf32>", "sdy.mesh @{} = <[]>"
    swapped = honest(body.format("mesh"), empty.format("mesh")).replace(MESHES, MESHES.replace("@mesh", "@empty_mesh"))
    assert form(swapped) == form(honest(body.format("empty_mesh"), empty.format("empty_mesh")))


def test_the_number_of_devices_is_that_of_the_mesh() -> None:
    assert "mhlo.num_partitions = 8" in form(honest()).text


def test_places_are_lines_of_the_learners_own_files() -> None:
    def places(location: str) -> set:
        body = f"%0 = {SUM.replace('HANDLE', '1')} loc({location})"
        return {place for place in form(honest(body)).places if place}

    assert places('"a.py":7:1') == {("a.py", 7)}
    assert places('callsite("jax.py":1:1 at "a.py":9:1)') == {("a.py", 9)}
    assert places('"/home/bob/secret.py":7:1') == set()
    assert places('"a.py\\22:1:2":7:1') == set()


# -- refused programs --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"module {{ {MESHES} {MAIN} module {{ {MAIN} }} }}", "the program uses builtin.module, which is not allowed"),
        (f"module {{ {MESHES} {MAIN} module @inner {{ {MESHES} }} }}", "the program uses builtin.module"),
        (f"module {{ {MESHES} {MAIN} {MAIN.replace('@main', '@other')} }}", "not have exactly one main function"),
        (f"module {{ {MESHES} {MAIN.replace('public', 'private')} }}", "not have exactly one main function"),
        (f"module {{ {MESHES} {MAIN.replace('@main', '@f')} }}", "not have exactly one main function"),
        (f"module {{ {MESHES} {MAIN} func.func private @elsewhere(tensor<8xf32>) -> tensor<8xf32> }}", "only functions with a body are allowed"),
        (f"module {{ {MAIN} }}", "does not refer to the mesh"),
        (f"module {{ {MESHES.replace('4', '2').replace('2]', '4]')} {MAIN} }}", r"uses a mesh \(x=2, y=4\) of its own; use the mesh that the task gets, \(x=4, y=2\)"),
        (f'module {{ {MESHES} sdy.mesh @b = <["i"=8]> {MAIN} }}', r"uses a mesh \(i=8\) of its own"),
        (f'module {{ {MESHES} sdy.mesh @b = <["y"=2, "x"=4]> {MAIN} }}', r"uses a mesh \(y=2, x=4\) of its own"),
        (f'module {{ {MESHES} sdy.mesh @b = <["x"=4, "y"=2], device_ids=[7, 1, 2, 3, 4, 5, 6, 0]> {MAIN} }}', "of its own"),
        (f"module {{ {MESHES} sdy.mesh @b = <[], device_ids=[3]> {MAIN} }}", "of its own"),
        (honest('%0 = sdy.sharding_constraint %a <mesh<["i"=8]>, [{"i"}]> : tensor<8xf32>'), "uses a mesh of its own"),
        (honest("%0 = func.call @main(%a) : (tensor<8xf32>) -> tensor<8xf32>"), "call each other in a circle"),
        (honest("%0 = func.call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>",
                "func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> { %0 = func.call @g(%a) : (tensor<8xf32>) -> tensor<8xf32> return %0 : tensor<8xf32> }"
                "func.func private @g(%a: tensor<8xf32>) -> tensor<8xf32> { %0 = func.call @f(%a) : (tensor<8xf32>) -> tensor<8xf32> return %0 : tensor<8xf32> }"),
         "call each other in a circle"),
        (honest("cf.br ^b(%a : tensor<8xf32>)\n^b(%0: tensor<8xf32>):"), "not allowed"),
        (honest("%0 = stablehlo.custom_call @Sharding(%a) : (tensor<8xf32>) -> tensor<8xf32>"), "calls 'Sharding' outside XLA"),
        (honest('%0 = "vendor.evil"(%a) : (tensor<8xf32>) -> tensor<8xf32>'),
         "cannot be read|uses vendor.evil, which is not allowed"),  # since JAX 0.12, MLIR reads unknown operations
        (honest("%0 = arith.negf %a : tensor<8xf32>"), "arith.negf"),
        (honest('%t = stablehlo.create_token : !stablehlo.token\n%0 = stablehlo.negate %a : tensor<8xf32>'), "not allowed"),
        (honest('%b = "stablehlo.convert"(%a) : (tensor<8xf32>) -> tensor<?xf32>\n%0 = stablehlo.negate %a : tensor<8xf32>'), "not fixed"),
        (honest().replace("8xf32", "8xf16"), r"the program takes \[\(\(8,\), 'float16'\)\], expected \[\(\(8,\), 'float32'\)\]"),
        (honest().replace("8xf32", "4x2xf32"), "expected"),
        # JAX makes an outside array that a custom backward pass uses an argument of the program.
        (honest().replace("(%a: tensor<8xf32>)", "(%b: tensor<i32>, %a: tensor<8xf32>)"), "uses? an array from outside"),
    ],
)  # fmt: skip
def test_programs_with_other_contents_than_requested_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ProgramRefused, match=reason):
        form(text)


@pytest.mark.parametrize("code", [b"", b"\0", b"ML\xefR", b"ML\xefR" + bytes(400), honest().encode()])
def test_bytes_that_are_no_bytecode_are_refused(code: bytes) -> None:
    with pytest.raises(ProgramRefused, match="the program cannot be read"):
        canonical(code, MESH, [ARGUMENT], FILES)


RESOURCE = (
    honest("%0 = stablehlo.constant dense_resource<r> : tensor<8xf32>")
    + ' {-# dialect_resources: { builtin: { r: "0x04000000'
    + "00" * 32
    + '" } } #-}'
)


def test_a_constant_outside_of_the_text_is_refused() -> None:
    """The constant's name depends on programs that were read before. The program's facts must not depend on them."""
    with pytest.raises(
        ProgramRefused,
        match=r"the program stores a constant's values in a separate resource \(dense_resource\), which is not allowed",
    ):
        form(RESOURCE)


@pytest.mark.parametrize("name", ["chlo.erf", "chlo.tan", "mhlo.topk", "x.y"])
def test_a_composite_runs_its_own_body(name: str) -> None:
    """The grader reads facts from the body. XLA must not run its own operation of this name in place of the body."""
    body = f'%0 = stablehlo.composite "{name}" %a {{decomposition = @g, version = 1 : i32}} : (tensor<8xf32>) -> tensor<8xf32>'
    code = code_of(honest(body, MAIN.replace("public @main", "private @g")))
    request: Any = {"args": [ARGUMENT], "mesh": MESH, "cotangents": [], "steps": 1, "fed": [], "files": []}
    _, blobs = execution.execute(request, code, [[np.arange(8, dtype=np.float32)]])
    assert [np.frombuffer(b, np.float32).tolist() for b in blobs[::2]] == [[0, -1], [-2, -3], [-4, -5], [-6, -7]]


def test_complex_constants_are_read() -> None:
    body = """%c = stablehlo.constant dense<(1.0, 5.0)> : tensor<8xcomplex<f32>>
      %i = stablehlo.imag %c : (tensor<8xcomplex<f32>>) -> tensor<8xf32>
      %0 = stablehlo.add %a, %i : tensor<8xf32>"""
    assert "(1.000000e+00,5.000000e+00)" in form(honest(body)).text


def test_text_with_invalid_characters_is_refused() -> None:
    with pytest.raises(ProgramRefused, match=r"the program cannot be read"):
        canonical(code_of(honest()).replace(b"stablehlo", b"stable\xffhl"), MESH, [ARGUMENT], FILES)


def test_a_program_of_too_many_operations_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "MAX_OPS", 10)
    body = "\n".join(f"%{i} = stablehlo.negate %a : tensor<8xf32>" for i in range(12))
    with pytest.raises(ProgramRefused, match=r"more than 10 operations; use lax.fori_loop or lax.scan"):
        form(honest(body))


def test_deep_nesting_is_refused() -> None:
    body = "%inner = stablehlo.negate %a : tensor<8xf32>"
    for i in range(210):
        body = f'%z{i} = "stablehlo.case"(%c) ({{ {body}\n stablehlo.return %a : tensor<8xf32> }}) : (tensor<i32>) -> tensor<8xf32>'
    with pytest.raises(ProgramRefused, match="nested more than 200 levels deep"):
        form(honest(f"%c = stablehlo.constant dense<0> : tensor<i32>\n{body}").replace("return %0", "return %a"))


def test_jax_still_compiles_the_module_that_it_gets(traced: Callable[..., Any]) -> None:
    """``compiled_on`` puts another module into JAX's lowered program. This test fails if JAX does not compile it."""
    made = traced("def f(a, *, mesh):\n    return a * 3\n", normal(8, spec=("x",)))
    value = np.arange(8, dtype=np.float32)
    _, blobs = execution.execute(made.request, made.program, [[value]])
    assert np.frombuffer(blobs[0], np.float32).tolist() == [0, 3]


# -- the key of a cached result ----------------------------------------------------------------


def asks(traced: Callable[..., Any]) -> dict[str, tuple[Any, bytes, list]]:
    """Return requests with different results, by name. The first one differs from each of the others in few fields."""
    text = "def f(a, b, *, mesh):\n    return a - 2 * b\n"
    a, b = normal(8, spec=("x",)), normal(8, spec=("x",))
    one = np.arange(8, dtype=np.float32)
    base = traced(text, a, b)
    made = {
        "as it is": (base, [[one, one + 1]]),
        "other values": (base, [[one, one + 2]]),
        "values the other way round": (base, [[one + 1, one]]),
        "two runs": (base, [[one, one + 1], [one, one + 1]]),
        "other layout": (traced(text, normal(8, spec=("y",)), normal(8, spec=("y",))), [[one, one + 1]]),
        "layout of one": (traced(text, a, normal(8, spec=(("x", "y"),))), [[one, one + 1]]),
        "other order of axes": (traced(text, a, normal(8, spec=(("y", "x"),))), [[one, one + 1]]),
        "other mesh": (traced(text, a, b, mesh={"x": 2, "y": 4}), [[one, one + 1]]),
        "other names": (traced(text, normal(8, spec=("y",)), normal(8, spec=("y",)), mesh={"y": 4, "x": 2}), [[one, one + 1]]),
        "other program": (traced(text.replace("2", "3"), a, b), [[one, one + 1]]),
        "other type": (traced(text, normal(8, spec=("x",), dtype="bfloat16"), b), [[one.astype("bfloat16"), one + 1]]),
        "other shape": (traced(text, normal(2, 4, spec=("y",)), normal(2, 4, spec=("y",))), [[one.reshape(2, 4), one.reshape(2, 4) + 1]]),
    }  # fmt: skip
    return {name: (made.request, made.program, values) for name, (made, values) in made.items()}


def executed(module: Any, request: tuple) -> Any:
    """Execute a request, and leave out the CPU time, which differs from run to run."""
    header, blobs = module.execute(*request)
    return {key: value for key, value in header.items() if key != "cpu"}, blobs


def test_no_two_requests_that_behave_differently_share_a_result(traced: Callable[..., Any]) -> None:
    """The cached result of one request is never returned for a different one, in any order."""
    requests = asks(traced)
    alone = {}
    for name, request in requests.items():
        alone[name] = executed(made_again(execution), request)
    assert len({repr(reply) for reply in alone.values()}) == len(alone)
    for name in [*requests, *reversed(requests)]:
        assert executed(execution, requests[name]) == alone[name], name
