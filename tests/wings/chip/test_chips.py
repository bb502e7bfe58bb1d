"""Compile programs with the real TPU compiler, which needs no TPU, in the sandbox and by the commands.

The tests are skipped if libtpu is not installed. ``SHARDLINGS_TPU=required``, which ``.ci/run`` sets, forbids this.
"""

from __future__ import annotations

import fcntl
import importlib.util
import math
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from jax.sharding import PartitionSpec as P

from grader.batch import explaining
from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.clock import Share
from grader.common.cache import MOST, Cache
from grader.common.observation import Fault
from grader.common.result import Report
from grader.course.loading import Course, load_course
from grader.course.reference import reference_source
from grader.exercise import Exercise, normal
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.plan import Ask
from grader.sandbox.tiers import TIERS, available, best_tier
from grader.sandbox.worker import Worker
from grader.wings.chip import chips
from grader.wings.chip.compiling import TpuCompiler, compiler_problem, slice_of
from grader.wings.chip.on_chip import OnChip, counted, exposed_lines, facts
from grader.wire.frames import decode
from grader.wire.messages import FunctionAsk, SourceCode
from grader.wire.schedule import Schedule
from tests.commands import ROOT, shardlings

problem = compiler_problem()
if problem and os.environ.get("SHARDLINGS_TPU") == "required":
    raise RuntimeError(f"SHARDLINGS_TPU=required, and {problem}")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(problem), reason=problem)]

NAME = "collective_matmul.py"
TEXT = (ROOT / "docs" / NAME).read_text(encoding="utf-8")
SOURCE = Source(NAME, (Chunk(NAME, TEXT),))
DIMS = {"I": 4096, "J": 4096, "K": 4096}  # large sizes, at which a matmul and a permute take 80 us each
NARROW = {"I": 88, "J": 13, "K": 17}  # small sizes, at which the program could run


@pytest.fixture(scope="module")
def course() -> Course:
    return load_course(ROOT / "course.yaml")


@pytest.fixture(scope="module")
def worker(course: Course, cache: Cache) -> Iterator[Worker]:
    """Yield the worker that compiles for all tests and slices."""
    compiler = TpuCompiler(course, best_tier(), slice_of("v5e:2x4"), cache)
    yield compiler.worker
    compiler.close()


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cache]:
    with Cache(tmp_path_factory.mktemp("compiled"), MOST) as cache:
        yield cache


@pytest.fixture(scope="module")
def graders(course: Course, worker: Worker, cache: Cache) -> Iterator[dict[str, Grader]]:
    """Yield graders by slice. They share the worker that compiles, and the cache."""
    names = ("v5e:2x4", "v5p:2x2x2", "v6e:2x4", "v4p:2x2x2", "7x:1x2x2", "v5e:4x8")
    workers: Grader | None = None
    found = {}
    for name in names:
        compiler = TpuCompiler(course, best_tier(), slice_of(name), cache, worker)
        found[name] = Grader(course, best_tier(), compiler=compiler)
        workers = workers or found[name]
    yield found
    for grader in found.values():
        grader.__exit__()


def asks_of(course: Course, name: str, on: str = "v5e:2x4", **dims: int) -> list[Ask]:
    space: dict = {}
    exec(TEXT, space)
    exercise = Exercise(meshes=[{"x": 8}], id="collective_matmul")
    arrays = {"a": normal("I", "J", spec=P("x"), dtype="bfloat16"), "w": normal("J", "K", dtype="bfloat16")}
    values = exercise.call(exercise.body(out_specs=P())(space[name]), dims=NARROW, **arrays)  # type: ignore[arg-type]
    call = exercise.timing(values, on=on, dims=DIMS | dims)
    return explaining.asks_of(course, exercise, [call], explaining.Wanted())[0]


def compiled(course: Course, graders: dict[str, Grader], name: str, on: str = "v5e:2x4", **dims: int) -> OnChip:
    (found,), notes = chips.on_chips(graders[on], SOURCE, asks_of(course, name, on, **dims), slice_of(on))
    assert notes == []
    return found


def share(found: OnChip, kind: str) -> Share:
    assert found.timeline is not None, found.fault or found.unreplayed
    return found.timeline.shares()[kind]


def temporaries(found: OnChip) -> int:
    assert found.schedule is not None
    return found.schedule.temporaries


