"""Gradescope: the autograder zip, and the program that grades on Gradescope.

``write_zip`` packs setup.sh, run_autograder, this package and the course with its solutions. setup.sh installs the
package versions that this machine has, so that Gradescope gives equal verdicts. On Gradescope, ``python -m
grader.wings.gradescope.autograder /autograder`` reads the submission and writes results.json.
"""

from __future__ import annotations

import importlib.metadata
import io
import json
import os
import re
import sys
import traceback
import zipfile
from pathlib import Path
from typing import Any

from grader.batch import canary
from grader.batch.confined import parsing
from grader.batch.grade import Grader
from grader.common.files import write_atomic
from grader.common.result import ExerciseReport, Report, Result, sum_of_points
from grader.course.config import CourseError
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.intake.parsers import Parsers
from grader.intake.reading import read
from grader.intake.submission import Submission
from grader.integrations.package import dependencies, files_below, package_files
from grader.reports.points import counted, pending_text
from grader.reports.untrusted import clean
from grader.reports.wording import BLOCKED
from grader.sandbox.tiers import NoIsolation, best_tier

SETTINGS = "gradescope.json"
LONG_AGO = (1980, 1, 1, 0, 0, 0)
SETUP = """\
#!/usr/bin/env bash
# Runs once, when Gradescope builds the autograder.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive  # the package tzdata, which Python needs, would ask for the time zone
apt-get update -qq
apt-get install -y -qq python3 python3-venv bubblewrap
# If the image has another version of Python, uv installs the version for which the packages below were chosen.
export UV_PYTHON_INSTALL_DIR=/autograder/python UV_LINK_MODE=copy
python3 -m venv /autograder/uv
/autograder/uv/bin/pip install --quiet uv
/autograder/uv/bin/uv venv --quiet --clear --python {python} /autograder/venv
/autograder/uv/bin/uv pip install --quiet --python /autograder/venv {requirements}
"""
RUN = """\
#!/usr/bin/env bash
# Runs for each submission.
root="${AUTOGRADER_ROOT:-/autograder}"
python="$root/venv/bin/python"
[ -x "$python" ] || python="${PYTHON:-python3}"
cd "$root/source"
JAX_PLATFORMS=cpu PYTHONPATH="$root/source" exec "$python" -m grader.wings.gradescope.autograder "$root"
"""


# -- the zip -----------------------------------------------------------------------------------


def write_zip(course: Course, names: list[str], path: Path, *, isolation: str = "auto") -> None:
    """Write the autograder's zip file for these exercises.

    Args:
        isolation: the isolation tier (kind of sandbox) on Gradescope. "none" is for an image without a working sandbox,
            and runs learner code unconfined.
    """
    if not course.solved:
        raise CourseError("an autograder needs the solutions; this is the learners' release")
    settings = json.dumps({"exercises": names, "isolation": isolation}, indent=2) + "\n"
    scripts = {"setup.sh": setup_script(), "run_autograder": RUN}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in scripts.items():
            _add(archive, name, text.encode(), 0o755)
        _add(archive, SETTINGS, settings.encode())
        for name, file in sorted({**package_files(), **_course(course)}.items()):
            _add(archive, name, file.read_bytes())
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, buffer.getvalue())


def export(course: Course, path: Path, names: list[str], isolation: str) -> str:
    """Write the zip. Return a message for the user: how many points to set on Gradescope."""
    write_zip(course, names, path, isolation=isolation)
    worth = counted(points(course, names), "point")
    return f"set the assignment to {worth}; extension exercises give extra credit"


def points(course: Course, names: list[str]) -> float:
    """Return the points to set for the assignment on Gradescope. Points of extension exercises are extra credit."""
    regular = (n for n in names if not course.exercise(n).extension)
    return sum_of_points(course.exercise(n).points * course.weight(n) for n in regular)


def _add(archive: zipfile.ZipFile, name: str, data: bytes, mode: int = 0o644) -> None:
    info = zipfile.ZipInfo(name, LONG_AGO)
    info.external_attr = (0o100000 | mode) << 16
    archive.writestr(info, data, zipfile.ZIP_DEFLATED)


def _course(course: Course) -> dict[str, Path]:
    found = {"course/course.yaml": course.root / "course.yaml"}
    for part in ("solutions", "exercises"):
        found |= {f"course/{part}/{p.relative_to(course.root / part)}": p for p in files_below(course.root / part)}
    return found


