"""# G3 A gradient inside shard_map

This is data parallelism in one function. Every device has all of w and its own rows, and calls `jax.grad` *inside* the
per-device function. The result depends on the type of w:

| mode | type of w | `jax.grad` of a device's loss |
|---|---|---|
| `check_vma=False` | unknown | gradient of the device's own loss |
| `check_vma=True` | equal on all devices | **sum** of the gradients of all devices' losses |
| `check_vma=True`, w cast to varying | varies | gradient of the device's own loss |

Row 2 follows from the types. JAX casts w where an operation combines w with rows that vary, and the transpose of that
cast is a psum.

```
           x0      x1      x2      x3       rows of their own
            |       |       |       |
            1       2       3       6       own gradients (check_vma=False)
            +-------+---+---+-------+
                       12                   their sum (check_vma=True)
                        |
                        3                   their mean: the task
```

**Write** the gradient of the mean loss over all rows, three times. `loss` is given. It returns the mean over the rows
that you pass.

| body | `check_vma` |
|---|---|
| `grad_vma_off` | False |
| `grad_vma_on` | True |
| `grad_in_both` | False and True: right in both modes |

| | shape on one device | layout |
|---|---|---|
| `w` | float32[D, K] | whole |
| `rows`, `targets` | float32[B/N, D], float32[B/N, K] | `P("x")` |
| returns: gradient of `w` | float32[D, K] | whole on every device |

**What is checked**, for each body

| check | rule, per device | small case |
|---|---|---|
| value | the gradient of the mean loss over all rows | 3, as in the picture |
| what is sent | only all-reduces, of at most DK + 2 numbers in all | 180 + 12 bytes |

**Symbols.** B rows in the batch, D inputs, K outputs, N (in the question X) devices along x.

**Small case.** w is float32[6, 5], 120 bytes. On x=4 an all-reduce of w sends 2 · 3/4 · 120 = 180 bytes. The budget
allows two more numbers: 12 more bytes sent.

## Going further

**In real systems.** Both modes are in use. If you move code unchanged from one mode to the other, its gradients are
wrong by a factor of N, or every device trains on its own rows.

**Read on.** The JAX documentation on `shard_map`, "Tracking how values vary over manual mesh axes".
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise

exercise = Exercise(meshes=[{"x": 4, "y": 2}, {"x": 3}], stars=2)


@exercise.given
def loss(w, rows, targets):
    """Return the mean squared error of tanh(rows @ w) over these rows."""
    return jnp.mean((jnp.tanh(rows @ w) - targets) ** 2)


@exercise.body(
    out_specs=P(),
    check_vma=False,
    hints=[
        "Which rows does a device's gradient depend on?",
        "Differentiate the loss of your own rows, and average the gradients afterwards: all devices have equally many rows.",
        "jax.lax.pmean(jax.grad(loss)(w, rows, targets), 'x')",
    ],
)
def grad_vma_off(w, rows, targets):
    """Return the gradient of the mean loss over all rows, with check_vma=False.

    Args: w float32[D, K], whole; one device's rows float32[B/N, D] and targets float32[B/N, K].
    Returns: float32[D, K], equal on all devices.
    """
    return jax.lax.pmean(jax.grad(loss)(w, rows, targets), "x")


@exercise.body(
    out_specs=P(),
    check_vma=True,
    hints=[
        "Look at the type of the gradient, jax.typeof(...): does it vary over x?",
        "JAX has summed the gradient over the devices. How do you get the mean of N gradients from their sum?",
        "jax.grad(loss)(w, rows, targets) / jax.lax.axis_size('x')",
    ],
)
def grad_vma_on(w, rows, targets):
    """Return the gradient that grad_vma_off returns, with check_vma=True."""
    return jax.grad(loss)(w, rows, targets) / jax.lax.axis_size("x")


@exercise.body(
    out_specs=P(),
    check_vma="both",
    hints=[
        "With which type of w do both modes give the same gradient?",
        "If you cast w to varying, both modes give each device its own gradient. With check_vma=False the cast does nothing.",
        "own = jax.grad(loss)(jax.lax.pcast(w, 'x', to='varying'), rows, targets), then the mean over devices.",
    ],
)
def grad_in_both(w, rows, targets):
    """Return the gradient that grad_vma_off returns, with check_vma=True and with check_vma=False."""
    return jax.lax.pmean(jax.grad(loss)(jax.lax.pcast(w, "x", to="varying"), rows, targets), "x")


@exercise.number(
    points=0.75,
    unit="MB",
    params={"D": [4096, 6144, 8192], "F": [14336, 20480], "X": [4, 8, 32]},
    model="each device sends 2 (X - 1) / X · V bytes in an all-reduce of V bytes; 1 MB is 10^6 bytes",
    hints=[
        "Which operation combines w with a varying array, and what is the dtype of w there?",
        "JAX casts to varying after the conversion, so the transpose of the cast is an all-reduce of bfloat16.",
        "bytes that a device sends = 2 * (X - 1) / X * (2 * D * F)",
    ],
)
def inner_grad_bytes(D, F, X):
    """`w` is float32[{{ D }}, {{ F }}], equal on all {{ X }} devices of axis x, and `check_vma=True`. The loss uses w in one place,
    `rows @ w.astype(jnp.bfloat16)`, with bfloat16 rows that vary over x. The program has no cast to varying and no psum. How many
    MB does each device send for the gradient of w?"""
    return 2 * (X - 1) / X * 2 * D * F
