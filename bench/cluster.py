"""Measure the gain from a second worker: grade batches on this machine, alternately with one worker and with two.

    python bench/cluster.py [SUBMISSIONS] [ROUNDS]

A worker is three processes that work at once (one judges, one traces, one runs programs), so a single worker keeps more
than one core busy. On two cores, two workers gain at most a factor 2 / (cores that one worker keeps busy). The script
also prints the measured number of busy cores. Each worker starts, and grades two submissions, before the timing begins.
Each batch starts new sandboxes, and its time includes this start. Each round grades new submissions, so that
no result is cached.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
from isolation import MODULE, students

from grader.common.result import Report
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.intake.submission import Submission
from grader.sandbox.tiers import best_tier
from grader.wings.cluster.dispatch import Patience
from grader.wings.cluster.spread import Spread

ROOT = Path(__file__).resolve().parent.parent
STUDENTS, ROUNDS = 60, 5


@contextmanager
def cluster(workers: int) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Yield the address of a scheduler and the processes of its workers."""
    with tempfile.TemporaryDirectory() as folder:
        place, processes = Path(folder, "scheduler.json"), list[subprocess.Popen[bytes]]()

        def start(what: str, *words: str) -> None:
            command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", str(place), *words]
            processes.append(
                subprocess.Popen(
                    command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL
                )
            )

        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        for number in range(workers):
            local = str(Path(folder, str(number)))
            start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", local)
        try:
            while not (place.is_file() and place.read_text().endswith("}")):
                time.sleep(0.1)
            yield json.loads(place.read_text())["address"], [psutil.Process(p.pid) for p in processes[1:]]
        finally:
            for process in reversed(processes):
                process.terminate()
                process.wait()


def graded(grader: Spread, work: list[Submission], names: list[str]) -> float:
    """Return the seconds that a batch takes."""
    failed: list[Exception] = []

    def done(student: str, result: Report | Exception) -> None:
        if isinstance(result, Exception):
            failed.append(result)

    start = time.perf_counter()
    by_student = {one.student: one for one in work}
    grader.batch(by_student, by_student.__getitem__, names, done)
    took = time.perf_counter() - start
    if failed:
        raise failed[0]
    return took


class Meter:
    """Measure the CPU seconds of workers and of all processes that they start.

    A killed process does not report its CPU time to its parent, and sandboxes are killed at the end of a batch. So the
    meter reads the time often, and keeps the largest reading.
    """

    def __init__(self, workers: list[psutil.Process]) -> None:
        self._workers, self._over = workers, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Meter:
        self._before = self._most = self._now()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        return self._most - self._before

    def _watch(self) -> None:
        while not self._over.wait(0.2):
            self._most = max(self._most, self._now())

    def _now(self) -> float:
        total = 0.0
        for process in [p for w in self._workers for p in (w, *w.children(recursive=True))]:
            with suppress(psutil.Error):  # psutil raises an error if the process has ended since it was listed
                used = process.cpu_times()
                total += used.user + used.system + used.children_user + used.children_system
        return total


def fresh(course: Course, names: list[str], count: int, mark: str) -> list[Submission]:
    """Return submissions that were never graded before."""

    def marked(one: Submission) -> Submission:
        sources = {
            name: replace(source, chunks=tuple(replace(c, text=f"{c.text}# {mark}\n") for c in source.chunks))
            for name, source in one.sources.items()
        }
        return replace(one, sources=sources, digest=f"{one.digest} {mark}")

    return [marked(one) for one in students(course, names, count)]


def main() -> None:
    course = find_course(ROOT)
    names = list(course.module(MODULE).exercises)
    words = sys.argv[1:]
    count, rounds = int(words[0]) if words else STUDENTS, int(words[1]) if words[1:] else ROUNDS
    times: dict[int, list[float]] = {1: [], 2: []}
    cores: dict[int, list[float]] = {1: [], 2: []}
    with ExitStack() as stack:
        clusters, graders = {}, {}
        for workers in times:
            address, clusters[workers] = stack.enter_context(cluster(workers))
            graders[workers] = stack.enter_context(
                Spread(course, best_tier(), address, print, patience=Patience(first=300))
            )
            graded(graders[workers], fresh(course, names, 2 * workers, "warm"), names)
        for number in range(rounds):
            for workers in times if number % 2 else reversed(times):
                with Meter(clusters[workers]) as meter:
                    times[workers].append(graded(graders[workers], fresh(course, names, count, f"{number}"), names))
                cores[workers].append(meter.seconds / times[workers][-1])
    print(f"{count} submissions of {MODULE}, {rounds} rounds, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for workers, taken in times.items():
        each = ", ".join(f"{t:.2f}" for t in taken)
        print(
            f"{workers} worker{'s' * (workers > 1)}: {statistics.median(taken):6.2f} s, "
            f"{statistics.median(cores[workers]):.2f} cores busy   rounds {each}"
        )
    ratios = sorted(one / two for one, two in zip(times[1], times[2], strict=True))
    most = min(2.0, (os.cpu_count() or 1) / statistics.median(cores[1]))
    print(
        f"two against one: {statistics.median(ratios):.2f}x (from {ratios[0]:.2f} to {ratios[-1]:.2f}); "
        f"these cores allow {most:.2f}x where nothing else runs"
    )


if __name__ == "__main__":
    main()
