"""The clock's times of collectives, compared with a simulated network, and the placement of groups on a slice."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from grader.clock import Placement, Untimed, placed
from grader.clock.collectives import duration, gather_seconds, moves
from grader.clock.placement import Side, Slice
from grader.hardware import CHIPS
from grader.wire.operations import Communication
from tests import network
from tests.clock.programs import chip, line_of, ring_of

V = 67_108_864
SIZES = (2, 3, 4, 7, 8, 16)
SIMULATED = {
    "all_gather": (network.all_gather, lambda n: V // n),
    "reduce_scatter": (network.reduce_scatter, lambda n: V),
    "all_reduce": (network.all_reduce, lambda n: V),
    "all_to_all": (network.all_to_all, lambda n: V // n),
}


def whole(kind: str, n: int, size: int) -> Communication:
    return Communication(kind, (tuple(range(n)),), ("x",), size)


@pytest.mark.parametrize("kind", SIMULATED)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("topology", ["ring", "line"])
def test_a_collectives_time_equals_that_of_a_simulated_network(kind: str, n: int, topology: str) -> None:
    simulate, size = SIMULATED[kind]
    wires = network.Network(5e10)
    simulate(wires, topology, n, size(n) * (n if kind in ("all_gather", "all_to_all") else 1))
    place = ring_of(n) if topology == "ring" else line_of(n)
    time, lanes = duration(whole(kind, n, size(n)), place)
    assert time == pytest.approx(wires.clock * 1e12, rel=1e-6) and lanes == ("x+", "x-")


def routed(pairs: list[tuple[int, int]], n: int, ring: bool, size: int) -> float:
    """Return the time in which each pair's first device sends ``size`` bytes to the second, as one chunk.

    A chunk takes the shorter way round the ring. If both ways are equally long, it goes forwards.
    """
    loads = []
    for a, b in pairs:
        up = (2 * ((b - a) % n) <= n) if ring else b > a
        loads.append((network._walk(n, a, b, up), float(size)))
    wires = network.Network(5e10)
    wires.step(loads)
    return wires.clock


@pytest.mark.parametrize("ring", [True, False])
@pytest.mark.parametrize("by", range(1, 8))
def test_a_cyclic_shift_takes_the_time_of_its_busiest_wire(ring: bool, by: int) -> None:
    pairs = [(i, (i + by) % 8) for i in range(8)]
    about = Communication("permute", tuple(pairs), ("x",), V // 8)
    time, _ = duration(about, ring_of(8) if ring else line_of(8))
    assert time == pytest.approx(routed(pairs, 8, ring, V // 8) * 1e12, rel=1e-6)


@pytest.mark.parametrize("sizes", [(2, 4), (4, 4), (4, 8)])
def test_an_all_to_all_over_a_grid_takes_60_to_100_percent_of_a_networks_time(sizes: tuple[int, int]) -> None:
    n = sizes[0] * sizes[1]
    place = placed(chip(shape=sizes, rings=False), {"x": sizes[0], "y": sizes[1]})
    time, lanes = duration(Communication("all_to_all", (tuple(range(n)),), ("x", "y"), V // n), place)
    wires = network.Network(5e10)
    network.torus_all_to_all(wires, sizes, V, "line")
    assert 0.6 * wires.clock <= time / 1e12 <= wires.clock * (1 + 1e-9)
    assert lanes == ("x+", "x-", "y+", "y-")


def test_a_permute_holds_the_links_of_its_direction() -> None:
    def lanes(pairs: list[tuple[int, int]], place: Placement) -> tuple[str, ...]:
        return duration(Communication("permute", tuple(pairs), ("x",), 1 << 20), place)[1]

    there = [(i, (i + 1) % 8) for i in range(8)]
    assert lanes(there, ring_of(8)) == ("x+",)
    assert lanes([(b, a) for a, b in there], ring_of(8)) == ("x-",)
    assert lanes(there, line_of(8)) == ("x+", "x-")  # the last device's data cross all links to the first device
    assert lanes([(i, i + 1) for i in range(7)], line_of(8)) == ("x+",)


def test_hops_bound_the_time_of_small_collectives() -> None:
    assert duration(whole("all_gather", 8, 8), ring_of(8))[0] == 4_000_000
    assert duration(whole("all_gather", 8, 8), line_of(8))[0] == 7_000_000
    assert duration(whole("all_reduce", 8, 8), line_of(8))[0] == 14_000_000


RING4, RING8, RING16 = (network.Axis(n, ring=True) for n in (4, 8, 16))
LINE2, LINE4, LINE8 = (network.Axis(n, ring=False) for n in (2, 4, 8))
CORES = network.Axis(2, ring=False, wires=12)
GRIDS = [
    (RING4, RING4), (LINE4, LINE4), (RING4, RING8), (LINE2, LINE4), (LINE4, RING8), (LINE2, LINE2, LINE2),
    (LINE2, LINE2, LINE4), (LINE2, LINE2, CORES), (RING4, CORES), (RING4, LINE2, LINE2),
]  # fmt: skip
LARGE = [(RING4, RING4, RING8), (LINE8, RING16)]


def torus(axes: tuple[network.Axis, ...]) -> list[Side]:
    row = chip().chip
    return [Side(a.size, a.ring, replace(row, ici=a.wires * row.ici)) for a in axes]


def named(axes: tuple[network.Axis, ...]) -> str:
    return "x".join(f"{'ring' if a.ring else 'line'}{a.size}" for a in axes)


@pytest.mark.parametrize("axes", [*GRIDS, *LARGE], ids=named)
def test_the_gather_bound_is_reached_by_a_mixture_of_axis_orders(axes: tuple[network.Axis, ...]) -> None:
    assert gather_seconds(V, torus(axes)) == pytest.approx(network.even(axes)[2] * V / 5e10)


@pytest.mark.parametrize(("axes", "pieces", "more"), [*((g, 24, 1.04) for g in GRIDS), *((g, 8, 1.2) for g in LARGE)])
def test_a_network_using_all_axis_orders_takes_little_longer_than_the_bound(
    axes: tuple[network.Axis, ...], pieces: int, more: float
) -> None:
    """Some links are idle in the first and the last steps. With 24 pieces in a shard this costs up to 4 % on 32 nodes."""
    nodes = list(itertools.product(*(range(a.size) for a in axes)))
    orders, parts, _ = network.even(axes)
    steps = network.torus_all_gather(axes, network.mixed(orders, parts, pieces))
    takes = len(steps) * V / (len(nodes) * pieces) / 5e10
    assert 1 <= takes / gather_seconds(V, torus(axes)) * (1 + 1e-9) <= more
    if len(nodes) <= 32:
        network.backwards(steps, nodes, pieces)


@pytest.mark.parametrize(
    ("on", "mesh", "links"),
    [
        ("v5p:4x4x8", {"x": 4, "y": 4, "z": 8}, 4),  # x and z are rings
        ("v5e:8x16", {"x": 8, "z": 16}, 3),  # a line and a ring
        ("v5p:2x2x4", {"x": 2, "y": 2, "z": 4}, 2),  # x and z are lines
    ],
)
def test_a_collective_uses_the_links_of_unequal_axes_at_once(on: str, mesh: dict[str, int], links: int) -> None:
    place = placed(on, mesh)
    n = mesh["x"] * mesh["z"]
    groups = tuple(tuple(range(k * n, (k + 1) * n)) for k in range(mesh.get("y", 1)))
    each = Communication("all_gather", groups, ("x", "z"), V // n)
    bound = (n - 1) / n * V / (links * place.slice.chip.ici)
    assert duration(each, place)[0] == pytest.approx(bound * 1e12, rel=1e-6)
    reduced = Communication("all_reduce", groups, ("x", "z"), V)
    assert duration(reduced, place)[0] == pytest.approx(2 * bound * 1e12, rel=1e-6)


def test_chips_of_two_cores_send_each_byte_to_a_chip_once() -> None:
    """Each core of a chip receives one half of the other chips' data. It gets the other half from the chip's second core."""
    place = placed("7x:1x2x2", {"x": 8})
    core = CHIPS["7x"].ici / 2
    each = Communication("all_gather", (tuple(range(8)),), ("x",), V // 8)
    assert duration(each, place)[0] == pytest.approx(3 / 4 * V / 2 / (2 * core) * 1e12, rel=1e-6)


def test_a_broadcast_uses_every_link_of_its_source() -> None:
    place = placed(chip(shape=(4, 8)), {"x": 4, "y": 8})  # x is a ring, y is a line
    about = Communication("broadcast", (tuple(range(32)),), ("x", "y"), V)
    assert duration(about, place)[0] == pytest.approx(V / (3 * 5e10) * 1e12, rel=1e-6)


def test_groups_of_some_devices_along_an_axis_have_no_time() -> None:
    with pytest.raises(Untimed, match="the groups of this all_gather have only some of the devices along x"):
        duration(Communication("all_gather", ((0, 3), (1, 2)), ("x",), 8), ring_of(4))


def test_a_collective_that_moves_no_data_does_not_count() -> None:
    assert not moves(Communication("permute", ((0, 0), (1, 1)), (), 8))
    assert not moves(Communication("all_reduce", ((0,), (1,)), (), 8))


# -- placement of a mesh -----------------------------------------------------------------------


def test_a_mesh_axis_over_two_slice_axes_is_a_ring() -> None:
    place = placed("v5e:2x4", {"x": 8})
    assert place.axes == {"x": (0, 1)} and place.ways["x"].ring
    shift = Communication("permute", tuple((i, (i + 1) % 8) for i in range(8)), ("x",), 45_000_000)
    assert duration(shift, place) == (1_000_000_000, ("x+",))


def test_mesh_axes_are_placed_on_the_first_slice_axes_that_fit() -> None:
    assert placed("v5e:4x4", {"x": 4, "y": 4}).axes == {"x": (0,), "y": (1,)}
    assert placed("v5e:2x4", {"x": 4, "y": 2}).axes == {"x": (1,), "y": (0,)}
    assert placed("v5e:4x4", {"x": 4, "one": 1, "y": 4}, {"x": [1], "y": [0]}).axes == {"x": (1,), "y": (0,)}


def test_the_hardware_decides_which_axes_wrap() -> None:
    assert not placed("v5e:4x4", {"x": 4, "y": 4}).ways["x"].ring
    assert placed("v5e:16x16", {"x": 16, "y": 16}).ways["x"].ring
    assert placed("v5p:4x4x4", {"x": 4, "y": 4, "z": 4}).ways["z"].ring


@pytest.mark.parametrize(
    ("on", "mesh", "axes", "told"),
    [
        ("v5e", {"x": 8}, None, "'v5e' is not a slice; write a chip and the sizes of its axes, such as \"v5e:2x4\""),
        ("v5e:3x4", {"x": 12}, None, "v5e has no slice of 3x4"),
        ("v9:2x4", {"x": 8}, None, "unknown chip 'v9'"),
        ("H100:2x4", {"x": 8}, None, "H100 is a GPU: it has a switch, not a torus"),
        ("v5e:2x4", {"x": 4}, None, "the mesh (x=4) has 4 devices, but v5e:2x4 has 8"),
        ("v5e:2x4", {"x": 2, "y": 2, "z": 2}, None, "does not fit on v5e:2x4: each mesh axis must fill one or more whole axes of the slice"),
        ("v5e:2x4", {"x": 2, "y": 4}, {"x": [1], "y": [0]}, "does not fit on v5e:2x4 with axes={'x': [1], 'y': [0]}"),
    ],
)  # fmt: skip
def test_an_impossible_placement_is_reported_in_one_line(on: str, mesh: dict, axes: dict | None, told: str) -> None:
    with pytest.raises(ValueError) as error:
        placed(on, mesh, axes)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_a_mesh_can_be_placed_on_a_slice_of_every_chip() -> None:
    for name in CHIPS:
        shape = (4, 4) if CHIPS[name].torus == 2 else (4, 4, 4)
        sizes = dict(zip("xyz", shape, strict=False))
        for axes in itertools.permutations(sizes):
            assert placed(f"{name}:{'x'.join(map(str, shape))}", dict.fromkeys(axes, 4)).slice == Slice(
                CHIPS[name], shape
            )
