"""Read the lines of a CSV file that a person or a spreadsheet wrote."""

from __future__ import annotations

import csv
import io

from grader.common.text import composed

Line = tuple[int, list[str]]
"""The number of a line in the file, and the line's cells."""


def lines_of(data: bytes) -> list[Line]:
    """Return the lines of a CSV file in UTF-8. Commas, semicolons or tabs separate the cells.

    Raises ValueError for a file that is not CSV. The error's text begins with the number of the line, as in "3: ...".
    """
    try:
        text = composed(data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n"))
    except UnicodeDecodeError:
        raise ValueError("1: the file is not UTF-8 text; save it as CSV in UTF-8") from None
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    # Without ``strict``, an open quote would join all later lines to one cell.
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    found: list[Line] = []
    number = 1
    try:
        for cells in reader:
            # A quote in a later line can close an open quote. Then the cell contains the lines of other students.
            if any(delimiter in cell.partition("\n")[2] for cell in cells):
                raise ValueError(
                    f"{number}: a cell in quotes continues until line {reader.line_num}; "
                    "check the quotes, or write the cell in one line"
                )
            found.append((number, cells))
            number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(f"{number}: the line is not CSV ({error}); check its quotes") from None
    return found
