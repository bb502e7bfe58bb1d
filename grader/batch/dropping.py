"""Take students out of a folder of reports."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.batch.opening import has_database
from grader.batch.store import Folder
from grader.batch.written import remove_files
from grader.common.text import a_few, composed
from grader.course.config import CourseError


def drop(path: Path, names: Sequence[str]) -> None:
    """Delete the students' database rows, then the students' files. Raises CourseError for an unknown student.

    ``names`` may also have the names of submissions and files that need review, as the class page shows these names.
    """
    students = [composed(name) for name in names]
    if not has_database(path) and not (path / "reports").is_dir():
        raise CourseError(f"no reports in {path}")
    with Folder(path) as folder:
        known = {*folder.database.students(), *(case.student for case in folder.database.cases())}
        if unknown := [student for student in students if student not in known]:
            raise CourseError(f"no report of {a_few(unknown)} in {path}")
        with folder.database.transaction():
            for student in students:
                folder.database.drop(student)
        for student in students:
            remove_files(path, student)
