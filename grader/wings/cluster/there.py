"""The functions that run on a worker: prepare it for a course, and grade submissions.

A worker writes to one folder of its own, inside Dask's temporary folder. The worker deletes this folder when the batch
ends, when the worker ends, or after LEASE seconds without a request.
"""

from __future__ import annotations

import contextlib
import platform
import shutil
import tempfile
import threading
import weakref
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from grader.batch import canary
from grader.batch.grade import Grader
from grader.batch.reporting import own_digest, versions
from grader.common.cache import MOST, Cache
from grader.course.config import CourseError
from grader.sandbox import needs
from grader.sandbox.tiers import available
from grader.wings.cluster.parcel import Answer, Kit, unpacked

LEASE = 600.0  # seconds without a request after which a worker deletes a course


class Absent(Exception):
    """This worker does not have the course, for example because it had no request for LEASE seconds."""


class Bench:
    """A course in a folder of its own on a worker, and a grader for the course.

    The bench closes when ``_benches`` no longer holds it, and no request uses it. ``users`` counts these requests. The
    count does not depend on references, because a traceback in a reference cycle can refer to a bench for a long time.
    """

    def __init__(self, kit: Kit, folder: Path, jobs: int) -> None:
        """Write the course's files to ``folder``, and make a grader for them."""
        self.names, self.course = kit.names, kit.laid_out(folder / "course")
        cache = Cache(folder / "cache", MOST) if kit.remember else None
        self.grader = Grader(self.course, kit.tier, jobs, cache=cache)
        self.lease: threading.Timer | None = None
        self.users = 1  # the request that makes this bench
        # Only the first call has an effect. Python also calls it when the worker ends.
        self.close = weakref.finalize(self, _close, self.grader, cache, folder)

    def prove(self, digest: str) -> None:
        """Grade the course's solutions. Raises CourseError if the course or the verdicts differ."""
        if (found := self.course.digest(self.names)) != digest:
            raise CourseError(f"its copy of the course differs: its digest is {found[:12]}, not {digest[:12]}")
        left = {name: k for name in self.names if (k := canary.key_of(self.grader, name)) not in _proved}
        if problem := canary.examine(self.grader, list(left)) if left else "":
            raise CourseError(problem)
        _proved.update(left.values())


_benches: dict[str, Bench] = {}
_left: set[str] = set()  # keys of ended batches: a worker that is still being prepared must not keep their course
_proved: set[str] = set()  # keys (``canary.key_of``) of exercises whose solution got full marks in this process
_lock = threading.Lock()


def deciding() -> dict[str, str]:
    """Return the versions on which verdicts depend, by name, including packages that learners may import."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2]), **versions(), "its code": own_digest()[:12]}
    for package in needs.PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found.setdefault(package, version(package))
    return found


def unlike(needed: Mapping[str, str], tier: str) -> str:
    """Return why this worker may not grade: a different version, or no working sandbox; "" if it may grade."""
    here = deciding()
    for name in dict.fromkeys([*needed, *here]):
        has, wants = here.get(name, "none"), needed.get(name, "none")
        if has != wants:
            return f"has {name} {has}, this machine has {wants}: install this machine's version on the worker"
    problem = available(tier)
    return f"cannot confine learner code: isolation {tier}: {problem}" if problem else ""


def prepare(key: str, needed: Mapping[str, str], tier: str, kit: bytes, folder: str, jobs: int) -> str:
    """Store a course and grade its solutions. Return why this worker cannot grade; "" if it can.

    Args:
        key: the key by which later requests name the course.
        needed: what ``deciding`` returns on the machine of the grading process.
        tier: the kind of sandbox for learner code.
        kit: a ``Kit`` as bytes: the course's files and settings.
        folder: the folder in which this worker may write.
        jobs: the number of submissions that this worker will grade at a time.
    """
    if problem := unlike(needed, tier):
        return problem
    bench: Bench | None = None
    try:
        taken: Kit = unpacked(kit)
        bench = Bench(taken, Path(tempfile.mkdtemp(prefix="shardlings-course-", dir=folder)), jobs)
        _store(key, bench)  # so that ``leave`` can end it
        if key in _left:
            raise CourseError("the batch has ended")
        bench.prove(taken.digest)
    except Exception as error:  # for example, the course does not load or the sandbox does not start
        _end(key)
        kind = "" if isinstance(error, CourseError) else f"{type(error).__name__}: "
        return f"cannot grade: {kind}{error}"
    finally:
        if bench:
            _release(key, bench)
    return ""


def grade(key: str, work: bytes) -> str:
    """Grade one submission. Return an ``Answer`` as JSON.

    ``key``: the course's key. ``work``: the submission as bytes. Raises Absent.
    """
    with _lock:
        if (bench := _benches.get(key)) is None:
            raise Absent
        bench.users += 1
    try:
        return Answer(report=bench.grader.grade(unpacked(work), bench.names).dumps()).model_dump_json()
    except Exception as error:  # an error in the grader must not stop other submissions
        return Answer(problem=f"{type(error).__name__}: {error}").model_dump_json()
    finally:
        _release(key, bench)


def leave(key: str) -> None:
    """End a course's processes, even while they grade, delete the course's files, and never store them again."""
    _left.add(key)
    _end(key)


def _store(key: str, bench: Bench) -> None:
    """Store a bench. A bench that it replaces closes now if it is idle, or else with its last request."""
    with _lock:
        old, _benches[key] = _benches.get(key), bench
        is_idle = old is not None and old.users == 0
    if old and is_idle:
        old.close()


def _end(key: str) -> None:
    """End the bench's processes. An idle bench closes now, and any other closes with its last request."""
    with _lock:
        bench = _benches.pop(key, None)
        is_idle = bench is not None and bench.users == 0
        if bench and bench.lease:
            bench.lease.cancel()
    if bench:
        bench.grader.retire()
        if is_idle:
            bench.close()


def _release(key: str, bench: Bench) -> None:
    """End a request's use of the bench. Without further requests, the bench closes LEASE seconds from now."""
    with _lock:
        bench.users -= 1
        is_kept, is_idle = _benches.get(key) is bench, bench.users == 0
        if bench.lease:
            bench.lease.cancel()
        if is_kept and is_idle:
            bench.lease = threading.Timer(LEASE, _lapse, (key, bench))
            bench.lease.daemon = True
            bench.lease.start()
    if is_idle and not is_kept:
        bench.close()


def _lapse(key: str, bench: Bench) -> None:
    """Close an idle bench after LEASE seconds."""
    with _lock:
        if bench.users or _benches.get(key) is not bench:
            return
        del _benches[key]
    bench.close()


def _close(grader: Grader, cache: Cache | None, folder: Path) -> None:
    grader.__exit__()
    if cache:
        cache.close()
    shutil.rmtree(folder, ignore_errors=True)
