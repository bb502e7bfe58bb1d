"""Grade submissions on the workers of a Dask cluster, which may join late, be refused, die or hang.

This module prepares each worker, and gives Dask as many submissions as the prepared workers have threads. Dask chooses
the workers, and chooses other workers if some end. Every submission gets one result. The grading process keeps
everything that it sends, so no data are lost with a worker.
"""

from __future__ import annotations

import queue
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from grader import wing
from grader.common.result import Report
from grader.intake.submission import Submission
from grader.wings.cluster import there
from grader.wings.cluster.link import ClusterError, Dask, WorkerSeen, first_line, grade, prepare, why
from grader.wings.cluster.parcel import Answer, Kit, packed

PAUSED = "is paused by Dask, because its memory is almost full; restart it with a larger dask worker --memory-limit"


class NotGradedThere(Exception):
    """A submission that the cluster could not grade."""


@dataclass(frozen=True)
class Patience:
    """Time limits, in seconds of wall time. Reports do not depend on them."""

    silent: float = 30.0  # if a submission has no report after this time, an idle worker grades it, too
    first: float = 10.0  # the first worker must join within this time
    none: float = 60.0  # if there is no usable worker for this time, grading stops
    poll: float = 1.0  # interval between checks of the workers


PATIENCE = Patience()


@dataclass
class Job:
    """A submission that waits for its report.

    Attributes:
        futures: Dask's futures for the open requests, by their keys.
        lost: whether Dask gave up an earlier request, for example because several workers ended.
    """

    student: str
    work: bytes
    fingerprint: str
    sent: float = 0.0
    futures: dict[str, Any] = field(default_factory=dict)
    lost: bool = False


