"""A text that names the devices that hold each block of an array."""

from __future__ import annotations

from grader.reports.pictures import Picture, blocks, describe
from tests.reports.example_reports import picture


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
