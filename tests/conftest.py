"""Eight simulated devices for every test, asked for before anything imports JAX."""

from __future__ import annotations

import os

import pytest

DEVICES = 8
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"


@pytest.fixture(scope="session")
def devices() -> int:
    """The number of devices, which is asked for above and asserted here: a flag that came too late is ignored."""
    import jax

    assert jax.device_count() == DEVICES
    return DEVICES
