"""Simulated workers grade each submission once, although workers die, hang, come late or are unusable."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from grader.common.result import Report
from grader.intake.submission import Chunk, Source, Submission, Unreadable
from grader.wings.cluster.dispatch import MOST_LOST, ClusterError, Dispatch, Lost, NotGradedThere, Patience, WorkerState
from grader.wings.cluster.parcel import About, Answer, Kit, unpacked
from grader.wings.cluster.there import deciding

KIT = Kit(config="{}", files={}, names=["e"], digest="d", tier="bwrap", remember=True)
AT = "tcp://scheduler:1"
Word = bytes | Exception | None


def a_report(student: str) -> Report:
    return Report(
        student=student, course="c", versions={}, isolation="bwrap", backend="cpu", fingerprint=f"of {student}",
        points=0, earned=0, pending=0, exercises=[],
    )  # fmt: skip


def work_of(student: str) -> Submission:
    return Submission(
        student, {"e": Source("e.py", (Chunk("e.py", f"# {student} \ud800"),))}, ("a note",), "d", ("unread",)
    )


class Worker:
    """A simulated worker that answers correctly. Tests derive workers with faults from it."""

    def __init__(self, threads: int = 1) -> None:
        self.threads, self.heard, self.graded = threads, 0.0, list[str]()
        self.versions = deciding()
        self.problems: dict[str, str] = dict.fromkeys(("sandlock", "bwrap", "none"), "")

    def about(self) -> Word:
        return About(versions=self.versions, problems=self.problems).packed()

    def prepare(self, key: str, kit: bytes, folder: str, jobs: int) -> Word:
        assert Kit.unpacked(kit) == KIT and jobs == self.threads
        return Answer().packed()

    def grade(self, key: str, work: bytes) -> Word:
        student = unpacked(work).student
        assert unpacked(work) == work_of(student)
        self.graded.append(student)
        return Answer(report=a_report(student).dumps()).packed()


class Cluster:
    """Simulated workers, each of which answers one request at a time, and a simulated clock."""

    def __init__(self, **workers: Worker) -> None:
        self.address, self.there, self.now = AT, dict(workers), 0.0
        self.asked: list[tuple[int, str, str, tuple]] = []
        self.dropped: list[int] = []
        self.left: list[str] = []
        self.silent: set[str] = set()
        self.at: dict[float, Callable[[], object]] = {}  # events by time
        self.sent = 0

    def workers(self) -> Mapping[str, WorkerState]:
        return {
            name: WorkerState(name, w.threads, "", 0.0 if name in self.silent else self.now)
            for name, w in self.there.items()
        }

    def send(self, to: str, what: str, *words: bytes | str | int) -> int:
        self.sent += 1
        self.asked.append((self.sent, to, what, words))
        return self.sent

    def take(self, seconds: float) -> tuple[int, bytes | Exception] | None:
        self.now += 0.4
        for when in [w for w in self.at if w <= self.now]:
            self.at.pop(when)()
        for one in list(self.asked):
            number, to, what, words = one
            if to in self.there and to not in self.silent and number not in self.dropped:
                self.asked.remove(one)
                if (word := getattr(self.there[to], what)(*words)) is not None:
                    return number, word
        return None

    def drop(self, number: int) -> None:
        self.dropped.append(number)

    def leave(self, workers: list[str], key: str) -> None:
        self.left = workers


class Batch:
    """A batch of students, and its results."""

    def __init__(self, cluster: Cluster, *students: str, **patience: float) -> None:
        self.came: list[tuple[str, Report | Exception]] = []
        self.told: list[str] = []
        self.dispatch = Dispatch(
            cluster, KIT, lambda s: f"of {s.student}", self.told.append, Patience(**patience), lambda: cluster.now
        )
        self.students, self.unreadable = students, ""

    def run(self) -> Batch:
        self.dispatch.run(self.students, self.read, lambda student, result: self.came.append((student, result)))
        return self

    def read(self, student: str) -> Submission:
        if student == self.unreadable:
            raise Unreadable("cannot read it")
        return work_of(student)

    @property
    def whole(self) -> bool:
        """Return whether the batch has exactly one report for each student, and it is a report on this student."""
        return sorted(s for s, _ in self.came) == sorted(self.students) and all(r == a_report(s) for s, r in self.came)


STUDENTS = [f"s{n}" for n in range(20)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_student_is_graded_once_by_any_number_of_workers(count: int) -> None:
    cluster = Cluster(**{f"w{n}": Worker(threads=n + 1) for n in range(count)})
    assert Batch(cluster, *STUDENTS).run().whole
    assert all(w.graded for w in cluster.there.values()) and sum(len(w.graded) for w in cluster.there.values()) == 20
    assert sorted(cluster.left) == sorted(cluster.there)  # the batch asked every worker to delete the course


def test_a_worker_that_is_killed_loses_nothing() -> None:
    cluster = Cluster(a=Worker(), b=Worker())
    cluster.at[6.0] = lambda: cluster.there.pop("a")
    batch = Batch(cluster, *STUDENTS).run()
    assert batch.whole and batch.told == []


def test_a_worker_that_comes_later_takes_part() -> None:
    late = Worker()
    cluster = Cluster(a=Worker())
    cluster.at[3.0] = lambda: cluster.there.update(late=late)
    assert Batch(cluster, *STUDENTS).run().whole and late.graded


def test_a_restarted_worker_at_the_same_address_gets_the_course_again() -> None:
    class Forgetful(Worker):
        prepared = 0

        def prepare(self, key: str, kit: bytes, folder: str, jobs: int) -> Word:
            self.prepared += 1
            return super().prepare(key, kit, folder, jobs)

        def grade(self, key: str, work: bytes) -> Word:
            if len(self.graded) == 5 and self.prepared == 1:
                return Answer(absent=True).packed()
            return super().grade(key, work)

    worker = Forgetful()
    assert Batch(Cluster(a=worker), *STUDENTS).run().whole and worker.prepared == 2


@pytest.mark.parametrize("while_", ["about", "prepare", "grade"])
def test_a_worker_that_hangs_is_worked_around_in_bounded_time(while_: str) -> None:
    cluster = Cluster(hangs=Worker(), works=Worker())

    def hang(*words: object) -> None:
        cluster.silent.add("hangs")

    setattr(cluster.there["hangs"], while_, hang)
    assert Batch(cluster, *STUDENTS, silent=5).run().whole
    assert cluster.now < 40


def test_idle_workers_take_over_from_a_live_worker_without_answers() -> None:
    class Stuck(Worker):
        def grade(self, key: str, work: bytes) -> Word:
            return None

    cluster = Cluster(stuck=Stuck(), works=Worker())
    assert Batch(cluster, *STUDENTS, silent=5).run().whole and cluster.now < 60


def test_a_late_answer_does_not_count_twice() -> None:
    cluster = Cluster(slow=Worker(), works=Worker())
    cluster.at[3.0] = lambda: cluster.silent.add("slow")
    cluster.at[20.0] = lambda: cluster.silent.discard("slow")
    assert Batch(cluster, *[f"s{n}" for n in range(60)], silent=5).run().whole


def test_a_submission_that_ends_workers_is_given_up() -> None:
    class Ends(Worker):
        def grade(self, key: str, work: bytes) -> Word:
            return Lost() if unpacked(work).student == "s3" else super().grade(key, work)

    batch = Batch(Cluster(a=Ends(), b=Ends()), *STUDENTS).run()
    failed = {s: str(r) for s, r in batch.came if isinstance(r, Exception)}
    assert failed == {
        "s3": f"{MOST_LOST} workers ended while they graded this submission, the last: {failed['s3'].split(': ')[1]}"
    }
    assert len(batch.came) == 20 and failed["s3"].endswith("did not answer")


def test_a_submission_that_ends_workers_costs_no_other_submission_its_report() -> None:
    class Ends(Worker):
        """A worker that ends with all of its submissions. A new worker replaces it at another address."""

        def grade(self, key: str, work: bytes) -> Word:
            if unpacked(work).student != "s3":
                return super().grade(key, work)
            cluster.there = {name: w for name, w in cluster.there.items() if w is not self}
            cluster.there[f"w{cluster.sent}"] = Ends()
            return None

    cluster = Cluster(a=Ends(), b=Ends())
    batch = Batch(cluster, *STUDENTS).run()
    assert [s for s, result in batch.came if isinstance(result, Exception)] == ["s3"] and len(batch.came) == 20


def test_a_grader_error_on_a_worker_stops_no_other_submission() -> None:
    class FailsOnS3(Worker):
        def grade(self, key: str, work: bytes) -> Word:
            bad = unpacked(work).student == "s3"
            return Answer(problem="KeyError: 'x'").packed() if bad else super().grade(key, work)

    batch = Batch(Cluster(a=FailsOnS3()), *STUDENTS).run()
    assert [(s, type(r), str(r)) for s, r in batch.came if isinstance(r, Exception)] == [
        ("s3", NotGradedThere, "KeyError: 'x'")
    ]


def test_an_unreadable_submission_is_not_sent() -> None:
    batch = Batch(Cluster(a=Worker()), "ada", "bob")
    batch.unreadable = "bob"
    assert {s: str(r) for s, r in batch.run().came if isinstance(r, Exception)} == {"bob": "cannot read it"}


def with_(**versions: str) -> Worker:
    worker = Worker()
    worker.versions = worker.versions | versions
    return worker


def without_sandbox() -> Worker:
    worker = Worker()
    worker.problems = worker.problems | {"bwrap": "bwrap is not installed; apt-get install bubblewrap"}
    return worker


class CanaryFails(Worker):
    def prepare(self, key: str, kit: bytes, folder: str, jobs: int) -> Word:
        return Answer(
            problem="the test with the course's solutions failed: the reference of e gets 0 of 1 points here"
        ).packed()


class Garbage(Worker):
    def about(self) -> Word:
        return b"what?"


class OfAnother(Worker):
    """A worker that answers with another student's report."""

    def grade(self, key: str, work: bytes) -> Word:
        return Answer(report=a_report("eve").dumps()).packed()


