"""Workers of a real Dask scheduler give one result for each submission, although they die, hang, come late or fail.

The scheduler and its workers run in this process, and do not grade: ``Fake`` answers in place of the module ``there``.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.common.result import Report
from grader.intake.submission import Chunk, Source, Submission, Unreadable

pytest.importorskip("distributed")

import distributed

from grader.wings.cluster import dispatch, there
from grader.wings.cluster.dispatch import PAUSED, Dispatch, NotGradedThere, Patience
from grader.wings.cluster.link import ClusterError, Dask
from grader.wings.cluster.parcel import Answer, Kit, unpacked
from tests.wings.cluster.machines import machines

CONFIG: Any = None
KIT = Kit(CONFIG, files={}, names=["e"], digest="d", tier="bwrap", remember=True)
STUDENTS = [f"s{n}" for n in range(20)]
Fault = Callable[[str], object]  # called with a student, or "" during preparation; None to answer as usual


def a_report(student: str) -> Report:
    return Report(
        student=student, course="c", versions={}, isolation="bwrap", backend="cpu", fingerprint=f"of {student}",
        points=0, earned=0, pending=0, exercises=[],
    )  # fmt: skip


def work_of(student: str) -> Submission:
    chunk = Chunk("e.py", f"# {student} \ud800")
    return Submission(student, {"e": Source("e.py", (chunk,))}, ("a note",), "d", ("unread",))


def worker() -> Any:
    return distributed.get_worker()


def die() -> None:
    """End the worker that runs this as if its process were killed."""
    mine = worker()
    mine.loop.add_callback(mine.batched_stream.comm.abort)
    time.sleep(0.2)


LEFT: list[str] = []


def leave(key: str) -> None:  # a function of the module, because Dask pickles it
    LEFT.append(key)


class Fake:
    """The functions of ``there``. A worker's fault decides by the worker's name what it answers."""

    def __init__(self) -> None:
        self.faults: dict[str, Fault] = {}
        self.graded = Counter[str]()  # submissions by worker
        self.prepared = Counter[str]()
        self.has: set[tuple[str, str]] = set()
        self.over = threading.Event()

    def prepare(self, key: str, needed: dict, tier: str, kit: bytes, folder: str, jobs: int) -> object:
        assert (
            unpacked(kit) == KIT and needed == there.deciding() and tier == "bwrap" and jobs == worker().state.nthreads
        )
        self.prepared[worker().name] += 1
        found = self.faults.get(worker().name, lambda _: None)("")
        self.has.add((worker().name, key))
        return found or ""

    def grade(self, key: str, work: bytes) -> object:
        student = unpacked(work).student
        assert unpacked(work) == work_of(student)
        if (worker().name, key) not in self.has:
            raise there.Absent
        time.sleep(0.02)
        found = self.faults.get(worker().name, lambda _: None)(student)
        self.graded[worker().name] += 1
        return Answer(report=a_report(student).dumps()).model_dump_json() if found is None else found

    def hang(self, student: str) -> None:
        self.over.wait()


class Batch:
    """A scheduler, its workers, and the results of one batch of students."""

    def __init__(self, cluster: Any, fake: Fake, folder: Path) -> None:
        self.cluster, self.fake, self.folder = cluster, fake, folder
        self.workers: list[Any] = []
        self.came: list[tuple[str, Report | Exception]] = []
        self.told: list[str] = []
        self.unreadable, self.most = "", 0
        self.on: dict[int, Callable[[], object]] = {}  # events by the number of results
        self.link = Dask(cluster.scheduler_address)

    def start(self, name: str, fault: Fault | None = None, threads: int = 1) -> Any:
        if fault:
            self.fake.faults[name] = fault

        async def begin() -> Any:
            return await distributed.Worker(
                self.cluster.scheduler_address, name=name, nthreads=threads, host="127.0.0.1", dashboard=False, memory_limit=0,
                local_directory=str(self.folder),
            )  # fmt: skip

        self.workers.append(self.cluster.sync(begin))
        return self.workers[-1]

    def run(self, *students: str, **patience: float) -> Batch:
        batch = Dispatch(
            self.link, KIT, lambda s: f"of {s.student}", self.told.append, Patience(**{"poll": 0.1} | patience)
        )

        def done(student: str, result: Report | Exception) -> None:
            self.came.append((student, result))
            self.on.pop(len(self.came), int)()

        def read(student: str) -> Submission:
            self.most = max(self.most, len(batch.jobs) + 1)
            if student == self.unreadable:
                raise Unreadable("cannot read it")
            return work_of(student)

        batch.run(students, read, done)
        return self

    @property
    def failed(self) -> dict[str, str]:
        """Return the students without a report. The batch must have one result for each student."""
        assert sorted(s for s, _ in self.came) == sorted(STUDENTS)
        assert all(r == a_report(s) for s, r in self.came if isinstance(r, Report))
        return {s: str(r) for s, r in self.came if isinstance(r, Exception)}

    def close(self) -> None:
        self.fake.over.set()
        self.link.close()
        for one in self.workers:
            self.cluster.sync(one.close)


@pytest.fixture
def batch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Batch]:
    fake = Fake()
    monkeypatch.setattr(there, "prepare", fake.prepare)
    monkeypatch.setattr(there, "grade", fake.grade)
    monkeypatch.setattr(there, "leave", leave)
    LEFT.clear()
    with distributed.LocalCluster(
        n_workers=0,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        made = Batch(cluster, fake, tmp_path)
        yield made
        made.close()


@pytest.mark.parametrize("count", [1, 3])
def test_every_submission_is_graded_once_by_any_number_of_workers(batch: Batch, count: int) -> None:
    begun, all_begun = set[str](), threading.Event()

    def wait_for_the_others(student: str) -> None:
        """Answer only after every worker has a submission. Else the quick ones may grade all of them."""
        if student:
            begun.add(worker().name)
            if len(begun) == count:
                all_begun.set()
            assert all_begun.wait(60)

    for number in range(count):
        batch.start(f"w{number}", wait_for_the_others, threads=number + 1)
    assert batch.run(*STUDENTS).failed == {} and batch.told == []
    assert batch.fake.graded.total() == 20 and len(batch.fake.graded) == count
    assert batch.most <= sum(range(count + 1))  # each thread has one submission, so memory stays flat
    assert len(LEFT) == count  # the batch asked every worker to delete the course


def test_a_worker_that_ends_loses_nothing_and_a_late_worker_takes_part(batch: Batch) -> None:
    batch.start("a", lambda student: die() if student == "s6" else None)
    batch.on[3] = lambda: batch.start("late")
    assert batch.run(*STUDENTS).failed == {} and batch.told == []
    assert batch.fake.graded["late"]


@pytest.mark.parametrize("while_", ["prepare", "grade"])
def test_a_worker_that_hangs_holds_the_batch_only_for_a_while(batch: Batch, while_: str) -> None:
    batch.start("hangs", lambda student: batch.fake.hang(student) if bool(student) == (while_ == "grade") else None)
    batch.start("works")
    assert batch.run(*STUDENTS, silent=2).failed == {}  # without a limit the batch would never end
    assert batch.fake.graded["works"] == 20


@pytest.mark.parametrize("threads", [1, 3])
def test_a_submission_that_ends_workers_costs_no_other_submission_its_report(batch: Batch, threads: int) -> None:
    def deadly(student: str) -> None:
        if student == "s3":
            batch.start(f"w{len(batch.workers)}", deadly, threads)
            die()

    batch.start("w0", deadly, threads)
    failed = batch.run(*STUDENTS).failed
    text = "4 workers ended while they graded this submission alone, the last: tcp://127.0.0.1:"
    assert list(failed) == ["s3"] and failed["s3"].startswith(text) and len(batch.workers) == 9


def test_a_grader_error_or_an_unreadable_submission_stops_no_other_submission(batch: Batch) -> None:
    batch.start("a", lambda student: Answer(problem="KeyError: 'x'").model_dump_json() if student == "s3" else None)
    batch.unreadable = "s4"
    assert batch.run(*STUDENTS).failed == {"s3": "KeyError: 'x'", "s4": "cannot read it"}
    assert {type(r) for _, r in batch.came} == {Report, NotGradedThere, Unreadable}


def raises(error: Exception) -> Fault:
    def fault(student: str) -> None:
        raise error

    return fault


REFUSED = {
    "problem": (lambda _: "has jax 0.9.9", "has jax 0.9.9"),
    "older": (
        raises(ModuleNotFoundError("No module named 'grader'")),
        "has no usable shardlings (No module named 'grader'): in the checkout of shardlings, run: pip install",
    ),
    "odd": (raises(ValueError("x\ny")), "cannot answer: ValueError: x; mend"),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_a_worker_that_cannot_grade_is_refused_and_the_others_go_on(batch: Batch, reason: str) -> None:
    fault, text = REFUSED[reason]
    odd = batch.start("odd", fault)
    with pytest.raises(ClusterError) as stopped:
        batch.run(*STUDENTS)
    message, said = str(stopped.value), f"{odd.address} (odd) {text}"
    assert message.startswith(f"no worker can grade at {batch.link.address}: {said}") and "\n" not in message
    assert message.endswith("; mend the cause and run the same command again; finished reports are kept")
    batch.told.clear()
    batch.start("good")
    assert batch.run(*STUDENTS).failed == {} and batch.fake.graded["odd"] == 0
    assert len(batch.told) == 1 and batch.told[0].startswith(f"not used: {said.removesuffix('; mend')}")


def test_a_dask_worker_without_shardlings_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "without.py").write_text("import sys\nsys.modules['grader.wings'] = None\n")
    told: list[str] = []
    with machines(tmp_path) as real:
        process = real.start("w", "--preload", str(tmp_path / "without.py"))
        link = Dask(real.address)
        with pytest.raises(ClusterError, match="no worker can grade"):
            Dispatch(link, KIT, lambda _: "", told.append).run(STUDENTS, work_of, lambda student, result: None)
        link.close()
        assert process.poll() is None
    assert len(told) == 1 and "(w) has no usable shardlings (" in told[0]


def nonsense(*words: object) -> str:
    return "what?"


def test_a_worker_whose_answer_cannot_be_read_is_refused(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "prepare", nonsense)
    odd = batch.start("odd")
    with pytest.raises(ClusterError, match=r"no worker can grade .* \(odd\) sends answers that cannot be read; mend"):
        batch.run(*STUDENTS)
    assert batch.told == [f"not used: {odd.address} (odd) sends answers that cannot be read"]


@pytest.mark.parametrize(
    "answer",
    [
        "what?",
        b"\xff",
        None,
        Answer().model_dump_json(),
        Answer(report=a_report("eve").dumps()).model_dump_json(),
        ["a list"],
    ],
)
def test_an_unreadable_answer_never_counts(batch: Batch, answer: object) -> None:
    batch.start("odd", lambda student: (answer or {}) if student in ("s3", "s4") else None)
    batch.start("good")
    assert set(batch.run(*STUDENTS).failed.items()) <= {
        (student, "a worker sent an answer that cannot be read") for student in ("s3", "s4")
    }


def test_a_worker_without_the_course_gets_it_again(batch: Batch) -> None:
    batch.start("a")
    batch.on[5] = batch.fake.has.clear
    assert batch.run(*STUDENTS).failed == {} and batch.fake.prepared["a"] == 2 and batch.told == []


def test_the_batch_goes_on_after_an_interrupted_connection(batch: Batch) -> None:
    batch.start("a")
    client = batch.link.client
    batch.on[5] = lambda: client.loop.add_callback(client.scheduler_comm.comm.abort)
    assert batch.run(*STUDENTS).failed == {}


def test_the_error_without_workers_shows_how_to_start_one(batch: Batch) -> None:
    at = batch.link.address
    with pytest.raises(
        ClusterError, match=f"no workers at {at}; start one on each machine: dask worker {at} --host OWN"
    ):
        batch.run("ada", first=0.5)


def test_a_batch_waits_a_while_for_workers(batch: Batch) -> None:
    batch.start("a", lambda student: die() if student == "s6" else None)
    begun = threading.Timer(2, lambda: batch.start("b"))
    begun.start()
    assert batch.run(*STUDENTS, none=20).failed == {}
    begun.join()


def test_finished_reports_are_passed_on_before_the_batch_stops(batch: Batch) -> None:
    batch.start("a", lambda student: die() if student == "s6" else None)
    with pytest.raises(ClusterError, match=f"no worker is left at {batch.link.address}; mend the cause and run"):
        batch.run(*STUDENTS, none=1)
    assert [student for student, _ in batch.came] == STUDENTS[:6]


def test_a_batch_with_only_paused_workers_stops(batch: Batch) -> None:
    paused = batch.start("a")

    def pause() -> None:
        paused.status = distributed.Status.paused

    batch.on[5] = lambda: batch.cluster.loop.add_callback(pause)
    with pytest.raises(ClusterError) as stopped:
        batch.run(*STUDENTS, none=1)
    assert f"no worker is left at {batch.link.address}: {paused.address} (a) {PAUSED}; mend" in str(stopped.value)
