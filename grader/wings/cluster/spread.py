"""A grader that grades batches of submissions on a cluster's workers, and does everything else on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from grader.batch.grade import Grader
from grader.common.result import Report
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.intake.submission import Submission
from grader.reports.points import counted
from grader.sandbox.tiers import TIERS, NoIsolation, best_tier
from grader.wings.cluster.dispatch import PATIENCE, Dispatch, Patience
from grader.wings.cluster.link import ClusterError, Dask, is_exposed
from grader.wings.cluster.parcel import Kit


class Spread(Grader):
    """Grades batches on workers, which give the same verdicts as this machine.

    Args:
        tier: isolation tier (kind of sandbox) on each worker. This machine need not support the tier.
        tell: a function that is called with each line of text for the user.
        remember: whether a worker grades equal submissions of a class only once.
    """

    proves_itself = True

    def __init__(
        self, course: Course, tier: str, address: str, tell: Callable[[str], None], *, remember: bool = True,
        patience: Patience = PATIENCE,
    ) -> None:  # fmt: skip
        """Connect to the scheduler. Raises ClusterError if no scheduler answers."""
        super().__init__(course, tier)
        self.remember, self.tell, self.patience = remember, tell, patience
        self.link = Dask(address)
        found = self.link.workers()
        threads = sum(worker.threads for worker in found.values())
        tell(
            f"{address}: {counted(len(found), 'worker')}, {counted(threads, 'submission')} at a time"
            + (f"; dashboard: {self.link.dashboard}" if self.link.dashboard else "")
        )
        if is_exposed(self.link.listens_at):
            tell(
                f"warning: {self.link.listens_at} takes unencrypted connections from the network, and anyone who "
                "reaches it can run any code there; use TLS (docs/wings/cluster.md), or start the scheduler with "
                "--host 127.0.0.1"
            )

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.link.close()

    def warm(self) -> None:
        """Do nothing, because the workers start their own processes."""

    def batch(
        self,
        students: Iterable[str],
        submission_of: Callable[[str], Submission],
        names: list[str],
        done: Callable[[str, Report | Exception], None],
    ) -> None:
        """Grade submissions on the workers. Raises ClusterError if no usable worker is left."""
        if waiting := list(students):
            kit = Kit.of(self.course, names, self.tier, remember=self.remember)
            Dispatch(self.link, kit, lambda s: self.fingerprint(s, names), self.tell, self.patience).run(
                waiting, submission_of, done
            )


@dataclass(frozen=True)
class OnCluster:
    """The value of ``--cluster``: the address of a scheduler. Implements ``batch.backends.Elsewhere``."""

    address: str
    tell: Callable[[str], None]

    def refuse(self, jobs: int | None, *, beside: bool) -> None:
        if beside:
            raise CourseError("--cluster works only with simulated devices: leave --backend and --processes out")
        if jobs:
            raise CourseError(
                "with --cluster leave -j out: dask worker --nthreads sets how many submissions a worker grades at once"
            )

    def tier_of(self, asked: str) -> str:
        """Return the workers' isolation tier (kind of sandbox): ``asked``, or for "auto" this machine's best tier.

        Raises:
            ClusterError: ``asked`` is "auto", and no sandbox works on this machine.
            NoIsolation: ``asked`` is neither "auto" nor the name of a tier.
        """
        if asked in TIERS:
            return asked
        try:
            return best_tier(asked)
        except NoIsolation:
            if asked != "auto":
                raise
            raise ClusterError(
                "no sandbox works on this machine, so name the sandbox that the workers use: "
                "--isolation sandlock, or --isolation bwrap"
            ) from None

    def grader(self, course: Course, tier: str, *, remember: bool) -> Grader:
        return Spread(course, tier, self.address, self.tell, remember=remember)
