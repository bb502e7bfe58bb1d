"""The FLOPs of one operation of a program, and the part of the FLOPs that belongs to matmuls.

StableHLO (the program before compilation) and HLO (the compiled program) have nearly equal names for operations, so
this module serves both. An operation on complex numbers counts as four operations. Moving data, converting data and
drawing random bits are not arithmetic. Comparisons, selections and logic count as arithmetic only on *data*, values
that depend on the program's arguments. Sums inside a collective are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from grader.common.intervals import UNKNOWN, ZERO, Interval

# Operations that cost one FLOP for each element of the result.
ELEMENTWISE = {
    "abs", "add", "atan2", "cbrt", "ceil", "clamp", "cosine", "divide", "exponential", "exponential_minus_one", "floor",
    "log", "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate", "power", "remainder",
    "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "subtract", "tan", "tanh",
  # operations of the dialect CHLO, and operations that only HLO has
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "cosh", "digamma", "erf", "erf_inv", "erfc",
    "lgamma", "mulhi", "polygamma", "sinh", "square", "zeta",
}  # fmt: skip
MULTIPLY = {"divide", "mulhi", "multiply", "power", "square"}
NONE = {
    "all_gather", "all_reduce", "all_to_all", "and", "async_done", "async_start", "bitcast", "bitcast_convert",
    "broadcast", "broadcast_in_dim", "call", "case", "collective_broadcast", "collective_permute", "compare", "complex",
    "composite", "concatenate", "conj", "constant", "constant_like", "convert", "copy", "count_leading_zeros",
    "dynamic_broadcast_in_dim", "dynamic_gather", "dynamic_iota", "dynamic_pad", "dynamic_slice",
    "dynamic_update_slice", "gather", "get_dimension_size", "get_tuple_element", "if", "imag", "iota", "is_finite",
    "is_inf", "is_neg_inf", "is_pos_inf", "map", "next_after", "not", "optimization_barrier", "or", "pad",
    "partition_id", "popcnt", "real", "real_dynamic_slice", "reduce", "reduce_precision", "reduce_scatter",
    "reduce_window", "replica_id", "reshape", "return", "reverse", "rng_bit_generator", "scatter", "select",
    "select_and_scatter", "set_dimension_size", "shift_left", "shift_right_arithmetic", "shift_right_logical", "slice",
    "sort", "top_k", "torch_index_select", "transpose", "tuple", "while", "xor",
    # operations that only HLO has
    "after_all", "conditional", "fusion", "opt_barrier", "parameter", "rng_get_and_update_state", "topk",
}  # fmt: skip


# Operations on bits. A program can add and multiply numbers with bit operations alone, so the grader treats these
# operations as arithmetic if an operand depends on an argument of the program.
LOGIC = {
    "and", "compare", "count_leading_zeros", "not", "or", "popcnt", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "xor",
}  # fmt: skip
# Operations that choose values, and the positions of the operands that decide the choice. If one of these operands
# depends on an argument of the program, the grader treats the operation as arithmetic. Otherwise the
# operation only moves values.
CHOOSES = {
    "dynamic_slice": slice(1, None), "dynamic_update_slice": slice(2, None), "gather": slice(1, 2),
    "scatter": slice(1, 2), "select": slice(0, 1),
}  # fmt: skip


@dataclass(frozen=True)
class FlopCount:
    """A number of arithmetic operations (``flops``), and a number of FLOPs that count as matmuls (``dots``)."""

    flops: Interval = ZERO
    dots: Interval = ZERO

    def __add__(self, other: FlopCount) -> FlopCount:
        return FlopCount(self.flops + other.flops, self.dots + other.dots)

    def __mul__(self, times: Interval | float) -> FlopCount:
        return FlopCount(self.flops * times, self.dots * times)

    def either(self, other: FlopCount) -> FlopCount:
        return FlopCount(self.flops.either(other.flops), self.dots.either(other.dots))


FREE = FlopCount()


def dot(result: Sequence[int], contracted: int, complex_: bool) -> FlopCount:
    """Return the cost of a matmul: for each result element, a multiplication and an addition per contracted element.

    ``result``: the result's shape. ``contracted``: the product of the sizes of the contracted dimensions.
    """
    each = Interval.of(2 * math.prod(result) * contracted * (4 if complex_ else 1))
    return FlopCount(each, each)


def elementwise(name: str, result: Sequence[int], complex_: bool, factors: int) -> FlopCount:
    """Return the cost of an operation that costs equally much for each element.

    If ``name`` is not a known operation, the cost is unknown.

    A learner may write ``a @ b`` as multiplications and a sum. So if both factors of a multiplication depend on the
    program's arguments, each element counts as two matmul FLOPs: the multiplication and an addition.

    ``factors``: the number of operands that depend on the program's arguments.
    """
    if name in NONE:
        return FREE
    if name not in ELEMENTWISE:
        return FlopCount(UNKNOWN, UNKNOWN)
    each = math.prod(result) * (4 if complex_ else 1)
    if name in MULTIPLY and factors and (factors > 1 or name == "square"):
        return FlopCount(Interval.of(each), Interval.of(2 * each))
    return FlopCount(Interval.of(each))


def logic(name: str, result: Sequence[int], data: Sequence[bool]) -> FlopCount:
    """Return the cost of logic on data, as an interval from 0 to one operation for each result element.

    A check that requires FLOPs uses the lower bound, because logic is not arithmetic. A check that limits FLOPs uses
    the upper bound, because a program could do arithmetic by logic.

    ``data``: for each operand, whether it depends on the program's arguments.
    """
    deciding = data if name in LOGIC else data[CHOOSES.get(name, slice(0))]
    return FlopCount(Interval(0, math.prod(result))) if any(deciding) else FREE


def fft(elements: int, length: int) -> FlopCount:
    """Return the cost of FFTs of ``length`` elements each: by convention, 5 log2(length) for each element."""
    return FlopCount(Interval.of(math.ceil(5 * elements * math.log2(max(length, 1)))))


def solve(elements: int, n: int) -> FlopCount:
    """Return the cost of a triangular solve or a Cholesky factorization: 0 to n operations for each result element."""
    return FlopCount(Interval(0, elements * n))
