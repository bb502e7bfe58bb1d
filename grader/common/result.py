"""Results of checks and questions, and the Report of a submission.

``docs/report-schema.md`` documents the JSON form, schema version 2. A report holds no file path and no memory address.
It holds times only in a course with a late policy: the submission times. So equal submissions, equal courses and equal
software give reports with equal bytes, unless a time limit stops the code in only one of the runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

READ_AS = "read as "
"""Start of ``Result.actual`` for an answer. The rest is the answer as the grader read it."""
_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)  # JSON has neither infinity nor NaN
QuestionKind = Literal["number", "spec", "choice", "several", "order", "table", "formula", "written", "code"]
Status = Literal["passed", "failed", "blocked", "broken", "waiting"]


def sum_of_points(points: Iterable[float]) -> float:
    """Return a sum of points, rounded to remove floating-point errors."""
    return round(float(sum(points)), 6)


class ByHand(BaseModel):
    """A record of points that a person gave in place of the grader's points.

    Attributes:
        by, reason: the person who gave the points, and why.
        graded: the points that the grader gives now.
        was: the points that the grader gave when the person decided. If ``graded`` differs, the record needs review.
        answer: SHA-256 over the answers that a person must grade, as they were when the person decided; empty if there
            were none; None in reports of older versions. If the answers differ now, the record needs review.
    """

    model_config = _FROZEN

    by: str
    reason: str
    graded: float
    was: float
    answer: str | None = None


class RubricItem(BaseModel):
    """An item of a rubric. ``given`` is True if the answer got the item's points."""

    model_config = _FROZEN

    name: str
    points: float
    text: str
    given: bool = False


class HandIn(BaseModel):
    """The submission time of a module, if the course has a late policy.

    Attributes:
        submitted: the time, ISO 8601 in UTC.
        source: the record or file from which the grader took the time.
        penalty: points to subtract, at most the points earned in the module.
        text: the reason for the penalty, in one line; empty if the submission is in time.
    """

    model_config = _FROZEN

    module: str
    submitted: str
    source: str
    penalty: float = 0.0
    text: str = ""


class Result(BaseModel):
    """The verdict on one check or one question.

    Attributes:
        kind: ``check``, or the kind of a question's answer.
        status: the verdict:
            passed: right.
            failed: wrong, by the learner's fault.
            blocked: not judged, for example because another check must pass first.
            broken: not judged, by the grader's fault. It costs no points and needs review.
            waiting: not judged, because a person gives the points.
        points: the largest number of points that can be earned.
        earned: 0 or ``points``; between the two for an answer with partial credit, or for points given by hand.
        reason: one line for the learner; empty when passed.
        hint: the matched misconception's hint, else empty.
        misconception: the matched misconception's name, else empty.
        where: the device, array index or source line where the check failed.
        expected, actual: values as JSON. Reports for students lack ``expected`` of hidden checks and of questions,
            but ``reason`` may name a right value for inputs from the public seed.
        unit: the unit of the numbers in ``expected`` and ``actual``, such as "B"; else empty.
        staff: text that only staff may read. Empty if the check fails only on hidden inputs.
        pictures: layouts to draw (keys "title", "mesh", "shape", "slices") and timelines ("title", "timeline").
        by_hand: record of points that a person gave; ``status`` stays the grader's status.
        rubric: the items of the rubric, which a person picks to give points.
        unjudged: whether the task is right on simulated devices but was not judged on the requested devices.
    """

    model_config = _FROZEN

    kind: Literal["check"] | QuestionKind
    name: str
    label: str
    task: str
    status: Status
    points: float
    earned: float
    public: bool
    reason: str = ""
    hint: str = ""
    misconception: str = ""
    where: str = ""
    expected: Any = None
    actual: Any = None
    unit: str = Field(default="", exclude_if=lambda unit: not unit)
    staff: str = ""
    pictures: list[dict[str, Any]] = []
    by_hand: ByHand | None = None
    rubric: list[RubricItem] = Field(default=[], exclude_if=lambda rubric: not rubric)
    unjudged: bool = Field(default=False, exclude_if=lambda unjudged: not unjudged)

    @property
    def waits(self) -> bool:
        """Whether the points are not final, because a person must decide or the requested devices were missing."""
        return (self.status in ("broken", "waiting") or self.unjudged) and self.by_hand is None

    def for_student(self) -> Result:
        """Return the result without staff text.

        The result of a hidden check or a question also lacks the expected value with its pictures, and the rubric items
        that a person did not pick.
        """
        if self.public and self.kind == "check":
            return self.model_copy(update={"staff": ""})
        actual = [p for p in self.pictures if str(p.get("title")).startswith("actual")]
        got = [item for item in self.rubric if item.given]
        return self.model_copy(update={"expected": None, "staff": "", "pictures": actual, "rubric": got})


class Evidence(BaseModel):
    """The inputs and the program that decided the verdict on a call or a set of cases; for the staff.

    Attributes:
        mesh, dims: mesh and dimensions of a call.
        secret: whether the inputs are hidden inputs, drawn from the course's seed.
        program: SHA-256 of the program's canonical form; empty without a program.
        inputs: SHA-256 of all inputs of a call, or of the cases (argument sets) of a plain function.
        step: for a timed program, the simulated time of one step in picoseconds; else None.
        ended: how the program or function ended its process; empty if it did not.
    """

    model_config = _FROZEN

    task: str
    mesh: dict[str, int]
    dims: dict[str, int]
    secret: bool
    program: str
    inputs: str
    step: int | None = None
    ended: str = ""


