"""Facts read from programs: senders, receivers, bytes, counts and lines; and refused programs."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from grader.common.intervals import UNKNOWN, Interval
from grader.common.observation import Collective, Seen, total
from grader.exercise import Array, normal
from grader.expect import Failure, expect_collectives, expect_no_collectives, expect_traffic
from grader.runner import admission, execution, facts, groups, hlo, hlo_text
from tests.learner.texts import line_of

MESH = {"x": 4, "y": 2}
BLOCK = normal(8, 16, spec=("x", "y"))  # 2 x 8 floats, 64 bytes, on each device
TRACED = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
IMPORTS = """\
from functools import partial
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P
"""


def text_of(body: str, specs: str = "P('x', 'y')", out: str = "P('x', 'y')") -> str:
    """Return a submission that calls ``shard_map`` with a per-device function with this body."""
    local = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return (
        f"{IMPORTS}\ndef local(a):\n{local}\n\ndef f(a, *, mesh):\n"
        f"    return jax.shard_map(local, mesh=mesh, in_specs={specs}, out_specs={out}, check_vma=False)(a)\n"
    )


@pytest.fixture
def look(traced: Callable[..., Any]) -> Callable[..., facts.Facts]:
    """Return a function that reads the facts of a per-device body or of a whole submission."""

    def look(body: str, *args: Array, mesh: dict[str, int] | None = None, **specs: str) -> facts.Facts:
        text = body if "def f(" in body else text_of(body, **specs)
        made = traced(text, *(args or [BLOCK]), mesh=mesh or MESH)
        return facts.read(made.form.parse(), mesh or MESH, {"a.py"})

    return look


@pytest.fixture
def execute(traced: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a submission and returns the reply, which has also the compiler's collectives."""

    def execute(text: str, *args: Array, mesh: dict[str, int] | None = None) -> dict[str, Any]:
        made = traced(text, *args, mesh=mesh or MESH)
        rng = np.random.default_rng(0)
        return dict(execution.execute(made.request, made.program, [[a.sample({}, rng) for a in args]])[0])

    return execute


def counts(found: facts.Facts) -> list[tuple[str, Interval]]:
    return [(c.kind, c.count) for c in found.collectives]


# -- one collective ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kind", "axes", "sent"),
    [
        ("lax.psum(a, 'x')", "all_reduce", ("x",), 96),
        ("lax.psum(a, ('x', 'y'))", "all_reduce", ("x", "y"), 112),
        ("lax.psum(a, ('y', 'x'))", "all_reduce", ("x", "y"), 112),
        ("lax.pmax(a, 'y')", "all_reduce", ("y",), 64),
        ("lax.pmin(a, 'y')", "all_reduce", ("y",), 64),
        ("lax.pmean(a, 'y')", "all_reduce", ("y",), 64),
        ("lax.all_gather(a, 'x', axis=0, tiled=True)", "all_gather", ("x",), 192),
        ("lax.all_gather(a, 'y')", "all_gather", ("y",), 64),
        ("lax.all_gather(a, ('x', 'y'), axis=0, tiled=True)", "all_gather", ("x", "y"), 448),
        ("lax.psum_scatter(a, 'x', scatter_dimension=1, tiled=True)", "reduce_scatter", ("x",), 48),
        ("lax.psum_scatter(a, 'y', scatter_dimension=0, tiled=True)", "reduce_scatter", ("y",), 32),
        ("lax.all_to_all(a, 'y', 0, 1, tiled=True)", "all_to_all", ("y",), 32),
        ("lax.all_to_all(a, 'x', 1, 0, tiled=True)", "all_to_all", ("x",), 48),
        ("lax.ppermute(a, 'x', [(i, (i + 1) % 4) for i in range(4)])", "permute", ("x",), 64),
        ("lax.pshuffle(a, 'y', [1, 0])", "permute", ("y",), 64),
    ],
)  # fmt: skip
def test_a_collective_has_kind_axes_bytes_and_line(
    look: Callable, body: str, kind: str, axes: tuple, sent: int
) -> None:
    text = text_of(f"b = 2 * a\nc = {body}  # here\nreturn jnp.sum(c) + b", out="P('x', 'y')")
    (found,) = look(text).collectives
    assert (found.kind, found.axes, found.bytes, found.sent, found.count) == (kind, axes, 64, sent, 1)
    assert (found.line, found.file, found.by_compiler) == (line_of(text, "# here"), "a.py", False)


def test_bytes_follow_the_dtype(look: Callable) -> None:
    half = normal(8, 16, spec=("x", "y"), dtype="bfloat16")
    assert look("return lax.psum(a, 'x')", half).collectives[0].bytes == 32


def test_collectives_are_in_program_order(look: Callable) -> None:
    found = look("a = lax.psum(a, 'x')\na = lax.pmax(a, 'y')\nreturn lax.psum(a, 'x')")
    assert [c.axes for c in found.collectives] == [("x",), ("y",), ("x",)]


def test_two_sums_of_two_arrays_are_two_collectives(look: Callable) -> None:
    """The grader counts both sums, although XLA may merge them into one collective."""
    found = look("return lax.psum(a, 'x') + lax.psum(2 * a, 'x')")
    assert counts(found) == [("all_reduce", 1)] * 2


def test_a_program_without_communication_has_no_collective(look: Callable) -> None:
    assert look("return a + lax.axis_index('x')").collectives == []


@pytest.mark.parametrize(
    "body",
    [
        "return lax.psum(a, 'y')",
        "return lax.all_gather(a, 'y', axis=0, tiled=True)",
        "return lax.psum_scatter(a, 'y', scatter_dimension=0, tiled=True)",
        "return lax.ppermute(a, 'y', [(0, 0)])",
    ],
)
def test_an_axis_of_size_1_moves_nothing(look: Callable, body: str) -> None:
    """A collective over an axis of size 1 does not count. So one budget fits meshes with and without this axis."""
    mesh = {"x": 8, "y": 1}
    expect_no_collectives(Seen(mesh, collectives=look(body, mesh=mesh).collectives))


def test_a_joint_group_with_an_axis_of_size_1_names_the_other(look: Callable) -> None:
    found = look("return lax.psum(a, ('x', 'y'))", mesh={"x": 8, "y": 1})
    assert [(c.kind, c.axes) for c in found.collectives] == [("all_reduce", ("x",))]


def test_three_axes_are_distinguished(look: Callable) -> None:
    mesh = {"x": 2, "y": 2, "z": 2}
    found = look("return lax.psum(lax.psum(a, ('x', 'z')), 'y')", normal(8, 16), mesh=mesh, specs="P()", out="P()")
    assert [c.axes for c in found.collectives] == [("x", "z"), ("y",)]


def test_a_line_in_a_helper_is_the_helpers(look: Callable) -> None:
    text = text_of("return helper(a)") + "\ndef helper(a):\n    return lax.psum(a, 'x')  # here\n"
    assert look(text).collectives[0].line == line_of(text, "# here")


