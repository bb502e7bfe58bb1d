"""The questions of an Exercise: numbers, PartitionSpecs, choices, tables, texts, and their scenarios."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from grader import declared
from grader.declared import AuthorError
from grader.exercise import questions
from grader.exercise.arguments import NOTHING
from grader.exercise.questions import Answer, Question, Scenario


class Asks:
    """The part of an Exercise that declares questions."""

    questions: dict[str, Question]

    @abstractmethod
    def new_name(self, name: str) -> None:
        """Raises AuthorError for a name that the exercise has."""

    @declared.spelt("exercise.number")
    def number(
        self,
        *,
        points: float,
        unit: str,
        params: Mapping[str, Sequence[Any]],
        model: str = "",
        rtol: float | None = None,
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
    ) -> Callable[[Callable[..., float]], Question]:
        """A numeric question; the docstring is its text (Jinja2 over the parameters)."""
        answer = questions.quantity(unit, rtol)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints)

    @declared.spelt("exercise.spec")
    def spec(
        self,
        *,
        points: float,
        axes: Sequence[str],
        params: Mapping[str, Sequence[Any]] = NOTHING,
        model: str = "",
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
    ) -> Callable[[Callable[..., Iterable]], Question]:
        """A question whose answer is a PartitionSpec over these mesh axes: ``return P("x", None)``."""
        answer = questions.spec(axes)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints)

    @declared.spelt("exercise.choice")
    def choice(
        self,
        *,
        points: float,
        options: Mapping[str, str] | Sequence[str],
        params: Mapping[str, Sequence[Any]] = NOTHING,
        model: str = "",
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
    ) -> Callable[[Callable[..., str]], Question]:
        """A question whose answer is one of the options; the function returns its key.

        Each learner gets the options in an order of their own.

        Args:
            options: text (Jinja2 over the parameters) by key, or texts that are their own keys. Learners see the keys.
        """
        answer = questions.choice(options)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints)

    @declared.spelt("exercise.table")
    def table(
        self,
        *,
        points: float,
        columns: Mapping[str, str],
        rows: Sequence[str] = (),
        params: Mapping[str, Sequence[Any]] = NOTHING,
        model: str = "",
        rtol: float | None = None,
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
    ) -> Callable[[Callable[..., Mapping[str, Any]]], Question]:
        """A question whose answer is a short table of numbers, or a few numbers with names.

        Args:
            columns: the unit of each column.
            rows: names of the rows; ``{row: {column: number}}`` is returned. None: ``{column: number}``.
        """
        answer = questions.table(columns, rows, rtol)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints)

    @declared.spelt("exercise.written")
    def written(
        self,
        *,
        points: float,
        rubric: str,
        params: Mapping[str, Sequence[Any]] = NOTHING,
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
    ) -> Callable[[Callable[..., str]], Question]:
        """A question that is answered in words, which a person reads: its points are pending until one gives them.

        Its function returns a good answer, for who grades.

        Args:
            rubric: what gets which points, for who grades; no learner gets it.
        """
        answer = questions.written(rubric)
        return self._ask(answer, points=points, params=params, model="", where=where, hints=hints)

    def _ask(self, answer: Answer, **options: Any) -> Callable[[Callable[..., Any]], Question]:
        made = questions.declared_question(answer, **options)

        def add(fn: Callable[..., Any]) -> Question:
            self.new_name(fn.__name__)
            question = made(fn)
            self.questions[question.name] = question
            return question

        return add

    @declared.spelt("exercise.scenario")
    def scenario(self, question: Question, facts: Callable[..., Scenario], *, published: Sequence[float] = ()) -> None:
        """Name the chip, mesh and arrays of a question.

        ``exercise.scenario(time, lambda chip, X, **_: Scenario(chip=chip, rings=(X,)))``

        It is a statement of its own, so that learners do not get it with the question.

        Args:
            facts: a function of the question's parameters.
            published: answers, in the question's unit, that no draw may have, since they can be read elsewhere.
        """
        if not isinstance(question, Question):
            raise AuthorError(f"scenario is given {declared.a(question)}, not a question (@exercise.number)")
        facts = declared.function("scenario", facts, "lambda X: Scenario(rings=(X,))")
        declared.takes(f"the scenario of {question.name}", facts, question.params)
        question.scenario, question.published = facts, tuple(published)
