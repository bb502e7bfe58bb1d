"""Make reports: the part for one exercise, the whole report, and the record of everything that a report depends on."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import grader
from grader.common.result import Evidence, ExerciseReport, Report, Result, sum_of_points
from grader.course.loading import Course
from grader.intake.facts import has_leaderboard, is_untouched, pseudonym_of
from grader.intake.submission import Submission, exact_digest, source_digest
from grader.reports.points import counted


def exercise_report(
    basis: Basis, submission: Submission, name: str, results: Iterable[Result], evidence: Iterable[Evidence],
    notes: Iterable[str], *, public: bool,
) -> ExerciseReport:  # fmt: skip
    """Return the part of a report about the exercise ``name``.

    Args:
        results: the results of checks and questions. Their points are not multiplied by the module's weight (in
            course.yaml) yet.
        evidence: programs and inputs that decided the results.
        notes: errors that occurred while the source was loaded.
    """
    course, source = basis.course, submission.sources.get(name)
    exercise, weight = course.exercise(name), course.weight(name)
    results = [_weighted(result, weight) for result in results]
    earned = sum_of_points(r.earned for r in results)
    return ExerciseReport(
        exercise=name,
        module=exercise.module,
        title=exercise.title,
        points=sum_of_points(r.points for r in results),
        earned=earned,
        pending=sum_of_points(r.points for r in results if r.waits),
        results=results,
        notes=list(notes),
        # A file that earns points was handed in, although it may look untouched to the grader.
        handed_in=earned > 0 or not basis.is_untouched(submission, name),
        evidence=list(evidence),
        pseudonym=pseudonym_of(source) if source and has_leaderboard(exercise.source) else "",
        extension=exercise.extension,
        basis={} if public else basis.of(submission, name),
    )


def _weighted(result: Result, weight: float) -> Result:
    """Return the result with all its points multiplied by the module's weight."""
    rubric = [item.model_copy(update={"points": item.points * weight}) for item in result.rubric]
    points = {"points": result.points * weight, "earned": result.earned * weight}
    return result.model_copy(update={**points, "rubric": rubric})


def report(
    basis: Basis, submission: Submission, exercises: list[ExerciseReport], notes: Sequence[str], *, public: bool
) -> Report:
    """Return a submission's report. ``notes`` are remarks on the whole submission."""
    required = [e for e in exercises if not basis.course.exercise(e.exercise).extension]
    return Report(
        student=submission.student,
        course=basis.course.config.name,
        versions=dict(basis.versions),
        isolation=basis.isolation,
        backend=basis.backend,
        fingerprint=basis.fingerprint(submission, [e.exercise for e in exercises], public=public),
        points=sum_of_points(e.points for e in required),
        earned=sum_of_points(e.earned for e in exercises),
        pending=sum_of_points(e.pending for e in exercises),
        exercises=exercises,
        notes=[*submission.notes, *notes],
        unread=list(submission.unread),
    )


def note_of_devices(devices: str, exercises: Iterable[ExerciseReport]) -> str:
    """Return a line such as ``gpu: 1 x NVIDIA H200: 8 of 10 points could be judged on these devices``.

    The devices cannot judge a check if a program that the check needs did not run on them (``Result.unjudged``).
    """
    results = [r for e in exercises for r in e.results]
    every, seen = sum_of_points(r.points for r in results), sum_of_points(r.points for r in results if not r.unjudged)
    return f"{devices}: {seen:g} of {counted(every, 'point')} could be judged on these devices"


# -- inputs of a report -------------------------------------------------------------------------


@dataclass(frozen=True)
class Basis:
    """Everything, besides submissions, that the reports of one grader depend on.

    Attributes:
        versions: versions of all software that a verdict depends on.
        isolation: the kind of sandbox of learners' processes.
        backend: see ``Grader.backend``.
    """

    course: Course
    versions: Mapping[str, str]
    isolation: str
    backend: str
    _digests: dict[tuple[str, ...], str] = field(default_factory=dict)

    def fingerprint(self, submission: Submission, names: Sequence[str], *, public: bool) -> str:
        """Return SHA-256 over everything that the submission's report depends on."""
        parts = [
            submission.student,
            submission.digest,
            self.digest(names),
            names,
            self.versions,
            own_digest(),
            self.isolation,
            public,
            [name for name in names if self.is_untouched(submission, name)],
        ]
        parts += [self.backend] if self.backend != "cpu" else []
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def is_untouched(self, submission: Submission, name: str) -> bool:
        """Return whether the student wrote nothing for the exercise ``name``."""
        return is_untouched(submission.sources.get(name), self._handed_out)

    @cached_property
    def _handed_out(self) -> frozenset[str]:
        return self.course.handed_out

    def of(self, submission: Submission, name: str) -> dict[str, str]:
        """Return digests and versions, by name, of everything that one exercise's results depend on.

        From these, a regrade finds the reason why a result changed.
        """
        source = submission.sources.get(name)
        digests = {
            "submission": source_digest(source) if source else "",
            "course": self.digest([name]),
            "grader": own_digest(),
        }
        return {
            **{part: value[:16] for part, value in digests.items()},
            # This digest is not shortened: it decides whether a submission keeps its earlier time, and a student could
            # find two files with equal short digests.
            "files": exact_digest(source) if source else "",
            "versions": versions_text(self.versions),
            "isolation": self.isolation,
            **({"backend": self.backend} if self.backend != "cpu" else {}),
        }

    def digest(self, names: Sequence[str]) -> str:
        """Return a digest of the exercises ``names`` and of their course."""
        if tuple(names) not in self._digests:
            self._digests[tuple(names)] = self.course.digest(list(names))
        return self._digests[tuple(names)]


@cache
def own_digest() -> str:
    """Return SHA-256 over the code of the package ``grader``. After a change of this code, all cache keys differ."""
    files = sorted(Path(grader.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def versions_text(versions: Mapping[str, str]) -> str:
    """Return versions in one line: "jax 0.10.2, numpy 2.4.1"."""
    return ", ".join(f"{package} {version}" for package, version in versions.items())


@cache
def versions() -> dict[str, str]:
    """Return the versions of all packages that a verdict depends on."""
    found = {name: importlib.metadata.version(name) for name in ("jax", "jaxlib", "numpy", "pint")}
    return {"shardlings": grader.__version__, **found}
