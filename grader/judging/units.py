"""Numbers with units: read what a learner wrote, and name the kind of quantity that a unit measures.

``parse`` accepts untrusted text, so the library pint gets only unit names that match a strict grammar. Values are
converted to the course's base units: seconds, bytes, FLOP, tokens and their ratios.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pint

LONGEST = 100
"""The largest number of characters in an answer."""


class BadAnswer(ValueError):
    """An answer that cannot be read; the message is one line for the learner."""


# These definitions replace pint's default registry, in which b is a barn, Gb is a gilbert and kB has no dimension.
PREFIXES = (
    "pico- = 1e-12 = p-", "nano- = 1e-9 = n-", "micro- = 1e-6 = u-", "milli- = 1e-3 = m-", "kilo- = 1e3 = k-",
    "mega- = 1e6 = M-", "giga- = 1e9 = G-", "tera- = 1e12 = T-", "peta- = 1e15 = P-", "exa- = 1e18 = E-",
    "kibi- = 2**10 = Ki-", "mebi- = 2**20 = Mi-", "gibi- = 2**30 = Gi-", "tebi- = 2**40 = Ti-", "pebi- = 2**50 = Pi-",
)  # fmt: skip
UNITS = (
    "second = [time] = s = sec",
    "minute = 60 * second = min",
    "hour = 3600 * second = h",
    "day = 86400 * second = d",
    "byte = [data] = B",
    "bit = byte / 8 = b",
    "KB = 1000 * byte",  # KB and kiB are common misspellings of kB and KiB
    "kiB = 1024 * byte",
    "bps = bit / second",
    "Bps = byte / second",
    "FLOP = [flop] = flop = OP",
    "FLOPS = FLOP / second",
    "token = [token] = tok",
    "percent = 0.01",
)
COUNTS = ("count", "hop", "step", "round", "chip", "device", "GPU", "element", "parameter", "param", "layer", "x")
"""Names of counted things, which change neither the value nor its dimension."""
DIMENSIONS: dict[tuple[tuple[str, float], ...], str] = {
    (): "a plain number",
    (("[time]", 1),): "a time",
    (("[data]", 1),): "an amount of data",
    (("[data]", 1), ("[time]", -1)): "a bandwidth",
    (("[flop]", 1),): "a number of FLOPs",
    (("[flop]", 1), ("[time]", -1)): "a FLOP rate",
    (("[data]", -1), ("[flop]", 1)): "an arithmetic intensity",
    (("[token]", 1),): "a number of tokens",
    (("[time]", -1), ("[token]", 1)): "a token rate",
    (("[data]", 1), ("[token]", -1)): "an amount of data per token",
    (("[flop]", 1), ("[token]", -1)): "a number of FLOPs per token",
}
OF_DATA = {name for key, name in DIMENSIONS.items() if "[data]" in dict(key)}
COUNTED = {DIMENSIONS[()], DIMENSIONS[(("[token]", 1),)]}
"""The dimensions of plain numbers and of token counts. Wrong answers of these dimensions rarely have a wrong unit."""
UNIT_NAME = r"[A-Za-z]+|%"
UNIT_TEXT = re.compile(rf"(?:{UNIT_NAME})(?:\s*(?:/|\*|·|\sper\s)\s*(?:{UNIT_NAME}))*")
SAME = str.maketrans(
    {"µ": "u", "μ": "u", "−": "-", "’": "'", "∼": "~", "≃": "≈", "≅": "≈", "⋅": "·", "∙": "·", "∗": "*"}
    | dict.fromkeys("\u00a0\u2007\u2009\u202f", " ")
)
_pint = threading.Lock()


@contextlib.contextmanager
def _absent(package: str) -> Iterator[None]:
    """Make imports of a package fail inside the block, unless the package is already imported."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # pyright: ignore[reportArgumentType]  # as importlib documents
    try:
        yield
    finally:
        del sys.modules[package]


@functools.cache
def _registry() -> pint.UnitRegistry:
    """Return a registry of pint with only the course's units.

    Only this function imports pint, because the import takes 1/3 s and most commands need no unit.
    """
    with _absent("dask"):  # pint would import dask, which we do not use
        import pint

    registry = pint.UnitRegistry(None)  # pyright: ignore[reportArgumentType]  # None is "empty", as pint documents
    for line in (*PREFIXES, *UNITS, *(f"{name} = 1" for name in COUNTS)):
        registry.define(line)
    return registry


def unit_of(unit: str) -> tuple[float, str]:
    """Return a unit's factor to base units and its kind of quantity: ``unit_of("us") -> (1e-6, "a time")``.

    Raises BadAnswer if the unit is unknown.
    """
    with _pint:  # pint's registry is not thread-safe, and only one registry may exist
        return _unit_of(unit)