@pytest.mark.parametrize(
    ("body", "transposed"),
    [
        ("return lax.psum(a, 'x')", False),
        ("return jnp.transpose(lax.psum(jnp.transpose(a), 'x'))", False),
        ("return jax.vjp(lambda b: lax.psum(b, 'x'), a)[1](a)[0]", True),
        ("return jax.jit(jax.linear_transpose(lambda b: lax.psum(b, 'x'), a))(a)[0]", True),
        ("return jax.vmap(jax.grad(lambda b, c: (lax.psum(b, 'x') * c).sum()))(a, a)", True),
        ("return jax.vjp(jax.jit(lambda b: lax.psum(b, 'x')), a)[1](a)[0]", True),
        ("return jax.vjp(jax.checkpoint(jax.jit(lambda b: lax.psum(b, 'x'))), a)[1](a)[0]", True),
        ("return jax.linear_transpose(jax.jit(lambda b: jax.jit(lambda c: lax.psum(c, 'x'))(b)), a)(a)[0]", True),
        ("return jax.linear_transpose(lambda b: lax.fori_loop(0, 1, lambda i, c: lax.psum(c, 'x'), b), a)(a)[0]", True),
        ("return jax.jit(lambda b: jax.jit(lambda c: lax.psum(c, 'x'))(b))(a)", False),
        ("return lax.fori_loop(0, 1, lambda i, c: jax.jit(lambda b: lax.psum(b, 'x'))(c), a)", False),
        ("return jax.checkpoint(lambda b: jax.vmap(lambda c: lax.psum(c, 'x'))(b))(a)", False),
        ("return jax.jvp(lambda b: lax.psum(b, 'x'), (a,), (a,))[1]", False),
    ],
)
def test_a_collective_that_jax_transposed_is_marked(look: Callable, body: str, transposed: bool) -> None:
    assert look(text_of(body)).collectives[-1].transposed is transposed


def test_lines_of_other_files_are_not_reported() -> None:
    from jax.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    with make_ir_context():
        library, learners = ir.Location.file("/usr/lib/jax/x.py", 7, 1), ir.Location.file("a.py", 3, 5)
        forged = ir.Location.name('"a.py":99:1', library)
        for location in (
            ir.Location.callsite(ir.Location.name("lax.psum", library), [ir.Location.name("body", learners)]),
            ir.Location.fused([forged, ir.Location.unknown(), learners]),
        ):
            assert facts.place_of(location, {"a.py"}) == ("a.py", 3)
            assert facts.place_of(location, {"b.py"}) is None


# -- loops -------------------------------------------------------------------------------------

SUM = "lax.psum(a, 'x') * 0.5"


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (f"return lax.fori_loop(0, 3, lambda i, a: {SUM}, a)", 3),
        (f"return lax.fori_loop(2, 7, lambda i, a: {SUM}, a)", 5),
        (f"return lax.fori_loop(-2, 2, lambda i, a: {SUM}, a)", 4),
        (f"return lax.fori_loop(0, 4, lambda i, a: {SUM}, a, unroll=2)", [2, 2]),
        (f"return lax.scan(lambda a, _: ({SUM}, None), a, length=5)[0]", 5),
        (f"return lax.scan(lambda a, _: ({SUM}, None), a, jnp.arange(6))[0]", 6),
        (f"return lax.scan(lambda a, _: ({SUM}, None), a, jnp.arange(6), reverse=True)[0]", 6),
        (f"return lax.scan(lambda a, _: ({SUM}, a), a, length=5, unroll=5)[0]", [1] * 5),
        (f"return lax.map(lambda a: {SUM}, a)", 2),
        (f"for _ in range(4):\n    a = {SUM}\nreturn a", [1] * 4),
        (f"return lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, one(s[1])), (0, a))[1]\none = lambda a: {SUM}", 4),
        (f"return lax.while_loop(lambda s: s[0] <= 4, lambda s: (s[0] + 2, one(s[1])), (0, a))[1]\none = lambda a: {SUM}", 3),
        (f"return lax.fori_loop(0, 2, lambda i, a: lax.fori_loop(0, 3, lambda j, a: {SUM}, a), a)", 6),
        (f"return lax.fori_loop(0, 2, lambda i, a: lax.scan(lambda a, _: ({SUM}, None), a, length=5)[0], a)", 10),
    ],
)  # fmt: skip
def test_rounds_of_loops_are_multiplied_out(look: Callable, body: str, count: int | list[int]) -> None:
    first, _, rest = body.partition("\none = ")
    found = look(f"one = {rest}\n{first}" if rest else body)
    assert counts(found) == [("all_reduce", n) for n in (count if isinstance(count, list) else [count])]


@pytest.mark.parametrize(
    "body",
    [
        "return lax.while_loop(lambda a: jnp.sum(a) < 9, lambda a: lax.psum(a, 'x'), a)",
        "return lax.while_loop(lambda s: s[0] != 4, lambda s: (s[0] + 1, lax.psum(s[1], 'x')), (0, a))[1]",
        "return lax.while_loop(lambda s: s[0] < 64, lambda s: (s[0] * 2, lax.psum(s[1], 'x')), (1, a))[1]",
        "return lax.while_loop(lambda s: (s[0] < 4) & (s[1][0, 0] < 9), lambda s: (s[0] + 1, lax.psum(s[1], 'x')), (0, a))[1]",
        "return lax.fori_loop(0, a[0, 0].astype(int), lambda i, a: lax.psum(a, 'x'), a)",
        "return lax.fori_loop(0, lax.axis_index('x'), lambda i, a: lax.psum(a, 'y'), a)",
        "one = lambda i, a: lax.psum(a, 'x')\nreturn lax.while_loop(lambda a: jnp.sum(a) < 9, lambda a: lax.fori_loop(0, 3, one, a), a)",
        "more = lambda a: lax.while_loop(lambda a: jnp.sum(a) < 9, lambda a: lax.psum(a, 'x'), a)\nreturn lax.fori_loop(0, 3, lambda i, a: more(a), a)",
    ],
)  # fmt: skip
def test_rounds_that_depend_on_data_are_unknown(look: Callable, body: str) -> None:
    """The grader does not guess the number of rounds. Checks that count these collectives fail with a reason."""
    assert [c.count for c in look(body).collectives] == [UNKNOWN]


@TRACED
@given(start=st.integers(-5, 5), bound=st.integers(-5, 12), step=st.integers(1, 4))
def test_a_counting_loop_runs_as_often_as_a_range(look: Callable, start: int, bound: int, step: int) -> None:
    body = f"return lax.while_loop(lambda s: s[0] < {bound}, lambda s: (s[0] + {step}, lax.psum(s[1], 'x')), ({start}, a))[1]"
    assert counts(look(body)) == [("all_reduce", len(range(start, bound, step)))]


def runs(found: facts.Facts) -> dict[tuple[str, ...], Interval]:
    """Return, for each set of axes, how many collectives over them one run of the program executes."""
    axes = {c.axes: [o for o in found.collectives if o.axes == c.axes] for c in found.collectives}
    return {a: total(of_one, lambda c: Interval.of(1)) for a, of_one in axes.items()}


