"""Read reports and summaries that older versions of the grader wrote."""

from __future__ import annotations

import json

from pydantic import ValidationError

from grader.common.result import Report
from grader.intake.submission import ReviewCase
from grader.reports.summary import UNGRADED
from grader.reports.wording import is_begun


def report_of(text: str) -> Report:
    """Return the report in a JSON text of any schema version. Raises pydantic.ValidationError for any other text.

    In schema version 1, ``handed_in`` was True for each exercise with a file, even if the student wrote nothing in it.
    The results show in which exercises the student wrote nothing.
    """
    try:
        return Report.loads(text)
    except ValidationError:
        found = _of_version_1(text)
        if found is None:
            raise
    exercises = [e if is_begun(e) else e.model_copy(update={"handed_in": False}) for e in found.exercises]
    return found.model_copy(update={"exercises": exercises})


def set_aside_in(summary: str) -> list[ReviewCase]:
    """Return the submissions that a run set aside, from the JSON text of the run's summary.

    A summary has no paths, so the returned cases have none. Return [] if the text is no summary.
    """
    try:
        found = [one for one in json.loads(summary)["attention"] if one["kind"] == "not graded"]
        return [ReviewCase(one["student"], one["reason"].removeprefix(UNGRADED), ()) for one in found]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def _of_version_1(text: str) -> Report | None:
    """Return the report with the number of the current schema; None if the text is no report of version 1."""
    try:
        data = json.loads(text)
        return Report.model_validate(data | {"schema_version": 2}) if data["schema_version"] == 1 else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
