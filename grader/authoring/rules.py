"""The rules of an exercise's statement. For each rule, the author declares misconceptions that break it.

A rule is a row of the table under "What is checked", or a sentence of the statement with the word "must". A
misconception that breaks a rule quotes the rule, as in ``@exercise.misconception(..., breaks="no other collective")``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from grader.exercise import Exercise, Misconception, Task
from grader.reports.points import counted

HEADING = "**What is checked**"
FENCED = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.MULTILINE | re.DOTALL)
DIVIDER = re.compile(r"\|[-| :]+\|?")
SENTENCE_END = re.compile(r"(?<=[.:;?!])(?:\*\*)? ")
MUST = re.compile(r"\bmust\b")


@dataclass(frozen=True)
class Rule:
    """A rule in the statement's words, and the misconceptions that quote the rule."""

    text: str
    broken_by: tuple[Misconception, ...]


def rules_of(exercise: Exercise) -> list[Rule]:
    """Return the rules of an exercise's statement; [] for a statement without a table under "What is checked"."""
    found = []
    for text in _rule_texts(exercise.statement):
        quoting = [m for m in exercise.misconceptions.values() if any(_flat(quote) in text for quote in m.breaks)]
        found.append(Rule(text, tuple(quoting)))
    return found


def rule_problems(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each quote that the statement lacks, and for rules and checks without a misconception.

    A statement without a table under "What is checked" has no rules, and its checks need no misconceptions.
    """
    statement = _flat(exercise.statement)
    for wrong in exercise.misconceptions.values():
        for quote in wrong.breaks:
            if _flat(quote) not in statement:
                quoted = f"quotes {quote!r} in breaks=..., but the statement does not contain this text"
                yield f"the misconception {wrong.name} {quoted}: copy a rule from the statement"
    if not (rules := rules_of(exercise)):
        return
    for rule in rules:
        if not rule.broken_by:
            mend = "add a misconception, or quote the rule in breaks=... of an existing misconception"
            yield f"no misconception breaks the rule {rule.text!r}: {mend}"
    failing = {name for wrong in exercise.misconceptions.values() for name in wrong.fails}
    for name in exercise.checks:
        if name not in failing:
            yield f"no misconception fails {name}: add one, to prove that the check can fail"


def listed_rules(exercise: Exercise) -> Iterator[str]:
    """Yield a line for each rule. Below it, yield a line for each misconception that breaks the rule.

    A misconception's line shows the checks that it fails and the points that it loses.
    """
    for rule in rules_of(exercise):
        yield rule.text
        for wrong in rule.broken_by:
            lost, failed = lost_points(exercise, wrong), ", ".join(wrong.fails)
            yield f"    {wrong.name} fails {failed}: {lost:g} of {counted(exercise.points, 'point')}"


def lost_points(exercise: Exercise, wrong: Misconception) -> float:
    """Return the points of all checks that a misconception fails, and of all checks that come after a failed check."""
    if not isinstance(wrong.of, Task):
        return wrong.of.points
    lost = set(wrong.fails)
    for check in exercise.checks.values():  # each check is visited later than the checks in its ``after``
        if lost.intersection(check.after):
            lost.add(check.name)
    return sum(exercise.checks[name].points for name in lost)


def _rule_texts(statement: str) -> list[str]:
    rows, sentences, inside = [], [], False
    for paragraph in re.split(r"\n\s*\n", FENCED.sub("", statement)):
        if paragraph.startswith("**"):
            inside = paragraph.startswith(HEADING)
        if not paragraph.startswith("|"):
            sentences += SENTENCE_END.split(_flat(paragraph))
        elif inside:
            rows += [_flat(row).strip("| ") for row in paragraph.splitlines()[1:] if not DIVIDER.fullmatch(row)]
    return [*rows, *(sentence for sentence in sentences if MUST.search(sentence))] if rows else []


def _flat(text: str) -> str:
    return " ".join(text.split())