def test_a_collective_in_one_branch_has_an_interval_as_count(look: Callable) -> None:
    """A program runs a collective over y once if both branches have it. It runs one in a single branch 0 or 1 times."""
    little, much = "lambda a: lax.psum(a, 'y')", "lambda a: lax.psum(lax.psum(a, 'x'), 'y')"
    for branches in (f"{little}, {much}", f"{much}, {little}"):
        found = look(f"return lax.cond(a[0, 0] > 0, {branches}, a)")
        assert runs(found) == {("x",): Interval(0, 1), ("y",): Interval.of(1)}
        assert Seen(MESH, collectives=found.collectives).traffic == {"x": Interval(0, 96), "y": Interval.of(64)}
        assert all(c.count == Interval(0, 1) for c in found.collectives)


BUDGETS: list[dict[str, Any]] = [
    {"all_reduce": {"x": 3}},
    {"all_gather": {"x": 1}},
    {"all_reduce": {"x": 3}, "all_gather": {"x": 1}},
]


def test_a_branch_that_is_never_taken_hides_nothing(look: Callable) -> None:
    """The decoy is a branch that no data select. Its collectives count, so no budget fits both branches."""
    decoy = "lambda a: a + lax.psum(lax.psum(lax.psum(a, 'x'), 'x'), 'x')"
    found = look(f"return lax.cond(a[0, 0] > 1e30, {decoy}, lambda a: a + lax.all_gather(a, 'x').sum(), a)")
    assert {(c.kind, c.count) for c in found.collectives} == {
        ("all_reduce", Interval(0, 1)),
        ("all_gather", Interval(0, 1)),
    }
    seen = Seen(MESH, collectives=found.collectives)
    for wanted in BUDGETS:
        with pytest.raises(Failure):
            expect_collectives(seen, **wanted)
    assert seen.traffic == {"x": Interval(192, 3 * 96)}


def test_every_branch_of_a_switch_counts(look: Callable) -> None:
    branches = (
        "[lambda a: a, lambda a: lax.fori_loop(0, 9, lambda i, a: lax.psum(a, 'y'), a), lambda a: lax.psum(a, 'x')]"
    )
    found = look(f"return lax.switch(lax.axis_index('x') % 3, {branches}, a)")
    assert runs(found) == {("y",): Interval(0, 9), ("x",): Interval(0, 1)}
    assert Seen(MESH, collectives=found.collectives).sends(found.collectives) == Interval(0, 9 * 64)


def test_a_branch_in_a_loop_counts_every_round(look: Callable) -> None:
    body = "step = lambda i, a: lax.cond(i > 1, lambda a: lax.psum(a, 'x'), lambda a: a, a)\nreturn lax.fori_loop(0, 3, step, a)"
    assert counts(look(body)) == [("all_reduce", Interval(0, 3))]


def test_counts_of_nested_branches_are_combined(look: Callable) -> None:
    body = """
    inner = lambda a: lax.cond(a[0, 1] > 0, lambda a: lax.psum(a, 'x'), lambda a: lax.psum(lax.psum(a, 'x'), 'x'), a)
    return lax.cond(a[0, 0] > 0, inner, lambda a: lax.psum(lax.psum(lax.psum(a, 'x'), 'x'), 'x'), a)
    """
    assert runs(look(body)) == {("x",): Interval(1, 3)}


def test_collectives_before_and_after_a_branch_are_kept(look: Callable) -> None:
    body = "a = lax.pmax(a, 'y')\na = lax.cond(a[0, 0] > 0, lambda a: lax.psum(a, 'x'), lambda a: a, a)\nreturn lax.pmin(a, 'y')"
    found = look(body)
    assert [(c.axes, c.count) for c in found.collectives] == [(("y",), 1), (("x",), Interval(0, 1)), (("y",), 1)]


def test_collectives_in_a_loop_condition_run_once_more_than_the_body(look: Callable) -> None:
    ask = "lambda s: (s[0] < 4) & (lax.psum(s[1], 'x')[0, 0] < 9)"
    assert counts(look(f"return lax.while_loop({ask}, lambda s: (s[0] + 1, s[1]), (0, a))[1]")) == [
        ("all_reduce", Interval(1, math.inf))
    ]


def test_a_device_that_is_no_source_sends_nothing(look: Callable) -> None:
    """In a permute along a line, the first device only sends. The last device only receives."""
    found = look("return lax.ppermute(a, 'x', [(i, i + 1) for i in range(3)])")
    (hop,) = found.collectives
    assert (hop.count, hop.sent, hop.senders, hop.shift) == (1, Interval(0, 64), (0, 1, 2, 3, 4, 5), None)


def test_sent_bytes_are_summed_for_each_device(look: Callable) -> None:
    """Three permutes send data to device 0. Each other device sends once, so its traffic is that of one permute."""
    body = "hop = lambda i: lax.ppermute(a, 'x', [(i, 0)])\nreturn hop(1) + hop(2) + hop(3)"
    found = look(body)
    assert Seen(MESH, collectives=found.collectives).traffic == {"x": Interval(0, 64)}
    assert counts(found) == [("permute", 1)] * 3


# -- functions in functions --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrapped", "count"),
    [
        ("jax.jit(one)", 1),
        ("jax.jit(jax.jit(one))", 1),
        ("jax.checkpoint(one)", 1),
        ("with_jvp(one)", 1),
        ("partial(lax.fori_loop, 0, 3, lambda i, a: jax.jit(one)(a))", 3),
        ("lambda a: jax.closure_convert(one, a)[0](a)", 1),
    ],
)
def test_collectives_in_wrapped_functions_are_found(look: Callable, wrapped: str, count: int) -> None:
    body = f"""
    one = lambda a: lax.psum(a, 'x')
    def with_jvp(fn):
        wrapped = jax.custom_jvp(fn)
        wrapped.defjvps(lambda t, out, a: t)
        return wrapped
    return ({wrapped})(a)
    """
    assert counts(look(body)) == [("all_reduce", count)]


def test_a_function_called_twice_counts_twice(look: Callable) -> None:
    """The program's text has the collective only once."""
    body = "one = jax.jit(lambda a: lax.psum(a, 'x'))\nreturn one(one(a))"
    assert counts(look(body)) == [("all_reduce", 1)] * 2
    assert counts(look(f"{body.replace('return one(one(a))', 'return lax.fori_loop(0, 3, lambda i, a: one(one(a)), a)')}")) == [("all_reduce", 3)] * 2  # fmt: skip


def test_a_jitted_task_and_two_shard_maps_are_read(look: Callable) -> None:
    text = f"""{IMPORTS}
def f(a, *, mesh):
    on = partial(jax.shard_map, mesh=mesh, in_specs=P('x', 'y'), out_specs=P('x', 'y'), check_vma=False)
    @jax.jit
    def twice(a):
        return on(lambda a: lax.psum(a, 'y'))(on(lambda a: lax.psum(a, 'x'))(a))
    return twice(a)
"""
    assert [c.axes for c in look(text).collectives] == [("x",), ("y",)]


