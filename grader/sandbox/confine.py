"""Restrictions on a process before learner code runs in it: files, descriptors, imports, resources."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib.machinery
import importlib.util
import os
import pkgutil
import resource
import sys
import sysconfig
from collections.abc import Sequence

from grader.sandbox.calls import install_filter
from grader.wire.limits import MAX_OPEN
from grader.wire.messages import TraceRequest

PR_SET_CHILD_SUBREAPER = 36
PR_SET_DUMPABLE = 4


def give_up(about: TraceRequest) -> None:
    """Confine this process permanently. ``about``: the header of the grader's request."""
    limits, scratch = about["limits"], about["scratch"]
    settle_imports(about["packages"])
    os.chdir(scratch)
    os.environ.clear()
    os.environ.update(about["env"] | {"HOME": scratch, "TMPDIR": scratch})
    cap(resource.RLIMIT_CORE, 0)
    cap(resource.RLIMIT_FSIZE, int(limits["file_mib"]) << 20)
    cap(resource.RLIMIT_AS, int(limits["memory_mib"]) << 20)
    cap(resource.RLIMIT_CPU, int(limits["total_seconds"]) + 5, 5)
    cap(resource.RLIMIT_NOFILE, MAX_OPEN)
    if about["tier"] == "sandlock":
        landlock(["/"])
    if about["tier"] != "none":
        install_filter()


class Packages:
    """An import finder for the installed packages that learners may import."""

    def __init__(self, places: dict[str, str]) -> None:
        self.places = places

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        place = self.places.get(name)
        if place is None:
            return None
        if os.path.isdir(place):
            init = os.path.join(place, "__init__.py")
            return importlib.util.spec_from_file_location(name, init, submodule_search_locations=[place])
        return importlib.util.spec_from_file_location(name, place)


def settle_imports(packages: dict[str, str]) -> None:
    """Make only the standard library and the packages ``packages`` importable, in every kind of sandbox.

    This function makes Python's import finder list the standard library's folder now, and keep the list. A process in a
    sandlock sandbox cannot list this folder later, because the folder may contain packages that are not allowed.
    """
    library = sysconfig.get_path("stdlib")
    sys.path[:] = [library, os.path.join(library, "lib-dynload")]
    for path in sys.path:
        finder = pkgutil.get_importer(path)
        if isinstance(finder, importlib.machinery.FileFinder):
            finder.find_spec("antigravity")  # looking up any name makes the finder list the folder
            finder.invalidate_caches = lambda: None
    sys.meta_path.append(Packages(packages))  # type: ignore[arg-type]


def landlock(readable: Sequence[str]) -> None:
    """Confine this process by a Landlock domain. The restrictions of earlier domains remain.

    Inside the domain, a process can read only the paths ``readable`` and write only to the current folder and
    /dev/null. It cannot signal processes outside the domain.
    """
    from sandlock import Sandbox, confine

    confine(Sandbox(fs_readable=readable, fs_writable=[os.getcwd(), "/dev/null"]))


def close_all_but(inlet: int, outlet: int) -> tuple[int, int]:
    """Close all files but two pipes, open /dev/null as descriptors 0 to 2, and return the pipes' new descriptors."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):  # do this before descriptors 10 and 11 are overwritten, because ``null`` may be 10 or 11
        os.dup2(null, fd)
    inlet, outlet = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (inlet, outlet))
    os.dup2(inlet, 10)
    os.dup2(outlet, 11)
    os.closerange(3, 10)
    os.closerange(12, 65536)
    return 10, 11


def cap(what: int, limit: int, more: int = 0) -> None:
    with contextlib.suppress(ValueError, OSError):  # raised if the hard limit is already lower
        resource.setrlimit(what, (limit, limit + more))


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
