"""Numeric answers: read what a learner wrote, judge it, print the question, prove the question.

``parse`` takes text from strangers, so it matches a strict grammar (one number, a few unit names)
before pint sees anything, and raises nothing but ``BadAnswer``. Values are kept in the course's
base: seconds, bytes, FLOP, tokens and their ratios.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jinja2
import pint
import pint.errors

from grader import hardware
from grader.common.result import Result
from grader.exercise import Misconception, Number

LONGEST = 100
"""Characters an answer may have."""

KIB_RTOL = 0.004
"""How near an answer must be to the kB/KiB slip: the slip is only 2.4 % and its powers would cover all near misses."""

VARIANT_CAP = 4000
"""Variants of one question that ``question_problems`` looks at."""


class BadAnswer(ValueError):
    """An answer that cannot be read; the message is one line for the learner."""


@dataclass(frozen=True)
class Answer:
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


# -- units -------------------------------------------------------------------------------------

# A registry of our own: in pint's default one, b is a barn, Gb a gilbert and kB has no dimension.
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
    "KB = 1000 * byte",  # as people write it; kiB likewise
    "kiB = 1024 * byte",
    "bps = bit / second",
    "Bps = byte / second",
    "FLOP = [flop] = flop = OP",
    "FLOPS = FLOP / second",
    "token = [token] = tok",
    "percent = 0.01",
)
COUNTS = ("count", "hop", "step", "round", "chip", "device", "GPU", "element", "parameter", "param", "layer", "x")
"""Names that count things: plain numbers with or without them."""

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

# 4077.8, 4,077.8, 4 077.8, 4'077.8, 4_077.8; then 4.0778e3, 4.0778 × 10^3, 10**3, 3 · 2^20; then 5/2.
GROUPED = r"[1-9][0-9]{0,2}(?P<sep>[, '])[0-9]{3}(?:(?P=sep)[0-9]{3})*"
NUMBER = rf"""
    (?P<sign>[+-]?)
    (?: (?P<digits> (?:{GROUPED} | [0-9]+(?:_[0-9]+)*)(?:\.[0-9]*)? | \.[0-9]+ ) (?:[eE](?P<e>[+-]?[0-9]+))? )?
    (?: (?(digits)\s*[x×*·]\s*) (?P<base>10|2)(?:\^|\*\*)(?P<open>[({{])?(?P<power>[+-]?[0-9]+)(?(open)[)}}]) )?
    (?: \s*/\s*(?P<divisor>[0-9]+(?:\.[0-9]+)?) )?
