"""Places of blocks, labels and index bounds in an SVG picture of an array's layout on devices."""

from __future__ import annotations

from dataclasses import dataclass

from grader.reports.pictures import Block, Picture, blocks, describe, device_names, drawn_dims, holders, wrong_mark
from grader.reports.untrusted import clean

# Fills for devices and data. A device has one fill in all pictures. A search over colours chose fills that differ most
# from each other, on light and dark pages and for all kinds of colour vision.
TINTS = ("#24bcff", "#cc8c00", "#21776b", "#9329f8", "#000088", "#6b0000", "#ffe80d", "#87ffe5")
FILL, CHIP = 0.24, 0.35  # The opacity of a fill in a picture, and of a box that moves in an animation.
# Colours of marks (Okabe and Ito). Colour is never the only difference: marks also differ in shape, or carry a number.
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a800", "#7a7a7a")

_CHAR, _LINE, _PAD = 6.7, 14, 12  # pixels of an 11-pixel label: a character's width, a line's height, the padding
_LARGEST = 740.0


@dataclass(frozen=True)
class Tile:
    x: float
    y: float
    width: float
    height: float
    colour: str
    lines: list[str]
    text: str
    wrong: bool = False


@dataclass(frozen=True)
class Svg:
    """A picture ready to draw: the array's rectangle at (left, top), with index bounds along two sides."""

    width: float
    height: float
    left: float
    top: float
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
        top=frame.top,
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
        text=device_names(picture, block.devices) + (f", {mark}" if (mark := wrong_mark(picture, block)) else ""),
        wrong=bool(mark),
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
        return _wrapped("(" + ", ".join(words) + ")", many=len(picture.slices) > 4)
    fixed = [w for w in words if "=" in w and ".." not in w and "," not in w]
    spread = [w for w in words if w not in fixed and "=" in w]
    count = f"{len(devices)} devices"
    return [*([", ".join(fixed)] if fixed else []), *([f"{count}:", ", ".join(spread)] if spread else [count])]


def _wrapped(label: str, many: bool) -> list[str]:
    """Return the label as lines. On a large mesh each axis gets its own line, to keep the blocks narrow."""
    words = label.split(" ")
    return words if many else [label]


def _ticks(cuts: list[int], start: float, length: float, gap: float) -> list[tuple[float, int]]:
    """Return (place, index) for each index bound to draw: both ends, and inner bounds at least ``gap`` apart."""
    placed = [(round(start + length * cut / cuts[-1], 1), cut) for cut in cuts]
    ticks = placed[:1]
    for tick in placed[1:-1]:
        if tick[0] - ticks[-1][0] >= gap and placed[-1][0] - tick[0] >= gap:
            ticks.append(tick)
    return [*ticks, placed[-1]]
