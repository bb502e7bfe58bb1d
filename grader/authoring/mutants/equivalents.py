"""Mutants that may survive because they are right solutions (``solutions/equivalent_mutants.yaml``)."""

from __future__ import annotations

from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.authoring.mutants.making import Mutant
from grader.course.config import CourseError
from grader.course.loading import Course

EQUIVALENT = "equivalent_mutants.yaml"


class Equivalent(BaseModel):
    """An entry of ``equivalent_mutants.yaml``: a mutant that may pass all checks, because it is a right solution."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exercise: str
    task: str
    was: str
    becomes: str
    reason: str = Field(min_length=10)


def equivalents(course: Course) -> list[Equivalent]:
    """Return the entries of ``equivalent_mutants.yaml``. Raises CourseError if the file or an entry is invalid."""
    path: Path = course.root / "solutions" / EQUIVALENT
    if not path.is_file():
        return []
    try:
        entries = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    except yaml.YAMLError as error:
        raise CourseError(f"{path}: not YAML: {error}") from None
    if not isinstance(entries, list):
        raise CourseError(f"{path}: a list of entries is expected")
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(Equivalent.model_validate(entry))
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(str(part) for part in problem["loc"]) or "entry"
            raise CourseError(f"{path}: entry {number}: {field}: {problem['msg']}") from None
    return found


def key(one: Mutant | Equivalent) -> tuple[str, str, str, str]:
    """Return the fields that are equal for a mutant and its entry in ``equivalent_mutants.yaml``."""
    return one.exercise, one.task, one.was, one.becomes
