"""The results that the grader wrote last: a table of its own in the gradebook, and the stamps of graded notebooks.

The transaction that writes a notebook's rows also writes its row of this table. So the table is always as old as the
rows that it describes, even if a gradebook is restored from a backup. nbgrader ignores the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.api import Assignment, Notebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import Column, MetaData, String, Table, Text, delete, insert, select
from sqlalchemy.orm import object_session

METADATA = "shardlings"
_TABLE = Table(
    "shardlings_written",
    MetaData(),
    Column("notebook_id", String(32), primary_key=True),
    Column("stamp", String(64), nullable=False),
    Column("extra_credit", Text, nullable=False),
)


@dataclass(frozen=True)
class Written:
    """What the grader wrote last for a submitted notebook.

    Attributes:
        stamp: a digest of all data from which the results follow; "" if the grader wrote nothing.
        extra_credit: the extra credit of cells of extensions, by the cell's name.
    """

    stamp: str = ""
    extra_credit: Mapping[str, float] = field(default_factory=dict)


def read(submitted: Any) -> Written:
    """Return what the grader wrote last. ``submitted`` is nbgrader's SubmittedNotebook."""
    session: Any = object_session(submitted)
    _TABLE.create(session.connection(), checkfirst=True)
    row = session.execute(select(_TABLE).where(_TABLE.c.notebook_id == submitted.id)).first()
    return Written(row.stamp, json.loads(row.extra_credit)) if row else Written()


def write(submitted: Any, now: Written) -> None:
    """Replace what the grader wrote last. The caller must have called ``read``, and must commit the change."""
    session: Any = object_session(submitted)
    session.execute(delete(_TABLE).where(_TABLE.c.notebook_id == submitted.id))
    extra = json.dumps(dict(now.extra_credit), sort_keys=True)
    session.execute(insert(_TABLE).values(notebook_id=submitted.id, stamp=now.stamp, extra_credit=extra))


def stamps_of(gradebook: Any, assignment: str) -> dict[tuple[str, str], str]:
    """Return the stamps of an assignment in the gradebook, by student and notebook."""
    session = gradebook.db
    _TABLE.create(session.connection(), checkfirst=True)
    of: Any = SubmittedAssignment
    book: Any = SubmittedNotebook
    released: Any = Notebook
    kind: Any = Assignment
    rows = session.execute(
        select(of.student_id, released.name, _TABLE.c.stamp)
        .join(book, book.assignment_id == of.id)
        .join(released, released.id == book.notebook_id)
        .join(kind, kind.id == of.assignment_id)
        .join(_TABLE, _TABLE.c.notebook_id == book.id)
        .where(kind.name == assignment)
    )
    return {(str(student), str(notebook)): str(stamp) for student, notebook, stamp in rows}


def stamp_in(notebook: Path) -> str:
    """Return the stamp in a graded notebook; "" if there is none."""
    try:
        return str(json.loads(notebook.read_text(encoding="utf-8"))["metadata"][METADATA]["stamp"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