def setup_script() -> str:
    """Return the script that Gradescope runs to install Python and packages, in the versions of this machine."""
    return SETUP.format(python=f"{sys.version_info[0]}.{sys.version_info[1]}", requirements=" ".join(requirements()))


def requirements() -> list[str]:
    """Return the dependencies of shardlings, pinned to the versions that are installed on this machine."""
    found = []
    for line in dependencies():
        name = re.split(r"[\s<>=!~;\[]", line, maxsplit=1)[0]
        try:
            found.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"'{line}'")
    return [*found, f"jaxlib=={importlib.metadata.version('jaxlib')}"]


# -- on Gradescope -----------------------------------------------------------------------------


def main(root: Path) -> None:
    """Grade the submission below ``root``. Write results/results.json, even if grading fails."""
    try:
        results = results_of(graded(root))
    except (CourseError, NoIsolation) as error:
        print(clean(error))  # Gradescope shows printed text only to the staff
        results = not_graded()
    except Exception as error:
        traceback.print_tb(error.__traceback__, file=sys.stdout)
        print(f"{type(error).__name__}: {clean(error)}")
        results = not_graded()
    (root / "results").mkdir(exist_ok=True)
    write_atomic(root / "results" / "results.json", json.dumps(results, indent=2, ensure_ascii=False) + "\n")


def graded(root: Path) -> Report:
    settings = json.loads((root / "source" / SETTINGS).read_text(encoding="utf-8"))
    course = find_course(root / "source" / "course")
    tier = best_tier(settings["isolation"])
    with parsing(tier) as parsers:
        submission = submission_in(root, course, settings["exercises"], parsers)
    with Grader(course, tier) as grader:
        canary.prove(grader, settings["exercises"])
        return grader.grade(submission, settings["exercises"])


def submission_in(root: Path, course: Course, names: list[str], parsers: Parsers | None = None) -> Submission:
    """Return the student's submission for these exercises. Files of other exercises are not read."""
    own = {name: course.module_of[name] for name in names}
    student = student_in(root / "submission_metadata.json")
    return read(root / "submission", student, own, course.handed_out, parsers)


def student_in(path: Path) -> str:
    """Return the student's name: the e-mail address in Gradescope's metadata, up to the @; "me" if it is missing."""
    try:
        users = json.loads(path.read_text(encoding="utf-8"))["users"]
        return str(users[0]["email"]).split("@")[0] or "me"
    except (OSError, ValueError, LookupError, TypeError):
        return "me"


def results_of(report: Report) -> dict[str, Any]:
    """Return a report in Gradescope's format, with one test per result.

    Gradescope shows students the results of hidden checks only when grades are published.
    """
    notes = [*report.notes, *(f"{e.exercise}: {n}" for e in report.exercises for n in e.notes)]
    pending = [pending_text(report.pending)] if report.pending else []
    lines = [f"note: {clean(n)}" for n in dict.fromkeys(notes)] + pending
    return {
        "score": round(min(max(report.earned, 0.0), sum(e.points for e in report.exercises)), 6),
        "output": "\n".join(lines),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_test(e, r) for e in report.for_student().exercises for r in e.results],
    }


def _test(exercise: ExerciseReport, result: Result) -> dict[str, Any]:
    reason = result.reason or (BLOCKED if result.status == "blocked" else "")
    lines = [reason, f"hint: {result.hint}" if result.hint else "", result.where if result.where not in reason else ""]
    if result.status == "broken":
        lines.insert(0, "pending: the grader itself failed here, and the staff will review this result")
    if result.status == "waiting":
        lines.insert(0, "pending")
    return {
        "name": f"{exercise.exercise}: {clean(result.label)}",
        "name_format": "text",
        "score": result.earned,
        "max_score": result.points,
        "status": "passed" if result.status == "passed" else "failed",
        "output": "\n".join(clean(line) for line in lines if line),
        "output_format": "text",
        "visibility": "visible" if result.public else "after_published",
        "tags": [exercise.module, exercise.exercise, result.name],
    }


def not_graded() -> dict[str, Any]:
    """Return results that Gradescope shows as a failure.

    The results have no list of tests, because Gradescope reads an empty list as 0 points.
    """
    return {
        "output": "The grader itself failed. The staff will review your submission, which is safe.",
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
    }


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "/autograder"))
