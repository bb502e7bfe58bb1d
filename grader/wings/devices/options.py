"""The options ``--backend`` and ``--processes``, and the devices' lines in ``doctor``."""

from __future__ import annotations

import os

from grader.cli.console import tell
from grader.cli.machine import MachineCheck
from grader.cli.options import jax_problem
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.sandbox.limits import Limits
from grader.wings.devices import backends
from grader.wings.devices.backends import BACKENDS, CPU, Backend, backend_of
from grader.wings.devices.devices import NoDevices, RealDevices


def devices_at(name: str, processes: int, course: Course, tier: str, *, quiet: bool = False) -> RealDevices | None:
    """Return the requested devices, or None for simulated devices in one process. Raises CourseError."""
    backend = backend_of(name)
    if backend is CPU and processes == 1:
        return None
    if backend is not CPU and processes > 1:
        raise CourseError(f"--processes splits simulated devices: use it with --backend cpu, not {name}")
    if not hasattr(os, "fork"):
        raise CourseError("real devices need separate processes, and this system cannot fork")
    note = (lambda text: None) if quiet else (lambda text: tell("note", text))
    devices = RealDevices(backend, tier, course.config.limits, course.config.devices, processes, note)
    note(f"the values of results come from {devices.text}, all other facts from simulated devices")
    return devices


def doctor() -> list[MachineCheck]:
    """Return a line for each kind of accelerator; [] if JAX does not work on this machine."""
    return [] if jax_problem() else [accelerator(backend) for backend in BACKENDS.values() if backend is not CPU]


def accelerator(backend: Backend) -> MachineCheck:
    """Check that programs can run on devices of this backend. JAX starts slowly, so first look for a driver."""
    name = f"backend {backend.name}"
    if not backends.packages(backend):
        return MachineCheck(
            name, False, f"JAX has no driver for this device; on a machine with the device, run: {backend.install}"
        )
    if not backends.present(backend):
        return MachineCheck(
            name, False, "JAX's driver for this device is installed, but this machine has no such device"
        )
    try:
        devices = RealDevices(backend, "none", Limits(), 1)
    except NoDevices as error:
        return MachineCheck(name, False, str(error))
    devices.close()
    return MachineCheck(name, True, f"{devices.count} x {devices.kind}; to use them: --backend {backend.name}")
