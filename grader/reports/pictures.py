"""Pictures of array layouts in a result: blocks of the array with the names of the devices that hold them."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from grader.common.layout import coordinates, show_device, show_sizes
from grader.common.result import Result


def _of_pairs(mesh: Any) -> Any:
    """Convert (axis, size) pairs to a mapping.

    Reports hold a mesh as pairs, because JSON writers may sort a mapping's keys, and so lose the order of the axes.
    """
    if not isinstance(mesh, list):
        return mesh
    try:
        return dict(mesh)
    except TypeError:
        raise ValueError("a mesh is axes and sizes, as a mapping or as pairs") from None


Mesh = Annotated[dict[str, Annotated[int, Field(ge=1)]], BeforeValidator(_of_pairs)]


class Picture(BaseModel):
    """A layout to draw.

    ``slices``: for each device the part ``(start, stop)`` of every dimension. ``wrong``: devices to mark as wrong.
    """

    title: str
    mesh: Mesh
    shape: list[Annotated[int, Field(ge=1)]]
    slices: list[list[tuple[int, int]]]
    wrong: list[int] = []

    @model_validator(mode="after")
    def _fits(self) -> Picture:
        if math.prod(self.mesh.values()) != len(self.slices) or len(self.slices) > 4096:
            raise ValueError("`slices` needs one entry for each device of the mesh, for at most 4096 devices")
        if not set(self.wrong) <= set(range(len(self.slices))):
            raise ValueError("`wrong` names devices that the mesh does not have")
        for part in self.slices:
            for (start, stop), size in zip(part, self.shape, strict=True):
                if not 0 <= start < stop <= size:
                    raise ValueError(f"{start}:{stop} is not a part of a dimension of {size}")
        return self

    @property
    def heading(self) -> str:
        """The picture's title for learners, with "yours" in place of "actual"."""
        return "yours" + self.title.removeprefix("actual") if self.title.startswith("actual") else self.title

    @property
    def caption(self) -> str:
        """A caption such as ``24 × 40 on mesh x=4, y=2``.

        For an array of more than two dimensions, the caption also names the two drawn dimensions, and all other
        sharded dimensions.
        """
        text = f"{' × '.join(map(str, self.shape)) or 'scalar'} on mesh {show_sizes(self.mesh)}"
        drawn = drawn_dims(self)
        if len(self.shape) > 2:
            text += f"; drawn: dimensions {drawn[0]} and {drawn[1]}"
        more = [d for d in _cut_dims(self) if d not in drawn]
        return text + "".join(f"; dimension {d} is sharded too, but not drawn" for d in more)


@dataclass(frozen=True)
class Block:
    """A rectangle of an array (an index range per drawn dimension), and the devices that hold this rectangle."""

    rows: tuple[int, int]
    cols: tuple[int, int]
    devices: tuple[int, ...]


def pictures(result: Result) -> list[Picture]:
    """Return the valid pictures of a failed result. Pictures of expected layouts come first."""
    if result.status != "failed":
        return []
    found = [p for p in map(_picture, result.pictures[:8]) if p]
    return sorted(found, key=lambda p: not p.title.startswith("expected"))


def _picture(raw: dict[str, Any]) -> Picture | None:
    try:
        return Picture.model_validate(raw)
    except (TypeError, ValueError):  # pydantic raises a subclass of ValueError
        return None


def _cut_dims(picture: Picture) -> list[int]:
    whole = [(0, n) for n in picture.shape]
    return [d for d in range(len(whole)) if any(part[d] != whole[d] for part in picture.slices)]


def drawn_dims(picture: Picture) -> list[int]:
    """Return at most two dimensions to draw, sorted. Dimensions that are cut between devices are chosen first."""
    cut = _cut_dims(picture)
    rest = [d for d in range(len(picture.shape)) if d not in cut]
    return sorted((cut + rest)[:2])


def blocks(picture: Picture) -> list[Block]:
    """Return the blocks into which the devices cut a picture, row by row from the top left, each block once."""
    dims = drawn_dims(picture)
    held: dict[tuple, list[int]] = defaultdict(list)
    for device, part in enumerate(picture.slices):
        seen = [part[d] for d in dims]
        rows, cols = [(0, 1)] * (2 - len(seen)) + seen  # a vector is drawn as one row
        held[rows, cols].append(device)
    return [Block(rows, cols, tuple(devices)) for (rows, cols), devices in sorted(held.items())]


def wrong_mark(picture: Picture, block: Block) -> str:
    """Return ``wrong`` if all devices with the block are wrong, ``1 of 2 wrong`` if one of two is wrong, else ''."""
    wrong = len(set(block.devices) & set(picture.wrong))
    return "" if not wrong else "wrong" if wrong == len(block.devices) else f"{wrong} of {len(block.devices)} wrong"


def holders(picture: Picture, devices: tuple[int, ...]) -> list[str]:
    """Return the coordinates of some devices, such as ``["x=1", "y=0..1"]``.

    If ranges of coordinates cannot describe the devices, return a text with the number of devices.
    """
    points = [coordinates(picture.mesh)[d] for d in devices]
    if len(points) == len(picture.slices) > 1:
        return ["all", f"{len(points)} devices"]
    spans = {axis: sorted({p[axis] for p in points}) for axis in picture.mesh}
    if math.prod(map(len, spans.values())) != len(points):  # ranges of coordinates cannot describe these devices
        return [f"{len(points)} devices"]
    return [f"{axis}={_span(at)}" for axis, at in spans.items()]


def _span(at: list[int]) -> str:
    if len(at) > 1 and at[-1] - at[0] == len(at) - 1:
        return f"{at[0]}..{at[-1]}"
    return ",".join(map(str, at))


def describe(picture: Picture) -> list[tuple[str, str]]:
    """Return a pair (index range, device names) for each block."""
    dims = len(drawn_dims(picture))
    return [
        (
            "[" + ", ".join(f"{a}:{b}" for a, b in (block.rows, block.cols)[2 - dims :]) + "]",
            device_names(picture, block.devices) + (f", {mark}" if (mark := wrong_mark(picture, block)) else ""),
        )
        for block in blocks(picture)
    ]


def device_names(picture: Picture, devices: tuple[int, ...]) -> str:
    """Return a phrase that names some devices of the picture."""
    short = holders(picture, devices)
    if len(devices) == len(picture.slices) > 1:
        return " ".join(short)
    if len(devices) == 1:
        return show_device(coordinates(picture.mesh)[devices[0]])
    if "=" in short[0]:
        return f"{len(devices)} devices: {', '.join(short)}"
    return ", ".join(show_device(coordinates(picture.mesh)[d]) for d in devices[:16])
