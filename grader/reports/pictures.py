"""Pictures of array layouts in a result: blocks of the array with the names of the devices that hold them.

A terminal shows a picture as lines of text, and a page as SVG. Colours of all pictures are also here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from grader.common.layout import coordinates, show_device, show_sizes
from grader.common.result import Result
from grader.reports.untrusted import clean

# Fills for devices and data. A device has one fill in all pictures. A search over colours chose fills that differ most
# from each other, on light and dark pages and for all kinds of colour vision.
TINTS = ("#24bcff", "#cc8c00", "#21776b", "#9329f8", "#000088", "#6b0000", "#ffe80d", "#87ffe5")
FILL, CHIP = 0.24, 0.35  # The opacity of a fill in a picture, and of a box that moves in an animation.
# Colours of marks (Okabe and Ito). Colour is never the only difference: marks also differ in shape, or carry a number.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7a7a7a")

_CHAR, _LINE, _PAD = 6.7, 14, 12  # pixels of an 11-pixel label: a character's width, a line's height, the padding
_LARGEST = 740.0
Drawn = TypeVar("Drawn", bound=BaseModel)


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
    return sorted(pictures_of(Picture, result), key=lambda p: not p.title.startswith("expected"))


def pictures_of(kind: type[Drawn], result: Result) -> list[Drawn]:
    """Return the valid pictures of this kind in a failed result."""
    found = []
    for raw in result.pictures[:8] if result.status == "failed" else []:
        with suppress(TypeError, ValueError):  # pydantic raises a subclass of ValueError
            found.append(kind.model_validate(raw))
    return found


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
            _held_by(picture, block),
        )
        for block in blocks(picture)
    ]


def _held_by(picture: Picture, block: Block) -> str:
    """Return a phrase that names the devices with a block, and says how many of them are wrong."""
    devices, short = block.devices, holders(picture, block.devices)
    if len(devices) == len(picture.slices) > 1:
        text = " ".join(short)
    elif len(devices) > 1 and "=" in short[0]:
        text = f"{len(devices)} devices: {', '.join(short)}"
    else:
        text = ", ".join(show_device(coordinates(picture.mesh)[d]) for d in devices[:16])
    mark = wrong_mark(picture, block)
    return f"{text}, {mark}" if mark else text


@dataclass(frozen=True)
class Tile:
    x: float
    y: float
    width: float
    height: float
    colour: str
    lines: list[str]
    text: str
    wrong: bool


@dataclass(frozen=True)
class Svg:
    """A picture ready to draw. The array's rectangle has index bounds along two sides. ``left``: its left edge."""

    width: float
    height: float
    left: float
    cells: list[Tile]
    columns: list[tuple[float, int]]
    rows: list[tuple[float, int]]
    stroke: float
    labelled: bool
    alt: str


@dataclass(frozen=True)
class _Frame:
    """The rectangle that represents the array: place, drawn size, and the array's numbers of rows and columns."""

    left: float
    top: float
    width: float
    height: float
    rows: int
    cols: int


def draw_svg(picture: Picture) -> Svg:
    """Place the blocks to scale, large enough for their labels if possible."""
    parts = blocks(picture)
    labels = [_label_lines(picture, b) for b in parts]
    dims = len(drawn_dims(picture))
    row_cuts, col_cuts = (sorted({n for b in parts for n in getattr(b, side)}) for side in ("rows", "cols"))
    frame = _frame(parts, labels, row_cuts[-1], col_cuts[-1], dims)
    labelled = frame.width <= _LARGEST and frame.height <= _LARGEST
    if not labelled:
        frame = _frame(parts, [], row_cuts[-1], col_cuts[-1], dims)
        labels = [[] for _ in parts]
    cells = [_cell(picture, frame, b, lines) for b, lines in zip(parts, labels, strict=True)]
    col_digits = len(str(frame.cols))
    held = "; ".join(f"{part} on {who}" for part, who in describe(picture)[:64])
    return Svg(
        width=round(frame.left + frame.width + 4 + col_digits * _CHAR / 2, 1),
        height=round(frame.top + frame.height + 8, 1),
        left=round(frame.left, 1),
        cells=cells,
        columns=_ticks(col_cuts, frame.left, frame.width, _CHAR * col_digits + 4) if dims else [],
        rows=_ticks(row_cuts, frame.top, frame.height, 12) if dims == 2 else [],
        stroke=round(min([1.0, *(side / 8 for c in cells for side in (c.width, c.height))]), 2),
        labelled=labelled,
        alt=f"{clean(picture.heading, 100)}: array {picture.caption}. {held}",
    )


def _frame(parts: list[Block], labels: list[list[str]], rows: int, cols: int, dims: int) -> _Frame:
    width, height = _size(parts, labels, rows, cols, flat=dims < 2)
    left = len(str(rows)) * _CHAR + 8 if dims == 2 else 4
    return _Frame(left=left, top=18 if dims else 2, width=width, height=height, rows=rows, cols=cols)


def _cell(picture: Picture, frame: _Frame, block: Block, lines: list[str]) -> Tile:
    width = frame.width * (block.cols[1] - block.cols[0]) / frame.cols
    return Tile(
        x=round(frame.left + frame.width * block.cols[0] / frame.cols, 1),
        y=round(frame.top + frame.height * block.rows[0] / frame.rows, 1),
        width=round(width, 1),
        height=round(frame.height * (block.rows[1] - block.rows[0]) / frame.rows, 1),
        colour=TINTS[block.devices[0] % len(TINTS)],
        lines=_joined(lines, width),
        text=_held_by(picture, block),
        wrong=bool(wrong_mark(picture, block)),
    )


