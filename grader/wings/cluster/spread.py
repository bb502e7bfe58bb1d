"""A grader whose batches are graded by the workers of a cluster. All else it does here, as ever."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from grader.batch.grade import Grader
from grader.common.result import Report
from grader.course.loading import Course
from grader.intake.submission import Submission
from grader.sandbox.tiers import TIERS, NoIsolation, best_tier
from grader.wings.cluster.dispatch import PATIENCE, ClusterError, Dispatch, Patience
from grader.wings.cluster.link import Dask
from grader.wings.cluster.parcel import Kit


class Spread(Grader):
    """Sends what is to be graded to workers that grade as this machine would.

    Args:
        tier: isolation, on each worker; it need not be available here.
        tell: is given lines for the person who waits.
        remember: whether a worker does equal work of a class once.
    """

    proves_itself = True

    def __init__(
        self, course: Course, tier: str, address: str, tell: Callable[[str], None], *, remember: bool = True,
        patience: Patience = PATIENCE,
    ) -> None:  # fmt: skip
        """Raises ClusterError: no scheduler answers there."""
        super().__init__(course, tier)
        self.remember, self.tell, self.patience = remember, tell, patience
        self.link = Dask(address)
        threads = sum(w.threads for w in self.link.workers().values())
        count = len(self.link.workers())
        tell(
            f"{address}: {count} worker{'' if count == 1 else 's'}, {threads} submissions at a time"
            + (f"; dashboard: {self.link.dashboard}" if self.link.dashboard else "")
        )

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.link.close()

    def warm(self) -> None:
        """Nothing: it is for the workers to start."""

    def batch(
        self,
        students: Iterable[str],
        read: Callable[[str], Submission],
        names: list[str],
        done: Callable[[str, Report | Exception], None],
    ) -> None:
        """The same, on the workers. Raises ClusterError when none is left that can grade."""
        if waiting := list(students):
            kit = Kit.of(self.course, names, self.tier, remember=self.remember)
            Dispatch(self.link, kit, lambda s: self.fingerprint(s, names), self.tell, self.patience).run(
                waiting, read, done
            )


@dataclass(frozen=True)
class OnCluster:
    """Settings of a cluster; makes the grader that uses it."""

    address: str
    tell: Callable[[str], None]

    def tier_of(self, asked: str) -> str:
        return tier_of(asked)

    def grader(self, course: Course, tier: str, *, remember: bool) -> Grader:
        return Spread(course, tier, self.address, self.tell, remember=remember)


def tier_of(asked: str) -> str:
    """The isolation that workers are asked for: the one named, else what this machine has. Raises NoIsolation, ClusterError."""
    if asked in TIERS:
        return asked
    try:
        return best_tier(asked)
    except NoIsolation:
        if asked != "auto":
            raise
        raise ClusterError(
            "no sandbox works on this machine, so say which one the workers are to use: "
            "--isolation sandlock, or --isolation bwrap"
        ) from None
