"""``grade --cluster`` with a real scheduler and real workers writes the reports that one machine writes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from grader.common.result import Report
from grader.course.reference import reference_source
from grader.sandbox.tiers import best_tier
from grader.stopping import SENTENCE, STOPPED
from tests.databases import graded_in, is_marked, mark
from tests.made_up import made_up
from tests.wings.cluster.machines import Machines, begun, ended, machines, until, written

pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="sandboxes")]
COUNT = 12
CONNECT = """
import socket
for place in {places!r}:
    try:
        socket.create_connection(place, 5).close()
    except OSError as error:
        said = type(error).__name__
        continue
    raise ValueError("CANARY connected")
for folder in {folders!r}:
    import os
    try:
        os.listdir(folder)
    except OSError as error:
        said = type(error).__name__
        continue
    raise ValueError("CANARY found " + folder)
def gather(a, *, mesh):
    return a
gather_time = 1
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a course and a class of students with different submissions."""
    folder = tmp_path_factory.mktemp("here")
    course = made_up(folder / "course")
    exercise = course.exercise("x1_gather")
    ways = [None, *exercise.misconceptions.values()]
    for number in range(COUNT):
        place = folder / "class" / f"s{number:02}"
        place.mkdir(parents=True)
        misconception = ways[number % len(ways)]
        text = reference_source(
            exercise,
            {},
            misconception if misconception and misconception.of is not exercise.questions["gather_time"] else None,
        )
        (place / "x1_gather.py").write_text(f"{text}\ngather_time = {number}\n# {number}\n")
    odd = {"s03": "while True: pass\n", "s04": "def gather(:\n", "s05": "x = '\\ud800'\nraise ValueError(x)\n"}
    for student, text in odd.items():
        (folder / "class" / student / "x1_gather.py").write_text(text)
    text = (folder / "course" / "course.yaml").read_text()
    (folder / "course" / "course.yaml").write_text(f"{text}limits:\n  trace_seconds: 1\n  total_seconds: 2\n")
    return folder


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    with machines(tmp_path_factory.mktemp("there")) as made:
        yield made


@pytest.fixture(scope="module")
def alone(here: Path) -> Mapping[str, object]:
    """Grade the class without a cluster, and return the written files."""
    code, said = ended(grade(here, "alone"))
    assert code == 0, said
    return written(here / "alone")


def grade(here: Path, to: str, *words: str) -> subprocess.Popen[str]:
    return begun("grade", "class", "--course", "course", "--out", to, "--no-store", *words, cwd=here)


def graded(here: Path, to: str, there: Machines, *words: str) -> str:
    """Grade the class on these machines, and return the command's output. The command must succeed."""
    code, said = ended(grade(here, to, "--cluster", there.address, *words))
    assert code == 0, said
    return said


