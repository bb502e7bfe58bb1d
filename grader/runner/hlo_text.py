"""Parse the text of a compiled program, as XLA prints it: computations (functions) and their instructions."""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from grader.common.intervals import UNKNOWN, Interval

# The mark is random, because XLA's text also contains names that learners choose. Learners cannot guess the mark.
MARK = f"by_hand_{secrets.token_hex(8)}"
_MARKED = re.compile(rf"{MARK}_(\d+)_")


@dataclass(frozen=True)
class HloInstruction:
    """An instruction ``%name = shape opcode(operands), attribute=...``. ``rest`` is the text after the parenthesis."""

    name: str
    shape: str
    opcode: str
    rest: str

    @cached_property
    def text(self) -> str:
        """The operands as text; for a constant, its value; for a parameter, its number."""
        return until(self.rest, ")")[0]

    @cached_property
    def operands(self) -> list[str]:
        return [o.split(" ")[-1].lstrip("%") for o in _split(self.text)]

    @cached_property
    def attributes(self) -> dict[str, str]:
        return dict(a.split("=", 1) for a in _split(self.rest[len(self.text) + 1 :]) if "=" in a)

    @property
    def calls(self) -> bool:
        """Whether an attribute is a reference such as ``=%add``, so that the instruction may call a computation."""
        return "=%" in self.rest or "={%" in self.rest

    @property
    def marks(self) -> list[int]:
        """The numbers (see ``facts.mark``) of the learner's collectives from which XLA made this instruction."""
        return [int(n) for n in _MARKED.findall(self.attributes.get("metadata", ""))]

    def called(self, *names: str) -> list[str]:
        """Return the names of the computations to which the attributes ``names`` refer."""
        return [c for n in names for c in re.findall(r"%?([^\s,%{}]+)", self.attributes.get(n, ""))]


Computation = list[HloInstruction]


@lru_cache(1)  # cached, because two functions parse the same text
def parse(hlo: str) -> tuple[dict[str, Computation], str]:
    """Return the computations by name, and the name of the entry computation ('' if there is none)."""
    found: dict[str, Computation] = {}
    entry, current = "", None
    for line in hlo.splitlines():
        if line.startswith(("%", "ENTRY ")) and line.endswith("{") and " -> " in line:
            name = line.removeprefix("ENTRY ").lstrip("%").split(" ")[0]
            entry = name if line.startswith("ENTRY ") else entry
            current = found.setdefault(name, [])
        elif line.startswith("}"):
            current = None
        elif current is not None and " = " in line:
            current.append(instruction(line))
    return found, entry


def instruction(line: str) -> HloInstruction:
    name, _, rest = line.strip().removeprefix("ROOT ").partition(" = ")
    shape, rest = _shape(rest)
    opcode, _, rest = rest.partition("(")
    return HloInstruction(name.lstrip("%"), shape, opcode.strip(), rest)


def _shape(text: str) -> tuple[str, str]:
    """Split off the text's first shape, which is like ``f32[2,8]{1,0}`` or a tuple of such shapes in parentheses."""
    if not text.startswith("("):
        shape, _, rest = text.partition(" ")
        return shape, rest
    inside, rest = until(text[1:], ")")
    return f"({inside})", rest.lstrip()


_MARKS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[()\[\]{},]', re.DOTALL)  # a string, closed or not, is one match


def until(text: str, end: str) -> tuple[str, str]:
    """Return the text before the first ``end`` outside of brackets and quotes, and the text after it."""
    depth = 0
    for mark in _MARKS.finditer(text):
        sign = mark[0]
        if depth == 0 and sign == end:
            return text[: mark.start()], text[mark.end() :]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
    return text, ""


def _split(text: str) -> Iterator[str]:
    """Split at commas outside of brackets and quotes: ``groups=mesh[2,4], device_ids=([4,2])`` gives two parts."""
    while text.strip(" ,"):
        part, text = until(text.lstrip(" ,"), ",")
        yield part.strip()


def shapes(text: str) -> list[tuple[str, list[int]]]:
    """Return the element type and dimensions of each array in the text of an HLO shape.

    A shape is one array (``f32[2,8]{1,0}`` gives ``("f32", [2, 8])``) or a tuple of arrays.
    """
    return [(n, [int(d) for d in dims.split(",") if d]) for n, dims in re.findall(r"(\w+)\[([\d,<=]*)\]", text)]


def dtype_name(element: str) -> str:
    """Return NumPy's name of an element type: ``bf16`` is bfloat16, ``s32`` int32, ``f8e4m3fn`` float8_e4m3fn."""
    if element == "pred":
        return "bool"
    match = re.fullmatch(r"(bf|f|s|u|c)(\d+)(e\w+)?", element)
    if match is None:
        return element
    kind = {"bf": "bfloat", "f": "float", "s": "int", "u": "uint", "c": "complex"}[match[1]]
    return f"{kind}{match[2]}" + (f"_{match[3]}" if match[3] else "")


def hlo_bytes(shape: str) -> int:
    """Return the bytes of the array with an HLO shape such as ``f32[16,24]``, or of all arrays in a tuple."""
    size = 0
    for name, dims in shapes(shape):
        digits = re.search(r"\d+", name)
        bits = 8 if name == "pred" else int(digits[0]) if digits else 32
        size += math.prod(dims) * max(bits, 8) // 8
    return size


def trip_count(loop: HloInstruction) -> Interval:
    """Return the number of rounds that XLA's text gives for a loop; UNKNOWN if the text gives no number."""
    try:
        config = json.loads(loop.attributes.get("backend_config", "{}"))
        config = json.loads(config) if isinstance(config, str) else config
        return Interval.of(int(config["known_trip_count"]["n"]))
    except (ValueError, KeyError, TypeError):
        return UNKNOWN
