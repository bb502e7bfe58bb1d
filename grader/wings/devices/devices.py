"""Run programs on real devices, or on the devices of several processes, in addition to simulated devices.

A program's facts (collectives, bytes, FLOPs, memory, layout) always come from simulated devices. Real devices supply
only the values of the results. So the compiler of a real device cannot cost a student a point, and a check that ignores
values needs no real device. If the devices cannot run a program, the values are replaced by a placeholder (``Unseen``)
with the reason.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from math import prod
from threading import Lock
from typing import Any, TypeVar

from grader.batch.backends import STUCK, unseen
from grader.batch.replies import outputs_of
from grader.common.observation import Observation, Sharded
from grader.course.config import CourseError
from grader.judging.plan import Ask
from grader.reports.points import counted
from grader.sandbox.limits import Limits
from grader.sandbox.worker import Worker, WorkerDied
from grader.wings.devices.backends import CPU, Backend, extra_of
from grader.wire.messages import CallAsk
from grader.wire.text import crash_reason

WALL = 180.0  # Limit of wall time for a program in seconds, because devices may wait for each other forever.
ROUNDS, CALLS = 7, 20  # A program is timed in at most 7 rounds of at most 20 calls each.
Reply = tuple[Mapping[str, Any], list[bytes]]
T = TypeVar("T")


class NoDevices(CourseError):
    """The requested devices are not available. The message says what to do."""


class RealDevices:
    """The devices of one backend on this machine. Several processes may share one mesh. One program runs at a time.

    Args:
        backend: the kind of devices.
        tier: the kind of sandbox of the processes. Several processes run without a sandbox, because they use the
            network. A single process runs without a sandbox if the sandbox prevents access to an accelerator.
        limits: the limits for each program.
        simulated: number of devices that a CPU simulates, in all processes together.
        processes: number of processes that share the mesh.
        tell: a function that is called with one line of text if processes run without the requested sandbox.

    Attributes:
        times: whether to time programs on the devices.
        kind, count: the name that JAX gives for a device, and the number of devices.

    Raises NoDevices.
    """

    def __init__(
        self, backend: Backend, tier: str, limits: Limits, simulated: int, processes: int = 1,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:  # fmt: skip
        if simulated % processes:
            raise NoDevices(
                f"{counted(simulated, 'device')} cannot be shared evenly by {processes} processes; course.yaml says "
                f"devices: {simulated}"
            )
        self.backend, self.processes, self.times = backend, processes, False
        self._lock, self._pool = Lock(), ThreadPoolExecutor(processes)
        open_ones = "none" if processes > 1 else tier
        self.workers = self._workers(open_ones, limits, simulated)
        found = self._found()
        if "problem" in found and tier != "none" and backend is not CPU:
            self.close()
            self.workers = self._workers("none", limits, simulated)
            without = self._found()
            if "problem" not in without:
                what = f"the {backend.name} cannot be reached from inside the sandbox {tier} ({one(found['problem'])})"
                tell(f"{what}, so XLA programs run without a sandbox; students' Python still runs in a sandbox")
            found = without
        elif processes > 1 and tier != "none":
            tell(
                "processes of one mesh use the network, so XLA programs run without a sandbox; "
                "students' Python still runs in a sandbox"
            )
        if "problem" in found:
            self.close()
            raise NoDevices(why_not(backend, found["problem"]))
        self.kind, self.count = str(found["kind"]), int(found["count"])

    def _workers(self, tier: str, limits: Limits, simulated: int) -> list[Worker]:
        return [
            Worker("run", tier, simulated // self.processes, limits, extra_of(self.backend))
            for _ in range(self.processes)
        ]

    @property
    def text(self) -> str:
        """A description, such as ``gpu: 1 x NVIDIA H200`` or ``cpu: 8 devices of 2 processes``."""
        what = counted(self.count, "device") if self.backend is CPU else f"{self.count} x {self.kind}"
        return f"{self.backend.name}: {what}" + (f" of {self.processes} processes" if self.processes > 1 else "")

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()

    def outputs(
        self, ask: Ask, request: CallAsk, program: bytes, observation: Observation
    ) -> list[list[list[Sharded]]]:
        """Return the shards of a program's results on these devices, in the form of ``Observation.on_devices``.

        Args:
            ask: the request, with the inputs of the program.
            request: ``ask`` as JSON data, without the values of inputs, for the process that runs programs.
            program: the traced program as MLIR bytecode.
            observation: the observation of the program on simulated devices.
        """
        need = prod(ask.mesh.values())
        if need > self.count:
            return [unseen(observation, f"needs {need} devices, {self.count} here")]
        usual = self._values(ask, request, program, exact=False)
        if isinstance(usual, str):
            return [unseen(observation, f"the {self.backend.name} did not run this program ({usual})")]
        outputs, matmuls = usual
        found = [[[replace(array, factors=self.backend.factors) for array in run] for run in outputs]]
        if matmuls and self.backend.factors:
            exact = self._values(ask, request, program, exact=True)
            found += [] if isinstance(exact, str) else [exact[0]]
        return found

    def seconds(self, ask: Ask, request: CallAsk, program: bytes) -> tuple[float, ...] | str:
        """Return the seconds of one call in the slowest process, one number per round; or why it was not timed."""
        if (need := prod(ask.mesh.values())) > self.count:
            return f"needs {need} devices, {self.count} here"
        rounds, found = (2, 1), ()  # the first timing is a trial, which shows how many calls a round needs
        for _ in ("first", "last"):
            replies = self._asked(request, program, [], times=rounds)
            if isinstance(replies, str):
                return replies
            each = [header["seconds"] for header, _ in replies if header["seconds"]]
            found = tuple(max(one) for one in zip(*each, strict=True))
            rounds = (ROUNDS, max(1, min(CALLS, int(0.05 / min(found)))))
        return found

    def _values(
        self, ask: Ask, request: CallAsk, program: bytes, *, exact: bool
    ) -> tuple[list[list[Sharded]], bool] | str:
        replies = self._asked(request, program, ask.arrays(), exact=exact)
        if isinstance(replies, str):
            return replies
        outputs = outputs_of(ask, *gathered(replies, prod(ask.mesh.values())))
        return outputs, any(header["matmuls"] for header, _ in replies)

    def _asked(self, request: CallAsk, program: bytes, inputs: list, **more: Any) -> list[Reply] | str:
        """Return the answers of all processes, or the reason why an answer is missing.

        If a process dies, send all requests once more.
        """
        replies: list[Reply] = []
        with self._lock:
            for attempt in ("first", "last"):
                try:
                    if any(worker.process is None for worker in self.workers):
                        self._found()  # restarted processes must connect to each other again
                    replies = self._each(lambda w: w.run_program(request, program, inputs, WALL, **more))
                    break
                except WorkerDied as died:
                    self.close()
                    if died.reason == "timeout":
                        return STUCK
                    if attempt == "last":
                        return crash_reason(died.stderr) or died.reason
        for header, _ in replies:
            if problem := header.get("broken") or header.get("fault", {}).get("message"):
                return one(str(problem))
        return replies

    def _found(self) -> dict[str, Any]:
        """Start and connect the processes. Return facts about their devices, or {"problem": an error message}."""
        address = f"127.0.0.1:{_free_port()}" if self.processes > 1 else ""
        try:
            found = self._each(lambda w: w.look((address, self.processes, self.workers.index(w)) if address else ()))
        except WorkerDied as died:
            self.close()
            return {"problem": crash_reason(died.stderr) or died.stderr.strip()[-200:] or died.reason}
        return next((one for one in found if "problem" in one), found[0])

    def _each(self, do: Callable[[Worker], T]) -> list[T]:
        """Call ``do`` for all processes in parallel.

        If a process dies, end all processes and raise WorkerDied, because the others would wait for the dead process.
        """
        running = [self._pool.submit(do, worker) for worker in self.workers]
        try:
            return [future.result() for future in running]
        except WorkerDied:
            for worker in self.workers:
                if worker.process is not None:
                    worker.process.kill()
            for future in running:
                with suppress(WorkerDied):
                    future.result()
            raise


def gathered(replies: Sequence[Reply], devices: int) -> Reply:
    """Merge the answers of several processes into the answer that one process with all devices would give."""
    # If a mesh is small, all devices of a process may be outside the mesh. Such a process has no shards.
    replies = [(header, held) for header, held in replies if header["devices"]]
    (first, _), *_ = replies
    runs, blobs = [], []
    rests = [iter(held) for _, held in replies]
    for number, run in enumerate(first["outputs"]):
        arrays = []
        for at, about in enumerate(run):
            slices: list[Any] = [None] * devices
            shards = [b""] * devices
            for (header, _), rest in zip(replies, rests, strict=True):
                places = header["outputs"][number][at]["slices"]
                for device, where in zip(header["devices"], places, strict=True):
                    slices[device], shards[device] = where, next(rest)
            arrays.append(about | {"slices": slices})
            blobs += shards
        runs.append(arrays)
    return {"outputs": runs}, blobs


def why_not(backend: Backend, problem: str) -> str:
    """Return a line with the reason why devices are not available, and what to do."""
    reason, asked = one(problem), f"--backend {backend.name}"
    held = re.search(r"already in use by process with pid (\d+)|libtpu_lockfile|already in use", problem, re.IGNORECASE)
    if backend.name == "tpu" and held:
        who = f"process {held[1]}" if held[1] else "another process"
        return (
            f"{asked}: {who} holds the TPU; end it (sudo lsof -w /dev/accel* /dev/vfio/* names it); if no process "
            "holds the TPU, remove /tmp/libtpu_lockfile"
        )
    what = {"gpu": "GPU", "tpu": "TPU"}.get(backend.name, backend.name)
    return f"{asked}: JAX finds no {what} here ({reason}); {backend.install or 'see shardlings doctor'}"


def one(text: str) -> str:
    """Return an error message of JAX as one line, without JAX's general advice."""
    line = " ".join(text.split())
    line = re.sub(r"^Unable to initialize backend '\w+': ", "", line)
    return re.sub(r" \(you may need to uninstall.*|\(set JAX_PLATFORMS=.*", "", line)[:200].rstrip(" .")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
