"""``shardlings submit``: run a module's public checks, list unfinished tasks, and hand in the module.

If nbgrader is set up, the command copies the module's folder to nbgrader's exchange. Otherwise it writes a zip for
learners to upload.
"""

from __future__ import annotations

import getpass
import hashlib
import io
import json
import os
import zipfile
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from grader.batch.grade import Grader
from grader.batch.reporting import versions
from grader.common.files import clear_left_behind, write_atomic
from grader.common.result import Report
from grader.common.text import NOTHING_TO_GRADE
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.intake.archives import MANIFEST
from grader.intake.reading import read
from grader.intake.submission import Submission
from grader.reports.wording import is_unfinished

LONG_AGO = (1980, 1, 1, 0, 0, 0)  # The date of all files in a zip, so that equal contents make equal zips.
# Several students may share an account with one of these names.
ANYBODY = ("codespace", "jovyan", "me", "root", "runner", "student", "ubuntu", "user", "vscode")


@dataclass(frozen=True)
class Ready:
    """A submission that can be handed in, the report of its public checks, and its unfinished tasks by exercise."""

    submission: Submission
    report: Report
    missing: dict[str, list[str]]


def prepare(course: Course, module: str, work: Path, student: str, grader: Grader) -> Ready:
    """Run the module's public checks. Raises CourseError if the learner changed no file of the module in ``work``."""
    names = course.asked([course.module(module).id])
    if not work.exists():
        raise CourseError(f"no such file or folder: {work}")
    found = read(work, student, course.module_of, course.handed_out)
    submission = replace(found, sources={e: s for e, s in found.sources.items() if e in names})
    if not submission.sources:
        raise nothing_of(module, names[0], module, found, work)
    report = grader.grade(submission, names, public=True)
    ready = Ready(submission, report, missing(report))
    if all(r.task in ready.missing.get(e.exercise, []) for e in report.exercises for r in e.results):
        files = ", ".join(sorted({source.name for source in submission.sources.values()}))
        raise CourseError(
            f"nothing is written yet in {work} ({files}); go to the folder with your work or pass --work FOLDER"
        )
    return ready


def nothing_of(asked: str, first: str, module: str, submission: Submission, place: Path) -> CourseError:
    """Return the error for a submission that has no file for the exercise or module ``asked``.

    The message also has the remarks on the submission (``notes``), and the file name of the exercise ``first`` as an
    example.
    """
    why = [note for note in submission.notes if not note.startswith(NOTHING_TO_GRADE)]
    why.append(f"the grader looked for {first}.py, {module}.ipynb and similar names")
    return CourseError(
        f"no file for {asked} in {place}: {'; '.join(why)}; go to the folder with your work or pass --work FOLDER"
    )


def missing(report: Report) -> dict[str, list[str]]:
    """Return the tasks and questions that the learner has not written yet, by exercise."""
    found = {e.exercise: list(dict.fromkeys(r.task for r in e.results if is_unfinished(r))) for e in report.exercises}
    return {exercise: tasks for exercise, tasks in found.items() if tasks}


def login() -> str:
    """Return the login of the current user. Raises CourseError if the account has no name or is shared."""
    try:
        name = os.environ.get("JUPYTERHUB_USER") or getpass.getuser()
    # ``getuser`` raises these errors if the account does not exist.
    except (KeyError, OSError):
        name = ""
    if name in ("", *ANYBODY):
        account = f"the account {name!r} is not a student's" if name else "this account has no name"
        raise CourseError(
            f"{account}, so the submission has no name; pass --student LOGIN or export SHARDLINGS_STUDENT=LOGIN"
        )
    return name


def write_zip(
    course: Course, module: str, work: Path, ready: Ready, to: Path, student: str, at: datetime | None = None
) -> Path:
    """Write a zip with the files that ``grade`` reads, and return its path.

    Args:
        work: the learner's folder or file.
        to: the zip's path, or a folder for it.
        at: the submission time to write into the zip's manifest; None for the current time.
    """
    files = {name: _bytes(work, name) for name in sorted({s.name for s in ready.submission.sources.values()})}
    manifest = manifest_of(course, module, student, files, at or datetime.now(UTC))
    stem = f"{student}_{module}".replace("/", "-")
    target = to / f"{stem}.zip" if to.is_dir() or not to.suffix else to
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in ((MANIFEST, manifest.encode()), *files.items()):
            archive.writestr(zipfile.ZipInfo(name, LONG_AGO), data, zipfile.ZIP_DEFLATED)
    target.parent.mkdir(parents=True, exist_ok=True)
    clear_left_behind(target.parent)
    write_atomic(target, buffer.getvalue())
    return target


def manifest_of(course: Course, module: str, student: str, files: dict[str, bytes], at: datetime) -> str:
    """Return the manifest of a zip as JSON.

    The grader reads only two fields. It warns the staff if ``student`` is not the student who submitted the zip. It
    uses ``submitted`` as the submission time if the staff's record has none.
    """
    variants = course.config.variants
    data = {
        "student": student,
        "course": course.config.name,
        "module": module,
        "submitted": at.astimezone(UTC).isoformat(timespec="seconds"),
        "variant": {"mode": variants.mode, "seed": variants.seed},
        "versions": versions(),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _bytes(work: Path, name: str) -> bytes:
    path = work if work.is_file() else work / name
    try:
        return path.read_bytes()
    except OSError:
        raise CourseError(f"{name} is in an archive; unpack it and submit again") from None
