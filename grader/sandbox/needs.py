"""Which files Python and JAX need to read, on this machine: what learner code may read, and no more.

Whole prefixes hold too much: exchanges, courses and other people's packages lie below ``/usr``, ``/opt`` and
``sys.prefix`` as well.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

# What learners may import, and what that imports; where it is not installed, it is not.
PACKAGES = (
    "jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum", "einops",
    "pint", "flexcache", "flexparser", "platformdirs", "typing_extensions",
)  # fmt: skip
INSTALLED = ("site-packages", "dist-packages")  # folders that hold packages of anybody's, inside the standard library's
SYSTEM = (
    "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/usr/lib/locale",
    "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
    # What the processor can do, without which XLA has no kernels for some sums.
    "/proc/cpuinfo", "/sys/devices/system/cpu", "/sys/fs/cgroup",
)  # fmt: skip
# Loads libraries as Python would and tells which files that took, by the names under which they were looked for.
LOAD = """
import ctypes, sys
for path in sys.argv[1:]:
    try: ctypes.CDLL(path)
    except OSError: pass
class Object(ctypes.Structure): _fields_ = [("address", ctypes.c_size_t), ("name", ctypes.c_char_p)]
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Object), ctypes.c_size_t, ctypes.c_void_p)
names = []
ctypes.CDLL(None).dl_iterate_phdr(kind(lambda one, *_: names.append(one.contents.name) or 0), None)
print("\\n".join(name.decode() for name in names if name.startswith(b"/")))
"""


@cache
def packages() -> dict[str, str]:
    """Where each of PACKAGES lies: a folder, or a file; without importing any."""
    found = {}
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        where = list(spec.submodule_search_locations or [spec.origin]) if spec else []
        if where and where[0]:
            found[name] = str(where[0])
    return found


@cache
def libraries() -> tuple[str, ...]:
    """Shared libraries outside of the packages: those of Python's own modules, of JAX and of NumPy."""
    modules = [*(library() / "lib-dynload").glob("*.so")]
    for name, pattern in (("jaxlib", "*.so"), ("numpy", "*/*.so"), ("scipy", "linalg/*.so")):
        if name in packages():
            modules += Path(packages()[name]).glob(pattern)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOAD, *map(str, modules)], capture_output=True, text=True, timeout=600
    )
    inside = (str(library()), *(str(Path(p).parent) for p in packages().values()))
    return tuple(p for p in dict.fromkeys(done.stdout.split("\n")) if p and not p.startswith(inside))


def library() -> Path:
    """The standard library."""
    return Path(sysconfig.get_path("stdlib"))


def package_paths() -> list[str]:
    """The packages, with the libraries that wheels put beside them."""
    found = []
    for name, path in packages().items():
        beside = Path(path).parent / f"{name}.libs"
        found += [path, *([str(beside)] if beside.is_dir() else [])]
    return found


@cache
def compiler() -> list[str]:
    """The folders of the TPU compiler, and of its version, which it asks for; empty if it is not installed."""
    spec = importlib.util.find_spec("libtpu")
    found = list(spec.submodule_search_locations or []) if spec else []
    return [*found, *(str(p) for folder in found for p in Path(folder).parent.glob("libtpu-*.dist-info"))]


def interpreter() -> list[str]:
    """The interpreter, under all the names that lead to it, and what says that it is a virtual environment's."""
    found, path = [], Path(sys.executable)
    while path.is_symlink():
        found.append(str(path))
        path = path.parent / path.readlink()
    return [*found, str(path), *(str(p) for p in [Path(sys.prefix) / "pyvenv.cfg"] if p.is_file())]


@cache
def readable() -> tuple[str, ...]:
    """All of it, as files and as folders that hold nothing else."""
    parts = [str(p) for p in library().iterdir() if p.name not in INSTALLED]
    paths = dict.fromkeys([*interpreter(), *parts, *package_paths(), *libraries(), *SYSTEM])
    return tuple(p for p in paths if os.path.exists(p))


@cache
def listable() -> tuple[str, ...]:
    """What a process needs in order to start, before it lets learner code in: also the folders around."""
    around = [str(Path(p).parent) for p in packages().values() if Path(p).parent.name in INSTALLED]
    return tuple(dict.fromkeys([*readable(), str(library()), *around]))
