"""Which operations are fused, and the costs of kernels, compared with measured times of a chip."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.clock import COMPUTE, Timeline, Untimed, live_memory, timeline
from tests.clock.programs import read, read_global, ring_of

ONE = {"x": 1}
KIB = 1024
SQUARE = ((512, 512), P())
HBM = 1e12

# M, N, K and microseconds on one TPU v6e, bfloat16: the longest matmuls of the first 300 rows of
# scalesim/calibration_pure/gemm_pure_master_tpuv6e.csv (github.com/scalesim-project/SCALE-Sim, MIT), column
# latency_us_device.
MATMULS = [
    (2625, 2812, 4004, 139.57), (5073, 2038, 4403, 128.11), (5155, 3595, 1853, 107.35), (2058, 2825, 5646, 106.51),
    (5278, 2631, 3323, 111.95), (5636, 3459, 3351, 182.36), (3272, 3713, 4610, 156.56), (4913, 4631, 5573, 334.43),
    (3996, 3511, 4566, 173.05), (5257, 3039, 3022, 117.47), (5367, 3951, 1624, 103.40),
]  # fmt: skip
# Elements and microseconds of exp on one TPU v6e: scalesim/calibration_pure/datasets_pure_tpuv6e_fixed/exponential_dataset.csv.
EXPONENTIALS = [
    (5707264, 19.18), (6740736, 22.07), (8931584, 28.92), (10311168, 32.56), (13236736, 42.89), (16642176, 51.95),
    (18052224, 56.40), (20293632, 63.11), (38825984, 119.48),
]  # fmt: skip


def laid(local: Callable, *shapes: tuple, out: object = P(), dtype: str = "float32") -> Timeline:
    program = read(local, list(shapes), out, mesh={"x": 8}, dtype=dtype)
    return timeline(program, ring_of(8, flops=1e14, hbm=HBM))


def kernels(found: Timeline) -> list[tuple[str, int, int]]:
    return [(s.what, s.bytes // KIB, s.flops) for s in found.spans if s.lane == COMPUTE]


def test_measured_matmuls_take_longer_than_the_model() -> None:
    parts = []
    for m, n, k, us in MATMULS:
        program = read(lambda a, b: a @ b, [((m, k), P()), ((k, n), P())], P(), mesh=ONE)
        parts.append(timeline(program, "v6e:1x1").step / 1e6 / us)
    assert min(parts) > 0.4 and max(parts) < 1 and 0.6 < statistics.median(parts) < 0.9, parts


def test_measured_elementwise_kernels_take_about_a_fifth_longer() -> None:
    parts = []
    for n, us in EXPONENTIALS:
        program = read(jnp.exp, [((n,), P())], P(), mesh=ONE)
        parts.append((timeline(program, "v6e:1x1").step / 1e6 + 1) / us)
    assert min(parts) > 0.75 and max(parts) < 0.86, parts


def test_elementwise_operations_join_the_kernel_of_their_user() -> None:
    assert kernels(laid(lambda a, b: jnp.tanh(a * 2 + b), SQUARE, SQUARE)) == [("tanh + multiply + add", 3 * 1024, 0)]
    (only,) = kernels(laid(lambda a, b: jnp.tanh(a) @ b, SQUARE, SQUARE))
    assert only == ("dot_general + tanh", 3 * 1024, 2 * 512**3)


def test_a_sum_joins_its_matmul_and_reads_the_other_addend() -> None:
    (only,) = kernels(laid(lambda a, b, c: c + a @ b, SQUARE, SQUARE, SQUARE))
    assert only == ("dot_general + add", 4 * 1024, 2 * 512**3)


def test_elementwise_operations_that_meet_again_join_the_matmul() -> None:
    """The gradient of tanh reads the matmul's result twice. One kernel does all this and stores only the gradient."""
    (only,) = kernels(laid(lambda a, b, y: (lambda g: g - g * y * y)(a @ b), SQUARE, SQUARE, SQUARE))
    assert only == ("dot_general + multiply + subtract", 4 * 1024, 2 * 512**3)
    first, second = kernels(laid(lambda a, b: (lambda c: c + c.T)(a @ b), SQUARE, SQUARE))
    assert (first[0], second[0]) == ("dot_general", "add + transpose"), "other elements than those that are there"


def test_an_update_of_zeros_that_is_only_added_stores_no_zeros() -> None:
    def local(total, part):
        return total + lax.dynamic_update_slice(jnp.zeros_like(total), part, (3, 0))

    (only,) = kernels(laid(local, SQUARE, ((2, 512), P())))
    assert only == ("add + dynamic_update_slice", 2 * 1024 + 4, 0)
    alone = kernels(laid(lambda part: lax.dynamic_update_slice(jnp.zeros((512, 512)), part, (3, 0)), ((2, 512), P())))
    assert alone == [("dynamic_update_slice", 1024 + 8, 0)]


