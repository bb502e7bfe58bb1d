"""The format of course.yaml, and one-line errors for mistakes in the file."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from grader import Mistake
from grader.common.text import nearest
from grader.sandbox.limits import Limits

PUBLIC = "_public"
README = "README.md"
FURTHER = "## Going further"
"""The heading in an author's statement above the part that learners read below their code."""
GRADING = "grading"
YEARS = range(2000, 2200)
"""The years of deadlines and submission times. Any other year is a slip."""
Model = TypeVar("Model", bound=BaseModel)


class CourseError(Mistake):
    """The course cannot be used. The message is one line: what is wrong, where, and what to do."""


class Strict(BaseModel):
    """A part of a YAML file. Unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Module(Strict):
    """One assignment, with its exercises in order. ``weight`` multiplies the exercises' points."""

    id: str = Field(pattern=r"^\d\d_[a-z0-9_]+$")
    title: str
    exercises: tuple[str, ...] = ()
    weight: float = Field(default=1.0, gt=0, le=10**6)
    deadline: datetime | None = None

    @field_validator("exercises", mode="before")
    @classmethod
    def _nothing_is_none(cls, listed: Any) -> Any:
        return () if listed is None else listed  # In course.yaml, "exercises:" may have no value.

    @field_validator("deadline")
    @classmethod
    def _in_our_time(cls, deadline: datetime | None) -> datetime | None:
        # Pydantic reads a number, such as 20261101, as seconds since 1970.
        if deadline is not None and deadline.year not in YEARS:
            years = f"from {YEARS.start} to {YEARS.stop - 1}"
            raise ValueError(f"write a date {years}, as in 2026-11-01T23:59:00+01:00, or leave out the deadline")
        return deadline


class Variants(Strict):
    mode: Literal["shared", "per_student"] = "shared"
    seed: str = "1"


class Tolerances(Strict):
    numbers: float = Field(default=0.02, gt=0, lt=0.5)


class LatePolicy(Strict):
    """Penalties for submissions after their module's deadline. A course without a policy has no penalties.

    Attributes:
        grace_minutes: minutes after the deadline in which submissions have no penalty. Late days begin when this time
            is over.
        percent_per_day: the penalty for each begun late day, as a percentage of the points earned in the module.
        at_most_percent: the highest penalty, as a percentage of the points earned in the module.
        free_days: late days without penalty for each student in the whole course, used in the order of deadlines.
        trust: the times that decide whether a submission is late. ``record``: only times in the staff's
            ``submitted.csv``. ``file-dates``: also times in the submission (a stamp, a zip's times, a file's date),
            which students can set.
    """

    grace_minutes: float = Field(default=0, ge=0, le=10**6)
    percent_per_day: float = Field(gt=0, le=100)
    at_most_percent: float = Field(default=100, gt=0, le=100)
    free_days: int = Field(default=0, ge=0, le=1000)
    trust: Literal["record", "file-dates"] = "record"


class Config(Strict):
    """The content of course.yaml.

    Attributes:
        seed: the secret from which hidden inputs are drawn; absent from learners' files.
        repository: the address of ``exercises/`` on GitHub, for links that open notebooks in Colab.
        statement_words: the largest number of words in a statement before ``## Going further``; None means no limit.
            The command ``verify`` checks this limit.
        handed_out: in the learners' course.yaml, fingerprints of the stubs and notebooks as learners get them.
    """

    name: str
    seed: str = ""
    repository: str = ""
    devices: int = Field(default=8, ge=1, le=512)
    variants: Variants = Variants()
    tolerances: Tolerances = Tolerances()
    limits: Limits = Limits()
    late: LatePolicy | None = None
    modules: tuple[Module, ...] = Field(min_length=1)
    statement_words: int | None = Field(default=None, ge=1)
    handed_out: tuple[str, ...] = ()

    @field_validator("repository")
    @classmethod
    def _a_folder_on_github(cls, address: str) -> str:
        if address and not re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+/tree(/[\w.-]+)+", address):
            raise ValueError(
                "write the address of the folder of learners' files as GitHub shows it: "
                "https://github.com/OWNER/NAME/tree/BRANCH/exercises"
            )
        return address

    @field_validator("modules")
    @classmethod
    def _names_once(cls, modules: tuple[Module, ...]) -> tuple[Module, ...]:
        seen: set[str] = set()
        for name in [m.id for m in modules] + [e for m in modules for e in m.exercises]:
            if name in seen:
                raise ValueError(f"{name} is listed twice")
            seen.add(name)
        return modules


class _KeyTwice(yaml.YAMLError):
    """A YAML mapping has the key ``key`` twice."""

    def __init__(self, key: yaml.ScalarNode) -> None:
        self.key = key


class _EachKeyOnce(yaml.SafeLoader):
    """PyYAML's safe loader, but a repeated key is an error. PyYAML itself silently keeps the last value."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise _KeyTwice(key)
            seen.add(key.value)
        return node


def read_yaml(path: Path, model: type[Model]) -> Model:
    """Return the content of a YAML file of the course. Raises CourseError with the file, the line and the field."""
    try:
        text = path.read_text(encoding="utf-8")
        data = yaml.load(text, Loader=_EachKeyOnce)
    except (OSError, UnicodeDecodeError) as error:
        raise CourseError(f"{path} cannot be read: {error}") from None
    except _KeyTwice as error:
        raise CourseError(
            f"{path}:{error.key.start_mark.line + 1}: {error.key.value} appears twice; keep one"
        ) from None
    except RecursionError:
        raise CourseError(f"{path} cannot be read: it is nested too deeply") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f":{mark.line + 1}" if mark else ""
        raise CourseError(f"{path}{at}: not YAML: {getattr(error, 'problem', error)}") from None
    except ValueError as error:
        raise CourseError(f"{path}: a value cannot be read: {error}") from None
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise CourseError(_first_problem(path, text, model, error)) from None


def _first_problem(path: Path, text: str, model: type[BaseModel], error: ValidationError) -> str:
    problem = min(error.errors(), key=lambda e: e["type"] != "extra_forbidden")  # report misspelt fields first
    field = ".".join(str(p) for p in problem["loc"]) or "the file"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        message = f"no such field{nearest(str(problem['loc'][-1]), _known_fields(model, problem['loc']))}"
    if not problem["loc"] and problem["type"] == "model_type":
        message = f"write a field and its value, as in {next(iter(model.model_fields))}: ..."
    return f"{path}:{_line_of(text, problem['loc'])}: {field}: {message}"


def _known_fields(model: type[BaseModel], loc: tuple) -> list[str]:
    for part in loc[:-1]:
        if part in model.model_fields:
            declared = model.model_fields[str(part)].annotation
            inner = [t for t in (declared, *get_args(declared)) if isinstance(t, type) and issubclass(t, BaseModel)]
            model = inner[0] if inner else model
    return list(model.model_fields)


def _line_of(text: str, loc: tuple) -> int:
    """Return the line of the YAML node at ``loc``; for a missing node, the line of the nearest enclosing node."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = 1
    for part in loc:
        if isinstance(node, yaml.MappingNode):
            pair = next(((k, v) for k, v in node.value if k.value == part), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line
