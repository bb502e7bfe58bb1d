"""The grader's next run removes temporary folders of killed graders, but not those of running graders."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="locks files")
WORKS = """
import sys
from grader.sandbox.limits import Limits
from grader.sandbox.processes import take
from grader.sandbox.tiers import NO_EXTRA
from pathlib import Path
scratch = Path(take("trace", sys.argv[1], 1, Limits(), NO_EXTRA).scratch)
(scratch / "deep").mkdir()
(scratch / "deep" / "left").write_text("behind")
(scratch / "deep").chmod(0)
print(scratch.parent, flush=True)
sys.stdin.read()
"""


@contextmanager
def at_work(place: Path, tier: str = "none") -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Start a process that has a worker, and yield the process and its folder. Then the process ends normally."""
    env = os.environ | {"TMPDIR": str(place), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", WORKS, tier], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())


def test_the_next_run_removes_the_folder_of_a_killed_run(tmp_path: Path) -> None:
    with at_work(tmp_path) as (killed, left):
        killed.kill()
    assert (left / "lock").is_file()
    with at_work(tmp_path) as (_, first):
        assert first.is_dir() and not left.exists()
        with at_work(tmp_path) as (_, second):
            assert first.is_dir() and second.is_dir() and len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == []


def test_folders_without_a_lock_of_the_grader_are_kept(tmp_path: Path) -> None:
    for name in ("shardlings-without-a-lock", "shardlings-link", "others"):
        (tmp_path / name).mkdir()
    (tmp_path / "others" / "lock").touch()
    (tmp_path / "shardlings-link" / "lock").symlink_to(tmp_path / "others" / "lock")
    (tmp_path / "shardlings-linked").symlink_to(tmp_path / "others")
    (tmp_path / "shardlings-file").touch()
    before = sorted(tmp_path.rglob("*"))
    with at_work(tmp_path) as (_, own):
        assert own.is_dir()
    assert sorted(tmp_path.rglob("*")) == before


def test_an_old_empty_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process was killed before it made its lock, or after it had removed its lock."""
    from grader.sandbox import temporary

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("shardlings-old", "shardlings-new", "shardlings-full"):
        (tmp_path / name).mkdir()
    (tmp_path / "shardlings-full" / "file").touch()
    for name in ("shardlings-old", "shardlings-full"):
        os.utime(tmp_path / name, (0, 0))
    temporary.remove_left_behind()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shardlings-full", "shardlings-new"]


def test_a_folder_of_another_user_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from grader.sandbox import temporary

    (tmp_path / "shardlings-theirs").mkdir()
    (tmp_path / "shardlings-theirs" / "lock").touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with monkeypatch.context() as other:
        other.setattr("os.geteuid", lambda: os.stat(tmp_path).st_uid + 1)
        temporary.remove_left_behind()
    assert (tmp_path / "shardlings-theirs").is_dir()
    temporary.remove_left_behind()
    assert list(tmp_path.iterdir()) == []
