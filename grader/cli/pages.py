"""The command ``pages``, which rewrites the pages of a graded class, with names or with pseudonyms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from grader.batch.database import Database, resumable
from grader.batch.folder import Folder
from grader.batch.written import write_files
from grader.cli.console import busy, say, tell
from grader.cli.options import RosterOption, roster_in
from grader.common.files import write_atomic
from grader.common.result import Report
from grader.course.config import CourseError
from grader.integrations import export
from grader.reports.anonymous import Anonymous, assign
from grader.reports.pages import page_name, render_html, summary_html
from grader.reports.points import counted
from grader.reports.summary import Summary
from grader.reports.whole_class import WholeClass

NAMES = "pseudonyms.json"


def pages(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="the folder of reports")],
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="write pages with pseudonyms, not names, into OUT/anonymous")
    ] = False,
    to: Annotated[Path | None, typer.Option("--to", help="folder for the pages of --anonymous")] = None,
    roster: RosterOption = None,
) -> None:
    """Write the reports, pages and tables of OUT anew.

    The command reads the database of OUT, and grades nothing.
    """
    if to is not None and not anonymous:
        raise CourseError("--to needs --anonymous: only anonymous pages may be in a different folder than OUT")
    students = export.students_in(folder)
    known = roster_in(roster) if anonymous else None
    target = to or folder / "anonymous"
    with Folder(folder) as opened, busy(f"writing the pages of {counted(len(students), 'student')}"):
        if text := opened.taken.text(folder):
            tell("note", text)
        if anonymous:
            others = [text for row in known.rows for text in row.values()] if known else []
            others += [person.name for person in opened.database.people().values()]
            write_anonymous(folder, target, opened.database, others)
        else:
            write_files(folder, opened.database, anew=True)
    if anonymous:
        say(f"wrote {target}/index.html; {folder}/{NAMES} maps pseudonyms to names: keep this file private")
    else:
        say(f"wrote {folder}/index.html and the pages of {counted(len(students), 'student')}")


def summary_of(folder: Path, database: Database) -> Summary:
    """Return the summary of the last run. Raises CourseError if there is no summary in this version's format."""
    found = database.last_run()
    try:
        return Summary.model_validate_json(found[0] if found else "")
    except ValidationError:
        raise CourseError(
            f"{folder} has no summary by this version of shardlings; run shardlings grade again"
        ) from None


def write_anonymous(folder: Path, target: Path, database: Database, others: Sequence[str]) -> None:
    """Write a table of pseudonyms and names into ``folder``, then the pages with pseudonyms into ``target``."""
    summary = summary_of(folder, database)
    if (target / "reports").exists() or target.resolve() == folder.resolve():
        raise CourseError(f"{target} already has reports that name students; choose a different folder with --to")
    students = database.students()
    kept = names_in(folder / NAMES)
    names = assign([*students, *(a.student for a in summary.attention if a.student)], kept)
    hidden = Anonymous(names, [*kept, *others])
    # Sorted by pseudonym, because an order by name would help to guess the names.
    ordered = sorted(students, key=names.__getitem__)
    with resumable():
        text = json.dumps({pseudonym: s for s, pseudonym in (kept | names).items()}, indent=2, sort_keys=True)
        write_atomic(folder / NAMES, text + "\n")
        target.mkdir(parents=True, exist_ok=True)
        whole = WholeClass()
        for report in _hidden(hidden, database, ordered):
            whole.add(report)
            write_atomic(target / page_name(report.student), render_html(report, audience="staff"))
        page = summary_html(hidden.summary(summary), whole, _hidden(hidden, database, ordered))
        write_atomic(target / "index.html", page)


def _hidden(hidden: Anonymous, database: Database, students: Sequence[str]) -> Iterator[Report]:
    return (hidden.report(found.counts) for student in students if (found := database.stored(student)))


def names_in(path: Path) -> dict[str, str]:
    """Return each student's pseudonym from an earlier run; {} without a file. Raises CourseError for a damaged file."""
    if not path.exists():
        return {}
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        return {str(student): str(pseudonym) for pseudonym, student in table.items()}
    except (ValueError, AttributeError):
        raise CourseError(f"{path} is damaged; mend the file, or remove the file to draw new pseudonyms") from None
