"""Evaluate formulas that students wrote, in a sandboxed process that runs no Python code of students."""

from __future__ import annotations

from typing import Any

from grader.batch.workers import Workers
from grader.common.formulas import LONGEST, points_of
from grader.common.observation import Fault, Outcome
from grader.exercise import Formula, Question
from grader.judging.kinds.kind import is_blank
from grader.judging.plan import Ask
from grader.judging.seen import Finding
from grader.sandbox.worker import WorkerDied


def evaluated(workers: Workers, ask: Ask, finding: Finding) -> Finding:
    """Return ``finding``, the answer to a formula question, with the formula's values added.

    A point has one value for each variable. The formula is evaluated at each point of ``points_of``. The answer comes
    from a learner's process and may have any form. If the answer is no formula, the returned finding has a message in
    place of the values. If the grader fails, a fault is returned.

    A fault, an empty answer, and the answer to any other kind of question are returned unchanged.
    """
    answer = ask.of.answer if isinstance(ask.of, Question) else None
    if not isinstance(answer, Formula) or not isinstance(finding, list):
        return finding
    raw = finding[0].value
    if is_blank(raw):
        return finding
    if not isinstance(raw, str):
        return [Outcome(value={"problem": "write the formula as a text in quotes"})]
    request = {"text": raw[: LONGEST + 1], "names": list(answer.symbols), "points": points_of(answer.symbols)}
    try:
        found: dict[str, Any] = workers.formula(request)
    except WorkerDied as died:
        if died.ours:
            return Fault("broken", "the grader failed while it evaluated this formula; this answer needs review")
        return [Outcome(value={"problem": "this formula ended the process that evaluates it, twice"})]
    return [Outcome(value={"formula": raw[:LONGEST], **found})]
