"""Check an exercise's declarations: learners get all they need, each check gives points, and each rule can be broken.

A rule is a row of the table under "What is checked", or a sentence of the statement with the word "must". A
misconception that breaks a rule quotes the rule, as in ``@exercise.misconception(..., breaks="no other collective")``.

The ``check_vma`` mode of a ``shard_map`` body changes the gradients that the body computes. With ``check_vma=True``,
JAX sums a replicated weight's gradient over the devices. With False, each device gets the gradient of its own loss.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from grader.authoring.mutants.operators import last_name
from grader.course.config import FURTHER
from grader.course.statements import Statement, names_reached, statements, word_of
from grader.exercise import Exercise, Misconception, Task
from grader.reports.points import counted

LEAST_HINTS = 1
PICTURE_WIDTH = 76
GRADIENTS = {"grad", "value_and_grad", "vjp", "linear_transpose", "jacrev", "hessian"}
HEADING = "**What is checked**"
FENCED = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.MULTILINE | re.DOTALL)
"""A block of code or a picture in a statement."""
DIVIDER = re.compile(r"\|[-| :]+\|?")
SENTENCE_END = re.compile(r"(?<=[.:;?!])(?:\*\*)? ")
MUST = re.compile(r"\bmust\b")


def declaration_problems(exercise: Exercise, most_words: int | None = None) -> Iterator[str]:
    """Yield problems: missing parts, a statement of more than ``most_words`` words, checks without points."""
    if most_words is not None and (words := words_in(exercise.statement)) > most_words:
        yield (
            f"the statement has {words} words before {FURTHER!r}, but course.yaml allows statement_words: "
            f"{most_words}; move sentences that the task does not need below this heading"
        )
    for line in wide_lines(f"{exercise.statement}\n{exercise.further}"):
        yield f"a picture has a line of over {PICTURE_WIDTH} characters, which terminals break: {line.strip()[:60]}..."
    if not exercise.tasks and not exercise.questions:
        yield "the exercise has neither a task to write nor a question to answer"
    if exercise.tasks and not any(c.public for c in exercise.checks.values()):
        yield "the exercise has no public check, so learners could check nothing: mark a check with public=True"
    for task in exercise.tasks.values():
        yield from _task_problems(exercise, task)
    yield from undecided_modes(exercise)
    yield from (
        f"{check.name} has no points: give points=... above 0"
        for check in exercise.checks.values()
        if check.points <= 0
    )


def _task_problems(exercise: Exercise, task: Task) -> Iterator[str]:
    if len(task.hints) < LEAST_HINTS:
        yield f"{task.name} has no hint: give hints=[...], with the hint nearest to the solution last"
    if not exercise.checks_of(task):
        yield f"{task.name} has no check: add an exercise.call of this task and an @exercise.check of that call"
    if not any(s.of is task for s in exercise.misconceptions.values()):
        yield f"{task.name} has no misconception to prove its checks: add an @exercise.misconception(fails=...)"


def words_in(statement: str) -> int:
    """Return the number of words in a statement, without fenced blocks."""
    return sum(any(map(str.isalnum, word)) for word in FENCED.sub("", statement).split())


def wide_lines(statement: str) -> list[str]:
    """Return the lines of fenced or indented blocks that are too wide for a terminal of 80 columns."""
    found, fenced = [], False
    for line in statement.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif (fenced or line.startswith("    ")) and len(line) > PICTURE_WIDTH:
            found.append(line)
    return found


def judged_modes(exercise: Exercise) -> Iterator[str]:
    """Yield a line with the modes of each ``shard_map`` body that computes a gradient or has two modes."""
    for part in _bodies(exercise):
        modes = exercise.tasks[part.name].modes
        if len(modes) > 1 or _takes_gradient(part, exercise):
            yield f"{part.name} is judged with {' and with '.join(f'check_vma={mode}' for mode in modes)}"


def undecided_modes(exercise: Exercise) -> Iterator[str]:
    """Yield a problem for each ``shard_map`` body that computes a gradient and declares no mode."""
    for part in _bodies(exercise):
        named = {k.arg for d in _decorators(part) if isinstance(d, ast.Call) for k in d.keywords}
        if "check_vma" not in named and _takes_gradient(part, exercise):
            yield (
                f"{part.name} takes a gradient inside shard_map, where check_vma decides what is summed: "
                'declare check_vma="both", True or False'
            )


def _bodies(exercise: Exercise) -> list[Statement]:
    return [p for p in statements(exercise) if p.kind == "task" and exercise.tasks[p.name].kind == "body"]


def _decorators(part: Statement) -> list[ast.expr]:
    assert isinstance(part.node, ast.FunctionDef)
    return [d for d in part.node.decorator_list if word_of(d)]


def _takes_gradient(part: Statement, exercise: Exercise) -> bool:
    known = {p.name: p.node for p in statements(exercise) if p.kind in ("private", "given") and p.name}
    nodes = [part.node, *(known[name] for name in names_reached([part.node], known))]
    named = {last_name(n) for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)}
    return bool(named & GRADIENTS)


def rules_of(exercise: Exercise) -> dict[str, list[Misconception]]:
    """Return the rules of an exercise's statement, each with the misconceptions that quote it.

    A statement without a table under "What is checked" has no rules.
    """
    wrong = exercise.misconceptions.values()
    return {
        text: [one for one in wrong if any(_flat(quote) in text for quote in one.breaks)]
        for text in _rule_texts(exercise.statement)
    }


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
    for rule, broken_by in rules.items():
        if not broken_by:
            mend = "add a misconception, or quote the rule in breaks=... of an existing misconception"
            yield f"no misconception breaks the rule {rule!r}: {mend}"
    failing = {name for wrong in exercise.misconceptions.values() for name in wrong.fails}
    for name in exercise.checks:
        if name not in failing:
            yield f"no misconception fails {name}: add one, to prove that the check can fail"


def listed_rules(exercise: Exercise) -> Iterator[str]:
    """Yield a line for each rule. Below it, yield a line for each misconception that breaks the rule.

    A misconception's line shows the checks that it fails and the points that it loses.
    """
    for rule, broken_by in rules_of(exercise).items():
        yield rule
        for wrong in broken_by:
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
