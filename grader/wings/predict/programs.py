"""The programs that are timed, as each device sees them. A prediction is only for this version of the text."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def all_gather(a):
    """a float32[V/4] over x -> the whole array on each device."""
    return jax.lax.all_gather(a, "x", tiled=True)


def all_reduce(a):
    """a float32[1, V/4], one for each device -> their sum on each device."""
    return jax.lax.psum(a, "x")


def matmul(a, b):
    """a float32[n/N, n], b float32[n, n] -> float32[n/N, n]: nothing is sent."""
    return a @ b


def on_devices(name, size, mesh):
    """The jitted program, its arguments laid out on the mesh, and whether its input is in pieces."""
    n = mesh.shape["x"]
    body, in_specs, out_specs, shapes = {
        "all_gather": (all_gather, (P("x"),), P(), [(size // 4,)]),
        "all_reduce": (all_reduce, (P("x"),), P(), [(n, size // 4)]),
        "matmul": (matmul, (P("x"), P()), P("x"), [(size, size)] * 2),
    }[name]
    sharded = jax.shard_map(body, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)
    places = [jax.sharding.NamedSharding(mesh, spec) for spec in in_specs]
    arguments = [jnp.ones(shape, jnp.float32, device=place) for shape, place in zip(shapes, places, strict=True)]
    return jax.jit(sharded), arguments, not arguments[0].is_fully_replicated
