"""Laws of the clock that hold for any program, tested on random pieces and on random JAX programs."""

from __future__ import annotations

import dataclasses
import itertools
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.clock import COMPUTE, CollectiveTime, Placement, Span, Timeline, timeline
from grader.clock.order import Busy, Laid, Piece, lay
from grader.wire.operations import Body, Operation, Operations, to_json
from tests.clock.programs import chip, placed, read, ring_of
from tests.clock.test_closed_forms import FORMS, LAYERS, RING, fsdp, gather_first, late_unrolled_by_four, matmul, ring
from tests.timelines import timeline as timeline_of

ROOT = Path(__file__).parents[2]
N = 4
QUICK = settings(max_examples=20)
MANY = settings(max_examples=100)
RESOURCES = (COMPUTE, "x+", "x-")


@st.composite
def pieces(draw: st.DrawFn) -> list[Piece]:
    found: list[Piece] = []
    for i in range(draw(st.integers(1, 14))):
        after = frozenset(draw(st.lists(st.integers(0, i - 1), max_size=3))) if i else frozenset()
        talks = draw(st.booleans())
        links = tuple(draw(st.sets(st.sampled_from(RESOURCES[1:]), min_size=1)))
        found.append(Piece(draw(st.integers(1, 50)), links if talks else (COMPUTE,), after, talks))
    return found


def ends(found: list[Piece], laid: Laid) -> list[int]:
    return [s + p.duration for s, p in zip(laid.start, found, strict=True)]


@MANY
@given(pieces())
def test_no_piece_starts_before_its_inputs_or_shares_a_resource(found: list[Piece]) -> None:
    laid = lay(found, COMPUTE)
    end = ends(found, laid)
    for i, piece in enumerate(found):
        assert all(end[j] <= laid.start[i] for j in piece.after)
    for resource in RESOURCES:
        held = sorted((laid.start[i], end[i]) for i, p in enumerate(found) if resource in p.resources)
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(held))
    assert max(end) == laid.length


@MANY
@given(pieces(), st.data())
def test_a_shorter_piece_never_lengthens_the_step(found: list[Piece], data: st.DataObject) -> None:
    shorter = [dataclasses.replace(p, duration=data.draw(st.integers(0, p.duration))) for p in found]
    assert lay(shorter, COMPUTE).length <= lay(found, COMPUTE).length


@MANY
@given(pieces())
def test_a_steps_length_is_between_its_longest_chain_and_its_sum(found: list[Piece]) -> None:
    longest: list[int] = []
    for piece in found:
        longest.append(piece.duration + max((longest[j] for j in piece.after), default=0))
    busiest = max(sum(p.duration for p in found if r in p.resources) for r in RESOURCES)
    assert max(*longest, busiest) <= lay(found, COMPUTE).length <= sum(p.duration for p in found)


@MANY
@given(pieces())
def test_a_collective_moved_later_overlaps_no_less(found: list[Piece]) -> None:
    laid = lay(found, COMPUTE)
    busy = Busy((s, s + p.duration) for s, p in zip(laid.start, found, strict=True) if not p.talks)
    for i, piece in enumerate(found):
        if piece.talks:
            early = busy.overlap(laid.early[i], laid.early[i] + piece.duration)
            assert early <= busy.overlap(laid.start[i], laid.start[i] + piece.duration)


def test_inputs_of_a_collective_run_before_unrelated_work() -> None:
    """A kernel waits for each matmul, and a collective for each kernel. The clock runs each kernel before the next matmul."""
    found = [Piece(10, (COMPUTE,), frozenset({i - 1} if i else ())) for i in range(3)]
    for i in range(3):
        found.append(Piece(1, (COMPUTE,), frozenset({i})))
        found.append(Piece(10, ("x+", "x-"), frozenset({len(found) - 1}), talks=True))
    assert lay(found, COMPUTE).length == 3 * 10 + 3 * 1 + 10  # only the last permute is exposed


# -- programs ----------------------------------------------------------------------------------


