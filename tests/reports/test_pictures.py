"""The picture of an array's blocks, as SVG and as text, and the text that names the devices of each block."""

from __future__ import annotations

import pytest

from grader.common.result import Report
from grader.reports.pages import render_html
from grader.reports.pictures import Picture, blocks, describe, draw_svg
from tests.reports.example_reports import Nesting, exercise, layout_failure, make_report, picture, printed


def test_devices_that_hold_one_block_are_grouped() -> None:
    seen = Picture.model_validate(picture("actual", (None, "x")))
    assert [(b.cols, b.devices) for b in blocks(seen)][:2] == [((0, 10), (0, 1)), ((10, 20), (2, 3))]
    assert describe(seen)[0] == ("[0:24, 0:10]", "2 devices: x=0, y=0..1")


def test_whole_single_and_scattered_holders_are_named() -> None:
    assert describe(Picture.model_validate(picture("a", ()))) == [("[0:24, 0:40]", "all 8 devices")]
    assert describe(Picture.model_validate(picture("a", ("x", "y"))))[1] == ("[0:6, 20:40]", "(x=0, y=1)")
    diagonal = Picture(title="a", mesh={"x": 2, "y": 2}, shape=[4], slices=[[(0, 2)], [(2, 4)], [(2, 4)], [(0, 2)]])
    assert describe(diagonal)[0] == ("[0:2]", "(x=0, y=0), (x=1, y=1)")


def test_sharded_dimensions_of_an_array_of_rank_3_are_drawn() -> None:
    seen = Picture.model_validate(picture("a", ("x", None, "y"), (8, 3, 16)))
    assert seen.caption == "8 × 3 × 16 on mesh x=4, y=2; drawn: dimensions 0 and 2"
    all_cut = Picture.model_validate(picture("a", ("x", "y", "z"), (8, 8, 8), {"x": 2, "y": 2, "z": 2}))
    assert all_cut.caption.endswith("drawn: dimensions 0 and 1; dimension 2 is sharded too, but not drawn")
    assert len(blocks(all_cut)) == 4


@pytest.mark.parametrize("shape", [(), (8,), (8, 16), (3, 8, 16), (8, 3, 3, 16)])
def test_arrays_of_any_rank_are_drawn(shape: tuple[int, ...]) -> None:
    spec = tuple(("x" if n == 8 else "y" if n == 16 else None) for n in shape)
    report = make_report(exercise([layout_failure(pictures=[picture("actual", spec, shape)])]))
    page = Nesting(render_html(report))
    assert page.tags.count("svg") == 1
    assert "mesh x=4, y=2" in printed(report)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"slices": [[[0, 9]]] * 8},
        {"slices": [[[0, 4]]]},
        {"mesh": [1, 2]},
        {"mesh": {"x": 0}},
        {"shape": ["many"]},
        {"shape": [8, 8]},
        {"mesh": {"x": 10**9}},
        {"wrong": [8]},
        {"wrong": [-1]},
    ],
)
def test_layouts_that_cannot_be_drawn_are_left_out(bad: dict) -> None:
    raw = (picture("actual", ("x",), (8,)) | bad) if bad else {}
    report = make_report(exercise([layout_failure(pictures=[raw])]))
    assert "<svg" not in render_html(report)
    assert "the result is sharded" in printed(report)


def test_a_mesh_given_as_pairs_keeps_its_order_through_a_file() -> None:
    mesh = {"tp": 2, "dp": 4}
    raw = picture("actual", ("dp",), (8,), mesh) | {"mesh": [[a, n] for a, n in mesh.items()]}
    report = Report.loads(make_report(exercise([layout_failure(pictures=[raw])])).dumps())
    assert "[0:2] on 2 devices: tp=0..1, dp=0" in render_html(report)


def test_a_large_mesh_is_listed_instead_of_labelled() -> None:
    big = picture("actual", ("x", "y"), (256, 512), {"x": 16, "y": 16})
    report = make_report(exercise([layout_failure(pictures=[big])]))
    page = Nesting(render_html(report))
    assert "which device holds what" in page.text
    assert "and 240 more blocks" in printed(report)


def test_a_picture_has_a_description() -> None:
    page = Nesting(render_html(make_report(exercise([layout_failure()]))))
    alts = [value for name, value in page.attributes if name == "aria-label" and "array" in value]
    assert alts[0].startswith("expected: array 24 × 40 on mesh x=4, y=2. [0:24, 0:10] on 2 devices: x=0, y=0..1;")
    assert alts[1].startswith("yours: array")


WRONG = picture("actual", ("x", "y"), (8, 12)) | {"wrong": [0, 3]}


def test_wrong_blocks_are_marked_in_page_text_and_words() -> None:
    """A sign and an outline mark the wrong blocks. A colour cannot, because colours identify devices."""
    report = make_report(exercise([layout_failure(pictures=[WRONG])]))
    page = Nesting(render_html(report))
    assert page.text.count("✗ wrong") == 2 and "[0:2, 0:6] on (x=0, y=0), wrong" in dict(page.attributes)["aria-label"]
    assert printed(report).count("y=0 ✗") + printed(report).count("y=1 ✗") == 2


def test_a_block_with_some_wrong_holders_shows_how_many() -> None:
    shared = picture("actual", ("x", None), (8, 12)) | {"wrong": [1]}
    assert "✗ 1 of 2 wrong" in render_html(make_report(exercise([layout_failure(pictures=[shared])])))


@pytest.mark.parametrize("size", [(1, 1), (3, 1), (8, 12), (4096, 2)])
@pytest.mark.parametrize("mesh", [{"x": 2}, {"a_long_axis_name": 4, "y": 2}, {"x": 16, "y": 16}])
def test_no_label_leaves_its_box(size: tuple[int, int], mesh: dict[str, int]) -> None:
    axis = next(iter(mesh))
    rows, cols = size[0] * mesh[axis], size[1]
    drawn = draw_svg(Picture.model_validate(picture("actual", (axis,), (rows, cols), mesh) | {"wrong": [0]}))
    for cell in drawn.cells:
        assert all(len(line) * 6.6 <= cell.width for line in cell.lines)
        assert len(cell.lines) * 14 <= cell.height
        assert cell.x + cell.width <= drawn.width and cell.y + cell.height <= drawn.height
