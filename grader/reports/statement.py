"""An exercise's statement on a terminal: Markdown in which no word of a table is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, MarkdownElement, TableElement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

BESIDE = 3  # columns of a terminal that a column of a table takes besides its words


class WholeTable(TableElement):
    """A table as wide as its words need; where that is more than there is, its rows one below the other."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = [cell.content for cell in self.header.row.cells] if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        columns = list(zip(names, *rows, strict=True))
        least = [max(map(_longest_word, column)) for column in columns]
        if sum(least) + BESIDE * len(least) + 1 > options.max_width:
            yield from _stacked(names, rows)
            return
        table = Table(box=box.SIMPLE, pad_edge=False, style="markdown.table.border", collapse_padding=True)
        for name, width in zip(names, least, strict=True):
            heading = name.copy()
            heading.stylize("markdown.table.header")
            table.add_column(heading, min_width=width, overflow="fold")
        for row in rows:
            table.add_row(*row)
        yield table


def _longest_word(cell: Text) -> int:
    return max(map(cell_len, cell.plain.split()), default=0)


def _stacked(names: list[Text], rows: list[list[Text]]) -> Iterator[Any]:
    """Each row as its first cell, and below it the others with the names of their columns."""
    for row in rows:
        yield Text("")
        lines = Table.grid()
        lines.add_column(overflow="fold")
        for name, cell in zip(names, row, strict=True):
            label = Text.assemble(name, ": ") if name.plain.strip() else Text("")
            lines.add_row(Text.assemble(label, cell))
        yield Padding(lines, (0, 0, 0, 2))
    yield Text("")


class Statement(Markdown):
    """Markdown with such tables."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": WholeTable}


def print_markdown(text: str, console: Console) -> None:
    """Print Markdown as wide as the console is."""
    console.print(Statement(text))
