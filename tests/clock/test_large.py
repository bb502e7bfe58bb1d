"""The cost of a timeline for a program that was written to be costly. The tests count steps, not seconds."""

from __future__ import annotations

from grader.clock import timeline
from grader.clock.kernels import MAX_FUSED, Fused
from grader.clock.order import MAX_EDGES, Busy
from grader.wire.operations import MAX_OPERATIONS, Body, Operation, Operations, Value
from tests.clock.programs import ring_of

HALF = MAX_OPERATIONS // 2 - 1


def chain_and_matmuls(length: int) -> Operations:
    """Return a chain of sums, and an equal number of matmuls that each use the last sum."""
    sums = [Operation("add", (n, 0), (n + 1,)) for n in range(length)]
    matmuls = [Operation("dot_general", (length, 0), (length + 1 + n,), flops=1024) for n in range(length)]
    results = tuple(op.results[0] for op in matmuls)
    return Operations(
        {"x": 8}, (Value((8, 8), "float32"),) * (2 * length + 1), Body((0,), (*sums, *matmuls), results)
    )  # fmt: skip


def test_the_operations_fused_into_a_kernel_are_bounded() -> None:
    """Without a bound, each matmul's kernel would have all sums of the chain, six million operations in total."""
    program = chain_and_matmuls(HALF)
    fused = Fused(program, program.main, owns_arguments=False)
    assert max(len(unit.inside) for unit in fused.units) <= MAX_FUSED
    found = timeline(program, ring_of(8))
    assert found.flops == 1024 * HALF and found.step == found.busy


def test_a_short_chain_joins_each_of_its_users() -> None:
    program = chain_and_matmuls(MAX_FUSED // 2)
    fused = Fused(program, program.main, owns_arguments=False)
    assert {unit.kind for unit in fused.units} == {"matmul"}
    assert {len(unit.inside) for unit in fused.units} == {MAX_FUSED // 2 + 1}


def test_only_the_last_of_many_edges_are_returned() -> None:
    busy = Busy((2 * n, 2 * n + 1) for n in range(1000))
    assert len(busy.edges(0, 2000)) == 2 * MAX_EDGES and max(busy.edges(0, 2000)) == 1999
    assert sorted(busy.edges(10, 14)) == [11, 12, 13]
