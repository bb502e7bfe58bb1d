"""A program's operations as the runner reads them from real programs."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.runner import operations
from grader.wire import operations as wire
from grader.wire.operations import Communication, Operation, Operations
from tests.clock.programs import read

ROUND = [(i, (i + 1) % 4) for i in range(4)]
MESH = {"x": 4, "y": 2}
A = ((16, 8), P("x", "y"))


def named(program: Operations, name: str) -> list[Operation]:
    return [op for op in program.walk() if op.name == name]


def test_shapes_inside_shard_map_are_one_devices() -> None:
    program = read(lambda a: a * 2, [A], P("x", "y"), mesh=MESH)
    (argument,), (result,) = program.main.arguments, program.main.results
    assert program.values[argument] == wire.Value((16, 8), "bfloat16", 8) == program.values[result]
    (multiply,) = named(program, "multiply")
    assert program.values[multiply.results[0]] == wire.Value((4, 4), "bfloat16")
    assert program.main.operations[0].name == "shard" and program.main.operations[-1].name == "unshard"


def test_an_error_in_facts_that_only_pictures_need_leaves_out_these_facts(
    monkeypatch: pytest.MonkeyPatch, left_out: pytest.LogCaptureFixture
) -> None:
    def error(op: object) -> None:
        raise LookupError

    def sliced(a):
        return lax.ppermute(a[1:3], "x", ROUND).at[0].set(a[0])

    before = read(sliced, [A], P("x", "y"), mesh=MESH)
    monkeypatch.setattr(operations, "entries_of", error)
    after = read(sliced, [A], P("x", "y"), mesh=MESH)
    assert [replace(op, start=None, entry=False) for op in before.walk()] == list(after.walk()) != list(before.walk())
    assert len(left_out.messages) == 1


def test_each_call_is_inlined_with_its_own_values() -> None:
    inner = jax.jit(lambda a: lax.ppermute(a, "x", ROUND))
    program = read(lambda a: inner(inner(a)), [A], P("x", "y"), mesh=MESH)
    first, second = named(program, "collective_permute")
    assert second.operands == first.results and not set(first.results) & set(second.results)
    pairs = first.communication.groups if first.communication else ()
    assert len(pairs) == 8 and first.communication == Communication("permute", pairs, ("x",), 4 * 4 * 2)


def test_groups_and_axes_of_collectives() -> None:
    def local(a):
        return lax.psum(a, "x"), lax.all_gather(a, ("x", "y")), lax.psum_scatter(a, "y", tiled=True)

    program = read(local, [A], (P(), P(), P("y")), mesh=MESH)
    found = {op.communication.kind: op.communication for op in program.walk() if op.communication}
    assert found["all_reduce"].axes == ("x",) and found["all_gather"].axes == ("x", "y")
    assert sorted(map(sorted, found["reduce_scatter"].groups)) == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_loops_have_rounds_and_bodies_and_constants_are_known() -> None:
    def local(a):
        return lax.fori_loop(0, 5, lambda i, a: a @ a.T @ a, a)

    program = read(local, [A], P("x", "y"), mesh=MESH)
    (loop,) = named(program, "while")
    assert loop.rounds == 5 and len(loop.bodies) == 2 and len(loop.operands) == len(loop.bodies[1].arguments)
    assert {op.number for op in named(program, "constant")} >= {0, 5}
    assert [op.flops for op in named(program, "dot_general")] == [2 * 4 * 4 * 4] * 2


def test_a_conditional_has_its_branches_as_bodies() -> None:
    def local(a):
        return lax.cond(lax.axis_index("x") == 0, lambda: a + 1, lambda: a)

    program = read(local, [A], P("x", "y"), mesh=MESH)
    (case,) = named(program, "case")
    assert [len(body.operations) for body in case.bodies] in ([0, 3], [0, 2])


def test_lines_are_those_of_the_learners_source() -> None:
    program = read(lambda a: jnp.tanh(a), [A], P("x", "y"), mesh=MESH, files={__file__})
    (tanh,) = named(program, "tanh")
    assert (
        tanh.file == __file__ and tanh.line == test_lines_are_those_of_the_learners_source.__code__.co_firstlineno + 1
    )


def test_operations_in_a_partly_manual_shard_map_are_not_manual() -> None:
    from jax.sharding import AbstractMesh, AxisType

    from tests.clock.programs import read_global

    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    partly = jax.shard_map(lambda a: a @ a.T, mesh=mesh, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    program = read_global(jax.jit(partly), [((16, 8), P("x", "y"))], mesh)
    (dot,) = named(program, "dot_general")
    assert not dot.manual


def test_a_large_program_has_no_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    program = read(lambda a: a * 2 + 1, [A], P("x", "y"), mesh=MESH)
    assert len(list(program.walk())) > 3
    monkeypatch.setattr(operations, "MAX_OPERATIONS", 3)
    with pytest.raises(AssertionError):  # the runner returns no operations, and ``read`` asserts that it does
        read(lambda a: a * 2 + 1, [A], P("x", "y"), mesh=MESH)
