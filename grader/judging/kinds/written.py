"""Answers in the learner's own words; a person grades them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from grader.judging.kinds.kind import is_blank
from grader.judging.units import BadAnswer


class WrittenKind:
    """A text. Two texts never count as equal, and the grader does not judge them."""

    @property
    def asked(self) -> Sequence[str]:
        return ["Answer in your own words, as a text in quotes; a person reads it and gives its points."]

    def want(self, value: Any) -> str:
        if not isinstance(value, str) or is_blank(value):
            raise ValueError(f"{value!r} is no text: return a good answer, for who grades")
        return value.strip()

    def read(self, raw: Any) -> str:
        if not isinstance(raw, str):
            raise BadAnswer("this is no text: write your answer between quotes")
        return raw.strip()

    def is_empty(self, raw: Any) -> bool:
        return is_blank(raw)

    def distance(self, given: str, want: str) -> None:
        return None

    def are_close(self, one: str, other: str) -> bool:
        return False

    def shown(self, want: str) -> str:
        return want

    def read_as(self, given: str) -> str:
        words = len(given.split())
        return f"a text of {words} word{'' if words == 1 else 's'}"

    def written(self, want: str) -> str:
        return want

    def misfit(self, given: str) -> str:
        return ""

    def why(self, given: str, want: str) -> str:
        return ""
