"""The worker process: reads asks from its standard input, answers on its standard output.

Started by ``sandbox.worker`` through ``start.py``, confined before it runs. Two roles:

trace: imports JAX, starts no backend (a fork is sound only until one exists), and forks a keeper per
    submission, which forks the child before it reads a word of the submission. So no child ever finds an earlier
    submission in its memory. The child is confined once more, and keeps only the system calls of ``calls.py``; what it
    deletes only seems to be gone, so that it counts. It can neither
    signal nor read its keeper, which hands out the asks in stages and keeps its limits. What it leaves, running or
    written, is ended and deleted; where that fails, the worker ends as well, and with it its sandbox.
run: admits, compiles and executes programs, one after another; learner Python never comes here. It makes the system
    calls of ``calls.py`` only, before it reads a program. One that was given an accelerator has no limit of memory (0)
    and no list of calls. A wing may name another module that answers (``tiers.Extra``).

Every answer is a frame with ``from``: ``child`` is untrusted (it passed through learner hands),
``worker`` is ours.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import os
import resource
from collections.abc import Callable
from typing import Any, BinaryIO

from grader.sandbox.confine import PR_SET_CHILD_SUBREAPER, PR_SET_DUMPABLE, cap, landlock, prctl
from grader.sandbox.filters import install_filter
from grader.sandbox.importing import few_looks
from grader.sandbox.keeper import keep, last_act
from grader.wire import frames


def main(serves: str, role: str, memory_mib: int, calls: str, readable: str = "") -> None:
    """Answer by the module ``serves`` until there is nothing more to read.

    Args:
        calls: ``listed`` if this process itself, and not only its children, makes the calls of ``calls.py`` alone.
        readable: under sandlock what learner code may read, joined by colons.
    """
    asks, answers = _own_streams()
    # JAX would look for plugins of other hardware in every installed package, twice; a worker has its processors.
    importlib.metadata.distributions = lambda **about: iter(())
    if memory_mib:
        cap(resource.RLIMIT_AS, memory_mib << 20)
    if role == "trace":  # all that a confined child needs, before it is confined, and no more
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
    gc.freeze()  # to look through all that JAX is takes a child a tenth of a second, as its pages are copied
    if role != "trace":
        gc.set_threshold(20_000, 20, 20)  # reading a program makes thousands of objects, and few circles
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)  # bwrap: no Landlock keeps a child from our memory
    if calls == "listed":
        install_filter()
    send = _sender(answers)
    send({"ready": True}, [])
    while os.read(asks, 1):
        if role != "trace":
            room.answer(*frames.read_frame(frames.reader(asks)), send)
        elif not _kept(asks, send, room.answer):  # something may be left behind: with us the whole sandbox ends
            return  # and whoever asks next begins anew


def _kept(asks: int, send: Callable, child: Callable) -> bool:
    """Let a process of its own keep a child; whether it ended well."""
    keeper = os.fork()
    if keeper == 0:
        with last_act():
            keep(asks, send, child)
    return os.waitpid(keeper, 0)[1] == 0


def _own_streams() -> tuple[int, BinaryIO]:
    """Our pipes on fresh descriptors; what anybody prints goes to standard error."""
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
