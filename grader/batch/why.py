"""Appeals: judge one check of one submission again from scratch, and compare the result with the stored report.

The check runs in fresh workers and without the cache. If the verdict changed, results of the submission's file are
never cached again. The page of an appeal shows evidence: code, inputs of a failed run, and program facts. The output
contains hidden data, so only the staff may see the output.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from grader.batch.explaining import Wanted, facts_of
from grader.batch.grade import Grader
from grader.batch.overrides import Override, in_full
from grader.common.cache import user_cache
from grader.common.layout import show_sizes
from grader.common.observation import Collective
from grader.common.result import ExerciseReport, Report, Result
from grader.course.config import CourseError
from grader.course.loading import Course, check_named
from grader.exercise import Call, Check, Written
from grader.expect import show_value
from grader.intake.facts import definition
from grader.intake.submission import Source, Submission
from grader.judging.answers import wanted
from grader.judging.judge import Together, together, verdicts
from grader.judging.plan import Ask, arrays_of
from grader.judging.seen import AskFinding, Finding
from grader.reports.appeal import Appeal, CodePart, Run, ShownArray
from grader.reports.points import counted


@dataclass(frozen=True)
class Why:
    """The new verdict on an appealed check, and its evidence.

    Attributes:
        result: the new verdict.
        kept: the verdict in the stored report; None if no report has this check.
        lines: the grader's requests, the verdict on each run, and overrides (points given by hand).
        differs: one line for each difference from the stored report.
        page: a page for the staff, with the verdicts, code, inputs, pictures and facts.
    """

    result: Result
    kept: Result | None
    lines: list[str]
    differs: list[str]
    page: Appeal


def why(
    course: Course, tier: str, submission: Submission, where: str, kept: Report | None,
    make: Callable[[], Grader] | None = None, overrides: Iterable[Override] = (),
) -> Why:  # fmt: skip
    """Judge one check of a submission again.

    Args:
        tier: the isolation of the workers, as for ``grade``.
        where: the name of the check or question, such as ``c3/val`` (see ``check_named``).
        kept: the student's stored report; None if there is none.
        make: returns a new grader, which must have no cache. The default grader uses simulated devices only.
        overrides: all overrides in ``overrides.yaml``. ``Why.lines`` shows the overrides of this check.

    Raises:
        CourseError: the course has no check ``where``.
    """
    name, check = find_check(course, where)
    make = make or partial(Grader, course, tier)
    with make() as grader:
        report = grader.grade(submission, [name])
    with make() as grader:
        answered = grader.answered(submission, name) if name in submission.sources else []
    today = report.exercises[0]
    result = next(r for r in today.results if r.name == check)
    before = result_in(kept, name, check) if kept else None
    differs = differences(kept, report, name, result) if kept else []
    changed = before is not None and (before.status, before.earned) != (result.status, result.earned)
    # Distrust stored results only if the status or the points changed, not if only the text of the reason changed.
    if changed and name in submission.sources:
        with user_cache() as cache:
            Grader(course, tier, cache=cache).store.distrust(submission.sources[name])
    own = [one for one in overrides if one.student == submission.student]
    exercises = {e.exercise: e for e in [*(kept.exercises if kept else ()), today]}
    lines = [
        *laid_open(course, name, check, submission.student, answered),
        *set_by_hand(exercises, own, [name, f"{name}/{check}"]),
    ]
    shown = today.model_copy(
        update={"results": [result], "points": result.points, "earned": result.earned, "pending": 0.0}
    )
    page = Appeal(
        submission.student, report.course, f"{name}/{check}", shown, lines=lines, differs=differs,
        on_file=before is not None, versions=report.versions,
    )  # fmt: skip
    return Why(result, before, lines, differs, with_evidence(page, course, submission, answered))


def set_by_hand(
    exercises: Mapping[str, ExerciseReport], overrides: Iterable[Override], checks: Collection[str]
) -> list[str]:
    """Return a line for each override of one of ``checks``. An override with an ambiguous name gets no line."""
    return [
        f"set by hand by {one.by}: {counted(full.points, 'point')} for {one.check}: {one.reason}"
        for one in overrides
        if (full := in_full(one, exercises)).check in checks
    ]


def result_in(report: Report, exercise: str, check: str) -> Result | None:
    """Return the verdict on a check in a report; None if the report lacks the check."""
    results = [r for e in report.exercises if e.exercise == exercise for r in e.results]
    return next((r for r in results if r.name == check), None)


def differences(kept: Report, report: Report, exercise: str, result: Result) -> list[str]:
    """Return the differences between the new verdict on a check (``result``) and the stored report (``kept``).

    This includes differences of programs, inputs, backend and versions.
    """
    before = result_in(kept, exercise, result.name)
    if before is None:
        differs = [f"the report on file has no {exercise}/{result.name}"]
    else:
        differs = fields_that_differ(before, result)
    if any(e.evidence != report.exercises[0].evidence for e in kept.exercises if e.exercise == exercise):
        differs.append("the exercise's programs or inputs differ from the programs or inputs of the report on file")
    if kept.backend != report.backend:
        differs.append(
            f"backend: {kept.backend} in the report on file, {report.backend} now; --backend chooses the backend"
        )
    if kept.versions != report.versions:
        differs.append(f"versions: {kept.versions} in the report on file, {report.versions} now")
    return differs


def fields_that_differ(before: Result, result: Result) -> list[str]:
    """Return a line for each field that differs."""
    was, now = before.model_dump(mode="json"), result.model_dump(mode="json")
    return [
        f"{field}: {was.get(field)!r} on file, {now.get(field)!r} now"
        for field in dict.fromkeys([*was, *now])
        if _as_text(was.get(field)) != _as_text(now.get(field))
    ]


def _as_text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def laid_open(course: Course, name: str, check: str, student: str, answered: list[AskFinding]) -> Iterator[str]:
    """Yield lines about a check (its requests, the verdict on each run) or about a question (numbers, answer)."""
    exercise = course.exercise(name)
    if check in exercise.checks:
        yield from _runs(exercise.checks[check], answered)
        return
    question = exercise.questions[check]
    raw = next((a.finding for a in answered if a.ask.of is question), None)
    params = course.params(question, student)
    yield f"asked with {params}, answered {_raw(raw)}"
    if isinstance(question.answer, Written):
        yield f"a good answer: {wanted(question, question.fn, params)}"
        yield f"rubric: {' '.join(question.answer.rules.split())}"


def find_check(course: Course, where: str) -> tuple[str, str]:
    """Return (exercise, check or question) for a name such as ``c3/val`` (see ``check_named``).

    Raises CourseError if the name means no check, several checks, or an exercise as a whole.
    """

    def names_of(exercise: str) -> list[str]:
        loaded = course.exercise(exercise)
        return [*loaded.checks, *loaded.questions]

    exercise, check = check_named(where, [*course.module_of], names_of)
    if not check:
        listed = ", ".join(f"{exercise}/{one}" for one in names_of(exercise))
        raise CourseError(f"an appeal judges one check or question; {where!r} is an exercise, so name one of {listed}")
    return exercise, check


def _raw(finding: Finding | None) -> str:
    if finding is None:
        return "nothing, because nothing was handed in"
    return f"nothing, because {finding.fault.message}" if finding.fault else show_value(finding.outcomes[0].value)


def _runs(check: Check, answered: list[AskFinding]) -> Iterator[str]:
    for group in together(check, answered):
        for answer in group.each:
            yield from _asked(answer)
        for run, reason in enumerate(verdicts(group), 1):
            yield f"  run {run}: {reason or 'passed'}"


def _asked(answer: AskFinding) -> Iterator[str]:
    ask, observation, fault = answer.ask, answer.finding.observation, answer.finding.fault
    about = [f"mesh {dict(ask.mesh)}", f"dims {dict(ask.dims)}"] if ask.mesh else [counted(len(ask.cases), "case")]
    about += [f"static {dict(ask.static)}"] if ask.static else []
    about += [f"check_vma={ask.check_vma}"] if isinstance(ask.of, Call) and len(ask.of.task.modes) > 1 else []
    yield f"{ask.task}: {', '.join(about)}, {'hidden' if ask.hidden_inputs else 'public'} inputs {ask.digest[:16]}"
    if observation is not None:
        memory, flops = observation.memory, observation.flops
        yield f"  program {observation.program[:16]}; temporary memory {memory} B; FLOPs {flops}"
        for one in observation.collectives:
            yield f"  {_collective(one)}"
    elif fault is not None:
        yield f"  no result to judge; kind of failure: {fault.kind}"


def _collective(one: Collective) -> str:
    place = "by the compiler" if one.by_compiler else f"line {one.line}" if one.line else "no line"
    return f"{one.kind} over {one.over}: input {one.bytes} B, sent {one.sent} B, executions {one.count} ({place})"


# -- evidence ----------------------------------------------------------------------------------

SHOWN = 200  # A page shows arrays up to this size in full, and the first and last elements of larger arrays.


def with_evidence(page: Appeal, course: Course, submission: Submission, answered: list[AskFinding]) -> Appeal:
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


def _with_runs(page: Appeal, check: Check, answered: list[AskFinding]) -> Appeal:
    groups = together(check, answered)
    runs: list[Run] = []
    for group in groups:
        asked = "; ".join(dict.fromkeys(_requested(a.ask) for a in group.each))
        decided = verdicts(group)
        runs += [Run(asked, group.ask.hidden_inputs, number, reason) for number, reason in enumerate(decided, 1)]
        first = next((i for i, reason in enumerate(decided) if reason), None)
        if first is not None and not page.failed_on and not group.ask.hidden_inputs:
            page = _failing(page, group, first, f"{asked}, run {first + 1}: {decided[first]}")
    programs = [a for group in groups for a in group.each if not a.ask.hidden_inputs and isinstance(a.ask.of, Call)]
    once = {a.ask.program_key: a for a in programs}
    return replace(page, runs=runs, facts=[facts_of(a, Wanted()) for a in once.values()])


def _requested(ask: Ask) -> str:
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
            inputs += [_value(name, array) for name, array in arrays_of(answer.ask.inputs[run * steps])]
        observation = answer.finding.observation
        if observation and len(observation.outputs) >= (run + 1) * steps:
            last = observation.outputs[(run + 1) * steps - 1]
            outputs += [_value(out.name or f"result {i}", out.value) for i, out in enumerate(last)]
    return replace(page, failed_on=said, inputs=inputs, outputs=outputs)


def _value(name: str, array: np.ndarray) -> ShownArray:
    with np.printoptions(precision=5, threshold=SHOWN, edgeitems=3, linewidth=110):
        return ShownArray(name, f"{array.dtype.name}[{','.join(map(str, array.shape))}]", str(array))
