"""Answers that are a PartitionSpec.

P("x", None) counts as equal to P("x"), but P(("x", "y")) differs from P(("y", "x")). Unreduced axes count, too: P("x",
unreduced={"y"}) differs from P("x").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grader.common.layout import show_spec
from grader.exercise import Spec
from grader.judging.kinds.kind import UNKNOWN, AnswerKind, literal
from grader.judging.units import BadAnswer, quote

Axes = tuple[str, ...]
LONGEST = 200
WRITTEN = re.compile(r"\s*(?:[A-Za-z_][\w.]*\.)?(?:P|PartitionSpec)\s*\((.*)\)\s*", re.DOTALL)
UNQUOTED = re.compile(r"(?<!['\"\w])(?!None\b)[A-Za-z_]\w*(?!['\"\w])")
"""Matches an axis name without quotes, as in P(x, None)."""
NAMES = r"\s*[{\[(]([^{}\[\]()]*)[}\])]"
PENDING = re.compile(rf",?\s*\bunreduced\s*=\s*(?:(?:frozen)?set\({NAMES}\s*\)|{NAMES})")
"""Matches the unreduced axes in a spec that is written as text, as in P("x", unreduced={"y"})."""
SUCH_AS = 'write it like P("x", None)'


@dataclass(frozen=True)
class Layout:
    """A PartitionSpec.

    Attributes:
        entries: the axes that shard each dimension, without trailing dimensions that are not sharded.
        unreduced: the unreduced axes, sorted.
    """

    entries: tuple[Axes, ...]
    unreduced: Axes = ()


@dataclass(frozen=True)
class SpecKind(AnswerKind[Layout, Layout]):
    axes: Axes

    name = "spec"
    valid = "PartitionSpec"

    @classmethod
    def of(cls, answer: Spec, drawn: Mapping[str, Any], rtol: float) -> SpecKind:
        return cls(answer.axes)

    @staticmethod
    def heading(answer: Spec) -> str:
        return "a PartitionSpec"

    @property
    def asked(self) -> Sequence[str]:
        return [f"Answer with a PartitionSpec over {', '.join(self.axes)}, such as P({self.axes[0]!r}, None)."]

    def want(self, value: Any) -> Layout:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError(f"{value!r} is not a PartitionSpec")
        unreduced = getattr(value, "unreduced", ())
        try:
            return self._layout(list(getattr(value, "partitions", ()) if unreduced else value), sorted(unreduced))
        except BadAnswer as error:
            raise ValueError(str(error)) from None

    def read(self, raw: Any) -> Layout:
        if isinstance(raw, str):
            return self._layout(*self._parsed(raw))
        unreduced: Any = []
        if isinstance(raw, dict) and {"spec"} <= set(raw) <= {"spec", "unreduced"}:
            unreduced, raw = raw.get("unreduced", []), raw["spec"]
        if not isinstance(raw, list) or not isinstance(unreduced, list):
            raise BadAnswer(f"an answer is a PartitionSpec: {SUCH_AS}")
        return self._layout(raw, unreduced)

    def shown(self, want: Layout) -> str:
        text = show_spec(tuple(None if not e else e[0] if len(e) == 1 else e for e in want.entries))
        if not want.unreduced:
            return text
        pending = f"unreduced={{{', '.join(map(repr, want.unreduced))}}}"
        return f"{text[:-1]}{', ' if want.entries else ''}{pending})"

    def read_as(self, given: Layout) -> str:
        return self.shown(given)

    def why(self, given: Layout, want: Layout) -> str:
        if given.unreduced != want.unreduced:
            return "not right: these are not the unreduced axes" if given.entries == want.entries else UNKNOWN
        ours, theirs = want.entries, given.entries
        if [sorted(e) for e in theirs] == [sorted(e) for e in ours]:
            return "each dimension has the right axes, but a tuple has the wrong order: put its major axis first"
        if sorted(a for e in theirs for a in e) == sorted(a for e in ours for a in e):
            return "not right: the axes are right, but they cut other dimensions of the array"
        return UNKNOWN

    def _parsed(self, text: str) -> tuple[list[Any], list[str]]:
        """Return the entries and the unreduced axes of a spec that is written as text."""
        if len(text) > LONGEST:
            raise BadAnswer(f"an answer has at most {LONGEST} characters, but this answer has {len(text)}")
        named = PENDING.search(text)
        unreduced = (
            [axis.strip().strip("\"'") for axis in (named[1] or named[2] or "").split(",") if axis.strip()]
            if named
            else []
        )
        rest = PENDING.sub("", text, count=1)
        found = WRITTEN.fullmatch(rest)
        inside = UNQUOTED.sub(lambda word: repr(word[0]), found[1] if found else rest).strip()
        try:
            value = literal(f"({inside.rstrip(',')},)" if inside else "()")
        except ValueError:
            raise BadAnswer(f"{quote(text)} cannot be read: {SUCH_AS}") from None
        alone = value[0] if len(value) == 1 else None  # a learner may write the whole spec as a tuple: "('x', None)"
        return list(alone if not found and isinstance(alone, tuple | list) else value), unreduced

    def _layout(self, spec: list[Any], unreduced: list[Any]) -> Layout:
        found: list[Axes] = []
        for entry in spec:
            axes = () if entry in (None, "None") else (entry,) if isinstance(entry, str) else entry
            if not isinstance(axes, list | tuple) or not all(isinstance(axis, str) for axis in axes):
                raise BadAnswer(f"a dimension has None, an axis or a tuple of axes: {SUCH_AS}")
            found.append(tuple(axes))
        named = [axis for axes in found for axis in axes] + [str(axis) for axis in unreduced]
        for axis in named:
            if axis not in self.axes:
                raise BadAnswer(f"there is no axis {quote(axis)}: the mesh has {', '.join(self.axes)}")
            if named.count(axis) > 1:
                raise BadAnswer(f"the axis {axis} is named twice: an axis {self._once(axis, unreduced)}")
        while found and not found[-1]:
            found.pop()
        return Layout(tuple(found), tuple(sorted(map(str, unreduced))))

    @staticmethod
    def _once(axis: str, unreduced: list[Any]) -> str:
        return "cuts one dimension, or is unreduced" if axis in unreduced else "cuts one dimension"
