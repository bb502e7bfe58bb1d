"""The kinds of devices that run programs, simulated or real, and what a process needs to use them.

Only the process that runs compiled programs on an accelerator gets access to the accelerator's files and settings,
never a process with learner Python. The process may read ``/proc`` and ``/sys``, because drivers read them. The process
has no limit on its address space, because drivers reserve more address space than the machine has memory.
"""

from __future__ import annotations

import glob
import importlib.util
import os
from dataclasses import dataclass

from grader.course.config import CourseError
from grader.sandbox.tiers import Extra
from grader.wire.text import closest


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
    """Return the backend of this name. Raises CourseError, which lists the backends."""
    if name not in BACKENDS:
        near = closest(name.lower(), BACKENDS, 0.5)
        meant = f"; did you mean {near}?" if near else ""
        raise CourseError(
            f"no backend {name!r}; there are {', '.join(BACKENDS)}, and tpu:SLICE, such as tpu:v5e:2x4{meant}"
        )
    return BACKENDS[name]


# -- the files and settings that a driver needs ------------------------------------------------


@dataclass(frozen=True)
class Driver:
    """The packages, files and environment variables that a driver needs.

    Attributes:
        packages: names of the packages of the driver's JAX plugin.
        read, write: patterns of the paths that the driver reads or writes.
        settings: names of the environment variables that the driver reads.
        fixed: environment variables that the grader sets, with their values.
    """

    packages: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
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
    driver = _driver(backend)
    ends = tuple(name[:-1] for name in driver.settings if name.endswith("*"))
    settings = {n: v for n, v in os.environ.items() if n in driver.settings or n.startswith(ends)}
    return Extra(
        platform=backend.platform,
        readable=(*packages(backend), *_there(driver.read)),
        writable=tuple(writable(backend)),
        settings=tuple((settings | dict(driver.fixed)).items()),
        unlimited=backend is not CPU,
    )


def _driver(backend: Backend) -> Driver:
    return DRIVERS.get(backend.name, Driver())


def packages(backend: Backend) -> list[str]:
    """Return the folders of the driver's JAX packages; [] if no such package is installed."""
    specs = [importlib.util.find_spec(name) for name in _driver(backend).packages]
    return [place for spec in specs if spec for place in spec.submodule_search_locations or ()]


def writable(backend: Backend) -> list[str]:
    """Return the paths on this machine that a process must write to use the driver, mostly device files."""
    return _there(_driver(backend).write)


def present(backend: Backend) -> bool:
    return any(path.startswith("/dev/") and path != SHARED for path in writable(backend))


def _there(patterns: tuple[str, ...]) -> list[str]:
    return [path for pattern in patterns for path in sorted(glob.glob(pattern))]
