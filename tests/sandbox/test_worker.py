"""Workers in every tier that works here: they answer, they are confined, they die without a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from grader.exercise import normal
from grader.sandbox.keeper import Stages, relay
from grader.sandbox.limits import Allowance, Limits, backstop, cpu_seconds
from grader.sandbox.tiers import ROOMS, TIERS, NoIsolation, _bwrap_problem, available, best_tier, package
from grader.sandbox.worker import Worker, WorkerDied
from grader.wire.frames import pack
from tests.conftest import trace_text

ROOT = Path(__file__).resolve().parents[2]
WORKING = [tier for tier in TIERS if not available(tier)]
CONFINED = [tier for tier in WORKING if tier != "none"]
LIMITS = Limits(trace_seconds=3, total_seconds=12, run_seconds=20)


def ask(text: str, worker: Worker, cases: int = 1) -> list[dict]:
    """Frames that come back for a file whose function ``f()`` is called."""
    question = {"kind": "function", "task": "f", "cases": [{"dict": []}] * cases}
    return [frame for frame, _ in worker.trace({"name": "a.py", "chunks": [["a.py", text]]}, [question])]


def value(frames: list[dict]) -> object:
    return next(f["body"]["values"][0] for f in frames if "values" in f.get("body", {}))["value"]


@pytest.fixture(scope="module", params=WORKING)
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    with Worker("trace", request.param, 8, LIMITS) as made:
        yield made


@pytest.fixture(scope="module", params=CONFINED)
def confined(request: pytest.FixtureRequest) -> Iterator[Worker]:
    with Worker("trace", request.param, 8, LIMITS) as made:
        yield made


def test_at_least_one_sandbox_works_here() -> None:
    """On the machines that grade. Where none does, `grade` refuses; so must this suite."""
    assert CONFINED, [available(t) for t in TIERS]


def test_a_function_is_called(worker: Worker) -> None:
    frames = ask("def f(): return 41 + 1", worker)
    assert value(frames) == 42
    assert frames[-1] == {"from": "worker", "end": "done", "cpu": frames[-1]["cpu"]} and frames[-1]["cpu"] > 0


# -- asks come in stages -----------------------------------------------------------------------

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


def staged(worker: Worker, text: str, asks: list[dict], secret: list[dict]) -> list[dict]:
    return [frame for frame, _ in worker.trace({"name": "a.py", "chunks": [["a.py", text]]}, asks, secret)]


def call(task: str, **arguments: object) -> dict:
    return {"kind": "function", "task": task, "cases": [{"dict": [[k, v] for k, v in arguments.items()]}]}


def answers(frames: list[dict]) -> list[object]:
    return [b["values"][0].get("value", b["values"][0]) for f in frames if "values" in (b := f.get("body", {}))]


def test_secret_asks_are_answered_last_and_numbered_on(worker: Worker) -> None:
    frames = staged(worker, "def f(n): return n", [call("f", n=1), call("f", n=2)], [call("f", n=3)])
    assert [f["body"].get("number") for f in frames[:-1]] == [None, None, 0, 1, 2]
    assert answers(frames) == [1, 2, 3] and frames[-1]["end"] == "done"
    assert answers(staged(worker, "def f(n): return n", [], [call("f", n=3)])) == [3]
    assert staged(worker, "def f(n): return n", [], [])[-1]["end"] == "done"


def test_no_secret_is_in_the_process_while_it_may_still_speak(worker: Worker) -> None:
    """Neither in its memory nor in the pipe: while loading, and while the others are answered."""
    text = f"{SEARCH}\nearly = seen()\ndef f(n): return [early, seen()]\ndef g(n): return n"
    public, secret = call("f", n=1), call("g", n=HIDDEN)
    assert answers(staged(worker, text, [public], [secret])) == [{"list": [{"list": []}, {"list": []}]}, HIDDEN]
    (control,) = answers(staged(worker, text, [call("f", n=HIDDEN)], []))
    assert control["list"][1]["list"], "the search finds what is there"  # type: ignore[index]


@pytest.mark.parametrize(
    ("forged", "told"),
    [
        ([{"loaded": True}], [None, None, 0, 1]),
        ([{"loaded": True}, {"number": 0, "values": [{"value": "forged"}]}], [None, None, 0, 1]),
        ([{"number": 1, "values": [{"value": "early"}]}, {"number": True}, {"number": 0.0}, {"end": "done"}], [None, None, 0, 1]),
    ],
)  # fmt: skip
def test_who_forges_a_frame_has_sealed_it(worker: Worker, forged: list[dict], told: list) -> None:
    text = f"""
