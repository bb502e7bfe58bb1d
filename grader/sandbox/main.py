"""The worker process, which reads requests from its standard input and answers on its standard output.

A worker has one of three roles:

trace: The worker runs learner code, in a child process for each ``TraceRequest``. A file of a submission usually needs
one such request, and more if a child ends early. The worker imports JAX but starts no backend, because forking is safe
only before a backend exists. For each request, the worker forks a keeper process (``keeper.py``), and the keeper forks
the child. When they fork, the worker and the keeper have read no submission. So no child finds an earlier submission in
its memory. The child may make only the system calls of ``calls.py``. When the child deletes a file, the call seems to
succeed, but the file still counts towards the limit of the scratch folder. The child can neither signal nor read the
keeper, which enforces the limits. Afterwards the keeper removes all processes and files that the child leaves. If the
removal fails, the worker ends.

run: The worker compiles and executes one program at a time, and never runs learner Python. It limits itself to the
system calls of ``calls.py`` before it reads a program. A worker with additional access (``tiers.Extra``) may make any
system call. A wing (an optional part of the grader) may replace the module that answers the requests.

parse: The worker parses the files of submissions, and executes no code in them. The worker has the limits of the role
``run``.

Without isolation (the tier ``none``), system calls are not limited.

Every answer is a frame. The field ``from`` names the writer of the frame: ``child`` (not trusted, since learner code
could forge the frame) or ``worker``.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import os
import resource
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from grader.sandbox.allowance import share_reader
from grader.sandbox.calls import install_filter
from grader.sandbox.confine import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, cap, landlock, prctl
from grader.sandbox.keeper import keep, last_act
from grader.sandbox.start import few_looks
from grader.wire import frames


def main(serves: str, role: str, memory_mib: int, calls: str, readable: str = "") -> None:
    """Answer requests until the input ends.

    Args:
        serves: the name of the module that answers the requests.
        role: trace, run or parse (see above).
        memory_mib: limit on the address space; 0 means no limit.
        calls: "listed" allows only the system calls of ``calls.py``, "any" allows all.
        readable: under sandlock, the paths that learner code may read, joined by colons.
    """
    requests, answers = _own_streams()
    share_asleep = share_reader(os.getcwd())
    # Show JAX no installed packages. Otherwise JAX would search all of them twice for plugins for other hardware, which
    # a worker does not use.
    importlib.metadata.distributions = lambda **about: iter(())
    if memory_mib:
        cap(resource.RLIMIT_AS, memory_mib << 20)
    if role == "trace":  # import before forking, so that the confined children share the modules
        with few_looks():
            module = importlib.import_module(serves)
            module.prepare()
        if readable:
            landlock(readable.split(":"))
    else:
        with few_looks():
            module = importlib.import_module(serves)

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
    # A request is the byte "!" and a frame. From the byte, the worker learns that there is a request. For the role
    # "trace", the keeper reads the frame, after it has forked the child. So the worker never reads a submission.
    while os.read(requests, 1):
        if role != "trace":
            module.serve(*frames.read_frame(frames.reader(requests)), send)
        elif not _kept(requests, send, module.serve, share_asleep):
            # The child may have left processes or files behind, so this worker and its sandbox end. The grader starts a
            # new worker for the next request.
            return


def _kept(requests: int, send: Callable, child: Callable, share_asleep: Callable[[int], float]) -> bool:
    keeper = os.fork()
    if keeper == 0:
        with last_act():
            keep(requests, send, child, share_asleep)
    return os.waitpid(keeper, 0)[1] == 0


def _own_streams() -> tuple[int, BinaryIO]:
    """Move the pipes of requests and answers to new descriptors, so that ``print`` writes to standard error."""
    requests, answers = os.dup(0), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return requests, answers


def _sender(stream: BinaryIO) -> Callable[[Mapping[str, Any], list[bytes]], None]:
    def send(header: Mapping[str, Any], blobs: list[bytes]) -> None:
        stream.write(frames.pack({"from": "worker", **header}, blobs))
        stream.flush()

    return send
