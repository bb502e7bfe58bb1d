"""Answers that are a PartitionSpec: P("x", None) equals P("x"), but P(("x", "y")) differs from P(("y", "x"))."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from grader.common.layout import show_spec
from grader.judging.kinds.kind import UNKNOWN, is_blank, literal
from grader.judging.units import BadAnswer, quote

Entries = tuple[tuple[str, ...], ...]
"""The axes that shard each dimension, without trailing dimensions that are not sharded."""
LONGEST = 200
WRITTEN = re.compile(r"\s*(?:[A-Za-z_][\w.]*\.)?(?:P|PartitionSpec)\s*\((.*)\)\s*", re.DOTALL)
UNQUOTED = re.compile(r"(?<!['\"\w])(?!None\b)[A-Za-z_]\w*(?!['\"\w])")
"""An axis name without quotes: P(x, None)."""
SUCH_AS = 'write it like P("x", None)'


@dataclass(frozen=True)
class SpecKind:
    axes: tuple[str, ...]

    @property
    def asked(self) -> Sequence[str]:
        return [f"Answer with a PartitionSpec over {', '.join(self.axes)}, such as P({self.axes[0]!r}, None)."]

    def want(self, value: Any) -> Entries:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError(f"{value!r} is not a PartitionSpec")
        try:
            return self._entries(list(value))
        except BadAnswer as error:
            raise ValueError(str(error)) from None

    def read(self, raw: Any) -> Entries:
        if isinstance(raw, str):
            return self._entries(self._parsed(raw))
        if isinstance(raw, dict) and set(raw) == {"spec"}:
            raw = raw["spec"]
        if not isinstance(raw, list):
            raise BadAnswer(f"an answer is a PartitionSpec: {SUCH_AS}")
        return self._entries(raw)

    def is_empty(self, raw: Any) -> bool:
        return is_blank(raw)

    def distance(self, given: Entries, want: Entries) -> float | None:
        return 0.0 if given == want else None

    def are_close(self, one: Entries, other: Entries) -> bool:
        return one == other

    def shown(self, want: Entries) -> str:
        return show_spec(tuple(None if not e else e[0] if len(e) == 1 else e for e in want))

    def read_as(self, given: Entries) -> str:
        return self.shown(given)

    def written(self, want: Entries) -> str:
        return self.shown(want)

    def misfit(self, given: Entries) -> str:
        return ""

    def why(self, given: Entries, want: Entries) -> str:
        if [sorted(e) for e in given] == [sorted(e) for e in want]:
            return "the right axes cut each dimension, in another order: the first axis of a tuple is the major one"
        if sorted(a for e in given for a in e) == sorted(a for e in want for a in e):
            return "not right: these axes cut it, but not these dimensions"
        return UNKNOWN

    def _parsed(self, text: str) -> list[Any]:
        if len(text) > LONGEST:
            raise BadAnswer(f"an answer has at most {LONGEST} characters, this has {len(text)}")
        found = WRITTEN.fullmatch(text)
        inside = UNQUOTED.sub(lambda word: repr(word[0]), found[1] if found else text).strip()
        try:
            value = literal(f"({inside.rstrip(',')},)" if inside else "()")
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            raise BadAnswer(f"{quote(text)} cannot be read: {SUCH_AS}") from None
        alone = value[0] if len(value) == 1 else None  # the whole spec as one tuple or list: "('x', None)"
        return list(alone if not found and isinstance(alone, tuple | list) else value)

    def _entries(self, spec: list[Any]) -> Entries:
        found: list[tuple[str, ...]] = []
        for entry in spec:
            axes = () if entry in (None, "None") else (entry,) if isinstance(entry, str) else entry
            if not isinstance(axes, list | tuple) or not all(isinstance(axis, str) for axis in axes):
                raise BadAnswer(f"a dimension has None, an axis or a tuple of axes: {SUCH_AS}")
            found.append(tuple(axes))
        named = [axis for axes in found for axis in axes]
        for axis in named:
            if axis not in self.axes:
                raise BadAnswer(f"there is no axis {quote(axis)}: the mesh has {', '.join(self.axes)}")
            if named.count(axis) > 1:
                raise BadAnswer(f"the axis {axis} is named twice: it cuts one dimension")
        while found and not found[-1]:
            found.pop()
        return tuple(found)
