import jax
import jax.numpy as jnp

from g2_megatron import f, g, with_gradients


def through(block, *arguments):
    *inputs, dy = arguments
    y, back = jax.vjp(block, *inputs)
    return y, *back(dy)


@jax.custom_vjp
def added(y):
    return jax.lax.psum(y, "tp")


added.defvjp(lambda y: (jax.lax.psum(y, "tp"), ()), lambda _, dy: (dy,))


@jax.custom_vjp
def spread(x):
    return x


spread.defvjp(lambda x: (x, ()), lambda _, dx: (jax.lax.psum(dx, "tp"),))


def no_f(x, w_in, w_out, dy):
    """block_by_hand: block_without_f
    Row: f is missing."""
    return through(lambda x, u, d: added(jnp.tanh(x @ u) @ d), x, w_in, w_out, dy)


def f_is_x(x):
    """f: f_missing
    Row: f returns x and has no backward pass."""
    return x


def f_averages(x):
    """f: f_of_means
    Row: mean in f."""

    @jax.custom_vjp
    def same(x):
        return x

    same.defvjp(lambda x: (x, None), lambda _, dx: (jax.lax.pmean(dx, "tp"),))
    return same(x)


def f_divides(x):
    """f: f_of_means
    Row: mean in f, as a sum divided by the number of devices."""

    @jax.custom_vjp
    def ident(x):
        return x

    def back(saved, ct):
        return (jax.lax.psum(ct, "tp") / jax.lax.axis_size("tp"),)

    ident.defvjp(lambda x: (x, ()), back)
    return ident(x)


def g_is_psum(y):
    """g: g_is_psum
    Row: g reduces in the backward pass, too: JAX's psum without types."""
    return jax.lax.psum(y, "tp")


def g_reduces_backwards(y):
    """g: g_is_psum
    Row: g reduces in the backward pass, too, by hand."""

    @jax.custom_vjp
    def total(y):
        return jax.lax.psum(y, "tp")

    total.defvjp(lambda y: (total(y), None), lambda _, dy: (jax.lax.psum(dy, "tp"),))
    return total(y)


def plain_psum_in_block(x, w_in, w_out, dy):
    """block_by_hand: block_of_psum
    Row: g reduces in the backward pass, too; f is right."""
    return through(lambda x, u, d: jax.lax.psum(jnp.tanh(spread(x) @ u) @ d, "tp"), x, w_in, w_out, dy)


def neither_f_nor_g(x, w_in, w_out, dy):
    """block_by_hand: block_by_psum_alone
    Rows: f is missing, and g reduces in the backward pass."""
    return through(lambda x, u, d: jax.lax.psum(jnp.tanh(x @ u) @ d, "tp"), x, w_in, w_out, dy)


def dx_summed_again(x, w_in, w_out, dy):
    """block_by_hand: block_summed_again
    Row: f, plus a later sync of the same gradient."""
    y, dx, du, dd = through(lambda x, u, d: added(jnp.tanh(spread(x) @ u) @ d), x, w_in, w_out, dy)
    return y, jax.lax.psum(dx, "tp"), du, dd


def all_gradients_summed(x, w_in, w_out, dy):
    """block_by_hand: block_sums_all
    Row: f, plus a later sync of all gradients."""
    y, *grads = through(lambda x, u, d: added(jnp.tanh(spread(x) @ u) @ d), x, w_in, w_out, dy)
    return y, *jax.lax.psum(grads, "tp")


def weights_synced(x, w_in, w_out, dy):
    """block_by_hand: block_sums_weights
    Row: f, plus a later sync of the gradients of the weights."""
    y, dx, *grads = through(lambda x, u, d: added(jnp.tanh(spread(x) @ u) @ d), x, w_in, w_out, dy)
    return y, dx, *(jax.lax.psum(g, "tp") for g in grads)


def by_types_summed_again(x, w_in, w_out, dy):
    """block_by_types: types_summed_again
    Row: a later sync of dx, which JAX has summed."""

    def mlp(x, u, d):
        return jax.lax.psum(jnp.tanh(jax.lax.pcast(x, "tp", to="varying") @ u) @ d, "tp")

    y, dx, du, dd = through(mlp, x, w_in, w_out, dy)
    return y, jax.lax.psum(jax.lax.pcast(dx, "tp", to="varying"), "tp"), du, dd


def by_types_averaged(x, w_in, w_out, dy):
    """block_by_types: types_of_mean
    Row: mean: the outputs of the devices are averaged, not added."""

    def mlp(x, u, d):
        return jax.lax.pmean(jnp.tanh(jax.lax.pcast(x, "tp", to="varying") @ u) @ d, "tp")

    return through(mlp, x, w_in, w_out, dy)


def by_types_cast_outside(x, w_in, w_out, dy):
    """block_by_types: types_cast_outside
    Row: f is missing: x is cast before the vjp, so nothing adds the parts of its gradient."""
    y, dx, du, dd = through(
        lambda x, u, d: jax.lax.psum(jnp.tanh(x @ u) @ d, "tp"), jax.lax.pcast(x, "tp", to="varying"), w_in, w_out, dy
    )
    return y, dx, du, dd


def g_with_a_mean(y):
    """g: g_of_means"""

    @jax.custom_vjp
    def mean(y):
        return jax.lax.psum(y, "tp") / jax.lax.axis_size("tp")

    mean.defvjp(lambda y: (mean(y), None), lambda _, d: (d,))
    return mean(y)


def f_and_g_swapped(x, w_in, w_out, dy):
    """block_by_hand: block_with_f_and_g_swapped"""
    return with_gradients(lambda x, a, b: f(jnp.tanh(g(x) @ a) @ b), x, w_in, w_out, dy)


def f_on_the_hidden_layer(x, w_in, w_out, dy):
    """block_by_hand: block_with_f_inside"""
    return with_gradients(lambda x, a, b: g(f(jnp.tanh(f(x) @ a)) @ b), x, w_in, w_out, dy)