# -- FLOPs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "dots", "flops"),
    [
        ("return a", 0, 0),
        ("return 2 * a", 0, 16),
        ("return a * a", 32, 16),  # counted like a matmul: 16 multiplications and 16 additions
        ("return a * (lax.axis_index('x') == 1)", 0, 2 + 16),  # a mask does not count as data; computing it takes two operations
        ("return jnp.where(a > 0, a, 0)", 0, Interval(0, 32)),  # the number of operations depends on the data
        ("return jnp.where(jnp.arange(a.size).reshape(a.shape) > 3, a, 0)", 0, 0),
        ("b = a.astype('int32')\nreturn (b ^ b << 1).astype(a.dtype)", 0, Interval(0, 32)),
        ("return jnp.arange(9.0)[a.astype('int32') & 7]", 0, Interval(16, 80)),  # a negative index counts from the end
        ("return a + (a @ a.T).sum()", 64, 64 + 4 + 16),
        ("return a + jnp.einsum('ij,kj->ik', a, a).sum()", 64, 64 + 4 + 16),
        ("return a + jnp.einsum('ij,ij->i', a, a).sum()", 32, 32 + 2 + 16),
        ("return a + jnp.vdot(a, a)", 32, 32 + 16),
        ("return a + (a[:, None, :] * a[None, :, :]).sum(2).sum()", 64, 32 + 32 + 4 + 16),
        ("return a + sum(a[:, j, None] * a[None, :, j] for j in range(8)).sum()", 64, 8 * (4 + 4) + 4 + 16),
        ("return a + jnp.prod(jnp.stack([a, a]), 0)", 2 * 32, 32 + 16),
        ("return a + (a.astype(complex) @ a.T.astype(complex)).real.sum()", 4 * 64, 4 * 64 + 4 + 16),
        ("return a + lax.conv(a[None], a[None, :, :3], (1,), 'VALID').sum()", 2 * 6 * 6, 2 * 6 * 6 + 6 + 16),
        ("return a + jnp.tanh(a) + jnp.exp(a)", 0, 4 * 16),
        ("return lax.psum(a, 'x')", 0, 0),  # arithmetic inside a collective counts as traffic
        ("return jnp.sort(a)", 0, Interval(0, 1152)),
        ("return a.at[0].add(a[1])", 0, 8),
        ("return lax.reduce_window(a, 0.0, lax.add, (1, 2), (1, 1), 'VALID').sum() + a", 0, 2 * 7 * 2 + 2 * 7 + 16),
        ("return lax.fori_loop(0, 3, lambda i, a: a + (a @ a.T).sum(), a)", 3 * 64, None),
        ("return lax.fori_loop(0, 2, lambda i, a: lax.fori_loop(0, 5, lambda j, a: a + (a @ a.T).sum(), a), a)", 10 * 64, None),
        ("mul = jax.jit(lambda a: a + (a @ a.T).sum())\nreturn mul(mul(a))", 2 * 64, 2 * 84),
        ("return lax.cond(a[0, 0] > 0, lambda a: a + (a @ a.T).sum(), lambda a: a, a)", Interval(0, 64), Interval(0, 85)),
        ("return lax.cond(a[0, 0] > 0, lambda a: a + (a @ a.T).sum(), lambda a: 2 * a, a)", Interval(0, 64), Interval(16, 85)),
        ("return lax.while_loop(lambda a: a.sum() < 9, lambda a: a + (a @ a.T).sum(), a)", UNKNOWN, Interval(16, math.inf)),
    ],
)  # fmt: skip
def test_flops_of_one_device_loops_multiplied_out(
    look: Callable, body: str, dots: int | Interval, flops: int | Interval | None
) -> None:
    found = look(body)
    assert found.dot_flops == dots
    assert flops is None or found.flops == flops


NEVER = "lambda a: lax.while_loop(lambda s: s[0] < 0, lambda s: (s[0] + 1, work(s[1])), (0, a))[1]"


def test_a_loop_that_never_runs_costs_nothing(look: Callable) -> None:
    found = look(f"work = lambda a: a + (a @ a.T).sum()\nreturn ({NEVER})(a)")
    assert found.dot_flops == found.flops == 0


def test_a_loop_without_rounds_sends_nothing(look: Callable) -> None:
    assert counts(look(f"work = lambda a: lax.psum(a, 'x')\nreturn ({NEVER})(a)")) == [("all_reduce", 0)]


def test_matmuls_outside_shard_map_are_left_to_the_compiler(look: Callable, execute: Callable) -> None:
    text = f"{IMPORTS}\ndef f(a, b, *, mesh):\n    return a @ b\n"
    args = normal(8, 12, spec=("x", None)), normal(12, 6, spec=(None, "y"))
    assert look(text, *args).flops is None and look(text, *args).dot_flops is None
    found = execute(text, *args)
    assert Interval.of(found["flops"]) == Interval.of(found["dot_flops"]) == 2 * 8 * 12 * 6 // 8


MAPPED = "jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=(P('x'), P(None, 'y')), out_specs=P('x', 'y'))(a, b)"


@pytest.mark.parametrize(
    ("body", "mapped"),
    [
        ("a @ b", False),
        (MAPPED, True),
        (f"[{MAPPED}, jnp.abs(jnp.dot(a, b) - a @ b).max()][0]", True),
        (f"[{MAPPED}, a @ b][1]", False),
        (f"[{MAPPED}, jax.jit(lambda a: lax.fori_loop(0, 2, lambda i, c: c + a @ b, jnp.zeros((8, 6))))(a)][1]", False),
        ("jax.shard_map(lambda a: 2 * a, mesh=mesh, in_specs=P('x'), out_specs=P('x'))(a) @ b", False),
        (f"0 * {MAPPED} + jnp.exp(jnp.log(a)[:, :, None] + jnp.log(b)).sum(1)", False),
        (f"0 * {MAPPED} + (lax.pow(a[:, :, None] + b, 2.0) - lax.pow(a[:, :, None] - b, 2.0)).sum(1) / 4", False),
        (f"0 * {MAPPED} + sum(jnp.where(a[:, j, None] > 0, b[j], -b[j]) for j in range(12))", False),
        (f"2 * {MAPPED}", True),
        (f"{MAPPED} + b[0]", True),
        (f"{MAPPED}.reshape(2, 4, 6).transpose(1, 0, 2).reshape(8, 6)", True),
        (f"jnp.where(jnp.arange(6) < 6, {MAPPED}, 0)", True),
        (f"{MAPPED}.mean()", True),
    ],
    ids=[
        "without", "with", "compared", "thrown_away", "in_a_call", "beside", "by_logarithms", "by_powers", "by_choices",
        "scaled", "added", "reshaped", "masked", "mean",
    ],
)  # fmt: skip
def test_arithmetic_in_shard_map_is_distinguished_from_other_arithmetic(
    look: Callable, body: str, mapped: bool
) -> None:
    text = f"{IMPORTS}\ndef f(a, b, *, mesh):\n    return {body}\n"
    assert look(text, normal(8, 12, spec=("x", None)), normal(12, 6, spec=(None, "y"))).mapped is mapped


# -- collectives of the compiler ---------------------------------------------------------------

AUTO = f"{IMPORTS}\ndef f(a, b, *, mesh):\n    return lax.with_sharding_constraint(a @ b, NamedSharding(mesh, P()))\n"


def in_brief(header: dict[str, Any]) -> list[tuple[str, tuple[str, ...], int, bool]]:
    return [(c["kind"], tuple(c["axes"]), c["bytes"], c["by_compiler"]) for c in header["collectives"]]


