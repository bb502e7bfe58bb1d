"""Failures of the machine. The grader reports each in one line, and no student loses points.

The status ``failed`` means the learner's fault. ``broken`` means the grader's fault; the grader first tries twice.
``test_folder.py`` tests two graders on one folder. ``test_hostile.py`` tests attacks, which cause such failures on
purpose.
"""

from __future__ import annotations

import ast
import contextlib
import errno
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import grader as package
from grader.batch.database import CannotWrite
from grader.batch.folder import Folder, grade_batch
from grader.batch.grade import Grader
from grader.batch.handing_in import Submissions
from grader.batch.workers import Turns, Workers
from grader.cli.class_reading import read_class
from grader.common.observation import Fault, Observation
from grader.common.result import Report
from grader.course.loading import Course, load_course
from grader.intake.parsers import Parsers
from grader.intake.submission import reasons_of
from grader.reports.summary import summarise
from grader.sandbox.launcher import children
from grader.sandbox.tiers import TIERS, available
from grader.sandbox.worker import Worker
from tests import test_examples as examples
from tests.batch.test_grade import NAME, RIGHT, ZEROS, results, submitted, with_workers_of
from tests.batch.test_workers import array, cases, findings, values
from tests.commands import one_line
from tests.made_up import COURSE, made_up

