"""Repair a submitted notebook, whatever its damage, to get cells for the gradebook and code for the grader.

The grader gets every code cell that the learner wrote, even without nbgrader's metadata, because the grader grades
functions and not cells. The gradebook gets each of its cells exactly once. This module finds a cell by the task that
the cell defines, else by nbgrader's metadata, else by the cell's id. A missing cell is restored. This module never
runs code, and leaves parsing to ``intake.parsers``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode

from grader.common.text import a_few, first_notes, printable
from grader.intake.disk import bytes_of
from grader.intake.facts import facts_of, look, nothing_written
from grader.intake.notebooks import checked_after, definitions_in
from grader.intake.parsers import ParsedCell, Parsers
from grader.intake.submission import Chunk, Refused, Source, Submission
from grader.wire import limits

# While grading, `check` does nothing, so that cells that call `check` do not fail.
_NO_CHECK = "def check(*args, **kwargs):\n    return None\n"
# Students did not write this code, so neither stubs nor other definitions in this code are counted.
NO_CHECK = Chunk("the check cells", _NO_CHECK, replace(look(_NO_CHECK), stubs=0))
_IMPORT_CHECK = re.compile(r"^([ \t]*)from grader\.[\w.]+ import check\b[^\n]*", re.MULTILINE)
PUT_BACK = "This cell was missing in the submission. It was restored, empty, to hold the comment."

MAX_SHOWN_CELL = 20_000
"""The largest number of characters of a submitted cell that nbgrader's pages show."""
MAX_SHOWN = 200_000
"""The largest number of characters of all submitted cells of a notebook that nbgrader's pages show."""


@dataclass(frozen=True)
class ReleasedCell:
    """A cell in the gradebook, as it was released."""

    name: str
    kind: str
    source: str
    checksum: str | None
    points: float | None = None  # None if the cell gives no points
    solution: bool = False
    task: bool = False
    locked: bool = False

    @property
    def graded(self) -> bool:
        return self.points is not None and not self.task

    @property
    def restored(self) -> bool:
        """True if students must not change the cell, so that its released text replaces the submitted text."""
        return self.locked or (self.graded and not self.solution)

    @property
    def defines(self) -> set[str]:
        return definitions_in(self.source) if self.solution and self.kind == "code" else set()

    def marks(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "schema_version": 3, "grade_id": self.name, "grade": self.graded, "solution": self.solution,
            "locked": self.locked, "task": self.task, "cell_type": self.kind,
        }  # fmt: skip
        if self.checksum:
            found["checksum"] = self.checksum
        return found if self.points is None else found | {"points": self.points}


@dataclass
class SubmittedCell:
    """A submitted cell. ``number`` is the cell's position in the notebook, from 1."""

    number: int
    kind: str
    text: str
    marked: str = ""  # the released cell that this cell claims to be: a name in its nbgrader metadata, or ""
    ident: str = ""
    defines: tuple[str, ...] = ()  # names of tasks that this cell defines, and that a released cell defines, too
    known: ReleasedCell | None = None

    @property
    def name(self) -> str:
        """The cell's name in the gradebook; '' for a cell that the learner added."""
        return self.known.name if self.known else ""

    @property
    def is_code(self) -> bool:
        """True if the cell is code, or was code before the student changed its type."""
        return self.kind == "code" or (self.known is not None and self.known.solution and self.known.kind == "code")


@dataclass(frozen=True)
class Repaired:
    """A repaired notebook.

    Attributes:
        untouched: the names of solution cells that are equal to the released cells.
        missing: the names of released cells that the submitted notebook lacks.
        unread: the notes on cells that the grader could not read, or on the whole notebook.
    """

    cells: list[NotebookNode]
    submission: Submission
    digest: str
    untouched: frozenset[str] = frozenset()
    missing: frozenset[str] = field(default=frozenset())
    unread: tuple[str, ...] = ()

    @property
    def is_blank(self) -> bool:
        """True if the student wrote no code in the notebook."""
        return all(map(nothing_written, self.submission.sources.values()))


