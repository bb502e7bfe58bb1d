"""The methods of an Exercise that declare questions, one for each kind of answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from grader import declared
from grader.declared import AuthorError
from grader.exercise import questions
from grader.exercise.arguments import EMPTY
from grader.exercise.declarations import Task
from grader.exercise.questions import Answer, Question, Scenario


class QuestionMethods:
    """The methods of an Exercise that declare questions."""

    questions: dict[str, Question]

    @abstractmethod
    def new_name(self, name: str) -> None:
        """Raise AuthorError if the exercise already has an item of this name."""

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
        title: str = "",
    ) -> Callable[[Callable[..., float]], Question]:
        """Declare a numeric question. The function's docstring is the question's text, a template for Jinja2.

        Args:
            unit: the unit of an answer that names no unit; "" for a plain number.
            params: for each parameter, the possible values. The grader draws one value at random for the question's
                text and the function.
            model: the assumptions that the answer makes about time, in words. Learners see them below the text.
            rtol: the relative tolerance; by default the course's tolerance.
            where: a function of the parameters. The grader draws only parameters for which it returns True.
            title: the label in reports; by default the text's first sentence that ends in a question mark.
        """
        answer = questions.quantity(unit, rtol)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints, title=title)

    @declared.spelt("exercise.spec")
    def spec(
        self,
        *,
        points: float,
        axes: Sequence[str],
        params: Mapping[str, Sequence[Any]] = EMPTY,
        model: str = "",
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
        title: str = "",
    ) -> Callable[[Callable[..., Iterable]], Question]:
        """Declare a question whose answer is a PartitionSpec over the mesh axes ``axes``: ``return P("x", None)``."""
        answer = questions.spec(axes)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints, title=title)

    @declared.spelt("exercise.choice")
    def choice(
        self,
        *,
        points: float,
        options: Mapping[str, str] | Sequence[str],
        params: Mapping[str, Sequence[Any]] = EMPTY,
        model: str = "",
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
        title: str = "",
    ) -> Callable[[Callable[..., str]], Question]:
        """Declare a question with several options; the function returns the key of the right option.

        The order of the options differs between learners.

        ``options``: texts (Jinja2 templates) by key. In a list, each text is its own key. Learners see the keys.
        """
        answer = questions.choice(options)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints, title=title)

    @declared.spelt("exercise.several")
    def several(
        self,
        *,
        points: float,
        options: Mapping[str, str] | Sequence[str],
        partial: bool = False,
        params: Mapping[str, Sequence[Any]] = EMPTY,
        model: str = "",
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
        title: str = "",
    ) -> Callable[[Callable[..., Iterable[str]]], Question]:
        """Declare a question that asks for all options that apply; the function returns the list of their keys.

        Args:
            options: texts by key, as for ``choice``. At least one option must apply, and at least one must not.
            partial: whether a wrong list earns a part of the points. The part is (listed right options / all right
                options) - (listed wrong options / all wrong options).
        """
        answer = questions.several(options, partial)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints, title=title)

    @declared.spelt("exercise.order")
    def order(
        self,
        *,
        points: float,
        items: Mapping[str, str] | Sequence[str],
        partial: bool = False,
        params: Mapping[str, Sequence[Any]] = EMPTY,
        model: str = "",
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
        title: str = "",
    ) -> Callable[[Callable[..., Sequence[str]]], Question]:
        """Declare a question that asks for an order; the function returns the list of all keys in the right order.

        Args:
            items: texts by key, in the same form as the options of ``choice``.
            partial: whether a wrong order earns a part of the points. The part is (pairs of items in the right order -
                pairs of items in the wrong order) / all pairs.
        """
        answer = questions.order(items, partial)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints, title=title)

    @declared.spelt("exercise.formula")
    def formula(
        self,
        *,
        points: float,
        symbols: Mapping[str, Sequence[float]],
        params: Mapping[str, Sequence[Any]] = EMPTY,
        model: str = "",
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
        title: str = "",
    ) -> Callable[[Callable[..., str]], Question]:
        """Declare a question that asks for a formula; the function returns a string: ``return "2*D/(W*X)"``.

        ``symbols``: for each symbol, 3 or more possible values. Two formulas count as equal if their values are equal
        at points that the grader chooses at random from these values.
        """
        answer = questions.formula(symbols)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints, title=title)

    @declared.spelt("exercise.table")
    def table(
        self,
        *,
        points: float,
        columns: Mapping[str, str],
        rows: Sequence[str] = (),
        params: Mapping[str, Sequence[Any]] = EMPTY,
        model: str = "",
        rtol: float | None = None,
        partial: bool = False,
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
        title: str = "",
    ) -> Callable[[Callable[..., Mapping[str, Any]]], Question]:
        """Declare a question whose answer is a short table of numbers, or a few named numbers.

        Args:
            columns: the unit of each column.
            rows: names of the rows. The function returns ``{row: {column: number}}``; without rows, ``{column:
                number}``.
            partial: whether each right number earns its part of the points. If False, an answer earns points only if
                all numbers are right.
        """
        answer = questions.table(columns, rows, rtol, partial)
        return self._ask(answer, points=points, params=params, model=model, where=where, hints=hints, title=title)

    @declared.spelt("exercise.written")
    def written(
        self,
        *,
        points: float,
        rubric: str | Mapping[str, tuple[float, str]],
        params: Mapping[str, Sequence[Any]] = EMPTY,
        where: Callable[..., bool] | None = None,
        hints: Sequence[str] = (),
        title: str = "",
    ) -> Callable[[Callable[..., str]], Question]:
        """Declare a question with an answer in words. The points of an answer are pending until a person gives them.

        The function returns a good answer, with which the staff compares a student's answer.

        Args:
            rubric: the staff's rules for points, as a text or as items to pick, each with a name, points and a text.
                Learners see only the items that a person picked for their answer.
        """
        answer = questions.written(rubric)
        return self._ask(answer, points=points, params=params, model="", where=where, hints=hints, title=title)

    @declared.spelt("exercise.code")
    def code(
        self,
        *,
        of: Task,
        points: float,
        rubric: str | Mapping[str, tuple[float, str]],
        hints: Sequence[str] = (),
        title: str = "",
    ) -> Callable[[Callable[..., str]], Question]:
        """Declare a question whose answer is the code of a task. The staff reads the code and gives the points.

        The function returns a text about good code, for the staff.

        Args:
            of: the task. For this question, students submit nothing except the task's code.
            rubric: see ``written``.
        """
        if not isinstance(of, Task):
            raise AuthorError(f"`of` is {declared.a(of)}, not a task of this exercise")
        answer = questions.code(of.name, rubric)
        return self._ask(answer, points=points, params={}, model="", where=None, hints=hints, title=title)

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
        """Declare the chip, mesh and arrays that a question assumes.

        ``exercise.scenario(time, lambda chip, X, **_: Scenario(chip=chip, rings=(X,)))``

        The scenario is declared separately from the question, because learners' files have no scenarios.

        Args:
            facts: a function of the question's parameters.
            published: answers that students could copy from a publication, in the question's unit. No choice of the
                parameters may lead to such an answer.
        """
        if not isinstance(question, Question):
            raise AuthorError(f"`scenario` is given {declared.a(question)}, not a question (@exercise.number)")
        facts = declared.function("`scenario`", facts, "lambda X: Scenario(rings=(X,))")
        declared.takes(f"the scenario of {question.name}", facts, question.params)
        question.scenario, question.published = facts, tuple(published)
