"""Set eight simulated devices before any import of JAX, and trace learner code for tests."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from grader.common import drawing
from grader.common.schemas import without_uris
from grader.sandbox.tiers import TIERS, available

if TYPE_CHECKING:
    from grader.batch.workers import Workers

settings.register_profile("no clock", deadline=None)  # tests must not depend on the machine's speed
settings.register_profile("quick", deadline=None, max_examples=20)  # for ``make test-fast``
settings.load_profile("no clock")

DEVICES = 8
WINGS = Path(__file__).parent / "wings"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # pytest-xdist's processes: NumPy's waiting threads would use CPU time


class _Fails(logging.Handler):
    """A log handler that makes a test fail if the grader cannot draw a picture and leaves the picture out."""

    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage())


def pytest_configure(config: pytest.Config) -> None:
    without_uris()
    drawing.log.addHandler(_Fails())
    if hasattr(config, "cache"):  # the canary's cache is in a folder of the tests, not in the user's home
        os.environ["XDG_CACHE_HOME"] = str(config.cache.mkdir("cache"))
    # JAX warns about every fork of a process that has started a backend. The forks in tests are safe: a forked
    # process makes few system calls and ends.
    config.addinivalue_line("filterwarnings", r"ignore:os\.fork\(\) was called:RuntimeWarning")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For ``--dist loadgroup``, keep a file's tests together, because they share workers, and put slow groups first.

    A long group at the end would keep one process busy while the others wait.
    Tests of wings, and tests in a sandbox that is not the best one of this machine, count as slow.
    """
    for item in items:
        if item.path.is_relative_to(WINGS) or runs_in_a_further_sandbox(item):
            item.add_marker(pytest.mark.slow)
        if not item.get_closest_marker("slow") or shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.split("::")[0]))
    order = ("slow", "xdist_group")
    items.sort(key=lambda item: [item.get_closest_marker(name) is None for name in order])


def runs_in_a_further_sandbox(item: pytest.Item) -> bool:
    """Return whether a parameter of the test names a sandbox other than the best one of this machine."""
    best = next(tier for tier in TIERS if not available(tier))
    found = getattr(item, "callspec").params.values() if hasattr(item, "callspec") else ()  # noqa: B009  no public type
    return any(isinstance(one, str) and one in TIERS and one != best for one in found)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fail if the names of grouped tests do not contain the group, as in some versions of pytest and pytest-xdist."""
    grouped = session.config.getoption("loadgroup", default=False)
    if grouped and any(i.get_closest_marker("xdist_group") and "@" not in i.nodeid for i in session.items):
        raise pytest.UsageError("this pytest and this pytest-xdist scatter the tests of a file: see pyproject.toml")


def shares_a_fixture(item: pytest.Item) -> bool:
    """Return whether the test uses a fixture that several tests of its file share."""
    known = getattr(item, "_fixtureinfo").name2fixturedefs.values()  # noqa: B009  it has no public name
    file = item.nodeid.split("::")[0]
    return any(
        one.scope == "module" or (one.scope != "function" and one.baseid == file) for ones in known for one in ones
    )


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Return workers for all tests. Workers do not depend on a course, so any course can use them."""
    from grader.batch.workers import Workers
    from tests.made_up import made_up

    made = Workers(made_up(tmp_path_factory.mktemp("course")), "none")
    yield made
    made.close()


@pytest.fixture
def left_out(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Allow the grader to leave pictures out. The fixture's ``messages`` report each picture that was left out."""
    monkeypatch.setattr(drawing, "log", logging.getLogger("grader.left_out"))
    monkeypatch.setattr(drawing, "_logged", set())
    return caplog


@pytest.fixture(scope="session")
def devices() -> int:
    """Return the number of simulated devices. Assert the number, because JAX ignores the flag if it is set too late."""
    import jax

    assert jax.device_count() == DEVICES
    return DEVICES


@dataclass(frozen=True)
class Traced:
    """A request to the tracing process and its reply. ``blobs`` has the program, if tracing succeeded."""

    request: Any
    reply: Any
    blobs: list[bytes]
    loading: list[Any]

    @property
    def program(self) -> bytes:
        assert self.reply == {"program": True}, self.reply
        return self.blobs[0]

    @property
    def form(self) -> Any:
        """Return the program in canonical form, as the runner reads it."""
        from grader.runner.program import canonical

        asked = self.request
        arguments = asked["args"] + asked["cotangents"]
        return canonical(self.program, asked["mesh"], arguments, set(asked["files"]))

    @property
    def fault(self) -> dict[str, Any]:
        return self.reply["fault"]


def trace_text(
    text: str | list[str],
    *args: Any,
    mesh: dict[str, int] | None = None,
    kind: Any = "array",
    seconds: float = 60,
    cases: list[dict[str, Any]] | None = None,
    static: dict[str, Any] | None = None,
    wrt: tuple[str, ...] = (),
    cotangent: Any = None,
    timing: Any = None,
    **task: Any,
) -> Traced:
    """Trace the task ``f`` with arguments ``a``, ``b``, ... ``text`` is a ``.py`` file, or a list of cells."""
    from grader.exercise import Call, Cases, Task
    from grader.judging.plan import Ask
    from grader.learner.answering import reply_to
    from grader.learner.loading import load
    from grader.learner.surroundings import tolerant_jax

    def unused() -> None: ...

    chunks = [("a.py", text)] if isinstance(text, str) else [(f"cell {i}", t) for i, t in enumerate(text, 1)]
    asked = Task("f", kind, unused, **task)
    if cases is not None:
        ask = Ask(Cases(asked, (), None), cases=cases)
    else:
        arrays = dict(zip("abcdef", args, strict=False))
        call = Call(asked, arrays, static or {}, (), {}, {}, wrt, cotangent, timing=timing)
        ask = Ask(call, mesh or {"x": 4, "y": 2}, {}, static=call.static)
    request = ask.for_tracer([name for name, _ in chunks])
    with tolerant_jax():
        program = load({"name": "a", "chunks": chunks}, seconds)
        reply, blobs = reply_to(request, program, seconds)
    return Traced(request, reply, blobs, program.faults)


@pytest.fixture
def traced(devices: int) -> Callable[..., Traced]:
    """Return a function to trace with: ``traced(text, normal(8, spec=P("x")), mesh={"x": 4})``."""
    return trace_text