class Older(Worker):
    def about(self) -> Word:
        return ModuleNotFoundError("No module named 'grader'")


HERE = deciding()
REFUSED = {
    "jax": (lambda: with_(jax="0.9.9"), f"has jax 0.9.9, this machine has {HERE['jax']}: install this machine's version on the worker"),
    "python": (lambda: with_(Python="3.10"), f"has Python 3.10, this machine has {HERE['Python']}: install"),
    "code": (lambda: with_(**{"its code": "0"}), f"has its code 0, this machine has {HERE['its code']}: install"),
    "package": (lambda: with_(einops="9"), "has einops 9, this machine has"),
    "sandbox": (without_sandbox, "cannot confine learner code: isolation bwrap: bwrap is not installed; apt-get"),
    "canary": (CanaryFails, "cannot grade: the test with the course's solutions failed: the reference of e gets 0 of 1 points here"),
    "garbage": (Garbage, "sends answers that cannot be read"),
    "another": (OfAnother, "sends answers that cannot be read"),
    "none": (Older, "has no usable shardlings (No module named 'grader'): in the checkout of shardlings, run: pip install"),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_a_worker_that_would_grade_differently_is_refused_and_the_others_go_on(why: str) -> None:
    make, text = REFUSED[why]
    odd = make()
    batch = Batch(Cluster(odd=odd, good=Worker()), *STUDENTS).run()
    assert batch.whole and odd.graded == [] and len(batch.told) == 1
    assert batch.told[0].startswith(f"not used: odd {text}")


@pytest.mark.parametrize("why", REFUSED)
def test_the_batch_stops_with_one_line_if_no_worker_is_left(why: str) -> None:
    make, text = REFUSED[why]
    cluster = Cluster(odd=make())
    with pytest.raises(ClusterError) as stopped:
        Batch(cluster, *STUDENTS, none=30).run()
    assert cluster.now < 10 or why == "another"
    # In the case "another", the batch first accepts the worker. In all other cases, it refuses the worker immediately.
    what = "no worker is left" if why == "another" else "no worker can grade"
    assert str(stopped.value).startswith(f"{what} at {AT}: odd {text}")
    assert "\n" not in str(stopped.value)
    assert str(stopped.value).endswith("mend the cause and run the same command again; finished reports are kept")


def test_the_error_without_workers_shows_how_to_start_one() -> None:
    with pytest.raises(
        ClusterError, match=f"no workers at {AT}; start one on each machine: dask worker {AT} --host OWN_ADDRESS "
    ):
        Batch(Cluster(), "ada").run()


def test_a_batch_without_workers_waits_a_while_for_others() -> None:
    cluster = Cluster(a=Worker())
    cluster.at[3.0] = lambda: cluster.there.pop("a")
    cluster.at[9.0] = lambda: cluster.there.update(b=Worker())
    assert Batch(cluster, *STUDENTS, none=20).run().whole
    cluster = Cluster(a=Worker())
    cluster.at[3.0] = lambda: cluster.there.pop("a")
    batch = Batch(cluster, *STUDENTS, none=20)
    with pytest.raises(ClusterError, match=f"no worker is left at {AT}; mend the cause and run"):
        batch.run()
    assert batch.came and cluster.now < 40  # the batch passed on the reports that came before the error
