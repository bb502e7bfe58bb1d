"""The operations that each operation may or must wait for, compared with waits in an interpreter that runs the program."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.common.dependency import Dependency
from grader.runner import operations
from grader.runner.program import canonical
from grader.wire.frames import BadFrame
from grader.wire.meshes import make_mesh
from grader.wire.operations import from_json, to_json
from tests.runner.test_program import code_of
from tests.waiting import Watch, watched

MESH = {"x": 2}
RING = [(0, 1), (1, 0)]
State = tuple[Any, Any, Any]
Step = Callable[[State], State]


@pytest.fixture(autouse=True)
def _devices(devices: int) -> None:
    """Start eight simulated devices."""


def both(body: Callable[..., Any], outputs: int = 3) -> tuple[Dependency, Watch]:
    """Return the dependences in ``body``, and the waits in a run of it. Each argument is float32[4, 4] on each device."""
    mesh, spec = make_mesh(MESH), P("x")
    fn = jax.shard_map(body, mesh=mesh, in_specs=(spec,) * 3, out_specs=(spec,) * outputs, check_vma=False)
    shape = jax.ShapeDtypeStruct((8, 4), "float32")
    text = jax.jit(fn, keep_unused=True).lower(*[shape] * 3).as_text()
    asked = [{"shape": [8, 4], "dtype": "float32", "spec": {"spec": ["x"]}}] * 3
    form = canonical(code_of(text), MESH, asked, set())
    module = form.parse()
    found = operations.read(form.parse(), MESH, set())
    assert found is not None
    rng = np.random.default_rng(0)
    with module.context, np.errstate(all="ignore"):
        watch = watched(module, MESH, [rng.standard_normal((8, 4)).astype(np.float32) for _ in range(3)])
    return Dependency(from_json(to_json(found))), watch


def numbers(graph: Dependency) -> list[int]:
    """Return the numbers of all matmuls and permutes. The interpreter records the waits of these operations."""
    kinds = ("dot_general", "collective_permute")
    return [n for n, place in enumerate(graph.places) if place.op.name in kinds]


# -- drawn programs ----------------------------------------------------------------------------


def matmul(state: State, i: int, j: int) -> State:
    return put(state, i, jnp.tanh(state[i] @ state[j]))


def permute(state: State, i: int) -> State:
    return put(state, i, lax.ppermute(state[i], "x", RING))


def put(state: State, i: int, value: Any) -> State:
    return (*state[:i], value, *state[i + 1 :])


def tied(state: State, i: int, j: int) -> State:
    one, other = lax.optimization_barrier((state[i], state[j]))
    return put(put(state, i, one), j, other)


PLACES = st.integers(0, 2)
SIMPLE = st.one_of(
    st.builds(lambda i, j: lambda s: matmul(s, i, j), PLACES, PLACES),
    PLACES.map(lambda i: lambda s: permute(s, i)),
    st.builds(lambda i, j: lambda s: put(s, i, s[i] + 0 * s[j]), PLACES, PLACES),
    st.builds(lambda i, j: lambda s: tied(s, i, j) if i != j else s, PLACES, PLACES),
    st.builds(lambda i, j: lambda s: put(s, i, s[j]), PLACES, PLACES),
    PLACES.map(lambda i: lambda s: put(s, i, jnp.ones_like(s[i]))),
)


def nested(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    def loop(n: int, f: Step) -> Step:
        return lambda s: lax.fori_loop(0, n, lambda i, s: f(s), s)

    def until(i: int, f: Step) -> Step:
        """Run two or three rounds, depending on data."""
        small = lambda s: (s[0] < 2) | ((s[0] < 3) & (lax.pmax(s[1][i][0, 0], "x") > 0))  # noqa: E731
        return lambda s: lax.while_loop(small, lambda s: (s[0] + 1, f(s[1])), (0, s))[1]

    def branch(i: int, f: Step, g: Step) -> Step:
        return lambda s: lax.cond(lax.pmax(s[i][0, 0], "x") > 0.3, f, g, s)

    def called_twice(f: Step) -> Step:
        g = jax.jit(f)
        return lambda s: g(g(s))

    return st.one_of(
        st.tuples(inner, inner).map(lambda fg: lambda s: fg[1](fg[0](s))),
        st.tuples(inner, inner, inner).map(lambda fg: lambda s: fg[2](fg[1](fg[0](s)))),
        st.builds(loop, st.integers(0, 4), inner),
        st.builds(until, PLACES, inner),
        st.builds(branch, PLACES, inner, inner),
        st.builds(called_twice, inner),
    )


STEPS = st.recursive(SIMPLE, nested, max_leaves=9)
CALM = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]


def compare(graph: Dependency, watch: Watch) -> None:
    """Check the graph against a run: each wait in the run is possible, and each certain wait occurred in the run.

    ``may`` and ``before`` must agree.
    """
    at = numbers(graph)
    assert len(at) == len(watch.kinds)
    for ran, waited in watch.waited.items():
        number = at[ran.number]
        assert graph.places[number].runs
        assert {at[w.number] for w in waited} <= graph.before(number)
        loops = graph.places[number].loops
        if loops:
            same = {at[w.number] for w in waited if w.in_round_of(ran)}
            assert same <= graph.before(number, within=loops[-1])
    for n, source in enumerate(at):
        must, may = (how(graph.results({source})) for how in (graph.must, graph.may))
        assert must <= may
        for ran, waited in watch.waited.items():
            if at[ran.number] in must:
                assert n in {w.number for w in waited}
        for other in at:
            assert (other in may) == (source in graph.before(other))


@settings(max_examples=60, suppress_health_check=CALM)
@given(STEPS)
def test_the_graph_contains_every_observed_wait_of_random_programs(body: Step) -> None:
    compare(*both(lambda *state: body(state)))


@pytest.mark.slow
@settings(max_examples=300, suppress_health_check=CALM)
@given(STEPS)
def test_the_graph_contains_every_observed_wait_of_many_random_programs(body: Step) -> None:
    compare(*both(lambda *state: body(state)))


def loops(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    """Draw nested programs with loops. A loop has one round more than it has carried values.

    A dependence can pass through one carried value per round, so further rounds add no dependences.
    """
    return st.one_of(
        st.tuples(inner, inner).map(lambda fg: lambda s: fg[1](fg[0](s))),
        inner.map(lambda f: lambda s: lax.fori_loop(0, 4, lambda i, s: f(s), s)),
        inner.map(lambda f: lambda s: jax.jit(f)(s)),
    )


@settings(max_examples=60, suppress_health_check=CALM)
@given(st.recursive(SIMPLE, loops, max_leaves=7))
def test_without_branches_the_graph_contains_only_observed_waits(body: Step) -> None:
    graph, watch = both(lambda *state: body(state))
    compare(graph, watch)
    at = numbers(graph)
    for number, kind in enumerate(watch.kinds):
        runs = [(ran, waited) for ran, waited in watch.waited.items() if ran.number == number]
        assert runs, kind
        seen = {at[w.number] for _, waited in runs for w in waited}
        assert seen == graph.before(at[number]) & set(at)
        if graph.places[at[number]].loops:
            same = {at[w.number] for ran, waited in runs for w in waited if w.in_round_of(ran)}
            assert same == graph.before(at[number], within=graph.places[at[number]].loops[-1]) & set(at)
        always = set(at).intersection(*({at[w.number] for w in waited} for _, waited in runs))
        surely = {s for s in at if at[number] in graph.must(graph.results({s}))}
        assert surely == always


def test_a_result_does_not_wait_for_an_operand_that_every_round_replaces() -> None:
    replaced = lambda s: lax.fori_loop(0, 4, lambda i, t: put(t, 0, jnp.ones_like(t[0])), s)  # noqa: E731
    graph, watch = both(lambda *state: lax.fori_loop(0, 4, lambda i, s: matmul(replaced(s), 0, 0), state))
    compare(graph, watch)
    (number,) = graph.named("matmul")
    assert number not in graph.before(number)


# -- programs written by hand ------------------------------------------------------------------


def waits(body: Callable[..., Any], outputs: int = 3, **how: Any) -> tuple[bool, bool]:
    """Return whether any permute may wait for a matmul, and whether every permute must."""
    graph, watch = both(body, outputs)
    compare(graph, watch)
    matmuls, permutes = graph.named("matmul"), graph.named("permute")
    assert matmuls and permutes
    values = graph.results(matmuls)
    return bool(permutes & graph.may(values)), permutes <= graph.must(values)


def test_a_ring_that_passes_its_input_on_waits_for_no_matmul() -> None:
    def body(a, b, c):
        def hop(i, state):
            a, c = state
            return lax.ppermute(a, "x", RING), c + a @ b

        return (*lax.fori_loop(0, 4, hop, (a, c)), b)

    assert waits(body) == (False, False)


def test_a_ring_that_passes_on_a_sum_waits_for_matmuls_of_earlier_rounds() -> None:
    def body(a, b, c):
        def hop(i, c):
            return lax.ppermute(c, "x", RING) + a @ b

        return lax.fori_loop(0, 4, hop, c), a, b

    graph, _ = both(body)
    (permute,), (matmul,) = graph.named("permute"), graph.named("matmul")
    loop = graph.places[permute].loops[-1]
    assert matmul in graph.before(permute) and matmul not in graph.before(permute, within=loop)
    assert permute not in graph.may(graph.results({matmul}), within=loop)
    assert waits(body) == (True, False)  # in the first round, the permute does not wait for a matmul


@pytest.mark.parametrize(
    ("wait", "expected"),
    [
        (lambda a, p: lax.optimization_barrier((a, p))[0], (True, True)),
        (lambda a, p: lax.optimization_barrier((a, p[:1, :1]))[0], (True, True)),  # here ``a`` waits for ``p``
        (lambda a, p: a + 0 * p, (True, True)),  # 0 * p is NaN if p is NaN
        (lambda a, p: a + (0 * p.astype(jnp.int32)).astype(jnp.float32), (True, True)),
        (lambda a, p: a + (lambda n: n ^ n)(p.astype(jnp.int32)), (True, True)),
        (lambda a, p: a + p.sum(), (True, True)),
        (lambda a, p: a + jnp.zeros_like(p), (False, False)),  # the result depends only on the shape of p
        (lambda a, p: lax.cond(a[0, 0] > 0, lambda: a, lambda: a + p), (True, False)),
        (lambda a, p: lax.cond(p[0, 0] > 0, lambda: a, lambda: a + 1), (True, True)),  # the branch depends on one element of p
        (lambda a, p: lax.cond(p.sum() > 0, lambda: a, lambda: a + 1), (True, True)),
        (lambda a, p: lax.fori_loop(0, 2, lambda i, a: a + p, a), (True, True)),
        (lambda a, p: lax.fori_loop(0, 0, lambda i, a: a + p, a), (False, False)),  # JAX leaves out empty loops
        (lambda a, p: lax.while_loop(lambda a: a[0, 0] < 1, lambda a: a + 1 + p, a), (True, False)),
        (lambda a, p: lax.while_loop(lambda a: a.sum() < p.sum(), lambda a: a + 1, a), (True, True)),
        (lambda a, p: lax.dynamic_update_slice(p, a, (0, 0)), (True, True)),
        (lambda a, p: lax.dynamic_update_slice(p, a[:2], (0, 0)), (True, True)),
    ],
    ids=[
        "barrier", "barrier on a part", "times zero", "integers times zero", "xor", "sum", "shape", "one branch",
        "a predicate of a part", "a predicate", "loop", "no round", "some rounds", "how many rounds", "overwritten",
        "written into",
    ],
)  # fmt: skip
def test_each_way_to_wait_is_found(wait: Callable[..., Any], expected: tuple[bool, bool]) -> None:
    def body(a, b, c):
        p = b @ c
        return lax.ppermute(wait(a, p), "x", RING), p, c

    assert waits(body) == expected


def test_a_permute_in_a_branch_waits_for_the_branchs_condition() -> None:
    def body(a, b, c):
        p = b @ c
        chosen = lax.pmax(p.sum(), "x") > -1e9
        return lax.cond(chosen, lambda: lax.ppermute(a, "x", RING), lambda: a), p, c

    assert waits(body) == (True, True)


def test_the_graph_has_no_operation_that_no_result_needs() -> None:
    def body(a, b, c):
        unused = lax.ppermute(a @ b, "x", RING)
        del unused
        return lax.ppermute(a, "x", RING), b @ c, c

    graph, _ = both(body)
    assert len(graph.named("permute")) == len(graph.named("matmul")) == 1
    assert waits(body) == (False, False)


def test_unused_results_of_a_loop_do_not_count() -> None:
    def body(a, b, c):
        a, _ = lax.fori_loop(0, 4, lambda i, s: (lax.ppermute(s[0], "x", RING), s[1] @ b), (a, c))
        return a, b @ c, c

    graph, _ = both(body)
    assert len(graph.named("matmul")) == 1
    never, _ = both(lambda a, b, c: (lax.fori_loop(0, 0, lambda i, a: a @ b, a), b, c))
    assert not never.named("matmul")


def test_a_wait_through_carried_values_spans_rounds() -> None:
    """A matmul of one round reaches the permute two rounds later, through two carried values."""

    def body(a, b, c):
        return lax.fori_loop(0, 4, lambda i, s: (lax.ppermute(s[1], "x", RING), s[2], b @ s[2]), (a, b, c))

    graph, _ = both(body)
    (permute,), (matmul,) = graph.named("permute"), graph.named("matmul")
    assert matmul in graph.before(permute)
    assert matmul not in graph.before(permute, within=graph.places[permute].loops[-1])


def test_waits_of_nested_loops_are_separated_by_loop() -> None:
    """A round of the outer loop runs the inner loop, and then the permute. The permute waits for matmuls of its own round."""

    def body(a, b, c):
        def outer(i, s):
            a, c = s
            c = lax.fori_loop(0, 4, lambda j, c: c @ b, c)
            return lax.ppermute(a + c, "x", RING), c

        return (*lax.fori_loop(0, 4, outer, (a, c)), b)

    graph, watch = both(body)
    compare(graph, watch)
    (permute,), (matmul,) = graph.named("permute"), graph.named("matmul")
    first, second = graph.places[matmul].loops
    assert graph.places[permute].loops == (first,)
    assert matmul in graph.before(permute, within=first)
    assert matmul in graph.before(matmul) and matmul not in graph.before(matmul, within=second)
    assert matmul in graph.before(matmul, within=first)


def test_entering_a_loop_waits_for_all_its_arguments() -> None:
    def body(a, b, c):
        p = b @ c
        a, c = lax.fori_loop(0, 4, lambda i, s: (lax.ppermute(s[0], "x", RING), s[1] + 1), (a, p))
        return a, b, c

    graph, _ = both(body)
    (permute,), values = graph.named("permute"), graph.results(graph.named("matmul"))
    assert permute not in graph.may(values) and permute not in graph.must(values)
    assert permute in graph.may(values, enter=True) and permute in graph.must(values, enter=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda loop: loop["bodies"].pop(),
        lambda loop: loop["bodies"].reverse(),
        lambda loop: loop["bodies"][1][2].pop(),
        lambda loop: loop["in"].pop(),
        lambda loop: loop.update(name="case"),
    ],
)
def test_a_serialised_loop_that_does_not_fit_is_refused(change: Callable[[dict[str, Any]], Any]) -> None:
    graph, _ = both(lambda a, b, c: (lax.fori_loop(0, 4, lambda i, a: a @ b, a), b, c))
    data = json.loads(json.dumps(to_json(graph.program)))
    change(next(op for op in data["main"][1] if op["name"] == "while"))
    with pytest.raises(BadFrame):
        from_json(data)