import json, os, struct
for header in {forged!r}:
    data = json.dumps({{**header, "blobs": []}}).encode()
    os.write(11, struct.pack("<I", len(data)) + data)
def f(n): return n
raise ValueError("told while loading")
"""
    frames = staged(worker, text, [call("f", n=1)], [call("f", n=HIDDEN)])
    assert [f["body"].get("number") for f in frames[:-1]] == told
    assert answers(frames) == ["forged" if len(forged) == 2 else 1, HIDDEN]
    if forged[0].get("loaded"):  # what it says of loading from now on, nobody hears
        assert not frames[1]["body"].get("faults")


def test_a_child_that_does_not_read_holds_up_nobody(worker: Worker) -> None:
    """More is to be handed out than a pipe takes."""
    text = "import os\nos.close(10)\ndef f(n): return 1"
    assert staged(worker, text, [call("f", n="x" * 500_000)], [])[-1]["end"] == "exited with 1"
    assert answers(staged(worker, "def f(n): return len(n)", [call("f", n="x" * 500_000)], [])) == [500_000]


@pytest.mark.parametrize(
    "inner",
    ["'[' * 118 + ']' * 118", "'[' + ','.join(['1e15'] * 400_000) + ']'", "'\"' + chr(9731) * 690_000 + '\"'"],
    ids=["deep", "numbers", "text"],
)
def test_a_frame_that_is_small_enough_for_the_keeper_is_so_for_us(worker: Worker, inner: str) -> None:
    """Wrapped and written anew it was deeper and longer than what we accept, which looked like our fault."""
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


def test_submissions_do_not_see_each_other(worker: Worker) -> None:
    ask("import builtins, jax; builtins.left = 1; jax.left = 1\ndef f(): return 1", worker)
    text = "import builtins, jax\ndef f(): return [hasattr(builtins, 'left'), hasattr(jax, 'left')]"
    assert value(ask(text, worker)) == {"list": [False, False]}


def test_a_loop_that_never_ends_is_ended(worker: Worker) -> None:
    fault = next(
        f["body"]["fault"] for f in ask("def f():\n    while True: pass", worker) if "fault" in f.get("body", {})
    )
    assert fault["kind"] == "timeout" and fault["line"] is None
    assert fault["message"] == "did not finish within 3 s"


def test_a_loop_that_swallows_the_alarm_is_killed(worker: Worker) -> None:
    text = "def f():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"
    frames = ask(text, worker)
    assert not any("values" in f.get("body", {}) for f in frames)
    faults = [f["body"]["fault"]["kind"] for f in frames if "fault" in f.get("body", {})]
    assert faults == ["timeout"] or frames[-1]["end"] == "timeout"


def test_thepackage_cannot_be_imported(confined: Worker) -> None:
    """It holds formulas that learners are asked for."""
    text = (
        "def f():\n    try:\n        import grader.hardware\n    except ImportError: pass\n    else: return 'imported'\n"
        f"    try: open({str(Path(__file__).parents[2] / 'grader' / 'hardware.py')!r})\n"
        "    except OSError as e: return type(e).__name__\n    return 'read'"
    )
    assert value(ask(text, confined)) in ("PermissionError", "FileNotFoundError")


def test_files_outside_the_scratch_folder_are_out_of_reach(confined: Worker, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("42")
    text = (
        f"def f():\n    out = []\n    for go in (lambda: open({str(secret)!r}).read(),"
        f" lambda: open({str(tmp_path / 'made')!r}, 'w')):\n"
        "        try: go(); out.append('done')\n        except OSError as e: out.append(type(e).__name__)\n    return out"
    )
    assert "done" not in value(ask(text, confined))["list"]  # type: ignore[index]
    assert not (tmp_path / "made").exists()


def test_the_network_is_out_of_reach(confined: Worker) -> None:
    text = (
        "import socket\ndef f():\n    s = None\n    try:\n        s = socket.socket()\n        s.settimeout(1)\n"
        "        s.connect(('127.0.0.1', 9))\n    except ConnectionRefusedError: return 'reached'\n"
        "    except OSError as e: return 'denied'\n    return 'reached'"
    )
    if confined.tier == "bwrap":
        pytest.skip("a network namespace of its own: its loopback refuses, and leads nowhere")
    assert value(ask(text, confined)) == "denied"


def test_nothing_outlives_its_submission(worker: Worker) -> None:
    """A daemon that left its session and ignores signals is dead when the next submission starts."""
    text = (
        "import os, signal, time\npid = os.fork()\nif pid == 0:\n    os.setsid()\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    if os.fork(): os._exit(0)\n    time.sleep(3600)\nos.waitpid(pid, 0)\ndef f(): return 1"
    )
    worker._await_ready()
    before = _at_home(worker)
    ask(text, worker)
    deadline = time.monotonic() + 5
    while _at_home(worker) - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _at_home(worker) - before


def _at_home(worker: Worker) -> set[str]:
    """Processes whose folder is the scratch folder of a worker."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            where = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if where.startswith(worker._scratch):
            found.append(pid)
    return set(found)


