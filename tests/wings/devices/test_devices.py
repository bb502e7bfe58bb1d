"""Programs run on real devices or on devices of several processes. The grader judges them and reports the results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grader.batch.grade import Grader
from grader.common.result import Report, Result
from grader.course.loading import Course
from grader.intake.submission import Chunk, Source, Submission
from grader.sandbox.limits import Limits
from grader.sandbox.worker import Worker, WorkerDied
from grader.wings.devices.backends import BACKENDS, CPU
from grader.wings.devices.devices import NoDevices, RealDevices, gathered, why_not
from tests.made_up import made_up

NAME = "x1_gather"
RIGHT = """\
import jax
from jax.sharding import PartitionSpec as P
def gather(a, *, mesh):
    local = lambda a: jax.lax.all_gather(a, "x", axis=0, tiled=True)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    return made_up(tmp_path_factory.mktemp("course"))


@pytest.fixture(scope="module")
def two_processes() -> Iterator[RealDevices]:
    devices = RealDevices(CPU, "none", Limits(), simulated=4, processes=2)
    yield devices
    devices.close()


@pytest.fixture(scope="module")
def fewer() -> Iterator[RealDevices]:
    """Yield a machine with two devices, which are too few for the course."""
    devices = RealDevices(CPU, "none", Limits(), simulated=2)
    yield devices
    devices.close()


def submitted(text: str = RIGHT) -> Submission:
    return Submission("ada", {NAME: Source(f"{NAME}.py", (Chunk(f"{NAME}.py", text),))}, (), "digest")


@pytest.fixture(scope="module")
def grader(course: Course) -> Iterator[Grader]:
    with Grader(course, "none") as made:
        yield made


def with_devices(grader: Grader, devices: RealDevices | None) -> Grader:
    """Return a grader with the same processes and with these devices."""
    workers = grader.worker_sets[0].without_devices()  # type: ignore[union-attr]
    workers.devices = devices
    return Grader(grader.course, "none", here=workers, devices=devices)


def graded(grader: Grader, devices: RealDevices | None, text: str = RIGHT) -> Report:
    return with_devices(grader, devices).grade(submitted(text), [NAME])


def results(report: Report) -> dict[str, Result]:
    return {r.name: r for r in report.exercises[0].results if r.kind == "check"}


def test_two_processes_give_the_shards_of_one_process(grader: Grader, two_processes: RealDevices) -> None:
    """A mesh has four devices, two in each of two processes. No process has the shards of the other process."""
    assert two_processes.text == "cpu: 4 devices of 2 processes"
    found = [a.finding.observation for a in with_devices(grader, two_processes).answered(submitted(), NAME)]
    seen = [one for one in found if one is not None]
    assert {max(len(array.slices) for run in one.outputs for array in run) for one in seen} == {4, 2}
    for one in seen:
        assert (
            one.on_devices is not None and len(one.on_devices) == 1
        )  # one precision, because a CPU rounds no operands
        for here, there in zip(one.outputs, one.on_devices[0], strict=True):
            for a, b in zip(here, there, strict=True):
                assert (a.shape, a.dtype, a.slices) == (b.shape, b.dtype, b.slices)
                assert all(np.array_equal(s, t) for s, t in zip(a.shards, b.shards, strict=True))


