"""``--cluster`` on the command line: options that it excludes, and packages that it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import ROOT, one_line, shardlings
from tests.made_up import made_up

AT = "tcp://127.0.0.1:1"
REFUSED = {
    "backend": (
        ["--backend", "gpu"],
        "--cluster works only with simulated devices: leave --backend and --processes out",
    ),
    "processes": (
        ["--processes", "2"],
        "--cluster works only with simulated devices: leave --backend and --processes out",
    ),
    "jobs": (
        ["-j", "2"],
        "with --cluster leave -j out: dask worker --nthreads sets how many submissions a worker grades at once",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_options_that_exclude_each_other_give_one_line(tmp_path: Path, what: str) -> None:
    words, says = REFUSED[what]
    done = shardlings("grade", str(tmp_path), "--out", str(tmp_path / "out"), "--cluster", AT, *words)
    assert one_line(done) == f"shardlings: {says}"


def test_dask_prints_no_messages_of_its_own() -> None:
    """Dask sets the level of distributed.client, so the level of distributed does not apply to it."""
    code = f"""
import logging, sys
from grader.wings.cluster.link import ClusterError, Dask
try:
    Dask({AT!r})
except ClusterError as error:
    print(error)
logging.getLogger("distributed.client").error("a traceback")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"no scheduler answers at {AT} (") and done.stderr == ""


@pytest.mark.parametrize("how", ["folder", "nbgrader"])
def test_the_error_without_dask_shows_what_to_install(tmp_path: Path, how: str) -> None:
    without = "import sys; sys.modules['distributed'] = None\nfrom grader.cli import main\nmain()"
    words = ["grade", "examples/submissions", "--out", str(tmp_path / "out"), "--only", "c1"]
    words = ["nbgrader", "grade", str(tmp_path), "03_matmuls"] if how == "nbgrader" else words
    done = subprocess.run(
        [sys.executable, "-c", without, *words, "--cluster", AT], cwd=ROOT, capture_output=True, text=True
    )
    assert one_line(done) == (
        "shardlings: --cluster needs distributed, which is not installed; "
        "in the checkout of shardlings, run: pip install --force-reinstall '.[cluster]'"
    )
    assert not (tmp_path / "out").exists()


def test_dask_is_not_imported_without_the_cluster_option() -> None:
    # ``distributed`` is the part of Dask that connects to a cluster; pint may import other parts
    code = "import sys, grader.cli, grader.cli.grading\nassert 'distributed' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_isolation_defaults_to_what_this_machine_supports(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    from grader.sandbox.tiers import NoIsolation
    from grader.wings.cluster import spread
    from grader.wings.cluster.link import ClusterError

    assert spread.OnCluster("", print).tier_of("bwrap") == "bwrap"
    with pytest.raises(NoIsolation, match="unknown isolation 'bwarp'"):
        spread.OnCluster("", print).tier_of("bwarp")
    monkeypatch.setattr("grader.sandbox.tiers.available", lambda tier: "not here")
    assert spread.OnCluster("", print).tier_of("sandlock") == "sandlock"
    with pytest.raises(ClusterError, match="so name the sandbox that the workers use: --isolation sandlock, or"):
        spread.OnCluster("", print).tier_of("auto")


@pytest.mark.parametrize(
    ("address", "exposed"),
    [
        ("tcp://127.0.0.1:8786", False),
        ("tcp://127.9.9.9:8786", False),
        ("tcp://localhost:8786", False),
        ("tcp://[::1]:8786", False),
        ("ws://127.0.0.1:8786", False),
        ("tls://10.0.0.5:8786", False),
        ("wss://10.0.0.5:8786", False),
        ("tcp://10.0.0.5:8786", True),
        ("tcp://0.0.0.0:8786", True),
        ("ws://192.168.1.2:8786", True),
        ("tcp://[fe80::1]:8786", True),
        ("tcp://no-such-machine.invalid:8786", True),
    ],
)
def test_a_scheduler_exposed_without_tls_gives_a_warning(
    address: str, exposed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("distributed")
    from grader.wings.cluster import spread

    class Link:
        dashboard, listens_at = "", address

        def __init__(self, asked: str) -> None:
            assert asked == AT, "what the scheduler says counts, whatever way this machine takes to it"

        def workers(self) -> dict[str, object]:
            return {}

    monkeypatch.setattr(spread, "Dask", Link)
    told: list[str] = []
    spread.Spread(made_up(tmp_path), "none", AT, told.append)
    assert any("can run any code" in line for line in told) is exposed
