"""doctor: one line for what is missing."""

from __future__ import annotations

from grader.doctor import count_devices, jax_problem


def test_a_jax_that_is_too_old_gets_the_command_that_mends_it() -> None:
    assert jax_problem("0.4.38") == "JAX 0.4.38 is too old; pip install 'jax>=0.10.0'"
    assert jax_problem("0.10.2") == ""


def test_devices_are_counted_in_a_worker() -> None:
    line = count_devices(3)
    assert line.ok and line.told == "3 simulated devices"
