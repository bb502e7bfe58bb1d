"""Answers that a person grades: texts in the learner's own words, and code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.exercise import Code, Written
from grader.judging.kinds.kind import AnswerKind, is_blank
from grader.judging.units import BadAnswer


class WrittenKind(AnswerKind[str, str]):
    """A text that a person grades. Two texts never count as equal."""

    name = "written"
    valid = "text"
    by_a_person = True

    @classmethod
    def of(cls, answer: Written, drawn: Mapping[str, Any], rtol: float) -> WrittenKind:
        return cls()

    @staticmethod
    def heading(answer: Written) -> str:
        return "in your own words"

    @property
    def asked(self) -> Sequence[str]:
        return ["Answer in your own words, as a text in quotes; the staff reads it and gives its points."]

    def want(self, value: Any) -> str:
        if not isinstance(value, str) or is_blank(value):
            raise ValueError(f"{value!r} is not a text; return an example of a good answer for the staff")
        return value.strip()

    def read(self, raw: Any) -> str:
        if not isinstance(raw, str):
            raise BadAnswer("this is not a text; write your answer between quotes")
        return raw.strip()

    def distance(self, given: str, want: str) -> None:
        return None

    def are_close(self, one: str, other: str) -> bool:
        return False

    def shown(self, want: str) -> str:
        return want

    def read_as(self, given: str) -> str:
        words = len(given.split())
        return f"a text of {words} word{'' if words == 1 else 's'}"


@dataclass(frozen=True)
class CodeKind(WrittenKind):
    """The submitted code of a task."""

    task: str

    name = "code"

    @classmethod
    def of(cls, answer: Code, drawn: Mapping[str, Any], rtol: float) -> CodeKind:
        return cls(answer.task)

    @staticmethod
    def heading(answer: Code) -> str:
        return f"your code of {answer.task}"

    @property
    def asked(self) -> Sequence[str]:
        return [f"Answer with your code of {self.task}. Write nothing here: the staff gives points for the code."]

    def read_as(self, given: str) -> str:
        return f"your code of {self.task}"
