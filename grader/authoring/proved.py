"""Exercises that ``verify`` proved before and that did not change: to prove a whole course again takes minutes."""

from __future__ import annotations

import hashlib
import json

from grader.batch.grade import Grader
from grader.batch.remembering import surroundings
from grader.batch.reporting import own_digest
from grader.common.cache import Cache


class Proved:
    """Remembers of which exercises nothing is to be mended.

    By all that a proof depends on: the exercise's files, ``course.yaml``, the grader's code, the versions of all that
    takes part, the machine, the isolation and the seeds. A proof that finds something is made anew each time.

    Args:
        cache: where it is remembered; None: nowhere.
        seeds: with how many of them exercises are proved.
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
