"""Results, and the Report made of them, which every renderer, gradebook and export reads.

The JSON form is schema version 1, documented in ``docs/report-schema.md``. A report holds no path and no address. It
holds no time except submission times under a late policy. Equal submissions, courses and versions give equal bytes.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticSerializationError

_FROZEN = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)  # JSON has neither infinity nor NaN
QuestionKind = Literal["number", "spec", "choice", "several", "order", "table", "formula", "written", "code"]
Status = Literal["passed", "failed", "blocked", "broken", "waiting"]


class ByHand(BaseModel):
    """Points that a person gave in place of the grader's.

    Attributes:
        by, reason: who, and why.
        graded: points by the grader now. was: points by the grader when the override was set.
    """

    model_config = _FROZEN

    by: str
    reason: str
    graded: float
    was: float


class RubricItem(BaseModel):
    """A rule of a rubric. ``given``: the person who graded gave its points."""

    model_config = _FROZEN

    name: str
    points: float
    text: str
    given: bool = False


class HandIn(BaseModel):
    """The submission time of a module, if the course has a late policy.

    Attributes:
        submitted: the time, ISO 8601 in UTC. source: where it comes from.
        penalty: points off, at most the points earned in the module. text: the reason, in one line; empty if in time.
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
        kind: check; for a question the kind of its answer.
        status: passed; failed (the learner's); blocked (an earlier check it needs did not pass);
            broken (ours: no points lost, needs review); waiting (a person gives its points).
        points: its weight. earned: 0 or ``points``; between for an answer with partial
            credit, or if a person gave it.
        reason: one line for the learner; empty when passed.
        hint: the matched misconception's hint, else empty.
        misconception: the matched misconception's name, else empty.
        where: device, index or source line.
        expected, actual: plain JSON for the renderers; ``expected`` of hidden checks and of
            questions is for the staff only.
        staff: text that only staff may read; empty if only secret inputs failed.
        pictures: layouts to draw, each {"title", "mesh", "shape", "slices"}, and timelines, {"title", "timeline"}.
        by_hand: the person who gave these points in the grader's place; ``status`` stays the grader's.
        rubric: the items of the rubric, for a person to pick; written only if there are any.
        unjudged: right on simulated devices, but not seen on the requested devices; written only if true.
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
    staff: str = ""
    pictures: list[dict[str, Any]] = []
    by_hand: ByHand | None = None
    rubric: list[RubricItem] = Field(default=[], exclude_if=lambda rubric: not rubric)
    unjudged: bool = Field(default=False, exclude_if=lambda unjudged: not unjudged)

    @property
    def waits(self) -> bool:
        """True if its points wait for a person or for devices."""
        return (self.status in ("broken", "waiting") or self.unjudged) and self.by_hand is None

    def for_student(self) -> Result:
        """Return it without staff text, without the expected value and its picture unless the check is public.

        Of a rubric, students see the items that they got.
        """
        if self.public and self.kind == "check":
            return self.model_copy(update={"staff": ""})
        actual = [p for p in self.pictures if str(p.get("title")).startswith("actual")]
        got = [item for item in self.rubric if item.given]
        return self.model_copy(update={"expected": None, "staff": "", "pictures": actual, "rubric": got})


class Evidence(BaseModel):
    """The inputs and the program behind one ask's verdict; for the staff.

    Attributes:
        task: the task of the ask.
        mesh, dims: of a call.
        secret: whether its inputs come from the course's seed.
        program: SHA-256 of the program's canonical form; empty without a program.
        inputs: SHA-256 of all inputs, or of the cases.
        step: the program's time by the clock, in picoseconds, for a timing call; None without one.
    """

    model_config = _FROZEN

    task: str
    mesh: dict[str, int]
    dims: dict[str, int]
    secret: bool
    program: str
    inputs: str
    step: int | None = None


class ExerciseReport(BaseModel):
    """The results of one exercise.

    Attributes:
        handed_in: False if the submission held nothing for the exercise.
        evidence: what decided the results; ``shardlings appeal`` finds it anew.
        pseudonym: the learner's name on a leaderboard: untrusted; empty for no place there.
        extension: its points are a bonus, and the submission's ``points`` leave them out.
        basis: digests of all that it was graded with, by name, so that a regrade can report what changed; for staff.
        by_hand: a person gave points for the whole exercise.
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

    @property
    def unjudged(self) -> float:
        """Points that could not be judged for lack of devices."""
        return round(sum(r.points for r in self.results if r.unjudged and r.waits), 6)

    def for_student(self) -> ExerciseReport:
        """Return it without the parts for staff."""
        return self.model_copy(update={"results": [r.for_student() for r in self.results], "evidence": [], "basis": {}})


class Report(BaseModel):
    """All results of one submission.

    Attributes:
        isolation: the sandbox tier that was used (sandlock, bwrap or none).
        points: without those of extensions; ``earned`` includes points of extensions (``bonus``).
        fingerprint: SHA-256 over all that the verdicts depend on.
        backend: where programs ran: ``cpu``, or the devices beside the simulated ones, ``gpu: 1 x NVIDIA H200``.
        pending: points of broken checks, of answers that a person reads, and of unjudged checks.
        notes: remarks on the submission for a person.
        hand_ins: by module, if the course has a late policy; ``earned`` is less their penalties.
    """

    model_config = _FROZEN

    schema_version: Literal[1] = 1
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
    hand_ins: list[HandIn] = []

    @property
    def bonus(self) -> float:
        """Points earned in extensions, less their share of the late penalties in their module."""
        left = 0.0
        for module in dict.fromkeys(e.module for e in self.exercises if e.extension):
            earned = sum(e.earned for e in self.exercises if e.module == module)
            extra = sum(e.earned for e in self.exercises if e.module == module and e.extension)
            penalty = sum(one.penalty for one in self.hand_ins if one.module == module)
            left += extra - (penalty * extra / earned if earned > 0 else 0.0)
        return round(min(left, self.earned), 6)

    @property
    def unjudged(self) -> float:
        """Points that could not be judged for lack of devices."""
        return round(sum(e.unjudged for e in self.exercises), 6)

    @property
    def broken(self) -> bool:
        """True if the grader itself failed somewhere. Such a report is not kept: the next try may succeed."""
        return any(r.status == "broken" for e in self.exercises for r in e.results)

    def dumps(self) -> str:
        """Return canonical JSON: fields in the order of the schema, an indent of two spaces, a final newline.

        UTF-8 has no bytes for half a surrogate pair, so ``?`` takes its place.
        """
        try:
            return self.model_dump_json(indent=2) + "\n"
        except PydanticSerializationError:
            text = json.dumps(self.model_dump(), ensure_ascii=False)
            return Report.loads(text.encode("utf-8", "replace").decode()).dumps()

    @classmethod
    def loads(cls, text: str) -> Report:
        """Return the report that ``dumps`` wrote.

        Raises:
            pydantic.ValidationError: the text is not a report of this schema.
        """
        return cls.model_validate_json(text)

    def for_student(self) -> Report:
        """Return it without what only staff may see: the expected values of hidden checks and questions."""
        return self.model_copy(update={"exercises": [e.for_student() for e in self.exercises]})