@st.composite
def programs(draw: st.DrawFn) -> Operations:
    """Draw a sequence of matmuls, elementwise operations and collectives over two square arrays of each device."""
    steps = draw(st.lists(st.tuples(st.sampled_from("pdagesb"), st.integers(0, 9), st.integers(0, 9)), max_size=12))
    size = draw(st.sampled_from([64, 512]))

    def local(a, b):
        known = [a, b]
        for step, i, j in steps:
            x, y = known[i % len(known)], known[j % len(known)]
            if step == "p":
                new = lax.ppermute(x, "x", [(k, (k + 1 + j % 2 * 2) % N) for k in range(N)])
            elif step == "d":
                new = x @ y
            elif step == "a":
                new = x + jnp.tanh(y)
            elif step == "g":
                new = lax.all_gather(x, "x", tiled=True)[j % N * size : j % N * size + size]
            elif step == "s":
                new = lax.psum(x, "x")
            elif step == "b":
                new, _ = lax.optimization_barrier((x, y))
            else:
                new = lax.all_to_all(x, "x", 0, 0, tiled=True)
            known.append(new)
        return tuple(known[-3:])

    both = [((N * size, size), P("x", None))] * 2
    return read(local, both, P("x", None), mesh={"x": N})


def ring_with(**rates: float) -> Placement:
    return ring_of(N, **({"hbm": 8e11} | rates))


@QUICK
@given(programs())
def test_overlapped_and_exposed_time_sum_to_the_communication_time(program: Operations) -> None:
    for profile in ("ideal", "v5e"):
        found = timeline(program, ring_with(), profile=profile)
        assert all(c.overlapped + c.exposed == c.runs * c.each for c in found.collectives)
        assert all(min(c.overlapped, c.exposed) >= 0 for c in found.collectives)
        assert 0 <= found.idle <= sum(c.exposed for c in found.collectives)


@QUICK
@given(programs(), st.sampled_from(["flops", "hbm", "link", "hop"]))
def test_a_faster_chip_is_never_slower(program: Operations, what: str) -> None:
    usual = {"flops": 1e14, "hbm": 8e11, "link": 5e10}
    slow = ring_with()
    shorter = dataclasses.replace(slow, hop=slow.hop / 3)
    fast = shorter if what == "hop" else ring_with(**{what: 3 * usual[what]})
    for profile in ("ideal", "v5e"):
        assert timeline(program, fast, profile=profile).step <= timeline(program, slow, profile=profile).step


@QUICK
@given(programs())
def test_hardware_that_is_half_as_fast_takes_twice_as_long(program: Operations) -> None:
    place = ring_with()
    half = dataclasses.replace(ring_with(flops=5e13, hbm=4e11, link=2.5e10), hop=2 * place.hop)
    once, twice = timeline(program, place), timeline(program, half)
    assert abs(twice.step - 2 * once.step) <= 2 * len(once.spans) + 2  # each time is rounded to a picosecond


@QUICK
@given(programs())
def test_the_critical_path_is_as_long_as_the_step(program: Operations) -> None:
    found = timeline(program, ring_with())
    assert sum({s.number: s.duration for s in found.spans if found.on_path(s)}.values()) == found.step


@QUICK
@given(programs(), st.integers(1, N - 1))
def test_the_time_does_not_depend_on_the_numbering_of_devices(program: Operations, by: int) -> None:
    turned = Operations(program.mesh, program.values, _turned(program.main, by))
    assert timeline(turned, ring_with()) == timeline(program, ring_with())


def _turned(body: Body, by: int) -> Body:
    def one(op: Operation) -> Operation:
        about = op.communication
        if about is None:
            return op
        groups = tuple(tuple((d + by) % N for d in group) for group in about.groups)
        return dataclasses.replace(op, communication=dataclasses.replace(about, groups=groups))

    return Body(body.arguments, tuple(map(one, body.operations)), body.results)


# -- loops -------------------------------------------------------------------------------------


def looped(rounds: int, unroll: int) -> Operations:
    def local(a, w):
        def body(a, _):
            a = lax.ppermute(a, "x", [(i, (i + 1) % 8) for i in range(8)])
            return a, a @ w

        return lax.scan(body, a, None, length=rounds, unroll=unroll)[1]

    return read(local, [((8 * 256, 256), P("x", None)), ((256, 256), P())], P(None, "x", None))


def test_a_loops_time_is_affine_in_its_rounds() -> None:
    steps = [timeline(looped(n, 1), ring_of(hbm=8e11)).step for n in (3, 4, 5, 9)]
    assert steps[1] - steps[0] == steps[2] - steps[1] == (steps[3] - steps[2]) // 4


def test_an_unrolled_loop_never_takes_longer() -> None:
    steps = [timeline(looped(8, unroll), ring_of(hbm=8e11)).step for unroll in (1, 2, 4)]
    assert steps == sorted(steps, reverse=True) and steps[0] > steps[2]


