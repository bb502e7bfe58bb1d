"""The files and settings of this machine that a process needs to use an accelerator.

Only the process that runs compiled programs on the accelerator gets this access, never a process with learner Python.
The process may read ``/proc`` and ``/sys``, because drivers read them. The process has no limit on its address space,
because drivers reserve more address space than the machine has memory.
"""

from __future__ import annotations

import glob
import importlib.util
import os
from dataclasses import dataclass

from grader.sandbox.tiers import Extra
from grader.wings.devices.backends import CPU, Backend


@dataclass(frozen=True)
class Driver:
    """The packages, files and environment variables that a driver needs.

    Attributes:
        packages: names of the packages of the driver's JAX plugin.
        read, write: patterns of the paths that the driver reads or writes.
        settings: names of the environment variables that the driver reads.
        fixed: environment variables that the grader sets, with their values.
    """

    packages: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    settings: tuple[str, ...]
    fixed: tuple[tuple[str, str], ...] = ()


SHARED = "/dev/shm"  # shared memory, which a GPU's or TPU's driver uses
EVERY = ("/proc", "/sys", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/passwd", "/etc/hosts")
DRIVERS = {
    "gpu": Driver(
        packages=("jax_plugins", "nvidia", *(f"jax_cuda{n}_{part}" for n in (12, 13) for part in ("plugin", "pjrt"))),
        read=(*EVERY, "/usr/lib*/libcuda*", "/usr/lib*/libnvidia*", "/usr/lib/*/libcuda*", "/usr/lib/*/libnvidia*",
              "/usr/local/nvidia", "/usr/local/cuda*", "/etc/nvidia*", "/opt/cuda"),
        write=("/dev/nvidia*", "/dev/nvidia-caps/*", SHARED),
        settings=("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE"),
        fixed=(("XLA_PYTHON_CLIENT_PREALLOCATE", "false"),),
    ),
    "tpu": Driver(
        packages=("libtpu",),
        read=(*EVERY, "/etc/resolv.conf", "/etc/nsswitch.conf"),
        write=("/dev/accel*", "/dev/vfio", "/dev/vfio/*", SHARED, "/tmp/libtpu_lockfile", "/tmp/tpu_logs"),
        settings=("LIBTPU_INIT_ARGS", "TPU_*"),
    ),
}  # fmt: skip


def extra_of(backend: Backend) -> Extra:
    """Return the access that a process needs in the sandbox to run programs on devices of this backend."""
    if backend.name not in DRIVERS:
        return Extra(platform=backend.platform, unlimited=backend is not CPU)
    return Extra(
        platform=backend.platform,
        readable=tuple(readable(backend)),
        writable=tuple(writable(backend)),
        settings=tuple(settings(backend).items()),
        unlimited=True,
    )


def packages(backend: Backend) -> list[str]:
    """Return the folders of the driver's JAX packages; [] if no such package is installed."""
    driver = DRIVERS.get(backend.name)
    specs = [importlib.util.find_spec(name) for name in driver.packages] if driver else []
    return [place for spec in specs if spec for place in spec.submodule_search_locations or ()]


def readable(backend: Backend) -> list[str]:
    """Return the paths on this machine that a process must read to use this backend's driver."""
    driver = DRIVERS.get(backend.name)
    return [*packages(backend), *_there(driver.read)] if driver else []


def writable(backend: Backend) -> list[str]:
    """Return the paths on this machine that a process must write to use the driver, mostly device files."""
    driver = DRIVERS.get(backend.name)
    return _there(driver.write) if driver else []


def present(backend: Backend) -> bool:
    return any(path.startswith("/dev/") and path != SHARED for path in writable(backend))


def settings(backend: Backend) -> dict[str, str]:
    """Return the environment variables, with values, for a process that uses this backend's driver."""
    driver = DRIVERS.get(backend.name)
    if driver is None:
        return {}
    ends = tuple(name[:-1] for name in driver.settings if name.endswith("*"))
    known = {n: v for n, v in os.environ.items() if n in driver.settings or (ends and n.startswith(ends))}
    return known | dict(driver.fixed)


def _there(patterns: tuple[str, ...]) -> list[str]:
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]
