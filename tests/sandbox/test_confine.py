"""Files and modules that learner code cannot reach."""

from __future__ import annotations

import contextlib
import functools
import operator
import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.sandbox import needs
from grader.sandbox.launcher import CAP_DAC_READ_SEARCH
from grader.sandbox.worker import Worker
from grader.wire.limits import MAX_THREADS
from tests.sandbox.submissions import CONFINED, LIMITS, WORKING, ask, value

ROOT = Path(__file__).resolve().parents[2]


def test_submissions_do_not_see_each_other(worker: Worker) -> None:
    ask("import builtins, jax; builtins.left = 1; jax.left = 1\ndef f(): return 1", worker)
    text = "import builtins, jax\ndef f(): return [hasattr(builtins, 'left'), hasattr(jax, 'left')]"
    assert value(ask(text, worker)) == {"list": [False, False]}


def test_the_package_cannot_be_imported(confined: Worker) -> None:
    """The package contains formulas that are answers to questions."""
    text = (
        "def f():\n    try:\n        import grader.hardware\n    except ImportError: pass\n    else: return 'imported'\n"
        f"    try: open({str(Path(__file__).parents[2] / 'grader' / 'hardware' / 'chips.py')!r})\n"
        "    except OSError as e: return type(e).__name__\n    return 'read'"
    )
    assert value(ask(text, confined)) in ("PermissionError", "FileNotFoundError")