def test_the_compilers_sum_over_a_contracted_axis_is_seen(execute: Callable) -> None:
    found = execute(AUTO, normal(8, 12, spec=(None, "x")), normal(12, 6, spec=("x", None)))
    assert in_brief(found) == [("all_reduce", ("x",), 8 * 6 * 4, True)]
    assert (
        found["collectives"][0]["line"] is None
        and Interval.of(found["collectives"][0]["sent"]) == 2 * 8 * 6 * 4 * 3 // 4
    )


def test_the_compilers_gather_where_in_specs_do_not_match_is_seen(execute: Callable) -> None:
    """The collective in the source counts once, and not again as a collective of the compiler."""
    found = execute(text_of("return lax.psum(a, 'x')", "P()", "P()"), BLOCK)
    assert ("all_reduce", ("x",), 512, False) in in_brief(found)
    added = [c for c in found["collectives"] if c["by_compiler"]]
    assert added and {c["kind"] for c in added} == {"all_gather"}
    assert {axis for c in added for axis in c["axes"]} == {"x", "y"}


@pytest.mark.parametrize(
    "body",
    [
        "return lax.psum(a, 'x')",
        "return lax.psum(a, ('x', 'y'))",
        "return lax.psum(a, 'x') + lax.psum(2 * a, 'x')",
        "return a + lax.all_gather(a, 'x', axis=0, tiled=True).sum()",
        "return a + lax.psum_scatter(a, 'y', scatter_dimension=0, tiled=True)",
        "return a + lax.all_to_all(a, 'y', 0, 1, tiled=True).sum()",
        "return lax.fori_loop(0, 3, lambda i, a: lax.ppermute(a, 'x', [(j, (j + 1) % 4) for j in range(4)]), a)",
        "a = lax.pmax(a, ('x', 'y'))  # so that all devices take the same branch\nreturn lax.cond(a[0, 0] > 0, lambda a: lax.psum(a, 'x'), lambda a: a, a)",
    ],
)
def test_collectives_written_by_hand_are_not_the_compilers(execute: Callable, body: str) -> None:
    found = in_brief(execute(text_of(body), BLOCK))
    assert found and not any(by_compiler for *_, by_compiler in found)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("lax.scan(lambda c, _: (there_and_back(c), None), a, length=5)[0]", Interval.of(5)),
        ("lax.fori_loop(0, 2, lambda i, c: lax.scan(lambda c, _: (there_and_back(c), None), c, length=3)[0], a)", Interval.of(6)),
        ("lax.while_loop(lambda c: c.sum() < 1e9, there_and_back, a)", Interval(0, math.inf)),
        ("lax.cond(a[0, 0] > 0, there_and_back, lambda c: c, a)", Interval(0, 1)),
        ("lax.scan(lambda c, _: (lax.cond(c[0, 0] > 0, there_and_back, lambda c: c, c), None), a, length=4)[0]", Interval(0, 4)),
    ],
)  # fmt: skip
def test_added_collectives_in_loops_and_branches_count_at_most_each_round(
    execute: Callable, body: str, wanted: Interval
) -> None:
    text = f"""{IMPORTS}
def f(a, *, mesh):
    on = lambda a, *spec: lax.with_sharding_constraint(a, NamedSharding(mesh, P(*spec)))
    there_and_back = lambda c: on(on(c * 2, None, 'x') + 1, 'x', None)
    return {body}
"""
    # The test ignores sums that the compiler adds to the loop's condition. The compiler may also add one all-to-all
    # before the loop.
    added = [c for c in collectives_of(execute(text, normal(8, 16, spec=("x", None)))) if c.kind == "all_to_all"]
    assert wanted in [c.count for c in added] and all(c.by_compiler for c in added)
    assert all(c.count.most <= wanted.most for c in added)


def collectives_of(header: dict[str, Any]) -> list[Collective]:
    return [Collective(**{**c, "axes": tuple(c["axes"])}) for c in header["collectives"]]


def test_the_compilers_matmuls_count_in_every_round(execute: Callable) -> None:
    text = f"{IMPORTS}\ndef f(a, b, *, mesh):\n    return lax.scan(lambda c, _: (c @ b, None), a, length=5)[0]\n"
    found = execute(text, normal(8, 8, spec=("x", None)), normal(8, 8, spec=()))
    assert Interval.of(found["dot_flops"]) == 5 * 2 * 8 * 8 * 8 // 4


REDUCED = 'all-reduce({operand}), replica_groups={groups}, to_apply=%add, metadata={{op_name="jit(call)/{mark}"}}'


def sum_of(operand: str = "%p", groups: str = "{{0,1,2,3}}", number: int = 0) -> str:
    return REDUCED.format(operand=operand, groups=groups, mark=f"{facts.MARK}_{number}_")


def test_a_marked_collective_with_other_properties_is_the_compilers() -> None:
    """A compiled collective counts as the compiler's if its kind, axes or number differ from those of the source."""
    mesh, by_hand = {"x": 2, "y": 2}, Collective("all_reduce", ("x", "y"), 32, Interval.of(48))
    one = f"%r = f32[2,4] {sum_of()}"

    def added(*lines: str, more: str = "") -> list[tuple[str, tuple[str, ...]]]:
        return [(c.kind, c.axes) for c in hlo.added_by_compiler(program(*lines, more=more), mesh, {0: [by_hand]})]

    assert added(one) == []
    assert added(one, one.replace("%r", "%s")) == [("all_reduce", ("x", "y"))]
    assert added(one, one.replace("{{0,1,2,3}}", "{{0,1},{2,3}}")) == [("all_reduce", ("y",))]
    assert added(one, one.replace("all-reduce", "all-gather")) == [("all_gather", ("x", "y"))]
    assert added(one.replace(f"{facts.MARK}_0_", f"{facts.MARK}_1_")) == [("all_reduce", ("x", "y"))]
    assert added(one.replace(facts.MARK, "by_hand")) == [("all_reduce", ("x", "y"))]


LOOP = """%body (s: f32[2,4]) -> f32[2,4] {{
  %s = f32[2,4] parameter(0)
  ROOT %r = f32[2,4] {sum}
}}
%again (s: f32[2,4]) -> pred[] {{
  %s = f32[2,4] parameter(0)
  ROOT %c = pred[] constant(true)
}}
"""
WHILE = "%w = f32[2,4] while(%p), condition=%again, body=%body, backend_config={config}"


@pytest.mark.parametrize(
    ("rounds", "config", "added"),
    [
        (3, '{"known_trip_count":{"n":"3"}}', 0),
        (3, '{"known_trip_count":{"n":"5"}}', 1),  # the compiled loop has more rounds than the source's loop
        (3, "{}", 0),  # XLA's text lacks the number of rounds, but the source has it
        (None, "{}", 0),
        (None, '{"known_trip_count":{"n":"5"}}', 0),
    ],
)
def test_a_compiled_loop_with_the_rounds_of_the_source_is_by_hand(rounds: int | None, config: str, added: int) -> None:
    by_hand = Collective("all_reduce", ("x",), 32, Interval.of(48), UNKNOWN if rounds is None else Interval.of(rounds))
    text = program(WHILE.format(config=config), more=LOOP.format(sum=sum_of("%s")))
    assert len(hlo.added_by_compiler(text, {"x": 4}, {0: [by_hand]})) == added
    twice = program(WHILE.format(config=config), f"%r = f32[2,4] {sum_of()}", more=LOOP.format(sum=sum_of("%s")))
    assert len(hlo.added_by_compiler(twice, {"x": 4}, {0: [by_hand]})) == 1