def test_a_killed_worker_leaves_no_process_and_no_folder() -> None:
    for tier in WORKING:
        worker = Worker("trace", tier, 8, LIMITS)
        ask("def f(): return 1", worker)
        process, scratch = worker._process, worker._scratch
        worker.kill()
        assert process is not None and process.poll() is not None
        assert not os.path.exists(scratch)


def test_a_worker_that_died_says_so_and_starts_again() -> None:
    with Worker("trace", "none", 8, LIMITS) as worker:
        ask("def f(): return 1", worker)
        assert worker._process is not None
        worker._process.kill()
        with pytest.raises(WorkerDied):
            ask("def f(): return 1", worker)
        assert value(ask("def f(): return 2", worker)) == 2


# -- whose fault ------------------------------------------------------------------------------


def killed_at(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, frame: str, text: str = "def f(): return 1"
) -> list[dict]:
    """What a submission is told whose worker is killed as soon as this frame of its child came."""
    read, done = worker._read, []

    def read_and_kill(deadline: float) -> tuple[dict, list[bytes]]:
        assert worker._process is not None
        if frame == "" and worker._ready and not done:
            done.append(1)
            os.killpg(worker._process.pid, signal.SIGKILL)
        header, blobs = read(deadline)
        if frame and blobs and frame.encode() in blobs[0] and not done:
            done.append(1)
            os.killpg(worker._process.pid, signal.SIGKILL)
        return header, blobs

    with monkeypatch.context() as patched:
        patched.setattr(worker, "_read", read_and_kill)
        return ask(text, worker)


@pytest.mark.parametrize("frame", ["started", "loaded"])
def test_a_worker_that_dies_while_learner_code_runs_is_the_learners(
    monkeypatch: pytest.MonkeyPatch, frame: str
) -> None:
    with Worker("trace", "none", 2, LIMITS) as worker:
        frames = killed_at(worker, monkeypatch, frame, "import time\ntime.sleep(2)\ndef f():\n    time.sleep(2)")
        assert frames[-1] == {"from": "worker", "end": "died of signal 9", "cpu": 0.0}
        assert value(ask("def f(): return 2", worker)) == 2


def test_a_worker_that_dies_before_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with Worker("trace", "none", 2, LIMITS) as worker:
        ask("def f(): return 1", worker)
        with pytest.raises(WorkerDied) as died:
            killed_at(worker, monkeypatch, "")
        assert (died.value.reason, died.value.phase) == ("died", "asked")


def test_a_worker_that_dies_is_ours_when_a_submission_of_our_own_fares_no_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Worker("trace", "none", 2, LIMITS) as worker:
        assert worker.answers()
        monkeypatch.setattr(worker, "answers", lambda: False)
        with pytest.raises(WorkerDied) as died:
            killed_at(worker, monkeypatch, "started", "import time\ntime.sleep(2)")
        assert died.value.phase == "traced"


def test_a_worker_whose_folder_cannot_be_emptied_is_followed_by_another() -> None:
    """Caused: a folder that keeps what is in it."""
    with Worker("trace", "none", 2, LIMITS) as worker:
        ask("def f(): return 1", worker)
        process, scratch = worker._process, worker._scratch
        text = f"import os\nos.rename({scratch!r}, {scratch + 'x'!r})\ndef f(): return 1"
        assert ask(text, worker)[-1]["end"] in ("done", "disk")
        os.rename(scratch + "x", scratch)
        assert value(ask("def f(): return 2", worker)) == 2 and worker._process is not process
        os.rmdir(scratch)


