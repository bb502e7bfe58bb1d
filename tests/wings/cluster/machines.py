"""Start a real scheduler and real workers, as processes on the loopback without a nanny. Not a test file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from grader.batch.database import FILE
from tests.commands import ROOT
from tests.databases import graded_in

SECONDS = 300  # limit of a test in seconds; tests that pass wait less


class Machines:
    """A Dask scheduler and Dask workers. ``start`` starts a worker. All their files are below ``folder``.

    Args:
        words: further words of the scheduler's command.
        env: the environment of all processes.
    """

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        self.folder, self.env = folder, env
        self.processes: list[subprocess.Popen[bytes]] = []
        place = folder / "scheduler.json"
        self.scheduler = self._run(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0",
            "--scheduler-file", str(place), *words,
        )  # fmt: skip
        until(place.is_file, self.said("scheduler"))
        until(lambda: place.read_text().endswith("}"), self.said("scheduler"))
        self.address: str = json.loads(place.read_text())["address"]

    def _run(self, what: str, *words: str, **env: str) -> subprocess.Popen[bytes]:
        keep = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
        whole = keep | {"PYTHONPATH": str(ROOT)} | self.env | env
        with self.log(what).open("wb") as log:  # an earlier process of this name may have said the same
            command = [sys.executable, "-m", f"distributed.cli.dask_{what.partition('-')[0]}", *words]
            process = subprocess.Popen(command, cwd=self.folder, env=whole, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def log(self, what: str) -> Path:
        return self.folder / f"{what}.log"

    def said(self, what: str):
        return lambda: self.log(what).read_text()

    def start(self, name: str, *words: str, threads: int = 1, **env: str) -> subprocess.Popen[bytes]:
        """Start a worker, and wait until it is registered."""
        process = self._run(
            f"worker-{name}", self.address, "--name", name, "--nthreads", str(threads), "--no-nanny", "--no-dashboard",
            "--local-directory", str(self.folder / "scratch"), *words, **env,
        )  # fmt: skip
        said = self.said(f"worker-{name}")
        until(lambda: "Registered to:" in said(), said)
        return process

    def held(self) -> list[str]:
        """Return the names of the folders in which workers keep courses.

        ``os.walk`` ignores files that workers delete meanwhile; ``rglob`` would raise an error.
        """
        folders = (name for _, names, _ in os.walk(self.folder / "scratch") for name in names)
        return [name for name in folders if name.startswith("shardlings-course-")]

    def stop(self, process: subprocess.Popen[bytes], how: signal.Signals = signal.SIGTERM) -> None:
        process.send_signal(how)
        process.wait(SECONDS)

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


@contextmanager
def machines(folder: Path, *words: str, **env: str) -> Iterator[Machines]:
    made = Machines(folder, *words, **env)
    try:
        yield made
    finally:
        made.close()


def until(holds, tell=lambda: "") -> None:
    """Wait until ``holds()`` is true. After the time limit, fail with the text of ``tell()``."""
    over = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < over, tell()
        time.sleep(0.05)


# This program runs shardlings, but waits less time for workers.
IMPATIENT = """
import sys
from grader.wings.cluster import spread
from grader.wings.cluster.dispatch import Patience
spread.Spread.__init__.__kwdefaults__["patience"] = Patience(silent=5, first=3, none=120, poll=0.2)
from grader.cli import main
main()
"""


def begun(*words: str, cwd: Path) -> subprocess.Popen[str]:
    """Start a command in its own session."""
    keep = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    return subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, *words], cwd=cwd, env=keep | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Return a command's exit code, and its output on standard error."""
    try:
        _, said = process.communicate(timeout=SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, said


def written(folder: Path) -> Mapping[str, object]:
    """Return all files in a folder of reports. For the database, return its reports, because their order may differ."""
    files = {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name not in (".lock", FILE)
    }
    return files | {FILE: graded_in(folder)}
