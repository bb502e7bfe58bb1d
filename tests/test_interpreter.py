"""A second derivation of facts: a small interpreter counts, and each fact (an interval) must include the count."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from grader.batch.grade import Grader
from grader.batch.runners import Runner
from grader.common.intervals import Interval
from grader.common.observation import Collective, total
from grader.course.exercises import load_exercise
from grader.course.loading import load_course
from grader.course.reference import reference_source
from grader.exercise import Call, Task
from grader.intake.reading import read
from grader.learner.answering import with_gradients
from grader.runner import facts
from grader.runner.compiling import quickly
from grader.runner.program import canonical
from grader.sandbox.tiers import TIERS, available
from grader.wire.meshes import make_mesh
from grader.wire.messages import CallAsk
from tests import interpreter

MESH = {"x": 4, "y": 2}
SPEC = P("x", "y")
SHAPE = (8, 16)  # 2 x 8 on each device


@pytest.fixture(autouse=True)
def _devices(devices: int) -> None:
    """Start eight simulated devices."""


def lowered(body: Callable, sizes: Mapping[str, int] = MESH) -> tuple[Callable, Any]:
    """Compile a shard_map of a per-device function of a float32[8, 16]. Return the compiled function and its module."""
    mesh = make_mesh(dict(sizes))
    fn = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=SPEC, out_specs=SPEC, check_vma=False), keep_unused=True)
    sharding = NamedSharding(mesh, SPEC)
    # Each call of ``fn`` would trace and lower it again, so this code lowers it once.
    once = fn.lower(jax.ShapeDtypeStruct(SHAPE, "float32", sharding=sharding))
    compiled = quickly(once)
    return lambda value: compiled(jax.device_put(value, sharding)), once.compiler_ir("stablehlo")


def outside(found: facts.Facts, counts: interpreter.Counts) -> list[str]:
    """Return one line for each count that is outside of the interval of its fact."""
    wrong = []

    def within(what: str, interval: Interval, really: float, slack: float = 0) -> None:
        if not interval.least - slack <= really <= interval.most + slack:
            wrong.append(f"{what}: {really}, but facts say {interval}")

    for device in range(counts.devices):
        kinds = {k: [c for c in found.collectives if c.kind == k] for k in {*KIND.values()}}
        for kind, collectives in kinds.items():
            ran = sum(n for k, n in counts.ran[device].items() if KIND.get(k, k) == kind)
            sent = sum(n for k, n in counts.sent[device].items() if KIND.get(k, k) == kind)
            within(f"{kind} on device {device}", total(collectives, lambda c: Interval.of(1)), ran)
            interval = total(collectives, lambda c, d=device: c.sent_by(d))
            # The interpreter sends whole elements, but facts divide an array into parts with equal numbers of bytes.
            within(f"bytes of {kind} from device {device}", interval, sent, slack=8 * ran)
        if found.flops is not None:
            within(f"FLOPs of device {device}", found.flops, counts.flops[device])
        if found.dot_flops is not None:
            within(f"matmuls of device {device}", Interval(0, found.dot_flops.most), counts.dots[device])
    return wrong


KIND = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "all_to_all": "all_to_all", "collective_permute": "permute", "permute": "permute",
    "ragged_all_to_all": "ragged_all_to_all",
}  # fmt: skip


def twice(body: Callable, seed: int = 0) -> tuple[facts.Facts, interpreter.Counts]:
    """Return facts and counts of a per-device function. Assert that the interpreter and JAX compute equal values."""
    fn, module = lowered(body)
    value = np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)
    results, counts = interpreter.run(module, MESH, [value])
    np.testing.assert_allclose(results[0][0], np.asarray(fn(value)), rtol=2e-4, atol=2e-4)
    return facts.read(module, MESH, set()), counts


# -- programs written by hand ------------------------------------------------------------------


def along(n: int, step: int = 1) -> list[tuple[int, int]]:
    return [(i, i + step) for i in range(n - step)]


def by_branch(a):
    return lax.cond(a[0, 0] > 0, lambda a: 3 * a @ a.T @ a, lambda a: a + 1, a)


def sum_while_small(a):
    return lax.while_loop(lambda a: lax.psum(jnp.sum(a * a), ("x", "y")) < 1e3, lambda a: 2 * lax.pmean(a, "x"), a)


BODIES: dict[str, Callable] = {
    "nothing": lambda a: a,
    "sum": lambda a: lax.psum(a, "x"),
    "sums": lambda a: lax.psum(lax.pmax(a, ("x", "y")), "y") - lax.pmin(a, "x"),
    "gather": lambda a: a + lax.all_gather(a, ("y", "x"), axis=0, tiled=True)[2:4],
    "scatter": lambda a: a + lax.psum_scatter(a, "y", scatter_dimension=0, tiled=True),
    "trade": lambda a: lax.all_to_all(lax.all_to_all(a, "y", 0, 1, tiled=True), "y", 1, 0, tiled=True),
    "line": lambda a: a + lax.ppermute(a, "x", along(4)),
    "loop": lambda a: lax.fori_loop(0, 3, lambda i, a: 0.5 * lax.ppermute(a, "x", along(4)) + a, a),
    "scan": lambda a: lax.scan(lambda c, r: (c + lax.psum(r, "y"), r), a[0], a)[1] * 2,
    "branch": by_branch,
    "while": sum_while_small,
    "matmul": lambda a: jnp.einsum("ij,kj->ik", a, a) @ a,
    "written out": lambda a: (a[:, None, :] * a[None, :, :]).sum(2) @ a,
    "places": lambda a: a * (lax.axis_index("x") * 2 + lax.axis_index("y")),
    "calls": lambda a: jax.jit(lambda a: jax.jit(jnp.tanh)(a) + lax.psum(a, "y"))(jax.jit(jnp.tanh)(a)),
    "order": lambda a: jnp.sort(a, axis=1),
    "slices": lambda a: lax.dynamic_update_slice(a, lax.dynamic_slice(a, (0, 2), (1, 3)) * 2, (1, 4)),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_program_computes_what_jax_computes_and_facts_hold(name: str) -> None:
    assert outside(*twice(BODIES[name])) == []


def test_counts_equal_those_made_by_hand() -> None:
    _, counts = twice(BODIES["loop"])
    assert [c["permute"] for c in counts.sent] == [3 * 64] * 6 + [0] * 2
    _, counts = twice(BODIES["matmul"])
    assert counts.dots == [2 * 2 * 2 * 8 * 2] * 8
    _, counts = twice(BODIES["sum"])
    assert [c["all_reduce"] for c in counts.sent] == [2 * 64 * 3 // 4] * 8


def test_devices_may_take_different_branches() -> None:
    """Only one branch has a matmul, so only some devices do its FLOPs."""
    _, counts = twice(by_branch)
    assert len(set(counts.flops)) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda c: dataclasses.replace(c, rounds=Interval.of(2)),
        lambda c: dataclasses.replace(c, rounds=Interval.of(4)),
        lambda c: dataclasses.replace(c, rounds=c.rounds, sent=Interval.of(64), senders=None),
        lambda c: dataclasses.replace(c, kind="all_reduce"),
    ],
)
def test_a_wrong_fact_is_found(wrong: Callable[[Collective], Collective]) -> None:
    """A changed fact must be reported. Otherwise the tests of this file could never fail."""
    found, counts = twice(BODIES["loop"])
    assert outside(found, counts) == []
    assert outside(dataclasses.replace(found, collectives=[wrong(c) for c in found.collectives]), counts)
    assert outside(dataclasses.replace(found, flops=Interval.of(0)), counts)
    assert outside(dataclasses.replace(found, collectives=[]), counts)


# -- drawn programs ----------------------------------------------------------------------------

Step = Callable[[Any], Any]
CALM = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]


def steps() -> st.SearchStrategy[Step]:
    """Draw nested per-device functions of one array."""
    axes = st.sampled_from(["x", "y", ("x", "y")])
    pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4).filter(
        lambda ps: len({a for a, _ in ps}) == len({b for _, b in ps}) == len(ps)
    )
    simple = st.one_of(
        st.sampled_from([jnp.tanh, jnp.negative, lambda a: a * 0.5, small_matmul, by_branch_small]),
        axes.map(lambda axis: lambda a: lax.pmean(a, axis)),
        axes.map(lambda axis: lambda a: a + lax.all_gather(a, axis).mean()),
        st.just(lambda a: a + lax.psum_scatter(a, "y", scatter_dimension=0, tiled=True) * 0.1),
        pairs.map(lambda ps: lambda a: lax.ppermute(a, "x", ps)),
    )
    return st.recursive(simple, nested, max_leaves=6)


def small_matmul(a: Any) -> Any:
    return jnp.tanh(a @ a.T) @ a * 0.1


def by_branch_small(a):
    return lax.cond(a[0, 0] > 0, lambda a: jnp.tanh(3 * a), lambda a: a - 1, a)


def nested(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    def loop(n: int, f: Step) -> Step:
        return lambda a: lax.fori_loop(0, n, lambda i, a: f(a), a)

    def until(f: Step) -> Step:
        """Return a while loop. Its number of rounds depends on the data, and is equal on all devices."""
        small = lambda s: (s[0] < 5) & (lax.pmax(jnp.max(jnp.abs(s[1])), ("x", "y")) < 2)  # noqa: E731
        return lambda a: lax.while_loop(small, lambda s: (s[0] + 1, f(s[1]) * 1.5), (0, a))[1]

    def branch(f: Step, g: Step) -> Step:
        return lambda a: lax.cond(lax.pmax(a[0, 0], ("x", "y")) > 1, f, g, a)

    def switch(i: int, f: Step, g: Step, h: Step) -> Step:
        return lambda a: lax.switch(lax.pmax(jnp.int32(a[0, 0] > 0), ("x", "y")) + i, [f, g, h], a)

    def called_twice(f: Step) -> Step:
        g = jax.jit(f)
        return lambda a: g(g(a))

    return st.one_of(
        st.tuples(inner, inner).map(lambda fg: lambda a: fg[1](fg[0](a))),
        st.builds(loop, st.integers(0, 3), inner),
        st.builds(until, inner),
        st.builds(branch, inner, inner),
        st.builds(switch, st.integers(-1, 2), inner, inner, inner),
        st.builds(called_twice, inner),
    )


@settings(max_examples=30, suppress_health_check=CALM)
@given(steps(), st.integers(0, 99))
def test_facts_hold_of_drawn_programs(body: Step, seed: int) -> None:
    assert outside(*twice(body, seed)) == []


@pytest.mark.slow
@settings(max_examples=100, suppress_health_check=CALM)
@given(steps(), st.integers(0, 99))
def test_facts_hold_of_very_many_drawn_programs(body: Step, seed: int) -> None:
    assert outside(*twice(body, seed)) == []


# -- programs of the course --------------------------------------------------------------------

ROOT = Path(__file__).parents[1]
BY_HAND = {"e3_ring_all_reduce", "e5_ring_all_to_all"}  # Their long loops take the interpreter a minute.
PATHS = sorted(ROOT.glob("solutions/0[1-5]_*/*.py"))


def module_of(task: Task, fn: Callable, call: Call, sizes: Mapping[str, int], dims: Mapping[str, int]) -> tuple:
    """Return ``fn`` jitted as the grader does for ``call``, its module, and inputs."""
    mesh, specs = make_mesh(dict(sizes), task.axis_types), [P(*a.spec) for a in call.args.values()]
    if task.kind == "body":
        out = task.out_specs
        fn = jax.shard_map(
            partial(fn, **call.static), mesh=mesh, in_specs=tuple(specs), out_specs=out, check_vma=task.modes[0]
        )
    else:
        fn = partial(fn, mesh=mesh, **call.static)
    rng = np.random.default_rng(0)
    arrays = [(a, P(*a.spec)) for a in call.args.values()]
    if call.wrt:
        called = fn
        ask: Any = {"args": [{"name": n} for n in call.args], "wrt": call.wrt, "cotangents": [{"of": 0}]}
        fn = with_gradients(lambda *args: (called(*args),), ask)
        assert call.cotangent is not None
        arrays.append((call.cotangent, P(*call.cotangent.spec)))
    values = [jax.device_put(a.sample(dims, rng), NamedSharding(mesh, spec)) for a, spec in arrays]
    jitted = jax.jit(lambda *args: fn(*args), keep_unused=True)
    return jitted, jitted.lower(*values).compiler_ir("stablehlo"), values


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.by_hand] if p.stem in BY_HAND else []) for p in PATHS],
    ids=lambda path: path.stem,
)
def test_facts_hold_of_references_and_misconceptions(path: Path) -> None:
    """Each program runs on the first mesh of the first check of its task.

    Only modules 01 to 05 are tested. Later modules have trees, steps, and timing calls without data, which the
    interpreter cannot run. tests/test_keys_*.py derive facts about their programs in a second way.
    """
    exercise = load_exercise(path, path.stem, path.parent.name, 0.02)
    calls = {c.call.task.name: c.call for c in exercise.checks.values() if isinstance(c.call, Call)}
    for misconception in [None, *(m for m in exercise.misconceptions.values() if isinstance(m.of, Task))]:
        space: dict[str, Any] = {}
        exec(reference_source(exercise, {}, misconception), space)
        for name, call in calls.items():
            if misconception is None or misconception.of.name == name:
                assert_facts_hold(
                    call, space[name], f"{name}, {misconception.name if misconception else 'the reference'}"
                )


def assert_facts_hold(call: Call, fn: Callable, what: str) -> None:
    sizes = dict(call.meshes[0])
    kind = call.task.axis_types
    is_set = jax.set_mesh(make_mesh(sizes, kind)) if kind == "explicit" else nullcontext()
    try:
        with is_set:
            jitted, module, values = module_of(call.task, fn, call, sizes, call.sizes(sizes, hidden=False))
            wanted = jax.tree.leaves(jitted(*values))
    except Exception:  # JAX refuses this misconception, so there is no program
        assert "reference" not in what, what
        return
    results, counts = interpreter.run(module, sizes, [np.asarray(v) for v in values])
    for interpreted, computed in zip(results, wanted, strict=True):
        whole = np.asarray(computed, np.float64)
        np.testing.assert_allclose(
            interpreted[0].astype(np.float64), whole, rtol=2e-2, atol=1e-4 + 1e-2 * np.abs(whole).max()
        )
    assert outside(facts.read(module, sizes, set()), counts) == [], what


@pytest.mark.slow
def test_facts_hold_of_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facts are right for each program of every sixth example submission that the interpreter supports."""
    programs: list[tuple[Any, bytes]] = []
    own = Runner.run

    def seen(self: Any, request: CallAsk, program: bytes, ask: Any, *asleep: Any, **more: Any) -> Any:
        if not ask.hidden_inputs and not more:
            programs.append((ask, program))
        return own(self, request, program, ask, *asleep, **more)

    monkeypatch.setattr(Runner, "run", seen)
    course = load_course(ROOT / "course.yaml")
    examples = sorted(p for where in ("submissions", "other_modules") for p in (ROOT / "examples" / where).iterdir())
    with Grader(course, next(t for t in TIERS if not available(t))) as grader:
        for folder in examples[::6]:
            work = read(folder, folder.name, course.module_of)
            grader.grade(work, list(work.sources))
    counted = 0
    for ask, code in programs:
        about = ask.for_tracer([])
        arguments = about["args"] + about["cotangents"]
        try:
            module = canonical(code, ask.mesh, arguments, set()).parse()
            with module.context, np.errstate(all="ignore"):
                _, counts = interpreter.run(module, ask.mesh, ask.arrays()[0])
        except Exception:  # the program is refused, or its shard_map is over some axes only
            continue
        counted += 1
        assert outside(facts.read(module, ask.mesh, set()), counts) == [], f"{ask.exercise} {ask.task} {ask.mesh}"
    assert counted > 6, f"{counted} of {len(programs)}"
