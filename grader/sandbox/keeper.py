"""The keeper process, which starts a child process for learner code, passes messages, and enforces limits."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, cast

from grader.sandbox.allowance import Allowance, AloneError, IdleTime
from grader.sandbox.confine import PR_SET_CHILD_SUBREAPER, close_all_but, give_up, prctl
from grader.sandbox.launcher import kill_descendants, threads_of
from grader.sandbox.scratch import empty, is_over_quota
from grader.wire import frames
from grader.wire.frames import reader
from grader.wire.limits import (
    ASLEEP_SECONDS,
    GRACE_SECONDS,
    LOOK_SECONDS,
    MAX_ANSWER,
    MAX_ANSWER_HEADER,
    MAX_STRAY,
    MAX_THREADS,
)
from grader.wire.messages import (
    ALONE,
    DISK,
    DONE,
    FLOOD,
    GARBAGE,
    IDLE,
    SILENT,
    THREADS,
    TIMEOUT,
    TOTAL,
    TraceRequest,
)

Send = Callable[[Mapping[str, Any], list[bytes]], None]
Child = Callable[[Callable[[int], bytes], BinaryIO, float], None]
Expected = tuple[str, bool | int]
"""A key that the child's next frame must have, and the key's value."""


class Stages:
    """The child's input in stages: a header, then the learner's source, then the lists of requests.

    The keeper sends each stage only after all answers to the previous stage. So learner code cannot see a later list of
    requests while it answers an earlier one. The keeper accepts one answer to each request, in order. A child that
    forges an answer to get the next list is graded on the forged answer.

    Args:
        to_child: the pipe to the child, in non-blocking mode.
        header, source: frames (messages of ``wire.frames``).
        later: for each list of requests, the number of answers to expect and the bytes to send.
        chunks: the number of the source's chunks. The child sends a frame after each, because each has a time limit.
    """

    def __init__(
        self, to_child: int, header: bytes, source: bytes, later: Sequence[tuple[int, bytes]], chunks: int = 1
    ) -> None:
        self.to_child: int | None = to_child
        self._waiting = bytearray(header)
        self._due: deque[Expected] = deque([("started", True)])
        numbers = itertools.count()
        requests = [([("number", next(numbers)) for _ in range(count)], data) for count, data in later]
        loading: list[Expected] = [*(("ran", number) for number in range(chunks - 1)), ("loaded", True)]
        self._later: deque[tuple[list[Expected], bytes]] = deque([(loading, source), *requests])

    @property
    def begun(self) -> bool:
        """Whether the child has sent its first frame. No learner code runs before this frame."""
        return not self._due or self._due[0][0] != "started"

    @property
    def done(self) -> bool:
        return not self._due

    def takes(self, body: dict[str, Any]) -> Expected | None:
        """Return the key and value that the child's next frame must have; None if the frame ``body`` lacks them.

        After the last expected frame of a stage, the next stage is ready for ``hand_out``.
        """
        if not self._due:
            return None
        key, value = self._due[0]
        if type(body.get(key)) is not type(value) or body[key] != value:
            return None
        self._due.popleft()
        while not self._due and self._later:
            expected, data = self._later.popleft()
            self._due += expected
            self._waiting += data if expected else b""
        return key, value

    def hand_out(self) -> None:
        """Write as much pending input as the pipe to the child accepts. Close the pipe after the last stage."""
        if self.to_child is None:
            return
        try:
            del self._waiting[: os.write(self.to_child, self._waiting)]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._waiting.clear()
            self._later.clear()
        if not self._waiting and not self._later:
            os.close(self.to_child)
            self.to_child = None

    @property
    def writable(self) -> list[int]:
        return [self.to_child] if self.to_child is not None and self._waiting else []


@contextlib.contextmanager
def last_act() -> Iterator[None]:
    """Run the block, then end this process with exit code 0, or with 1 if the block raised an error."""
    code = 1
    try:
        yield
        code = 0
    finally:
        os._exit(code)


def keep(requests: int, send: Send, child: Child, share_asleep: Callable[[int], float]) -> None:
    """Fork the child, send it the request, relay its answers, report its end, and remove its processes and files.

    Args:
        requests: the pipe from which to read the grader's request.
        child: the function that runs learner code in the child.
        share_asleep: returns the share of time in which a process sleeps, see ``IdleTime``.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    inlet, to_child = os.pipe()
    out, outlet = os.pipe()
    os.set_blocking(to_child, False)
    pid = os.fork()
    if pid == 0:
        with last_act():
            _begin(child, inlet, outlet)
    os.close(inlet)
    os.close(outlet)
    found, (source, *later) = frames.read_frame(reader(requests))
    header = cast(TraceRequest, found)
    scratch = header["scratch"]
    asks = list(zip(header["counts"], later, strict=True))
    stages = Stages(to_child, frames.pack(header), source, asks, header["chunks"])
    ended, used = relay(out, IdleTime(pid, share_asleep), header["limits"], scratch, stages, send, requests)
    clean = kill_descendants([pid]) and empty(scratch)
    # ALONE means that the grader or the launcher has ended. Then send no frame. A grader that still runs treats a
    # worker without this frame as dead.
    if ended != ALONE:
        send({"end": ended, "cpu": used, "clean": clean}, [])


def _begin(child: Child, inlet: int, outlet: int) -> None:
    inlet, outlet = close_all_but(inlet, outlet)
    read = reader(inlet)
    found, _ = frames.read_frame(read)
    about = cast(TraceRequest, found)
    give_up(about)
    with os.fdopen(outlet, "wb") as stream:
        child(read, stream, about["limits"]["trace_seconds"])


