"""Data that moves round a ring, as a table of text and as a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from grader.common.routes import Route
from grader.reports.explained import Explained
from grader.reports.pages import render_rounds
from grader.reports.rounds import CHAR, FIRST, draw_rounds, rounds_of, rounds_text
from tests.reports.example_reports import Nesting


def ring(mesh: dict[str, int], axis: str, rounds: int, line: int | None = 12) -> Route:
    """Return a route round one axis, equal on all other axes."""
    names, sizes = list(mesh), list(mesh.values())
    stride = 1
    for size in sizes[names.index(axis) + 1 :]:
        stride *= size
    n, count = mesh[axis], 1
    for size in sizes:
        count *= size

    def source(device: int, by: int) -> int:
        at = device // stride % n
        return device + ((at - by) % n - at) * stride

    holds = tuple(tuple(source(d, by) for d in range(count)) for by in range(rounds + 1))
    return Route((axis,), (line,) * rounds, holds)


def test_rings_that_are_alike_are_shown_once() -> None:
    rounds = rounds_of(ring({"x": 3, "y": 2}, "x", 2), {"x": 3, "y": 2})
    assert rounds is not None and rounds.devices == ["0", "1", "2"] and "one ring along" in rounds.caption
    assert rounds_text(rounds)[1:] == [
        "                    0  1  2",
        "at first            0  1  2",
        "round 1, line 12    2  0  1",
        "round 2, line 12    1  2  0",
    ]


def test_devices_that_do_not_do_alike_are_shown_one_by_one() -> None:
    odd = Route(("x",), (3, 3), ((0, 1, 2, 3), (2, None, 0, 3), (0, None, 2, 3)))
    rounds = rounds_of(odd, {"x": 2, "y": 2})
    assert rounds is not None and rounds.devices == ["0,0", "0,1", "1,0", "1,1"]
    assert rounds_text(rounds)[3] == "round 1, line 3    1,0   0s  0,0  1,1"
    assert "round 1: 1,0, zeros, 0,0, 1,1" in draw_rounds(rounds).alt


def test_long_ones_lose_their_middle_and_say_so_and_large_meshes_are_not_drawn() -> None:
    mesh = {"x": 8}
    rounds = rounds_of(ring(mesh, "x", 40), mesh)
    assert rounds is not None and len(rounds.rows) == FIRST + 2 and rounds.rows[-1][0] == "round 40"
    assert rounds.left == 40 - FIRST - 1 and f"  … {rounds.left} more" in rounds_text(rounds)
    assert rounds_of(ring({"x": 32}, "x", 2), {"x": 32}) is None


def test_the_picture_has_every_cell_inside_with_its_name_and_is_well_nested() -> None:
    mesh = {"x": 8}
    route = ring(mesh, "x", 7)
    rounds = rounds_of(route, mesh)
    assert rounds is not None
    svg = draw_rounds(rounds)
    assert len(svg.cells) == 8 * 8
    for cell in svg.cells:
        assert svg.left <= cell.x and cell.x + svg.cell <= svg.width and cell.y + 22 <= svg.height
        assert len(cell.text) * CHAR <= svg.cell
    html = render_rounds(Explained("e1", "ring", mesh, {}, routes=[route]))
    assert "round 7, line 12" in Nesting(html).text
    ET.fromstring(f"<div>{html}</div>")
