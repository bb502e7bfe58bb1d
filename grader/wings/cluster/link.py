"""The connection to the workers through Dask's client, and the resource by which Dask knows the prepared workers.

Each batch of submissions has a key. If a worker can grade, ``prepare`` makes it offer a resource with this name
(https://distributed.dask.org/en/stable/resources.html). Submissions need this resource, so Dask schedules them only on
prepared workers. If a worker ends, Dask schedules its submissions on others.
"""

from __future__ import annotations

import ipaddress
import logging
import pickle
import queue
import secrets
import socket
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import distributed
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.core import CommClosedError
from distributed.comm.registry import get_backend
from distributed.core import Status
from distributed.scheduler import KilledWorker
from distributed.utils import sync

from grader.course.config import CourseError
from grader.wings.cluster import there
from grader.wings.cluster.parcel import Answer

CONNECT_SECONDS, LEAVE_SECONDS = 10.0, 5.0
GONE_SECONDS = 60.0  # after this time without an answer, treat the scheduler as gone


class ClusterError(CourseError):
    """The cluster cannot grade any more. The message is one line with the reason, and what to do."""


class WorkerSeen(NamedTuple):
    """A worker as the scheduler reports it.

    Attributes:
        called: the worker's address, and the worker's name if it has one.
        paused: whether Dask starts nothing on this worker, because the worker's memory is almost full.
        ready: whether the worker offers the resource.
    """

    called: str
    threads: int
    paused: bool
    ready: bool


class Call(NamedTuple):
    """A call that is made when this object is unpickled. ``pickle.loads`` then returns the call's result."""

    function: Callable[..., str]
    words: tuple[object, ...]

    def __reduce__(self) -> tuple[Callable[..., str], tuple[object, ...]]:
        return self.function, self.words


class Dask:
    """A connection to a Dask scheduler and its workers. Raises ClusterError if no scheduler answers.

    Attributes:
        came: the finished requests. For each, its key and its result, or the exception that Dask raises instead.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        # Silence the loggers of these packages, because this module reports the packages' errors. Dask gives some
        # loggers, such as distributed.client, a level of their own.
        packages = ("distributed", "tornado", "asyncio")
        for name in (*packages, *logging.root.manager.loggerDict):
            if name.partition(".")[0] in packages:
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        # The package distributed warns about differing versions. ``Dispatch`` checks all versions that matter.
        warnings.filterwarnings("ignore", module="distributed")
        _expect_usable(address)
        try:
            self.client: Any = distributed.Client(  # Any, because Dask declares no types of remote calls
                address, timeout=CONNECT_SECONDS, set_as_default=False, name="shardlings"
            )
        except (OSError, TimeoutError, CommClosedError) as error:
            raise ClusterError(
                f"no scheduler answers at {address} ({first_line(error)}); start one with dask scheduler, "
                "then pass the address that it prints: --cluster tcp://HOST:8786"
            ) from None
        except (ValueError, TypeError, RuntimeError, ImportError) as error:
            raise _unusable(address, error) from None
        self.came: queue.SimpleQueue[tuple[str, object]] = queue.SimpleQueue()
        self.listens_at = address  # ``workers`` replaces this by the address that the scheduler reports

    @property
    def dashboard(self) -> str:
        """The address of Dask's dashboard; "" if the scheduler has no dashboard."""
        with suppress(Exception):
            return self.client.dashboard_link or ""
        return ""

    def workers(self, key: str = "") -> dict[str, WorkerSeen]:
        """Return the present workers by address. ``key``: the resource. Raises ClusterError without an answer."""
        try:
            found = self.client.sync(self.client.scheduler.identity, n_workers=-1, callback_timeout=GONE_SECONDS)
        except Exception as error:
            raise self._gone(error) from None
        self.listens_at = str(found.get("address") or self.address)
        return {
            address: WorkerSeen(
                address if str(w["name"]) in ("", address) else f"{address} ({w['name']})",
                threads=max(1, w["nthreads"]),
                paused=w["status"] == "paused",
                ready=bool(w["resources"].get(key)),
            )
            for address, w in found["workers"].items()
            if w["status"] in ("running", "paused")
        }

    def request(self, function: Callable[..., str], *words: object, **where: Any) -> Any:
        """Call a function of this module on a worker, and return Dask's future. The result comes to ``came``.

        Args:
            where: the workers from which Dask may choose: ``workers=[ADDRESS]`` or ``resources={KEY: 1}``.
        """
        key = f"shardlings-{function.__name__}-{secrets.token_hex(16)}"
        # A Dask worker ends if it cannot unpickle a task's function, for example because shardlings is not installed.
        # So this function is one of Python, and any failure is the task's failure.
        call = pickle.dumps(Call(function, words))
        try:
            future = self.client.submit(pickle.loads, call, key=key, **where)
        except RuntimeError as error:  # the client lost its scheduler
            raise self._gone(error) from None
        self.client.loop.add_callback(self._fetch, future)
        return future

    async def _fetch(self, future: Any) -> None:
        try:
            came = await self.client.gather(future, asynchronous=True)
        except Exception as error:
            came = error
        self.came.put((future.key, came))

    def leave(self, workers: Iterable[str], key: str) -> None:
        """Make these workers delete the course with this key. Wait at most a few seconds."""
        with suppress(Exception):
            if self.client.status == "running":
                # ``_run`` does not wait for grading, unlike a submitted task.
                self.client.sync(
                    self.client._run, there.leave, key, workers=list(workers), on_error="ignore",
                    callback_timeout=LEAVE_SECONDS,
                )  # fmt: skip

    def close(self) -> None:
        with suppress(Exception):
            self.client.close(timeout=LEAVE_SECONDS)

    def _gone(self, error: Exception) -> ClusterError:
        return ClusterError(
            f"the scheduler at {self.address} is gone ({first_line(error)}); start the scheduler "
            "and its workers and run the same command again; finished reports are kept"
        )