"""
# What people write before a number: "~", "≈", "about", "T =".
BEFORE = r"(?: (?: (?:[A-Za-z_]\w*\s*)?[=≈] | ~ | (?:about|around|roughly|approximately|circa)\b | (?:approx|ca)(?:\.|\b) ) \s* ){0,2}"
UNIT_NAME = r"[A-Za-z]+|%"
QUANTITY = re.compile(
    rf"\s*{BEFORE}{NUMBER}\s*(?:[*·]\s*(?=[A-Za-z%]))?(?P<unit>(?:{UNIT_NAME})?(?:\s*(?:/|\*|·|\sper\s)\s*(?:{UNIT_NAME}))*)\s*\.?\s*",
    re.VERBOSE,
)
UNIT_TEXT = re.compile(rf"(?:{UNIT_NAME})(?:\s*(?:/|\*|·|\sper\s)\s*(?:{UNIT_NAME}))*")
SAME = str.maketrans(
    {"µ": "u", "μ": "u", "−": "-", "’": "'", "∼": "~", "≃": "≈", "≅": "≈", "⋅": "·", "∙": "·", "∗": "*"}
    | dict.fromkeys("\u00a0\u2007\u2009\u202f", " ")
)
RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")


_pint = threading.Lock()


@functools.cache
def _registry() -> pint.UnitRegistry:
    registry = pint.UnitRegistry(None)  # pyright: ignore[reportArgumentType]  # None is "empty", as pint documents
    for line in (*PREFIXES, *UNITS, *(f"{name} = 1" for name in COUNTS)):
        registry.define(line)
    return registry


def unit_of(unit: str) -> tuple[float, str]:
    """A unit's factor to the base units and the kind of quantity it measures: ``("us") -> (1e-6, "a time")``.

    Raises:
        BadAnswer: no such unit.
    """
    with _pint:  # a registry is not made for several threads, and there must be only one
        return _unit_of(unit)


@functools.lru_cache(maxsize=1024)
def _unit_of(unit: str) -> tuple[float, str]:
    text = unit.translate(SAME).strip()
    if text in ("", "1", "dimensionless"):
        return 1.0, DIMENSIONS[()]
    if len(text) > LONGEST or not UNIT_TEXT.fullmatch(text):
        raise BadAnswer(f"the unit {_quote(unit)} cannot be read: write it like us, KiB, GB/s or TFLOP/s")
    total: Any = _registry().Quantity(1.0)
    for i, (sign, name) in enumerate(_tokens(text)):
        if i == 4:
            raise BadAnswer(f"the unit {_quote(unit)} has too many parts")
        total = total / _one(name) if sign == "/" else total * _one(name)
    base = total.to_base_units()
    key = tuple(sorted((str(k), float(v)) for k, v in base.dimensionality.items()))
    return float(base.magnitude), DIMENSIONS.get(key, f"a quantity in {base.units}")


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    parts = re.split(r"\s*(/|\*|·|\sper\s)\s*", text)
    signs = ["*", *("/" if p.strip() in ("/", "per") else "*" for p in parts[1::2])]
    return zip(signs, parts[::2], strict=True)


def _one(name: str) -> Any:
    try:
        return _registry().Quantity(1.0, "percent" if name == "%" else name)
    except (pint.errors.PintError, AttributeError, ValueError, TypeError) as error:
        raise BadAnswer(f"unknown unit {_quote(name)}: write for instance us, ms, KiB, GB/s, FLOP or token") from error


# -- reading -----------------------------------------------------------------------------------


def parse(raw: Any, unit: str) -> Answer:
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


def _parse_text(text: str, unit: str) -> Answer:
    if len(text) > LONGEST:
        raise BadAnswer(f"an answer has at most {LONGEST} characters, this has {len(text)}")
    found = QUANTITY.fullmatch(_plain_signs(text))
    if not found or not (found["digits"] or found["base"]):
        comma = re.search("[0-9],[0-9]", text)
        hint = "write a decimal point, not a comma" if comma else "write one number and a unit, like 28.5 KiB"
        raise BadAnswer(f"{_quote(text)} cannot be read: {hint}")
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
        raise BadAnswer(f"{_quote(found[0])} cannot be read: it divides by zero") from None


def _parse_quantity(raw: Mapping[Any, Any]) -> Answer:
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


def _answer(number: float, unit: str) -> Answer:
    factor, dimension = unit_of(unit)
    value = number * factor
    if not math.isfinite(value):
        raise BadAnswer("the number is too large to be read")
    return Answer(value, dimension, number, unit.translate(SAME).strip())


def _kind(raw: Any) -> str:
    names = {bool: "True or False", list: "a list", tuple: "a tuple", type(None): "nothing"}
    return names.get(type(raw), f"a value of type {type(raw).__name__}")


def _quote(text: str) -> str:
    """The learner's text on one line, cut short."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


# -- judging -----------------------------------------------------------------------------------


