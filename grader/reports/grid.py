"""An array's layout on devices as lines of text: boxes, or a list if boxes do not fit."""

from __future__ import annotations

from grader.reports.pictures import Block, Picture, blocks, describe, drawn_dims, holders, wrong_mark
from grader.reports.untrusted import clean


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