@pytest.mark.parametrize("tier", WORKING)
def test_a_program_is_ended_by_its_cpu_time_and_its_death_tells_the_phase(tier: str) -> None:
    text = """
import jax.numpy as jnp
from jax import lax
def f(a, *, mesh):
    return lax.while_loop(lambda a: a[0] < jnp.inf, lambda a: jnp.sin(a), a)
"""
    request, program, inputs = traced_program(text)
    with Worker("run", tier, 2, Limits(run_seconds=2, memory_mib=3072)) as worker:
        with pytest.raises(WorkerDied) as died:
            worker.run_program(request, program, inputs)
        assert (died.value.reason, died.value.phase) == ("timeout", "executing")
        request, program, inputs = traced_program("def f(a, *, mesh):\n    return a + 1")
        answer, _ = worker.run_program(request, program, inputs)
        assert 0 < answer["cpu"] < 2 and "outputs" in answer


def traced_program(text: str) -> tuple[dict, bytes, list]:
    import numpy as np

    made = trace_text(text, normal(8, spec=("x",)), mesh={"x": 2})
    return made.request, made.program, [[np.zeros(8, np.float32)]]


def test_the_process_that_runs_programs_has_a_limit_on_its_memory() -> None:
    for tier in WORKING:
        with Worker("run", tier, 2, Limits(memory_mib=3000)) as worker:
            worker._await_ready()
            limits = {
                Path(f"/proc/{pid}/limits").read_text().split("Max address space")[1].split()[0]
                for pid in _at_home(worker)
            }
            assert str(3000 << 20) in limits


def test_the_first_word_of_a_child_is_read_before_anything_is_held_against_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A keeper that was late looked into the folder first, and its child seemed never to have begun: our fault."""
    monkeypatch.setattr("grader.sandbox.keeper.is_over_quota", lambda folder: True)
    monkeypatch.setattr("grader.sandbox.keeper.LOOK_SECONDS", 0.0)
    monkeypatch.setattr("grader.sandbox.keeper.Allowance", lambda pid, seconds: SimpleNamespace(over=True))
    out, child = os.pipe()
    os.write(child, pack({"started": True}))
    os.close(child)
    inlet, to_child = os.pipe()
    sent: list[dict] = []
    limits = {"trace_seconds": 1.0, "total_seconds": 1.0}
    ended = relay(out, 1, limits, str(tmp_path), Stages(to_child, b"", []), lambda header, blobs: sent.append(header))
    assert sent == [{"from": "child"}] and ended in ("disk", "timeout")
    os.close(out)
    os.close(inlet)


def test_allowances_count_the_time_of_the_process_and_not_of_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    used, now = [0.0], [100.0]
    monkeypatch.setattr("grader.sandbox.limits.cpu_seconds", lambda pid: used[0])
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    allowed = Allowance(1, 2.0)
    now[0] += backstop(2.0) - 0.1
    assert not allowed.over
    used[0] = 2.1
    assert allowed.over
    used[0], now[0] = 0.0, now[0] + 0.2
    assert allowed.over


def test_the_cpu_time_of_another_process_is_known() -> None:
    before = time.process_time()
    sum(range(3_000_000))
    assert cpu_seconds(os.getpid()) >= time.process_time() - before > 0
    assert cpu_seconds(1 << 22) == 0.0


def test_without_any_sandbox_grading_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.sandbox.tiers.available", lambda tier: f"{tier} is not here")
    with pytest.raises(
        NoIsolation, match=r"no sandbox works here, so other people's code is not run.*--isolation none"
    ):
        best_tier()


@pytest.mark.parametrize(("role", "begins"), [("trace", "grader.learner.child"), ("run", "grader.runner.serve")])
def test_a_worker_is_given_the_folders_that_it_imports_and_no_more(role: str, begins: str) -> None:
    """Of this package a sandbox shows it these alone."""
    told = f"""
import sys
from grader.sandbox.start import admit
admit({":".join(ROOMS[role])!r}.split(":"))
import grader.sandbox.main, {begins}
print(*{{name.split(".")[1] for name in sys.modules if name.startswith("grader.")}})
"""
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, cwd=ROOT, check=True)
    assert set(done.stdout.split()) == set(ROOMS[role])
    assert [Path(path).name for path in package(role)] == ["__init__.py", *ROOMS[role]]


def test_bwrap_is_not_offered_where_there_is_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the filter alone keeps a submission from its keeper."""
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert _bwrap_problem() == "bwrap needs one of x86_64, aarch64, this is riscv64"


@pytest.mark.parametrize("tier", [t for t in TIERS if not available(t)])
def test_a_worker_outlives_the_thread_that_first_needed_it(tier: str) -> None:
    with Worker("run", tier, 2, Limits()) as worker:
        thread = threading.Thread(target=worker._await_ready)
        thread.start()
        thread.join()
        assert worker._process is not None
        with pytest.raises(subprocess.TimeoutExpired):
            worker._process.wait(0.5)
