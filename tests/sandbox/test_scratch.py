"""Limits on all files in the scratch folder together: its own file system, and the keeper's checks."""

from __future__ import annotations

import errno
import os
import time

import pytest

from grader.sandbox import tiers
from grader.sandbox.worker import Worker
from grader.wire.frames import decode
from grader.wire.limits import MIB
from tests.sandbox.submissions import CONFINED, LIMITS, WORKING, answers, call, processes_at, staged


def mounts_at(folder: str) -> list[str]:
    """Return the mounts at a folder that processes in it see. Skip the test if there are none."""
    mounts = [(process / "mountinfo").read_text() for process in processes_at(folder)]
    found = [line for text in mounts for line in text.splitlines() if f" {folder} " in line]
    if not found or not all("tmpfs" in line for line in found):
        pytest.skip("this machine lets no user mount a file system, or its bwrap is old")
    return found


@pytest.mark.parametrize("tier", CONFINED)
def test_the_scratch_folder_is_a_file_system_of_limited_size(tier: str) -> None:
    """The file system is in memory and has a maximum size, so its files take no space on the disk."""
    text = "import time\nopen('mine', 'w').write('x')\ntime.sleep(1e6)"
    with Worker("trace", tier, 2, LIMITS) as one:
        frames = one.trace({"name": "x", "chunks": [["x", text]]}, [])
        assert next(frames)[0].get("body") == {"started": True}
        mounted = mounts_at(one.scratch)
        assert all("size=66560k" in line for line in mounted)
        assert tier == "bwrap" or all("nr_inodes=1016" in line for line in mounted)
        for _ in range(200):
            if any("mine" in os.listdir(f"{process}/root{one.scratch}") for process in processes_at(one.scratch)):
                break
            time.sleep(0.05)
        else:
            raise AssertionError("no process sees the file")
        assert os.listdir(one.scratch) == []


FILL = """
import os, time
def fill(first, count, size):
    error = 0
    try:
        for number in range(first, first + count):
            with open(str(number), "wb") as file:
                file.write(b"x" * size)
    except OSError as caught:
        error = caught.errno
    sizes = [entry.stat().st_size for entry in os.scandir(".")]
    return [len(sizes), sum(sizes), error]
def hold():
    time.sleep(1e6)
"""


@pytest.mark.parametrize("tier", CONFINED)
def test_writes_beyond_the_quota_fail(tier: str) -> None:
    """A write fails however fast the program writes. The keeper may also end the program before a write fails."""
    with Worker("trace", tier, 2, LIMITS) as one:
        one.await_ready()
        mounts_at(one.scratch)
        for count, size in ((5, MIB), *([(200, 0)] if tier == "sandlock" else [])):
            asks = [call("fill", first=count * n, count=count, size=size) for n in range(30)]
            frames = staged(one, FILL, asks, [])
            assert frames[-1]["end"] == "disk"
            for entries, total, error in map(decode, answers(frames)):
                assert entries <= 1016 and total <= 65 * MIB and error in (0, errno.ENOSPC)


@pytest.mark.parametrize("tier", WORKING)
def test_a_file_has_a_limited_size(tier: str) -> None:
    with Worker("trace", tier, 2, LIMITS) as one:
        asks = [call("fill", first=n, count=1, size=16 * MIB + n) for n in range(2)]
        assert [*map(decode, answers(staged(one, FILL, asks, [])))] == [
            [1, 16 * MIB, 0],
            [2, 32 * MIB, errno.EFBIG],
        ]


@pytest.mark.parametrize(("count", "size"), [(5, 15 * MIB), (1001, 0)], ids=["bytes", "files"])
@pytest.mark.parametrize("tier", WORKING)
def test_the_keeper_ends_a_program_with_too_large_files_or_too_many(
    tier: str, count: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is smaller than the limit of one file. The test removes the limits of the file system."""
    monkeypatch.setattr(tiers, "SCRATCH_SIZE", 1 << 40)
    monkeypatch.setattr(tiers, "SCRATCH_FILES", 1 << 20)
    with Worker("trace", tier, 2, LIMITS) as one:
        one.await_ready()
        fill = [call("fill", first=0, count=number, size=size) for number in (count - 1, count)]
        assert staged(one, FILL, fill[:1], [])[-1]["end"] == "done"
        assert staged(one, FILL, [fill[1], call("hold")], [])[-1]["end"] == "disk"
