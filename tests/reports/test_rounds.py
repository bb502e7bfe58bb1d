"""Data that moves round a ring, as a table of text and as a picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html import unescape

from grader.common.pipelines import Pipeline, Work
from grader.common.routes import Route
from grader.reports.explained import Explained
from grader.reports.pages import render_rounds
from grader.reports.rounds import CHAR, FIRST, draw_rounds, rounds_of, rounds_text, ticks_of
from tests.reports.example_reports import Nesting


def ring(mesh: dict[str, int], axis: str, rounds: int, line: int | None = 12) -> Route:
    """Return a route in which data move round one axis in ``rounds`` rounds, in each ring along this axis."""
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
    assert rounds is not None and rounds.devices == ["0", "1", "2"] and "One ring along" in rounds.caption
    assert rounds_text(rounds)[1:] == [
        "                    0  1  2",
        "at first            0  1  2",
        "round 1, line 12    2  0  1",
        "round 2, line 12    1  2  0",
    ]


def test_captions_of_two_routes_differ_in_direction_or_number_of_rounds() -> None:
    mesh = {"x": 4}
    there = ring(mesh, "x", 2)
    back = Route(("x",), (3, 3), tuple(tuple((d + by) % 4 for d in range(4)) for by in range(3)))
    odd = Route(("x",), (3, 3), ((0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0, 1)))
    captions = [
        rounds.caption for route in (there, ring(mesh, "x", 3), back, odd) if (rounds := rounds_of(route, mesh))
    ]
    ways = [caption.split(" Each cell")[0] for caption in captions]
    assert ways == [
        "The ring along x. Data move 1 device forward in each of 2 rounds.",
        "The ring along x. Data move 1 device forward in each of 3 rounds.",
        "The ring along x. Data move 1 device back in each of 2 rounds.",
        "The ring along x. 2 rounds.",
    ]


def test_devices_with_different_rounds_are_shown_one_by_one() -> None:
    odd = Route(("x",), (3, 3), ((0, 1, 2, 3), (2, None, 0, 3), (0, None, 2, 3)))
    rounds = rounds_of(odd, {"x": 2, "y": 2})
    assert rounds is not None and rounds.devices == ["0,0", "0,1", "1,0", "1,1"]
    assert rounds_text(rounds)[3] == "round 1, line 3    1,0   0s  0,0  1,1"
    assert "round 1: 1,0, 0s, 0,0, 1,1" in draw_rounds(rounds).alt


def test_the_nearest_device_that_had_the_data_is_the_sender() -> None:
    spread = Route(("x",), (3, 3), ((0, 1, 2, 3), (0, 0, 2, 3), (0, 0, 0, 3)))
    rounds = rounds_of(spread, {"x": 4})
    assert rounds is not None and [cell.sources for cell in rounds.rows[-1][2]] == [(0,), (1,), (1,), (3,)]


def test_long_rings_are_shortened_and_rings_on_large_meshes_are_not_drawn() -> None:
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
    html = render_rounds(Explained("e1", "ring", mesh, {}, routes=[route]))
    assert "round 7, line 12" in Nesting(html).text
    (svg,) = ET.fromstring(f"<div>{html}</div>").iter("svg")
    left, cell = draw_rounds(rounds).left, draw_rounds(rounds).cell
    cells = [re.match(r"M([\d.]+) ([\d.]+)h", path.attrib["d"]) for path in svg.iter("path")]
    assert len(cells) == 8 * 8
    for x, y in (map(float, found.groups()) for found in cells if found):
        assert left <= x and x + cell <= float(svg.attrib["width"]) and y + 22 <= float(svg.attrib["height"])
    assert all(len(one.text) * CHAR <= cell for _, _, held in rounds.rows for one in held)


def test_a_pipeline_shows_entries_and_marks_data_that_no_result_needs() -> None:
    def tick(*works: Work) -> tuple[Work, ...]:
        return works

    idle = Work(((), ()), (), used=False)
    first = tick(Work((((0, 1),), ()), (), used=True), idle)
    second = tick(Work((((1, 2),), ((2, 4),)), (), used=False), Work((((0, 1),), ((0, 1),)), (0,), used=True))
    last = tick(idle, Work((None, ((0, 1), (2, 3), (4, 5), (6, 7))), (0,), used=True))
    pipeline = Pipeline(("x", "y"), ("pp",), (7, 7), (first, second, last))
    rounds = ticks_of(pipeline, {"pp": 2})
    assert rounds is not None and rounds.caption.startswith("The line along pp. Each cell shows the entries of x and y")
    assert rounds_text(rounds)[1:] == [
        "                           0           1",
        "tick 0, line 7            x0         (·)",
        "tick 1, line 7     (x1 y2:4)         xy0",
        "received                 (·)  x? y0,2,4…",
    ]
    cells = [cell for _, _, row in rounds.rows for cell in row]
    assert [cell.colour for cell in cells] == [0, None, None, 0, None, 0]
    assert cells[3].sources == (0,) and cells[2].said == "has x[1] and y[2:4] (not needed)"
    html = render_rounds(Explained("i1", "pipe", {"pp": 2}, {}, pipelines=[pipeline]))
    assert "tick 1, line 7" in Nesting(html).text and '"inLine":true' in unescape(html)


def test_lines_of_a_pipeline_that_are_alike_are_shown_once() -> None:
    works = tuple(Work((((0, 1),),), (), used=True) for _ in range(4))
    later = tuple(Work((((1, 2),),), (d % 2 + 2,), used=True) for d in range(4))  # from devices 2 and 3
    pipeline = Pipeline(("x",), ("pp",), (7, 7), (works, later))
    rounds = ticks_of(pipeline, {"pp": 2, "dp": 2})
    assert rounds is not None and rounds.devices == ["0", "1"] and "One line along pp" in rounds.caption
    assert [cell.sources for cell in rounds.rows[1][2]] == [(1,), (1,)]  # sources are columns, not devices
    across = replace(pipeline, ticks=(works, (replace(later[0], sources=(1,)), *later[1:])))
    rounds = ticks_of(across, {"pp": 2, "dp": 2})
    assert rounds is not None and rounds.devices == ["0,0", "0,1", "1,0", "1,1"]
    assert ticks_of(replace(pipeline, axes=("pp",), ticks=((works[0],) * 32,) * 2), {"pp": 32}) is None