def repair(
    path: Path, student: str, known: Sequence[ReleasedCell], exercises: Iterable[str],
    given: frozenset[str] = frozenset(), parsers: Parsers | None = None, handed_out: frozenset[str] = frozenset(),
) -> Repaired:  # fmt: skip
    """Repair the notebook at ``path``, as the module describes.

    Args:
        known: the cells that the gradebook knows, in the notebook's order.
        exercises: the exercises that the grader grades in this notebook.
        given: texts of cells that are not the learner's work.
        parsers: parsers of the notebook; the default parsers run in this process.
        handed_out: texts of code cells as learners get them. A cell with such a text holds no work of the learner.

    Raises:
        Unreadable: the machine fails to read the file.
    """
    exercises, unread = tuple(exercises), list[str]()
    parsers = (parsers or Parsers()).for_submission(path)
    raw = _read(path, known, exercises, unread, parsers)
    cells = _cells(raw, unread)
    notes = [*unread]
    _recognise(cells, known, notes)
    ours = {"", *given, *(k.source.strip() for k in known if k.restored)}
    chunks = _chunks([c for c in cells if c.is_code and c.text.strip() not in ours], notes, unread, parsers)
    chunks = _without_written(chunks, {f"cell {c.number}" for c in cells if c.text.strip() in handed_out})
    ends = tuple(checked_after((c.checks for c in raw), chunks))
    source = Source(path.name, (NO_CHECK, *chunks), ends)
    found = first_notes(notes)
    digest = _digest([[[c.name, c.text] for c in chunks], found])
    submission = Submission(student, dict.fromkeys(exercises, source) if chunks else {}, found, digest)
    texts = {c.name: c.text for c in cells}
    return Repaired(
        _nodes(cells, known),
        submission,
        _digest([[c.kind, c.text, c.name] for c in cells]),
        _untouched(known, texts),
        frozenset(k.name for k in known) - texts.keys(),
        tuple(unread),
    )


def _untouched(known: Sequence[ReleasedCell], texts: Mapping[str, str]) -> frozenset[str]:
    """Return the names of solution cells whose text equals the released text."""
    return frozenset(k.name for k in known if k.solution and texts.get(k.name) == k.source)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


# -- reading -----------------------------------------------------------------------------------


def _read(
    path: Path, known: Sequence[ReleasedCell], exercises: Sequence[str], notes: list[str], parsers: Parsers
) -> Sequence[ParsedCell]:
    wanted = sorted({name for k in known for name in k.defines})
    try:
        return parsers.cells(bytes_of(path, limits.MAX_NOTEBOOK), [k.name for k in known], wanted, exercises)
    except Refused as refusal:
        notes.append(f"{printable(path.name)} {refusal}")
    return []


def _cells(raw: Sequence[ParsedCell], notes: list[str]) -> list[SubmittedCell]:
    cells: list[SubmittedCell] = []
    damaged: list[str] = []
    for number, cell in enumerate(raw, start=1):
        if cell.text is None or cell.kind is None:
            damaged.append(str(number))
            continue
        cells.append(SubmittedCell(number, cell.kind, cell.text, cell.marked, cell.ident, cell.defines))
    if damaged:
        notes.append(f"damaged cells were left out: {a_few(damaged)}")
    return cells


# -- matching cells ----------------------------------------------------------------------------


def _recognise(cells: list[SubmittedCell], known: Sequence[ReleasedCell], notes: list[str]) -> None:
    """Match each cell of the gradebook to a submitted cell, and add a note for each missing, changed or copied cell."""
    for cell in known:
        if not cell.restored and cell.defines:
            _recognise_definition(cells, cell, notes)
    taken = {c.name for c in cells}
    for cell in (k for k in known if k.name not in taken):
        free = [c for c in cells if c.known is None]
        if found := _by_marks(cell, free):
            found.known = cell
            _note_change(found, cell, notes)
        elif cell.graded or cell.solution:
            notes.append(f"the cell {cell.name} was missing and was restored")
    _note_copies(cells, notes)


def _recognise_definition(cells: list[SubmittedCell], cell: ReleasedCell, notes: list[str]) -> None:
    rivals = [c for c in cells if c.known is None and not cell.defines.isdisjoint(c.defines)]
    if len(rivals) > 1:
        numbers = a_few([str(c.number) for c in rivals])
        notes.append(f"{a_few(sorted(cell.defines))} is defined in cells {numbers}; the last definition is graded")
    if rivals:
        found = rivals[-1]
        found.known = cell
        if found.marked != cell.name:
            had = f"had nbgrader's metadata of {found.marked}" if found.marked else "had lost nbgrader's metadata"
            notes.append(f"cell {found.number} {had}; the cell's definitions show that it is {cell.name}")


def _by_marks(cell: ReleasedCell, free: list[SubmittedCell]) -> SubmittedCell | None:
    """Return the last submitted cell that matches a cell of the gradebook; None if there is no match.

    A cell matches by text (only if students must not change the cell, see ``restored``), else by metadata, else by id.
    """
    same = [c for c in free if cell.restored and c.text.strip() == cell.source.strip()]
    marked = [c for c in free if c.marked == cell.name]
    by_id = [c for c in free if c.ident == cell.name and not c.marked]
    for found in (same, marked, by_id):
        if found:
            return found[-1]
    return None


