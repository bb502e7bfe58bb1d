"""The hardware table, the topology rules, and the time formulas against a network that moves chunks."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import network
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader import hardware
from grader.hardware import (
    CHIPS,
    GPUS,
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    describe,
    hbm_intensity,
    latency,
    latency_bound_bytes,
    link_intensity,
    lookup,
    matmul_time,
    reduce_scatter_time,
    slice_problem,
    tree_time,
    wraps,
)

US = 1e-6
V = 12_582_912.0
SIZES = [2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16]


def simulated(collective, how: str, n: int, bandwidth: float) -> float:
    net = network.Network(bandwidth)
    collective(net, how, n, V)
    return net.clock


# -- the formulas are what a network does ------------------------------------------------------

COLLECTIVES = [
    (network.all_gather, all_gather_time),
    (network.reduce_scatter, reduce_scatter_time),
    (network.all_reduce, all_reduce_time),
]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("topology", ["ring", "one_way_ring", "line"])
@pytest.mark.parametrize(("collective", "formula"), COLLECTIVES)
def test_exact_times_on_a_torus_axis(collective, formula, topology, n):
    """The exact model is what moving every chunk step by step takes, for even and odd N."""
    chip = lookup("v5e")
    assert isinstance(chip, hardware.Chip)
    want = simulated(collective, topology, n, chip.ici)
    assert formula(V, n, "v5e", topology=topology, model="exact") == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("collective", "formula"), COLLECTIVES)
def test_times_behind_a_switch(collective, formula, n):
    want = simulated(collective, "switch", n, 450e9)
    for model in ("book", "exact"):
        assert formula(V, n, "H100", topology="switch", model=model) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("collective", "formula"), COLLECTIVES)
def test_book_ring_is_whole_shards_on_an_even_ring(collective, formula, n):
    """The book's V/W is exactly ⌊N/2⌋ rounds of whole shards for even N. For odd N whole shards are already
    optimal, and the book is N/(N-1) too slow: its stated simplification, not an error of ours."""
    whole = simulated(collective, "ring whole", n, 4.5e10)
    book = formula(V, n, "v5e", topology="ring", model="book")
    assert book == pytest.approx(whole * (1 if n % 2 == 0 else n / (n - 1)), rel=1e-9)


@pytest.mark.parametrize("topology", ["one_way_ring", "line"])
def test_the_book_is_exact_where_there_is_one_way_only(topology):
    assert all_gather_time(V, 4, "v5e", topology=topology) == all_gather_time(
        V, 4, "v5e", topology=topology, model="exact"
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("topology", ["ring", "one_way_ring", "line"])
def test_all_to_all_on_a_torus_axis(topology, n):
    """On the line the middle link decides: ⌊N/2⌋·⌈N/2⌉ chunks of V/N², which is V/(4·W1) for even N."""
    want = simulated(network.all_to_all, topology, n, 4.5e10)
    assert all_to_all_time(V, n, "v5e", topology=topology, model="exact") == pytest.approx(want, rel=1e-9)
    book = all_to_all_time(V, n, "v5e", topology=topology, model="book")
    odd = 1 if n % 2 == 0 or topology == "one_way_ring" else 1 - 1 / n**2
    assert book * odd == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("n", SIZES)
def test_all_to_all_behind_a_switch(n):
    want = simulated(network.all_to_all, "switch", n, 900e9)
    assert all_to_all_time(V, n, "B200", topology="switch") == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("sizes", [(4, 4), (4, 6), (2, 8), (8, 4), (6, 4)])
def test_all_to_all_over_two_axes(sizes):
    """The busiest wire carries V·max/(8·N) one way, so V·max/(4·N·W) is a bound; greedy routing comes within 7 %."""
    net = network.Network(4.5e10)
    network.torus_all_to_all(net, sizes, V)
    formula = all_to_all_time(V, sizes, "v4p")
    assert max(net.sent.values()) / 4.5e10 == pytest.approx(formula, rel=1e-9)
    assert formula <= net.clock * (1 + 1e-9) and net.clock <= 1.07 * formula


@pytest.mark.parametrize("n", [4, 8])
def test_two_axes_at_once(n):
    """Half the array gathers x first and half y first, so all links are busy: V·(N²-1)/(N²·2·W), which is exact."""
    net = network.Network(4.5e10)
    network.all_gather(net, "ring", n, V / 2 / n)  # along the first axis, the other half along the other
    network.all_gather(net, "ring", n, V / 2)
    assert all_gather_time(V, n * n, "v4p", axes=2, model="exact") == pytest.approx(net.clock, rel=1e-9)
    assert all_gather_time(V, n * n, "v4p", axes=2) == pytest.approx(V / (2 * 9e10))


@pytest.mark.parametrize("topology", ["ring", "one_way_ring", "line", "switch"])
@pytest.mark.parametrize("n", SIZES)
def test_hops_are_the_steps_of_the_gather(topology, n):
    """Behind a switch every message is one hop, however many there are one after the other."""
    net = network.Network(1.0)
    network.all_gather(net, topology, n, V)
    assert hardware.hops(n, topology) == (1 if topology == "switch" else net.steps)


@given(st.integers(2, 200), st.floats(1, 1e12), st.sampled_from(sorted(CHIPS)))
def test_relations_that_hold_everywhere(n, size, chip):
    """Exact is below book, a ring is twice a line, a reduce-scatter is an all-gather, an all-reduce is both."""
    ring = all_gather_time(size, n, chip, model="exact")
    assert ring < all_gather_time(size, n, chip)
    assert all_gather_time(size, n, chip, topology="line") == pytest.approx(2 * ring)
    assert reduce_scatter_time(size, n, chip, model="exact") == ring
    assert all_reduce_time(size, n, chip, model="exact") == pytest.approx(2 * ring)


@pytest.mark.parametrize("formula", [all_gather_time, reduce_scatter_time, all_reduce_time, all_to_all_time])
@pytest.mark.parametrize("model", ["book", "exact"])
def test_one_chip_alone_moves_nothing(formula, model):
    assert formula(V, 1, "v5e", model=model) == 0
    assert formula(V, 1, "H100", topology="switch", model=model) == 0


# -- published numbers -------------------------------------------------------------------------


def test_pop_quiz_2():
    """v5e {X:8, Y:4}: 373 µs if y were a ring, 559 µs as the line it is; 3 µs of hops for 256x256."""
    size = 2 * 2048 * 8192
    assert not wraps("v5e", 4)
    assert all_gather_time(size, 4, "v5e", topology="ring") == pytest.approx(373 * US, rel=2e-3)
    assert all_gather_time(size, 4, "v5e", topology="line") == pytest.approx(559 * US, rel=2e-3)
    assert latency(4, "line") == pytest.approx(3 * US)
    assert 2 * 256 * 256 / 4 < latency_bound_bytes("v5e") == pytest.approx(45_000)


def test_sharding_chapter_question_2():
    """v4p 4x4x4, B=1024, D=4096: 23, 46 and 11.6 µs; 186 µs when the other shards are forgotten."""
    B, D = 1024, 4096
    assert wraps("v4p", 4, (4, 4, 4))
    assert all_gather_time(2 * B * D / 4, 4, "v4p") == pytest.approx(23 * US, rel=0.02)
    assert all_gather_time(2 * B * D, 16, "v4p", axes=2) == pytest.approx(46 * US, rel=0.02)
    assert all_reduce_time(2 * B * D / 16, 4, "v4p") == pytest.approx(11.6 * US, rel=5e-3)
    assert all_reduce_time(2 * B * D, 4, "v4p") == pytest.approx(186 * US, rel=5e-3)


def test_sharding_chapter_question_3():
    """v4p axis of 4, bf16[128]: 64-byte shards, so two hops decide, 2 µs."""
    assert latency(4, "ring") == pytest.approx(2 * US)
    assert all_gather_time(2 * 128, 4, "v4p") < latency(4, "ring") / 100


@pytest.mark.parametrize("n", [4, 8, 16])
def test_sharding_chapter_question_10(n):
    """An all-to-all costs half of an all-gather one way round, a quarter both ways round."""
    one_way = all_to_all_time(V, n, "v5e", topology="one_way_ring") / all_gather_time(
        V, n, "v5e", topology="one_way_ring"
    )
    assert one_way == pytest.approx(1 / 2)
    assert all_to_all_time(V, n, "v5e") / all_gather_time(V, n, "v5e") == pytest.approx(1 / 4)


def test_gpu_chapter():
    """H100 pop quiz 1: 75 µs by B/W and 65 µs exactly; quiz 2: 1.04 ms; levels of 514, 413 and 17,100 GB/s."""
    size = 2 * 1024 * 16384
    assert size / 450e9 == pytest.approx(75 * US, rel=0.01)
    assert all_gather_time(size, 8, "H100", topology="switch") == pytest.approx(65 * US, rel=0.01)
    assert all_gather_time(2 * 4096 * 65536, 8, "H100", topology="switch") == pytest.approx(1.04e-3, rel=5e-3)
    assert 1 / tree_time(1, [(8, 450e9)]) == pytest.approx(514e9, rel=2e-3)
    assert 1 / tree_time(1, [(32, 400e9)]) == pytest.approx(413e9, rel=2e-3)
    assert 1 / tree_time(1, [(4, 32 * 400e9)]) == pytest.approx(17_100e9, rel=3e-3)
    assert 1 / tree_time(1, [(8, 450e9), (32, 400e9), (4, 12.8e12)]) == pytest.approx(413e9, rel=2e-3)


def test_sharp_sends_once():
    plain = all_reduce_time(V, 8, "H100", topology="switch")
    assert all_reduce_time(V, 8, "H100", topology="switch", sharp=True) == pytest.approx(V / 450e9)
    assert plain / all_reduce_time(V, 8, "H100", topology="switch", sharp=True) == pytest.approx(2 * 7 / 8)


@pytest.mark.parametrize(
    ("chip", "want"), [("v5p", 2550), ("v5e", 2189), ("v4p", 3055), ("H100", 2200), ("B200", 2556)]
)
def test_link_intensities(chip, want):
    assert link_intensity(chip) == pytest.approx(want, rel=2e-3)


def test_roofline_numbers():
    """v5e needs 240 FLOP/byte; H100 295 with the problems' 3.35e12 B/s, 291 with the table's row."""
    assert hbm_intensity("v5e") == pytest.approx(240, rel=2e-3)
    assert hbm_intensity("H100") == pytest.approx(291, rel=2e-3)
    assert hardware.peak_flops("H100") / 3.35e12 == pytest.approx(295, rel=3e-3)
    assert matmul_time(1.97e14, "v5e") == 1
    assert matmul_time(4.61e15, "7x", dtype="fp8") == 1


# -- the table ---------------------------------------------------------------------------------


def test_every_row_has_a_source_and_is_frozen():
    for row in [*CHIPS.values(), *GPUS.values()]:
        assert row.source and row.date.count("-") == 2
        with pytest.raises(FrozenInstanceError):
            row.name = "mine"  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("chip", "chips", "both_ways"),
    [
        ("v3", 1024, 2e11),
        ("v4p", 4096, 9e10),
        ("v5p", 8960, 1.8e11),
        ("v5e", 256, 9e10),
        ("v6e", 256, 1.8e11),
        ("7x", 9216, 1.8e11),
    ],
)
def test_pods(chip, chips, both_ways):
    row = CHIPS[chip]
    assert math.prod(row.pod) == chips
    assert row.ici_both == both_ways
    assert row.torus == len(row.pod)


def test_names_are_read_as_people_write_them():
    assert lookup("TPU v5e") is lookup("V5E") is CHIPS["v5e"]
    assert lookup("h100") is GPUS["H100"]
    assert lookup(CHIPS["7x"]) is CHIPS["7x"]
    assert hardware.is_known("v4p") and not hardware.is_known("v4x") and not hardware.is_known(4)


def test_one_line_per_chip():
    assert describe("v5e") == (
        "v5e: ICI 4.5e10 B/s per link and direction (9.0e10 both ways), 2D torus, wraps only on an axis of 16; "
        "HBM 16 GB at 8.2e11 B/s; bf16 1.97e14 FLOP/s; hop 1 us; table 2026-11, from How To Scale Your Model of 2025-02-04"
    )
    assert describe("v4p").count("\n") == 0 and "full 4x4x4 cubes" in describe("v4p")
    assert describe("H100") == (
        "H100: 450 GB/s out of each GPU into the switch of its node of 8; 400 GB/s out of a node; "
        "HBM 80 GB at 3.4e12 B/s; bf16 9.9e14 FLOP/s dense; table 2026-11, from How To Scale Your Model of 2025-08-18"
    )
    assert "HBM" not in describe("GB200 NVL72")
    assert "400 GB/s out of a node (assumed, as for H100);" in describe("H200")
    assert describe("7x").endswith("from jax-ml/scaling-book pull requests 115 and 116 of 2026-05-22")


@pytest.mark.parametrize(
    ("chip", "asked", "problem"),
    [
        ("v4p", {"count": 1536}, ""),
        ("v4p", {"count": 2560}, "v4p has no slice of 2560 chips"),
        ("v4p", {"count": 640}, "v4p has no slice of 640 chips"),
        ("v5p", {"count": 2560}, ""),
        ("v5e", {"shape": (16, 8), "rings": (16,), "lines": (8,)}, ""),
        ("v5e", {"shape": (4, 16)}, "v5e has no slice of 4x16"),
        ("v5e", {"rings": (8,)}, "v5e has no slice with rings of 8"),
        ("v5e", {"count": 512}, "v5e has no slice of 512 chips"),
        ("v5p", {"shape": (2, 4, 4), "lines": (4,)}, ""),
        ("v5p", {"shape": (2, 2, 4), "rings": (4,)}, "v5p has no slice of 2x2x4 with rings of 4"),
        ("v4p", {"rings": (4, 12, 16)}, ""),
        ("v4p", {"rings": (4, 4, 4, 4)}, "v4p has no slice with rings of 4, 4, 4, 4"),
        ("v4p", {"rings": (20,)}, "v4p has no slice with rings of 20"),
        ("7x", {"rings": (16, 4)}, ""),
    ],
)
def test_only_slices_that_can_be_had(chip, asked, problem):
    assert slice_problem(chip, **asked) == problem


# -- topology ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chip", "size", "slice_shape", "want"),
    [
        ("v5e", 16, None, True),
        ("v5e", 8, None, False),
        ("v5e", 16, (8, 16), True),
        ("v5e", 8, (8, 16), False),
        ("v6e", 4, (4, 4), False),
        ("v4p", 4, None, True),
        ("v4p", 4, (2, 2, 4), False),
        ("v4p", 4, (4, 4), False),
        ("v5p", 8, (4, 4, 8), True),
        ("v5p", 6, None, False),
        ("7x", 576, (4, 4, 576), True),
        ("v3", 32, None, True),
        ("v3", 16, None, False),
    ],
)
def test_which_axes_wrap_around(chip, size, slice_shape, want):
    assert wraps(chip, size, slice_shape) is want
    assert hardware.axis_topology(chip, size, slice_shape) == ("ring" if want else "line")


def test_two_by_two_is_a_ring_although_no_axis_wraps():
    assert not wraps("v5e", 2, (2, 2))
    assert hardware.is_physical_ring("v5e", (2, 2))
    assert hardware.is_physical_ring("v4p", (2, 2, 1))
    assert not hardware.is_physical_ring("v5e", (2, 4))
    assert hardware.is_physical_ring("v5e", (16, 1))
    assert not hardware.is_physical_ring("v5e", (8, 1))


def test_latency_over_several_axes():
    assert latency((4, 8), "ring") == pytest.approx(6 * US)
    assert latency(8, "one_way_ring") == pytest.approx(7 * US)
    assert hardware.hop_time() == US


# -- errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: lookup("v5x"), "unknown chip 'v5x'; did you mean 'v5p'? (known: v3, v4p,"),
        (lambda: lookup("zzz"), "unknown chip 'zzz' (known: v3"),
        (
            lambda: all_gather_time(1, 4, "v5e", topology="rings"),
            "unknown topology 'rings'; did you mean 'ring'? (known: ring, one_way_ring, line, switch)",
        ),
        (
            lambda: all_gather_time(1, 4, "v5e", model="bok"),
            "unknown model 'bok'; did you mean 'book'? (known: book, exact)",
        ),
        (lambda: latency(4, "tours"), "unknown topology 'tours'"),
        (
            lambda: all_gather_time(1, 8, "H100"),
            "H100 is a GPU behind a switch: use topology='switch', not 'ring'",
        ),
        (lambda: all_gather_time(1, 4, "v5e", topology="switch"), "v5e is a TPU in a torus: it has no switch"),
        (lambda: all_gather_time(1, 4, "v5e", axes=3), "v5e has a 2D torus: axes is 1 to 2, not 3"),
        (lambda: all_gather_time(1, 8, "H100", topology="switch", axes=2), "a switch has no axes: leave axes=1"),
        (lambda: all_gather_time(1, 0, "v5e"), "a group has at least one device, not 0"),
        (
            lambda: all_reduce_time(1, 4, "v5e", sharp=True),
            "only a switch can add in the network (SHARP); topology is 'ring'",
        ),
        (
            lambda: all_to_all_time(1, (4, 4), "v5e", model="exact"),
            "an all-to-all over several axes has only the 'book' model on rings",
        ),
        (lambda: wraps("H100", 8), "H100 is a GPU: it has a switch, not a torus"),
        (lambda: wraps("v5e", 4, (8, 16)), "no axis of size 4 in a slice of 8x16"),
        (lambda: hbm_intensity("GB200 NVL72"), "the table has no bfloat16 rate for GB200 NVL72"),
        (lambda: matmul_time(1, "A100", dtype="fp8"), "no fp8 rate for A100; it has bfloat16, int8"),
    ],
)
def test_errors_are_one_clear_line(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(text)
    assert "\n" not in str(error.value)
