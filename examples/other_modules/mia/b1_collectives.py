import jax
import jax.numpy as jnp
from jax import lax


def all_gather_body(a, *, dim):
    return lax.all_gather(a, "x", axis=dim, tiled=True)


def all_reduce_body(a):
    return lax.psum(a, axis_name="x")


def reduce_scatter_body(a):
    return lax.psum_scatter(a, "x", scatter_dimension=a.ndim - 1, tiled=True)


def all_to_all_body(a):
    return lax.all_to_all(a, "x", split_axis=1, concat_axis=0, tiled=True)


from pint import UnitRegistry

ureg = UnitRegistry()
all_to_all_on_ring = (2 * 4096 * 8192 * ureg.byte / (4 * 1.8e11 * ureg.byte / ureg.second)).to("microsecond")
