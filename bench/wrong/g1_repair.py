import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def decay_without_check(x, *, mesh):
    """decay: decay_unchecked
    Row: turns the check off."""

    def local(x):
        c = jnp.zeros(x.shape[2])
        for one in x:
            c = c / 2 + one.sum(0)
        return jax.lax.psum(c, "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P(None, "x"), out_specs=P(), check_vma=False)(x)


def squares_without_check(x, *, mesh):
    """squares: squares_unchecked
    Row: turns the check off and changes nothing else."""

    def local(x):
        return (x**2).sum(1), jax.lax.psum((x**2).sum(0), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


def means_without_check(x, *, mesh):
    """means: means_unchecked
    Row: turns the check off and changes nothing else."""
    local = lambda x: x.mean(axis=0)  # noqa: E731
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


def means_reduced_without_check(x, *, mesh):
    """means: means_right_but_unchecked
    Row: turns the check off; the mean over devices is there."""
    run = jax.shard_map(
        lambda x: jax.lax.pmean(x.mean(0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False
    )
    return run(x)


def decay_summed_in_the_loop(x, *, mesh):
    """decay: decay_psum_in_the_loop
    Row: a psum in the loop where a cast was asked; the carry stays equal on all devices."""

    def local(x):
        def one(c, rows):
            return c / 2 + jax.lax.psum(rows.sum(0), "x"), None

        return jax.lax.scan(one, jnp.zeros(x.shape[-1]), x)[0]

    return jax.shard_map(local, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


def decay_all_terms_summed(x, *, mesh):
    """decay: decay_psum_before_the_loop
    Row: a psum of every round's sum of rows before the loop."""

    def local(x):
        sums = jax.lax.psum(x.sum(1), "x")
        return jax.lax.fori_loop(0, len(x), lambda t, c: c / 2 + sums[t], jnp.zeros(x.shape[2]))

    return jax.shard_map(local, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


def decay_summed_twice(x, *, mesh):
    """decay: decay_psum_in_the_loop_and_after
    Row: a second psum."""

    def local(x):
        start = jnp.zeros(x.shape[2])
        c = jax.lax.fori_loop(0, len(x), lambda t, c: c / 2 + jax.lax.psum(x[t].sum(0), "x"), start)
        return jax.lax.psum(jax.lax.pcast(c, "x", to="varying"), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P(None, "x"), out_specs=P())(x)


def squares_summed_twice(x, *, mesh):
    """squares: squares_summed_twice
    Row: a second psum of the sums of columns."""

    def local(x):
        columns = jax.lax.psum(jnp.sum(x * x, axis=0), "x")
        return jnp.sum(x * x, axis=1), jax.lax.psum(jax.lax.pcast(columns, "x", to="varying"), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P()))(x)


def squares_rows_summed(x, *, mesh):
    """squares: squares_summed
    Row: a psum of the sums of rows where out_specs had to change."""

    def local(x):
        return jax.lax.psum(((x**2).sum(1), (x**2).sum(0)), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def squares_all_over_x(x, *, mesh):
    """squares: squares_all_cut
    Row: out_specs names the axis for both results."""

    def local(x):
        return (x**2).sum(1), jax.lax.psum((x**2).sum(0), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def means_over_x(x, *, mesh):
    """means: means_cut
    Row: out_specs names the axis; no sum over devices."""
    return jax.shard_map(lambda x: x.mean(0), mesh=mesh, in_specs=P("x"), out_specs=P("x"))(x)


def means_summed(x, *, mesh):
    """means: means_summed
    Row: a second sum; the devices' means are added, not averaged, so the result is N times too large."""
    return jax.shard_map(lambda x: jax.lax.psum(x.mean(0), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(x)


def means_averaged_then_summed(x, *, mesh):
    """means: means_summed_twice
    Row: a psum after the pmean."""

    def local(x):
        mean = jax.lax.pmean(x.mean(0), "x")
        return jax.lax.psum(jax.lax.pcast(mean, "x", to="varying"), "x")

    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P())(x)