def judge(
    question: Number,
    params: Mapping[str, Any],
    misconceptions: Iterable[Misconception],
    raw: Any,
) -> Result:
    """The verdict on one answer to one variant of a question.

    Args:
        misconceptions: the exercise's; those of other questions are passed over.
        raw: the plain JSON value from the submission; None or blank: not answered.

    Returns:
        A Result whose ``reason`` and ``hint`` never tell the expected value; ``expected`` (for the staff) does.
        A question of ours that gives no finite positive answer is ``broken``.
    """
    result = functools.partial(
        Result, kind="number", name=question.name, label=label_of(question, params), task=question.name,
        points=question.points, public=False,
    )  # fmt: skip
    try:
        want = _finite(question, params)
        asked = unit_of(question.unit)[1]
    except Exception as error:  # an author's mistake must not cost a learner points
        return result(status="broken", earned=0, reason=f"the question has no answer of ours: {_one_line(error)}")
    told = functools.partial(result, status="failed", earned=0, expected=show(want, question.unit))
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return told(reason="not answered yet")
    try:
        answer = parse(raw, question.unit)
    except BadAnswer as error:
        return told(reason=str(error))
    told = functools.partial(told, actual=f"read as {answer}")
    if answer.dimension != asked:
        return told(reason=f"{asked} was asked, you gave {answer.dimension}")
    if is_close(answer.value, want, question.rtol):
        return told(status="passed", earned=question.points)
    slip = nearest_slip(question, params, misconceptions, answer.value)
    if slip:
        return told(reason="this is the number a known slip leads to", hint=slip.hint, misconception=slip.name)
    return told(reason=_generic_slip(answer, want, question))


def is_close(got: float, want: float, rtol: float) -> bool:
    """Within the tolerance; NaN never is."""
    return abs(got - want) <= rtol * abs(want)


def nearest_slip(
    question: Number, params: Mapping[str, Any], misconceptions: Iterable[Misconception], value: float
) -> Misconception | None:
    """The misconception of this question whose number is nearest to ``value``, within tolerance."""
    near: list[tuple[float, str, Misconception]] = []
    for slip in _slips_of(question, misconceptions):
        try:
            wrong = _finite(slip.fn, params)
        except Exception:  # a slip that has no number for these parameters (verify reports it) matches nothing
            continue
        if is_close(value, wrong, question.rtol):
            near.append((abs(value - wrong) / wrong, slip.name, slip))
    return min(near)[2] if near else None


def _generic_slip(answer: Answer, want: float, question: Number) -> str:
    """Why a wrong number may be wrong, without telling the right one."""
    got, rtol = answer.value, question.rtol
    if got <= 0:
        return f"the answer is positive, you gave {answer}"
    if is_close(answer.magnitude * unit_of(question.unit)[0], want, rtol):
        return f"the digits are right but the unit is not: you gave {answer}"
    if _off_by(got, want, 1000.0, rtol):
        return "the digits are right but the unit is not: you are off by a power of 1000"
    if answer.dimension not in OF_DATA:
        pass  # a time, a count or a rate of FLOPs has no bytes to mix up
    elif _off_by(got, want, 1.024, min(rtol, KIB_RTOL)):
        return "this looks like kB and KiB mixed up: 1 kB is 1000 B, 1 KiB is 1024 B (MB and MiB, GB and GiB likewise)"
    elif _off_by(got, want, 8.0, rtol, powers=(1, -1)):
        return "this looks like bits and bytes mixed up: b is a bit, B is a byte of 8 bits"
    if 1e-3 < got / want < 1e3:
        return "not right, and no slip we know; the size is plausible, so look at the formula before the units"
    return "not right: off by more than a factor of 1000, so look at the units first"


def _off_by(
    got: float, want: float, base: float, rtol: float, powers: Iterable[int] = (1, -1, 2, -2, 3, -3, 4, -4)
) -> bool:
    return any(is_close(got, want * base**k, rtol) for k in powers)


def _slips_of(question: Number, misconceptions: Iterable[Misconception]) -> Iterator[Misconception]:
    return (m for m in misconceptions if isinstance(m.of, Number) and m.of.name == question.name)


def _finite(fn: Callable[..., Any], params: Mapping[str, Any]) -> float:
    value = float(fn(**params))
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{value!r} is not a finite positive number")
    return value


def show(value: float, unit: str) -> str:
    """A value in base units as text in ``unit``: ``show(559e-6, "us") -> "559 us"``."""
    return f"{value / unit_of(unit)[0]:.6g} {unit}".rstrip()


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:200]


# -- printing ----------------------------------------------------------------------------------

