"""The interface of all kinds of answers, and functions that fill in the texts of questions and options."""

from __future__ import annotations

import ast
import functools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import jinja2

from grader.common.result import QuestionKind

Want = TypeVar("Want")
Given = TypeVar("Given")

UNKNOWN = "not right, and not the result of a known misconception"


class AnswerKind(ABC, Generic[Want, Given]):
    """A kind of answer. Its methods describe how to answer, and read, compare and show answers.

    A *want* is an answer that an author's function returns (the right answer, or a misconception's wrong answer),
    converted by the method ``want``. A *given* is a learner's answer, converted by the method ``read``. Texts about a
    wrong answer never reveal the right answer.

    Attributes:
        name: the kind's name in reports and declarations: "number" for ``exercise.number``.
        valid: what an answer must be, in a few words, such as "PartitionSpec"; for messages.
        by_a_person: True if a person gives the points.
    """

    name: ClassVar[QuestionKind]
    valid: ClassVar[str]
    by_a_person: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def of(cls, answer: Any, drawn: Mapping[str, Any], rtol: float) -> Self:
        """Return an object of this class that reads and judges answers to a question.

        Args:
            answer: the author's declaration of the answer, such as a ``Spec``.
            drawn: the parameters drawn for a learner.
            rtol: the relative tolerance of numbers in answers.

        Raises ValueError if two options cannot be distinguished, and jinja2.TemplateError if an option's text does not
        render.
        """

    @staticmethod
    @abstractmethod
    def heading(answer: Any) -> str:
        """Return the form of the answer in a few words. The words are equal for all students."""

    @property
    @abstractmethod
    def asked(self) -> Sequence[str]:
        """Lines below a question's text that describe the form of an answer."""

    @property
    def of_mistakes(self) -> Self:
        """The kind of a misconception's answers, which may have values that no right answer has."""
        return self

    @abstractmethod
    def want(self, value: Any) -> Want:
        """Convert an author's answer to the form that this class compares. Raises ValueError if it is not valid."""

    @abstractmethod
    def read(self, raw: Any) -> Given:
        """Read a learner's answer, given as plain JSON. Raises only BadAnswer, whatever ``raw`` is."""

    def is_empty(self, raw: Any) -> bool:
        """Return True if the question is not answered yet."""
        return is_blank(raw)

    def distance(self, given: Given, want: Want) -> float | None:
        """Return how far ``given`` is from ``want``; None if it is too far to count as equal."""
        return 0.0 if given == want else None

    def wrong_as(self, given: Given, other: Want, want: Want) -> bool:
        """Return True if ``other``, a misconception's answer, explains all wrong parts of ``given``.

        Each part of ``given`` must be right (equal to the part of ``want``), or equal to the part of ``other``. For a
        kind of answer without parts, return False.
        """
        return False

    def share(self, given: Given, want: Want) -> float:
        """Return the fraction, from 0 to 1, of the points that the wrong answer ``given`` earns."""
        return 0.0

    def are_close(self, one: Want, other: Want) -> bool:
        """Return True if a learner's answer could count as equal to both ``one`` and ``other``."""
        return one == other

    @abstractmethod
    def shown(self, want: Want) -> str:
        """Return an author's answer as text, for the staff."""

    @abstractmethod
    def read_as(self, given: Given) -> str:
        """Return a learner's answer as text that shows how the grader understood it."""

    def written(self, want: Want) -> str:
        """Return the answer ``want`` as a learner could write it, so that ``read`` gives an equal answer."""
        return self.shown(want)

    def raw(self, text: str) -> Any:
        """Convert a result of ``written`` into the JSON value that ``read`` takes."""
        return text

    def misfit(self, given: Given) -> str:
        """Return why this answer is wrong for every variant of the question; '' if the answer may be right."""
        return ""

    def why(self, given: Given, want: Want) -> str:
        """Return a text for the learner: the likely reason why the answer ``given`` is wrong."""
        return UNKNOWN


def is_blank(raw: Any) -> bool:
    """Return True for None, and for a text that is empty or has only white space."""
    return raw is None or (isinstance(raw, str) and not raw.strip())


def literal(text: str) -> Any:
    """Return the value of a Python literal, without Python's warnings. Raises ValueError for other texts."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"this text is not a literal: {type(error).__name__}") from error


_jinja = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # texts are Markdown


def filled_in(text: str, params: Mapping[str, Any]) -> str:
    """Fill ``params`` into the template ``text``.

    Raises jinja2.TemplateError if the text is not a valid template or names a parameter that does not exist.
    """
    return _template(text).render(**params).strip()


@functools.cache
def _template(text: str) -> jinja2.Template:
    return _jinja.from_string(text)
