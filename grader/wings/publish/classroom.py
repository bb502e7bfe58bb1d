"""GitHub Classroom: convert the output of ``shardlings check --json`` to the form that Classroom's reporter reads.

The reporter (``autograding-grading-reporter``) shows the sum of the tests' ``score`` out of the sum of their
``max_score``. Questions give no points on GitHub Classroom, because the answers are not available there.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

from grader.common.result import ExerciseReport, Report, sum_of_points
from grader.reports.untrusted import clean


def results_of(report: Report) -> dict[str, Any]:
    """Return a report's results in the format of GitHub Classroom's autograding reporter.

    Each exercise of the report is one test.
    """
    tests = [_test(exercise) for exercise in report.exercises if _most(exercise)]
    worst = "error" if report.broken else "pass" if all(t["status"] == "pass" for t in tests) else "fail"
    most = sum_of_points(_most(exercise) for exercise in report.exercises)
    return {"version": 1, "status": worst, "max_score": most, "tests": tests}


def _most(exercise: ExerciseReport) -> float:
    return sum(r.points for r in exercise.results if r.kind == "check")


def _test(exercise: ExerciseReport) -> dict[str, Any]:
    checks = [r for r in exercise.results if r.kind == "check"]
    status = "error" if any(r.status == "broken" for r in checks) else "fail"
    missed = [clean(r.label, 80) for r in checks if r.status != "passed"]
    return {
        "name": exercise.exercise,
        "status": status if missed else "pass",
        "score": sum_of_points(r.earned for r in checks),
        "message": "; ".join(missed[:3]),
        "test_code": "",
        "filename": "",
        "line_no": 0,
        "duration": 0,
    }


def encoded(path: Path) -> str:
    """Return a report's results, encoded for the reporter. An unreadable report becomes an error with 0 points."""
    try:
        results = results_of(Report.model_validate_json(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        results = {"version": 1, "status": "error", "max_score": 0, "tests": []}
    return base64.b64encode(json.dumps(results).encode()).decode()


if __name__ == "__main__":
    print(f"result={encoded(Path(sys.argv[1]))}")
