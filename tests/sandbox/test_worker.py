"""Workers in every tier that works on this machine: they answer, and leave no process and no folder."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from grader.exercise import normal
from grader.sandbox import processes
from grader.sandbox.limits import Limits
from grader.sandbox.tiers import TIERS, available
from grader.sandbox.worker import Worker, WorkerDied
from tests.conftest import trace_text
from tests.sandbox.submissions import LIMITS, WORKING, ask, value


def test_a_function_is_called(worker: Worker) -> None:
    frames = ask("def f(): return 41 + 1", worker)
    assert value(frames) == 42
    assert frames[-1] == {"from": "worker", "end": "done", "cpu": frames[-1]["cpu"]} and frames[-1]["cpu"] > 0


def test_a_loop_that_never_ends_is_ended(worker: Worker) -> None:
    fault = next(
        f["body"]["fault"] for f in ask("def f():\n    while True: pass", worker) if "fault" in f.get("body", {})
    )
    assert fault["kind"] == "timeout" and fault["line"] is None
    assert fault["message"] == "did not finish within 3 s"


def test_a_loop_that_swallows_the_alarm_is_killed(worker: Worker) -> None:
    text = "def f():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"
    frames = ask(text, worker)
    assert not any("values" in f.get("body", {}) for f in frames)
    faults = [f["body"]["fault"]["kind"] for f in frames if "fault" in f.get("body", {})]
    assert faults == ["timeout"] or frames[-1]["end"] == "timeout"


@pytest.mark.slow
def test_nothing_outlives_its_submission(worker: Worker) -> None:
    """A submission starts a daemon that leaves its session and ignores signals. The daemon ends with the submission."""
    text = (
        "import os, signal, time\npid = os.fork()\nif pid == 0:\n    os.setsid()\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    if os.fork(): os._exit(0)\n    time.sleep(3600)\nos.waitpid(pid, 0)\ndef f(): return 1"
    )
    worker.await_ready()
    before = _at_home(worker)
    ask(text, worker)
    deadline = time.monotonic() + 5
    while _at_home(worker) - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _at_home(worker) - before


def _at_home(worker: Worker) -> set[str]:
    """Return the processes that work in the scratch folder of a worker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            where = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if where.startswith(worker.scratch):
            found.append(pid)
    return set(found)


def test_a_killed_worker_leaves_no_process_and_no_folder() -> None:
    for tier in WORKING:
        worker = Worker("trace", tier, 8, LIMITS)
        ask("def f(): return 1", worker)
        process, scratch = worker.process, worker.scratch
        worker.kill()
        assert process is not None and process.poll() is not None
        assert not os.path.exists(scratch)


@pytest.mark.skipif("sandlock" not in WORKING, reason="sandlock does not work here")
def test_a_launcher_that_is_retired_ends_after_all_processes_in_its_sandbox() -> None:
    """A killed launcher would not answer its keeper. The keeper would wait, and learner code would continue to run."""
    with Worker("trace", "sandlock", 2, LIMITS) as worker:
        frames = worker.trace({"name": "a.py", "chunks": [["a.py", "while True: pass"]]}, [])
        next(frames)
        assert worker.process is not None
        inside = _at_home(worker) - {str(worker.process.pid)}
        worker.retire()
        worker.process.wait(60)
        assert len(inside) == 3 and not inside & _at_home(worker)
        with pytest.raises(WorkerDied):
            list(frames)


@pytest.mark.skipif("sandlock" not in WORKING, reason="sandlock does not work here")
def test_learner_code_ends_after_its_launcher_is_killed() -> None:
    with Worker("trace", "sandlock", 2, LIMITS) as worker:
        frames = worker.trace({"name": "a.py", "chunks": [["a.py", "while True: pass"]]}, [])
        next(frames)
        assert worker.process is not None
        worker.process.kill()
        deadline = time.monotonic() + 60
        while _at_home(worker) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not _at_home(worker)
        assert "end" in list(frames)[-1][0]
        assert value(ask("def f(): return 2", worker)) == 2


def test_a_worker_that_is_retired_while_it_starts_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    worker, begun = Worker("trace", "none", 2, LIMITS), list[processes.WorkerProcess]()
    take = processes.take

    def take_and_retire(*words: Any) -> processes.WorkerProcess:
        begun.append(take(*words))
        worker.retire()
        return begun[0]

    monkeypatch.setattr(processes, "take", take_and_retire)
    for _ in range(2):
        with pytest.raises(WorkerDied, match="died") as died:
            worker.start()
        assert (died.value.stderr, died.value.phase) == ("it was retired", "starting")
    assert [one.process.poll() is None for one in begun] == [False]


def test_a_dead_worker_raises_an_error_and_starts_again() -> None:
    with Worker("trace", "none", 8, LIMITS) as worker:
        ask("def f(): return 1", worker)
        assert worker.process is not None
        worker.process.kill()
        with pytest.raises(WorkerDied):
            ask("def f(): return 1", worker)
        assert value(ask("def f(): return 2", worker)) == 2