def test_a_broadcast_that_adds_dimensions_of_size_1_is_a_reshape() -> None:
    assert kernels(laid(lambda a, b: (a @ b)[None], SQUARE, SQUARE)) == [("dot_general", 3 * 1024, 2 * 512**3)]
    assert memory(lambda a, b: (a @ b)[None], SQUARE, SQUARE) == (3, 2, 1, 0)
    assert memory(lambda a: a[None] + jnp.zeros((2, 512, 512)), SQUARE) == (3, 1, 2, 0)


def test_a_matmul_does_not_wait_for_a_collective_that_only_its_sum_needs() -> None:
    def local(a, b, c):
        return lax.ppermute(c, "x", [(i, (i + 1) % 8) for i in range(8)]) + a @ b

    found = laid(local, SQUARE, SQUARE, SQUARE)
    assert [what for what, _, _ in kernels(found)] == ["dot_general", "add"]
    (permute,) = found.collectives
    assert permute.overlapped > 0 and permute.after == "" and permute.before.startswith("add")


def test_a_barrier_does_not_keep_a_sum_apart_from_its_matmul() -> None:
    """``late_loop_unrolled`` of F1 has such a barrier around each value that a round returns."""

    def two(a: jax.Array, b: jax.Array, kept: Callable) -> jax.Array:
        return kept(a + a @ b) + b @ a

    apart = kernels(laid(lambda a, b: two(a, b, lax.optimization_barrier), SQUARE, SQUARE))
    together = kernels(laid(lambda a, b: two(a, b, lambda value: value), SQUARE, SQUARE))
    assert apart == together and len(apart) == 2


def test_a_kernel_with_a_slice_reads_only_the_sliced_bytes() -> None:
    assert kernels(laid(lambda a: lax.slice_in_dim(a, 0, 64) * 2, SQUARE)) == [("multiply + slice", 2 * 128, 0)]


def test_an_array_is_updated_in_place_unless_its_old_value_is_needed() -> None:
    def dies(a, b):
        return lax.dynamic_update_slice(jnp.tanh(a) @ a, b[:64], (0, 0))

    def lives(a, b):
        return lax.dynamic_update_slice(a, b[:64], (0, 0))

    assert kernels(laid(dies, SQUARE, SQUARE))[-1][1] == 2 * 128
    assert kernels(laid(lives, SQUARE, SQUARE))[-1][1] == 2 * 128 + 2 * 1024


def test_precision_and_dtype_set_the_passes_of_a_matmul() -> None:
    def of(precision: str, dtype: str) -> int:
        return laid(lambda a, b: jnp.dot(a, b, precision=precision), SQUARE, SQUARE, dtype=dtype).busy

    once = 2 * 512**3 / 1e14 * 1e12
    found = [of("high", "float32"), of("highest", "float32"), of("highest", "bfloat16")]
    assert found == [pytest.approx(n * once, abs=2) for n in (3, 6, 1)]


def test_int8_matmuls_run_at_twice_the_rate() -> None:
    def local(a, b):
        return jnp.dot(a, b, preferred_element_type=jnp.int32)

    assert 2 * laid(local, SQUARE, SQUARE, dtype="int8").busy == pytest.approx(
        laid(jnp.dot, SQUARE, SQUARE).busy, abs=2
    )


def test_operands_cast_to_int8_inside_the_program_keep_the_rate_of_bfloat16() -> None:
    def local(a, b):
        return jnp.dot(a.astype(jnp.int8), b.astype(jnp.int8), preferred_element_type=jnp.int32)

    def matmul(found: Timeline) -> list[int]:
        return [s.end - s.start for s in found.spans if s.flops]

    (plain,) = matmul(laid(jnp.dot, SQUARE, SQUARE, dtype="bfloat16"))
    assert matmul(laid(local, SQUARE, SQUARE, dtype="bfloat16")) == [plain]
    assert matmul(laid(local, SQUARE, SQUARE, dtype="int8"))[0] < plain


def test_the_longest_branch_of_a_lax_cond_counts() -> None:
    def local(a, b):
        return lax.cond(lax.axis_index("x") == 0, lambda: a @ b, lambda: a)

    assert laid(local, SQUARE, SQUARE).flops == 2 * 512**3


def test_an_operation_that_no_result_needs_is_removed() -> None:
    def local(a, b):
        lax.ppermute(a, "x", [(i, (i + 1) % 8) for i in range(8)])
        return a + b

    assert laid(local, SQUARE, SQUARE).collectives == ()


# -- programs without a time -------------------------------------------------------------------


def test_a_loop_with_unknown_rounds_has_no_time() -> None:
    def local(a, b):
        return lax.while_loop(lambda a: a[0, 0] < 9, lambda a: a @ b, a)

    with pytest.raises(Untimed, match="a loop's number of rounds cannot be read from the program"):
        laid(local, SQUARE, SQUARE)


def mesh(n: int = 8):
    from jax.sharding import AbstractMesh, AxisType

    return AbstractMesh((n,), ("x",), axis_types=(AxisType.Auto,))


def test_a_matmul_outside_shard_map_has_no_time() -> None:
    program = read_global(lambda a, b: a @ b, [((512, 512), P("x")), SQUARE], mesh())
    with pytest.raises(Untimed, match="dot_general is outside shard_map"):
        timeline(program, ring_of(8))


