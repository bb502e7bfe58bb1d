import jax
import jax.numpy as jnp

from g3_inner_grad import loss


def grad_of_pmean_off(w, rows, targets):
    """grad_vma_off: off_of_mean_loss_alone"""
    return jax.grad(lambda w: jax.lax.pmean(loss(w, rows, targets), "x"))(w)


def nothing_reduced(w, rows, targets):
    """grad_vma_off: off_not_summed"""
    return jax.value_and_grad(loss)(w, rows, targets)[1]


def summed_by_hand(w, rows, targets):
    """grad_vma_off: off_summed"""
    made = jnp.tanh(rows @ w)
    own = rows.T @ (2 * (made - targets) / targets.size * (1 - made**2))
    return jax.lax.psum(own, "x")


def psum_of_the_loss(w, rows, targets):
    """grad_vma_off: off_of_summed_loss"""

    def whole(w):
        return jax.lax.psum(jnp.mean((jnp.tanh(rows @ w) - targets) ** 2), axis_name=("x",))

    return jax.grad(whole)(w)


def mean_then_divided(w, rows, targets):
    """grad_vma_off: off_divided_twice"""
    n = jax.lax.axis_size("x")
    return jax.lax.psum(jax.grad(loss)(w, rows, targets) / n, "x") / n


def summed_on(w, rows, targets):
    """grad_vma_on: on_not_divided"""
    return jax.grad(lambda w: jnp.mean((jnp.tanh(jnp.einsum("bd,dk->bk", rows, w)) - targets) ** 2))(w)


def psum_on(w, rows, targets):
    """grad_vma_on: none"""
    return jax.lax.psum(jax.grad(loss)(w, rows, targets), "x")


def pmean_on(w, rows, targets):
    """grad_vma_on: on_not_divided, on_summed_again"""
    return jax.lax.pmean(jax.grad(loss)(w, rows, targets), "x")


def pmean_twice_on(w, rows, targets):
    """grad_vma_on: on_divided_twice"""
    mean = jax.grad(lambda w: jax.lax.psum(loss(w, rows, targets), "x") / jax.lax.axis_size("x"))(w)
    return mean / jax.lax.axis_size("x")


def grad_of_pmean_both(w, rows, targets):
    """grad_in_both: both_of_mean_loss"""
    return jax.grad(lambda w: jax.lax.pmean(loss(w, rows, targets), "x"))(w)


def plain_both(w, rows, targets):
    """grad_in_both: both_as_on"""
    n = jax.lax.psum(1, "x")
    return jax.grad(lambda w: loss(w, rows, targets) / n)(w)


def pmean_both(w, rows, targets):
    """grad_in_both: both_as_off"""
    return jax.lax.pmean(jax.grad(loss)(w, rows, targets), "x")


def of_a_closure(w, rows, targets):
    """grad_in_both: both_of_a_constant"""
    cast = jax.lax.pcast(w, ("x",), to="varying")
    own = jax.grad(lambda w: jnp.mean((jnp.tanh(rows @ cast) - targets) ** 2))(w)
    return jax.lax.psum(own, "x") / jax.lax.axis_size("x")


def nothing_is_sent(D, F, X):
    """inner_grad_bytes: inner_grad_sends_nothing"""
    return 0


def gradient_of_own_rows(w, rows, targets):
    """grad_vma_off: off_not_summed"""
    return jax.grad(loss)(w, rows, targets)


def adds_mean_gradients(w, rows, targets):
    """grad_vma_off: off_summed"""
    return jax.lax.psum(jax.grad(loss)(w, rows, targets), axis_name="x")


def already_summed_but_not_averaged(w, rows, targets):
    """grad_vma_on: on_not_divided"""
    value, g = jax.value_and_grad(loss)(w, rows, targets)
    return g


def averages_the_summed_gradient(w, rows, targets):
    """grad_vma_on: on_summed_again, on_not_divided"""
    return jax.lax.pmean(jax.grad(loss)(w, rows, targets), "x")


def differentiates_the_mean_loss(w, rows, targets):
    """grad_in_both: both_of_mean_loss"""

    def total(w):
        return jax.lax.pmean(loss(w, rows, targets), "x")

    return jax.grad(total)(w)


def divides_in_both_modes(w, rows, targets):
    """grad_in_both: both_as_on"""
    return jax.grad(loss)(w, rows, targets) / jax.lax.axis_size("x")


def float32_on_the_wires(D, F, X):
    """inner_grad_bytes: inner_grad_in_float32"""
    return 2 * (X - 1) / X * D * F * 4


def as_a_reduce_scatter(D, F, X):
    """inner_grad_bytes: inner_grad_gathered"""
    return (X - 1) / X * D * F * 2


def nothing_without_a_psum(D, F, X):
    """inner_grad_bytes: inner_grad_sends_nothing"""
    return 0.0