def test_the_compiler_overlaps_the_permutes_of_a_right_ring_and_none_of_a_serial_one(
    course: Course, graders: dict[str, Grader]
) -> None:
    right, serial, plain = (compiled(course, graders, name) for name in ("right", "waits", "gather_first"))
    assert share(right, "permute").part > 0.75
    assert share(serial, "permute").part < 0.35
    assert share(plain, "all_gather").part == 0
    assert right.timeline is not None and serial.timeline is not None
    assert right.timeline.step < serial.timeline.step
    large = compiled(course, graders, "gather_first", I=8192, J=8192)
    assert temporaries(large) >= 8192 * 8192 * 2 > 100 * temporaries(right), "the gather holds all of A"
    (one,) = counted(right.timeline)
    assert one.runs == 7 and one.overlapped >= 5
    assert any("of these 7 collectives overlap for at least 90% of their time" in text for _, text in facts(right))


def test_the_learners_lines_are_in_the_compilers_schedule(course: Course, graders: dict[str, Grader]) -> None:
    found = compiled(course, graders, "waits")
    assert found.schedule is not None and found.timeline is not None
    lines = TEXT.splitlines()
    sends = {i for i, line in enumerate(lines, 1) if "ppermute" in line}
    multiplies = {i for i, line in enumerate(lines, 1) if "a @ w" in line}
    for one in found.schedule.walk():
        if one.op == "start":
            assert one.file == NAME and one.line in sends
        if one.op == "matmul":
            assert one.file == NAME and one.line in multiplies
    assert all(text.endswith(tuple(f"{NAME}:{n}" for n in sends)) for text in exposed_lines(found.timeline))


def test_permutes_in_a_serial_loop_are_counted_and_exposed(course: Course, graders: dict[str, Grader]) -> None:
    found = compiled(course, graders, "late_loop")
    assert found.timeline is not None
    assert sum(c.runs for c in found.timeline.collectives) == 7
    assert share(found, "permute").part < 0.2


@pytest.mark.parametrize("on", ["v5p:2x2x2", "v6e:2x4", "v4p:2x2x2"])
def test_one_program_is_compiled_for_other_slices(course: Course, graders: dict[str, Grader], on: str) -> None:
    found = compiled(course, graders, "gather_first", on, K=1024)
    assert found.timeline is not None and found.clock is not None, found.fault
    assert found.timeline.matmuls == pytest.approx(found.clock.matmuls, rel=0.4)
    assert list(found.timeline.shares()) == ["all_gather"]


def test_a_chip_of_two_devices_has_a_mesh_of_its_cores(course: Course, graders: dict[str, Grader]) -> None:
    found = compiled(course, graders, "gather_first", "7x:1x2x2", K=1024)
    assert found.schedule is not None and found.schedule.mesh == {"x": 8}, found.fault
    assert list(found.timeline.shares()) == ["all_gather"] if found.timeline else False
    assert found.chip.hbm == 96e9, "half of the chip's"


def test_a_slice_of_several_hosts_is_compiled_like_one(course: Course, graders: dict[str, Grader]) -> None:
    exercise, on = course.exercise("c3_contracting"), slice_of("v5e:4x8")
    sizes = {"I": 512, "J": 512, "K": 512}
    asks, _ = chips.asked(course, exercise, "matmul_all_reduce", on, {"x": 4, "y": 8}, sizes)
    (found,), _ = chips.on_chips(graders["v5e:4x8"], explaining.reference(exercise), asks, on)
    assert found.schedule is not None and found.timeline is not None, found.fault
    (sent,) = {i.communication for i in found.schedule.walk() if i.communication}
    assert sent.kind == "all_reduce" and sum(len(group) for group in sent.groups) == 32


@pytest.mark.parametrize(
    ("name", "task", "kinds"),
    [
        ("a6_three_modes", "matmul_auto", ["all_gather"]),  # the partitioner adds this collective
        ("a6_three_modes", "matmul_manual", []),  # this collective is in the source
        ("b1_collectives", "reduce_scatter_body", []),  # the compiler makes an unnamed sum over all devices
        ("h3_zero1", "zero1_step", []),  # the compiler rewrites an all-gather, and merges it with another all-gather
    ],
)
def test_added_collectives_are_counted_in_the_text_of_this_compiler(
    course: Course, graders: dict[str, Grader], name: str, task: str, kinds: list[str]
) -> None:
    exercise = course.exercise(name)
    (call, *_) = (c for c in explaining.calls_of(exercise, task) if any(_count(m) == 8 for m in c.meshes))
    mesh = next(m for m in call.meshes if _count(m) == 8)
    (ask, *_), _ = explaining.asks_of(course, exercise, [call], explaining.Wanted(mesh=mesh))
    with graders["v5e:2x4"].pool.lent() as workers:
        (answer,), _ = collect(workers, explaining.reference(exercise), [ask])
    seen = answer.finding.observation
    assert seen is not None and isinstance(seen.compiled, Schedule) and seen.compiled.added is not None
    assert [c.kind for c in seen.collectives if c.by_compiler] == kinds == [c["kind"] for c in seen.compiled.added]