@pytest.fixture
def workers(there: Machines) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Yield a function that starts workers, which end with the test."""
    started = []

    def start(name: str, *words: str, **more: Any) -> subprocess.Popen[bytes]:
        started.append(there.start(name, *words, **more))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            there.stop(process)


def in_the_middle(here: Path, to: str) -> None:
    """Wait until two submissions are graded."""
    until(lambda: len(graded_in(here / to, "made")) >= 2)


def test_any_number_of_workers_writes_what_one_machine_writes(
    here: Path, there: Machines, alone: Mapping[str, object], workers: Callable
) -> None:
    """All files equal those of one machine, byte for byte. After the batch, no worker keeps the course."""
    for count in (1, 2, 3):
        workers(f"w{count}", **({"threads": 2} if count == 3 else {}))
        said = graded(here, f"by {count}", there)
        assert written(here / f"by {count}") == alone
        assert f"{there.address}: {count} worker" in said and "; dashboard: http://" in said
        until(lambda: not there.held())  # wait until no worker holds the course; a worker may still be deleting it


@pytest.mark.parametrize("what", ["killed", pytest.param("hangs", marks=pytest.mark.by_hand)])
def test_a_worker_that_is_killed_or_hangs_in_the_middle_loses_nothing(
    what: str, here: Path, there: Machines, alone: Mapping[str, object], workers: Callable
) -> None:
    struck, _ = workers(what), workers(f"works beside {what}")
    batch = grade(here, what, "--cluster", there.address)
    in_the_middle(here, what)
    assert batch.poll() is None
    if what == "killed":
        there.stop(struck, signal.SIGKILL)
    else:
        struck.send_signal(signal.SIGSTOP)
    code, said = ended(batch)
    assert code == 0, said
    assert written(here / what) == alone


def test_graded_reports_are_kept_if_the_scheduler_dies(here: Path, tmp_path: Path, alone: Mapping[str, object]) -> None:
    with machines(tmp_path) as there:
        there.start("w")
        batch = grade(here, "dies", "--cluster", there.address)
        in_the_middle(here, "dies")
        assert batch.poll() is None
        there.stop(there.scheduler, signal.SIGKILL)
        code, said = ended(batch)
    line = said.splitlines()[-1]
    assert code == 2 and "Traceback" not in said, said
    assert line.startswith(f"shardlings: the scheduler at {there.address} is gone (")
    assert line.endswith(
        "start the scheduler and its workers and run the same command again; finished reports are kept"
    )
    kept = graded_in(here / "dies", "made")
    assert len(kept) >= 2
    shutil.copytree(here / "dies", here / "marked")
    for student in kept:
        mark(here / "marked", student)
    for to in ("dies", "marked"):
        code, said = ended(grade(here, to))  # grade the same class without a cluster
        assert code == 0, said
    assert written(here / "dies") == alone
    assert all(is_marked(here / "marked", student) for student in kept), "none of them was graded again"


def test_an_interrupted_batch_ends_with_a_sentence_and_frees_workers(
    here: Path, there: Machines, workers: Callable
) -> None:
    workers("w")
    batch = grade(here, "stopped", "--cluster", there.address)
    in_the_middle(here, "stopped")
    assert batch.poll() is None and there.held()
    os.killpg(batch.pid, signal.SIGINT)
    code, said = ended(batch)
    assert code == STOPPED and said.endswith(f"{SENTENCE}\n") and "Traceback" not in said, said
    until(lambda: not there.held())
    graded(here, "stopped", there)


def another_jax(folder: Path) -> str:
    """Return a PYTHONPATH on which JAX reports a different version."""
    place = folder / "jax-0.9.9.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.9.9\n")
    return f"{folder}{os.pathsep}{Path(__file__).parents[3]}"


def test_a_worker_with_another_jax_version_is_refused_by_name(
    here: Path, there: Machines, alone: Mapping[str, object], workers: Callable, tmp_path: Path
) -> None:
    from importlib.metadata import version

    workers("older", PYTHONPATH=another_jax(tmp_path / "jax"))
    code, said = ended(grade(here, "older", "--cluster", there.address))
    why = f"(older) has jax 0.9.9, this machine has {version('jax')}: install this machine's version on the worker"
    assert code == 2 and said.splitlines()[-1].startswith(f"shardlings: no worker can grade at {there.address}: ")
    assert why in said.splitlines()[-1] and "Traceback" not in said
    workers("as here")
    assert why in graded(here, "older", there)
    assert written(here / "older") == alone


def test_a_worker_without_isolation_is_refused(here: Path, there: Machines, workers: Callable, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    workers("bare", PATH=str(tmp_path / "bin"))  # a machine without bwrap
    code, said = ended(grade(here, "bare", "--cluster", there.address, "--isolation", "bwrap"))
    assert code == 2 and "(bare) cannot confine learner code: isolation bwrap: bwrap is not installed" in said, said
    assert not list((here / "bare" / "reports").glob("*"))


def test_a_submission_reaches_neither_worker_nor_scheduler(
    here: Path, there: Machines, workers: Callable, tmp_path: Path
) -> None:
    """A submission cannot read a worker's files, either. As a control, both succeed without isolation."""
    workers("w")
    address = there.log("worker-w").read_text().split("Start worker at:")[1].split()[0]
    places = [(a.rpartition(":")[0].rpartition("/")[2], int(a.rpartition(":")[2])) for a in (address, there.address)]
    folders = [str(there.folder / "scratch"), str(there.folder)]
    shutil.copytree(here / "course", tmp_path / "course")
    found = {}
    for tier in (best_tier(), "none"):
        for name, one, other in (("connects", places, []), ("looks", [], folders)):
            place = tmp_path / f"class {tier}" / name
            place.mkdir(parents=True)
            (place / "x1_gather.py").write_text(CONNECT.format(places=one, folders=other))
        words = ["grade", f"class {tier}", "--course", "course", "--out", tier, "--isolation", tier]
        code, said = ended(begun(*words, "--cluster", there.address, cwd=tmp_path))
        assert code == 0, said
        for path in (tmp_path / tier / "reports").glob("*.json"):
            found[tier, path.stem] = Report.loads(path.read_text()).exercises[0].notes
    assert "CANARY connected" in str(found["none", "connects"]) and "CANARY found" in str(found["none", "looks"])
    assert "CANARY" not in str([found[best_tier(), name] for name in ("connects", "looks")])