def _note_change(found: SubmittedCell, cell: ReleasedCell, notes: list[str]) -> None:
    if found.kind != cell.kind:
        notes.append(f"cell {found.number} ({cell.name}) had the type {found.kind}, but was read as {cell.kind}")
    if cell.restored and found.text.strip() != cell.source.strip():
        notes.append(f"cell {found.number} ({cell.name}) had been changed; the course's own cell was restored")
    elif found.marked != cell.name:
        what = "text" if cell.restored else "id"
        notes.append(
            f"cell {found.number} had lost nbgrader's metadata; the cell's {what} shows that it is {cell.name}"
        )


def _note_copies(cells: list[SubmittedCell], notes: list[str]) -> None:
    copies = [str(c.number) for c in cells if c.marked and c.known is None]
    if copies:
        notes.append(f"the grader treats copies of graded cells as ordinary cells: {a_few(copies)}")


# -- results -----------------------------------------------------------------------------------


def _chunks(cells: list[SubmittedCell], notes: list[str], unread: list[str], parsers: Parsers) -> list[Chunk]:
    texts: dict[str, str] = {}
    cut: list[str] = []
    size = 0
    for cell in cells:
        size += len(cell.text)
        if size > limits.MAX_FILE:
            most = limits.MAX_FILE // limits.MIB
            cut = [f"more than {most} MiB of code; cell {cell.number} and later cells were not read"]
            break
        texts[f"cell {cell.number}"] = _IMPORT_CHECK.sub(r"\1pass", cell.text)
    try:
        found = parsers.python(texts)
    except Refused as refusal:
        notes.append(f"the code {refusal}")
        unread.append(notes[-1])
        return []
    for one in found:
        if one.left_out:
            notes.append(f"{one.chunk.name}: left out {a_few([printable(line) for line in one.left_out], 2)}")
    notes += cut
    unread += cut
    return [one.chunk for one in found]


def _without_written(chunks: Sequence[Chunk], handed_out: Collection[str]) -> list[Chunk]:
    """Return the cells. In cells named in ``handed_out``, set the facts to say that the learner wrote nothing."""

    def unwritten(chunk: Chunk) -> Chunk:
        facts = facts_of(chunk)
        return replace(chunk, facts=replace(facts, stubs=facts.stubs or 1))

    return [unwritten(chunk) if chunk.name in handed_out else chunk for chunk in chunks]


def _nodes(cells: list[SubmittedCell], known: Sequence[ReleasedCell]) -> list[NotebookNode]:
    """Return the submitted cells in order. Add each missing cell after the cell that precedes it in the release."""
    texts = shortened([c.text for c in cells])
    nodes = [_node(c, text) for c, text in zip(cells, texts, strict=True)]
    there = {c.name for c in cells}
    at = 0
    for cell in known:
        if cell.name in there:
            at = 1 + next(i for i, n in enumerate(nodes) if n.metadata.get("nbgrader", {}).get("grade_id") == cell.name)
        else:
            nodes.insert(at, _new(cell.kind, _put_back(cell), cell.name, cell))
            at += 1
    return nodes


def _put_back(cell: ReleasedCell) -> str:
    if cell.restored or cell.task:
        return cell.source
    return f"# {PUT_BACK}" if cell.kind == "code" else PUT_BACK


def _node(cell: SubmittedCell, text: str) -> NotebookNode:
    if cell.known is None:
        return _new(cell.kind, text, f"cell-{cell.number}", None)
    ours = cell.known.restored
    return _new(cell.known.kind, cell.known.source if ours else text, cell.known.name, cell.known)


def _new(kind: str, text: str, ident: str, known: ReleasedCell | None) -> NotebookNode:
    safe = ident if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", ident) else hashlib.sha256(ident.encode()).hexdigest()[:16]
    node = NotebookNode(id=safe, cell_type=kind, metadata=NotebookNode(), source=text)
    if known:
        node.metadata["nbgrader"] = NotebookNode(known.marks())
    if kind == "code":
        node.outputs, node.execution_count = [], None
    return node


def shortened(texts: Sequence[str]) -> list[str]:
    """Return the texts of a notebook's submitted cells, cut to the lengths that nbgrader's pages show.

    nbgrader's pages take time that grows with the square of a cell's length. ``submitted/`` has the whole texts.
    """
    left, shown = MAX_SHOWN, []
    for text in texts:
        most = min(left, MAX_SHOWN_CELL)
        shown.append(
            text if len(text) <= most else f"{text[:most]}\n# The rest of this cell is in the submitted notebook."
        )
        left -= min(len(text), most)
    return shown
