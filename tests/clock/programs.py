"""JAX programs for the tests of the clock.

The tests trace these programs and read their operations. They never compile or run them.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from grader.clock import Placement, Slice, placed
from grader.hardware import Chip
from grader.runner import operations
from grader.runner.program import canonical
from grader.wire.frames import dtype_of, encode
from grader.wire.operations import Operations, from_json, to_json

FILES = {__file__}


def read(
    local: Callable[..., Any],
    shapes: list[tuple[tuple[int, ...], PartitionSpec]],
    out_specs: Any,
    *,
    mesh: Mapping[str, int] = {"x": 8},
    dtype: str = "bfloat16",
    files: set[str] | None = None,
) -> Operations:
    """Return the operations of a body in ``shard_map``, as the runner returns them."""
    on = AbstractMesh(tuple(mesh.values()), tuple(mesh), axis_types=(AxisType.Auto,) * len(mesh))
    mapped = jax.shard_map(
        local, mesh=on, in_specs=tuple(spec for _, spec in shapes), out_specs=out_specs, check_vma=False
    )
    return read_global(mapped, shapes, on, dtype=dtype, files=files)


def read_global(
    function: Callable[..., Any], shapes: list, mesh: Any, *, dtype: str = "bfloat16", files: set[str] | None = None
) -> Operations:
    arguments = [jax.ShapeDtypeStruct(s, dtype_of(dtype), sharding=NamedSharding(mesh, spec)) for s, spec in shapes]
    lowered = jax.jit(lambda *a: function(*a), keep_unused=True).trace(*arguments).lower(lowering_platforms=("cpu",))
    code = io.BytesIO()
    module: Any = lowered.compiler_ir("stablehlo")
    module.operation.write_bytecode(code)
    asked = [{"shape": list(s), "dtype": dtype, "spec": encode(spec)} for s, spec in shapes]
    sizes = dict(mesh.shape)
    files = FILES if files is None else files
    form = canonical(code.getvalue(), sizes, asked, files)
    found = operations.read(form.parse(), sizes, files)
    assert found is not None
    return from_json(to_json(found))


def chip(
    *, flops: float = 1e14, hbm: float = math.inf, link: float = 5e10, shape: tuple[int, ...] = (8,), rings: bool = True
) -> Slice:
    """Return a slice of a chip with these rates. Its axes are all rings or all lines."""
    row = Chip(
        "test", shape, shape, 1e12, hbm, flops, 2 * flops, link, 1e10, 1e9, shape[0] if rings else 0, None, "", ""
    )
    return Slice(row, shape)


def ring_of(n: int = 8, **rates: float) -> Placement:
    return placed(chip(shape=(n,), **rates), {"x": n})  # type: ignore[arg-type]


def line_of(n: int = 8, **rates: float) -> Placement:
    return placed(chip(shape=(n,), rings=False, **rates), {"x": n})  # type: ignore[arg-type]