class RunNotes(BaseModel):
    """Notes of one run on a submission, as in ``Report``."""

    model_config = _FROZEN

    notes: list[str] = []
    unread: list[str] = []


class ExerciseReport(BaseModel):
    """The results of one exercise.

    Attributes:
        handed_in: False if the submission has no file for the exercise, or only a file in which the student wrote
            nothing (``grader.intake.facts.is_untouched``).
        evidence: programs and inputs that decided the results, for comparison by the command ``shardlings appeal``.
        pseudonym: the name that the learner chose for a leaderboard, as untrusted text, or empty.
        extension: whether the exercise's points are a bonus, which ``Report.points`` does not include.
        basis: digests and versions, by name, of everything that decided the results. After a second grading, the grader
            reports which of them changed.
        by_hand: record of points that a person gave for the whole exercise.
        run: in a report with exercises of several runs, the notes of the run that graded this exercise.
    """

    model_config = _FROZEN

    exercise: str
    module: str
    title: str
    points: float
    earned: float
    pending: float
    results: list[Result]
    notes: list[str] = []
    handed_in: bool = True
    evidence: list[Evidence] = []
    pseudonym: str = ""
    extension: bool = False
    basis: dict[str, str] = {}
    by_hand: ByHand | None = None
    run: RunNotes | None = Field(default=None, exclude_if=lambda run: run is None)

    @property
    def waiting(self) -> list[Result]:
        """The results without final points: none if a person gave points for the whole exercise."""
        return [] if self.by_hand else [r for r in self.results if r.waits]

    @property
    def unjudged(self) -> float:
        """Points that could not be judged for lack of devices."""
        return sum_of_points(r.points for r in self.waiting if r.unjudged)

    def for_student(self) -> ExerciseReport:
        """Return the exercise's report without the parts for staff."""
        results = [r.for_student() for r in self.results]
        return self.model_copy(update={"results": results, "evidence": [], "basis": {}, "run": None})


class Report(BaseModel):
    """All results of one submission.

    Attributes:
        isolation: the kind of sandbox that was used (sandlock, bwrap or none).
        points: the points that can be earned in all exercises that are not extensions (bonus exercises).
        earned: the earned points, after late penalties, with extensions.
        pending: points that are not final (see ``Result.waits``).
        fingerprint: SHA-256 over everything that the verdicts depend on.
        backend: the devices that ran programs in addition to simulated devices, such as ``gpu: 1 x NVIDIA H200``; else
            ``cpu``.
        notes: remarks on the submission that a person should read.
        unread: the notes about files that the grader could not read, or that belong to no exercise.
        hand_ins: submission times by module, if the course has a late policy.
    """

    model_config = _FROZEN

    schema_version: Literal[2] = 2
    student: str
    course: str
    versions: dict[str, str]
    isolation: str
    backend: str
    fingerprint: str
    points: float
    earned: float
    pending: float
    exercises: list[ExerciseReport]
    notes: list[str] = []
    unread: list[str] = Field(default=[], exclude_if=lambda unread: not unread)
    hand_ins: list[HandIn] = []

    @property
    def bonus(self) -> float:
        """Points earned in extensions (bonus exercises), minus their share of the late penalties."""
        left = 0.0
        for module in dict.fromkeys(e.module for e in self.exercises if e.extension):
            earned = sum(e.earned for e in self.exercises if e.module == module)
            extra = sum(e.earned for e in self.exercises if e.module == module and e.extension)
            penalty = sum(one.penalty for one in self.hand_ins if one.module == module)
            left += extra - (penalty * extra / earned if earned > 0 else 0.0)
        return round(min(left, self.earned), 6)

    @property
    def handed_in(self) -> bool:
        """Whether the student handed in anything that can be graded, or has points that a person gave."""
        return self.earned > 0 or any(e.handed_in for e in self.exercises)

    @property
    def unjudged(self) -> float:
        """Points that could not be judged for lack of devices."""
        return sum_of_points(e.unjudged for e in self.exercises)

    @property
    def broken(self) -> bool:
        """Whether the grader itself failed on a check or question. A second grading may succeed."""
        return any(r.status == "broken" for e in self.exercises for r in e.results)

    def dumps(self) -> str:
        """Return canonical JSON: fields in the order of the schema, an indent of two spaces, a final newline.

        Half a surrogate pair in a text becomes ``?``, because UTF-8 cannot express it.
        """
        try:
            return self.model_dump_json(indent=2) + "\n"
        except PydanticSerializationError:
            text = json.dumps(self.model_dump(), ensure_ascii=False)
            return Report.loads(text.encode("utf-8", "replace").decode()).dumps()

    @classmethod
    def loads(cls, text: str) -> Report:
        """Return the report that ``dumps`` wrote. Raises pydantic.ValidationError for any other text."""
        return cls.model_validate_json(text)

    def for_student(self) -> Report:
        """Return the report without the parts for staff, such as expected values of hidden checks and questions."""
        return self.model_copy(update={"exercises": [e.for_student() for e in self.exercises]})
