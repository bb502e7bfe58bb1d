"""The options ``--backend`` and ``--processes``: devices or a compiler in addition to the simulated devices."""

from __future__ import annotations

from grader import wing
from grader.batch.backends import Beside, Devices
from grader.course.config import CourseError
from grader.course.loading import Course


def beside_at(
    name: str, processes: int, course: Course, tier: str, *, quiet: bool = False, remember: bool = True
) -> Beside:
    """Return the devices or the compiler that the two options request in addition to the simulated devices.

    Raises CourseError, WingError.

    Args:
        quiet: True to print errors only.
        remember: True to reuse earlier compilations.
    """
    if name.startswith("tpu:"):
        return Beside(compiler=wing.needed("chip", f"--backend {name}")(name, processes, course, tier, remember))
    return Beside(devices=devices_at(name, processes, course, tier, quiet=quiet))


def devices_at(name: str, processes: int, course: Course, tier: str, *, quiet: bool = False) -> Devices | None:
    """Return the devices that the options request; None if they request only simulated devices in one process.

    Raises CourseError, WingError.
    """
    if (name, processes) == ("cpu", 1):
        return None
    if name.startswith("tpu:"):
        raise CourseError(
            f"this command cannot use --backend {name}; to see how the slice's compiler schedules a function: "
            f"shardlings chip NAME --on {name[4:]}"
        )
    option = f"--backend {name}" if processes == 1 else f"--processes {processes}"
    return wing.needed("devices", option)(name, processes, course, tier, quiet=quiet)
