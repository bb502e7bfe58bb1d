"""Answers that choose one of several options by letter or text. The options' order differs between learners."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.exercise import Choice
from grader.exercise.questions import ORDER, plain_name
from grader.judging.kinds.kind import AnswerKind, filled_in
from grader.judging.units import LONGEST, BadAnswer, quote

LETTERS = string.ascii_uppercase


@dataclass(frozen=True)
class ChoiceKind(AnswerKind[str, str]):
    """A choice; ``options`` maps each option's key to its text, in the order in which the learner sees them."""

    options: Mapping[str, str]

    name = "choice"
    valid = "option"

    @classmethod
    def of(cls, answer: Choice, drawn: Mapping[str, Any], rtol: float = 0.0) -> ChoiceKind:
        """Return a ChoiceKind with the learner's parameters filled into the options' texts.

        Raises ValueError if two options cannot be distinguished, and jinja2.TemplateError if a text does not render.
        """
        params = {name: value for name, value in drawn.items() if name != ORDER}
        options = answer.options
        texts = {key: " ".join(filled_in(options[key], params).split()) for key in drawn.get(ORDER, options)}
        kind = cls(texts)
        plain = [_plain(text) for text in texts.values()]
        letters = {letter.casefold() for letter in LETTERS[: len(texts)]}
        for text in texts.values():
            if plain.count(_plain(text)) > 1 or _plain(text) in letters:
                raise ValueError(f"the option {text!r} is equal to another option, or to the letter of an option")
        return kind

    @staticmethod
    def heading(answer: Choice) -> str:
        return f"one of {', '.join(LETTERS[: len(answer.options)])}"

    @property
    def listed(self) -> Sequence[str]:
        return [f"- {letter}: {text}" for letter, text in zip(LETTERS, self.options.values(), strict=False)]

    @property
    def asked(self) -> Sequence[str]:
        return [*self.listed, "", "Answer with the letter or the text of one option."]

    def letter(self, key: str) -> str:
        return LETTERS[list(self.options).index(key)]

    def want(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self.options:
            raise ValueError(f"{value!r} is not one of the options {', '.join(self.options)}")
        return value

    def read(self, raw: Any) -> str:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise BadAnswer(f"answer with {self._letters()}, or with the text of one option")
        text = _plain(str(int(raw)) if isinstance(raw, float) and raw.is_integer() else str(raw))
        if (lettered := self._by_letter(text)) is not None:
            return lettered
        found = self._by_text(text)
        if len(found) != 1 or len(text) > max(LONGEST, *map(len, self.options.values())):
            several = " is the start of several options" if len(found) > 1 else " is not an option"
            raise BadAnswer(
                f"{quote(str(raw))}{several}: answer with {self._letters()}, or with the text of one option"
            )
        return found[0]

    def _by_letter(self, text: str) -> str | None:
        """Return the key of the option that a letter in ``text`` names: ``b``, ``(b)`` or ``b: text``; else None."""
        lettered = dict(zip(LETTERS.casefold(), self.options, strict=False))
        if (letter := text.strip("()[].: ")) in lettered:
            return lettered[letter]
        head, colon, tail = text.partition(":")
        key = lettered.get(head.strip("()[]. "))
        return key if colon and key is not None and _plain(self.options[key]) == tail.strip() else None

    def _by_text(self, text: str) -> list[str]:
        """Return the keys of the matching options: by equal text, else by equal key, else by the text's beginning."""
        plain = {key: _plain(option) for key, option in self.options.items()}
        return (
            [key for key, option in plain.items() if text == option]
            or [key for key in plain if text == _plain(key)]
            or [key for key, option in plain.items() if option.startswith(text)]
        )

    def shown(self, want: str) -> str:
        return f"{self.letter(want)}: {self.options[want]}"

    def read_as(self, given: str) -> str:
        return self.shown(given)

    def written(self, want: str) -> str:
        return self.options[want]

    def _letters(self) -> str:
        *most, last = LETTERS[: len(self.options)]
        return f"{', '.join(most)} or {last}"


def _plain(text: str) -> str:
    return plain_name(text.replace("`", "")).rstrip(".!")  # so learners need not copy backticks