def test_a_timeline_draws_the_first_two_rounds_of_a_loop_and_the_last() -> None:
    found = timeline(looped(9, 1), RING)
    (loop,) = found.loops
    assert loop.rounds == 9 and loop.end - loop.start == 9 * loop.each
    assert [r for s in found.spans if s.kind == "permute" for r in s.rounds] == [(1, 9), (2, 9), (9, 9)]
    assert all(loop.start + (n - 1) * loop.each <= s.start for s in found.spans for n, _ in s.rounds)
    (permute,) = found.collectives
    assert permute.runs == 9 and permute.overlapped + permute.exposed == 9 * permute.each


# -- equal programs have equal times -----------------------------------------------------------

SCRIPT = """
import hashlib
from jax.sharding import PartitionSpec as P
from grader.clock import timeline
from tests.clock.programs import ring_of
from tests.clock.test_closed_forms import gather_first, matmul, ring
for program in (matmul(ring, "A"), matmul(gather_first, "A", P())):
    print(hashlib.sha256(repr(timeline(program, ring_of(hbm=8e11))).encode()).hexdigest())
"""


@pytest.mark.slow
def test_the_clock_does_not_depend_on_the_hash_seed() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }  # fmt: skip
    assert len(found) == 1 and "" not in found


def test_the_clock_does_not_depend_on_names_in_the_source() -> None:
    def another(first, second):
        gathered = lax.all_gather(first, "x", tiled=True)
        return gathered @ second

    programs = matmul(another, "A", P()), matmul(gather_first, "A", P())
    assert to_json(programs[0]) == to_json(programs[1])


def test_gathering_everything_first_costs_memory_and_no_time() -> None:
    def greedy(x, *weights):
        whole = [lax.all_gather(w, "x", tiled=True) for w in weights]
        x, *whole = lax.optimization_barrier((x, *whole))
        for w in whole:
            x = x @ w
        return x

    shapes = [((8 * 128, 4096), P("x", None)), *[((4096, 4096), P("x", None))] * LAYERS]
    right, wrong = (timeline(read(local, shapes, P("x", None)), RING) for local in (fsdp, greedy))
    assert right.step <= wrong.step <= right.step + right.busy
    weight = 4096 * 4096 * 2
    assert wrong.memory.temporaries >= LAYERS * weight > 3 * weight > right.memory.temporaries


def test_the_right_ring_is_faster_than_three_wrong_ones() -> None:
    by_name = {name: timeline(program(), place).step for name, _, _, program, place in FORMS}
    assert by_name["ring (A)"] < by_name["late in fori_loop (A)"] == by_name["permute waits (A)"]
    unrolled = timeline(matmul(late_unrolled_by_four, "A"), RING)
    assert by_name["ring (A)"] < unrolled.step


def test_a_ring_bound_by_hops_overlaps_the_known_part() -> None:
    found: Timeline = timeline(matmul(ring, "A"), RING)
    assert found.shares()["permute"].part == pytest.approx(5.36870912 / 41.94304, rel=1e-5)


@MANY
@given(pieces(), pieces(), st.integers(0, 400))
def test_the_shorter_of_two_steps_with_the_same_collectives_never_gains_less(
    kernels: list[Piece], others: list[Piece], work: int
) -> None:
    """The steps may differ in their kernels and in their dependences."""
    talks = [p for p in kernels if p.talks]
    found = []
    for computes in (kernels, others):
        of = [Piece(p.duration, p.resources, frozenset(), True) for p in talks]
        of += [Piece(p.duration, p.resources, frozenset(range(len(of))), False) for p in computes if not p.talks]
        found.append(made_of(of))
    found.append(made_of([Piece(p.duration, p.resources, frozenset(range(i)), p.talks) for i, p in enumerate(kernels)]))
    for one, other in itertools.permutations(found, 2):
        if one.step <= other.step:
            assert one.gained("permute", work) >= other.gained("permute", work)
        assert 0 <= one.gained("permute", work) <= 1