def test_files_outside_the_scratch_folder_are_out_of_reach(confined: Worker, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("42")
    text = (
        f"def f():\n    out = []\n    for go in (lambda: open({str(secret)!r}).read(),"
        f" lambda: open({str(tmp_path / 'made')!r}, 'w')):\n"
        "        try: go(); out.append('done')\n        except OSError as e: out.append(type(e).__name__)\n    return out"
    )
    assert "done" not in value(ask(text, confined))["list"]  # type: ignore[index]
    assert not (tmp_path / "made").exists()


READ = "import os\ndef f():\n    os.close(os.open({path!r}, os.O_RDONLY))\n    return len(open({path!r}, 'rb').read())"


@pytest.mark.parametrize("tier", ["none", *CONFINED])
def test_reading_a_file_leaves_its_access_time_unchanged(tier: str) -> None:
    """From access times, a later submission could learn which files an earlier submission read."""
    path = Path(needs.packages()["opt_einsum"], "__init__.py")
    before = path.stat()
    with Worker("trace", tier, 2, LIMITS) as one:
        one.await_ready()
        if tier == "sandlock" and not any(f" {one.scratch} " in line for line in mountinfo(one.scratch)):
            pytest.skip("this machine lets no user mount a file system")
        try:
            # Linux updates an access time only if it is before the time of the last change.
            os.utime(path, ns=(before.st_mtime_ns - 10**9, before.st_mtime_ns))
        except OSError:
            pytest.skip("the file belongs to another user")
        old = path.stat().st_atime_ns
        assert value(ask(READ.format(path=str(path)), one)) == before.st_size
        changed = path.stat().st_atime_ns != old
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    if tier == "none" and not changed:
        pytest.skip("this file system keeps no access times")
    assert changed == (tier == "none")


def mountinfo(folder: str) -> list[str]:
    """Return the mounts of the processes that work in a folder, as lines of ``mountinfo``."""
    found = list[str]()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(process / "cwd").startswith(folder):
                found += (process / "mountinfo").read_text().splitlines()
    return found


REACH = """
import os
def f():
    done = []
    for pid in {pids}:
        for act in (
            lambda: os.kill(pid, 0), lambda: open(f"/proc/{{pid}}/mem", "rb"), lambda: open(f"/proc/{{pid}}/environ").read(),
            lambda: os.sched_setaffinity(pid, os.sched_getaffinity(pid)), lambda: os.setpriority(os.PRIO_PROCESS, pid, 0),
        ):
            try:
                act()
            except (OSError, NotImplementedError):
                continue
            done.append(pid)
    return sorted(set(done))
"""


@pytest.mark.parametrize("tier", WORKING)
def test_other_processes_are_out_of_reach(tier: str) -> None:
    """A program can reach neither the grader's process, nor its worker, nor the worker of a different submission."""
    with Worker("trace", tier, 8, LIMITS) as worker, Worker("trace", tier, 8, LIMITS) as other:
        worker.await_ready()
        other.await_ready()
        pids = sorted([os.getpid(), *(one.process.pid for one in (worker, other) if one.process)])
        assert value(ask(REACH.format(pids=pids), worker)) == {"list": pids if tier == "none" else []}
        assert len(pids) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has powers to drop")
@pytest.mark.parametrize("tier", WORKING)
def test_the_processes_of_a_sandbox_have_no_powers_of_root(tier: str) -> None:
    with Worker("trace", tier, 8, LIMITS) as worker:
        worker.await_ready()
        assert worker.process
        found = {powers(pid) for pid in descendants(worker.process.pid) if is_of_python(pid)}
    assert found and (found <= {0, 1 << CAP_DAC_READ_SEARCH}) == (tier != "none")


def powers(pid: int) -> int:
    """Return all capabilities that a process has, or may get, as bits."""
    lines = [line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("Cap")]
    return functools.reduce(operator.or_, (int(bits, 16) for _, bits in lines))


def is_of_python(pid: int) -> bool:
    """Return whether a process runs Python. The worker's processes do, and those of bwrap do not."""
    return Path(f"/proc/{pid}/cmdline").read_text().startswith(sys.executable)


def descendants(pid: int) -> list[int]:
    """Return the numbers of a process and of all its descendants."""
    below = [int(n) for file in Path(f"/proc/{pid}/task").glob("*/children") for n in file.read_text().split()]
    return [pid, *(one for child in below for one in descendants(child))]


THREADS = """
import threading, time
threading.stack_size(32768)
def f():
    for _ in range({number}):
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    end = time.process_time() + 1
    while time.process_time() < end:
        pass
    return threading.active_count()
"""


def test_a_process_with_too_many_threads_is_ended(worker: Worker) -> None:
    assert value(ask(THREADS.format(number=200), worker)) == 201
    frames = ask(THREADS.format(number=MAX_THREADS + 100), worker)
    assert frames[-1]["end"] in ("threads", "died of signal 9")


def alone(text: str, *arguments: str) -> list[str]:
    """Run code in a separate Python process, and return the words that it prints."""
    done = subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_matmul_of_numpy_uses_no_cpu_time_after_its_end(worker: Worker) -> None:
    """OpenBLAS's threads wait actively after each matmul. With two threads, the function returns about 300 to 700."""
    text = """
import time
import numpy as np
def f():
    a = np.ones((400, 400))
    process, thread = time.process_time(), time.thread_time()
    for _ in range(20):
        a @ a
        time.sleep(0.02)
    return round(100 * (time.process_time() - process) / (time.thread_time() - thread))
"""
    percent = value(ask(text, worker))
    assert isinstance(percent, int) and percent < 200


def test_imports_do_not_list_the_standard_librarys_folder_again() -> None:
    """``settle_imports`` replaces ``invalidate_caches``. This test fails if Python still lists the folder again."""
    text = """
import importlib, importlib.machinery, os, sys
from grader.sandbox.confine import settle_imports
numpy = sys.argv[1]
settle_imports({"numpy": numpy})
import _frozen_importlib_external as finders
listed = finders._os.listdir
def refuse(path):
    if path == os.path.dirname(os.__file__):
        raise PermissionError("it cannot be listed")
    return listed(path)
finders._os.listdir = refuse
importlib.invalidate_caches()
import wave, xmlrpc.client, numpy
for name in ("yaml", "pytest"):
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name)
print(wave.__name__, numpy.__name__)
"""
    assert alone(text, needs.packages()["numpy"]) == ["yaml", "pytest", "wave", "numpy"]


def test_packages_of_pythonpath_are_not_importable_after_imports_are_settled(tmp_path: Path) -> None:
    """A cluster's module system sets PYTHONPATH; learner code imports only the standard library and listed packages."""
    (tmp_path / "beside.py").write_text("")
    text = """
import sys
sys.path.insert(0, sys.argv[1])
from grader.sandbox.confine import settle_imports
settle_imports({})
import math, wave
for name in ("beside", "grader.cli"):
    try:
        __import__(name)
    except ImportError:
        print(name)
"""
    assert alone(text, str(tmp_path)) == ["beside", "grader.cli"]


@pytest.mark.parametrize("tier", WORKING)
def test_learner_code_neither_sees_nor_extends_pythonpath(
    tier: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An empty entry would name the scratch folder, where a submission could leave modules for later code."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setenv("PYTHONPATH", f":.:{tmp_path}")
    leave = "for name in ('sitecustomize', 'jax', 'numpy', 'beside'): open(name + '.py', 'w').write('1 / 0')"
    look = "def f():\n    import beside\n    return type(beside).__name__"
    read = "import os, sys\ndef f(): return ['PYTHONPATH' in os.environ, os.getcwd() in sys.path, '' in sys.path]"
    with Worker("trace", tier, 2, LIMITS) as one:
        ask(leave + "\ndef f(): return 1", one)
        assert value(ask(read, one)) == {"list": [False, False, False]}
        assert value(ask(leave + "\n" + look, one)) == "StandIn"  # the module is not installed
        assert one.traces_own_test()


def test_jax_looks_for_plugins_by_the_function_that_a_worker_replaces() -> None:
    """This test fails if JAX no longer looks for plugins with ``importlib.metadata.distributions``."""
    text = """
import importlib.metadata
asked = []
importlib.metadata.distributions = lambda **about: asked.append(about) or iter(())
import jax
jax.devices()
print(len(asked) > 0, jax.default_backend())
assert list(importlib.metadata.entry_points(group="jax_plugins")) == []
"""
    assert alone(text) == ["True", "cpu"]
