"""Make the solution's source with unchanged line numbers, so that messages name lines of the author's file."""

from __future__ import annotations

from grader.course.copying import undecorated
from grader.course.statements import Statement, names_reached, needed_imports, statements
from grader.exercise import Exercise


def reference_in_place(exercise: Exercise) -> str:
    """Return the solution's tasks and all statements that they need, at the line numbers of the author's file.

    All other lines are blank.
    """
    parts = statements(exercise)
    chosen = [p for p in parts if p.kind in ("given", "task")]
    private = {p.name: p for p in parts if p.kind == "private" and p.name}
    reached = names_reached([p.node for p in chosen], {name: p.node for name, p in private.items()})
    placed = {_first_line(p, skip_decorators=True): undecorated(p) for p in chosen}
    placed |= {_first_line(p): p.text for p in private.values() if p.name in reached}
    code = "\n".join(placed.values())
    placed |= {_first_line(p): p.text for p in parts if needed_imports([p], used_by=code)}
    lines = [""] * exercise.source.count("\n")
    for first, text in placed.items():
        own = text.split("\n")
        own = own[:-1] if own[-1] == "" else own
        lines[first - 1 : first - 1 + len(own)] = own
    return "\n".join(lines) + "\n"


def _first_line(part: Statement, *, skip_decorators: bool = False) -> int:
    decorators = [] if skip_decorators else getattr(part.node, "decorator_list", [])
    return min([part.node.lineno, *(d.lineno for d in decorators)])
