"""The keeper sends asks in stages, and frames that a child forges change no other answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.sandbox.allowance import AloneError, IdleTime
from grader.sandbox.keeper import Stages, relay
from grader.sandbox.worker import Worker
from grader.wire.frames import pack
from tests.commands import ROOT
from tests.sampled import sampled
from tests.sandbox.submissions import WORKING, answers, call, staged

HIDDEN = "hidden-" * 4

SEARCH = """
import gc, os, select
def holds(text, one):  # without a copy of its own of what it looks for
    at = text.find(one)
    while at >= 0 and text[at + len(one) : at + 2 * len(one)] != one:
        at = text.find(one, at + 1)
    return at >= 0
def seen():
    found = ["pipe"] if select.select([10], [], [], 0.3)[0] else []
    found += ["objects" for one in gc.get_objects() if type(one) is dict and holds(repr(one)[:999], "hidden-")]
    try:
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
            for line in maps:
                if "rw-p" in line and "/" not in line:
                    start, end = (int(n, 16) for n in line.split()[0].split("-"))
                    memory.seek(start)
                    found += ["memory"] * holds(memory.read(end - start), b"hidden-")
    except OSError:
        pass
    return sorted(set(found))
"""


def test_asks_with_hidden_inputs_are_answered_last_with_consecutive_numbers(worker: Worker) -> None:
    frames = staged(worker, "def f(n): return n", [call("f", n=1), call("f", n=2)], [call("f", n=3)])
    assert [f["body"].get("number") for f in frames[:-1]] == [None, None, 0, 1, 2]
    assert answers(frames) == [1, 2, 3] and frames[-1]["end"] == "done"
    assert answers(staged(worker, "def f(n): return n", [], [call("f", n=3)])) == [3]
    assert staged(worker, "def f(n): return n", [], [])[-1]["end"] == "done"


def test_each_chunk_but_the_last_is_reported_before_the_whole_source(worker: Worker) -> None:
    """A forged message about loading, sent by an early chunk, is ignored, because it is not due yet."""
    forge = """
import json, os, struct
data = json.dumps({"loaded": True, "blobs": []}).encode()
os.write(11, struct.pack("<I", len(data)) + data)
"""
    chunks = [["cell 1", "x = 1"], ["cell 2", forge], ["cell 3", "def f(n): return x"]]
    frames: list[Any] = [frame for frame, _ in worker.trace({"name": "a", "chunks": chunks}, [call("f", n=1)])]
    assert [f["taken"] for f in frames[:-1]] == ["started", "ran", "ran", "loaded", "number"]
    assert answers(frames) == [1] and frames[-1]["end"] == "done"


def test_hidden_inputs_reach_a_process_only_after_all_other_asks(worker: Worker) -> None:
    """While the source loads and other asks run, hidden inputs are neither in the process's memory nor in its pipe."""
    text = f"{SEARCH}\nearly = seen()\ndef f(n): return [early, seen()]\ndef g(n): return n"
    public, secret = call("f", n=1), call("g", n=HIDDEN)
    assert answers(staged(worker, text, [public], [secret])) == [{"list": [{"list": []}, {"list": []}]}, HIDDEN]
    (control,) = answers(staged(worker, text, [call("f", n=HIDDEN)], []))
    assert control["list"][1]["list"], "the search finds what is there"  # type: ignore[index]


@pytest.mark.parametrize(
    ("forged", "numbers"),
    [
        ([{"loaded": True}], [None, None, 0, 1]),
        ([{"loaded": True}, {"number": 0, "values": [{"value": "forged"}]}], [None, None, 0, 1]),
        ([{"number": 1, "values": [{"value": "early"}]}, {"number": True}, {"number": 0.0}, {"end": "done"}], [None, None, 0, 1]),
    ],
)  # fmt: skip
def test_a_forged_frame_is_not_overwritten_by_later_ones(worker: Worker, forged: list[dict], numbers: list) -> None:
    text = f"""
import json, os, struct
for header in {forged!r}:
    data = json.dumps({{**header, "blobs": []}}).encode()
    os.write(11, struct.pack("<I", len(data)) + data)
def f(n): return n
raise ValueError("told while loading")
"""
    frames = staged(worker, text, [call("f", n=1)], [call("f", n=HIDDEN)])
    assert [f["body"].get("number") for f in frames[:-1]] == numbers
    assert answers(frames) == ["forged" if len(forged) == 2 else 1, HIDDEN]
    if forged[0].get("loaded"):  # the forged message came first, and the keeper ignores later messages about loading
        assert not frames[1]["body"].get("faults")


def test_the_keeper_names_the_frame_that_each_message_was_taken_for(worker: Worker) -> None:
    """A forged message with the keys of several frames counts as the frame that the keeper expects next."""
    text = """
import json, os, struct
data = json.dumps({"started": True, "loaded": True, "number": 0, "blobs": []}).encode()
os.write(11, struct.pack("<I", len(data)) + data)
def f(n): return n
"""
    frames = staged(worker, text, [call("f", n=1)], [call("f", n=HIDDEN)])
    assert [f["taken"] for f in frames[:-1]] == ["started", "loaded", "number", "number"]


