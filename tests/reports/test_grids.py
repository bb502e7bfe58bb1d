"""The grid of a mesh's devices: the parts of arrays that they hold, and arrows between those that communicate."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.common.intervals import Interval
from grader.common.observation import Collective
from grader.reports.explained import Explained, Placed
from grader.reports.grids import CHAR, HEIGHT, draw_arrows, draw_held, sent_to
from grader.reports.pages import render_arrows, render_held
from tests.reports.example_reports import Nesting

COLUMNS = ((0, 2, 4, 6), (1, 3, 5, 7))
RING = tuple((i, (i + 1) % 8) for i in range(8))
MESH = {"x": 2, "y": 2}
A = Placed("a", (8, 6), "float32", ("x", None), ((4, 6),))


def talk(kind: str, groups: tuple[tuple[int, ...], ...], **more: Any) -> Collective:
    return Collective(kind, ("x",), 1024, Interval.of(768), groups=groups, **more)


@pytest.mark.parametrize(
    ("kind", "groups", "pairs"),
    [
        ("all_reduce", COLUMNS[:1], [(0, 2), (2, 4), (4, 6), (6, 0)]),
        ("all_gather", ((0, 1),), [(0, 1), (1, 0)]),
        ("broadcast", COLUMNS[:1], [(0, 2), (2, 4), (4, 6)]),
        ("permute", RING[:2], [(0, 1), (1, 2)]),
        ("all_to_all", ((0, 1, 2),), [(0, 1), (0, 2), (1, 2)]),
        ("all_reduce", ((3,),), []),
        ("permute", ((1,),), []),
    ],
)
def test_arrows_join_senders_and_receivers(kind: str, groups: tuple, pairs: list[tuple[int, int]]) -> None:
    assert [(a, b) for a, b in sent_to(talk(kind, groups)) if a != b] == pairs


@given(
    mesh=st.dictionaries(st.sampled_from(["x", "y", "z"]), st.integers(1, 4), min_size=1),
    pairs=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), min_size=1, max_size=20),
)
def test_no_part_of_a_picture_is_outside_of_it(mesh: dict[str, int], pairs: list[tuple[int, int]]) -> None:
    drawn = draw_arrows(talk("permute", tuple(pairs)), mesh, "it")
    if drawn is None:
        return
    for device in drawn.devices:
        assert device.x >= 0 and device.x + drawn.box <= drawn.width
        assert device.y >= 0 and device.y + HEIGHT <= drawn.height
        assert len(device.label) * CHAR <= drawn.box
    for path in drawn.paths:  # both ends and the middle of each curve are inside the picture
        ax, ay, cx, cy, bx, by = map(float, re.findall(r"-?[\d.]+", path))
        for x, y in ((ax, ay), (bx, by), ((ax + 2 * cx + bx) / 4, (ay + 2 * cy + by) / 4)):
            assert -1 <= x <= drawn.width + 1 and -1 <= y <= drawn.height + 1


def test_too_large_or_unknown_patterns_are_not_drawn() -> None:
    assert draw_arrows(talk("permute", RING), {"x": 4}, "") is None
    assert draw_arrows(talk("all_reduce", ()), {"x": 8}, "") is None
    assert draw_arrows(talk("permute", RING), {"x": 128}, "") is None
    assert draw_arrows(talk("all_to_all", (tuple(range(64)),)), {"x": 64}, "") is None


def test_a_page_describes_its_arrows_and_escapes_names() -> None:
    program = Explained("c3", "f", {"<x>": 8}, {}, collectives=[talk("permute", RING, rounds=7, shift=1)] * 1)
    page = Nesting(render_arrows(program))
    assert page.tags.count("svg") == 1 and page.tags.count("script") == 0
    said = dict(page.attributes)["aria-label"]
    assert said.startswith(
        "7 × permute over x to the next device: a device contributes 1 KiB and sends 768 B each time"
    )
    assert "Devices (<x>): (0) to (1); (1) to (2)" in said
    assert "<x>" not in render_arrows(program)


def test_a_program_without_communication_has_no_pictures() -> None:
    assert render_arrows(Explained("c1", "f", {"x": 8}, {})).strip() == ""


def test_each_device_names_its_part_and_bytes_and_equal_parts_have_equal_colours() -> None:
    grid = draw_held(A, MESH)
    assert grid is not None and grid.title == "a: float32[8, 6] as P('x', None)"
    assert [b.part for b in grid.boxes] == ["0:4, 0:6", "0:4, 0:6", "4:8, 0:6", "4:8, 0:6"]
    assert grid.boxes[3].text == "device (x=1, y=1) holds a[4:8, 0:6], 96 bytes"
    colours = [b.colour for b in grid.boxes]
    assert colours[0] == colours[1] != colours[2] == colours[3]
    assert [(b.x > 1, b.y > 1) for b in grid.boxes] == [(False, False), (True, False), (False, True), (True, True)]
    assert all(b.text in grid.alt for b in grid.boxes)


def test_a_scalar_is_whole_on_every_device() -> None:
    grid = draw_held(Placed("loss", (), "float32", (), ((),)), MESH)
    assert grid is not None and {b.part for b in grid.boxes} == {"all"}
    assert grid.boxes[0].text == "device (x=0, y=0) holds loss[all], 4 bytes"


def test_a_layout_without_a_spec_and_a_large_mesh_are_not_drawn() -> None:
    assert draw_held(Placed("a", (8, 6), "float32", None, ((4, 6), (3, 6))), MESH) is None
    assert draw_held(Placed("a", (130,), "float32", ("x",), ((1,),)), {"x": 65}) is None


def test_a_fragment_shows_before_and_after_and_escapes_names() -> None:
    result = Placed("<b>", (8, 6), "float32", (), ((8, 6),))
    made = render_held(Explained("e", "t", MESH, {}, arguments=[A], results=[result]))
    assert made.count("<svg") == 2 and "&lt;b&gt;" in made and "<b>" not in made
    assert render_held(Explained("e", "t", MESH, {})) == ""
