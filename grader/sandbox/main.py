"""The worker process: reads asks from its standard input, answers on its standard output.

``sandbox.worker`` starts it through ``start.py``, in a sandbox. An ask is one request about a submission. There are
three roles:

trace: imports JAX and starts no backend (forking is safe only before one exists). For each submission it forks a
keeper, which forks the child before it reads any part of the submission, so no child finds an earlier submission in its
memory. The child is confined further, to the system calls of ``calls.py``. Its deletions only seem to succeed, so that
deleted files still count. The child can neither signal nor read its keeper, which sends the asks in stages and enforces
the limits. The keeper ends and deletes all processes and files that the child leaves. If that fails, the worker ends.

run: admits, compiles and executes programs, one after another, and never runs learner Python. It limits itself to the
system calls of ``calls.py`` before it reads a program. With an accelerator it has no memory limit (0) and no list of
calls. A wing may name another module that answers (``tiers.Extra``).

read: parses submissions, one file after another, and executes nothing. It is limited like the role ``run``.

Every answer is a frame. Its ``from`` says who wrote it: ``child`` (untrusted, since learner code could forge the frame)
or ``worker``.
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
        calls: ``listed`` limits this process to the calls of ``calls.py``, not only its children.
        readable: under sandlock, the paths that learner code may read, joined by colons.
    """
    asks, answers = _own_streams()
    asleep = share_reader(os.getcwd())
    # Without this, JAX searches all installed packages twice for plugins of other hardware. A worker uses only its own
    # devices.
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
    gc.freeze()  # else a garbage collection in a child copies JAX's pages, which takes a tenth of a second
    if role != "trace":
        gc.set_threshold(20_000, 20, 20)  # reading a program creates thousands of objects, few of them in cycles
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)  # hides this process's memory from a child; under bwrap there is no Landlock to do that
    if calls == "listed":
        install_filter()
    send = _sender(answers)
    send({"ready": True}, [])
    while os.read(asks, 1):
        if role != "trace":
            room.answer(*frames.read_frame(frames.reader(asks)), send)
        elif not _kept(
            asks, send, room.answer, asleep
        ):  # the task may have left something behind, so this worker and its sandbox end
            return  # the next request gets a new worker


def _kept(asks: int, send: Callable, child: Callable, asleep: Callable[[int], float]) -> bool:
    """Fork a keeper, which forks the child. Return whether the keeper ended well."""
    keeper = os.fork()
    if keeper == 0:
        with last_act():
            keep(asks, send, child, asleep)
    return os.waitpid(keeper, 0)[1] == 0


def _own_streams() -> tuple[int, BinaryIO]:
    """Move the pipes to new descriptors, so that prints go to standard error."""
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
