"""# B2 A convolution, and its gradients

A convolution is a product of Fourier transforms. The transform of a grid cut by rows ends cut by columns (B1), and the way back ends
cut by rows again. The product in the middle needs no communication if the filter is cut by columns, too.

```
    z, by rows -- fft2 --> by columns -- times h -- ifft2 --> by rows
```

**Write** `convolve(z, h, *, mesh)`: transform `z`, multiply by the filter `h`, and transform back. The grader takes gradients with `jax.vjp`.

| | shape | layout |
|---|---|---|
| `z` | complex64[I, J] | `P("x", None)` |
| `h` | complex64[I, J], the filter's transform | `P(None, "x")` |
| returns | complex64[I, J] | `P("x", None)` |

**What is checked**

| check | rule |
|---|---|
| value | equal to `jnp.fft.ifft2(jnp.fft.fft2(z) * h)` |
| gradients | equal to those of the unsharded function, of `z` and of `h` |
| communication | two all-to-alls over x in the forward pass, two in the backward pass, and no other collective |

**Symbols.** I: rows. J: columns. X: devices along x.

Check your work: shardlings check b2_convolve
Notes on all exercises of this module: see README.md, or run shardlings show 02_fourier
"""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def convolve(z, h, *, mesh):
    """Z with the filter H applied: the inverse transform of fft2(Z) * H.

    Args: z is complex64[I, J] sharded P('x', None), h is complex64[I, J] sharded P(None, 'x'); mesh has an axis 'x'.
    Returns: complex64[I, J] sharded P('x', None).
    """
    # TODO: write this function
    raise NotImplementedError("convolve")
