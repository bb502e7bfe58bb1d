"""The name by which a learner wants to be on the leaderboard, read from the text of their work: nothing is executed."""

from __future__ import annotations

import ast

from grader.common.syntax import parse
from grader.intake.submission import Source

VARIABLE = "leaderboard_name"
LONGEST = 80


def pseudonym_of(source: Source) -> str:
    """The text of the last ``leaderboard_name = "..."`` in a source; "" if there is none, or it is not a literal."""
    name = ""
    for chunk in source.chunks:
        if VARIABLE not in chunk.text:
            continue
        try:
            statements = parse(chunk.text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for statement in statements:
            targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == VARIABLE for target in targets):
                value = getattr(getattr(statement, "value", None), "value", None)
                name = value[:LONGEST] if isinstance(value, str) else ""
    return name
