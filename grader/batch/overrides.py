"""Adjust the grader's verdicts: points that a person gives, and penalties for lateness (``Adjustments``).

People write points into ``OUT/overrides.yaml``, and every run of ``grade`` applies the file again:

    overrides:
      - student: alice
        check: c3_contracting/value      # or a whole exercise: c3_contracting
        points: 2
        by: Bob
        reason: the statement allowed a transposed result

For a question with a rubric, an entry may name items of the rubric in place of points: ``items: [gathers, waits]``.

If the grader's own points, or an answer that a person must grade, change after a person wrote an entry, a person must
review the entry. To notice the change, the grader stores its own points and a digest of the answer in the report when
it first uses the entry. An entry may have a line ``graded: POINTS``. These points then replace the stored points.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from grader.batch.late import Extension, Handed, later_of, penalised
from grader.common.result import ByHand, ExerciseReport, Report, Result, RubricItem, sum_of_points
from grader.common.text import SET_ASIDE, composed
from grader.course.config import Config, CourseError, Strict, read_yaml
from grader.course.loading import Course, check_named
from grader.reports.points import counted, tidy

FILE = "overrides.yaml"


class Override(Strict):
    """One entry of ``overrides.yaml``. ``check`` is a name such as ``c3/val`` (see ``check_named``), or an exercise."""

    student: str = Field(min_length=1)
    check: str = Field(pattern=r"^\w+(/\w+)?$")
    points: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    items: tuple[str, ...] | None = None
    by: str = Field(min_length=1, max_length=100)
    reason: str = Field(min_length=1, max_length=1000)
    graded: float | None = Field(default=None, allow_inf_nan=False)

    @field_validator("student", mode="before")
    @classmethod
    def _is_text(cls, student: object) -> object:
        if isinstance(student, int | float):  # YAML reads 0123 as an octal number, 83
            raise ValueError('put a name that is a number in quotes: student: "0123"')
        return composed(student) if isinstance(student, str) else student

    @field_validator("points", "graded", mode="before")
    @classmethod
    def _is_a_number(cls, points: object) -> object:
        if isinstance(points, bool):  # YAML reads yes as True, which equals 1
            raise ValueError("points are a number")
        return points

    @model_validator(mode="after")
    def _points_or_items(self) -> Override:
        if ("points" in self.model_fields_set) == (self.items is not None):
            raise ValueError("give either points or items of the question's rubric, not both")
        if self.items is not None and len(set(self.items)) < len(self.items):
            raise ValueError(f"items names {next(i for i in self.items if self.items.count(i) > 1)} twice")
        return self

    @property
    def exercise(self) -> str:
        return self.check.split("/")[0]

    @property
    def where(self) -> str:
        return f"{self.student} {self.check}"


class Overrides(Strict):
    """All entries of ``overrides.yaml``."""

    overrides: tuple[Override, ...] = ()

    @field_validator("overrides", mode="before")
    @classmethod
    def _nothing_is_none(cls, listed: object) -> object:
        return () if listed is None else listed

    @field_validator("overrides")
    @classmethod
    def _once(cls, listed: tuple[Override, ...]) -> tuple[Override, ...]:
        whole = {(o.student, o.exercise) for o in listed if "/" not in o.check}
        seen: set[str] = set()
        for one in listed:
            if one.where in seen:
                raise ValueError(f"{one.where} appears twice; keep one")
            if "/" in one.check and (one.student, one.exercise) in whole:
                raise ValueError(
                    f"one line sets {one.student} {one.exercise} as a whole, "
                    f"and another line sets its check {one.check}; keep one line"
                )
            seen.add(one.where)
        return listed


def read_overrides(folder: Path) -> tuple[Override, ...]:
    """Return the overrides of a report folder; () without the file. Raises CourseError for an invalid file."""
    path = folder / FILE
    if not path.exists():
        if path.is_symlink():
            raise CourseError(f"{path} is a broken link; mend or remove it")
        return ()
    return read_yaml(path, Overrides).overrides


def overridden(graded: Report, old: Report | None, overrides: Iterable[Override]) -> tuple[Report, list[str]]:
    """Return (the report with the points that a person gave, a line for each override that needs review).

    The sums of the returned report are outdated, so the caller must recompute them (``with_sums``).

    Args:
        graded: the grader's report.
        old: the stored report. It records, for each override, the points that the grader
            gave when the override was first used.
    """
    problems: list[str] = []
    exercises = {e.exercise: e for e in graded.exercises}
    before, done = _set_before(old), list[str]()
    for line in overrides:
        try:
            one = _in_full(line, exercises)
            exercise = exercises[one.exercise]
            target = _target(exercise, one.check)
            one = _with_points_of_items(one, target)
        except CourseError as error:
            problems.append(f"{line.where}: {error}; the line does nothing")
            continue
        if others := [
            d for d in done if one.check == d or d.startswith(f"{one.check}/") or one.check.startswith(f"{d}/")
        ]:
            problems.append(f"{line.where}: another line sets {others[0]}; this line does nothing")
        elif one.points > target.points + 1e-9:
            worth = f"the line gives {counted(one.points, 'point')}, but at most {tidy(target.points)} are possible"
            problems.append(f"{one.where}: {worth}; the line does nothing")
        else:
            done.append(one.check)
            set_by_hand = _by_hand(one, target, before.get(one.check))
            exercises[one.exercise] = _with(exercise, target, one, set_by_hand)
            if abs(set_by_hand.was - target.earned) > 1e-9:
                problems.append(_moved(one, set_by_hand))
            failed = any(result.status == "broken" for result in _results_of(target))  # so the answer is not known
            if not failed and set_by_hand.answer != _digest_of_answers(target):
                problems.append(
                    f"{one.where}: the answer has changed since {counted(one.points, 'point')} were set by hand; check "
                    "the points, then delete the line or write another reason"
                )
    return graded.model_copy(update={"exercises": list(exercises.values())}), problems


def unknown(overrides: Iterable[Override], students: Sequence[str]) -> list[tuple[str, str]]:
    """Return (student, problem) for each override that names a student without a report."""
    other_case = {student.lower(): f" (there is {student})" for student in students}
    return [
        (
            o.student,
            f"{o.where}: no student of this name has a report{other_case.get(o.student.lower(), '')}; "
            "the line does nothing",
        )
        for o in overrides
        if o.student not in students
    ]


def as_graded(report: Report) -> Report:
    """Return the report without points given by hand, without penalties, and without the note ``SET_ASIDE``."""
    if SET_ASIDE in report.notes:
        report = report.model_copy(update={"notes": [note for note in report.notes if note != SET_ASIDE]})
    if not report.hand_ins and not any(e.by_hand or any(r.by_hand for r in e.results) for e in report.exercises):
        return report
    exercises = [_exercise_as_graded(e) for e in report.exercises]
    return with_sums(report.model_copy(update={"exercises": exercises, "hand_ins": []}))


def with_sums(report: Report) -> Report:
    """Return the report with sums recomputed from its exercises and penalties."""
    earned = sum(e.earned for e in report.exercises) - sum(one.penalty for one in report.hand_ins)
    pending = sum(e.pending for e in report.exercises)
    return report.model_copy(update={"earned": round(earned, 6), "pending": round(pending, 6)})


def in_full(one: Override, exercises: Mapping[str, ExerciseReport]) -> Override:
    """Return the override with names in full (``c3_contracting/value`` for ``c3/val``), and the points of rubric items.

    An override with an unknown or ambiguous name is returned unchanged.
    """
    try:
        full = _in_full(one, exercises)
        return _with_points_of_items(full, _target(exercises[full.exercise], full.check))
    # This function ignores unknown names, because ``overridden`` reports them.
    except CourseError:
        return one


def _in_full(one: Override, exercises: Mapping[str, ExerciseReport]) -> Override:
    """Return the override with full names. Raises CourseError if a name is unknown or ambiguous."""
    exercise, check = check_named(one.check, [*exercises], lambda name: [r.name for r in exercises[name].results])
    return one.model_copy(update={"check": f"{exercise}/{check}" if check else exercise})


def _target(exercise: ExerciseReport, check: str) -> ExerciseReport | Result:
    _, slash, name = check.partition("/")
    return next(r for r in exercise.results if r.name == name) if slash else exercise


def _with_points_of_items(one: Override, target: ExerciseReport | Result) -> Override:
    """Return the override with the points of its rubric items. Raises CourseError if the rubric lacks an item."""
    if one.items is None:
        return one
    rubric = {item.name: item.points for item in target.rubric} if isinstance(target, Result) else {}
    if not rubric:
        raise CourseError("write points in place of items: only an answer that is graded by a rubric has items")
    for name in one.items:
        if name not in rubric:
            raise CourseError(f"the rubric has no item {name!r}, only {', '.join(rubric)}")
    return one.model_copy(update={"points": sum_of_points(rubric[name] for name in one.items)})


def _set_before(old: Report | None) -> dict[str, ByHand]:
    found: dict[str, ByHand] = {}
    for exercise in old.exercises if old else ():
        if exercise.by_hand:
            found[exercise.exercise] = exercise.by_hand
        found |= {f"{exercise.exercise}/{r.name}": r.by_hand for r in exercise.results if r.by_hand}
    return found


def _results_of(target: ExerciseReport | Result) -> Sequence[Result]:
    return [target] if isinstance(target, Result) else target.results


def _digest_of_answers(target: ExerciseReport | Result) -> str:
    """Return SHA-256 over the answers that a person must grade; '' if there are none."""
    answers = [[r.name, r.actual] for r in _results_of(target) if r.status == "waiting"]
    return hashlib.sha256(json.dumps(answers).encode()).hexdigest() if answers else ""


def _by_hand(one: Override, target: ExerciseReport | Result, before: ByHand | None) -> ByHand:
    """Return the report's record of an override: the person, the reason, and the points that the grader gave.

    In the result, ``graded`` has the points that the grader gives now. ``was`` has the points in the override's line
    ``graded``, or else the points that the grader gave when it first used the override, and ``answer`` is the digest of
    the answers then. A change of ``by`` or ``reason`` makes a new override.
    """
    graded = target.earned
    same = before is not None and (before.by, before.reason) == (one.by, one.reason)
    was = one.graded if one.graded is not None else before.was if before is not None and same else graded
    answer = before.answer if before is not None and same else None
    if answer is None:
        answer = _digest_of_answers(target)
    return ByHand(by=one.by, reason=one.reason, graded=graded, was=was, answer=answer)


def _moved(one: Override, of: ByHand) -> str:
    gave = f"the grader gives {tidy(of.graded)} now, but gave {tidy(of.was)} when {tidy(one.points)} was set by hand"
    return (
        f"{one.where}: {gave}; check the points, then delete the line or write graded: {tidy(of.graded)} into the line"
    )


def _with(exercise: ExerciseReport, target: ExerciseReport | Result, one: Override, by_hand: ByHand) -> ExerciseReport:
    change: dict[str, Any] = {"earned": one.points, "by_hand": by_hand}
    if isinstance(target, ExerciseReport):
        return exercise.model_copy(update=change | {"pending": 0.0})
    change["rubric"] = _picked(target, one.items or ())
    return summed(exercise, [r.model_copy(update=change) if r is target else r for r in exercise.results])


def _picked(result: Result, items: Iterable[str]) -> list[RubricItem]:
    return [item.model_copy(update={"given": item.name in items}) for item in result.rubric]


def _exercise_as_graded(exercise: ExerciseReport) -> ExerciseReport:
    if exercise.by_hand is None and not any(r.by_hand for r in exercise.results):
        return exercise
    results = [
        r.model_copy(update={"earned": r.by_hand.graded, "by_hand": None, "rubric": _picked(r, ())}) if r.by_hand else r
        for r in exercise.results
    ]
    return summed(exercise.model_copy(update={"by_hand": None}), results)


def summed(exercise: ExerciseReport, results: list[Result]) -> ExerciseReport:
    """Return the exercise's report with these results, and with the sums of their points."""
    earned, pending = sum(r.earned for r in results), sum(r.points for r in results if r.waits)
    return exercise.model_copy(update={"results": results, "earned": round(earned, 6), "pending": round(pending, 6)})


