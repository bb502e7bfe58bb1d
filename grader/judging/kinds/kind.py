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

UNKNOWN = "not right, and no known misconception leads to it"


class AnswerKind(ABC, Generic[Want, Given]):
    """One kind of answer: asks for, reads, compares and shows answers.

    A *want* is the right answer: the value of an author's function after validation. A *given* is a learner's answer
    after ``read``. Texts about a wrong answer never reveal the right answer.

    Attributes:
        name: the kind's name in reports and declarations: "number" for ``exercise.number``.
        valid: a valid answer in a few words, such as "PartitionSpec".
        by_a_person: True if a person gives the points.
    """

    name: ClassVar[QuestionKind]
    valid: ClassVar[str]
    by_a_person: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def of(cls, answer: Any, drawn: Mapping[str, Any], rtol: float) -> Self:
        """Return the kind that reads and judges answers to a question.

        Args:
            answer: the question's declaration, such as ``Spec``.
            drawn: the parameters drawn for a learner.
            rtol: the relative tolerance of numbers in answers.

        Raises:
            jinja2.TemplateError: an option's text does not render.
            ValueError: two options cannot be distinguished.
        """

    @staticmethod
    @abstractmethod
    def heading(answer: Any) -> str:
        """Return the form of the answer in a few words, equal for all students."""

    @property
    @abstractmethod
    def asked(self) -> Sequence[str]:
        """Lines below a question's text that describe the form of an answer."""

    @abstractmethod
    def want(self, value: Any) -> Want:
        """Convert the value that an author's function returned to the form of a right answer.

        Raises ValueError if the value is not an answer of this kind.
        """

    @abstractmethod
    def read(self, raw: Any) -> Given:
        """Read a learner's answer, given as plain JSON. Raises only BadAnswer, for any ``raw``."""

    def is_empty(self, raw: Any) -> bool:
        """Return True if the question is not answered yet."""
        return is_blank(raw)

    def distance(self, given: Given, want: Want) -> float | None:
        """Return how far ``given`` is from ``want`` if they count as equal, else None."""
        return 0.0 if given == want else None

    def wrong_as(self, given: Given, other: Want, want: Want) -> bool:
        """Return True if ``given`` has parts, and each part equals the corresponding part of ``want`` or ``other``."""
        return False

    def share(self, given: Given, want: Want) -> float:
        """Return the part of the points that a wrong answer earns."""
        return 0.0

    def are_close(self, one: Want, other: Want) -> bool:
        """Return True if one answer could count as equal to both ``one`` and ``other``."""
        return one == other

    @abstractmethod
    def shown(self, want: Want) -> str:
        """Return an author's answer as text, for the staff."""

    @abstractmethod
    def read_as(self, given: Given) -> str:
        """Return a learner's answer as text, to show the learner how the grader read the answer."""

    def written(self, want: Want) -> str:
        """Return an answer in a form that a learner may write. ``read`` turns the text back into an equal answer."""
        return self.shown(want)

    def raw(self, text: str) -> Any:
        """Convert a text from ``written`` to the JSON value that ``read`` takes."""
        return text

    def misfit(self, given: Given) -> str:
        """Return why this answer is wrong for every variant of the question; '' if it may be right."""
        return ""

    def why(self, given: Given, want: Want) -> str:
        """Return the likely reason why an answer is wrong."""
        return UNKNOWN


def is_blank(raw: Any) -> bool:
    """Return True for None and for text of only white space."""
    return raw is None or (isinstance(raw, str) and not raw.strip())


def literal(text: str) -> Any:
    """Return the value of a Python literal, without Python's warnings. Raises only ValueError, for any text.

    Python raises a TypeError for a dict or set with a list in it that cannot be hashed, such as ``{[]: 1}``.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"this text is not a literal: {type(error).__name__}") from error


_jinja = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # the texts are Markdown, not HTML


def filled_in(text: str, params: Mapping[str, Any]) -> str:
    """Fill in a template. Raises jinja2.TemplateError if the text is no template or a parameter does not exist."""
    return _template(text).render(**params).strip()


@functools.cache
def _template(text: str) -> jinja2.Template:
    return _jinja.from_string(text)
