"""A program reaches no socket outside of its sandbox, and nothing outside reaches a program's sockets."""

from __future__ import annotations

import ast
import contextlib
import inspect
import os
import select
import socket
import uuid

import pytest

from grader.sandbox.worker import Worker
from grader.wire.frames import decode
from grader.wire.messages import SourceCode
from tests.sandbox.submissions import LIMITS, WORKING, ask, call, value

Place = tuple[str, int] | bytes
"""A socket's address: an IP address with a port, or the name of an abstract Unix socket."""


def form(kind: str) -> tuple[int, int]:
    family = socket.AF_UNIX if kind == "abstract" else socket.AF_INET
    return family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM


def opened(kind: str, place: Place) -> socket.socket:
    """Return a socket that waits for other processes at this address."""
    one = socket.socket(*form(kind))
    one.bind(place)
    if kind != "udp":
        one.listen()
    return one


def reached(kind: str, place: Place) -> bool:
    """Return whether a socket at this address accepts two messages.

    The first message to an unused UDP port succeeds, because the kernel reports the error at the second message.
    """
    with socket.socket(*form(kind)) as one:
        try:
            one.connect(place)
            return one.send(b"told") == one.send(b"told")
        except OSError:
            return False


PROGRAM = f"""
from __future__ import annotations
import socket, time
{inspect.getsource(form)}
{inspect.getsource(opened)}
{inspect.getsource(reached)}
kept = {{}}
def reach():
    found = []
    for kind, place in places.items():
        try:
            found += [kind] if reached(kind, place) else []
        except OSError:  # the program gets no socket
            pass
    return found
def serve():
    for kind, place in places.items():
        try:
            kept[kind] = opened(kind, place)
        except OSError:
            pass
    return repr({{kind: one.getsockname() for kind, one in kept.items()}})
def hold():
    time.sleep(1e6)
"""


def any_places() -> dict[str, Place]:
    return {"tcp": ("127.0.0.1", 0), "udp": ("127.0.0.1", 0), "abstract": f"\0test-{uuid.uuid4().hex}".encode()}


def source(places: dict[str, Place]) -> SourceCode:
    return {"name": "a.py", "chunks": [["a.py", PROGRAM + f"places = {places!r}"]]}


@pytest.fixture(params=["", "filter"], ids=["no filter", "filter"])
def layers(request: pytest.FixtureRequest, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the protections around the worker's next program: a sandbox, the filter of system calls, both or none."""
    worker.await_ready()
    found = {worker.tier, request.param} - {"none", ""}
    if not request.param:
        monkeypatch.setattr(worker, "tier", "none")
    elif worker.tier == "none":
        monkeypatch.setattr(worker, "tier", "bwrap")
    return found


def test_a_program_reaches_no_socket_outside(worker: Worker, layers: set[str]) -> None:
    with contextlib.ExitStack() as stack:
        servers = {kind: stack.enter_context(opened(kind, place)) for kind, place in any_places().items()}
        places = {kind: one.getsockname() for kind, one in servers.items()}
        frames = [frame for frame, _ in worker.trace(source(places), [call("reach")])]
        heard = [kind for kind, one in servers.items() if select.select([one], [], [], 0)[0]]
    assert decode(value(frames)) == heard == ([] if layers else list(places))


def test_nothing_outside_reaches_a_socket_of_a_program(worker: Worker, layers: set[str]) -> None:
    """Without the filter, sandlock lets a program serve an abstract Unix socket."""
    frames = worker.trace(source(any_places()), [call("serve"), call("hold")])
    answered = next(frame for frame, _ in frames if "values" in frame.get("body", {}))
    places = ast.literal_eval(str(decode(value([answered]))))
    found = [kind for kind, place in places.items() if reached(kind, place)]
    worker.kill()
    assert found == ([] if layers - {"sandlock"} else ["abstract"] if layers else list(any_places()))
    if "filter" in layers:
        assert places == {}


NAMESPACES = """
import os
def f():
    return [os.stat("/proc/self/ns/" + name).st_ino for name in {names}]
"""


@pytest.mark.parametrize("tier", [tier for tier in WORKING if tier != "sandlock"])
def test_bwrap_gives_a_program_its_own_namespaces(tier: str) -> None:
    names = ["ipc", "mnt", "net", "pid", "user", "uts"]
    with Worker("trace", tier, 2, LIMITS) as one:
        inside = decode(value(ask(NAMESPACES.format(names=names), one)))
    shared = [
        name for name, number in zip(names, inside, strict=True) if os.stat(f"/proc/self/ns/{name}").st_ino == number
    ]
    assert shared == (names if tier == "none" else [])
