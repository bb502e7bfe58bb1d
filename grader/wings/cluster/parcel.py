"""What travels between the process that grades a class and the workers: JSON, taken apart by who gets it.

To a worker, once: the course as far as it is asked for, with its secrets. Then submissions, one by one. Back: reports.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from grader.course.config import Config
from grader.course.loading import Course
from grader.intake.submission import Chunk, Source, Submission


class NotUnderstood(Exception):
    """What came is nothing that was sent."""


class Parcel(BaseModel):
    """What is sent in one piece."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_bytes="base64", val_json_bytes="base64")

    def packed(self) -> bytes:
        return zlib.compress(self.model_dump_json().encode(), 1)

    @classmethod
    def unpacked(cls, data: object) -> Self:
        """Raises NotUnderstood."""
        try:
            if isinstance(data, bytes):
                return cls.model_validate_json(zlib.decompress(data))
        except (ValidationError, zlib.error):
            pass
        raise NotUnderstood


class Kit(Parcel):
    """All that a worker needs to grade these exercises.

    Attributes:
        config: of the course, its seed included; JSON.
        files: the solutions' folders of the exercises' modules, by path below the course's root.
        digest: of the course, for these exercises.
        tier: isolation of the submissions.
        remember: whether equal work of this class is done once on a worker.
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
        """SHA-256 over what is in it: two like it are one."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    def laid_out(self, folder: Path) -> Course:
        """The course, written to a folder of its own."""
        for name, data in self.files.items():
            path = folder / name
            if not path.resolve().is_relative_to(folder.resolve()):
                raise NotUnderstood
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return Course(folder, Config.model_validate_json(self.config))


class About(Parcel):
    """What a worker is: versions by name of all that a verdict depends on, and why tiers do not work there."""

    versions: dict[str, str]
    problems: dict[str, str]


class Answer(Parcel):
    """What became of a request: a report's JSON; or what failed in code of ours; or that the worker has no course (any more)."""

    report: str = ""
    problem: str = ""
    absent: bool = False


def packed(submission: Submission) -> bytes:
    """A submission; each of its sources is in it once."""
    sources = list(dict.fromkeys(submission.sources.values()))
    data = {
        "student": submission.student,
        "sources": [asdict(source) for source in sources],
        "of": {exercise: sources.index(source) for exercise, source in submission.sources.items()},
        "notes": submission.notes,
        "digest": submission.digest,
    }
    return zlib.compress(json.dumps(data).encode(), 1)  # ASCII: it also takes half a surrogate pair


def unpacked(data: bytes) -> Submission:
    """Return the submission that was packed."""
    content = json.loads(zlib.decompress(data))
    sources = [
        Source(s["name"], tuple(Chunk(**c) for c in s["chunks"]), tuple((e, after) for e, after in s["ends"]))
        for s in content["sources"]
    ]
    of = {exercise: sources[i] for exercise, i in content["of"].items()}
    return Submission(content["student"], of, tuple(content["notes"]), content["digest"])
