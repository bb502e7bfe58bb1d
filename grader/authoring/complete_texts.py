"""Check that a question's text states everything that its answer needs, and that options make sense in any order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from grader.authoring.keys import CODE
from grader.exercise import Choice, Exercise, Formula, Question, Written
from grader.judging.answers import kind_of, render_question, show_params, some_variants, wanted
from grader.judging.kinds.choices import LETTERS
from grader.judging.problems import VARIANT_CAP

READ = ("text", "title", "model", "params", "answer")
"""The parts of a question that learners read."""
PLACE = re.compile(r"\b(above|below|options?|answers?)\b")


def text_problems(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each question whose text is incomplete.

    A text must contain each number that the answer depends on, and each symbol of a formula. Options must not refer to
    other options by letter or place. Two questions must differ in more than their names.
    """
    for question in exercise.questions.values():
        if isinstance(question.answer, Written):
            continue
        yield from (f"{question.name}: {problem}" for problem in _unread(question))
        yield from (f"{question.name}: {problem}" for problem in _unexplained(exercise, question))
        yield from (f"{question.name}: {problem}" for problem in _placed_options(question))
    yield from _equal_questions(exercise)


def _unread(question: Question) -> Iterator[str]:
    """Yield a problem if the right answer depends on a random number that the question's text does not show."""
    first: dict[str, tuple[Mapping[str, Any], Any]] = {}
    for drawn in some_variants(question, VARIANT_CAP):
        try:
            kind, text = kind_of(question, drawn), render_question(question, drawn)
            want = wanted(question, question.fn, drawn, kind)
        except Exception:
            return
        other, known = first.setdefault(text, (drawn, want))
        if not kind.are_close(want, known):
            names = [name for name in drawn if drawn[name] != other[name]]
            some, others = (show_params({name: one[name] for name in names}) for one in (other, drawn))
            yield (
                f"learners read the same text for {some} and for {others}, but the right answers differ "
                f"({kind.shown(known)} and {kind.shown(want)}): "
                f"write {' or '.join(f'{{{{ {name} }}}}' for name in names)} into the text"
            )
            return


def _equal_questions(exercise: Exercise) -> Iterator[str]:
    known: list[Question] = []
    for question in exercise.questions.values():
        for other in known:
            if all(getattr(question, part) == getattr(other, part) for part in READ):
                yield (
                    f"{question.name}: its text, numbers and kind of answer are the same as in {other.name}: "
                    "let the two texts differ, or give each question a title"
                )
                break
        known.append(question)


def _unexplained(exercise: Exercise, question: Question) -> Iterator[str]:
    """Yield a problem for each symbol of a formula that neither the statement nor the question's text contains."""
    texts = f"{exercise.statement}\n{question.text}\n{question.model}"
    for symbol in question.answer.symbols if isinstance(question.answer, Formula) else ():
        if not re.search(rf"(?<!\w){re.escape(symbol)}(?!\w)", texts):
            yield f"no text says what the symbol {symbol} means: name it in the question's text or in the statement"


def _placed_options(question: Question) -> Iterator[str]:
    """Yield a problem for each option that names another option by letter or place.

    The order of options differs between learners.
    """
    if not isinstance(question.answer, Choice):
        return
    letters = f"[{LETTERS[0]}-{LETTERS[len(question.answer.options) - 1]}]"
    for key, text in question.answer.options.items():
        plain = CODE.sub("", text)
        named = [found[0] for found in re.finditer(rf"(?<![\w.\[(]){letters}(?![\w\[(])", plain)]
        named += re.findall(rf"(?<!\w)\({letters}\)", plain, re.IGNORECASE)
        if plain.startswith("A "):  # the article
            named = named[1:]
        if found := [*named, *PLACE.findall(plain)]:
            yield (
                f"the option {key!r} contains {found[0]!r}, which learners could take for another option. "
                "The order of the options differs between learners. "
                f"Say what {found[0]!r} means or, if it is a name, write it between backticks"
            )