def _size(parts: list[Block], labels: list[list[str]], rows: int, cols: int, flat: bool) -> tuple[float, float]:
    """Return the drawn array's width and height: roughly to scale, but large enough for a label in every block."""
    need_w = max((len(line) for lines in labels for line in lines), default=0) * _CHAR + _PAD
    need_h = max(map(len, labels), default=0) * _LINE + _PAD
    width = 250.0
    height = 44.0 if flat else max(width * min(rows / cols, 0.75), 96)
    if labels:
        width = max(width, need_w * cols / min(b.cols[1] - b.cols[0] for b in parts))
        height = max(height, need_h * rows / min(b.rows[1] - b.rows[0] for b in parts))
    return width, height


def _joined(lines: list[str], room: float) -> list[str]:
    """Join the lines of a single device's label if they fit into ``room``; return other labels unchanged."""
    *marks, _ = [*(line for line in lines if line.startswith("✗")), ""]
    whole = " ".join(line for line in lines if line not in marks)
    return [whole, *marks] if whole.startswith("(") and len(whole) * _CHAR + _PAD / 2 <= room else lines


def _label_lines(picture: Picture, block: Block) -> list[str]:
    """Return the lines of a block's label. For a wrong block, an extra line says how many devices are wrong."""
    mark = wrong_mark(picture, block)
    return _holder_lines(picture, block.devices) + ([f"✗ {mark}"] if mark else [])


def _holder_lines(picture: Picture, devices: tuple[int, ...]) -> list[str]:
    """Return the lines of the label for these devices, such as ``x=1``, ``2 devices:`` and ``y=0..1``."""
    words = [clean(w, 40) for w in holders(picture, devices)]
    if len(devices) == len(picture.slices) > 1:
        return [" ".join(words)]
    if len(devices) == 1:
        label = "(" + ", ".join(words) + ")"
        # On a large mesh each axis gets its own line, to keep the blocks narrow.
        return label.split(" ") if len(picture.slices) > 4 else [label]
    fixed = [w for w in words if "=" in w and ".." not in w and "," not in w]
    spread = [w for w in words if w not in fixed and "=" in w]
    count = f"{len(devices)} devices"
    return [*([", ".join(fixed)] if fixed else []), *([f"{count}:", ", ".join(spread)] if spread else [count])]


def _ticks(cuts: list[int], start: float, length: float, gap: float) -> list[tuple[float, int]]:
    """Return (place, index) for each index bound to draw: both ends, and inner bounds at least ``gap`` apart."""
    placed = [(round(start + length * cut / cuts[-1], 1), cut) for cut in cuts]
    ticks = placed[:1]
    for tick in placed[1:-1]:
        if tick[0] - ticks[-1][0] >= gap and placed[-1][0] - tick[0] >= gap:
            ticks.append(tick)
    return [*ticks, placed[-1]]


def draw_grid(picture: Picture, room: int) -> list[str]:
    """Return the layout as lines of text: a grid, or a list if the grid is wider than ``room`` columns."""
    head = [f"{clean(picture.heading, 60)}:", clean(picture.caption, 200)]
    parts = {(b.rows, b.cols): _label(picture, b) for b in blocks(picture)}
    rows, cols = (sorted({key[i] for key in parts}) for i in (0, 1))
    if len(parts) == len(rows) * len(cols) <= 64:
        for separator in (" " if next(iter(parts.values()))[0] == "all" else ", ", None):
            cells = {k: [separator.join(words)] if separator else words for k, words in parts.items()}
            grid = _grid(rows, cols, cells, drawn_dims(picture))
            if max(map(len, grid)) <= room:
                return head + grid
    listed = [f"{part}: {clean(who, 100)}" for part, who in describe(picture)]
    return head + listed[:16] + ([f"and {len(listed) - 16} more blocks"] if len(listed) > 16 else [])


def _label(picture: Picture, block: Block) -> list[str]:
    """Return the words of a block's label, such as ``x=0`` and ``y=0..1``; ✗ marks a wrong block."""
    *words, last = [clean(w, 40) for w in holders(picture, block.devices)]
    return [*words, f"{last} ✗" if wrong_mark(picture, block) else last]


def _grid(rows: list, cols: list, cells: dict[tuple, list[str]], dims: list[int]) -> list[str]:
    """Draw a box for each block. Index bounds are above the boxes and, for two dimensions, at the left, too."""
    width = max([len(line) for lines in cells.values() for line in lines] + [len(str(c[1])) for c in cols]) + 2
    height = max(map(len, cells.values()))
    bounds = [str(r[0]) for r in rows] + [str(rows[-1][1])] if len(dims) == 2 else [""] * (len(rows) + 1)
    margin = max(map(len, bounds)) + (1 if len(dims) == 2 else 0)
    ticks = "".join(f"{c[0]!s:<{width + 1}}" for c in cols) + str(cols[-1][1])
    lines = [" " * margin + ticks] if dims else []
    for i, row in enumerate(rows):
        edges = "┌┬┐" if i == 0 else "├┼┤"
        lines.append(_edge(bounds[i], margin, edges, width, len(cols)))
        for k in range(height):
            texts = (cells[row, col][k] if k < len(cells[row, col]) else "" for col in cols)
            lines.append(" " * margin + "│" + "│".join(t.center(width) for t in texts) + "│")
    return [*lines, _edge(bounds[-1], margin, "└┴┘", width, len(cols))]


def _edge(bound: str, margin: int, corners: str, width: int, count: int) -> str:
    left, middle, right = corners
    return f"{bound + ' ' if bound else '':>{margin}}" + left + middle.join(["─" * width] * count) + right
