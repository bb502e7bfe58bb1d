"""Meshes over real devices: their axes follow the links of the torus if possible."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from grader.wire import meshes
from grader.wire.meshes import mesh_on


@dataclass(frozen=True)
class Chip:
    """A v5e chip, as JAX describes it."""

    id: int
    coords: tuple[int, int, int]
    core_on_chip: int = 0
    process_index: int = 0
    platform: str = "tpu"
    device_kind: str = "TPU v5 lite"


@pytest.fixture(autouse=True)
def as_it_is_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make ``Mesh`` return its chips as an array, because JAX makes no mesh of chips that this machine lacks."""
    monkeypatch.setattr(meshes, "Mesh", lambda devices, names, axis_types: devices)


def chips(rows: int, columns: int) -> list[Chip]:
    """Return chips in JAX's order: hosts of four chips, two by two."""
    places = [(x, y, 0) for y in range(rows) for x in range(columns)]
    order = sorted(places, key=lambda p: (p[1] // 2, p[0] // 2, p[1] % 2, p[0] % 2))
    return [Chip(n, place) for n, place in enumerate(order)]


@pytest.mark.parametrize("sizes", [{"x": 4, "y": 4}, {"x": 16}, {"x": 2, "y": 2}])
def test_neighbours_on_an_axis_are_neighbours_on_the_torus(sizes: dict[str, int]) -> None:
    placed = mesh_on(chips(4, 4), sizes)
    *_, last = placed.shape  # type: ignore[attr-defined]
    for row in placed.reshape(-1, last):  # type: ignore[attr-defined]
        for one, other in itertools.pairwise(row):
            steps = [min((a - b) % 4, (b - a) % 4) for a, b in zip(one.coords, other.coords, strict=True)]
            assert sum(steps) == 1, (one, other)


def test_chips_that_are_no_block_of_the_torus_still_make_a_mesh() -> None:
    placed = mesh_on(chips(2, 4), {"x": 5})
    assert [chip.id for chip in placed] == [0, 1, 2, 3, 4]  # type: ignore[attr-defined]
