"""The process that runs programs gets access to an accelerator's driver, and no other process does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from grader.sandbox.limits import Limits
from grader.sandbox.tiers import TIERS, available, command, environment
from grader.sandbox.worker import Worker
from grader.wings.devices import backends as drivers
from grader.wings.devices import options
from grader.wings.devices.backends import BACKENDS, CPU, Backend

GPU = BACKENDS["gpu"]
CONFINED = [tier for tier in TIERS[:2] if not available(tier)]


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a file that takes the place of a device."""
    place = tmp_path / "nvidia0"
    place.touch()
    monkeypatch.setitem(drivers.DRIVERS, "gpu", replace(drivers.DRIVERS["gpu"], write=(f"{tmp_path}/nvidia*",)))
    return str(place)


@pytest.mark.parametrize("tier", CONFINED)
def test_only_the_process_that_runs_programs_gets_the_device(tier: str, device: str) -> None:
    def given(role: str, backend: Backend) -> bool:
        made = command(tier, role, "/scratch", 0, drivers.extra_of(backend))
        return device in " ".join(made).replace(":", " ").split()

    assert given("run", GPU)
    assert not given("run", CPU) and not given("trace", CPU)
    with pytest.raises(ValueError, match="learner Python gets no extra access"):
        given("trace", GPU)


def test_settings_that_the_driver_reads_are_handed_on_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_VISIBLE_DEVICES", "LIBTPU_INIT_ARGS", "TPU_WORKER_ID", "SECRET", "PYTHONPATH"):
        monkeypatch.setenv(name, "7")
    usual = environment(8).keys()
    assert environment(8, extra=drivers.extra_of(GPU)).keys() - usual == {
        "CUDA_VISIBLE_DEVICES",
        "XLA_PYTHON_CLIENT_PREALLOCATE",
    } | (
        environment(8, extra=drivers.extra_of(GPU)).keys()
        & {"LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE"}
    )
    assert environment(8, extra=drivers.extra_of(BACKENDS["tpu"])).keys() - usual >= {
        "LIBTPU_INIT_ARGS",
        "TPU_WORKER_ID",
    }
    assert not {"CUDA_VISIBLE_DEVICES", "TPU_WORKER_ID", "SECRET"} & usual


@pytest.mark.parametrize("tier", CONFINED)
def test_a_sandbox_starts_with_access_to_the_drivers_files(tier: str, device: str) -> None:
    """The test sets JAX's platform to "cpu" in place of the accelerator's platform."""
    with Worker("run", tier, 2, Limits(), drivers.extra_of(replace(GPU, platform="cpu"))) as worker:
        assert worker.look() == {"platform": "cpu", "kind": "cpu", "count": 2}
        assert worker.runs_own_test()


def test_an_accelerator_is_optional_and_missing_parts_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The grader asks JAX only if the machine may have an accelerator. A TPU's library would search for minutes."""
    monkeypatch.setattr(drivers, "packages", lambda backend: [])
    line = options.accelerator(BACKENDS["gpu"])
    assert (line.ok, line.needed) == (False, False)
    assert (
        line.detail == "JAX has no driver for this device; on a machine with the device, run: pip install 'jax[cuda13]'"
    )
    monkeypatch.setattr(drivers, "packages", lambda backend: ["there"])
    monkeypatch.setattr(drivers, "writable", lambda backend: ["/dev/shm"])
    assert (
        options.accelerator(BACKENDS["tpu"]).detail
        == "JAX's driver for this device is installed, but this machine has no such device"
    )
