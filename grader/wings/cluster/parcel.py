"""The data that the grading process and the workers exchange.

A worker gets the files of the exercises to grade, including hidden data, and then submissions. The worker trusts these
data, because Dask's workers run any code that the grading process sends. The worker's answers are JSON, which the
grading process validates.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from grader.course.config import Config
from grader.course.loading import Course


@dataclass(frozen=True)
class Kit:
    """Everything that a worker needs to grade the exercises ``names``.

    Attributes:
        config: the course's configuration with its seed.
        files: the files in the solution folders of the exercises' modules, by path below the course's root.
        digest: a digest of these exercises in the course. A worker compares it with the digest of its own copy.
        tier: the kind of sandbox in which the worker runs learner code, "sandlock", "bwrap" or "none".
        remember: whether a worker grades equal submissions of this class only once.
    """

    config: Config
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
        return cls(course.config, files, list(names), course.digest(list(names)), tier, remember)

    def laid_out(self, folder: Path) -> Course:
        """Write the course's files to a folder, and return the course in this folder."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return Course(folder, self.config)


class Answer(BaseModel):
    """The answer to a request, sent as JSON: a report as JSON, or a problem of the worker or the grader."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    report: str = ""
    problem: str = ""


def packed(data: object) -> bytes:
    """Return a kit or a submission as compressed bytes, so that Dask's logs show neither names nor code."""
    return zlib.compress(pickle.dumps(data), 1)


def unpacked(data: bytes) -> Any:
    """Return the object from which ``packed`` made these bytes. The bytes must come from the grading process."""
    return pickle.loads(zlib.decompress(data))
