"""The time formulas, compared with a simulated network and with published numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader import hardware
from grader.hardware import (
    CHIPS,
    all_gather_time,
    all_reduce_time,
    all_to_all_time,
    latency,
    latency_bound_bytes,
    lookup,
    reduce_scatter_time,
    slice_problem,
    tree_time,
    wraps,
)
from tests import network

US = 1e-6
V = 12_582_912.0
SIZES = [2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16]


def simulated(collective, how: str, n: int, bandwidth: float) -> float:
    net = network.Network(bandwidth)
    collective(net, how, n, V)
    return net.clock


COLLECTIVES = [
    (network.all_gather, all_gather_time),
    (network.reduce_scatter, reduce_scatter_time),
    (network.all_reduce, all_reduce_time),
]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("topology", ["ring", "one_way_ring", "line"])
@pytest.mark.parametrize(("collective", "formula"), COLLECTIVES)
def test_exact_times_on_a_torus_axis(collective, formula, topology, n):
    """The exact model gives the time of a simulated network, for even and odd N."""
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
def test_the_books_ring_time_is_that_of_whole_shards_on_an_even_ring(collective, formula, n):
    """For even N, the book's time V/W is the time of ⌊N/2⌋ rounds in which devices send whole shards.

    For odd N, the book's time is longer than these rounds, by a factor of N/(N-1). The book states this simplification.
    """
    whole = simulated(collective, "ring whole", n, 4.5e10)
    book = formula(V, n, "v5e", topology="ring", model="book")
    assert book == pytest.approx(whole * (1 if n % 2 == 0 else n / (n - 1)), rel=1e-9)


@pytest.mark.parametrize("topology", ["one_way_ring", "line"])
def test_the_book_is_exact_on_lines_and_one_way_rings(topology):
    assert all_gather_time(V, 4, "v5e", topology=topology) == all_gather_time(
        V, 4, "v5e", topology=topology, model="exact"
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("topology", ["ring", "one_way_ring", "line"])
def test_all_to_all_on_a_torus_axis(topology, n):
    """On a line, ⌊N/2⌋·⌈N/2⌉ chunks of V/N² bytes cross the middle link. For even N, this takes V/(4·W1)."""
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
    """For N devices and a longest axis of M, the busiest wire carries V·M/(8·N) bytes in one direction.

    So V·M/(4·N·W) is a lower bound. The simulated network takes at most 7 % longer.
    """
    net = network.Network(4.5e10)
    network.torus_all_to_all(net, sizes, V)
    formula = all_to_all_time(V, sizes, "v4p")
    assert max(net.sent.values()) / 4.5e10 == pytest.approx(formula, rel=1e-9)
    assert formula <= net.clock * (1 + 1e-9) and net.clock <= 1.07 * formula


@pytest.mark.parametrize("n", [4, 8])
def test_an_all_gather_over_two_axes_uses_all_links(n):
    """The devices gather one half of the array over x first, and the other half over y first. So all links are busy.

    The simulated network takes exactly V·(N²-1)/(N²·2·W).
    """
    net = network.Network(4.5e10)
    network.all_gather(net, "ring", n, V / 2 / n)  # one half of the array goes along x, the other half along y
    network.all_gather(net, "ring", n, V / 2)
    assert all_gather_time(V, n * n, "v4p", axes=2, model="exact") == pytest.approx(net.clock, rel=1e-9)
    assert all_gather_time(V, n * n, "v4p", axes=2) == pytest.approx(V / (2 * 9e10))


@given(st.integers(2, 200), st.floats(1, 1e12), st.sampled_from(sorted(CHIPS)))
def test_times_of_collectives_keep_their_relations_for_any_size(n, size, chip):
    """The exact time is below the book's. A line takes twice as long as a ring.

    A reduce-scatter takes as long as an all-gather, and an all-reduce as long as both.
    """
    ring = all_gather_time(size, n, chip, model="exact")
    assert ring < all_gather_time(size, n, chip)
    assert all_gather_time(size, n, chip, topology="line") == pytest.approx(2 * ring)
    assert reduce_scatter_time(size, n, chip, model="exact") == ring
    assert all_reduce_time(size, n, chip, model="exact") == pytest.approx(2 * ring)


@pytest.mark.parametrize("formula", [all_gather_time, reduce_scatter_time, all_reduce_time, all_to_all_time])
@pytest.mark.parametrize("model", ["book", "exact"])
def test_a_collective_on_one_chip_takes_no_time(formula, model):
    assert formula(V, 1, "v5e", model=model) == 0
    assert formula(V, 1, "H100", topology="switch", model=model) == 0


def test_pop_quiz_2():
    """On v5e with the mesh {X:8, Y:4}, axis y is a line and a gather over y takes 559 µs. On a ring it takes 373 µs.

    An array of 256x256 is so small that its time is the latency of the hops, 3 µs.
    """
    size = 2 * 2048 * 8192
    assert not wraps("v5e", 4)
    assert all_gather_time(size, 4, "v5e", topology="ring") == pytest.approx(373 * US, rel=2e-3)
    assert all_gather_time(size, 4, "v5e", topology="line") == pytest.approx(559 * US, rel=2e-3)
    assert latency(4, "line") == pytest.approx(3 * US)
    assert 2 * 256 * 256 / 4 < latency_bound_bytes("v5e") == pytest.approx(45_000)


def test_sharding_chapter_question_2():
    """On v4p:4x4x4 with B=1024 and D=4096, the two gathers take 23 and 46 µs.

    The all-reduce takes 11.6 µs if the array is sharded over x and y, and otherwise 186 µs.
    """
    B, D = 1024, 4096
    assert wraps("v4p", 4, (4, 4, 4))
    assert all_gather_time(2 * B * D / 4, 4, "v4p") == pytest.approx(23 * US, rel=0.02)
    assert all_gather_time(2 * B * D, 16, "v4p", axes=2) == pytest.approx(46 * US, rel=0.02)
    assert all_reduce_time(2 * B * D / 16, 4, "v4p") == pytest.approx(11.6 * US, rel=5e-3)
    assert all_reduce_time(2 * B * D, 4, "v4p") == pytest.approx(186 * US, rel=5e-3)


def test_sharding_chapter_question_3():
    """Four v4p chips gather shards of 64 bytes. The latency of two hops, 2 µs, is much longer than the transfer."""
    assert latency(4, "ring") == pytest.approx(2 * US)
    assert all_gather_time(2 * 128, 4, "v4p") < latency(4, "ring") / 100


@pytest.mark.parametrize("n", [4, 8, 16])
def test_sharding_chapter_question_10(n):
    """An all-to-all takes half the time of an all-gather on a one-way ring, and a quarter on a ring with both directions."""
    one_way = all_to_all_time(V, n, "v5e", topology="one_way_ring") / all_gather_time(
        V, n, "v5e", topology="one_way_ring"
    )
    assert one_way == pytest.approx(1 / 2)
    assert all_to_all_time(V, n, "v5e") / all_gather_time(V, n, "v5e") == pytest.approx(1 / 4)


def test_gpu_chapter():
    """Pop quiz 1, on H100: bytes divided by bandwidth give 75 µs, and the exact time is 65 µs. Pop quiz 2: 1.04 ms.

    The three levels of switches have bandwidths of 514, 413 and 17,100 GB/s.
    """
    size = 2 * 1024 * 16384
    assert size / 450e9 == pytest.approx(75 * US, rel=0.01)
    assert all_gather_time(size, 8, "H100", topology="switch") == pytest.approx(65 * US, rel=0.01)
    assert all_gather_time(2 * 4096 * 65536, 8, "H100", topology="switch") == pytest.approx(1.04e-3, rel=5e-3)
    assert 1 / tree_time(1, [(8, 450e9)]) == pytest.approx(514e9, rel=2e-3)
    assert 1 / tree_time(1, [(32, 400e9)]) == pytest.approx(413e9, rel=2e-3)
    assert 1 / tree_time(1, [(4, 32 * 400e9)]) == pytest.approx(17_100e9, rel=3e-3)
    assert 1 / tree_time(1, [(8, 450e9), (32, 400e9), (4, 12.8e12)]) == pytest.approx(413e9, rel=2e-3)


def test_sharp_lets_an_all_reduce_send_its_data_once():
    plain = all_reduce_time(V, 8, "H100", topology="switch")
    assert all_reduce_time(V, 8, "H100", topology="switch", sharp=True) == pytest.approx(V / 450e9)
    assert plain / all_reduce_time(V, 8, "H100", topology="switch", sharp=True) == pytest.approx(2 * 7 / 8)


def test_latency_over_several_axes():
    assert latency((4, 8), "ring") == pytest.approx(6 * US)
    assert latency(8, "one_way_ring") == pytest.approx(7 * US)
    assert hardware.hop_time() == US


@pytest.mark.parametrize(
    ("call", "text"),
    [
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
        (lambda: all_gather_time(1, 4, "v5e", axes=3), "v5e has a 2D torus: `axes` is 1 to 2, not 3"),
        (lambda: all_gather_time(1, 8, "H100", topology="switch", axes=2), "a switch has no axes: leave out axes="),
        (lambda: all_gather_time(1, 0, "v5e"), "a group has at least one device, not 0"),
        (
            lambda: all_reduce_time(1, 4, "v5e", sharp=True),
            "sharp=True needs a switch that adds the arrays (SHARP): write topology='switch', not 'ring'",
        ),
        (
            lambda: all_to_all_time(1, (4, 4), "v5e", model="exact"),
            "an all-to-all over several axes needs model='book' and topology='ring'",
        ),
        (lambda: wraps("H100", 8), "H100 is a GPU: it has a switch, not a torus"),
        (lambda: wraps("v5e", 4, (8, 16)), "no axis of size 4 in a slice of 8x16"),
    ],
)
def test_errors_are_one_clear_line(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("topology", ["ring", "one_way_ring", "line", "switch"])
@pytest.mark.parametrize("n", SIZES)
def test_hops_are_the_steps_of_a_simulated_all_gather(topology, n):
    """Behind a switch, the number of hops is 1, although a device sends its messages one after another."""
    net = network.Network(1.0)
    network.all_gather(net, topology, n, V)
    assert hardware.hops(n, topology) == (1 if topology == "switch" else net.steps)


@pytest.mark.parametrize(
    ("chip", "asked", "problem"),
    [
        ("v4p", {"count": 1536}, ""),
        ("v4p", {"count": 2560}, "v4p has no slice of 2560 chips"),
        ("v4p", {"count": 640}, "v4p has no slice of 640 chips"),
        ("v5p", {"count": 2560}, ""),
        ("v5p", {"count": 6144}, ""),
        ("v5p", {"count": 8960}, "v5p has no slice of 8960 chips"),
        ("v5p", {"shape": (16, 20, 28)}, "v5p has no slice of 16x20x28"),
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
def test_slice_problem_refuses_slices_that_do_not_exist(chip, asked, problem):
    assert slice_problem(chip, **asked) == problem


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
