"""The integers that the grader derives for each device of a program, compared with the integers of a run."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.common.integers import Numbers, computed
from grader.wire.operations import Operations
from tests.clock.programs import read

MESH = {"x": 4, "y": 2}


def last_of(program: Operations) -> Numbers | None:
    """Return the start index of the program's last dynamic slice, on each device."""
    known: dict[int, Numbers | None] = {}
    found = None
    for op in program.main.operations:
        if op.name == "dynamic_slice":
            found = known[op.operands[1]]
        elif len(op.results) == 1:
            known[op.results[0]] = computed(op, program, [known.get(v) for v in op.operands])
    return found


PLACES: list[Callable] = [
    lambda x, y: x,
    lambda x, y: (x - y - 3) % 4,
    lambda x, y: x * 2 - 5 * y,
    lambda x, y: -x // 2,
    lambda x, y: lax.rem(y - 4 * x, jnp.int32(3)),
    lambda x, y: lax.div(y - 4 * x, jnp.int32(3)),
    lambda x, y: jnp.clip(x - y, -1, 2),
    lambda x, y: jnp.where((x > y) & (x != 3), x, -y),
    lambda x, y: jnp.maximum(abs(x - 2), y),
]


@pytest.mark.parametrize("place", PLACES)
def test_a_place_in_an_array_is_computed_for_every_device_as_jax_does(place: Callable) -> None:
    def local(a):
        at = place(lax.axis_index("x"), lax.axis_index("y"))
        return lax.dynamic_slice_in_dim(a, at + 20, 1)

    found = last_of(read(local, [((40, 2), P())], P("x"), mesh=MESH))
    with jax.ensure_compile_time_eval():
        assert found == tuple(int(place(jnp.int32(x), jnp.int32(y))) + 20 for x, y in np.ndindex(4, 2))


def test_an_integer_from_data_or_a_division_by_zero_is_unknown() -> None:
    def by_value(a):
        return lax.dynamic_slice_in_dim(a, a[0, 0].astype(jnp.int32), 1)

    def by_zero(a):
        return lax.dynamic_slice_in_dim(a, lax.div(jnp.int32(1), lax.axis_index("x")), 1)

    for local in (by_value, by_zero):
        assert last_of(read(local, [((40, 2), P())], P("x"), mesh=MESH)) is None
