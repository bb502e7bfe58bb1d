"""Functions for checks.

Each function ``expect_...`` compares observations (facts and values of a program) with a requirement, and raises
Failure if the observations do not meet the requirement. The functions use NumPy, not JAX.

A check compares shape and dtype before values, and computes the tolerance from the expected values. So wrong results
cannot cause an error in the grader, and cannot enlarge the tolerance. NaN never passes, because ``difference <= bound``
and ``==`` are False for NaN.
"""

from grader.common.budget import between, needed
from grader.common.layout import entries
from grader.expect.chance import expect_independent
from grader.expect.clock import expect_bubble, expect_overlap, expect_step_time, laid_out, show_time
from grader.expect.communication import (
    expect_at_most,
    expect_collectives,
    expect_no_collectives,
    expect_only,
    expect_traffic,
)
from grader.expect.costs import expect_flops, expect_memory, expect_other_flops, memory_of, show_bytes
from grader.expect.failure import Failure
from grader.expect.order import expect_beside, expect_not_waiting
from grader.expect.outcomes import expect_outcomes, same_outcome, show_outcome, show_value
from grader.expect.values import expect_close, expect_equal, expect_shard_map, expect_spec

__all__ = [
    "Failure",
    "between",
    "entries",
    "expect_at_most",
    "expect_beside",
    "expect_bubble",
    "expect_close",
    "expect_collectives",
    "expect_equal",
    "expect_flops",
    "expect_independent",
    "expect_memory",
    "expect_no_collectives",
    "expect_not_waiting",
    "expect_only",
    "expect_other_flops",
    "expect_outcomes",
    "expect_overlap",
    "expect_shard_map",
    "expect_spec",
    "expect_step_time",
    "expect_traffic",
    "laid_out",
    "memory_of",
    "needed",
    "same_outcome",
    "show_bytes",
    "show_outcome",
    "show_time",
    "show_value",
]
