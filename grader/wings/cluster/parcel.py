"""The data that the grading process and the workers exchange: JSON, which the receiver validates.

First a worker gets the files of the exercises to grade, including hidden data. Then each request to the worker has one
submission, and the worker's answer has the submission's report.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from grader.course.config import Config
from grader.course.loading import Course
from grader.intake.submission import Chunk, CodeFacts, Source, Submission


class NotUnderstood(Exception):
    """The received data do not have the expected form."""


class Parcel(BaseModel):
    """Data that are sent as one message."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    def packed(self) -> bytes:
        return zlib.compress(self.model_dump_json().encode(), 1)

    @classmethod
    def unpacked(cls, data: object) -> Self:
        """Return the parcel from which ``packed`` made these bytes. Raises NotUnderstood for other data."""
        try:
            if isinstance(data, bytes):
                return cls.model_validate_json(zlib.decompress(data))
        except (ValidationError, zlib.error):
            pass
        raise NotUnderstood


class Kit(Parcel):
    """Everything that a worker needs to grade the exercises ``names``.

    Attributes:
        config: the course's configuration with its seed, as JSON.
        files: the files in the solution folders of the exercises' modules, by path below the course's root.
        digest: a digest of these exercises in the course. A worker compares it with the digest of its own copy.
        tier: the kind of sandbox in which the worker runs learner code, "sandlock", "bwrap" or "none".
        remember: whether a worker grades equal submissions of this class only once.
    """

    config: str
    files: dict[str, bytes]
    names: list[str]
    digest: str
    tier: str
    remember: bool

    @classmethod
    def of(cls, course: Course, names: Sequence[str], tier: str, *, remember: bool) -> Kit:
        folders = dict.fromkeys(course.path_of(name).parent for name in names)
        files = {
            path.relative_to(course.root).as_posix(): path.read_bytes()
            for folder in folders
            for path in sorted(folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }
        return cls(
            config=course.config.model_dump_json(),
            files=files,
            names=list(names),
            digest=course.digest(list(names)),
            tier=tier,
            remember=remember,
        )

    @property
    def key(self) -> str:
        """SHA-256 of the kit's data. Equal kits have equal keys."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def laid_out(self, folder: Path) -> Course:
        """Write the course's files to a folder, and return the course in this folder."""
        for name, data in self.files.items():
            path = folder / name
            if not path.resolve().is_relative_to(folder.resolve()):
                raise NotUnderstood
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return Course(folder, Config.model_validate_json(self.config))


class About(Parcel):
    """Facts about a worker.

    Attributes:
        versions: the versions of all software on which verdicts depend, by name.
        problems: why each isolation tier (kind of sandbox) does not work; "" for a tier that works.
    """

    versions: dict[str, str]
    problems: dict[str, str]


class Answer(Parcel):
    """The answer to a request: a report as JSON, a problem of the grader, or ``absent``.

    ``absent``: whether the worker does not have the course, for example because it was restarted.
    """

    report: str = ""
    problem: str = ""
    absent: bool = False


def packed(submission: Submission) -> bytes:
    """Return a submission as bytes. A file or notebook with several exercises is included only once."""
    sources = list(dict.fromkeys(submission.sources.values()))
    data = {
        "student": submission.student,
        "sources": [asdict(source) for source in sources],
        "of": {exercise: sources.index(source) for exercise, source in submission.sources.items()},
        "notes": submission.notes,
        "digest": submission.digest,
        "unread": submission.unread,
    }
    return zlib.compress(json.dumps(data).encode(), 1)  # json.dumps escapes lone surrogates, which UTF-8 cannot encode


def unpacked(data: bytes) -> Submission:
    """Return the submission from which ``packed`` made these bytes."""
    content = json.loads(zlib.decompress(data))
    sources = [
        Source(s["name"], tuple(_chunk(**c) for c in s["chunks"]), tuple((e, after) for e, after in s["ends"]))
        for s in content["sources"]
    ]
    of = {exercise: sources[i] for exercise, i in content["of"].items()}
    return Submission(content["student"], of, tuple(content["notes"]), content["digest"], tuple(content["unread"]))


def _chunk(name: str, text: str, facts: dict[str, Any] | None) -> Chunk:
    if facts is None:
        return Chunk(name, text)
    rest: dict[str, Any] = facts | {"places": {of: (first, last) for of, (first, last) in facts["places"].items()}}
    return Chunk(name, text, CodeFacts(**rest))
