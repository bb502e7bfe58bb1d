"""The devices of a mesh as a grid, each with the part of an array that it holds. Equal parts have equal colours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from grader.common.layout import coordinates, owner_slices, show_device, show_spec
from grader.reports.explained import Placed
from grader.reports.svg import TINTS
from grader.reports.untrusted import clean
from grader.wire.frames import dtype_of

CHAR, LINE, PAD, GAP = 6.7, 15.0, 12.0, 6.0
MOST = 64  # a picture of more devices would not be legible


@dataclass(frozen=True)
class HeldBox:
    """A device's box: its place, the device's name, the part of the array that it holds, and a text with all facts."""

    x: float
    y: float
    name: str
    part: str
    text: str
    colour: str


@dataclass(frozen=True)
class HeldSvg:
    """A picture ready to draw. ``box``: width and height of a device."""

    width: float
    height: float
    box: tuple[float, float]
    boxes: list[HeldBox]
    title: str
    alt: str


def draw_held(placed: Placed, mesh: Mapping[str, int]) -> HeldSvg | None:
    """Return the grid of devices, with a row per index of the first mesh axis.

    Return None if the array has no PartitionSpec, or if there are too many devices.
    """
    count = math.prod(mesh.values())
    if placed.spec is None or count > MOST:
        return None
    held = owner_slices(placed.shape, placed.spec, mesh)
    parts = [", ".join(f"{start}:{stop}" for start, stop in part) or "all" for part in held]
    names = [show_device(point) for point in coordinates(mesh)]
    colour = {part: TINTS[i % len(TINTS)] for i, part in enumerate(dict.fromkeys(parts))}
    size = dtype_of(placed.dtype).itemsize
    texts = [
        f"device {name} holds {clean(placed.name, 60)}[{part}], "
        f"{size * math.prod(stop - start for start, stop in device):,} bytes"
        for name, part, device in zip(names, parts, held, strict=True)
    ]
    columns = count // next(iter(mesh.values())) if len(mesh) > 1 else count
    box = (round(max(map(len, (*parts, *names))) * CHAR + PAD, 1), 2 * LINE + PAD)
    boxes = [
        HeldBox(
            round(1 + i % columns * (box[0] + GAP), 1), round(1 + i // columns * (box[1] + GAP), 1),
            names[i], parts[i], texts[i], colour[parts[i]],
        )
        for i in range(count)
    ]  # fmt: skip
    shape = ", ".join(map(str, placed.shape))
    title = clean(f"{placed.name}: {placed.dtype}[{shape}] as {show_spec(placed.spec)}", 200)
    return HeldSvg(
        width=round(boxes[-1].x + box[0] + 1, 1),
        height=round(boxes[-1].y + box[1] + 1, 1),
        box=box,
        boxes=boxes,
        title=title,
        alt=clean(f"{title}. {'; '.join(texts)}", 4000),
    )
