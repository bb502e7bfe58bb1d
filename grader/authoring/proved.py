"""A cache of the exercises in which ``verify`` found no problem, because testing a whole course takes minutes."""

from __future__ import annotations

import hashlib
import json

from grader.batch.grade import Grader
from grader.batch.remembering import surroundings
from grader.batch.reporting import own_digest
from grader.common.cache import Cache


class Proved:
    """A cache of the exercises in which ``verify`` found no problem.

    The cache key of an exercise contains everything that the result of ``verify`` depends on: the exercise's files,
    ``course.yaml``, the number of seeds, the grader's code, the versions of Python and of packages, the machine and the
    kind of sandbox.

    Args:
        cache: where to record an exercise without problems; None to record nothing.
        seeds: the number of seeds with which ``verify`` tests an exercise.
    """

    def __init__(self, cache: Cache | None, grader: Grader, seeds: int) -> None:
        self._cache, self._course = cache, grader.course
        self._about = [own_digest(), grader.versions, grader.tier, surroundings(), seeds]

    def __contains__(self, exercise: str) -> bool:
        return self._cache is not None and self._cache.get(self._key(exercise)) is not None

    def keep(self, exercise: str) -> None:
        if self._cache is not None:
            self._cache.put(self._key(exercise), b"nothing to mend")

    def _key(self, exercise: str) -> bytes:
        about = ["proved", exercise, self._course.digest([exercise]), *self._about]
        return hashlib.sha256(json.dumps(about).encode()).digest()
