"""Where programs run: simulated devices, or those of an accelerator; what is known of their arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from grader.wire.text import closest


class UnknownBackend(ValueError):
    """No such backend; the message names those that there are."""


@dataclass(frozen=True)
class Backend:
    """A kind of devices.

    Attributes:
        name: what ``--backend`` calls it.
        platform: what JAX calls it.
        factors: the epsilon of what factors of a float32 matrix product are rounded to by default; 0 where they are
            not. What they are rounded to is summed in float32.
        install: what makes JAX see such devices.
    """

    name: str
    platform: str
    factors: float
    install: str = ""


# TPU: bfloat16, 8 significant bits (jax.lax.Precision: "DEFAULT ... bfloat16 on TPU"). GPU: TF32, 11 significant bits,
# on NVIDIA's from Ampere on; older ones round nothing, and are judged no more strictly.
BACKENDS = {
    "cpu": Backend("cpu", "cpu", 0.0),
    "gpu": Backend("gpu", "cuda", 2.0**-10, "pip install 'jax[cuda13]'"),
    "tpu": Backend("tpu", "tpu", 2.0**-7, "pip install 'jax[tpu]'"),
}
CPU = BACKENDS["cpu"]


def backend_of(name: str) -> Backend:
    """The backend of this name. Raises UnknownBackend."""
    if name not in BACKENDS:
        near = closest(name.lower(), BACKENDS, 0.5)
        meant = f"; did you mean {near}?" if near else ""
        raise UnknownBackend(
            f"no backend {name!r}; there are {', '.join(BACKENDS)}, and tpu:SLICE, such as tpu:v5e:2x4{meant}"
        )
    return BACKENDS[name]