def none(student: str) -> Extension:
    """Return no extra time. This function is the default of the field ``Adjustments.extension``."""
    return {}


@dataclass
class Adjustments:
    """Adjustments to the grader's verdicts: points given by hand, and late penalties.

    Attributes:
        config: the course's configuration, with the late policy and deadlines; None for no late penalties.
        overrides: the overrides of all students.
        extension: returns the extra time of a student, by module.
        times: submission times of this run, by student and module.
        problems: (student, reason) for each override that needs review. The list is complete only after ``end``.
    """

    config: Config | None = None
    overrides: Sequence[Override] = ()
    extension: Callable[[str], Extension] = none
    times: Mapping[str, Mapping[str, Handed]] = field(default_factory=dict)
    problems: list[tuple[str, str]] = field(default_factory=list)

    def _times_of(self, graded: Report, old: Report | None) -> dict[str, Handed]:
        """Return the submission time of each module that the student has handed in.

        Other modules have no lateness, and use no free day.
        """
        modules = {e.module for e in graded.exercises if e.handed_in}
        now, before = self.times.get(graded.student, {}), old.hand_ins if old else []
        held = later_of(now, before, same_work(graded, old))
        return {module: at for module, at in held.items() if module in modules}

    def end(self, students: Sequence[str]) -> None:
        """Add the overrides of unknown students to ``problems``. Call this after all calls of ``settle``."""
        self.problems.sort(key=lambda problem: problem[0])
        self.problems[:0] = unknown(self.overrides, students)

    def settle(self, graded: Report, old: Report | None) -> Report:
        """Return the report that counts for the grade. If no adjustment applies, return the object ``graded``.

        Add the student's overrides that need review to ``problems``.
        """
        own = [one for one in self.overrides if one.student == graded.student]
        whole, problems = overridden(graded, old, own)
        self.problems += [(graded.student, problem) for problem in problems]
        times = self._times_of(graded, old)
        if self.config is not None and times:
            earned = {m.id: sum(e.earned for e in whole.exercises if e.module == m.id) for m in self.config.modules}
            extension = self.extension(graded.student)
            hand_ins = penalised(self.config.late, self.config.modules, earned, times, extension)
            whole = whole.model_copy(update={"hand_ins": hand_ins})
        changed = bool(whole.hand_ins) or whole.exercises != graded.exercises
        return with_sums(whole) if changed else graded