class Dispatch:
    """One batch of submissions, graded by the workers of a cluster.

    Args:
        fingerprint: returns a submission's digest, which the submission's report must contain.
        tell: called with each line of text for the user.
    """

    def __init__(
        self, link: Dask, kit: Kit, fingerprint: Callable[[Submission], str], tell: Callable[[str], None],
        patience: Patience = PATIENCE,
    ) -> None:  # fmt: skip
        self.link, self.kit, self.fingerprint, self.tell, self.patience = link, kit, fingerprint, tell, patience
        self.key = f"shardlings-{secrets.token_hex(8)}"  # unique, because two batches may grade one course
        self.packed = packed(kit)
        self.workers: dict[str, WorkerSeen] = {}  # the present workers by address
        self.preparing: dict[str, Any] = {}  # Dask's futures by address
        self.refused: dict[str, str] = {}  # for each refused worker, also after its end, a line with the reason
        self.jobs: dict[str, Job] = {}  # the submissions under way, by the key of each open request
        self.again = deque[Job]()  # submissions whose request was interrupted
        self.lost = deque[Job]()  # submissions that Dask gave up
        self.proved = False  # whether any worker has been ready to grade

    def run(
        self,
        students: Sequence[str],
        read: Callable[[str], Submission],
        done: Callable[[str, Report | Exception], None],
    ) -> None:
        """Grade all students' submissions. Call ``done`` in this thread with each result. Raises ClusterError.

        If several workers ended while they had a submission, Dask gives it up, although another submission of these
        workers may be the cause. So this submission is graded again at the end, alone.
        """
        self.done, self.usable_at = done, time.monotonic()
        try:
            self._look()
            self._grade(self._read(students, read))
            while self.lost:
                self._grade(iter([self.lost.popleft()]))
        finally:
            for key, job in self.jobs.items():
                job.futures[key].release()
            self.link.leave(self.workers, self.key)

    def _read(self, students: Sequence[str], read: Callable[[str], Submission]) -> Iterator[Job]:
        for student in students:
            try:
                submission = read(student)
                job = Job(student, packed(submission), self.fingerprint(submission))
            except Exception as error:
                self.done(student, error)
                continue
            yield job

    def _grade(self, jobs: Iterator[Job]) -> None:
        """Grade submissions, as many at a time as the usable workers have threads."""
        coming = next(jobs, None)
        while coming or self.again or self.jobs:
            if time.monotonic() - self.looked >= self.patience.poll:
                self._look()
            usable = [w for a, w in self.workers.items() if w.ready and not w.paused and a not in self.refused]
            while len(self.jobs) < sum(worker.threads for worker in usable):
                if self.again:
                    job = self.again.popleft()
                elif coming:
                    job, coming = coming, next(jobs, None)
                elif not (len(usable) > 1 and (job := self._long_sent())):
                    break
                job.sent = time.monotonic()
                future = self.link.request(grade, self.key, job.work, resources={self.key: 1})
                job.futures[future.key] = future
                self.jobs[future.key] = job
            with suppress(queue.Empty):
                self._came(*self.link.came.get(timeout=self.patience.poll))

    # workers

    def _look(self) -> None:
        """Read which workers are present, prepare new workers, and stop if no worker is usable."""
        self.workers, self.looked = self.link.workers(self.key), time.monotonic()
        for address in self.preparing.keys() - self.workers.keys():
            self.preparing.pop(address).release()
        for address, seen in self.workers.items():
            if not (seen.ready or address in self.preparing or address in self.refused):
                self.preparing[address] = self.link.request(
                    prepare, self.key, there.deciding(), self.kit.tier, self.packed, workers=[address]
                )
        self.proved = self.proved or any(seen.ready for seen in self.workers.values())
        if any(not seen.paused for address, seen in self.workers.items() if address not in self.refused):
            self.usable_at = self.looked
        else:
            self._stop_without_workers(self.looked - self.usable_at)

    def _stop_without_workers(self, seconds: float) -> None:
        """Raise ClusterError if all workers were refused, or if none was usable for as long as ``patience`` allows."""
        at = self.link.address
        if not (self.workers or self.refused or self.proved):
            if seconds > self.patience.first:
                start = f"dask worker {at} --host OWN_ADDRESS --dashboard-address 127.0.0.1:0 --nthreads 1"
                raise ClusterError(f"no workers at {at}; start one on each machine: {start}; then run this again")
            return
        paused = [f"{seen.called} {PAUSED}" for seen in self.workers.values() if seen.paused]
        all_refused = self.workers and not (self.proved or paused)
        if all_refused or seconds > self.patience.none:
            what = "no worker can grade" if all_refused else "no worker is left"
            reasons = [*self.refused.values(), *paused]
            others = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
            reason = f": {reasons[0]}{others}" if reasons else ""
            raise ClusterError(
                f"{what} at {at}{reason}; mend the cause and run the same command again; finished reports are kept"
            )

    def _refuse(self, address: str, reason: str) -> None:
        if address in self.workers and address not in self.refused:
            self.refused[address] = f"{self.workers[address].called} {reason}"
            self.tell(f"not used: {self.refused[address]}")

    def _prepared(self, address: str, came: Any) -> None:
        """Refuse the worker if it cannot grade."""
        del self.preparing[address]
        if isinstance(came, CancelledError):  # the connection was interrupted, and ``_look`` asks again
            return
        try:
            problem = (
                _cannot_be_asked(came) if isinstance(came, Exception) else Answer.model_validate_json(came).problem
            )
        except ValueError:
            problem = "sends answers that cannot be read"
        if problem:
            self._refuse(address, problem)
        self._look()

    # submissions

    def _long_sent(self) -> Job | None:
        """Return a submission that a worker has had for a long time, so that an idle worker grades it, too."""
        before = time.monotonic() - self.patience.silent
        return next((job for job in self.jobs.values() if job.sent < before and len(job.futures) == 1), None)

    def _came(self, key: str, came: Any) -> None:
        if job := self.jobs.pop(key, None):
            del job.futures[key]
            self._graded(job, came)
            return
        for address, future in self.preparing.items():
            if future.key == key:
                self._prepared(address, came)
                return

    def _graded(self, job: Job, came: Any) -> None:
        """Record the result that came, or put the submission back into the queue."""
        result, reason = None, "a worker sent an answer that cannot be read"
        if isinstance(came, Exception):
            reason = why(came)
        else:
            with suppress(ValueError):
                result = _result(job, came)
        if result is None and job.futures:  # the other request may still bring a report
            return
        if isinstance(came, CancelledError):  # the connection was interrupted
            self.again.append(job)
        elif result is None and not job.lost:
            job.lost = True
            self.lost.append(job)
        else:
            self._finish(job, result or NotGradedThere(reason))

    def _finish(self, job: Job, result: Report | Exception) -> None:
        """Record a submission's result. Drop its other request, because only the first result counts."""
        for key, future in job.futures.items():
            del self.jobs[key]
            future.release()
        self.done(job.student, result)


def _result(job: Job, came: Any) -> Report | NotGradedThere:
    """Return the result in an answer. Raises ValueError if the answer has no report on this submission."""
    answer = Answer.model_validate_json(came)
    if answer.problem:
        return NotGradedThere(answer.problem)
    report = Report.loads(answer.report)
    if (report.student, report.fingerprint) != (job.student, job.fingerprint):
        raise ValueError(report.student)
    return report


def _cannot_be_asked(error: Exception) -> str:
    if isinstance(error, ImportError | AttributeError):
        return f"has no usable shardlings ({error}): {wing.install('[cluster]')}, here and on the worker's machine"
    return f"cannot answer: {type(error).__name__}: {first_line(error)}"
