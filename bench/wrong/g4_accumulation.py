import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from jax.sharding import reshard

from g4_accumulation import loss


def sums_on_devices(local, mesh, ws, xs):
    return jax.shard_map(local, mesh=mesh, in_specs=(P(), P(None, "dp")), out_specs=P(), check_vma=False)(ws, xs)


def plain_loop(ws, xs, *, mesh):
    """accumulate: accumulated_whole
    Row: reduces in the loop; the weights have no reduced type."""

    def add(total, x):
        return total + jax.grad(loss)(ws, x), None

    return jax.lax.scan(add, jnp.zeros_like(ws), xs)[0]


def psum_in_the_scan(ws, xs, *, mesh):
    """accumulate: accumulated_psum_in_the_loop
    Row: reduces in the loop, by shard_map."""

    def local(ws, xs):
        one = lambda g, x: (g + jax.lax.psum(jax.grad(loss)(ws, x), "dp"), None)  # noqa: E731
        return jax.lax.scan(one, jnp.zeros_like(ws), xs)[0]

    return sums_on_devices(local, mesh, ws, xs)


def typed_shard_map(ws, xs, *, mesh):
    """accumulate: accumulated_whole
    Row: reduces in the loop: with types on, JAX sums each gradient of weights that do not vary."""

    def local(ws, xs):
        total = jnp.zeros_like(ws)
        for x in xs:
            total += jax.grad(loss)(ws, x)
        return total

    return jax.shard_map(local, mesh=mesh, in_specs=(P(), P(None, "dp")), out_specs=P())(ws, xs)


def each_sum_made_whole(ws, xs, *, mesh):
    """accumulate: accumulated_constrained
    Row: re-constrains: each gradient is resharded to whole in the loop, so the unreduced type is lost."""
    weights = reshard(ws, P(reduced=frozenset({"dp"})))
    total = jnp.zeros_like(ws)
    for x in xs:
        total = total + reshard(jax.grad(loss)(weights, x), P())
    return total


def constrained_in_the_scan(ws, xs, *, mesh):
    """accumulate: accumulated_constrained
    Row: re-constrains the gradient to whole in a scan."""
    weights = reshard(ws, P(reduced=frozenset({"dp"})))

    def add(total, x):
        return total + reshard(jax.grad(loss)(weights, x), P(None, None, None)), None

    return jax.lax.scan(add, jnp.zeros_like(ws), xs)[0]


def sum_fed_back(ws, xs, *, mesh):
    """accumulate: accumulated_sum_fed_back
    Row: earlier micro-batches are reduced again: the sum of all is reduced in each round."""

    def local(ws, xs):
        def add(total, x):
            return jax.lax.psum(total + jax.grad(loss)(ws, x), "dp"), None

        return jax.lax.scan(add, jnp.zeros_like(ws), xs)[0]

    return sums_on_devices(local, mesh, ws, xs)


def sum_fed_back_unrolled(ws, xs, *, mesh):
    """accumulate: accumulated_sum_fed_back
    Row: earlier micro-batches are reduced again, in a Python loop."""

    def local(ws, xs):
        total = 0
        for x in xs:
            total = jax.lax.psum(total + jax.grad(loss)(ws, x), "dp")
        return total

    return sums_on_devices(local, mesh, ws, xs)


def first_synced_only(ws, xs, *, mesh):
    """accumulate: accumulated_first_only
    Row: syncs on the first micro-batch, not on the last."""

    def local(ws, xs):
        total = jax.lax.psum(jax.grad(loss)(ws, xs[0]), "dp")
        for x in xs[1:]:
            total += jax.grad(loss)(ws, x)
        return total

    return sums_on_devices(local, mesh, ws, xs)


def last_synced_only(ws, xs, *, mesh):
    """accumulate: accumulated_last_reduced
    Row: syncs the last micro-batch's gradient, not the sum of all."""

    def local(ws, xs):
        total = jnp.zeros_like(ws)
        for x in xs[:-1]:
            total += jax.grad(loss)(ws, x)
        return total + jax.lax.psum(jax.grad(loss)(ws, xs[-1]), "dp")

    return sums_on_devices(local, mesh, ws, xs)


def never_synced(ws, xs, *, mesh):
    """accumulate: accumulated_never_summed
    Row: no sync: each device keeps the sum of its own rows."""

    def local(ws, xs):
        return jax.lax.scan(lambda g, x: (g + jax.grad(loss)(ws, x), None), jnp.zeros_like(ws), xs)[0]

    return sums_on_devices(local, mesh, ws, xs)