def prepare(key: str, needed: dict[str, str], tier: str, kit: bytes) -> str:
    """Prepare this worker for a course. Return an ``Answer`` as JSON, with a problem if this worker cannot grade.

    Other versions of shardlings should keep this name and these arguments, so that a worker can compare the versions.
    """
    worker = distributed.get_worker()
    problem = there.prepare(key, needed, tier, kit, worker.local_directory, worker.state.nthreads)
    if not problem:
        sync(worker.loop, _offer, worker, key)
    return Answer(problem=problem).model_dump_json()


async def _offer(worker: distributed.Worker, key: str) -> None:
    await worker.set_resources(**{key: worker.state.nthreads})
    if worker.status == Status.running:
        # The scheduler looks for waiting submissions when a worker starts to run, but not for a new resource.
        worker.status = Status.paused
        worker.status = Status.running


def grade(key: str, work: bytes) -> str:
    """Grade one submission. Return the answer of ``there.grade``."""
    try:
        return there.grade(key, work)
    except there.Absent:
        worker = distributed.get_worker()
        sync(worker.loop, worker.set_resources, **{key: 0})
        raise distributed.Reschedule from None  # to a worker with the resource


def why(error: Exception) -> str:
    """Return in one line why a submission has no report."""
    if isinstance(error, KilledWorker):
        count, last = error.allowed_failures + 1, error.last_worker.address
        return f"{count} workers ended while they graded this submission alone, the last: {last}"
    return f"{type(error).__name__}: {first_line(error)}"


def _expect_usable(address: str) -> None:
    """Raise ClusterError for an unusable address. A client that cannot connect to it would not close."""
    if not address.strip():
        raise ClusterError("--cluster needs an address; pass what dask scheduler prints: --cluster tcp://HOST:8786")
    try:
        scheme, place = parse_address(address, strict=True)
        get_backend(scheme)
        parse_host_port(place)
        security = distributed.Security()
        encrypted = security.get_connection_args("client").get("ssl_context") is not None
    except (ValueError, TypeError, OSError) as error:
        raise _unusable(address, error) from None
    is_tls = scheme in ("tls", "wss")
    if is_tls and not encrypted:
        raise ClusterError(
            f"{address} needs certificates, and Dask's settings name none; see TLS in docs/wings/cluster.md"
        )
    if security.require_encryption and not is_tls:
        raise ClusterError(f"Dask's settings here require encryption, so --cluster takes tls://..., not {address}")


def is_exposed(address: str) -> bool:
    """Return whether a scheduler at this address takes unencrypted connections from other machines."""
    scheme, place = parse_address(address)
    if scheme in ("tls", "wss"):
        return False
    host = str(parse_host_port(place)[0])
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
        return not all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found)
    except (OSError, ValueError):  # assume that an unknown host name is another machine
        return True


def _unusable(address: str, error: BaseException) -> ClusterError:
    return ClusterError(
        f"--cluster {address} cannot be used ({first_line(error)}); "
        "pass what dask scheduler prints: --cluster tcp://HOST:8786"
    )


def first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0][:200] if text else type(error).__name__