def test_two_processes_time_a_program_together(
    grader: Grader, two_processes: RealDevices, fewer: RealDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processes wait for each other, so both must call a program equally often.

    Programs that need more devices than the machine has get no times.
    """
    monkeypatch.setattr("grader.wings.devices.devices.ROUNDS", 2)
    monkeypatch.setattr("grader.wings.devices.devices.CALLS", 2)
    two_processes.times = fewer.times = True
    try:
        timed, untimed = (
            [seen for a in with_devices(grader, d).answered(submitted(), NAME) if (seen := a.finding.observation)]
            for d in (two_processes, fewer)
        )
    finally:
        two_processes.times = fewer.times = False
    assert all(len(one.measured) == 2 and min(one.measured) > 0 for one in timed)  # type: ignore[type-var]
    assert "needs 4 devices, 2 here" in {one.measured for one in untimed}


def test_checks_that_need_more_devices_are_blocked_and_cost_nothing(grader: Grader, fewer: RealDevices) -> None:
    """The grader judges the program's facts, which need no devices, but not its values."""
    report = graded(grader, fewer)
    found = results(report)
    assert {n: (r.status, r.unjudged) for n, r in found.items()} == {
        "value": ("blocked", True),
        "traffic": ("passed", False),
    }
    assert found["value"].reason == "needs 4 devices, 2 here; the check passes on simulated devices"
    assert (report.earned, report.pending, report.unjudged) == (1, 1, 1)
    assert report.notes == ["cpu: 2 devices: 2 of 3 points could be judged on these devices"]


def test_wrong_values_on_simulated_devices_fail_with_too_few_devices(grader: Grader, fewer: RealDevices) -> None:
    zeros = "import jax\ndef gather(a, *, mesh):\n    return jax.numpy.zeros(a.shape)\n"
    found = results(graded(grader, fewer, zeros))
    assert {n: (r.status, r.unjudged) for n, r in found.items()} == {
        "value": ("failed", False),
        "traffic": ("blocked", False),
    }
    assert found["value"].hint == "You returned zeros."


def test_values_that_are_wrong_only_on_real_devices_fail(
    grader: Grader, two_processes: RealDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = RealDevices.outputs

    def wrong(self: RealDevices, *about: object) -> object:
        found = right(self, *about)  # type: ignore[arg-type]
        return [[[replace(a, shards=[-s for s in a.shards]) for a in run] for run in one] for one in found]

    monkeypatch.setattr(RealDevices, "outputs", wrong)  # a faulty accelerator
    found = results(graded(grader, two_processes))
    assert found["value"].status == "failed"
    assert found["value"].reason.startswith(
        "right on simulated devices, wrong on real ones: on the mesh (x=4), on device (x=0), all values"
    )
    assert found["traffic"].status == "blocked"


def test_a_program_that_the_devices_do_not_run_is_not_the_learners_failure(
    grader: Grader, two_processes: RealDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    for worker in two_processes.workers:
        monkeypatch.setattr(worker, "run_program", lambda *about, **more: ({"broken": "no such thing"}, []))
    found = results(graded(grader, two_processes))
    assert (
        found["value"].reason
        == "the cpu did not run this program (no such thing); the check passes on simulated devices"
    )
    assert (found["value"].unjudged, found["traffic"].status) == (True, "passed")


def test_reports_from_simulated_devices_mention_no_backend(grader: Grader) -> None:
    report = graded(grader, None)
    assert (report.backend, report.notes, report.unjudged) == ("cpu", [], 0)
    assert "unjudged" not in report.dumps() and "backend" not in report.exercises[0].basis


def test_the_fingerprint_depends_on_the_devices(grader: Grader, two_processes: RealDevices) -> None:
    prints = {with_devices(grader, d).fingerprint(submitted(), [NAME]) for d in (None, two_processes)}
    assert len(prints) == 2


def test_shards_of_several_processes_come_together_in_the_order_of_the_mesh() -> None:
    array = {"shape": [4], "dtype": "float32"}
    first = {"outputs": [[array | {"slices": [[[0, 1]], [[2, 3]]]}]], "devices": [0, 2]}
    second = {"outputs": [[array | {"slices": [[[1, 2]], [[3, 4]]]}]], "devices": [1, 3]}
    header, blobs = gathered([(first, [b"a", b"c"]), (second, [b"b", b"d"])], 4)
    assert header["outputs"][0][0]["slices"] == [[[0, 1]], [[1, 2]], [[2, 3]], [[3, 4]]]
    assert blobs == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize(("name", "said", "told"), [
    ("gpu", "Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices. (set JAX_PLATFORMS='' to choose)",
     "--backend gpu: JAX finds no GPU here (FAILED_PRECONDITION: No visible GPU devices); pip install 'jax[cuda13]'"),
    ("tpu", "ABORTED: The TPU is already in use by process with pid 4711. Not attempting to load libtpu.so in this process.",
     "--backend tpu: process 4711 holds the TPU; end it (sudo lsof -w /dev/accel* /dev/vfio/* names it); if no process "
     "holds the TPU, remove /tmp/libtpu_lockfile"),
    ("tpu", "Internal error when accessing libtpu multi-process lockfile. Run \"$ sudo rm /tmp/libtpu_lockfile\".",
     "--backend tpu: another process holds the TPU; end it (sudo lsof -w /dev/accel* /dev/vfio/* names it); if no process "
     "holds the TPU, remove /tmp/libtpu_lockfile"),
])  # fmt: skip
def test_unavailable_devices_are_reported_in_one_line(name: str, said: str, told: str) -> None:
    assert why_not(BACKENDS[name], said) == told


def test_devices_are_shared_evenly_or_not_at_all() -> None:
    with pytest.raises(NoDevices, match="8 devices cannot be shared evenly by 3 processes"):
        RealDevices(CPU, "none", Limits(), simulated=8, processes=3)


def test_an_accelerator_that_is_not_here_is_reported_before_anything_is_graded(tmp_path: Path) -> None:
    with pytest.raises(NoDevices, match=r"--backend gpu: JAX finds no GPU here \(.*\); pip install 'jax\[cuda13\]'"):
        RealDevices(BACKENDS["gpu"], "none", Limits(), simulated=8)


def test_running_outside_a_sandbox_that_hides_the_device_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The process that runs programs then has no sandbox. The grader still traces learners' Python in a sandbox."""
    found = {"none": {"platform": "gpu", "kind": "Example 9000", "count": 1}}
    monkeypatch.setattr(
        Worker, "look", lambda self, joined=(): found.get(self.tier, {"problem": "no device\nof any kind"})
    )
    told: list[str] = []
    devices = RealDevices(BACKENDS["gpu"], "sandlock", Limits(), 8, tell=told.append)
    assert (devices.text, [w.tier for w in devices.workers]) == ("gpu: 1 x Example 9000", ["none"])
    assert told == [
        "the gpu cannot be reached from inside the sandbox sandlock (no device of any kind), so XLA programs run "
        "without a sandbox; students' Python still runs in a sandbox"
    ]
    found["sandlock"] = found["none"]
    assert [w.tier for w in RealDevices(BACKENDS["gpu"], "sandlock", Limits(), 8, tell=told.append).workers] == [
        "sandlock"
    ]
    assert len(told) == 1


def test_processes_of_one_mesh_without_a_sandbox_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RealDevices, "_found", lambda self: {"kind": "cpu", "count": 8})
    told: list[str] = []
    devices = RealDevices(CPU, "sandlock", Limits(), simulated=8, processes=2, tell=told.append)
    assert [w.tier for w in devices.workers] == ["none", "none"]
    assert told == [
        "processes of one mesh use the network, so XLA programs run without a sandbox; "
        "students' Python still runs in a sandbox"
    ]
    RealDevices(CPU, "none", Limits(), simulated=8, processes=2, tell=told.append)
    assert len(told) == 1  # the user asked for no sandbox


def test_processes_of_one_mesh_restart_together_when_one_dies(grader: Grader, two_processes: RealDevices) -> None:
    """The other processes would wait forever for the dead process, and cannot connect to a new process."""
    graded(grader, two_processes)
    victim = two_processes.workers[1].process
    assert victim is not None
    victim.kill()
    victim.wait()
    assert {n: r.status for n, r in results(graded(grader, two_processes)).items()} == {
        "value": "passed",
        "traffic": "passed",
    }


def test_a_program_that_does_not_finish_is_not_run_again(
    grader: Grader, two_processes: RealDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def never(*about: object, **more: object) -> object:
        asked.append(about)
        raise WorkerDied("timeout")

    for worker in two_processes.workers:
        monkeypatch.setattr(worker, "run_program", never)
    found = results(graded(grader, two_processes))
    assert (
        found["value"].reason
        == "the cpu did not run this program (does not finish); the check passes on simulated devices"
    )
    assert len(asked) == 2  # each process gets one request for all meshes and inputs
