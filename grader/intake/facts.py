"""Facts about the syntax of submitted code.

The grader parses code only once, when it reads a submission. Later stages use the facts in ``Chunk.facts``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache

from grader.intake.chance import could_differ
from grader.intake.decoding import parsed
from grader.intake.stubs import is_left, stubs_left
from grader.intake.submission import Chunk, CodeFacts, Source, fingerprint
from grader.wire import limits

VARIABLE = "leaderboard_name"
LONGEST = 80
MOST_DEFINITIONS, LONGEST_NAME = 1_000, 100
"""Limits on one source in the page of an appeal: number of definitions, and length of a name."""


def look(text: str) -> CodeFacts:
    """Parse a chunk of code (a file or a cell) and return its facts; the defaults if Python cannot parse the code."""
    tree = parsed(text)
    try:
        return CodeFacts() if tree is None else _facts(tree, len(text))
    except (RecursionError, MemoryError):
        return CodeFacts()


def _facts(tree: ast.Module, length: int) -> CodeFacts:
    return CodeFacts(
        repeatable=not could_differ(tree),
        pseudonym=_pseudonym(tree),
        stubs=stubs_left(tree) if length <= limits.MAX_CELL else None,
        left=_left(tree),
        places=_places(tree),
    )


def with_facts(chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """Parse the chunks of a source, and return them with their facts."""
    found: list[Chunk] = []
    left = MOST_DEFINITIONS
    for chunk in chunks:
        facts = look(chunk.text)
        if len(facts.places) > left:
            facts = replace(facts, places={})
        left -= len(facts.places)
        found.append(replace(chunk, facts=facts))
    return tuple(found)


def looked_at(chunk: Chunk) -> CodeFacts:
    """Return ``chunk.facts``. If the chunk has no facts, as in the grader's own code, parse the chunk."""
    return look(chunk.text) if chunk.facts is None else chunk.facts


def repeatable(source: Source) -> bool:
    """Return whether two runs of the source give equal answers, as far as its names show (see ``could_differ``).

    Return False if Python cannot parse the source.
    """
    return all(looked_at(chunk).repeatable for chunk in source.chunks)


def nothing_written(source: Source) -> bool:
    """Return whether the student wrote nothing, so that the source has only stubs (definitions without content).

    The stubs may be from another edition of the course.
    """
    left = 0
    for chunk in source.chunks:
        stubs = looked_at(chunk).stubs
        if stubs is None:
            return False
        left += stubs
    return left > 0


def is_untouched(source: Source | None, handed_out: Collection[str]) -> bool:
    """Return whether the student wrote nothing, so that the source does not count as handed in.

    The student wrote nothing if there is no source, if the source is unchanged from the handout (the files that
    learners get), or if the source has only stubs.

    Args:
        handed_out: the fingerprints of the handout's files.
    """
    return source is None or fingerprint(source) in handed_out or nothing_written(source)


def pseudonym_of(source: Source) -> str:
    """Return the string in the last ``leaderboard_name = "..."`` of a source; "" if there is none."""
    named = [name for chunk in source.chunks if (name := looked_at(chunk).pseudonym) is not None]
    return named[-1] if named else ""


@lru_cache(1000)
def has_leaderboard(text: str) -> bool:
    """Return True if an exercise's file (not a submission) gives learners the variable ``leaderboard_name``."""
    return look(text).pseudonym is not None


def definition(source: Source, name: str) -> tuple[str, int, str] | None:
    """Return (file or cell, first line, code) of the last top-level definition of ``name``; None if there is none."""
    for chunk in reversed(source.chunks):
        if place := looked_at(chunk).places.get(name):
            first, last = place
            lines = re.split(r"\r\n|\r|\n", chunk.text)  # Python's line ends
            return chunk.name, first, "\n".join(lines[first - 1 : last])
    return None


def written_code(source: Source, name: str) -> str:
    """Return the code of a task, for a person to read; '' if the task is missing or still a stub (without content).

    If the source contains the task's name but does not define it at top level, return all code of the source.
    """
    for chunk in reversed(source.chunks):
        if name in (facts := looked_at(chunk)).places:
            found = definition(source, name)
            return "" if found is None or name in facts.left else found[2]
    every = "\n\n".join(chunk.text for chunk in source.chunks)
    return every if re.search(rf"\b{re.escape(name)}\b", every) else ""


def _pseudonym(tree: ast.Module) -> str | None:
    """Return the value last assigned to ``leaderboard_name``; "" if it is not a string, None if none is assigned."""
    name = None
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == VARIABLE for target in targets):
            value = getattr(getattr(statement, "value", None), "value", None)
            name = value[:LONGEST].encode("utf-8", "replace").decode() if isinstance(value, str) else ""
    return name


def _places(tree: ast.Module) -> dict[str, tuple[int, int]]:
    """Return the first and last line of the last definition of each name at top level."""
    found: dict[str, tuple[int, int]] = {}
    for node in tree.body:
        for name in _names(node):
            if len(name) <= LONGEST_NAME and (name in found or len(found) < MOST_DEFINITIONS):
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
                found[name] = (first, node.end_lineno or first)
    return found


def _left(tree: ast.Module) -> tuple[str, ...]:
    """Return the names of functions at top level that are still stubs (without content)."""
    last = {
        node.name: is_left(node)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.name) <= LONGEST_NAME
    }
    return tuple(name for name, left in last.items() if left)[:MOST_DEFINITIONS]


def _names(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}
