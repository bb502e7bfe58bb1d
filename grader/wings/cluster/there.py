"""The functions that run on a worker. They describe the worker, prepare it for a course, and grade submissions.

The grading process calls these functions by name, so it sends no code. Data are passed as bytes. A worker writes to one
folder of its own, inside Dask's temporary folder. The worker deletes this folder when the batch ends, when the worker
ends, or after LEASE seconds without a request.
"""

from __future__ import annotations

import atexit
import contextlib
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from grader.batch import canary
from grader.batch.grade import Grader
from grader.batch.reporting import own_digest, versions
from grader.common.cache import MOST, Cache
from grader.sandbox import needs
from grader.sandbox.tiers import TIERS, available, best_tier
from grader.wings.cluster.parcel import About, Answer, Kit, unpacked

LEASE = 600.0  # seconds without a request after which a worker deletes a course


class Bench:
    """A course in a folder of its own on a worker, and a grader for the course."""

    def __init__(self, kit: Kit, folder: Path, jobs: int) -> None:
        """Write the course's files to ``folder``, and make a grader for them. Raises CourseError, NoIsolation."""
        self.names = kit.names
        self.course = kit.laid_out(folder / "course")
        self.cache = Cache(folder / "cache", MOST) if kit.remember else None
        self.grader = Grader(self.course, best_tier(kit.tier), jobs, cache=self.cache)
        self.folder, self.used, self.active, self.given_up = folder, time.monotonic(), 0, False

    def close(self) -> None:
        self.grader.__exit__()
        if self.cache:
            self.cache.close()
        shutil.rmtree(self.folder, ignore_errors=True)


_benches: dict[str, Bench] = {}
_proved: set[str] = set()  # keys (``canary.key_of``) of exercises whose solution got full marks in this process
_lock = threading.RLock()


def about() -> bytes:
    return About(versions=deciding(), problems={tier: available(tier) for tier in TIERS}).packed()


def deciding() -> dict[str, str]:
    """Return the versions on which verdicts depend, by name, including packages that learners may import."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2]), **versions(), "its code": own_digest()[:12]}
    for package in needs.PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found.setdefault(package, version(package))
    return found


def prepare(key: str, kit: bytes, folder: str, jobs: int) -> bytes:
    """Store a course and grade its solutions. Return an ``Answer``, with a problem if this worker cannot grade.

    Args:
        key: the key by which later requests name the course.
        kit: a ``Kit`` as bytes: the course's files and settings.
        folder: the folder in which this worker may write.
        jobs: the number of submissions that this worker will grade at a time.
    """
    try:
        place = Path(tempfile.mkdtemp(prefix="shardlings-course-", dir=folder))
        bench = Bench(taken := Kit.unpacked(kit), place, jobs)
    except Exception as error:  # return the error: the grading process then refuses this worker
        return Answer(problem=f"{type(error).__name__}: {error}").packed()
    _keep(key, bench)
    with _at_work(key):
        problem = _problem(bench, taken)
    if problem:
        leave(key)
    return Answer(problem=problem).packed()


def grade(key: str, work: bytes) -> bytes:
    """Grade one submission. Return an ``Answer`` with the report, or with the reason why there is none.

    ``key``: the course's key. ``work``: the submission as bytes.
    """
    with _at_work(key) as bench:
        if bench is None:
            return Answer(absent=True).packed()
        try:
            report = bench.grader.grade(unpacked(work), bench.names)
        except Exception as error:  # an error in the grader must not stop other submissions
            return Answer(problem=f"{type(error).__name__}: {error}").packed()
        return Answer(report=report.dumps()).packed()


def leave(key: str) -> None:
    """End a course's processes, even while they grade, and delete the course's files."""
    with _lock:
        bench = _benches.pop(key, None)
        if bench is None:
            return
        bench.given_up, active = True, bench.active
    bench.grader.retire()
    if not active:  # if requests are active, the last one closes the course
        bench.close()


def _problem(bench: Bench, kit: Kit) -> str:
    try:
        if (digest := bench.course.digest(kit.names)) != kit.digest:
            return f"its copy of the course differs: its digest is {digest[:12]}, not {kit.digest[:12]}"
        left = {n: k for n in kit.names if (k := canary.key_of(bench.grader, n)) not in _proved}
        problem = canary.examine(bench.grader, list(left)) if left else ""
    except Exception as error:  # for example, the course does not load or the sandbox does not start
        return f"{type(error).__name__}: {error}"
    if not problem:
        _proved.update(left.values())
    return problem


def _keep(key: str, bench: Bench) -> None:
    leave(key)
    with _lock:
        if not _benches:
            threading.Thread(target=_watch, daemon=True).start()
        _benches[key] = bench


@contextlib.contextmanager
def _at_work(key: str) -> Iterator[Bench | None]:
    with _lock:
        bench = _benches.get(key)
        if bench:
            bench.active += 1
    try:
        yield bench
    finally:
        if bench:
            with _lock:
                bench.active -= 1
                bench.used = time.monotonic()
                last = bench.given_up and not bench.active
            if last:
                bench.close()


def _watch() -> None:
    """Delete each course after LEASE seconds without a request, until no course is left."""
    while True:
        time.sleep(min(LEASE, 10))
        with _lock:
            over = [k for k, b in _benches.items() if not b.active and time.monotonic() - b.used > LEASE]
        for key in over:
            leave(key)
        with _lock:
            if not _benches:
                return


@atexit.register
def _leave_all() -> None:
    for key in list(_benches):
        leave(key)
