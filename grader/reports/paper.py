"""A console on which text from learners is shown literally."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from grader.reports.untrusted import clean

_ASCII = str.maketrans(
    {"×": "x", "·": "*", "–": "-", "—": "-", "…": "...", "‘": "'", "’": "'", "“": '"', "”": '"', "✗": "X"}
)
_LINES = str.maketrans("┌┬┐├┼┤└┴┘─│", "+++++++++-|")


@dataclass(frozen=True)
class Paper:
    """A console that cleans text and replaces characters that the console's encoding lacks."""

    console: Console

    @property
    def ascii(self) -> bool:
        return not self.console.encoding.lower().startswith("utf")

    def text(self, text: object, style: str = "", limit: int = 2000) -> Text:
        """Return the value as cleaned plain text, in which markup and escape sequences have no effect."""
        return Text(self.fit(clean(text, limit)), style=style, overflow="fold")

    def fit(self, text: str) -> str:
        """Return the text, or lines of a drawing, in characters that the console can encode."""
        if not self.ascii:
            return text
        simple = unicodedata.normalize("NFKD", text.translate(_ASCII).translate(_LINES))
        return "".join(c for c in simple if not unicodedata.combining(c)).encode("ascii", "replace").decode()

    def line(self, *parts: Text, indent: int = 0) -> None:
        self.console.print(Padding(Text("", overflow="fold").join(parts), (0, 0, 0, indent), expand=False))

    def table(self, title: str, columns: list[str], rows: list[list[str]]) -> None:
        if not rows:
            return
        table = Table(title=Text(title, style="bold"), title_justify="left")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*(self.text(cell, limit=5000) for cell in row))
        self.console.print(table)
