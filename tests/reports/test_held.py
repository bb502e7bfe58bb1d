"""The devices of a mesh, each with the part of an array that it holds."""

from __future__ import annotations

from grader.reports.explained import Explained, Placed
from grader.reports.held import draw_held
from grader.reports.pages import render_held

MESH = {"x": 2, "y": 2}
A = Placed("a", (8, 6), "float32", ("x", None), ((4, 6),))


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