def test_unrolled_rounds_and_merged_sums_are_by_hand() -> None:
    thrice = {0: [Collective("all_reduce", ("x",), 32, Interval.of(48), Interval.of(3))]}
    unrolled = program(*(f"%r{i} = f32[2,4] {sum_of()}" for i in range(3)))
    assert hlo.added_by_compiler(unrolled, {"x": 4}, thrice) == []
    two = {n: [Collective("all_reduce", ("x",), 32, Interval.of(48))] for n in (0, 1)}
    merged = f"%r = (f32[2,4], f32[2,4]) {sum_of('%p, %p')}".replace(
        f"{facts.MARK}_0_", f"({facts.MARK}_0_:{facts.MARK}_1_)"
    )
    assert hlo.added_by_compiler(program(merged), {"x": 4}, two) == []


def test_collectives_with_unreadable_groups_send_an_unknown_amount() -> None:
    (found,) = hlo.added_by_compiler(program("%r = f32[2,4] all-reduce(%p), replica_groups=new{'x'}"), {"x": 4})
    assert (found.axes, found.partial, found.sent) == (("x",), True, UNKNOWN)


def test_only_axes_of_a_partly_manual_region_are_the_devices_own(look: Callable, execute: Callable) -> None:
    text = f"""{IMPORTS}
def f(a, *, mesh):
    body = lambda a: lax.psum(a @ a.T, 'x')
    return jax.shard_map(body, mesh=mesh, in_specs=P('x'), out_specs=P(), axis_names={{'x'}})(a)
"""
    found = look(text)
    (sum_,) = found.collectives
    assert found.dot_flops is None and sum_.sent == Interval(12, 24)  # 2 x 2 floats, which XLA may shard over y
    assert execute(text, BLOCK)["dot_flops"]["most"] <= 2 * 2 * 2 * 16


# -- groups of devices -------------------------------------------------------------------------


def fibres(axes: tuple[str, ...], mesh: dict[str, int]) -> groups.Groups:
    """Return groups of device numbers: in a group, only the coordinates along ``axes`` differ."""
    return groups.axis_groups(mesh, range(math.prod(mesh.values())), [(a, 1, None) for a in mesh if a in axes])


meshes = st.lists(st.integers(1, 4), min_size=1, max_size=3).map(lambda ns: dict(zip("xyz", ns, strict=False)))


@given(meshes, st.data())
def test_groups_along_axes_are_recognised_in_any_order(mesh: dict[str, int], data: st.DataObject) -> None:
    real = [a for a, n in mesh.items() if n > 1]
    axes = tuple(a for a in real if data.draw(st.booleans()))
    members = data.draw(st.permutations([data.draw(st.permutations(g)) for g in fibres(axes, mesh)]))
    assert groups.crossed_axes(members, mesh) == axes
    assert not groups.are_partial(members, axes, mesh)


@pytest.mark.parametrize(
    ("members", "mesh", "axes"),
    [
        ([[0, 1], [2, 3]], {"x": 4}, ("x",)),
        ([[0, 2], [1, 3]], {"x": 4}, ("x",)),
        ([[0, 3], [1, 2]], {"x": 2, "y": 2}, ("x", "y")),
        ([[0, 1], [2, 4], [3, 5], [6, 7]], {"x": 4, "y": 2}, ("x", "y")),
        ([[0, 1, 4, 5], [2, 3, 6, 7]], {"x": 4, "y": 2}, ("x", "y")),
        ([[0, 4], [1, 5], [2, 6], [3, 7]], {"x": 4, "y": 2}, ("x",)),
        ([[0, 4], [1, 5], [2, 6], [3, 7]], {"x": 2, "y": 2, "z": 2}, ("x",)),
    ],
)
def test_groups_cross_every_axis_along_which_two_members_differ(
    members: list[list[int]], mesh: dict[str, int], axes: tuple[str, ...]
) -> None:
    """Groups that cross an axis but leave out devices along it are partial. Groups of whole axes are not partial."""
    assert groups.crossed_axes(members, mesh) == axes
    assert groups.are_partial(members, axes, mesh) == (mesh != {"x": 2, "y": 2, "z": 2})


ROUNDS = [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(0, 3), (1, 2)]]


def test_all_reduces_over_pairs_count_under_their_axis(look: Callable) -> None:
    """Three all-reduces over pairs send as many bytes as a gather over x, so the traffic over x must include them."""
    pairs = f"for pairs in {ROUNDS}:\n    a = a + lax.psum(a, 'x', axis_index_groups=pairs)\nreturn a"
    found = look(pairs).collectives
    assert [(c.kind, c.axes, c.partial, c.sent) for c in found] == [("all_reduce", ("x",), True, 64)] * 3
    seen = Seen(MESH, collectives=found)
    assert seen.traffic == {"x": 192} and len(seen.only(axis="x").collectives) == 3
    assert seen.only(axis="y").collectives == []
    with pytest.raises(Failure, match="each device sends 192 B over x, the budget is 96 B"):
        expect_traffic(seen, at_most=96, axis="x")


def test_a_sum_over_a_whole_axis_is_not_partial(look: Callable) -> None:
    whole = look("return lax.psum(a, 'x', axis_index_groups=[[0, 1, 2, 3]])").collectives
    assert [(c.axes, c.partial) for c in whole] == [(("x",), False)]
    hop = look("return lax.ppermute(a, 'x', [(0, 1), (1, 0)])").collectives
    assert [(c.axes, c.partial) for c in hop] == [(("x",), False)]


@given(meshes, st.data())
def test_a_shift_along_an_axis_is_a_permute_over_it(mesh: dict[str, int], data: st.DataObject) -> None:
    axis = data.draw(st.sampled_from(list(mesh)))
    by = data.draw(st.integers(0, 4))
    rows = fibres((axis,), mesh)
    pairs = [[row[i], row[(i + by) % len(row)]] for row in rows for i in range(len(row))]
    moves = by % mesh[axis] != 0
    assert groups.crossed_axes(pairs, mesh) == ((axis,) if moves else ())


@given(st.integers(0, 1 << 20), st.integers(2, 64))
def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(part: int, members: int) -> None:
    """In a ring of ``members``, a device sends all parts except one: once for a gather, twice for an all-reduce."""
    size = part * members
    scatter = groups.sent_bytes("reduce_scatter", size, members)
    assert scatter == groups.sent_bytes("all_gather", part, members) == size - part
    assert groups.sent_bytes("all_reduce", size, members) == 2 * scatter


@pytest.mark.parametrize("kind", sorted({*admission.KINDS.values()}))
def test_a_group_of_one_sends_nothing(kind: str) -> None:
    assert groups.sent_bytes(kind, 64, 1) == 0


# -- groups of JAX 0.12 ------------------------------------------------------------------------