def test_a_program_that_needs_resharding_first_has_no_time() -> None:
    def entered(spec: P) -> Callable:
        return jax.shard_map(lambda a: a * 2, mesh=mesh(), in_specs=spec, out_specs=spec)

    with pytest.raises(Untimed, match="an array enters shard_map with another layout than in_specs"):
        timeline(read_global(entered(P()), [((512, 512), P("x"))], mesh()), ring_of(8))
    twice = lambda a: entered(P("x"))(entered(P("x"))(a) + 1)  # noqa: E731
    assert timeline(read_global(twice, [((512, 512), P("x"))], mesh()), ring_of(8, hbm=HBM)).step > 0


def test_a_matmul_is_not_named_after_index_arithmetic() -> None:
    def local(a, w):
        block = (lax.axis_index("x") - 3) % 8
        return 1 + a @ lax.dynamic_index_in_dim(w.reshape(8, -1, w.shape[1]), block, keepdims=False)

    program = read(local, [((512, 64), P()), SQUARE], P(), mesh={"x": 8})
    assert [s.what for s in timeline(program, "v5e:2x4").spans] == ["dot_general + dynamic_slice + add"]


# -- memory ------------------------------------------------------------------------------------

MIB = 1 << 20


def memory(local: Callable, *shapes: tuple, out: object = P()) -> tuple[int, int, int, int]:
    found = live_memory(read(local, list(shapes), out, mesh={"x": 8}, dtype="float32"))
    return tuple(n // MIB for n in (found.peak, found.arguments, found.results, found.temporaries))  # type: ignore[return-value]


def test_memory_is_the_peak_of_live_arrays() -> None:
    assert memory(lambda a, b: a @ b, SQUARE, SQUARE) == (3, 2, 1, 0)
    assert memory(lambda a, b: (a @ b) @ b, SQUARE, SQUARE) == (4, 2, 1, 1)
    assert memory(lambda a, b: a[:1] @ b, SQUARE, SQUARE)[0] == 2
    assert memory(lambda a: lax.all_gather(a, "x", tiled=True).sum(), ((4096, 512), P("x"))) == (9, 1, 0, 8)


@pytest.mark.parametrize(
    ("local", "due"),
    [
        (lambda a, b: a @ b + b @ a, (3, 2, 1, 0)),  # the sum reuses the first matmul's memory
        (lambda a, b: a @ b + b @ a + b @ b, (3, 2, 1, 0)),
        (lambda a, b: lax.psum(a @ b, "x"), (3, 2, 1, 0)),
        (lambda a, b: lax.fori_loop(0, 3, lambda _, c: c + a @ b, a @ b), (3, 2, 1, 0)),
        (
            lambda a, b: (lambda c: c + c.T)(a @ b),
            (4, 2, 1, 1),
        ),  # one element of the sum needs two elements of the matmul, so the sum cannot reuse the matmul's memory
        # A matmul reads its operands' elements several times, so it cannot reuse the operands' memory.
        (lambda a, b: (a @ b) @ b, (4, 2, 1, 1)),
        (lambda a, b: a + b @ a, (3, 2, 1, 0)),  # the sum cannot reuse a's memory, because arguments stay in memory
    ],
)
def test_an_operation_reuses_the_memory_of_an_operand_that_dies(
    local: Callable, due: tuple[int, int, int, int]
) -> None:
    assert memory(local, SQUARE, SQUARE) == due


def test_a_result_that_is_an_argument_counts_as_a_copy() -> None:
    assert memory(lambda a: a, SQUARE) == (2, 1, 1, 0)
    assert memory(lambda a, b: (a, a @ b), SQUARE, SQUARE, out=(P(), P())) == (4, 2, 2, 0)


def test_an_operand_that_is_read_later_is_not_overwritten() -> None:
    def twice(a, b):
        c = a @ b
        return c + b @ a, c @ c

    assert memory(twice, SQUARE, SQUARE, out=(P(), P())) == (5, 2, 2, 1)


def test_a_loop_holds_its_carried_arrays_once_plus_one_rounds_needs() -> None:
    def local(a, b):
        return lax.fori_loop(0, 4, lambda _, a: (a @ b) @ b, a)

    peak, arguments, _, _ = memory(local, SQUARE, SQUARE)
    assert arguments == 2  # a and b, which the loop only reads
    assert peak == 4  # the carried arrays, and the first matmul of a round


def test_arrays_that_loops_only_read_are_held_once() -> None:
    def local(a, b):
        for _ in range(3):
            a = lax.fori_loop(0, 4, lambda _, a: (a @ b) @ b, a)
        return a

    peak, arguments, _, _ = memory(local, SQUARE, SQUARE)
    assert (peak, arguments) == (4, 2)


def test_peak_memory_comes_with_its_line() -> None:
    found = live_memory(read(lambda a, b: (a @ b) @ b, [SQUARE, SQUARE], P(), files={__file__}))
    assert found.at.startswith("dot_general, line ") and found.line and found.time == -1