def test_a_child_that_does_not_read_does_not_block_the_keeper(worker: Worker) -> None:
    """The keeper sends more data than a pipe holds."""
    text = "import os\nos.close(10)\ndef f(n): return 1"
    assert staged(worker, text, [call("f", n="x" * 500_000)], [])[-1]["end"] == "exited with 1"
    assert answers(staged(worker, "def f(n): return len(n)", [call("f", n="x" * 500_000)], [])) == [500_000]


@pytest.mark.parametrize(
    "inner",
    ["'[' * 118 + ']' * 118", "'[' + ','.join(['1e15'] * 400_000) + ']'", "'\"' + chr(9731) * 690_000 + '\"'"],
    ids=["deep", "numbers", "text"],
)
def test_the_grader_accepts_every_frame_that_the_keeper_accepts(worker: Worker, inner: str) -> None:
    """The keeper wraps and encodes each frame again. The result must not exceed the grader's limits."""
    text = f"""
import os, struct
data = ('{{"loaded": true, "x": ' + {inner} + ', "blobs": []}}').encode()
view = memoryview(struct.pack("<I", len(data)) + data)
while view:
    view = view[os.write(11, view):]
def f(): return 1
"""
    frames = staged(worker, text, [call("f")], [])
    assert frames[-1].get("end") == "done" and answers(frames) == [1]


def test_the_first_frame_of_a_child_is_read_before_its_limits_are_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the keeper checked the folder first, it would report that the child never started."""
    monkeypatch.setattr("grader.sandbox.keeper.is_over_quota", lambda folder: True)
    monkeypatch.setattr("grader.sandbox.keeper.LOOK_SECONDS", 0.0)
    monkeypatch.setattr(
        "grader.sandbox.keeper.Allowance", lambda pid, seconds: SimpleNamespace(over=True, used=0.0, idle=0.0)
    )
    out, child = os.pipe()
    os.write(child, pack({"started": True}))
    os.close(child)
    inlet, to_child = os.pipe()
    sent: list[Mapping[str, Any]] = []
    limits = {"trace_seconds": 1.0, "total_seconds": 1.0, "idle_seconds": 1.0}
    stages = Stages(to_child, b"", b"", [])
    ended, _ = relay(out, IdleTime(1), limits, str(tmp_path), stages, lambda header, blobs: sent.append(header))
    assert sent == [{"from": "child", "taken": "started"}] and ended in ("disk", "total")
    os.close(out)
    os.close(inlet)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize("where", sampled(1, ["", "def f(): "]))
def test_the_keeper_reports_once_that_a_child_sleeps(worker: Worker, where: str) -> None:
    frames = staged(worker, f"import time\n{where}time.sleep(2)\ndef g(): time.sleep(2)", [call("f"), call("g")], [])
    assert [frame.get("asleep") for frame in frames].count(True) == 1
    frames = staged(worker, "def f():\n    for _ in range(10 ** 7): pass", [call("f")], [])
    assert not any("asleep" in frame for frame in frames)


def test_a_keeper_ends_when_the_requesting_process_is_gone(tmp_path: Path) -> None:
    out, child = os.pipe()
    asks, asker = os.pipe()
    inlet, to_child = os.pipe()
    os.close(asker)
    limits = {"trace_seconds": 1e6, "total_seconds": 1e6, "idle_seconds": 1e6}
    stages = Stages(to_child, b"", b"", [])
    assert (
        relay(out, IdleTime(os.getpid()), limits, str(tmp_path), stages, lambda header, blobs: None, asks)[0] == "alone"
    )
    for end in (out, child, asks, inlet):
        os.close(end)


def test_a_keeper_ends_when_the_launcher_is_gone(tmp_path: Path) -> None:
    def asleep(pid: int) -> float:
        raise AloneError

    out, child = os.pipe()
    inlet, to_child = os.pipe()
    limits = {"trace_seconds": 1e6, "total_seconds": 1e6, "idle_seconds": 1e6}
    stages = Stages(to_child, b"", b"", [])
    idle = IdleTime(os.getpid(), asleep)
    assert relay(out, idle, limits, str(tmp_path), stages, lambda header, blobs: None)[0] == "alone"
    for end in (out, child, inlet):
        os.close(end)


KILLED = """
import os, signal, sys
from grader.sandbox.limits import Limits
from grader.sandbox.worker import Worker
worker = Worker("trace", sys.argv[1], 8, Limits(trace_seconds=9999, total_seconds=9999))
frames = worker.trace({"name": "s", "chunks": [["s", "import time\\ntime.sleep(99999)"]]}, [])
next(frames)
print(worker.process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("tier", WORKING)
def test_sleeping_code_ends_when_the_grader_is_killed(tier: str) -> None:
    """SIGKILL ends the grader while learner code sleeps, so the grader cannot stop its other processes."""
    done = subprocess.run([sys.executable, "-c", KILLED, tier], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr
    worker = int(done.stdout)
    for _ in range(600):
        if not Path(f"/proc/{worker}").exists():
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGKILL)
    raise AssertionError("it lives on")
