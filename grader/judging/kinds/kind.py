"""What every kind of answer can do, and how texts of questions and options are filled in."""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import jinja2

Want = TypeVar("Want")
Given = TypeVar("Given")

UNKNOWN = "not right, and no known misconception leads to it"


class AnswerKind(Protocol[Want, Given]):
    """How one kind of answer is asked for, read, compared and shown.

    A *want* is what an author's function answers, once it is proved to be of the kind; a *given* is what was read of a
    learner's. What is said of a wrong one never tells the right one.
    """

    @property
    def asked(self) -> Sequence[str]:
        """Lines below a question's text that say what an answer looks like."""
        ...

    def want(self, value: Any) -> Want:
        """What an author's function returned. Raises ValueError where it is no answer of this kind."""
        ...

    def read(self, raw: Any) -> Given:
        """What a learner gave, as plain JSON. Raises BadAnswer, and nothing else for any ``raw``."""
        ...

    def is_empty(self, raw: Any) -> bool:
        """Whether nothing was answered yet."""
        ...

    def distance(self, given: Given, want: Want) -> float | None:
        """How far the two are apart where they count as the same, else None."""
        ...

    def are_close(self, one: Want, other: Want) -> bool:
        """Whether one answer could be taken for both."""
        ...

    def shown(self, want: Want) -> str:
        """An author's answer, for the staff."""
        ...

    def read_as(self, given: Given) -> str:
        """A learner's answer, shown back."""
        ...

    def written(self, want: Want) -> str:
        """An answer as a learner may write it, of which ``read`` makes the same."""
        ...

    def misfit(self, given: Given) -> str:
        """Why no right answer can be like that, whatever the right one is; '' where one can."""
        ...

    def why(self, given: Given, want: Want) -> str:
        """Why a wrong answer may be wrong."""
        ...


def is_blank(raw: Any) -> bool:
    """None, or text without a letter."""
    return raw is None or (isinstance(raw, str) and not raw.strip())


def literal(text: str) -> Any:
    """What a text is as a Python literal; what Python would warn of in it is nobody's to read.

    Raises ValueError, SyntaxError, RecursionError or MemoryError for what is none.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)


_jinja = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # Markdown, not HTML


def filled_in(text: str, params: Mapping[str, Any]) -> str:
    """Raises jinja2.TemplateError where the text is no template or names a parameter that does not exist."""
    return _template(text).render(**params).strip()


@functools.cache
def _template(text: str) -> jinja2.Template:
    return _jinja.from_string(text)
