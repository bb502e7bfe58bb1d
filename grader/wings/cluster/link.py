"""The connection to the workers through Dask's client.

Each request is for one worker. Dask may not move a request to a different worker.
"""

from __future__ import annotations

import ipaddress
import itertools
import logging
import queue
import socket
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import distributed
from distributed.comm.addressing import parse_address, parse_host_port
from distributed.comm.core import CommClosedError
from distributed.comm.registry import get_backend
from distributed.scheduler import KilledWorker

from grader.wings.cluster import there
from grader.wings.cluster.dispatch import ClusterError, Lost, WorkerState

CONNECT_SECONDS, FETCH_SECONDS, ASK_SECONDS, LEAVE_SECONDS = 10.0, 30.0, 10.0, 5.0
GONE_SECONDS = 60.0  # after this time without an answer, treat the scheduler as gone
FETCHERS = 8
PAUSED = "is paused by Dask, because its memory is almost full; restart it with a larger dask worker --memory-limit"
NOTHING = (OSError, TimeoutError, CancelledError, CommClosedError, KilledWorker)


class Dask:
    """A connection to a Dask scheduler and its workers. Raises ClusterError if no scheduler answers."""

    def __init__(self, address: str) -> None:
        self.address = address
        # Silence the loggers of these packages, because this module reports the packages' errors.
        for name in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        # The package distributed warns about differing versions. ``Dispatch`` checks all versions that matter.
        warnings.filterwarnings("ignore", module="distributed")
        _expect_usable(address)
        try:
            self.client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False, name="shardlings")
        except (OSError, TimeoutError, CommClosedError) as error:
            raise ClusterError(
                f"no scheduler answers at {address} ({_first_line(error)}); start one with dask scheduler, "
                "then pass the address that it prints: --cluster tcp://HOST:8786"
            ) from None
        except (ValueError, TypeError, RuntimeError, ImportError) as error:
            raise _unusable(address, error) from None
        self._numbers = itertools.count(1)
        self._futures: dict[int, Any] = {}
        self._came: queue.SimpleQueue[tuple[int, bytes | Exception]] = queue.SimpleQueue()
        self._fetchers = ThreadPoolExecutor(FETCHERS, thread_name_prefix="fetch")
        self._silent_since: float | None = None
        self._last: dict[str, WorkerState] = {}
        self.listens_at = address  # ``workers`` replaces this by the address that the scheduler reports

    @property
    def dashboard(self) -> str:
        """The address of Dask's dashboard; "" if the scheduler has no dashboard."""
        with suppress(*NOTHING, KeyError):
            return self.client.dashboard_link or ""
        return ""

    def workers(self) -> Mapping[str, WorkerState]:
        try:
            found: Any = self.client.sync(self._identity, callback_timeout=ASK_SECONDS)
        except (*NOTHING, AttributeError, RuntimeError, ValueError) as error:
            now = time.monotonic()
            self._silent_since = self._silent_since or now
            if self.client.status in ("closed", "closing") or now - self._silent_since > GONE_SECONDS:
                raise ClusterError(
                    f"the scheduler at {self.address} is gone ({_first_line(error)}); start the scheduler "
                    "and its workers and run the same command again; finished reports are kept"
                ) from None
            return self._last
        self._silent_since = None
        self.listens_at = str(found.get("address") or self.address)
        self._last = {
            address: self._state(address, w)
            for address, w in found["workers"].items()
            if w["status"] in ("running", "paused")
        }
        return self._last

    def _state(self, address: str, w: Mapping[str, Any]) -> WorkerState:
        heard, problem = w["last_seen"], ""
        if w["status"] == "paused":  # Dask starts no request on this worker, so treat the worker as silent
            heard, problem = self._last[address].heard if address in self._last else 0.0, PAUSED
        return WorkerState(str(w["name"]), max(1, w["nthreads"]), w["local_directory"], heard, problem)

    async def _identity(self) -> dict[str, Any]:
        scheduler: Any = self.client.scheduler
        return await scheduler.identity(n_workers=-1)

    def send(self, to: str, what: str, *words: bytes | str | int) -> int:
        number = next(self._numbers)
        try:
            future = self.client.submit(
                getattr(there, what), *words, workers=[to], allow_other_workers=False, pure=False,
                key=f"shardlings-{what}-{self.client.id}-{number}",
            )  # fmt: skip
        except (*NOTHING, RuntimeError) as error:  # the client is closed, and ``workers`` reports the reason
            self._came.put((number, Lost(str(error))))
            return number
        self._futures[number] = future
        future.add_done_callback(lambda ready: self._fetch_later(number, ready))
        return number

    def _fetch_later(self, number: int, future: Any) -> None:
        with suppress(RuntimeError):  # raised if the pool is shut down
            self._fetchers.submit(self._fetch, number, future)

    def _fetch(self, number: int, future: Any) -> None:
        try:
            came: bytes | Exception = future.result(timeout=FETCH_SECONDS)
        except NOTHING as error:
            came = Lost(str(error))
        except Exception as error:
            came = error
        self._came.put((number, came))

    def take(self, seconds: float) -> tuple[int, bytes | Exception] | None:
        try:
            number, came = self._came.get(timeout=seconds)
        except queue.Empty:
            return None
        self._futures.pop(number, None)
        return number, came

    def drop(self, number: int) -> None:
        future = self._futures.pop(number, None)
        if future is not None:
            with suppress(*NOTHING, RuntimeError):
                future.release()

    def leave(self, workers: list[str], key: str) -> None:
        with suppress(*NOTHING, RuntimeError, ValueError, KeyError):
            if workers and self.client.status == "running":
                # ``_run`` does not wait for grading, unlike a submitted task.
                self.client.sync(
                    self.client._run, there.leave, key, workers=workers, on_error="ignore",
                    callback_timeout=LEAVE_SECONDS,
                )  # fmt: skip

    def close(self) -> None:
        self._fetchers.shutdown(wait=False, cancel_futures=True)
        with suppress(*NOTHING, RuntimeError):
            self.client.close(timeout=LEAVE_SECONDS)


def _expect_usable(address: str) -> None:
    if not address.strip():
        raise ClusterError("--cluster needs an address; pass what dask scheduler prints: --cluster tcp://HOST:8786")
    try:
        scheme, place = parse_address(address, strict=True)
        if scheme == "inproc":
            raise ValueError("inproc:// works only within one process")
        get_backend(scheme)
        parse_host_port(place)
        security = distributed.Security()
        encrypted = security.get_connection_args("client").get("ssl_context") is not None
    except (ValueError, TypeError, OSError) as error:
        raise _unusable(address, error) from None
    if scheme in ("tls", "wss") and not encrypted:
        raise ClusterError(
            f"{address} needs certificates, and Dask's settings name none; see TLS in docs/wings/cluster.md"
        )
    if scheme not in ("tls", "wss") and security.require_encryption:
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
        f"--cluster {address} cannot be used ({_first_line(error)}); "
        "pass what dask scheduler prints: --cluster tcp://HOST:8786"
    )


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return text[0][:200] if text else type(error).__name__
