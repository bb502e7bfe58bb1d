"""Checks, alternatives and misconceptions of G3."""

import jax
import numpy as np
from jax.sharding import PartitionSpec as P

from g3_inner_grad import exercise, grad_in_both, grad_vma_off, grad_vma_on, inner_grad_bytes, loss
from grader.exercise import Scenario, normal
from grader.expect import expect_close, expect_only, expect_traffic, needed

ARRAYS = {"w": normal("D", "K"), "rows": normal("B", "D", spec=P("x")), "targets": normal("B", "K", spec=P("x"))}
DIMS = {"B": 60, "D": 6, "K": 5}
HIDDEN = {"B": 84, "D": 7, "K": 5}
off = exercise.call(grad_vma_off, **ARRAYS, dims=DIMS, hidden_dims=HIDDEN)
on = exercise.call(grad_vma_on, **ARRAYS, dims=DIMS, hidden_dims=HIDDEN)
both = exercise.call(grad_in_both, **ARRAYS, dims=DIMS, hidden_dims=HIDDEN)


@exercise.helper
def mean_gradient(w, rows, targets):
    """Return the gradient of the mean squared error of tanh(rows @ w) over all rows."""
    made = np.tanh(rows @ w)
    return rows.T @ (2 * (made - targets) / targets.size * (1 - made**2))


@exercise.check(off, points=0.5, public=True)
def off_value(seen):
    """grad_vma_off: the gradient of the mean loss over all rows"""
    expect_close(seen.out, mean_gradient(seen.w, seen.rows, seen.targets))


@exercise.check(on, points=0.5, public=True)
def on_value(seen):
    """grad_vma_on: the gradient of the mean loss over all rows"""
    expect_close(seen.out, mean_gradient(seen.w, seen.rows, seen.targets))


@exercise.check(both, points=0.5, public=True)
def both_value(seen):
    """grad_in_both: the gradient of the mean loss over all rows"""
    expect_close(seen.out, mean_gradient(seen.w, seen.rows, seen.targets))


def _one_all_reduce(seen):
    n = seen.mesh["x"]
    expect_only(seen, "all_reduce")
    number = 2 * (n - 1) / n * 4
    gradient = number * seen.w.size
    budget = needed(gradient, 2 * gradient, at=gradient + 2 * number)  # room for the loss and a count of rows
    expect_traffic(seen, at_most=budget)


@exercise.check(off, points=0.25, after=off_value)
def off_traffic(seen):
    """grad_vma_off: one all-reduce of the gradient"""
    _one_all_reduce(seen)


@exercise.check(on, points=0.25, after=on_value)
def on_traffic(seen):
    """grad_vma_on: one all-reduce of the gradient"""
    _one_all_reduce(seen)


@exercise.check(both, points=0.25, after=both_value)
def both_traffic(seen):
    """grad_in_both: one all-reduce of the gradient"""
    _one_all_reduce(seen)


@exercise.alternative(of=grad_vma_off)
def off_by_psum(w, rows, targets):
    """Use psum, then divide. Differentiate with value_and_grad."""
    _, own = jax.value_and_grad(loss)(w, rows, targets)
    return jax.lax.psum(own, "x") / jax.lax.axis_size("x")


@exercise.alternative(of=grad_vma_off)
def off_of_scaled_loss(w, rows, targets):
    """Divide the loss by the number of devices before differentiating it."""
    return jax.lax.psum(jax.grad(lambda w: loss(w, rows, targets) / jax.lax.axis_size("x"))(w), "x")


@exercise.alternative(of=grad_vma_off)
def off_of_mean_loss(w, rows, targets):
    """Differentiate the mean loss of all devices. Without types this loss also gives each device's own gradient."""
    return jax.lax.pmean(jax.grad(lambda w: jax.lax.pmean(loss(w, rows, targets), "x"))(w), "x")


@exercise.alternative(of=grad_vma_on)
def on_of_mean_loss(w, rows, targets):
    """Differentiate the loss of all rows. With check_vma=True, JAX gives the whole gradient of this loss."""
    return jax.grad(lambda w: jax.lax.pmean(loss(w, rows, targets), "x"))(w)


@exercise.alternative(of=grad_vma_on)
def on_by_cast(w, rows, targets):
    """Cast w to varying, then reduce by hand."""
    return jax.lax.pmean(jax.grad(loss)(jax.lax.pcast(w, "x", to="varying"), rows, targets), "x")