@st.composite
def two_with_the_same_collectives(draw: st.DrawFn) -> tuple[Timeline, Timeline]:
    """Draw two programs with equal collectives of several kinds, axes and directions.

    A loop of one or three rounds has the collectives. Between collectives, it does any work, also in a conditional.
    """
    sent = draw(st.lists(st.tuples(st.sampled_from("pqgsta"), st.sampled_from("xy")), min_size=1, max_size=5))
    rounds, size = draw(st.sampled_from([1, 1, 3])), draw(st.sampled_from([64, 512]))
    on = draw(st.sampled_from(["v5e:2x4", "v5p:2x2x2", "v6e:2x4"]))
    profile = draw(st.sampled_from(["ideal", on[:3]]))

    def surrounded(work: list[str], picks: list[int]) -> Timeline:
        of = itertools.cycle(picks)

        def local(a, b):
            def one_round(_, carried):
                known = [*carried]
                for (kind, axis), between in zip(sent, itertools.cycle(work), strict=False):
                    for step in between:
                        x, y = known[next(of) % len(known)], known[next(of) % len(known)]
                        known.append(BETWEEN[step](x, y))
                    known.append(_sent(kind, axis, known[next(of) % len(known)], size))
                return known[-1], sum(known[1:], known[0])

            return lax.fori_loop(0, rounds, one_round, (a, b))

        shapes = [((8 * size, size), P(("x", "y"), None))] * 2
        return timeline(read(local, shapes, P(("x", "y"), None), mesh={"x": 2, "y": 4}), on, profile=profile)

    works = st.lists(st.text("dabc", max_size=3), min_size=1, max_size=5)
    picks = st.lists(st.integers(0, 9), min_size=1, max_size=20)
    one, other = (surrounded(draw(works), draw(picks)) for _ in range(2))
    return one, other


def _after(x, y):
    return lax.optimization_barrier((x, y))[0]


def _either(x, y):
    return lax.cond(x[0, 0] > 0, jnp.matmul, jnp.add, x, y)


BETWEEN = {"d": jnp.matmul, "a": lambda x, y: x + jnp.tanh(y), "b": _after, "c": _either}


def _sent(kind: str, axis: str, x, size: int):
    n = {"x": 2, "y": 4}[axis]
    if kind in "pq":
        return lax.ppermute(x, axis, [(i, (i + (1 if kind == "p" else -1)) % n) for i in range(n)])
    if kind == "g":
        return lax.all_gather(x, axis, tiled=True)[:size]
    if kind == "t":
        return jnp.tile(lax.psum_scatter(x, axis, tiled=True), (n, 1))
    return lax.psum(x, axis) if kind == "s" else lax.all_to_all(x, axis, 0, 0, tiled=True)


@QUICK
@given(two_with_the_same_collectives(), st.integers(1, 10**10))
def test_the_shorter_of_two_programs_with_the_same_collectives_never_gains_less(
    both: tuple[Timeline, Timeline], work: int
) -> None:
    fast, slow = sorted(both, key=lambda line: line.step)
    assert [(c.kind, c.axes, c.runs * c.each) for c in fast.collectives] == [
        (c.kind, c.axes, c.runs * c.each) for c in slow.collectives
    ]
    for kind in fast.shares():
        assert fast.talking(kind) == slow.talking(kind)
        for time in (work, fast.talking(kind), fast.matmuls, slow.matmuls, slow.busy):
            assert fast.gained(kind, time) >= slow.gained(kind, time)


def made_of(pieces: list[Piece]) -> Timeline:
    """Return a timeline of pieces. Its collectives are permutes."""
    laid = lay(pieces, COMPUTE)
    spans, collectives, kernels = [], [], []
    for i, (piece, start) in enumerate(zip(pieces, laid.start, strict=True)):
        kind = "permute" if piece.talks else "kernel"
        spans += [Span(lane, kind, kind, start, start + piece.duration, i) for lane in piece.resources]
        kernels += [] if piece.talks else [(start, start + piece.duration)]
    busy = Busy(kernels)
    for span in {s.number: s for s in spans if s.kind == "permute"}.values():
        under = busy.overlap(span.start, span.end)
        times = span.duration, under, span.duration - under
        collectives.append(CollectiveTime(span.number, "permute", ("x",), 8, 1, *times))
    return timeline_of(*spans, step=laid.length / 1e6, collectives=tuple(collectives))


def test_the_profile_of_v4p_overlaps_no_all_gather() -> None:
    both = {
        p: timeline(matmul(gather_beside, "B", (P("x", None), P())), RING, profile=p) for p in ("ideal", "v4p", "v5e")
    }
    assert both["ideal"].step == both["v5e"].step < both["v4p"].step
    assert both["v4p"].shares()["all_gather"].overlapped == 0


def gather_beside(a, w):
    """The matmul does not use the gathered data, and the gather does not wait for the matmul."""
    return a @ w, lax.all_gather(a, "x", tiled=True)


def test_the_name_of_a_slice_begins_with_its_chip() -> None:
    assert str(chip()) == "test:8" and str(placed("v5e:2x4", {"x": 8}).slice) == "v5e:2x4"
