"""The worker process, which reads requests from its standard input and answers on its standard output.

``sandbox.worker`` starts a worker in a sandbox, through ``start.py``. A worker has one of three roles:

trace: The worker imports JAX and starts no backend, because forking is safe only before a backend exists. For each
submission, the worker forks a keeper process (``keeper.py``), which forks the child before any part of the
submission is read. So no child finds an earlier submission in its memory. The child is limited to the system calls of
``calls.py``. Deletions by the child only seem to succeed, so that deleted files still count towards the limit of the
scratch folder. The child can neither signal nor read the keeper, which sends requests in stages and enforces the
limits. Afterwards the keeper removes all processes and files that the child leaves. If the removal fails, the worker
ends.

run: The worker admits, compiles and executes one program at a time, and never runs learner Python. The worker limits
itself to the system calls of ``calls.py`` before it reads a program. A worker with additional access (``tiers.Extra``)
may make any system call. A worker for an accelerator also has no memory limit (MEMORY_MIB is 0). A wing (an optional
part of the grader) may replace the module that answers the requests.

read: The worker parses the files of submissions, one file at a time, and executes no code in them. The worker has the
limits of the role ``run``.

Without isolation (the tier ``none``), system calls are not limited.

Every answer is a frame. The field ``from`` names the writer of the frame: ``child`` (untrusted, since learner code
could forge the frame) or ``worker``.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import os
import resource
from collections.abc import Callable
from typing import Any, BinaryIO

from grader.sandbox.allowance import share_reader
from grader.sandbox.confine import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, cap, landlock, prctl
from grader.sandbox.filters import install_filter
from grader.sandbox.importing import few_looks
from grader.sandbox.keeper import keep, last_act
from grader.wire import frames


def main(serves: str, role: str, memory_mib: int, calls: str, readable: str = "") -> None:
    """Answer requests with the module ``serves`` until the input ends.

    Args:
        calls: "listed": this process may make only the system calls of ``calls.py``. "any": it may make any.
        readable: under sandlock, the paths that learner code may read, joined by colons.
    """
    asks, answers = _own_streams()
    asleep = share_reader(os.getcwd())
    # Show JAX no installed packages. Otherwise JAX would search all of them twice for plugins for other hardware, which
    # a worker does not use.
    importlib.metadata.distributions = lambda **about: iter(())
    if memory_mib:
        cap(resource.RLIMIT_AS, memory_mib << 20)
    if role == "trace":  # import before forking, so that the confined children share the modules
        with few_looks():
            room = importlib.import_module(serves)
            room.prepare()
        if readable:
            landlock(readable.split(":"))
    else:
        with few_looks():
            room = importlib.import_module(serves)

    gc.collect()
    gc.enable()
    gc.freeze()  # without this, garbage collection in a child copies JAX's memory pages, which takes 0.1 s
    if role != "trace":
        gc.set_threshold(20_000, 20, 20)  # reading a program creates thousands of objects, but little garbage in cycles
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)  # hides this process's memory from its children; under bwrap, nothing else hides it
    if calls == "listed":
        install_filter()
    send = _sender(answers)
    send({"ready": True}, [])
    while os.read(asks, 1):
        if role != "trace":
            room.answer(*frames.read_frame(frames.reader(asks)), send)
        elif not _kept(
            asks, send, room.answer, asleep
        ):  # the child may have left processes or files behind, so this worker and its sandbox end
            return  # for the next request, the grader starts a new worker


def _kept(asks: int, send: Callable, child: Callable, asleep: Callable[[int], float]) -> bool:
    """Fork a keeper process, which forks the child. Return whether the keeper exited with code 0."""
    keeper = os.fork()
    if keeper == 0:
        with last_act():
            keep(asks, send, child, asleep)
    return os.waitpid(keeper, 0)[1] == 0


def _own_streams() -> tuple[int, BinaryIO]:
    """Move the pipes of requests and answers to new descriptors, so that ``print`` writes to standard error."""
    asks, answers = os.dup(0), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return asks, answers


def _sender(stream: BinaryIO) -> Callable[[dict, list[bytes]], None]:
    def send(header: dict[str, Any], blobs: list[bytes]) -> None:
        stream.write(frames.pack({"from": "worker"} | header, blobs))
        stream.flush()

    return send