@exercise.alternative(of=grad_in_both)
def both_by_pvary(w, rows, targets):
    """Cast with pvary, the older name, then use psum and divide."""
    own = jax.grad(loss)(jax.lax.pvary(w, ("x",)), rows, targets)
    return jax.lax.psum(own, "x") / jax.lax.axis_size("x")


@exercise.alternative(of=grad_in_both)
def both_by_meeting(w, rows, targets):
    """Combine w with a varying value before differentiating."""
    own = jax.grad(loss)(w + 0 * rows[0, 0], rows, targets)
    return jax.lax.pmean(own, "x")


@exercise.misconception(of=grad_vma_off, fails=off_value, breaks="the gradient of the mean loss over all rows")
def off_not_summed(w, rows, targets):
    """Each device used only its own rows. With check_vma=False JAX does not add the gradients: reduce them yourself."""
    return jax.grad(loss)(w, rows, targets)


@exercise.misconception(of=grad_vma_off, fails=off_value, breaks="the gradient of the mean loss over all rows")
def off_summed(w, rows, targets):
    """You added the gradients of N means. The gradient of the mean loss over all rows is the mean of these gradients."""
    return jax.lax.psum(jax.grad(loss)(w, rows, targets), "x")


@exercise.misconception(of=grad_vma_off, fails=off_value, breaks="the gradient of the mean loss over all rows")
def off_of_summed_loss(w, rows, targets):
    """You differentiated a loss that was summed over the devices. With check_vma=False the backward pass of psum is a psum too. So you get N times your own gradient, without the other devices' gradients. Differentiate the local loss, then reduce."""
    return jax.grad(lambda w: jax.lax.psum(loss(w, rows, targets), "x"))(w)


@exercise.misconception(of=grad_vma_off, fails=off_value, breaks="the gradient of the mean loss over all rows")
def off_of_mean_loss_alone(w, rows, targets):
    """You returned the gradient of your own rows. With check_vma=False a pmean of the loss does not change this gradient, because the backward pass of pmean is a pmean of ones. Reduce the gradients themselves."""
    return jax.grad(lambda w: jax.lax.pmean(loss(w, rows, targets), "x"))(w)


@exercise.misconception(of=grad_vma_off, fails=off_value, breaks="the gradient of the mean loss over all rows")
def off_divided_twice(w, rows, targets):
    """You divided twice. pmean already divides by the number of devices."""
    return jax.lax.pmean(jax.grad(loss)(w, rows, targets), "x") / jax.lax.axis_size("x")


@exercise.misconception(of=grad_vma_off, fails=off_traffic, breaks="only all-reduces")
def off_gathered(w, rows, targets):
    """You gathered the rows, so every device computes everything. Reduce the gradients instead."""
    rows, targets = (jax.lax.all_gather(a, "x", tiled=True) for a in (rows, targets))
    return jax.grad(loss)(w, rows, targets)


@exercise.misconception(of=grad_vma_off, fails=off_traffic, breaks="of at most DK + 2 numbers in all")
def off_averaged_twice(w, rows, targets):
    """You averaged twice. After the first pmean all devices have equal gradients, and the second only sends them again."""
    return jax.lax.pmean(jax.lax.pmean(jax.grad(loss)(w, rows, targets), "x"), "x")


@exercise.misconception(of=grad_vma_on, fails=on_value, breaks="the gradient of the mean loss over all rows")
def on_summed_again(w, rows, targets):
    """You summed a gradient that JAX had already summed, so the result is N times too large. Look at the gradient's type: it does not vary over x."""
    return jax.lax.psum(jax.grad(loss)(w, rows, targets), "x") / jax.lax.axis_size("x")


@exercise.misconception(of=grad_vma_on, fails=on_value, breaks="the gradient of the mean loss over all rows")
def on_cast_never_reduced(w, rows, targets):
    """You cast w to varying and returned the gradient of the device's own loss, which varies over x. Take the mean of these gradients over the devices."""
    return jax.grad(loss)(jax.lax.pcast(w, "x", to="varying"), rows, targets)


@exercise.misconception(of=grad_vma_on, fails=on_value, breaks="the gradient of the mean loss over all rows")
def on_not_divided(w, rows, targets):
    """JAX gives you the sum of the N devices' gradients. The gradient of the mean loss over all rows is 1/N of this sum."""
    return jax.grad(loss)(w, rows, targets)


