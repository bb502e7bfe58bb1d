"""Evidence for the page of an appeal (a check that is judged again): code, inputs of a failed run, program facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from grader.batch.explaining import Wanted, facts_of
from grader.common.layout import show_sizes
from grader.course.loading import Course
from grader.exercise import Call, Check
from grader.intake.facts import definition
from grader.intake.submission import Source, Submission
from grader.judging.judge import Together, together, verdicts
from grader.judging.plan import Ask, arrays_of
from grader.judging.seen import Answered
from grader.reports.appeal import Appeal, CodePart, Run, ShownArray
from grader.reports.points import counted

SHOWN = 200  # A page shows arrays up to this size in full, and the first and last elements of larger arrays.


def with_evidence(page: Appeal, course: Course, submission: Submission, answered: list[Answered]) -> Appeal:
    """Return an appeal's page with all evidence about its check. ``answered`` has the submission's answers.

    If the appeal is about a question, the page gets only the submission's code. If the submission lacks the exercise,
    the page is unchanged.
    """
    name, _, what = page.where.partition("/")
    source = submission.sources.get(name)
    if source is None:
        return page
    check = course.exercise(name).checks.get(what)
    tasks = dict.fromkeys(call.task.name for call in check.calls) if check else (what,)
    code = [CodePart(chunk.name, 1, chunk.text) for chunk in source.chunks]
    page = replace(page, functions=[c for task in tasks for c in code_of(source, task)] or code, whole=code)
    return _with_runs(page, check, answered) if check else page


def code_of(source: Source, name: str) -> Iterator[CodePart]:
    """Yield the code of the last top-level definition of ``name`` in the source, if there is one."""
    if found := definition(source, name):
        yield CodePart(*found)


def _with_runs(page: Appeal, check: Check, answered: list[Answered]) -> Appeal:
    groups = together(check, answered)
    runs: list[Run] = []
    for group in groups:
        asked = "; ".join(dict.fromkeys(asked_for(a.ask) for a in group.each))
        decided = verdicts(group)
        runs += [Run(asked, group.ask.hidden_inputs, number, reason) for number, reason in enumerate(decided, 1)]
        first = next((i for i, reason in enumerate(decided) if reason), None)
        if first is not None and not page.failed_on and not group.ask.hidden_inputs:
            page = _failing(page, group, first, f"{asked}, run {first + 1}: {decided[first]}")
    programs = [a for group in groups for a in group.each if not a.ask.hidden_inputs and isinstance(a.ask.of, Call)]
    once = {a.ask.program: a for a in programs}
    return replace(page, runs=runs, facts=[facts_of(a, Wanted()) for a in once.values()])


def asked_for(ask: Ask) -> str:
    """Return a short description of a request, such as ``gather on x=4 with I=8, J=3``."""
    if not isinstance(ask.of, Call):
        return f"{ask.task}, {counted(len(ask.cases), 'case')}"
    sizes = [show_sizes(table) for table in (ask.mesh, ask.dims)]
    return f"{ask.task} on {sizes[0]}" + (f" with {sizes[1]}" if sizes[1] else "")


def _failing(page: Appeal, group: Together, run: int, said: str) -> Appeal:
    """Return the page with the inputs and outputs of a failed run.

    ``run``: the number of the failed run, from 0. ``said``: a line with the call, the run, and why it failed.
    """
    inputs: list[ShownArray] = []
    outputs: list[ShownArray] = []
    for answer in group.each:
        steps = answer.ask.of.steps if isinstance(answer.ask.of, Call) else 1
        if answer.ask.inputs:
            inputs += _values(answer.ask.inputs[run * steps])
        seen = answer.finding.observation
        if seen and len(seen.outputs) >= (run + 1) * steps:
            last = seen.outputs[(run + 1) * steps - 1]
            outputs += [_value(out.name or f"result {i}", out.value) for i, out in enumerate(last)]
    return replace(page, failed_on=said, inputs=inputs, outputs=outputs)


def _values(inputs: Mapping[str, Any]) -> list[ShownArray]:
    return [_value(name, array) for name, array in arrays_of(inputs)]


def _value(name: str, array: np.ndarray) -> ShownArray:
    with np.printoptions(precision=5, threshold=SHOWN, edgeitems=3, linewidth=110):
        return ShownArray(name, f"{array.dtype.name}[{','.join(map(str, array.shape))}]", str(array))
