"""The workers that run programs, and programs with devices that wait for each other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grader.batch.runners import MOST_ASIDE, Runner
from grader.course.finding import find_course
from grader.exercise import normal
from grader.sandbox.limits import Limits
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.limits import WARN_SECONDS
from tests.conftest import trace_text
from tests.made_up import made_up
from tests.sandbox.submissions import CONFINED


class Ask:
    def arrays(self) -> list[Any]:
        return []


ASK: Any = Ask()
NO_ASK: Any = {}
ONE_WAITS = """
import jax
from jax.sharding import PartitionSpec as P
def f(a, *, mesh):
    def local(a):
        return jax.lax.cond(jax.lax.axis_index("x") == 0, lambda a: a, lambda a: jax.lax.pmax(a, "x"), a)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)
"""


class Stub:
    """A worker that runs no program. For the program ``waits`` it waits for ``go`` and then dies."""

    made: list[Stub]

    def __init__(self, *about: object) -> None:
        self.killed, self.ran, self.go = False, list[bytes](), threading.Event()
        self.waits = threading.Event()
        Stub.made.append(self)

    def run_program(
        self, request: dict, program: bytes, inputs: list, stuck: Callable[[], None], **more: Any
    ) -> tuple[dict, list[bytes]]:
        self.ran.append(program)
        if program == b"waits":
            stuck()
            stuck()
            self.waits.set()
            assert self.go.wait(30)
            raise WorkerDied("died", "may be stuck")
        return {"by": self}, []

    def runs_own_test(self) -> bool:
        return True

    def kill(self) -> int:
        self.killed = True
        return 0


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    Stub.made = []
    monkeypatch.setattr("grader.batch.runners.Worker", Stub)
    made_up(tmp_path)
    return Runner(find_course(tmp_path), "none")


def test_a_program_whose_devices_wait_does_not_hold_up_the_next_program(runner: Runner) -> None:
    """A second worker runs the next program. The first worker ends after the waiting program."""
    open_now = list[bool]()

    @contextmanager
    def asleep() -> Iterator[None]:
        open_now.append(True)
        try:
            yield
        finally:
            open_now.pop()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(runner.run, NO_ASK, b"waits", ASK, asleep)
        assert Stub.made[0].waits.wait(30)
        assert open_now == [True]
        header, _ = runner.run(NO_ASK, b"next", ASK)
        assert header["by"] is runner.worker is Stub.made[1]
        assert runner.workers == Stub.made[::-1]
        Stub.made[0].go.set()
        with pytest.raises(WorkerDied) as died:
            waiting.result(30)
    assert not died.value.ours and open_now == []
    assert Stub.made[0].ran == [b"waits", b"waits"] and Stub.made[0].killed
    assert runner.workers == [Stub.made[1]] and not Stub.made[1].killed


def test_a_worker_runs_one_program_after_another(runner: Runner) -> None:
    twice = threading.Thread(target=lambda: [runner.run(NO_ASK, b"next", ASK) for _ in range(2)], daemon=True)
    twice.start()
    twice.join(30)
    assert Stub.made[0].ran == [b"next", b"next"] and len(Stub.made) == 1


def test_only_a_few_workers_are_set_aside(runner: Runner) -> None:
    with ThreadPoolExecutor(MOST_ASIDE + 1) as pool:
        running = []
        for number in range(MOST_ASIDE + 1):
            running.append(pool.submit(runner.run, NO_ASK, b"waits", ASK))
            assert Stub.made[number].waits.wait(30)
        assert runner.workers == [Stub.made[-1], *Stub.made[:-1]] and len(Stub.made) == MOST_ASIDE + 1
        after = pool.submit(runner.run, NO_ASK, b"next", ASK)
        for one in Stub.made:
            one.go.set()
        assert after.result(30)[0]["by"] is Stub.made[-1]
    assert all(isinstance(one.exception(), WorkerDied) for one in running)
    assert runner.workers == [Stub.made[-1]]


@pytest.mark.slow
@pytest.mark.parametrize("tier", CONFINED)
def test_xla_reports_devices_that_wait(tier: str) -> None:
    import numpy as np

    made = trace_text(ONE_WAITS, normal(8, spec=("x",)), mesh={"x": 2})
    began, calls = time.monotonic(), list[float]()
    with Worker("run", tier, 2, Limits(stuck_seconds=WARN_SECONDS + 5)) as worker, pytest.raises(WorkerDied):
        worker.run_program(
            made.request,
            made.program,
            [[np.zeros(8, np.float32)]],
            stuck=lambda: calls.append(time.monotonic() - began),
        )
    assert calls and calls[0] >= WARN_SECONDS