@exercise.misconception(of=grad_vma_on, fails=on_value, breaks="the gradient of the mean loss over all rows")
def on_divided_twice(w, rows, targets):
    """You divided twice. The loss is already a mean over all devices, and so is its gradient."""
    return jax.grad(lambda w: jax.lax.pmean(loss(w, rows, targets), "x"))(w) / jax.lax.axis_size("x")


@exercise.misconception(of=grad_vma_on, fails=on_traffic, breaks="of at most DK + 2 numbers in all")
def on_reduced_twice(w, rows, targets):
    """Your pmean changes no value. JAX has already summed the gradient, so it is equal on all devices. The pmean sends the gradient a second time."""
    return jax.lax.pmean(jax.grad(loss)(w, rows, targets) / jax.lax.axis_size("x"), "x")


@exercise.misconception(of=grad_in_both, fails=both_value, breaks="the gradient of the mean loss over all rows")
def both_as_on(w, rows, targets):
    """Your program is right with check_vma=True. With check_vma=False JAX does not sum the gradients: cast w to varying, and reduce the gradients yourself."""
    return jax.grad(loss)(w, rows, targets) / jax.lax.axis_size("x")


@exercise.misconception(of=grad_in_both, fails=both_value, breaks="the gradient of the mean loss over all rows")
def both_of_mean_loss(w, rows, targets):
    """You differentiated the mean loss of all devices. This is right with check_vma=True. With check_vma=False each device gets the gradient of its own rows. Cast w to varying, differentiate the local loss, and reduce the gradients yourself."""
    return jax.grad(lambda w: jax.lax.pmean(loss(w, rows, targets), "x"))(w)


@exercise.misconception(of=grad_in_both, fails=both_value, breaks="the gradient of the mean loss over all rows")
def both_as_off(w, rows, targets):
    """Your program is right with check_vma=False. With check_vma=True JAX has already summed the gradient of w: cast w to varying first."""
    return jax.lax.psum(jax.grad(loss)(w, rows, targets), "x") / jax.lax.axis_size("x")


@exercise.misconception(of=grad_in_both, fails=both_value, breaks="the gradient of the mean loss over all rows")
def both_of_a_constant(w, rows, targets):
    """Your gradient is 0, because the loss does not use the argument that you differentiate. Pass the cast w to jax.grad as the argument of the loss."""
    varying = jax.lax.pcast(w, "x", to="varying")
    return jax.lax.pmean(jax.grad(lambda w: loss(varying, rows, targets))(w), "x")


@exercise.misconception(of=grad_in_both, fails=both_traffic, breaks="of at most DK + 2 numbers in all")
def both_averaged_twice(w, rows, targets):
    """You averaged twice. After the first pmean all devices have equal gradients, and the second only sends them again."""
    own = jax.grad(loss)(jax.lax.pcast(w, "x", to="varying"), rows, targets)
    return jax.lax.pmean(jax.lax.pcast(jax.lax.pmean(own, "x"), "x", to="varying"), "x")


@exercise.misconception(of=inner_grad_bytes)
def inner_grad_in_float32(D, F, X):
    """You counted 4 bytes per number. JAX casts w to varying where w is combined with the rows, and there w is bfloat16. Cast w before the conversion if you want sums in float32."""
    return 2 * (X - 1) / X * 4 * D * F


@exercise.misconception(of=inner_grad_bytes)
def inner_grad_sends_nothing(D, F, X):
    """You counted only collectives that the program's code names. With check_vma=True JAX casts w to varying, and the transpose of this cast is a psum."""
    return 0.0


@exercise.misconception(of=inner_grad_bytes)
def inner_grad_gathered(D, F, X):
    """You counted one phase of the all-reduce. An all-reduce is a reduce-scatter and an all-gather, so a device sends 2 (X - 1) / X · V bytes."""
    return (X - 1) / X * 2 * D * F


@exercise.misconception(of=inner_grad_bytes)
def inner_grad_summed_again(D, F, X):
    """You counted a second psum after the psum that JAX adds. The second psum would make the gradient X times too large."""
    return 2 * (X - 1) / X * (2 + 4) * D * F


exercise.scenario(inner_grad_bytes, lambda D, F, X: Scenario(mesh={"x": X}, arrays=[((D, F), P(None, None))]))