class Inlet:
    """A reader of a child's frames, with limits on total bytes, the scratch folder, threads and time.

    Args:
        out: the pipe from which to read the child's frames.
        limits: ``trace_seconds`` for each frame, ``total_seconds`` for all frames, ``idle_seconds`` of idle time.
        on_asleep: a function to call once, when the child has idled for more than ASLEEP_SECONDS since its previous
            frame.
        requests: the pipe from which to read the grader's requests. The grader sends its next request only after an
            answer. So if this pipe becomes readable, the grader has ended.
    """

    def __init__(
        self, out: int, idle: IdleTime, limits: dict[str, float], scratch: str, stages: Stages,
        on_asleep: Callable[[], None], requests: int | None = None,
    ) -> None:  # fmt: skip
        self._out, self._idle, self._scratch, self._stages = out, idle, scratch, stages
        self._on_asleep, self._slept = on_asleep, False
        self._ins = [out] if requests is None else [out, requests]
        self._received, self._looked = 0, time.monotonic()
        self._in_all, self._each = Allowance(idle, limits["total_seconds"]), limits["trace_seconds"] + GRACE_SECONDS
        self._idle_seconds = limits["idle_seconds"]

    @property
    def used(self) -> float:
        return self._in_all.used

    def frame(self) -> tuple[dict[str, Any], bytes]:
        """Return the header of the next frame, and all bytes of the frame unchanged.

        Raises:
            AloneError: the grader or the sandbox's launcher has ended.
            TimeoutError: the limit of this frame is exceeded.
            EOFError: the child closed its pipe.
            BadFrame: the frame is invalid, or the child exceeded the limit that the message names: ``flood`` (bytes),
                ``disk``, ``threads``, ``idle`` or ``total`` (seconds).
        """
        self._this_one, self._raw = Allowance(self._idle, self._each), bytearray()
        body, _ = frames.read_frame(self._read, max_header=MAX_ANSWER_HEADER, max_blobs=MAX_ANSWER)
        return body, bytes(self._raw)

    def _read(self, n: int) -> bytes:
        self._received += n
        if self._received > MAX_ANSWER:
            raise frames.BadFrame(FLOOD)
        data = bytearray()
        while len(data) < n:
            self._look()
            seconds = min(LOOK_SECONDS, self._idle.due_in)
            ready, writable, _ = select.select(self._ins, self._stages.writable, [], seconds)
            if ready and ready != [self._out]:
                raise AloneError
            readable = bool(ready)
            if self._stages.begun or not readable:
                self._look_at_time()
            if self._stages.begun:
                self._look_idle()
            if writable:
                self._stages.hand_out()
            if not readable:
                continue
            part = os.read(self._out, n - len(data))
            if not part:
                raise EOFError
            data += part
        self._raw.extend(data)
        return bytes(data)

    def _look_at_time(self) -> None:
        if self._in_all.over:
            raise frames.BadFrame(TOTAL)
        if self._this_one.over:
            raise TimeoutError

    def _look_idle(self) -> None:
        if self._idle.seconds > self._idle_seconds:
            raise frames.BadFrame(IDLE)
        if not self._slept and self._this_one.idle > ASLEEP_SECONDS:
            self._slept = True
            self._on_asleep()

    def _look(self) -> None:
        """Check the scratch folder and the threads every ``LOOK_SECONDS``, but not before learner code may run."""
        if self._stages.begun and time.monotonic() > self._looked + LOOK_SECONDS:
            self._looked = time.monotonic()
            if is_over_quota(self._scratch):
                raise frames.BadFrame(DISK)
            # In a sandlock sandbox, this number is 0, and the launcher limits the threads.
            if threads_of(self._idle.pid) > MAX_THREADS:
                raise frames.BadFrame(THREADS)


def relay(
    out: int,
    idle: IdleTime,
    limits: dict[str, float],
    scratch: str,
    stages: Stages,
    send: Send,
    requests: int | None = None,
) -> tuple[str, float]:
    """Relay the child's frames. Return how the child ended, and the child's CPU seconds plus its idle seconds.

    ``wire/messages.py`` lists the ways to end.
    """
    inlet = Inlet(out, idle, limits, scratch, stages, lambda: send({"asleep": True}, []), requests)
    try:
        ended = _relayed(inlet, idle, scratch, stages, send)
    except AloneError:
        ended = ALONE
    return ended, inlet.used


def _relayed(inlet: Inlet, idle: IdleTime, scratch: str, stages: Stages, send: Send) -> str:
    stray = 0
    while True:
        try:
            body, raw = inlet.frame()
        except TimeoutError:
            return TIMEOUT
        except EOFError:
            if stages.begun and is_over_quota(scratch):  # a fast child may exceed the quota and end between two checks
                return DISK
            return DONE if stages.done else _how_it_ended(idle)
        except frames.BadFrame as error:
            return str(error) if str(error) in (FLOOD, DISK, THREADS, IDLE, TOTAL) else GARBAGE
        if taken := stages.takes(body):
            # Send the child's frame first. The next stage runs learner code, which may get all processes killed.
            # The frame may also have keys of other kinds of frames, so "taken" names the kind that ``takes`` accepted.
            send({"from": "child", "taken": taken[0]}, [raw])
            stages.hand_out()
        elif (stray := stray + 1) > MAX_STRAY:
            return FLOOD


def _how_it_ended(idle: IdleTime) -> str:
    wait = Allowance(idle, GRACE_SECONDS)
    while not (ended := os.waitid(os.P_PID, idle.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)):
        if wait.over:
            return SILENT
        time.sleep(0.001)
    if ended.si_code == os.CLD_EXITED:
        return f"exited with {ended.si_status}"
    return TIMEOUT if ended.si_status == signal.SIGXCPU else f"died of signal {ended.si_status}"