# A worker that sleeps under these limits is still asleep when a test kills it, however busy the machine is.
LONG = Limits(trace_seconds=600, total_seconds=1200)


def killed_at(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, frame: str, text: str = "def f(): return 1"
) -> list[dict]:
    """Kill the worker as soon as this frame of the submission's child arrives. Return the reply to the submission."""
    read, done = worker.receive, []

    def read_and_kill(deadline: float) -> tuple[dict, list[bytes]]:
        assert worker.process is not None
        if frame == "" and worker.ready and not done:
            done.append(1)
            os.killpg(worker.process.pid, signal.SIGKILL)
        header, blobs = read(deadline)
        if frame and blobs and frame.encode() in blobs[0] and not done:
            done.append(1)
            os.killpg(worker.process.pid, signal.SIGKILL)
        return header, blobs

    with monkeypatch.context() as patched:
        patched.setattr(worker, "receive", read_and_kill)
        return ask(text, worker)


@pytest.mark.parametrize("frame", ["started", "loaded"])
def test_a_worker_death_while_learner_code_runs_is_the_learners_fault(
    monkeypatch: pytest.MonkeyPatch, frame: str
) -> None:
    asleep = "import time\ntime.sleep(600)" if frame == "started" else "import time\ndef f():\n    time.sleep(600)"
    with Worker("trace", "none", 2, LONG) as worker:
        frames = killed_at(worker, monkeypatch, frame, asleep)
        assert frames[-1] == {"from": "worker", "end": "died of signal 9", "cpu": 0.0}
        assert value(ask("def f(): return 2", worker)) == 2


def test_a_worker_death_before_learner_code_runs_is_the_graders_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker("trace", "none", 2, LIMITS) as worker:
        ask("def f(): return 1", worker)
        with pytest.raises(WorkerDied) as died:
            killed_at(worker, monkeypatch, "")
        assert (died.value.reason, died.value.phase) == ("died", "asked")


def test_a_worker_death_is_the_graders_fault_if_an_own_submission_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Worker("trace", "none", 2, LONG) as worker:
        assert worker.traces_own_test()
        monkeypatch.setattr(worker, "traces_own_test", lambda: False)
        with pytest.raises(WorkerDied) as died:
            killed_at(worker, monkeypatch, "started", "import time\ntime.sleep(600)")
        assert died.value.phase == "traced"


def test_a_worker_whose_folder_cannot_be_emptied_is_replaced() -> None:
    """The submission renames its scratch folder."""
    with Worker("trace", "none", 2, LIMITS) as worker:
        ask("def f(): return 1", worker)
        process, scratch = worker.process, worker.scratch
        text = f"import os\nos.rename({scratch!r}, {scratch + 'x'!r})\ndef f(): return 1"
        assert ask(text, worker)[-1]["end"] in ("done", "disk")
        os.rename(scratch + "x", scratch)
        assert value(ask("def f(): return 2", worker)) == 2 and worker.process is not process
        os.rmdir(scratch)


@pytest.mark.parametrize("tier", WORKING)
def test_a_program_is_ended_by_its_cpu_time_and_the_error_names_the_phase(tier: str) -> None:
    text = """
import jax.numpy as jnp
from jax import lax
def f(a, *, mesh):
    return lax.while_loop(lambda a: a[0] < jnp.inf, lambda a: jnp.sin(a), a)
"""
    request, program, inputs = traced_program(text)
    with Worker("run", tier, 2, Limits(run_seconds=2, memory_mib=3072)) as worker:
        with pytest.raises(WorkerDied) as died:
            worker.run_program(request, program, inputs)
        assert (died.value.reason, died.value.phase) == ("timeout", "executing")
        request, program, inputs = traced_program("def f(a, *, mesh):\n    return a + 1")
        answer, _ = worker.run_program(request, program, inputs)
        assert 0 < answer["cpu"] < 2 and "outputs" in answer


def traced_program(text: str) -> tuple[Any, bytes, list]:
    import numpy as np

    made = trace_text(text, normal(8, spec=("x",)), mesh={"x": 2})
    return made.request, made.program, [[np.zeros(8, np.float32)]]


@pytest.mark.parametrize("role", ["run", "trace"])
def test_a_worker_has_a_limit_on_its_memory(role: str) -> None:
    for tier in WORKING:
        with Worker(role, tier, 2, Limits(memory_mib=3000)) as worker:
            worker.await_ready()
            limits = {
                Path(f"/proc/{pid}/limits").read_text().split("Max address space")[1].split()[0]
                for pid in _at_home(worker)
            }
            assert str(3000 << 20) in limits


@pytest.mark.slow
@pytest.mark.parametrize("tier", [t for t in TIERS if not available(t)])
def test_a_worker_outlives_the_thread_that_first_needed_it(tier: str) -> None:
    with Worker("run", tier, 2, Limits()) as worker:
        thread = threading.Thread(target=worker.await_ready)
        thread.start()
        thread.join()
        assert worker.process is not None
        with pytest.raises(subprocess.TimeoutExpired):
            worker.process.wait(0.5)
