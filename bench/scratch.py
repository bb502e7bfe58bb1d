"""Measure how much a submission writes before the keeper ends it, where the scratch folder has no file system of its own.

    python bench/scratch.py [--runs N]

The keeper checks the folder's size only every ``LOOK_SECONDS``. The script uses the isolation ``none``, in which the
programs can count their bytes in a file outside of the folder. Each program writes until the keeper ends it. The
programs differ in the size of their files and in the number of threads that write. The table shows the largest amount
of all runs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT)]

from grader.sandbox.limits import Limits  # noqa: E402
from grader.sandbox.worker import Worker  # noqa: E402
from grader.wire.limits import MIB  # noqa: E402
from tests.sandbox.submissions import ask  # noqa: E402

PROGRAM = """
import os, threading
data = b"x" * {size}
log = os.open({log!r}, os.O_WRONLY | os.O_APPEND)
def write(thread):
    for number in range({most} // {threads}):
        file = os.open(f"{{thread}}-{{number}}", os.O_WRONLY | os.O_CREAT)
        os.write(file, data)
        os.close(file)
        os.write(log, b"x")
def f():
    threads = [threading.Thread(target=write, args=(thread,)) for thread in range({threads})]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""
SIZES, THREADS = (MIB, 4 * MIB, 15 * MIB), (1, 2, 4, 16, 64)
MOST = 4096 * MIB  # No program writes more, so that the script fills no disk.


def written(worker: Worker, size: int, threads: int) -> int:
    """Return the number of MiB that a program has written when the keeper ended it."""
    with tempfile.NamedTemporaryFile() as log:
        text = PROGRAM.format(size=size, log=log.name, threads=threads, most=MOST // size)
        end = ask(text, worker)[-1]["end"]
        assert end == "disk", end
        return os.path.getsize(log.name) * size // MIB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=6)
    runs = parser.parse_args().runs
    print("MiB per file, threads, most MiB")
    with Worker("trace", "none", 2, Limits(trace_seconds=20, total_seconds=40)) as worker:
        for size in SIZES:
            for threads in THREADS:
                print(
                    f"{size // MIB:12} {threads:8} {max(written(worker, size, threads) for _ in range(runs)):9}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