def as_extensions_are(report: Report, course: Course | None) -> Report:
    """Return the report with each exercise marked as extra credit if the course now says so.

    Reports of old versions of the grader do not have this mark.
    """
    if course is None:
        return report
    extension = {
        e.exercise: course.exercise(e.exercise).extension if e.exercise in course.module_of else e.extension
        for e in report.exercises
    }
    if all(extension[e.exercise] == e.extension for e in report.exercises):
        return report
    marked = [e.model_copy(update={"extension": extension[e.exercise]}) for e in report.exercises]
    points = sum_of_points(e.points for e in marked if not e.extension)
    return report.model_copy(update={"exercises": marked, "points": points})


def same_work(graded: Report, old: Report | None) -> dict[str, bool]:
    """Return, for each module, whether the stored report was made from the submission that is graded now.

    The stored report lacks an exercise that is new in the course. This exercise does not affect the result if the
    student has no new file for it.
    """
    if old is None:
        return {}
    before = {e.exercise: e.basis for e in old.exercises}
    known = {(e.module, e.basis["files"]) for e in old.exercises if "files" in e.basis}
    same: dict[str, bool] = {}
    for exercise in graded.exercises:
        module, now = exercise.module, exercise.basis
        if exercise.exercise in before:
            equal = _same_files(before[exercise.exercise], now)
        else:
            equal = now.get("files") == "" or (module, now.get("files")) in known
        same[module] = same.get(module, True) and equal
    return same


def _same_files(was: Mapping[str, str], now: Mapping[str, str]) -> bool:
    # Reports of version 0.2.0 have no digest "files", only a digest that ignores comments.
    part = "files" if "files" in was else "submission"
    return part in was and was[part] == now.get(part)