def certificates(folder: Path) -> dict[str, str]:
    """Return Dask's own settings for TLS, with a certificate made for the test."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-keyout", "key.pem", "-out", "cert.pem"], cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    name = "DASK_DISTRIBUTED__COMM__"
    settings = {f"{name}TLS__CA_FILE": "cert.pem", f"{name}REQUIRE_ENCRYPTION": "true"}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        settings |= {f"{name}TLS__{role}__CERT": "cert.pem", f"{name}TLS__{role}__KEY": "key.pem"}
    return {key: str(folder / value) if value.endswith(".pem") else value for key, value in settings.items()}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_grading_over_tls_uses_dasks_settings(
    here: Path, tmp_path: Path, alone: Mapping[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = certificates(tmp_path)
    with machines(tmp_path, "--protocol", "tls", **settings) as there:
        assert there.address.startswith("tls://")
        there.start("w")
        plain = there.address.replace("tls:", "tcp:")
        code, said = ended(grade(here, "plain", "--cluster", plain))
        assert code == 2 and f"no scheduler answers at {plain}" in said, said
        code, said = ended(grade(here, "plain", "--cluster", there.address))
        assert code == 2 and said.splitlines()[-1] == (
            f"shardlings: {there.address} needs certificates, and Dask's settings name none; see TLS in docs/wings/cluster.md"
        )
        for key, value in settings.items():
            monkeypatch.setenv(key, value)
        graded(here, "tls", there)
        code, said = ended(grade(here, "plain", "--cluster", plain))
        assert code == 2 and "require encryption, so --cluster takes tls://" in said, said
    assert written(here / "tls") == alone


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("tcp://127.0.0.1:1", "no scheduler answers at tcp://127.0.0.1:1 ("),
        ("", "--cluster needs an address; pass what dask scheduler prints: --cluster tcp://HOST:8786"),
        ("127.0.0.1", "--cluster 127.0.0.1 cannot be used ("),
        ("http://127.0.0.1:8786", "--cluster http://127.0.0.1:8786 cannot be used ("),
    ],
)
def test_without_a_scheduler_the_error_says_what_to_start(here: Path, address: str, says: str) -> None:
    code, said = ended(grade(here, "nobody", "--cluster", address))
    line = said.splitlines()[-1]
    assert code == 2 and "Traceback" not in said, said
    assert line.startswith(f"shardlings: {says}") and "dask scheduler" in line


def test_the_error_without_workers_shows_how_to_start_one(here: Path, there: Machines) -> None:
    code, said = ended(grade(here, "no workers", "--cluster", there.address))
    assert code == 2, said
    assert said.splitlines()[-1] == (
        f"shardlings: no workers at {there.address}; start one on each machine: "
        f"dask worker {there.address} --host OWN_ADDRESS --dashboard-address 127.0.0.1:0 --nthreads 1; "
        "then run this again"
    )
