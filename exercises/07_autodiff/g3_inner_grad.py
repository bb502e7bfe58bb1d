"""# G3 A gradient inside shard_map

Data parallelism in one function: w is the same on all devices, each has rows of its own, and `jax.grad` is taken
*inside* the per-device function. What comes out depends on what JAX knows about w:

| | type of w | `jax.grad` of a device's loss with respect to w |
|---|---|---|
| `check_vma=False` | nothing is known | the gradient of the device's own loss |
| `check_vma=True` | the same on all devices | already **summed** over the devices |
| `check_vma=True`, w cast to varying | varies | the gradient of the device's own loss |

The second row is no favour but a law: where w meets what varies it is cast, and the transpose of that cast is a psum.

**Task.** The gradient of the mean loss over all rows, whole on every device. Write it three times: for `check_vma=False`,
for `check_vma=True`, and once so that it is right in both modes. `loss`, which is given, is a mean over the rows it gets.

**Budget.** The bytes of one all-reduce of a gradient, and of two numbers beside it at most.

```
           x0      x1      x2      x3       rows of their own
            |       |       |       |
            1       2       3       6       own gradients    VMA off: here
            +-------+---+---+-------+
                       12                   their sum        VMA on: here
                        |
                        3                   what is asked
```

**Small case.** float32[6, 5] on x=4: one all-reduce of 120 bytes, of which each device sends 2 · 3/4 · 120 = 180. If the
four own gradients of an element are 1, 2, 3 and 6, its gradient is 3.

**In real systems**: both modes are in use; code that moves from one to the other without a second look is N times off
or trains every device on its own rows.

**Read on.** The JAX documentation on `shard_map`, "Tracking how values vary over manual mesh axes".

Check your work: shardlings check g3_inner_grad
For all exercises of this module: README.md, or shardlings show 07_autodiff
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def loss(w, rows, targets):
    """The mean squared error of tanh(rows @ w), over the rows that it gets."""
    return jnp.mean((jnp.tanh(rows @ w) - targets) ** 2)


def grad_vma_off(w, rows, targets):
    """The gradient of the mean loss over all rows, with check_vma=False.

    Args: w float32[D, K], whole; one device's rows float32[B/x, D] and targets float32[B/x, K].
    Returns: float32[D, K], the same on all devices.
    """
    # TODO: write this function
    raise NotImplementedError("grad_vma_off")


def grad_vma_on(w, rows, targets):
    """The same, with check_vma=True."""
    # TODO: write this function
    raise NotImplementedError("grad_vma_on")


def grad_in_both(w, rows, targets):
    """The same, right with check_vma=True and with check_vma=False."""
    # TODO: write this function
    raise NotImplementedError("grad_in_both")


# Question inner_grad_bytes [MB]
# `w` is float32[6144, 20480], the same on all 32 devices of axis x, and `check_vma=True`. The
# loss uses it in one place, `rows @ w.astype(jnp.bfloat16)`, with bfloat16 rows that vary over x.
# Nobody wrote a cast to varying or a psum. How many MB does each device send for the gradient of
# w?
#
# Answer in MB (a bare number), or with a unit.
# Model: an all-reduce of V bytes sends 2 (X - 1) / X V from each device; 1 MB is 10^6 bytes.
inner_grad_bytes = None  # TODO: your answer