def _count(mesh: Mapping[str, int]) -> int:
    return math.prod(mesh.values())


def test_a_check_is_decided_again_by_the_same_compiler_and_the_report_on_file_holds(tmp_path: Path) -> None:
    course, (work, out) = load_course(ROOT / "course.yaml"), (tmp_path / "work", tmp_path / "out")
    (work / "ada").mkdir(parents=True)
    text = reference_source(course.exercise("c1_no_communication"), {}, None)
    (work / "ada" / "c1_no_communication.py").write_text(text)
    words = [str(work), "--out", str(out), "--course", str(ROOT / "course.yaml")]
    backend = ["--backend", "tpu:v5e:2x4"]
    graded = shardlings("grade", *words, "--only", "c1", *backend)
    assert "c1_no_communication" in graded.stdout, graded.stderr
    again = shardlings("appeal", "ada", "local_traffic", *words, *backend)
    assert again.returncode == 0 and "as in the report on file" in again.stdout, again.stdout + again.stderr
    other = shardlings("appeal", "ada", "local_traffic", *words)
    assert (
        other.returncode == 3
        and "backend: tpu:v5e:2x4 in the report on file, cpu now; --backend chooses the backend" in other.stdout
    )


def test_a_program_too_large_for_a_chip_is_reported_with_its_size(course: Course, graders: dict[str, Grader]) -> None:
    found = compiled(course, graders, "gather_first", I=131072, J=65536, K=1024)
    assert found.fault is not None and found.fault.kind == "memory"
    assert found.fault.message.startswith("the program is too large for the chip: it needs ")
    needed, there = (float(word.replace(",", "")) for word in re.findall(r"([\d,.]+) GiB", found.fault.message))
    assert needed > there and 15 < there <= 16


def test_compiled_programs_are_cached_and_damage_only_recompiles(
    course: Course, graders: dict[str, Grader], cache: Cache
) -> None:
    compiler = graders["v5e:2x4"].compiler
    assert isinstance(compiler, TpuCompiler)
    first = compiled(course, graders, "gather_first").schedule
    made, found = compiler.made, compiler.found
    assert compiled(course, graders, "gather_first").schedule == first
    assert (compiler.made, compiler.found) == (made, found + 1)
    with sqlite3.connect(cache.path) as file:
        file.execute("UPDATE kept SET value = substr(value, 1, length(value) - 3)")
    file.close()
    assert compiled(course, graders, "gather_first").schedule == first
    assert compiler.made == made + 1


def report_of(course: Course, grader: Grader, misconception: str) -> Report:
    exercise = course.exercise("f1_ag_matmul")
    text = reference_source(exercise, {}, exercise.misconceptions[misconception] if misconception else None)
    source = Source("f1_ag_matmul.py", (Chunk("f1_ag_matmul.py", text),))
    return grader.grade(Submission("ada", {"f1_ag_matmul": source}, (), ""), ["f1_ag_matmul"], public=True)


def test_checks_on_overlapped_time_are_judged_by_the_compiler_and_the_report_says_so(
    course: Course, graders: dict[str, Grader]
) -> None:
    right = report_of(course, graders["v5e:2x4"], "")
    statuses = {r.name: r.status for r in right.exercises[0].results if r.kind == "check"}
    assert set(statuses.values()) == {"passed"}
    assert right.backend == "tpu:v5e:2x4" and right.versions["libtpu"]
    wide = report_of(course, graders["v5e:2x4"], "ag_widened_operands")
    (result,) = (r for r in wide.exercises[0].results if r.name == "ag_overlap")
    assert result.status == "failed", "the step takes too long"


def test_only_the_slice_of_a_call_decides_about_overlapped_time(course: Course, graders: dict[str, Grader]) -> None:
    exercise = course.exercise("f1_ag_matmul")
    (call, *_) = (c for c in explaining.calls_of(exercise) if c.timing)
    (ask,), _ = explaining.asks_of(course, exercise, [call], explaining.Wanted(dims={"B": 1024, "D": 1024, "F": 1024}))
    with graders["v6e:2x4"].pool.lent() as workers:
        (answer,), _ = collect(workers, explaining.reference(exercise), [ask])
    seen = answer.finding.observation
    assert seen is not None and isinstance(seen.compiled, Schedule) and seen.compiled_on == "v6e:2x4"
    from grader.judging.seen import seen_of

    (looked,) = seen_of(answer, learners_run=True)
    assert looked.chip is None  # type: ignore[union-attr]


