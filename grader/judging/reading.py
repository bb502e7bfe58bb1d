"""Read what a learner wrote for a number.

``parse`` takes text that anybody may have written, so it matches a strict grammar (one number, a few unit names)
before pint sees anything, and raises nothing but ``BadAnswer``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grader.judging.units import LONGEST, SAME, UNIT_NAME, BadAnswer, quote, unit_of

# 4077.8, 4,077.8, 4 077.8, 4'077.8, 4_077.8; then 4.0778e3, 4.0778 × 10^3, 10**3, 3 · 2^20; then 5/2.
GROUPED = r"[1-9][0-9]{0,2}(?P<sep>[, '])[0-9]{3}(?:(?P=sep)[0-9]{3})*"
NUMBER = rf"""
    (?P<sign>[+-]?)
    (?: (?P<digits> (?:{GROUPED} | [0-9]+(?:_[0-9]+)*)(?:\.[0-9]*)? | \.[0-9]+ ) (?:[eE](?P<e>[+-]?[0-9]+))? )?
    (?: (?(digits)\s*[x×*·]\s*) (?P<base>10|2)(?:\^|\*\*)(?P<open>[({{])?(?P<power>[+-]?[0-9]+)(?(open)[)}}]) )?
    (?: \s*/\s*(?P<divisor>[0-9]+(?:\.[0-9]+)?) )?
"""
# What people write before a number: "~", "≈", "about", "T =".
NEARLY = r"(?:about|around|roughly|approximately|circa)\b | (?:approx|ca)(?:\.|\b)"
BEFORE = rf"(?: (?: (?:[A-Za-z_]\w*\s*)?[=≈] | ~ | {NEARLY} ) \s* ){{0,2}}"
UNITS = rf"(?:{UNIT_NAME})?(?:\s*(?:/|\*|·|\sper\s)\s*(?:{UNIT_NAME}))*"
QUANTITY = re.compile(
    rf"\s*{BEFORE}{NUMBER}\s*(?:[*·]\s*(?=[A-Za-z%]))?(?P<unit>{UNITS})\s*\.?\s*",
    re.VERBOSE,
)
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")


@dataclass(frozen=True)
class ParsedAnswer:
    """What was read.

    Attributes:
        value: in the course's base units (seconds, bytes, FLOP, tokens and their ratios).
        dimension: what kind of quantity, as shown to learners: "a time", "an amount of data", ...
        magnitude, unit: as written; a bare number has the question's unit.
    """

    value: float
    dimension: str
    magnitude: float
    unit: str

    def __str__(self) -> str:
        return f"{self.magnitude:.6g} {self.unit}".rstrip()


def parse(raw: Any, unit: str) -> ParsedAnswer:
    """Read a learner's answer.

    Args:
        raw: a plain JSON value: a number (in the question's unit), a string with or without a unit, or
            ``{"magnitude": number, "units": text}`` (a pint quantity as it was sent).
        unit: the question's unit.

    Raises:
        BadAnswer: it cannot be read; nothing else is ever raised for any ``raw``.
    """
    if isinstance(raw, str):
        return _parse_text(raw, unit)
    if isinstance(raw, Mapping):
        return _parse_quantity(raw)
    return _answer(_float(raw), unit)


def _parse_text(text: str, unit: str) -> ParsedAnswer:
    if len(text) > LONGEST:
        raise BadAnswer(f"an answer has at most {LONGEST} characters, this has {len(text)}")
    found = QUANTITY.fullmatch(_plain_signs(text))
    if not found or not (found["digits"] or found["base"]):
        comma = re.search("[0-9],[0-9]", text)
        hint = "write a decimal point, not a comma" if comma else "write one number and a unit, like 28.5 KiB"
        raise BadAnswer(f"{quote(text)} cannot be read: {hint}")
    return _answer(_float(_value_of(found)), found["unit"].strip() or unit)


def _plain_signs(text: str) -> str:
    """The same text with one sign for each thing, and ``10³`` as ``10^3``."""
    raised = re.sub("(?<=[0-9])[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+", lambda found: "^" + found[0].translate(RAISED), text)
    return raised.translate(SAME)


def _value_of(found: re.Match[str]) -> float:
    """The number of a ``QUANTITY``; infinite where no float can hold it."""
    digits, tens, twos = re.sub("[, '_]", "", found["digits"] or "1"), int(found["e"] or 0), 0
    if found["base"] == "10":
        tens += int(found["power"])
    elif found["base"]:
        twos = int(found["power"])
    try:
        number = math.ldexp(float(f"{found['sign']}{digits}e{tens}"), twos)
        return number / float(found["divisor"] or 1)
    except OverflowError:
        return math.inf
    except ZeroDivisionError:
        raise BadAnswer(f"{quote(found[0])} cannot be read: it divides by zero") from None


def _parse_quantity(raw: Mapping[Any, Any]) -> ParsedAnswer:
    if set(raw) != {"magnitude", "units"} or not isinstance(raw["units"], str):
        raise BadAnswer("an answer is a number, a text like '28 KiB' or a quantity with a magnitude and units")
    return _answer(_float(raw["magnitude"]), raw["units"])


def _float(raw: Any) -> float:
    """A finite float, or BadAnswer."""
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise BadAnswer(f"an answer is a number or a text with a unit, not {_kind(raw)}")
    try:
        number = float(raw)
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        raise BadAnswer("nan is not a number")
    if math.isinf(number):
        raise BadAnswer("the number is too large to be read")
    return number


def _answer(number: float, unit: str) -> ParsedAnswer:
    factor, dimension = unit_of(unit)
    value = number * factor
    if not math.isfinite(value):
        raise BadAnswer("the number is too large to be read")
    return ParsedAnswer(value, dimension, number, unit.translate(SAME).strip())


def _kind(raw: Any) -> str:
    names = {bool: "True or False", list: "a list", tuple: "a tuple", type(None): "nothing"}
    return names.get(type(raw), f"a value of type {type(raw).__name__}")
