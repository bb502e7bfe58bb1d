"""Send submissions to workers, which may join late, be refused, die or hang. Every submission gets one result.

A submission may be sent to several workers. Their answers are equal, so the first answer counts. If a worker is lost,
no data are lost, because the grading process keeps everything that it sends.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pydantic import ValidationError

from grader import wing
from grader.common.result import Report
from grader.course.config import CourseError
from grader.intake.submission import Submission
from grader.wings.cluster.parcel import About, Answer, Kit, NotUnderstood, packed
from grader.wings.cluster.there import deciding

MOST_LOST = 5  # If this many workers end while they grade a submission, the submission is given up.
AHEAD = 2  # A worker gets this many more submissions than it has threads, so that no thread waits.


class ClusterError(CourseError):
    """The cluster cannot grade any more. The message is one line with the reason, and what to do."""


class NotGradedThere(Exception):
    """A submission that the cluster could not grade."""


@dataclass(frozen=True)
class Patience:
    """Time limits, in seconds of wall time. Reports do not depend on them.

    Attributes:
        silent: if a worker gives no sign of life for this time, its submissions go to other workers.
        first: the first worker must join within this time.
        none: if there is no usable worker for this time, grading stops.
        poll: interval between checks of the workers.
    """

    silent: float = 30.0
    first: float = 10.0
    none: float = 60.0
    poll: float = 1.0


PATIENCE = Patience()


@dataclass(frozen=True)
class WorkerState:
    """A worker as Dask reports it. ``heard``: when it last gave a sign of life. ``problem``: why it is silent."""

    name: str
    threads: int
    folder: str
    heard: float
    problem: str = ""


class Lost(Exception):
    """A request gets no answer, because the worker or the connection is lost."""


class Link(Protocol):
    """The connection to the workers."""

    address: str

    def workers(self) -> Mapping[str, WorkerState]:
        """Return the present workers by address. Raises ClusterError if the scheduler does not answer."""
        ...

    def send(self, to: str, what: str, *words: bytes | str | int) -> int:
        """Request a call on a worker, and return the request's number. ``what``: a function's name in ``there.py``."""
        ...

    def take(self, seconds: float) -> tuple[int, bytes | Exception] | None:
        """Wait for a result, and return (the request's number, the result); None if none arrives within ``seconds``."""
        ...

    def drop(self, number: int) -> None: ...

    def leave(self, workers: list[str], key: str) -> None:
        """Make these workers delete the course with this key (``Kit.key``). Wait at most a few seconds."""
        ...


@dataclass
class Member:
    """A worker for this batch of submissions. ``under_way``: numbers of the requests that it is handling."""

    address: str
    seen: WorkerState
    since: float  # time of the worker's last sign of life, by this process's clock
    state: Literal["new", "asked", "preparing", "ready", "refused"] = "new"
    under_way: set[int] = field(default_factory=set)

    @property
    def called(self) -> str:
        """The worker's address, and the worker's name if it has one."""
        return self.address if self.seen.name in ("", self.address) else f"{self.address} ({self.seen.name})"


@dataclass
class Job:
    """A submission that waits for its report."""

    student: str
    work: bytes
    fingerprint: str
    lost: int = 0
    sent: float = 0.0
    under_way: dict[int, str] = field(default_factory=dict)  # for each open request, the address of its worker


class Dispatch:
    """One batch of submissions, graded by the workers of a cluster.

    Args:
        fingerprint: returns a submission's digest, which the submission's report must contain.
        tell: called with each line of text for the user.
    """

    def __init__(
        self, link: Link, kit: Kit, fingerprint: Callable[[Submission], str], tell: Callable[[str], None],
        patience: Patience = PATIENCE, clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.link, self.kit, self.fingerprint = link, kit, fingerprint
        self.tell, self.patience, self.clock = tell, patience, clock
        self.key = f"{kit.key[:16]}-{secrets.token_hex(8)}"  # unique, because two batches may grade one course
        self.packed = kit.packed()
        self.members: dict[str, Member] = {}
        self.refusals: dict[str, str] = {}
        # For each request number: the worker's address, the called function's name, and the submission (or None).
        self.requests: dict[int, tuple[str, str, Job | None]] = {}
        self.usable_at = clock()
        self.proved = False  # whether any worker has been ready to grade

    def run(
        self,
        students: Sequence[str],
        read: Callable[[str], Submission],
        done: Callable[[str, Report | Exception], None],
    ) -> None:
        """Grade all students' submissions. Call ``done`` in this thread with each result. Raises ClusterError."""
        self.unread, self.again = deque(students), deque[Job]()
        self.left, self.read = set(students), read
        self.open: dict[str, Job] = {}
        self.done = done
        began = self.usable_at = self.clock()
        looked = -self.patience.poll
        try:
            while self.left:
                if self.clock() - looked >= self.patience.poll:
                    self._look()
                    self._stop_without_workers(began)
                    looked = self.clock()
                self._hand_out()
                if self.left and (came := self.link.take(self.patience.poll)):
                    self._came(*came)
        finally:
            for number in self.requests:
                self.link.drop(number)
            self.link.leave([m.address for m in self.members.values() if m.state in ("preparing", "ready")], self.key)

    # workers

    def _look(self) -> None:
        found, now = self.link.workers(), self.clock()
        for address in self.members.keys() - found.keys():
            member = self.members.pop(address)
            for number in list(member.under_way):
                self._lost(number, f"{member.called} ended")
        for address, seen in found.items():
            member = self.members.setdefault(address, Member(address, seen, now))
            if seen.heard != member.seen.heard:
                member.since = now
            member.seen = seen
            if member.state == "new":
                member.state = "asked"
                self._send(member, "about")
        for member in self.members.values():
            if self._silent(member):
                for number in member.under_way:
                    self._elsewhere(self.requests[number][2])

    def _silent(self, member: Member) -> bool:
        return self.clock() - member.since > self.patience.silent

    def _stop_without_workers(self, began: float) -> None:
        """Raise ClusterError if all workers were refused, or if none was usable for as long as ``patience`` allows."""
        now = self.clock()
        if any(m.state != "refused" and not self._silent(m) for m in self.members.values()):
            self.usable_at = now
            return
        at = self.link.address
        if not (self.members or self.refusals or self.proved):
            if now - began > self.patience.first:
                start = f"dask worker {at} --host OWN_ADDRESS --dashboard-address 127.0.0.1:0 --nthreads 1"
                raise ClusterError(f"no workers at {at}; start one on each machine: {start}; then run this again")
        elif not self.proved and self.members and all(m.state == "refused" for m in self.members.values()):
            raise ClusterError(self._no_workers("no worker can grade"))
        elif now - self.usable_at > self.patience.none:
            raise ClusterError(self._no_workers("no worker is left"))

    def _no_workers(self, what: str) -> str:
        silent = [f"{m.called} {m.seen.problem or 'does not answer'}" for m in self.members.values() if self._silent(m)]
        why = [*self.refusals.values(), *silent]
        others = f" (and {len(why) - 1} more)" if len(why) > 1 else ""
        return (
            f"{what} at {self.link.address}{': ' + why[0] + others if why else ''}; "
            "mend the cause and run the same command again; finished reports are kept"
        )

    def _refuse(self, member: Member, why: str) -> None:
        member.state = "refused"
        self.refusals[member.address] = f"{member.called} {why}"
        self.tell(f"not used: {member.called} {why}")
        for number in list(member.under_way):
            self._lost(number, why, counts=False)

    # requests

    def _send(self, member: Member, what: str, *words: bytes | str | int, job: Job | None = None) -> None:
        number = self.link.send(member.address, what, *words)
        self.requests[number] = member.address, what, job
        member.under_way.add(number)
        if job:
            job.under_way[number], job.sent = member.address, self.clock()

    def _over(self, number: int) -> tuple[Member | None, str, Job | None]:
        address, what, job = self.requests.pop(number)
        member = self.members.get(address)
        if member:
            member.under_way.discard(number)
        if job:
            job.under_way.pop(number, None)
        return member, what, job

    def _hand_out(self) -> None:
        while ready := [m for m in self.members.values() if self._takes_more(m)]:
            member = min(ready, key=lambda m: len(m.under_way) / m.seen.threads)
            if len(member.under_way) >= member.seen.threads + AHEAD or (job := self._next(member)) is None:
                return
            self._send(member, "grade", self.key, job.work, job=job)

    def _takes_more(self, member: Member) -> bool:
        alone = any(job and job.lost for _, _, job in map(self.requests.__getitem__, member.under_way))
        return member.state == "ready" and not self._silent(member) and not alone

    def _next(self, member: Member) -> Job | None:
        """Return the next submission for this worker, or None.

        If a worker ended, each of its submissions may be the cause. So these submissions come last, and a worker gets
        them one at a time. If no submission waits, an idle worker gets one that another worker has had for a long time.
        """
        if job := self._waiting(lost=False):
            return job
        while self.unread:
            student = self.unread.popleft()
            try:
                submission = self.read(student)
                job = Job(student, packed(submission), self.fingerprint(submission))
            except Exception as error:
                self._finish(student, error)
                continue
            self.open[student] = job
            return job
        if member.under_way:
            return None
        if job := self._waiting(lost=True):
            return job
        long = [
            j for j in self.open.values()
            if len(j.under_way) == 1 and member.address not in j.under_way.values()
            and self.clock() - j.sent > self.patience.silent
        ]  # fmt: skip
        return min(long, key=lambda j: j.sent, default=None)

    def _waiting(self, *, lost: bool) -> Job | None:
        self.again = deque(j for j in self.again if j.student in self.left and not j.under_way)
        job = next((j for j in self.again if bool(j.lost) == lost), None)
        if job:
            self.again.remove(job)
        return job

    def _elsewhere(self, job: Job | None) -> None:
        """Queue a silent worker's submission for another worker. The silent worker's answer still counts."""
        if job is None or job.student not in self.left or job in self.again:
            return
        where = [self.members[a] for a in job.under_way.values() if a in self.members]
        if all(self._silent(m) for m in where):
            job.under_way.clear()
            self.again.append(job)

    def _lost(self, number: int, why: str, *, counts: bool = True) -> None:
        """Queue a lost request's submission again, or give it up after MOST_LOST losses that had ``counts=True``."""
        _, _, job = self._over(number)
        self.link.drop(number)
        if job is None or job.student not in self.left:
            return
        job.lost += counts
        if job.lost >= MOST_LOST:
            text = f"{job.lost} workers ended while they graded this submission, the last: {why}"
            self._finish(job.student, NotGradedThere(text))
        elif not job.under_way and job not in self.again:
            self.again.append(job)

    def _came(self, number: int, what_came: bytes | Exception) -> None:
        if number not in self.requests:
            return
        address, what, job = self.requests[number]
        member = self.members[address]
        if isinstance(what_came, Lost):
            self._lost(number, f"{member.called} did not answer")
            if what != "grade":
                member.state = "new"
            return
        # An exception comes from Dask itself. The functions in there.py return their errors and do not raise them.
        if isinstance(what_came, Exception):
            if what == "about":
                self._over(number)
                self._refuse(member, _cannot_be_asked(what_came))
            else:
                self._lost(number, f"{member.called}: {type(what_came).__name__}: {what_came}")
            return
        try:
            if what == "grade" and job:
                self._graded(number, member, job, Answer.unpacked(what_came))
                return
            self._over(number)
            if what == "about":
                self._admit(member, About.unpacked(what_came))
            else:
                self._prepared(member, Answer.unpacked(what_came))
        except NotUnderstood:  # the worker is refused, and other workers get its submissions
            self._refuse(member, "sends answers that cannot be read")

    def _admit(self, member: Member, about: About) -> None:
        """Send the course to the worker, or refuse a worker with different software or without a working sandbox."""
        here = deciding()
        for name in dict.fromkeys([*here, *about.versions]):
            has, needs = about.versions.get(name, "none"), here.get(name, "none")
            if has != needs:
                self._refuse(
                    member, f"has {name} {has}, this machine has {needs}: install this machine's version on the worker"
                )
                return
        if problem := about.problems.get(self.kit.tier, f"does not know isolation {self.kit.tier}"):
            self._refuse(member, f"cannot confine learner code: isolation {self.kit.tier}: {problem}")
            return
        member.state = "preparing"
        self._send(member, "prepare", self.key, self.packed, member.seen.folder, member.seen.threads)

    def _prepared(self, member: Member, answer: Answer) -> None:
        if answer.problem:
            self._refuse(member, f"cannot grade: {answer.problem}")
        else:
            member.state, self.proved = "ready", True

    def _graded(self, number: int, member: Member, job: Job, answer: Answer) -> None:
        if answer.absent:  # a new worker process, which does not have the course, runs at this address
            self._lost(number, "it was restarted", counts=False)
            member.state = "new"
            return
        if answer.problem:
            self._finish(job.student, NotGradedThere(answer.problem))
            return
        try:
            report = Report.loads(answer.report)
        except ValidationError:
            raise NotUnderstood from None
        if (report.student, report.fingerprint) != (job.student, job.fingerprint):
            raise NotUnderstood
        self._finish(job.student, report)

    def _finish(self, student: str, result: Report | Exception) -> None:
        """Record a submission's result. Only the first result of a submission counts."""
        if student not in self.left:
            return
        self.left.discard(student)
        job = self.open.pop(student, None)
        for number in [n for n, (_, _, of) in self.requests.items() if job and of is job]:
            self.link.drop(number)
            self._over(number)
        self.done(student, result)


def _cannot_be_asked(error: Exception) -> str:
    if isinstance(error, ImportError | AttributeError):
        return f"has no usable shardlings ({error}): {wing.install('[cluster]')}, here and on the worker's machine"
    return f"cannot answer: {type(error).__name__}: {error}"
