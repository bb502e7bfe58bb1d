"""Files that Python and JAX need on this machine. Learner code may read these files and no others.

Whole folders such as ``/usr``, ``/opt`` and ``sys.prefix`` are not readable, because they may contain nbgrader's
exchange, courses and other users' packages.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

# Packages that learners may import if they are installed, and the dependencies of these packages.
PACKAGES = (
    "jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "opt_einsum", "einops",
    "pint", "flexcache", "flexparser", "platformdirs", "typing_extensions",
)  # fmt: skip
# Names of folders of installed packages that may be inside the standard library's folder.
INSTALLED = ("site-packages", "dist-packages")
SYSTEM = (
    "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/usr/lib/locale",
    "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
    # Files that describe the processor. If XLA cannot read them, it lacks kernels for some sums of arrays.
    "/proc/cpuinfo", "/sys/devices/system/cpu", "/sys/fs/cgroup",
)  # fmt: skip
# A program that loads libraries as Python would, and prints the names of all files that the loader read.
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
    """Return the folder or file of each installed package of PACKAGES, without importing the package."""
    found = {}
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        where = list(spec.submodule_search_locations or [spec.origin]) if spec else []
        if where and where[0]:
            found[name] = str(where[0])
    return found


@cache
def libraries() -> tuple[str, ...]:
    """Return the shared libraries that Python, JAX, NumPy and SciPy load from outside of their packages."""
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
    return Path(sysconfig.get_path("stdlib"))


def package_paths() -> list[str]:
    """Return the paths of ``packages()``, and of the folders ``NAME.libs`` that their wheels install beside them."""
    found = []
    for name, path in packages().items():
        beside = Path(path).parent / f"{name}.libs"
        found += [path, *([str(beside)] if beside.is_dir() else [])]
    return found


@cache
def compiler() -> list[str]:
    """Return the folders of the TPU compiler's code and metadata; empty if the compiler is not installed."""
    spec = importlib.util.find_spec("libtpu")
    found = list(spec.submodule_search_locations or []) if spec else []
    return [*found, *(str(p) for folder in found for p in Path(folder).parent.glob("libtpu-*.dist-info"))]


def python_path() -> str:
    """Return the PYTHONPATH of workers. Some clusters install packages in folders that only PYTHONPATH names.

    The result has the absolute entries of this process's PYTHONPATH that are also in ``sys.path``. A worker would look
    up relative entries in the scratch folder, to which learner code can write modules.
    """
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.pathsep.join(e for e in entries if os.path.isabs(e) and os.path.abspath(e) in sys.path)


def interpreter() -> list[str]:
    """Return the paths of the Python interpreter, of all links to it, and of a virtual environment's ``pyvenv.cfg``."""
    found, path = [], Path(sys.executable)
    while path.is_symlink():
        found.append(str(path))
        path = path.parent / path.readlink()
    return [*found, str(path), *(str(p) for p in [Path(sys.prefix) / "pyvenv.cfg"] if p.is_file())]


@cache
def readable() -> tuple[str, ...]:
    """Return the paths that learner code may read: files, and folders in which every file is readable."""
    parts = [str(p) for p in library().iterdir() if p.name not in INSTALLED]
    paths = dict.fromkeys([*interpreter(), *parts, *package_paths(), *libraries(), *SYSTEM])
    return tuple(p for p in paths if os.path.exists(p))


@cache
def listable() -> tuple[str, ...]:
    """Return the paths that a worker may read before learner code runs.

    They are ``readable()``, the standard library's folder, and the folders in which packages are installed.
    """
    around = dict.fromkeys(Path(p).parent for p in packages().values())
    installed = [str(folder) for folder in around if any(folder.glob("*.dist-info"))]
    return tuple(dict.fromkeys([*readable(), str(library()), *installed]))
