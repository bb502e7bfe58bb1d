"""Print an exercise's statement (Markdown) on a terminal. Tables cut no word off."""

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

BESIDE = 3  # width of the border and padding beside each column of a table, in characters


class WholeTable(TableElement):
    """A table whose columns are at least as wide as their words. On a narrow terminal, each row becomes a list."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        names = [cell.content for cell in self.header.row.cells] if self.header and self.header.row else []
        rows = [[cell.content for cell in row.cells] for row in self.body.rows] if self.body else []
        columns = list(zip(names, *rows, strict=True))
        widths = _widths(columns, options.max_width - BESIDE * len(columns) - 1)
        if widths is None:
            yield from _stacked(names, rows)
            return
        table = Table(box=box.SIMPLE, pad_edge=False, style="markdown.table.border")
        for name, width in zip(names, widths, strict=True):
            heading = name.copy()
            heading.stylize("markdown.table.header")
            table.add_column(heading, width=width, overflow="fold")
        for row in rows:
            table.add_row(*row)
        yield table


def _widths(columns: list[tuple[Text, ...]], room: int) -> list[int] | None:
    """Return column widths that cut no word, with a sum of at most ``room``; None if the words need more room."""
    widths = [max(map(_longest_word, column)) for column in columns]
    wanted = [max(cell.cell_len for cell in column) for column in columns]
    spare = room - sum(widths)
    while spare > 0 and widths != wanted:
        narrow = min((i for i, width in enumerate(widths) if width < wanted[i]), key=widths.__getitem__)
        widths[narrow], spare = widths[narrow] + 1, spare - 1
    return None if spare < 0 else widths


def _longest_word(cell: Text) -> int:
    return max(map(cell_len, cell.plain.split()), default=0)


def _stacked(names: list[Text], rows: list[list[Text]]) -> Iterator[Any]:
    """Yield each row of a table as lines of text. Each line has a column's name and the row's cell in this column."""
    for row in rows:
        yield Text("")
        lines = Table.grid()
        lines.add_column(overflow="fold")
        for name, cell in zip(names, row, strict=True):
            label = Text.assemble(name, ": ") if name.plain.strip() else Text("")
            lines.add_row(Text.assemble(label, cell))
        yield Padding(lines, (0, 0, 0, 2))
    yield Text("")


class WrappedMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": WholeTable}


def print_markdown(text: str, console: Console) -> None:
    console.print(WrappedMarkdown(text))