@functools.lru_cache(maxsize=1024)
def _unit_of(unit: str) -> tuple[float, str]:
    text = unit.translate(SAME).strip()
    if text in ("", "1", "dimensionless"):
        return 1.0, DIMENSIONS[()]
    if len(text) > LONGEST or not UNIT_TEXT.fullmatch(text):
        raise BadAnswer(f"the unit {quote(unit)} cannot be read; write, for example, ms, KiB, GB/s or TFLOP/s")
    total: Any = _registry().Quantity(1.0)
    for i, (sign, name) in enumerate(_tokens(text)):
        if i == 4:
            raise BadAnswer(f"the unit {quote(unit)} has too many parts")
        total = total / _one(name) if sign == "/" else total * _one(name)
    base = total.to_base_units()
    key = tuple(sorted((str(k), float(v)) for k, v in base.dimensionality.items()))
    return float(base.magnitude), DIMENSIONS.get(key, f"a quantity in {base.units}")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    parts = re.split(r"\s*(/|\*|·|\sper\s)\s*", text)
    signs = ["*", *("/" if p.strip() in ("/", "per") else "*" for p in parts[1::2])]
    return zip(signs, parts[::2], strict=True)


def _one(name: str) -> Any:
    registry = _registry()
    from pint.errors import PintError

    try:
        return registry.Quantity(1.0, "percent" if name == "%" else name)
    except (PintError, AttributeError, ValueError, TypeError) as error:
        raise BadAnswer(f"unknown unit {quote(name)}: write for instance us, ms, KiB, GB/s, FLOP or token") from error


def show(value: float, unit: str) -> str:
    """Return a value in base units as text in ``unit``: ``show(559e-6, "us") -> "559 us"``."""
    return f"{value / unit_of(unit)[0]:.6g} {unit}".rstrip()


def quote(text: str) -> str:
    """Return the learner's text, shortened and on one line, for a message."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


# NUMBER matches 4077.8, 4,077.8, 4 077.8, 4'077.8, 4_077.8, 4.0778e3, 4.0778 × 10^3, 10**3, 3 · 2^20 and 5/2.
GROUPED = r"[1-9][0-9]{0,2}(?P<sep>[, '])[0-9]{3}(?:(?P=sep)[0-9]{3})*"
NUMBER = rf"""
    (?P<sign>[+-]?)
    (?: (?P<digits> (?:{GROUPED} | [0-9]+(?:_[0-9]+)*)(?:\.[0-9]*)? | \.[0-9]+ ) (?:[eE](?P<e>[+-]?[0-9]+))? )?
    (?: (?(digits)\s*[x×*·]\s*) (?P<base>10|2)(?:\^|\*\*)(?P<open>[({{])?(?P<power>[+-]?[0-9]+)(?(open)[)}}]) )?
    (?: \s*/\s*(?P<divisor>[0-9]+(?:\.[0-9]+)?) )?
"""
# Text that learners may write before a number: "~", "≈", "about", "T =".
NEARLY = r"(?:about|around|roughly|approximately|circa)\b | (?:approx|ca)(?:\.|\b)"
BEFORE = rf"(?: (?: (?:[A-Za-z_]\w*\s*)?[=≈] | ~ | {NEARLY} ) \s* ){{0,2}}"
WRITTEN_UNITS = rf"(?:{UNIT_NAME})?(?:\s*(?:/|\*|·|\sper\s)\s*(?:{UNIT_NAME}))*"
QUANTITY = re.compile(
    rf"\s*{BEFORE}{NUMBER}\s*(?:[*·]\s*(?=[A-Za-z%]))?(?P<unit>{WRITTEN_UNITS})\s*\.?\s*",
    re.VERBOSE,
)
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")


@dataclass(frozen=True)
class ParsedAnswer:
    """An answer to a number question, read as a value with a dimension.

    Attributes:
        value: the answer in the course's base units (seconds, bytes, FLOP, tokens and their ratios).
        dimension: the kind of quantity as shown to learners: "a time", "an amount of data", ...
        magnitude, unit: the number and the unit as written. A number without a unit has the question's unit.
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
        raw: a plain JSON value: a number (in the question's unit), a string with or without a unit, or ``{"magnitude":
            number, "units": text}`` (a pint quantity).
        unit: the question's unit.

    Raises:
        BadAnswer: the answer cannot be read. The function raises no other exception, whatever ``raw`` is.
    """
    if isinstance(raw, str):
        return _parse_text(raw, unit)
    if isinstance(raw, Mapping):
        return _parse_quantity(raw)
    return _answer(_float(raw), unit)


def _parse_text(text: str, unit: str) -> ParsedAnswer:
    if len(text) > LONGEST:
        raise BadAnswer(f"an answer has at most {LONGEST} characters, but this answer has {len(text)}")
    found = QUANTITY.fullmatch(_plain_signs(text))
    if not found or not (found["digits"] or found["base"]):
        comma = re.search("[0-9],[0-9]", text)
        hint = "write a decimal point, not a comma" if comma else "write one number and a unit, like 28.5 KiB"
        raise BadAnswer(f"{quote(text)} cannot be read: {hint}")
    return _answer(_float(_value_of(found)), found["unit"].strip() or unit)


def _plain_signs(text: str) -> str:
    """Replace all variants of a sign, such as the minus sign, by one variant, and write ``10³`` as ``10^3``."""
    raised = re.sub("(?<=[0-9])[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+", lambda found: "^" + found[0].translate(RAISED), text)
    return raised.translate(SAME)


def _value_of(found: re.Match[str]) -> float:
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
