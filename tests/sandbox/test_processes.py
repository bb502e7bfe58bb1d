"""The grader starts workers' processes before it needs them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.sandbox.limits import Limits
from grader.sandbox.processes import begin_ahead, end, take
from grader.sandbox.tiers import NO_EXTRA
from grader.sandbox.worker import Worker
from tests.commands import ROOT


def test_a_process_started_early_serves_one_request_with_its_limits() -> None:
    limits = Limits()
    begin_ahead(("trace",), "none", 3, limits)
    try:
        ahead = take("trace", "none", 3, limits, NO_EXTRA)
        again = take("trace", "none", 3, limits, NO_EXTRA)
        begin_ahead(("trace",), "none", 3, limits)
        stricter = take("trace", "none", 3, limits.model_copy(update={"memory_mib": 4000}), NO_EXTRA)
        last = take("trace", "none", 3, limits, NO_EXTRA)
        pids = {one.process.pid for one in (ahead, again, stricter, last)}
        assert len(pids) == 4
        assert last.process.args != stricter.process.args  # a process's command line contains its memory limit
    finally:
        for one in (ahead, again, stricter, last):
            end(one)
            assert not Path(one.scratch).exists()


def test_a_worker_that_was_started_early_answers() -> None:
    limits = Limits()
    begin_ahead(("trace",), "none", 2, limits)
    with Worker("trace", "none", 2, limits) as worker:
        assert worker.traces_own_test()
        worker.start()
        assert worker.process is not None


def environments() -> Iterator[bytes]:
    """Yield the environments of all readable processes. A worker's environment contains its folder."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            yield path.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", ["", "raise SystemExit(2)", "raise RuntimeError"])
def test_an_unused_process_ends_with_the_command(how: str, tmp_path: Path) -> None:
    code = (
        "from grader.sandbox.limits import Limits\nfrom grader.sandbox import processes\n"
        "processes.begin_ahead(('trace', 'run'), 'none', 1, Limits())\n"
        f"{how}\n"
    )
    env = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=60, check=False)
    assert list(tmp_path.iterdir()) == []
    assert not any(str(tmp_path).encode() in environment for environment in environments())
