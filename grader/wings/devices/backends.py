"""The kinds of devices that run programs, simulated or real, and facts about their arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from grader.wire.text import closest


class UnknownBackend(ValueError):
    """No backend has the name in ``--backend``. The message lists the backends."""


@dataclass(frozen=True)
class Backend:
    """A kind of devices.

    Attributes:
        name: the backend's name in ``--backend``.
        platform: the backend's name in JAX.
        factors: the devices may by default round the operands of a float32 matmul to a narrower dtype. ``factors`` is
            the machine epsilon of this dtype; 0 if the devices do not round. The devices sum in float32.
        install: the command that installs the packages with which JAX finds these devices.
    """

    name: str
    platform: str
    factors: float
    install: str = ""


# TPUs round operands to bfloat16, with 8 significant bits (jax.lax.Precision: "DEFAULT ... bfloat16 on TPU"). NVIDIA
# GPUs since Ampere round to TF32, with 11 significant bits. Older GPUs do not round, but have the epsilon of TF32 here.
BACKENDS = {
    "cpu": Backend("cpu", "cpu", 0.0),
    "gpu": Backend("gpu", "cuda", 2.0**-10, "pip install 'jax[cuda13]'"),
    "tpu": Backend("tpu", "tpu", 2.0**-7, "pip install 'jax[tpu]'"),
}
CPU = BACKENDS["cpu"]


def backend_of(name: str) -> Backend:
    """Return the backend of this name. Raises UnknownBackend."""
    if name not in BACKENDS:
        near = closest(name.lower(), BACKENDS, 0.5)
        meant = f"; did you mean {near}?" if near else ""
        raise UnknownBackend(
            f"no backend {name!r}; there are {', '.join(BACKENDS)}, and tpu:SLICE, such as tpu:v5e:2x4{meant}"
        )
    return BACKENDS[name]
