"""A class without names: reports and a summary that people outside the staff may see.

Each student's name becomes a pseudonym. Only numbers and a fixed list of other fields are kept, so a field that is
added later cannot disclose a name. In text that may quote students, every known name is replaced.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from grader.common.result import ExerciseReport, HandIn, Report, Result
from grader.reports.summary import Attention, Kind, Summary

COVERED = "[name]"
_OF_REPORT = ("course", "versions", "isolation", "backend")
_OF_EXERCISE = ("exercise", "module", "title")
_OF_RESULT = ("kind", "name", "label", "task", "status", "hint", "misconception", "expected")
_QUOTING = ("reason", "where", "actual", "staff")
_SHORT = 5
"""Names with fewer characters are replaced only as whole words. All other names are also replaced inside words."""
_WHY: dict[Kind, str] = {  # texts that replace reasons for review, because the reasons may quote file names
    "not graded": "not graded",
    "not found": "files for some exercises were not found",
    "handed in again": "several versions were handed in",
}


def assign(students: Iterable[str], kept: Mapping[str, str]) -> dict[str, str]:
    """Return a pseudonym for each student: the pseudonym in ``kept``, else a random pseudonym unrelated to the name."""
    everyone, taken = set(students), set(kept.values())
    names = {student: kept[student] for student in everyone & kept.keys()}
    missing = list(everyone - kept.keys())
    largest = max(10_000, 20 * (len(taken) + len(missing)))
    while missing:
        drawn = f"student-{secrets.randbelow(largest):04}"
        if drawn not in taken:
            taken.add(drawn)
            names[missing.pop()] = drawn
    return names


class Anonymous:
    """Reports and summaries with pseudonyms for students.

    Args:
        names: student -> pseudonym, for all students.
        others: names to replace besides the students' names, such as the names in a gradebook.
    """

    def __init__(self, names: Mapping[str, str], others: Iterable[str] = ()) -> None:
        self._names = names
        self._pattern = _pattern([*names, *others])

    def report(self, report: Report) -> Report:
        """Return the report without names and fingerprint. Other pages may show the fingerprint beside a name."""
        exercises = [self._exercise(e) for e in report.exercises]
        costs = [HandIn(module=one.module, submitted="", source="", penalty=one.penalty) for one in report.hand_ins]
        changes = {"student": self._names[report.student], "exercises": exercises, "fingerprint": "", "hand_ins": costs}
        return Report.model_validate(_listed(report, _OF_REPORT) | changes)

    def summary(self, summary: Summary) -> Summary:
        return summary.model_copy(
            update={
                "attention": [self._attention(item) for item in summary.attention],
                "misconceptions": [
                    item.model_copy(update={"who": sorted(self._names[student] for student in item.who)})
                    for item in summary.misconceptions
                ],
                "broken": [
                    item.model_copy(update={"student": self._names[item.student], "reason": self._covered(item.reason)})
                    for item in summary.broken
                ],
            }
        )

    def _attention(self, item: Attention) -> Attention:
        reason = _WHY.get(item.kind) or self._covered(item.reason)
        student = self._names[item.student] if item.student else ""
        return Attention(student=student, reason=reason, kind=item.kind)

    def _exercise(self, exercise: ExerciseReport) -> ExerciseReport:
        results = [self._result(result) for result in exercise.results]
        return ExerciseReport.model_validate(_listed(exercise, _OF_EXERCISE) | {"results": results})

    def _result(self, result: Result) -> Result:
        covered: dict[str, Any] = {part: self._covered(getattr(result, part)) for part in _QUOTING}
        covered["pictures"] = [self._picture(picture) for picture in result.pictures]
        return Result.model_validate(_listed(result, _OF_RESULT) | covered)

    def _picture(self, picture: Mapping[str, Any]) -> dict[str, Any]:
        """Return a picture without names.

        The title and the names of the fields stay, because the grader wrote them.
        """
        return {key: part if key == "title" else self._covered(part, keys=False) for key, part in picture.items()}

    def _covered(self, value: Any, *, keys: bool = True) -> Any:
        """Return plain data (text, lists, mappings) with ``[name]`` in place of names.

        Keys of mappings change only if ``keys`` is True.
        """
        if isinstance(value, str):
            return self._pattern.sub(COVERED, value)
        if isinstance(value, list):
            return [self._covered(part, keys=keys) for part in value]
        if isinstance(value, dict):
            return {self._covered(key) if keys else key: self._covered(part, keys=keys) for key, part in value.items()}
        return value


def _listed(model: BaseModel, names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in model if name in names or isinstance(value, bool | int | float)}


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches each name, and each word of three or more letters in a name."""
    whole = {name.strip() for name in names} - {""}
    words = {word for name in whole for word in re.findall(r"[^\W\d_]{3,}", name)}
    parts = []
    for name in sorted(whole | words, key=lambda n: (-len(n), n)):
        text = re.escape(name)
        parts.append(text if len(name) >= _SHORT else rf"(?<![^\W_]){text}(?![^\W_])")
    return re.compile("|".join(parts) or r"(?!)", re.IGNORECASE)
