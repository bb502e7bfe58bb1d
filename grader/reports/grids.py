"""The devices of a mesh as a grid: the parts of an array that they hold, or the senders and receivers of a collective.

Devices with equal parts of an array have equal colours. For a reduction, gather or scatter, arrows between the devices
form a ring, because the grader counts the bytes of a ring algorithm. A permute has an arrow for each pair of sender and
receiver. An all-to-all has a line between any two devices.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.common.layout import coordinates, owner_slices, show_device, show_spec
from grader.common.observation import Collective
from grader.reports.explained import Placed
from grader.reports.pictures import TINTS
from grader.reports.untrusted import clean
from grader.wire.frames import dtype_of

MOST, ARROWS = 64, 256  # a picture of more devices or arrows would not be legible
CHAR = 6.7  # the width of a character
HEIGHT, GAP_X, GAP_Y = 26.0, 40.0, 30.0  # of boxes with arrows between them
LINE, PAD, GAP = 15.0, 12.0, 6.0  # of boxes that show parts of an array


@dataclass(frozen=True)
class Device:
    """A device's box in the grid: the box's top left corner, and the device's coordinates on the mesh."""

    x: float
    y: float
    label: str
    colour: str


@dataclass(frozen=True)
class Arrows:
    """A picture ready to draw. ``paths``: SVG paths of arrows. ``both``: True if each arrow has a head at both ends."""

    width: float
    height: float
    box: float
    devices: list[Device]
    paths: list[str]
    both: bool
    caption: str
    alt: str
    line: int | None = None
    file: str | None = None


def draw_arrows(collective: Collective, mesh: Mapping[str, int], caption: str) -> Arrows | None:
    """Draw devices and arrows. Return None if the mesh is too large or the senders and receivers are not known."""
    count = math.prod(mesh.values())
    pairs = sent_to(collective)
    if not _is_drawable(pairs, count):
        return None
    labels = [", ".join(map(str, point.values())) for point in coordinates(mesh)]
    box = round(max(map(len, labels)) * CHAR + 14, 1)
    columns = _columns(mesh)
    bend = max((_bend(_at(a, columns, box), _at(b, columns, box), box) for a, b in pairs), default=0.0)
    margin = round(4 + bend / 2, 1)
    places = [(round(x + margin, 1), round(y + margin, 1)) for x, y in (_at(d, columns, box) for d in range(count))]
    names = ", ".join(mesh)
    in_words = "; ".join(f"({labels[a]}) to ({labels[b]})" for a, b in pairs[:32])
    return Arrows(
        width=round(max(x for x, _ in places) + box + margin, 1),
        height=round(max(y for _, y in places) + HEIGHT + margin, 1),
        box=box,
        devices=[Device(x, y, labels[i], TINTS[i % len(TINTS)]) for i, (x, y) in enumerate(places)],
        paths=[_path(places[a], places[b], box) for a, b in pairs],
        both=collective.kind == "all_to_all",
        caption=clean(f"{caption}; devices are ({names})", 300),
        line=collective.line,
        file=collective.file,
        alt=clean(f"{caption}. Devices ({names}): {in_words}", 2000),
    )


def _columns(mesh: Mapping[str, int]) -> int:
    """Return the grid's number of columns: a row for each index of the first mesh axis; one row for a single axis."""
    count = math.prod(mesh.values())
    return count // next(iter(mesh.values())) if len(mesh) > 1 else count


def _is_drawable(pairs: Sequence[tuple[int, int]], count: int) -> bool:
    """Return whether devices and arrows are few enough to draw, and every arrow joins devices of the mesh."""
    return 0 < len(pairs) <= ARROWS and count <= MOST and {d for pair in pairs for d in pair} <= set(range(count))


def sent_to(collective: Collective) -> list[tuple[int, int]]:
    """Return the (sender, receiver) pairs of a collective's arrows; for an all-to-all, each pair of devices once."""
    groups = [tuple(group) for group in collective.groups]
    if collective.kind == "permute":
        return [(group[0], group[1]) for group in groups if len(group) == 2]
    if collective.kind in ("all_to_all", "ragged_all_to_all"):
        return [pair for group in groups for pair in itertools.combinations(group, 2)]
    closed = collective.kind != "broadcast"
    rings = [(*group, group[0]) if closed and len(group) > 1 else group for group in groups]
    return [pair for ring in rings for pair in itertools.pairwise(ring)]


def _at(device: int, columns: int, box: float) -> tuple[float, float]:
    row, column = divmod(device, columns)
    return column * (box + GAP_X), row * (HEIGHT + GAP_Y)


def _bend(start: tuple[float, float], end: tuple[float, float], box: float) -> float:
    """Return how far a curve's control point is from the straight line between the boxes' centres."""
    across, down = round(abs(end[0] - start[0])), round(abs(end[1] - start[1]))
    if (down == 0 and across <= box + GAP_X + 1) or (across == 0 and down <= HEIGHT + GAP_Y):
        return 12.0
    return 0.12 * (across + down) + 1.4 * (HEIGHT if down == 0 else box)


def _path(start: tuple[float, float], end: tuple[float, float], box: float) -> str:
    """Return a curve between the rims of two boxes. Each curve bends to its left, so opposite arrows do not meet."""
    a, b = ((x + box / 2, y + HEIGHT / 2) for x, y in (start, end))
    length = math.dist(a, b) or 1.0
    bend = _bend(start, end, box) / length
    control = ((a[0] + b[0]) / 2 + (b[1] - a[1]) * bend, (a[1] + b[1]) / 2 - (b[0] - a[0]) * bend)
    first, last = _rim(a, control, box), _rim(b, control, box)
    return "M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*first, *control, *last)


def _rim(centre: tuple[float, float], towards: tuple[float, float], box: float) -> tuple[float, float]:
    """Return the point 2 units beyond a box's rim, on the line from the box's centre to ``towards``."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    scale = min(box / 2 / abs(dx) if dx else math.inf, HEIGHT / 2 / abs(dy) if dy else math.inf)
    scale = min(scale, 1.0) if math.isfinite(scale) else 0.0
    far = math.hypot(dx, dy) or 1.0
    return centre[0] + dx * scale + 2 * dx / far, centre[1] + dy * scale + 2 * dy / far


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
    columns = _columns(mesh)
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