_jinja = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)  # Markdown, not HTML


def render_text(question: Number, params: Mapping[str, Any]) -> str:
    """The question's own text with its parameters filled in.

    Raises:
        jinja2.TemplateError: the text is not a template or names a parameter that does not exist.
    """
    text = _template(question.text).render(**params).strip()
    return "\n\n".join(_flowing(paragraph) for paragraph in text.split("\n\n"))


@functools.cache
def _template(text: str) -> jinja2.Template:
    return _jinja.from_string(text)


def _flowing(paragraph: str) -> str:
    """One line, for whoever shows it to break; lists, tables and code keep their lines."""
    lines = paragraph.splitlines()
    return paragraph if any(re.match(r"[-*|\s]|```|\d+\.\s", line) for line in lines) else " ".join(lines)


def render_question(question: Number, params: Mapping[str, Any]) -> str:
    """All a learner gets: the text, the unit, the time model and the row of the hardware table."""
    lines = [render_text(question, params), "", _say_unit(question.unit)]
    if question.model:
        lines.append(f"Model: {question.model}.")
    chips = dict.fromkeys(v for k, v in params.items() if k == "chip" or hardware.is_known(v))
    return "\n".join([*lines, *(f"Hardware: {hardware.describe(c)}." for c in chips)])


def label_of(question: Number, params: Mapping[str, Any]) -> str:
    """The first sentence of the rendered text, or the name where the text cannot be rendered."""
    try:
        text = " ".join(render_text(question, params).split())
    except jinja2.TemplateError:
        return question.name
    return re.split(r"(?<=[.?!])\s", text, maxsplit=1)[0] or question.name


def _say_unit(unit: str) -> str:
    factor, dimension = unit_of(unit)
    if dimension == DIMENSIONS[()] and factor == 1:
        return "Answer with a bare number."
    return f"Answer in {unit} (a bare number), or with a unit."


# -- proving -----------------------------------------------------------------------------------


def question_problems(question: Number, misconceptions: Iterable[Misconception]) -> Iterator[str]:
    """What is wrong with a question, over every variant (at most ``VARIANT_CAP``, drawn evenly): one line each.

    A problem is a text that does not render, an answer (right or a slip's) that is not finite and
    positive, and two answers closer than the tolerance. Each is told once, with the first variant it shows in.
    """
    try:
        unit_of(question.unit)
    except BadAnswer as error:
        yield f"{question.name}: {error}"
        return
    slips = list(_slips_of(question, misconceptions))
    variants = list(question.variants())
    if not variants:
        yield f"{question.name}: no parameters satisfy its `where`"
    if len(variants) > VARIANT_CAP:
        variants = random.Random(question.name).sample(variants, VARIANT_CAP)
    first: dict[str, str] = {}
    count: dict[str, int] = {}
    for params in variants:
        for problem, detail in _variant_problems(question, slips, params):
            first.setdefault(problem, f"{_say_params(params)}{detail}")
            count[problem] = count.get(problem, 0) + 1
    for problem, where in first.items():
        yield f"{question.name}: {problem}, in {count[problem]} of {len(variants)} variants, first {where}"


def _variant_problems(
    question: Number, slips: list[Misconception], params: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """(what is wrong, its detail) for one variant."""
    try:
        render_question(question, params)
    except Exception as error:
        yield "the text does not render", f": {_one_line(error)}"
    values: dict[str, float] = {}
    named: list[tuple[str, Callable[..., Any]]] = [("the right answer", question), *((s.name, s.fn) for s in slips)]
    for name, fn in named:
        try:
            values[name] = _finite(fn, params)
        except Exception as error:
            yield f"{name} has no finite positive value", f": {_one_line(error)}"
    for (a, x), (b, y) in itertools.combinations(values.items(), 2):
        if abs(x - y) <= question.rtol * max(x, y):
            yield (
                f"{a} and {b} are closer than the tolerance of {question.rtol:g}",
                f": {show(x, question.unit)} and {show(y, question.unit)}",
            )


def _say_params(params: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in params.items())