NAMED = """
module {{
  sdy.mesh @other = <["x"=2, "y"=2]>
  sdy.mesh @mesh_0 = {mesh}
  func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
    %0 = "stablehlo.all_reduce"(%a) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {which}, axes = [{axes}]>, use_global_device_ids}}> ({{
    ^bb0(%b: tensor<f32>, %c: tensor<f32>):
      %1 = stablehlo.add %b, %c : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }}) : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }}
}}
"""
INLINE = '#stablehlo.mesh<axes=[<name = "p", size = 4>, <name = "q", size = 2>]{}>'


def named_groups(*axes: str, mesh: str = '<["x"=4, "y"=2]>', which: str = "@mesh_0") -> Any:
    """Return groups as JAX 0.12 writes them; JAX 0.10 can read them, too."""
    from jax.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    text = NAMED.format(mesh=mesh, which=which, axes=", ".join(f"#stablehlo.axis_ref<{a}>" for a in axes))
    with make_ir_context():
        return facts.read(ir.Module.parse(text), MESH, set()).collectives


@pytest.mark.parametrize(
    ("axes", "mesh", "which", "wanted"),
    [
        (['name = "x"'], '<["x"=4, "y"=2]>', "@mesh_0", ("x",)),
        (['name = "y"'], '<["x"=4, "y"=2]>', "@mesh_0", ("y",)),
        (['name = "y"', 'name = "x"'], '<["x"=4, "y"=2]>', "@mesh_0", ("x", "y")),
        (['name = "ring"'], '<["ring"=8]>', "@mesh_0", ("x", "y")),  # the learner created this mesh
        (['name = "ring", sub_axis_info = (1)4'], '<["ring"=8]>', "@mesh_0", ("x",)),
        (['name = "ring", sub_axis_info = (4)2'], '<["ring"=8]>', "@mesh_0", ("y",)),
        (['name = "ring", sub_axis_info = (2)4'], '<["ring"=8]>', "@mesh_0", ("x", "y")),  # each group has half of x, and y
        (['name = "x", sub_axis_info = (1)2', 'name = "x", sub_axis_info = (2)2'], '<["x"=4, "y"=2]>', "@mesh_0", ("x",)),
        (['name = "x"'], '<["x"=2, "y"=4], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>', "@mesh_0", ("y",)),
        (['name = "p"'], '<["x"=4, "y"=2]>', INLINE.format(""), ("x",)),
        (['name = "p"'], '<["x"=4, "y"=2]>', INLINE.format(", device_ids = dense<[0, 4, 1, 5, 2, 6, 3, 7]> : tensor<8xi64>"), ("x", "y")),
    ],
)  # fmt: skip
def test_groups_named_by_axes_are_read(axes: list[str], mesh: str, which: str, wanted: tuple[str, ...]) -> None:
    (found,) = named_groups(*axes, mesh=mesh, which=which)
    assert (found.kind, found.axes, found.bytes) == ("all_reduce", wanted, 32)


@pytest.mark.parametrize(
    ("axes", "which"),
    [
        (['name = "z"'], "@mesh_0"),
        (['name = "x"'], "@none"),
        (['name = "x"'], "@other"),  # this mesh has fewer devices
        (['name = "x"', 'name = "x"'], "@mesh_0"),
        (['name = "x", sub_axis_info = (1)3'], "@mesh_0"),
        (['name = "x", sub_axis_info = (3)2'], "@mesh_0"),
    ],
)
def test_groups_that_no_mesh_has_are_refused(axes: list[str], which: str) -> None:
    from jaxlib.mlir import ir

    with pytest.raises((admission.ProgramRefused, ir.MLIRError)):  # MLIR's own verifier refuses some of these groups
        named_groups(*axes, which=which)


# -- the compiler's text -----------------------------------------------------------------------


def groups_in(attributes: str, mesh: dict[str, int]) -> groups.Groups | None:
    return hlo.replica_groups(hlo_text.instruction(f"%r = f32[] all-reduce(%a), {attributes}").attributes, mesh)


@given(meshes, st.data())
def test_all_spellings_of_groups_are_read_alike(mesh: dict[str, int], data: st.DataObject) -> None:
    """XLA writes groups as ``{{0,2},{1,3}}``, ``[2,4]<=[4,2]T(1,0)`` or ``mesh['x'=4,'y'=2] {'x'}``."""
    axes = tuple(a for a in mesh if data.draw(st.booleans()))
    wanted = fibres(axes, mesh)
    listed = ",".join("{" + ",".join(map(str, g)) + "}" for g in wanted)
    order = [i for i, a in enumerate(mesh) if a not in axes] + [i for i, a in enumerate(mesh) if a in axes]
    sizes, turn = ",".join(map(str, mesh.values())), ",".join(map(str, order))
    named = ",".join(f"'{a}'={n}" for a, n in mesh.items())
    for text in (
        f"replica_groups={{{listed}}}, x",
        f"replica_groups=[{len(wanted)},{len(wanted[0])}]<=[{sizes}]T({turn}), x",
        f"replica_groups=mesh[{named}] {{{','.join(repr(a) for a in axes)}}}, x",
    ):
        assert groups_in(text, mesh) == wanted, text


def test_missing_groups_mean_all_devices() -> None:
    assert groups_in("replica_groups={}", {"x": 4}) == [[0, 1, 2, 3]]


def test_devices_may_be_numbered_in_another_order_than_the_mesh():
    # XLA printed this text for a resharding on a mesh of x=4, y=2: ids 0 2 4 6 1 3 5 7, laid out as 2 by 4
    named = "mesh['axis_0'=2,'axis_1'=4], device_ids=([4,2]T(1,0))"
    mesh = {"x": 4, "y": 2}
    for axis, wanted in {"axis_1": [[0, 2, 4, 6], [1, 3, 5, 7]], "axis_0": [[0, 1], [2, 3], [4, 5], [6, 7]]}.items():
        assert groups_in(f"replica_groups={named} {{'{axis}'}}, x", mesh) == wanted


def test_groups_may_be_half_an_axis():
    # XLA printed this text for a resharding from P('x', 'y') to P('y', 'x')
    named = "mesh['axis_0'=2,'axis_1'=4], device_ids=([2,2,2]T(0,2,1)) {'axis_1':(2)2}"
    found = groups_in(f"replica_groups={named}, x", {"x": 4, "y": 2})
    assert found == [[0, 2], [1, 3], [4, 6], [5, 7]]
    whole = "mesh['a'=8] {'a':(1)2,'a':(4)2}"
    assert groups_in(f"replica_groups={whole}, x", {"x": 8}) == [[0, 1, 4, 5], [2, 3, 6, 7]]


@pytest.mark.parametrize(
    ("shape", "size"),
    [("f32[16,24]", 1536), ("bf16[3]", 6), ("pred[8]", 8), ("s4[8]", 8), ("f32[]", 4), ("c64[2]", 16), ("u8[5]", 5)],
)
def test_hlo_bytes_of_shapes(shape: str, size: int) -> None:
    assert hlo_text.hlo_bytes(shape) == size


def program(*lines: str, more: str = "") -> str:
    """Return the text of a compiled program with the parameters f32[2,4] %p and f32[2] %q and these lines."""
    inside = ["%p = f32[2,4]{1,0} parameter(0)", "%q = f32[2]{0} parameter(1)", *lines]
    return (
        "HloModule m\n" + more + "\nENTRY %main (p: f32[2,4], q: f32[2]) -> f32[] {\n  " + "\n  ".join(inside) + "\n}\n"
    )