ROOT = Path(__file__).resolve().parent.parent
WORKING = [tier for tier in TIERS if not available(tier)]
CLASS = {"ada": RIGHT, "bo": ZEROS, "cy": "def gather(a, *, mesh)\n"}
# The files that a run writes: two pages and a report for each student, integrity.json, grades.csv, summary.json and
# index.html.
WRITES = 3 * len(CLASS) + 4


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return made_up(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def grader(course: Course) -> Iterator[Grader]:
    with Grader(course, "none") as made:
        yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Write the submissions of the class, and return their folder."""
    for student, text in CLASS.items():
        (tmp_path / "work" / student).mkdir(parents=True)
        (tmp_path / "work" / student / f"{NAME}.py").write_text(text)
    return tmp_path / "work"


def grade(grader: Grader, work: Path, out: Path) -> dict[str, str]:
    """Grade in this process as ``shardlings grade`` does. Return why submissions could not be graded, by student."""
    with Submissions() as submissions:
        read = read_class(grader.course, [work], str, Parsers(), submissions)
        with Folder(out) as folder:
            _, failures = grade_batch(grader, folder, read.submissions, [NAME], no_bar)
            folder.finish(summarise(folder.database.reports()))
    return reasons_of(read.cases) | {student: str(error) for student, error in failures.items()}


class no_bar:
    """A progress bar that shows nothing."""

    def __init__(self, total: int, what: str) -> None: ...

    def __enter__(self) -> Callable[[str], None]:
        return lambda who: None

    def __exit__(self, *error: object) -> None: ...


def command(course: Course, work: Path, out: Path) -> list[str]:
    place = ["--course", str(course.root), "--isolation", "none"]
    # The command line names the module, so no note reports a choice of modules.
    return ["grade", str(work), "--out", str(out), "--only", "01_gather", *place]


def files(out: Path) -> dict[str, bytes]:
    """Return all files, also half-written ones, except the database and temporary files."""
    not_written_from_it = (".lock", "grades.sqlite", "grades.sqlite-journal")  # test_database.py tests the database
    kept = (p for p in out.rglob("*") if p.name not in not_written_from_it and not p.name.startswith(".tmp-"))
    return {str(p.relative_to(out)): p.read_bytes() for p in kept if p.is_file()}


def scores(out: Path) -> dict[str, bytes]:
    """Return all files except the history of changes. A first run does not write the history."""
    return {name: data for name, data in files(out).items() if not name.startswith("changes.")}


def times(out: Path) -> dict[str, int]:
    return {p.name: p.stat().st_mtime_ns for p in (out / "reports").glob("*.json")}


def undisturbed(grader: Grader, work: Path) -> dict[str, bytes]:
    assert grade(grader, work, work.parent / "undisturbed") == {}
    return files(work.parent / "undisturbed")


# -- a full disk -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_of_the_writes(grader: Grader, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every k, the k-th rename of a file fails. Then the disk has space again, and a new run succeeds."""
    wanted, replace = undisturbed(grader, work), os.replace
    for last in range(1, WRITES + 1):
        left = iter(range(1, last + 1))

        def full(source: str, target: str, left: Iterator[int] = left, last: int = last) -> None:
            if next(left, last) == last:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            replace(source, target)

        out = work.parent / f"out{last}"
        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(CannotWrite) as failure:
            grade(grader, work, out)
        monkeypatch.setattr(os, "replace", replace)
        written, before = files(out), times(out)
        assert len(written) == last - 1 and written.items() <= wanted.items()
        assert not list(out.rglob(".tmp-*"))
        name = str(failure.value).removeprefix(f"cannot write {out}/").split(":")[0]
        assert name in wanted.keys() - written.keys()
        assert str(failure.value).endswith(
            f"{name}: No space left on device; mend the cause and run the same command again; finished reports are kept"
        )
        assert grade(grader, work, out) == {}
        assert files(out) == wanted
        assert before.items() <= times(out).items(), "a finished report was made again"


def can_mount() -> bool:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="a small disk can only be mounted by the superuser")
@pytest.mark.parametrize("part", [0.2, 0.6, 0.9])
def test_a_small_disk_that_fills_up_and_is_enlarged(grader: Grader, work: Path, part: float) -> None:
    """The file system is too small for the files. The test enlarges it and runs the command again."""
    wanted = undisturbed(grader, work)
    pages = sum(-(-len(data) // 4096) for data in wanted.values())
    out, first, then = (work.parent / name for name in ("out", "first", "then"))
    out.mkdir()
    script = """
mount -t tmpfs -o size="$1" tmpfs "$2"; shift
out="$1" first="$2" then="$3"; shift 3
"$@"; code=$?
cp -a "$out" "$first"
mount -o remount,size=64m "$out"
"$@" >"$first.told" 2>&1 || exit 99
cp -a "$out" "$then"
exit $code
"""
    again = [sys.executable, "-m", "grader", *command(grader.course, work, out)]
    size = f"{int(pages * part) * 4}k"
    run = ["unshare", "-m", "bash", "-c", script, "bash", size, str(out), str(first), str(then), *again]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=300)
    line = one_line(done)
    assert line.startswith(f"shardlings: cannot write {out}/")
    assert line.endswith(
        "No space left on device; mend the cause and run the same command again; finished reports are kept"
    )
    half = files(first)
    assert half.items() < wanted.items() and not list(first.rglob(".tmp-*"))
    assert files(then) == wanted


@pytest.mark.slow
def test_a_quota_on_the_size_of_files(course: Course, work: Path) -> None:
    """A quota limits the size of a file to 2000 bytes, which is less than the grader must write."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    out = work.parent / "out"
    again = [sys.executable, "-m", "grader", *command(course, work, out)]
    done = subprocess.run(again, cwd=ROOT, capture_output=True, text=True, timeout=300, preexec_fn=limit)
    assert one_line(done).startswith(
        f"shardlings: cannot write {out}/grades.sqlite: the disk failed, or a quota is used up"
    )
    assert "; mend the cause and run the same command again" in done.stderr
    assert files(out) == {}


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_terminal_log_on_a_full_disk(grader: Grader, work: Path) -> None:
    """Standard output goes to a full disk. The reports are on a different disk, and the grader completes them."""
    wanted, out = undisturbed(grader, work), work.parent / "out"
    again = [sys.executable, "-m", "grader", *command(grader.course, work, out)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(again, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert "Traceback" not in done.stderr
    assert (
        "shardlings: cannot use the place of the output: No space left on device; mend the cause and run the same command again"
        in done.stderr.splitlines()
    )
    assert done.returncode == 2 and files(out) == wanted


def test_a_full_disk_stops_the_batch_at_once(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grader cannot write the first report. It could not write later reports either, so it stops to grade."""
    read_in: list[str] = []
    stopped = threading.Event()

    class Told(Turns):
        def __exit__(self, *error: object) -> None:
            super().__exit__(*error)
            stopped.set()

    class Slow(Grader):
        def grade(self, submission, names, *, public=False):
            read_in.append(submission.student)
            if len(read_in) > 1:  # grade the first submission at once, so that one report is finished
                assert stopped.wait(60)
            return submitted_nothing(submission.student)

    def done(student: str, result: Report | Exception) -> None:
        raise CannotWrite("no room")

    monkeypatch.setattr("grader.batch.workers.Turns", Told)
    with Slow(course, "none") as slow, pytest.raises(CannotWrite):
        slow.batch([f"s{i}" for i in range(20)], lambda s: submitted(None, s), [NAME], done)
    assert len(read_in) <= 2


def submitted_nothing(student: str) -> Report:
    return Report(
        student=student, course="c", versions={}, isolation="none", backend="cpu", fingerprint="f",
        points=0, earned=0, pending=0, exercises=[],
    )  # fmt: skip


# -- a disk that cannot be read ----------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.ENOMEM])
def test_a_submission_that_the_machine_cannot_read_costs_no_points(
    grader: Grader, work: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The grader cannot open the file of one student: the disk fails, too many files are open, or memory is full."""
    wanted, opened, out = undisturbed(grader, work), os.open, work.parent / "out"

    def damaged(path: str | Path, *rest: int, **more: int) -> int:
        if str(path) == str(work / "bo" / f"{NAME}.py"):
            raise OSError(number, os.strerror(number), str(path))
        return opened(path, *rest, **more)

    monkeypatch.setattr(os, "open", damaged)
    failures = grade(grader, work, out)
    assert failures == {
        "bo": f"{work}/bo/{NAME}.py cannot be read: {os.strerror(number)}; mend the cause and grade again"
    }
    assert {p.name for p in (out / "reports").iterdir()} == {"ada.json", "cy.json"}
    monkeypatch.setattr(os, "open", opened)
    assert grade(grader, work, out) == {} and files(out) == wanted


def test_a_submission_that_is_too_large_costs_its_points(grader: Grader, work: Path) -> None:
    """The student gets no points for a file that is too large, and the report says so."""
    (work / "bo" / f"{NAME}.py").write_bytes(b"#" * (6 << 20))
    out = work.parent / "out"
    assert grade(grader, work, out) == {}
    report = Report.loads((out / "reports" / "bo.json").read_text())
    assert report.earned == report.pending == 0 and "is larger than" in report.notes[0]


# -- clocks ------------------------------------------------------------------------------------

WALL = {"st_mtime", "st_mtime_ns", "st_ctime", "st_ctime_ns", "st_atime", "getmtime", "getctime", "utcnow", "today", "time_ns"}  # fmt: skip
AHEAD = "drawing.py"  # drawing.py moves a process's clock, so that ``verify`` finds draws that depend on the day
DUE = "grading.py"  # without --only, ``grade`` chooses modules by their deadlines
STAMPED = "submit.py"  # ``submit`` writes the submission time into the submission
LATE = "times.py"  # times.py reads times of files, for a late policy without a record of the staff
KEPT = "journal.py"  # writes the time of a learner's prediction into the learner's file
REMEMBERED = "cache.py"  # the day on which an entry was last used decides only which entries are evicted
# Temporary files and folders of killed processes are deleted after a minute. No code reads them.
LEFT, EMPTY = "files.py", "temporary.py"


def test_nothing_depends_on_the_clock_or_on_times_of_files() -> None:
    """The test lists all code of the package that reads the clock or times of files. Each use has its reason above.

    Durations come from time.monotonic. nbgrader's deadlines come from timestamp.txt and duedate.
    """
    found = []
    for path in sorted(Path(package.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                of = node.value.id if isinstance(node.value, ast.Name) else ""
                if node.attr in WALL or (of, node.attr) in {("time", "time"), ("datetime", "now"), ("date", "today")}:
                    found.append(f"{path.name}:{node.lineno}: {of}.{node.attr}")
    assert [re.sub(r":\d+:", ":", one) for one in found if not one.startswith(AHEAD)] == [
        f"{STAMPED}: datetime.now",
        f"{DUE}: datetime.now",
        f"{REMEMBERED}: time.time",
        f"{LEFT}: .st_mtime",
        f"{LEFT}: time.time",
        f"{LATE}: found.st_mtime",
        f"{EMPTY}: .st_mtime",
        f"{EMPTY}: time.time",
        f"{KEPT}: datetime.now",
    ]


def test_a_clock_that_jumped_back_hides_no_change_and_makes_none(
    grader: Grader, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grader regrades only the changed submission, also if times of files are wrong.

    The clock shows 1970. Reports and unchanged submissions are from 2100. The changed submission is older than its
    report.
    """
    undisturbed(grader, work)
    out, future, past = work.parent / "undisturbed", 4_102_444_800, 631_152_000
    for path in (*out.rglob("*"), *work.rglob("*")):
        os.utime(path, (future, future))
    (work / "bo" / f"{NAME}.py").write_text(RIGHT)
    os.utime(work / "bo" / f"{NAME}.py", (past, past))
    before = times(out)
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert grade(grader, work, out) == {}
    after = times(out)
    assert {n for n in after if after[n] != before[n]} == {"bo.json"}
    assert grade(grader, work, work.parent / "fresh") == {}
    assert scores(out) == files(work.parent / "fresh")
    assert Report.loads((out / "reports" / "bo.json").read_text()).earned == 2


def test_a_deadline_takes_no_points_without_a_late_policy(grader: Grader, tmp_path: Path) -> None:
    """The deadline has passed, but the course has no late policy. So the submission time does not matter."""
    made_up(tmp_path)
    (tmp_path / "course.yaml").write_text(f"{COURSE}    deadline: 2001-01-01\n")
    late = with_workers_of(grader, load_course(tmp_path / "course.yaml"))
    assert late.grade(submitted(RIGHT), [NAME]).earned == grader.grade(submitted(RIGHT), [NAME]).earned == 2


# -- the grader is killed ----------------------------------------------------------------------

KILLED = """
import os, signal, sys
left, replace = int(sys.argv.pop(1)), os.replace
def replace_or_die(source, target):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(source, target)
os.replace = replace_or_die
from grader import cli
cli.main()
"""


@pytest.mark.slow
def test_a_grader_killed_between_any_two_writes_is_resumed(grader: Grader, work: Path) -> None:
    """For every k, SIGKILL ends the grader before the k-th rename of a file. A new run completes the files."""
    shutil.rmtree(work / "cy")
    wanted = undisturbed(grader, work)
    for last in range(1, WRITES - 3 + 1):
        out = work.parent / f"out{last}"
        again = [sys.executable, "-c", KILLED, str(last), *command(grader.course, work, out)]
        done = subprocess.run(again, cwd=ROOT, capture_output=True, timeout=300)
        assert done.returncode == -signal.SIGKILL
        written, before = files(out), times(out)
        assert len(written) == last - 1 and written.items() <= wanted.items()
        assert grade(grader, work, out) == {}
        assert files(out) == wanted and before.items() <= times(out).items()


# -- workers are killed ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Course:
    path = tmp_path_factory.mktemp("small") / "course.yaml"
    path.write_text("""\
name: small
limits: {trace_seconds: 20, total_seconds: 60, run_seconds: 30, memory_mib: 1536}
modules:
  - id: 01_one
    title: One
    exercises: [one]
""")
    return load_course(path)


@pytest.fixture(scope="module")
def workers_in(small: Course) -> Iterator[Callable[[str], Workers]]:
    made: dict[str, Workers] = {}

    def of(tier: str) -> Workers:
        if tier not in made:
            made[tier] = Workers(small, tier)
        return made[tier]

    yield of
    for workers in made.values():
        workers.close()


def processes(worker: Worker, stop: bool = False) -> list[int]:
    """Return the worker's process and its forks, parents first. Leave out the launcher and bubblewrap.

    With ``stop``, stop each process before listing its children. So no new child is missing.
    """
    assert worker.process is not None
    found, todo = [], [worker.process.pid]
    while todo:
        pid = todo.pop(0)
        with contextlib.suppress(OSError):  # the process has ended
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if len(words) > 4 and words[4].endswith(b"/start.py"):
                found.append(pid)
                if stop:
                    os.kill(pid, signal.SIGSTOP)
        todo += children(pid)
    return found


def wait_for_forks(worker: Worker, forks: int, sign: Path | None) -> None:
    """Wait until the worker has ``forks`` forks, and until the file ``sign`` exists. Delete the file."""
    until = time.monotonic() + 20
    while len(processes(worker)) < 1 + forks and time.monotonic() < until:
        time.sleep(0.005)
    while sign and not sign.exists() and time.monotonic() < until:
        time.sleep(0.005)
    if sign:
        sign.unlink()


def kill_stopped(stopped: list[int], signum: int, of: slice) -> list[int]:
    """Send a signal to ``stopped[of]``, and let all stopped processes continue. Return the signalled processes."""
    for pid in stopped[of]:
        # The process may have ended, because the loop has killed its parent.
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)
    for pid in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    return stopped[of]


def kill_while_busy(
    monkeypatch: pytest.MonkeyPatch,
    worker: Worker,
    signum: int,
    often: int,
    *,
    of: slice = slice(None),
    forks: int = 0,
    sign: Path | None = None,
) -> list[int]:
    """Kill the worker's processes during each of the next ``often`` requests, once the worker has ``forks`` forks.

    Args:
        of: which processes of the worker to kill; 0 is the worker's own process.
        sign: a file that a submission writes; the test kills only after that.
    """
    write, killed = worker.send, []

    def write_and_kill(data: bytes) -> None:
        if len(asked) >= often or (sign and str(sign).encode() not in data):
            write(data)
            return
        asked.append(1)
        if forks and b"sleep" in data:
            write(data)
            wait_for_forks(worker, forks, sign)
            stopped = processes(worker, stop=True)
        else:  # stopped before it reads the request, because it answers a short one faster than a test can kill it
            stopped = processes(worker, stop=True)
            write(data)
        killed.extend(kill_stopped(stopped, signum, of))

    asked: list[int] = []
    monkeypatch.setattr(worker, "send", write_and_kill)
    return killed


def program(number: float) -> str:
    """Return a program that depends on ``number``. A new number needs a run, because the cache has no result."""
    return f"import jax.numpy as jnp\ndef f(a, *, mesh):\n    return jnp.sin(a) + {number}\n"


@pytest.mark.parametrize("tier", WORKING)
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
def test_a_runner_that_dies_once_is_not_noticed(
    workers_in: Callable[[str], Workers], monkeypatch: pytest.MonkeyPatch, tier: str, signum: int
) -> None:
    """A signal ends the runner, as after a full memory, an abort or a crash. The grader runs the program again."""
    workers, ask = workers_in(tier), array()
    killed = kill_while_busy(monkeypatch, workers.runners[0].worker, signum, 1)
    (seen,) = findings(workers, program(0.25 + signum), ask)
    assert len(killed) == 1
    assert isinstance(seen, Observation) and len(seen.outputs[0][0].shards) == 4


@pytest.mark.parametrize("tier", WORKING)
def test_a_runner_that_dies_twice_over_one_program_is_the_learners_fault_if_the_graders_program_runs(
    workers_in: Callable[[str], Workers], monkeypatch: pytest.MonkeyPatch, tier: str
) -> None:
    """After two aborts, the grader does not run the learner's program again.

    It runs a test program of its own, which succeeds, and then the next learner's program.
    """
    workers = workers_in(tier)
    killed = kill_while_busy(monkeypatch, workers.runners[0].worker, signal.SIGABRT, 2)
    (lost,) = findings(workers, program(0.5), array())
    assert isinstance(lost, Fault) and lost.kind == "crashed"
    assert lost.message.startswith("XLA ended the process twice while ")
    assert len(set(killed)) >= 2, "two processes, one after the other"
    (seen,) = findings(workers, program(0.75), array())
    assert isinstance(seen, Observation)


def test_a_runner_that_dies_with_every_program_is_the_graders_fault(
    workers_in: Callable[[str], Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test kills the runner at each try, also while it runs the grader's test program."""
    workers = workers_in("none")
    with monkeypatch.context() as patched:
        kill_while_busy(patched, workers.runners[0].worker, signal.SIGKILL, 99)
        (lost,) = findings(workers, program(0.6), array())
    assert isinstance(lost, Fault) and lost.kind == "broken"
    assert lost.message.endswith("; a test program of the grader fails too, so the fault is the grader's")
    (seen,) = findings(workers, program(0.8), array())
    assert isinstance(seen, Observation)


def test_broken_results_are_graded_again_by_the_same_command(
    grader: Grader, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first run of ``grade`` the test kills the runner at each try. In the second run it kills nothing."""
    wanted, out = undisturbed(grader, work), work.parent / "out"
    workers = grader.worker_sets[0]
    assert isinstance(workers, Workers)
    workers.runners[0].worker.kill()  # its cache has results
    (work / "bo" / f"{NAME}.py").write_text(RIGHT.replace("local", "mine"))
    with monkeypatch.context() as patched:
        kill_while_busy(patched, workers.runners[0].worker, signal.SIGKILL, 3)
        assert grade(grader, work, out) == {}
    report = Report.loads((out / "reports" / "ada.json").read_text())
    assert {n: r.status for n, r in results(report).items()} == {
        "value": "broken", "traffic": "broken", "gather_time": "failed",
    }  # fmt: skip
    assert (report.earned, report.pending) == (0, 2)
    assert Report.loads((out / "reports" / "bo.json").read_text()).earned == 2, "the next one is as ever"
    (work / "bo" / f"{NAME}.py").write_text(CLASS["bo"])
    before = times(out)
    assert grade(grader, work, out) == {} and scores(out) == wanted
    told = (out / "changes.csv").read_text()
    assert "ada,x1_gather/value,0,1,1,broken -> passed; the grader itself failed in the earlier run" in told
    assert times(out)["cy.json"] == before["cy.json"]


# These submissions sleep, so that the test finds their processes, even on a busy machine.
SLOW_TO_LOAD = "import time\ntime.sleep(2)\ndef f(): return 1\n"
SLOW_TO_CALL = "import time\ndef f():\n    time.sleep(2)\n    return 1\n"


@pytest.mark.parametrize("tier", WORKING)
@pytest.mark.parametrize("text", [SLOW_TO_LOAD, SLOW_TO_CALL], ids=["loading", "calling"])
@pytest.mark.parametrize("which", [slice(None), slice(2, None)], ids=["all", "the child"])
def test_a_tracer_that_is_killed_once_is_not_noticed(
    workers_in: Callable[[str], Workers], monkeypatch: pytest.MonkeyPatch, tier: str, text: str, which: slice
) -> None:
    """While the tracer loads or calls an honest submission, SIGKILL ends all its processes, or only the child."""
    workers = workers_in(tier)
    killed = kill_while_busy(monkeypatch, workers.tracer, signal.SIGKILL, 1, of=which, forks=2)
    (found,) = findings(workers, text, cases("f"))
    assert values(found) == [1] and killed


def test_a_tracer_killed_with_every_input_is_the_graders_fault_and_the_next_source_is_traced(
    workers_in: Callable[[str], Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test kills all processes of the tracer at each try, also while it traces the grader's test submission."""
    workers = workers_in("none")
    with monkeypatch.context() as patched:
        kill_while_busy(patched, workers.tracer, signal.SIGKILL, 99, forks=2)
        (lost,) = findings(workers, SLOW_TO_LOAD, cases("f"))
    assert lost == Fault("broken", "the process that traces the code ended twice; a person must review this submission")
    (found,) = findings(workers, SLOW_TO_LOAD, cases("f"))
    assert values(found) == [1]


@pytest.mark.parametrize("which", [slice(None), slice(2, None)], ids=["all", "the child"])
def test_the_likely_cause_of_a_learners_process_killed_twice_is_reported(
    workers_in: Callable[[str], Workers], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, which: slice
) -> None:
    """Twice, while learner code runs, SIGKILL ends the learner's process or all processes of the tracer.

    The report says that the learner's file ended the process.
    """
    workers, sign = workers_in("none"), tmp_path / "loading"
    kill_while_busy(monkeypatch, workers.tracer, signal.SIGKILL, 2, of=which, forks=2, sign=sign)
    (lost,) = findings(workers, f"open({str(sign)!r}, 'w').close()\n{SLOW_TO_LOAD}", cases("f"))
    reason = "the process was killed, for example because it used more memory than allowed"
    assert lost == Fault("crashed", f"the loading of your file ended the process: {reason}")
    (found,) = findings(workers, SLOW_TO_LOAD, cases("f"))
    assert values(found) == [1]


# -- devices that wait for each other ----------------------------------------------------------

LONELY = """\
import jax
from jax import lax
from jax.sharding import PartitionSpec as P
def f(a, *, mesh):
    def local(a):
        return lax.cond(lax.axis_index("x") == 0, lambda a: lax.psum(a, "x"), lambda a: a, a)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)
"""


@pytest.mark.slow
def test_a_collective_that_not_all_devices_reach_is_the_learners(small: Course) -> None:
    """Only one device calls psum, so it waits without end. The time limit ends two runs of the program."""
    short = small.config.limits.model_copy(update={"stuck_seconds": 10.0})
    workers = Workers(Course(small.root, small.config.model_copy(update={"limits": short})), WORKING[0])
    (stuck,) = findings(workers, LONELY, array())
    message = "the devices waited for each other without end, because some of them never take part in a collective"
    assert stuck == Fault("timeout", message, ran=True)
    (seen,) = findings(workers, program(1.25), array())
    assert isinstance(seen, Observation)
    workers.close()


# -- memory ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tier", WORKING)
@pytest.mark.parametrize(
    "allocate",
    ["x = bytearray(8 << 30)", "x = [bytes(bytearray(b'x') * (64 << 20)) for _ in range(100)]"],
    ids=["at once", "bit by bit"],
)
def test_memory_taken_while_loading_is_the_learners(
    workers_in: Callable[[str], Workers], tier: str, allocate: str
) -> None:
    """While the file loads, it requests too much memory, at once or bit by bit."""
    workers = workers_in(tier)
    (full,) = findings(workers, f"{allocate}\ndef f(): return 1\n", cases("f"))
    assert full == Fault("missing", "f is not defined: a.py stopped at line 1: needs more memory than it may use")
    (found,) = findings(workers, "def f(): return 1\n", cases("f"))
    assert values(found) == [1]


@pytest.mark.parametrize("tier", WORKING)
def test_a_program_with_too_large_temporaries_is_the_learners(workers_in: Callable[[str], Workers], tier: str) -> None:
    """Each array is within the limit, but the arrays of all devices together exceed it.

    The grader refuses the program before a run.
    """
    text = """\
import jax.numpy as jnp
def f(a, *, mesh):
    b = jnp.sin(jnp.arange(6000 * 6000, dtype=jnp.float32).reshape(6000, 6000) + a[0, 0])
    return a + (b @ b)[:8, :4]
"""
    workers = workers_in(tier)
    (large,) = findings(workers, text, array())
    assert isinstance(large, Fault) and large.kind == "refused"
    assert large.message.startswith("the program needs ") and large.message.endswith("; 512 MiB are the limit")
    (seen,) = findings(workers, program(1.5), array())
    assert isinstance(seen, Observation)


# -- every kind of machine ---------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.by_hand
@pytest.mark.parametrize("tier", WORKING[1:2])
def test_the_examples_keep_their_verdicts_in_a_second_tier(tmp_path: Path, tier: str) -> None:
    """``test_examples`` grades all examples in the best tier. This test grades six examples in the second-best tier."""
    students = sorted(folder.name for folder in examples.OTHERS.iterdir())
    out = tmp_path / "out"
    words = ["grade", str(examples.OTHERS), "--out", str(out), "-j", "2", "--isolation", tier]
    again = [sys.executable, "-m", "grader", *words]
    done = subprocess.run(again, cwd=ROOT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    reports = {student: examples.read_report(out, student) for student in students}
    assert {(r["isolation"], r["pending"]) for r in reports.values()} == {(tier, 0)}
    surprising = [f"{s}: {t}" for s, r in reports.items() for t in examples.differences(r, examples.EXPECTED[s])]
    assert not surprising, "\n".join(surprising)


SUMS = """
import jax
from jax.sharding import PartitionSpec as P

def f(a, *, mesh):
    known = jax.numpy.ones((8, 80, 120)).sum(0)[0, 0]  # computed while tracing
    local = lambda a: jax.lax.all_gather(jax.numpy.tile(a, (40, 40)), "x").sum(0) * known
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tier", WORKING)
def test_sums_over_leading_dimensions_are_computed_in_every_tier(
    workers_in: Callable[[str], Workers], tier: str
) -> None:
    """XLA reads facts about the processor to choose kernels for these sums. A sandbox must let XLA read these facts."""
    (seen,) = findings(workers_in(tier), SUMS, array())
    assert isinstance(seen, Observation), seen
