"""Answers that choose options by letter or text: one of the options, some of them, or all in order.

The options' order differs between learners.
"""

from __future__ import annotations

import itertools
import re
import string
from abc import abstractmethod
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Self

from grader.exercise import Choice, Order, Several
from grader.exercise.questions import ORDER, plain_name
from grader.judging.kinds.kind import AnswerKind, filled_in, is_blank
from grader.judging.units import LONGEST, BadAnswer, quote

LETTERS = string.ascii_uppercase
Keys = tuple[str, ...]
LETTERED = re.compile(r"[A-Za-z](?:[\s,]+[A-Za-z])*")


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


# -- several options ---------------------------------------------------------------------------


@dataclass(frozen=True)
class ListedKind(AnswerKind[Keys, Keys]):
    """A list of options.

    Attributes:
        one: the ``ChoiceKind`` that reads a single option.
        partial: True if a wrong answer may earn a part of the points.
    """

    one: ChoiceKind
    partial: bool

    @classmethod
    def of(cls, answer: Several | Order, drawn: Mapping[str, Any], rtol: float) -> Self:
        return cls(ChoiceKind.of(answer, drawn), answer.partial)

    @property
    @abstractmethod
    def form(self) -> str:
        """A sentence that says how to write an answer."""

    @property
    @abstractmethod
    def rule(self) -> str:
        """The rule of partial credit, as a sentence."""

    @property
    def asked(self) -> Sequence[str]:
        return [*self.one.listed, "", f"{self.form} {self.rule}" if self.partial else self.form]

    def want(self, value: Any) -> Keys:
        if isinstance(value, str) or not isinstance(value, Sequence | Set):
            raise ValueError(f"{value!r} is not a list of options")
        keys = tuple(self.one.want(key) for key in value)
        if len(set(keys)) < len(keys):
            raise ValueError(f"{list(keys)!r} names an option twice")
        return keys

    def read(self, raw: Any) -> Keys:
        keys = tuple(self.one.read(part) for part in self._parts(raw))
        for key in keys:
            if keys.count(key) > 1:
                raise BadAnswer(f"{quote(self.one.shown(key))} is listed twice")
        return keys

    def _parts(self, raw: Any) -> Sequence[Any]:
        if isinstance(raw, list):
            return raw
        if not isinstance(raw, str):
            raise BadAnswer('an answer is a list of letters or texts: ["...", "..."]')
        text = raw.strip().strip("[](){} ").replace('"', "").replace("'", "")
        if LETTERED.fullmatch(text):
            return re.split(r"[\s,]+", text)
        if plain_name(text) in map(plain_name, self.one.options.values()):
            return [text]  # the text of one option may contain commas
        return [part for part in re.split(r"[;\n]" if re.search(r"[;\n]", text) else ",", text) if part.strip()]

    def is_empty(self, raw: Any) -> bool:
        return raw == [] or is_blank(raw)

    def shown(self, want: Keys) -> str:
        return "; ".join(map(self.one.shown, want))

    def read_as(self, given: Keys) -> str:
        return self.shown(given)

    def written(self, want: Keys) -> str:
        return ", ".join(map(self.one.letter, want))


class SeveralKind(ListedKind):
    """An answer that lists the options that apply: at least one, not all, and in any order."""

    name = "several"
    valid = "list of options"

    @staticmethod
    def heading(answer: Choice) -> str:
        return f"some of {', '.join(LETTERS[: len(answer.options)])}"

    @property
    def form(self) -> str:
        return 'Answer with a list of the letters or texts of all that apply: ["...", "..."].'

    @property
    def rule(self) -> str:
        return (
            "You get the share of right options that you list, minus the share of wrong options that you list; a list "
            "of all options gets nothing."
        )

    def want(self, value: Any) -> Keys:
        keys = super().want(value)
        if not 0 < len(keys) < len(self.one.options):
            every = "all options" if keys else "no option"
            raise ValueError(
                f"{every} would be right; add an option such as 'none of these', "
                "so that some options are right and some are not"
            )
        return self._sorted(keys)

    def read(self, raw: Any) -> Keys:
        return self._sorted(super().read(raw))

    def _sorted(self, keys: Keys) -> Keys:
        return tuple(key for key in self.one.options if key in keys)

    def share(self, given: Keys, want: Keys) -> float:
        right, wrong = len({*given} & {*want}), len({*given} - {*want})
        least = right / len(want) - wrong / (len(self.one.options) - len(want))
        return max(0.0, least) if self.partial else 0.0

    def misfit(self, given: Keys) -> str:
        return "you listed all options: some do not apply" if len(given) == len(self.one.options) else ""


class OrderKind(ListedKind):
    """An answer that lists all items in order."""

    name = "order"
    valid = "order of all items"

    @staticmethod
    def heading(answer: Choice) -> str:
        return f"an order of {', '.join(LETTERS[: len(answer.options)])}"

    @property
    def form(self) -> str:
        return 'Answer with a list of the letters or texts of all items, in order: ["...", "..."].'

    @property
    def rule(self) -> str:
        return "You get the share of pairs in the right order, minus the share of pairs in the wrong order."

    def want(self, value: Any) -> Keys:
        if isinstance(value, Set):
            raise ValueError(f"{value!r} has no order: return a list")
        keys = super().want(value)
        if missing := [key for key in self.one.options if key not in keys]:
            raise ValueError(f"{list(keys)!r} lacks {', '.join(missing)}")
        return keys

    def read(self, raw: Any) -> Keys:
        keys = super().read(raw)
        for key in self.one.options:
            if key not in keys:
                raise BadAnswer(f"{quote(self.one.shown(key))} is missing: list all {len(self.one.options)} items")
        return keys

    def share(self, given: Keys, want: Keys) -> float:
        pairs = list(itertools.combinations(want, 2))
        right = sum(given.index(first) < given.index(second) for first, second in pairs)
        return max(0.0, 2 * right / len(pairs) - 1) if self.partial else 0.0