@pytest.mark.parametrize(
    ("line", "kind", "size", "sent"),
    [
        ("%g = f32[8,4]{1,0} all-gather(%p), replica_groups={{0,1,2,3}}, dimensions={0}", "all_gather", 32, 96),
        ("%g = f32[1,4]{1,0} reduce-scatter(%p), replica_groups={{0,1,2,3}}, dimensions={0}", "reduce_scatter", 32, 24),
        ("%g = f32[2,4]{1,0} all-reduce-start(%p), replica_groups=[1,4]<=[4], to_apply=%add", "all_reduce", 32, 48),
        ("%g = f32[2]{0} collective-permute(%q), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}", "permute", 8, 8),
        ("ROOT %g = (f32[2]{0}, f32[2]{0}) all-to-all(%q, %q), replica_groups={{0,1,2,3}}", "all_to_all", 16, 12),
        ("%g = (f32[2]{0}, /*index=1*/f32[2,4]{1,0}) all-reduce(%q, %p), replica_groups={}", "all_reduce", 40, 60),
    ],
)
def test_an_instruction_of_the_compiler_is_a_collective(line: str, kind: str, size: int, sent: int) -> None:
    (found,) = hlo.added_by_compiler(program(line), {"x": 4})
    assert (found.kind, found.axes, found.bytes, found.sent, found.by_compiler) == (kind, ("x",), size, sent, True)


# -- admission ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "return jnp.sort(a) + jnp.argsort(a) + jnp.cumsum(a, 1)",
        "return a + lax.top_k(a, 2)[0].sum()",
        "return jax.nn.gelu(a) + jax.nn.softmax(a) + jax.scipy.special.erf(a) + jnp.tanh(a)",
        "return a + jax.random.normal(jax.random.key(0), a.shape)",
        "return a.at[0].set(1) + jnp.take_along_axis(a, jnp.argmax(a, 1, keepdims=True), 1)",
        "return jnp.where(a > 0, a, lax.dynamic_slice(a, (0, lax.axis_index('x')), (2, 1)))",
        "return (a.astype(jnp.bfloat16) * 2).astype(jnp.float32) + jnp.abs(jnp.fft.fft(a))",
        "return a + lax.reduce_window(a, 0.0, lax.add, (1, 2), (1, 1), 'SAME')",
        "return a + jax.lax.stop_gradient(jax.grad(lambda a: jnp.sum(a @ a.T))(a))",
    ],
)
def test_honest_programs_are_admitted(look: Callable, body: str) -> None:
    assert look(body).collectives == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return a + jnp.linalg.cholesky(a @ a.T).sum()", r"the program calls 'lapack_\w+' outside XLA, which is not"),
        ("return a + jnp.zeros((1 << 28) + 1).sum()", r"makes an array of 1\.0 GiB; 1 GiB is the limit"),
        ("return a + jnp.zeros((1 << 16, 1 << 16), bool).any()", r"makes an array of 4\.0 GiB"),
        ("for i in range(200):\n    a = a + i\nreturn a", "more than 100 operations; use lax.fori_loop or lax.scan"),
    ],
)
def test_programs_that_do_more_than_compute_or_too_much_are_refused(
    look: Callable, monkeypatch: pytest.MonkeyPatch, body: str, reason: str
) -> None:
    monkeypatch.setattr(admission, "MAX_OPS", 100)
    with pytest.raises(admission.ProgramRefused, match=reason):
        look(body)


def test_a_gibibyte_is_admitted(look: Callable) -> None:
    assert look("return a + jnp.zeros(1 << 28).sum()").collectives == []


def test_a_permute_from_each_device_to_itself_moves_nothing(look: Callable) -> None:
    assert look("return lax.ppermute(a, 'x', [(i, i) for i in range(4)])").collectives == []


# -- the direction of a permute -----------------------------------------------------------------


def facts_of(body, mesh_shape: dict[str, int], spec: P) -> facts.Facts:
    """Return the facts of a per-device function with one float32 argument that is sharded by ``spec``."""
    sizes, names = tuple(mesh_shape.values()), tuple(mesh_shape)
    mesh = jax.sharding.AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))
    fn = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    argument = jax.ShapeDtypeStruct((120, 8), jnp.float32, sharding=NamedSharding(mesh, spec))
    lowered: Any = jax.jit(fn).trace(argument).lower(lowering_platforms=("cpu",))
    return facts.read(lowered.compiler_ir("stablehlo"), mesh_shape, set())


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8])
def test_the_shift_of_a_rotation_goes_in_the_shorter_direction(size: int):
    for places in range(-size, 2 * size):
        pairs = [[d, (d + places) % size] for d in range(size)]
        ways = [step for step in range(-size, size + 1) if (places - step) % size == 0]
        shortest = min(ways, key=lambda step: (abs(step), step < 0))
        assert groups.cyclic_shift(pairs, {"x": size}) == (shortest or None)


@pytest.mark.parametrize(("axis", "size"), [("x", 4), ("y", 2)])
def test_a_rotation_along_one_of_two_axes(axis: str, size: int):
    ring = [(d, (d - 1) % size) for d in range(size)]
    (hop,) = facts_of(lambda a: jax.lax.ppermute(a, axis, ring), {"x": 4, "y": 2}, P("x", "y")).collectives
    assert (hop.kind, hop.axes, hop.shift) == ("permute", (axis,), -1 if size > 2 else 1)


@pytest.mark.parametrize(
    ("pairs", "mesh"),
    [
        ([[0, 1], [1, 2], [2, 3]], {"x": 4}),  # a line, not a ring
        ([[0, 1], [1, 0], [2, 3], [3, 2]], {"x": 4}),  # some devices send forwards, some backwards
        ([[0, 1], [1, 2], [2, 0], [3, 3]], {"x": 4}),  # one device sends only to itself
        ([[0, 3], [3, 0], [1, 2], [2, 1]], {"x": 2, "y": 2}),  # along two axes
        # Only one of the two rings along axis x. The devices of the other ring send to themselves.
        ([[0, 2], [2, 0], [1, 1], [3, 3]], {"x": 2, "y": 2}),
        ([[0, 0], [1, 1]], {"x": 2}),  # no data moves
    ],
)
def test_pairs_that_are_no_rotation_have_no_shift(pairs: list[list[int]], mesh: dict[str, int]):
    assert groups.cyclic_shift(pairs, mesh) is None


def test_only_permutes_have_a_shift():
    (sum_,) = facts_of(lambda a: jax.lax.psum(a, "x"), {"x": 4}, P("x")).collectives
    assert sum_.shift is None


def test_a_loop_of_permutes_keeps_its_shift_and_is_multiplied_out():
    ring = [(d, (d + 1) % 5) for d in range(5)]

    def body(a):
        return jax.lax.fori_loop(0, 4, lambda _, a: jax.lax.ppermute(a, "x", ring), a)

    (hop,) = facts_of(body, {"x": 5}, P("x")).collectives
    assert (hop.count, hop.shift, hop.bytes) == (4, 1, 4 * 24 * 8)
