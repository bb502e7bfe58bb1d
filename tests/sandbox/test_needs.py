"""Learner code reads only files that Python and JAX need: no nbgrader exchange, no course and no other package."""

from __future__ import annotations

import os
import shutil
import site
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.sandbox import needs
from grader.sandbox.limits import Limits
from grader.sandbox.tiers import TIERS, available
from grader.sandbox.worker import Worker
from grader.wire.frames import decode
from grader.wire.messages import FunctionAsk

CONFINED = [tier for tier in TIERS if tier != "none" and not available(tier)]
LIMITS = Limits(trace_seconds=30, total_seconds=60, memory_mib=3072)


def ask(tier: str, text: str) -> list[object]:
    """Run a file in a worker of this tier, and return the list that its function ``f()`` returns."""
    question: FunctionAsk = {"kind": "function", "task": "f", "cases": [{"dict": []}]}
    with Worker("trace", tier, 2, LIMITS) as worker:
        bodies = [f.get("body", {}) for f, _ in worker.trace({"name": "a", "chunks": [["a", text]]}, [question])]
    assert "values" in bodies[-2], bodies
    assert "value" in bodies[-2]["values"][0], bodies[-2]
    return decode(bodies[-2]["values"][0]["value"])


@pytest.fixture
def hoards() -> Iterator[list[Path]]:
    """Write an exchange and a course into each writable system folder that could have one. Yield their folders."""
    name = f"shardlings_test_{uuid.uuid4().hex[:8]}"
    prefixes = ["/usr/local/share", "/usr/share", "/usr/lib", "/opt", "/srv", "/etc", Path(sys.prefix) / "share",
                Path(sys.base_prefix) / "share", sys.prefix, sys.base_prefix, Path(sys.prefix) / "lib", Path.home(),
                *site.getsitepackages(), needs.library() / "site-packages", "/tmp", "/var/tmp", "/dev/shm"]  # fmt: skip
    made = []
    try:
        for prefix in dict.fromkeys(map(str, prefixes)):
            if os.path.isdir(prefix) and os.access(prefix, os.W_OK):
                folder = Path(prefix) / name
                made.append(folder)
                for file in (
                    "exchange/course/inbound/alice+ps1/work.ipynb",
                    "course/solutions/answer.py",
                    "__init__.py",
                ):
                    (folder / file).parent.mkdir(parents=True, exist_ok=True)
                    (folder / file).write_text("SECRET = 42\n")
        yield made
    finally:
        for folder in made:
            shutil.rmtree(folder, ignore_errors=True)


READ = """
import importlib.util, os, sys
def f():
    found = []
    for folder in {folders!r}:
        for where in (folder, folder + "/exchange/course/inbound", folder + "/course/solutions"):
            try: found.append(os.listdir(where))
            except OSError: pass
        for file in ("/exchange/course/inbound/alice+ps1/work.ipynb", "/course/solutions/answer.py", "/__init__.py"):
            try: found.append(open(folder + file).read())
            except OSError: pass
        sys.path.append(os.path.dirname(folder))
        try: found.append(__import__(os.path.basename(folder)).SECRET)
        except (ImportError, OSError, AttributeError): pass
    return found
"""


@pytest.mark.parametrize("tier", CONFINED)
def test_an_exchange_and_a_course_are_out_of_reach_under_every_prefix(tier: str, hoards: list[Path]) -> None:
    assert any(folder.is_relative_to(sys.prefix) for folder in hoards)
    assert ask(tier, READ.format(folders=[str(folder) for folder in hoards])) == []


HONEST = """
import importlib
def f():
    failed = []
    for name in {names!r}:
        try: importlib.import_module(name)
        except Exception as error: failed.append(f"{{name}}: {{error}}")
    importlib.invalidate_caches()  # it looks into folders anew, which cannot be listed now
    import wave, jax, jax.numpy as jnp
    a = jnp.eye(3) + 1
    jax.jit(lambda a: (jnp.linalg.inv(a), jnp.linalg.qr(a), jnp.linalg.eigh(a), jnp.fft.fft(a))).lower(a)
    known = jnp.linalg.det(jnp.linalg.inv(a))  # LAPACK's, while tracing
    return [*failed, round(float(known), 4), len(jax.devices())]
"""


@pytest.mark.parametrize("tier", [*CONFINED, "none"])
def test_honest_submissions_can_import_and_use_common_modules(tier: str) -> None:
    names = ["jax.numpy", "jax.experimental.pallas", "jax.experimental.mesh_utils",
             "jax.experimental.multihost_utils", "jax.scipy.linalg", "jax.extend", "jax.tree_util", "numpy.linalg",
             "asyncio", "sqlite3", "ssl", "zoneinfo", "unittest.mock", "multiprocessing", "decimal", "ctypes.util"]  # fmt: skip
    names += ["scipy.linalg", "scipy.special", "scipy.stats"] * ("scipy" in needs.packages())
    assert ask(tier, HONEST.format(names=names)) == [0.25, 2]


@pytest.mark.parametrize("tier", [*CONFINED, "none"])
def test_other_packages_cannot_be_imported_in_any_tier(tier: str) -> None:
    """So a verdict depends neither on the tier nor on further packages that a machine has."""
    text = """
def f():
    told = []
    for name in ("pytest", "yaml", "nbgrader", "grader.hardware"):
        try: __import__(name)
        except ImportError as error: told.append(str(error))
    return told
"""
    assert ask(tier, text) == [
        "No module named 'pytest'", "No module named 'yaml'", "No module named 'nbgrader'", "No module named 'grader.hardware'"
    ]  # fmt: skip


def test_no_system_or_site_packages_folder_is_readable_as_a_whole() -> None:
    listed = set(needs.readable())
    for whole in (
        "/",
        "/usr",
        "/usr/lib",
        "/lib",
        "/etc",
        "/opt",
        sys.prefix,
        sys.base_prefix,
        *site.getsitepackages(),
    ):
        assert str(Path(whole)) not in listed
    assert str(needs.library()) not in listed and str(needs.library() / "site-packages") not in listed
    assert needs.packages()["jax"] in listed and not any("pytest" in path for path in listed)
    assert set(needs.packages()) <= set(needs.PACKAGES)


@pytest.mark.skipif(sys.platform != "linux", reason="libraries are listed by Linux")
def test_readable_libraries_are_single_files() -> None:
    assert any("libc." in path for path in needs.libraries())
    assert all(os.path.isfile(path) for path in needs.libraries())


def test_workers_get_only_absolute_paths_of_pythonpath(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In a worker, an empty or relative entry would mean the scratch folder, in which learner code writes files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path), f"{tmp_path}/lib", "", ".", "lib"])
    monkeypatch.setenv("PYTHONPATH", f":{tmp_path}:.:lib:./lib:{tmp_path}/lib/:")
    assert needs.python_path() == f"{tmp_path}:{tmp_path}/lib/"


def test_workers_get_no_folder_from_which_the_grader_does_not_import(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``python -I`` ignores PYTHONPATH, so workers ignore it too."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert needs.python_path() == ""
    monkeypatch.delenv("PYTHONPATH")
    assert needs.python_path() == ""