@pytest.mark.parametrize("tier", [t for t in TIERS if t != best_tier() and not available(t)])
def test_programs_are_compiled_in_every_tier(course: Course, tier: str, tmp_path: Path) -> None:
    compiler = TpuCompiler(course, tier, slice_of("v5e:2x2"), Cache(tmp_path, MOST))
    exercise = course.exercise("c1_no_communication")
    asks, _ = chips.asked(course, exercise, None, compiler.on, {"x": 2, "y": 2}, {"I": 512, "J": 512, "K": 512})
    with Grader(course, tier, compiler=compiler) as grader:
        (found,), _ = chips.on_chips(grader, explaining.reference(exercise), asks, compiler.on)
    assert found.timeline is not None, found.fault


def test_a_tpu_that_another_process_holds_does_not_matter(course: Course, tmp_path: Path) -> None:
    path = Path("/tmp/libtpu_lockfile")
    try:
        lock = path.open("a")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        pytest.skip("somebody holds a TPU here")
    compiler = TpuCompiler(course, "none", slice_of("v5e:2x2"), Cache(tmp_path, MOST))
    exercise = course.exercise("c1_no_communication")
    asks, _ = chips.asked(course, exercise, None, compiler.on, {"x": 2, "y": 2}, {"I": 512, "J": 512, "K": 256})
    with lock, Grader(course, "none", compiler=compiler) as grader:
        (found,), _ = chips.on_chips(grader, explaining.reference(exercise), asks, compiler.on)
    assert not isinstance(found.fault, Fault)


def test_jax_finds_the_devices_that_it_found_without_the_compiler() -> None:
    """The installed libtpu changes nothing for JAX: without a set platform and without a TPU, JAX uses the CPU."""
    clean = {k: v for k, v in os.environ.items() if k not in ("JAX_PLATFORMS", "XLA_FLAGS")}
    code = "import jax; print([d.platform for d in jax.devices()])"
    done = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=False)
    if not done.stdout.startswith("['tpu'"):
        assert done.stdout == "['cpu']\n", done.stderr[-500:]


def test_learner_code_cannot_read_the_compiler_and_has_its_processors_alone(course: Course) -> None:
    spec = importlib.util.find_spec("libtpu")
    assert spec is not None and spec.origin is not None
    text = f"""
import jax

def look():
    try:
        found = open({spec.origin!r}).read(1)
    except OSError as error:
        found = type(error).__name__
    return [found, jax.default_backend(), jax.device_count()]
"""
    source: SourceCode = {"name": "f.py", "chunks": [["f.py", text]]}
    ask: FunctionAsk = {"kind": "function", "task": "look", "cases": [{"dict": []}]}
    with Worker("trace", best_tier(), 8, course.config.limits) as tracer:
        bodies = [f.get("body", {}) for f, _ in tracer.trace(source, [ask])]
    answers = [body["values"] for body in bodies if "values" in body]
    ((answer,),) = answers
    found, *devices = decode(answer["value"])
    assert found in ("PermissionError", "FileNotFoundError")
    assert devices == ["cpu", 8]


def test_the_chip_command_draws_compiler_and_clock_and_writes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    small = ["--shape", "I=1024,J=1024,K=1024"]
    done = shardlings(
        "chip",
        "c3.matmul_reduce_scatter",
        "--on",
        "v5e:2x4",
        "--mesh",
        "x=8",
        *small,
        "--solution",
        "--html",
        str(page),
    )
    assert done.returncode == 0, done.stderr
    for text in ("the compiler's schedule", "the clock's", "reduce_scatter", "libtpu", "memory"):
        assert text in done.stdout
    html = page.read_text(encoding="utf-8")
    assert "<svg" in html and "compiled for v5e:2x4" in html
    again = shardlings("chip", "c3", "--on", "v5e:2x4", "--mesh", "x=8", *small, "--solution", "--html", str(page))
    assert again.returncode == 2 and "already exists; name a new file" in again.stderr


def test_doctor_names_the_compiler_and_its_slices() -> None:
    from grader.wings.chip.options import compiler_line

    line = compiler_line()
    assert line.ok and "needs no TPU and compiles for v4p:" in line.detail and "v5e:1x1 2x2 2x4 4x4" in line.detail


def test_the_compiler_is_where_python_finds_it() -> None:
    assert importlib.util.find_spec("libtpu") is not None
