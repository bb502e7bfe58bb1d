"""Trace a submission's source (a file or notebook), and turn its replies into findings (see ``judging.seen``).

To trace a source, the grader sends all requests to it, and reads all replies. LEARNER PYTHON RUNS IN A CONFINED CHILD.
Only in a learner's own notebook, it runs in the notebook's process (``InProcess`` in ``batch/in_process.py``).

A sandboxed process that runs no Python code of learners runs the programs and evaluates formulas. If two such processes
die while they run a learner's program, a new process runs a test program of the grader. If the test program fails too,
the fault is the grader's, not the learner's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from grader.batch.backends import stuck, unseen
from grader.batch.children import too_long
from grader.batch.cost import Cost
from grader.batch.poison import Poisoned
from grader.batch.remembering import RUNS, TRACES
from grader.batch.replies import Replies, Reply, RunResult, observed, plain_values, run_fault
from grader.batch.workers import Workers
from grader.common.formulas import LONGEST, points_of
from grader.common.observation import Fault, Observation, Outcome
from grader.exercise import Call, Formula, Question
from grader.intake.submission import Source
from grader.judging.kinds.kind import is_blank
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding, Finding
from grader.sandbox.worker import WorkerDied
from grader.wire.messages import CallAsk, FormulaText

NOT_HANDED_IN = Reply(Fault("missing", "nothing was handed in for this exercise"))


@dataclass(frozen=True)
class Trace:
    """The result of tracing a source (one file or notebook of a submission).

    Attributes:
        replies: the reply to each request. The reply to a call with hidden inputs is the program that was traced for
            inputs that are not hidden.
        notes: errors that occurred while the source was loaded.
        files: the names by which programs refer to the source's files or notebook cells.
    """

    replies: Mapping[Ask, Reply]
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def trace(workers: Workers, source: Source | None, asks: Sequence[Ask], cost: Cost) -> Trace:
    """Return a source's replies to all requests, from child processes that run the source or from the cache.

    Args:
        source: a file or notebook; None if nothing was handed in.
        cost: the submission's cost so far. This function adds the seconds of tracing.
    """
    if source is None:
        return Trace(dict.fromkeys(asks, NOT_HANDED_IN))
    asked = sent_to_child(asks)
    if cost.tracing_left <= 0:
        found = Replies((too_long(cost.limits),) * len(asked))
    else:
        store, key = workers.store, workers.store.keys.trace(source, asked)
        found = store.find(TRACES, key, source)
        if found is None or found.cpu > cost.tracing_left:
            made = workers.replies(source, asked, cost.tracing_left, cost.hung)
            found = store.keep(TRACES, key, made, source)
            cost.hung |= made.hung
    cost.tracing += found.cpu
    replies = dict(zip(asked, found.each, strict=True))
    programs = {(ask.exercise, ask.program_key): reply for ask, reply in replies.items() if isinstance(ask.of, Call)}
    every = {ask: replies[ask] if ask in replies else programs[ask.exercise, ask.program_key] for ask in asks}
    return Trace(every, found.notes, found.files)


def sent_to_child(asks: Sequence[Ask]) -> list[Ask]:
    """Return the requests that go to the learner's process. Requests with hidden inputs come last.

    Questions come first, so that a function that hangs or ends the process costs no answer. A call with hidden inputs
    is left out: the learner's program is traced for inputs that are not hidden, and the grader then runs this program
    on the hidden inputs.
    """
    sent = (a for a in asks if not (a.hidden_inputs and isinstance(a.of, Call)))
    return sorted(sent, key=lambda ask: (ask.hidden_inputs, not isinstance(ask.of, Question)))


# -- programs -----------------------------------------------------------------------------------


def run(workers: Workers, traced: Trace, asks: Sequence[Ask], cost: Cost) -> list[AskFinding]:
    """Run the programs of a traced source. Return each request with its finding.

    Args:
        traced: the source's replies.
        cost: the submission's cost so far. This function adds the CPU seconds of the programs.
    """
    # ``Ask.exercise`` is in the keys, because ``verify`` sends copies of asks that differ only in ``Ask.exercise``
    # (``authoring/tries.py``).
    repeats: dict[tuple, list[Ask]] = {}
    for ask in asks:
        if ask.hidden_inputs and isinstance(ask.of, Call):
            repeats.setdefault((ask.exercise, ask.program_key), []).append(ask)
    runs, found = ProgramRuns(workers, traced.files, cost), dict[Ask, Finding]()
    for ask in sent_to_child(asks):
        if isinstance(ask.of, Call):
            found |= runs.findings([ask, *repeats.pop((ask.exercise, ask.program_key), [])], traced.replies[ask])
        else:
            found[ask] = _plain(workers, ask, traced.replies[ask])
    return [AskFinding(ask, found[ask]) for ask in asks]


def collect(workers: Workers, source: Source, asks: Sequence[Ask]) -> tuple[list[AskFinding], list[str]]:
    """Trace one source and run its programs. Return (answers, errors that occurred while the source was loaded)."""
    cost = Cost(workers.limits)
    traced = trace(workers, source, asks, cost)
    return run(workers, traced, asks, cost), list(traced.notes)


def answers_of(workers: Workers, traced: Trace, asks: Sequence[Ask]) -> list[AskFinding]:
    """Return each question among the requests with its finding. Only a formula needs a worker, which evaluates it."""
    return [AskFinding(a, _plain(workers, a, traced.replies[a])) for a in asks if isinstance(a.of, Question)]


def _plain(workers: Workers, ask: Ask, reply: Reply) -> Finding:
    """Return the finding for a reply that has no program."""
    if reply.fault:
        return Finding(fault=reply.fault)
    return with_formula_values(workers, ask, plain_values(ask, reply.body))


def with_formula_values(workers: Workers, ask: Ask, finding: Finding) -> Finding:
    """Return ``finding``, the answer to a formula question, with the formula's values added.

    The formula is evaluated at each point of ``points_of``. A point has one value for each variable. The answer comes
    from a learner's process and may have any form. If the answer is no formula, the returned finding has a message in
    place of the values. If the grader fails, the returned finding has a fault.

    A fault, an empty answer, and the answer to any other kind of question are returned unchanged.
    """
    answer = ask.of.answer if isinstance(ask.of, Question) else None
    if not isinstance(answer, Formula) or not finding.outcomes:
        return finding
    raw = finding.outcomes[0].value
    if is_blank(raw):
        return finding
    if not isinstance(raw, str):
        return Finding(outcomes=[Outcome(value={"problem": "write the formula as a text in quotes"})])
    names, points = list(answer.symbols), points_of(answer.symbols)
    request: FormulaText = {"text": raw[: LONGEST + 1], "names": names, "points": points}
    try:
        found: Mapping[str, Any] = workers.formula(request)
    except WorkerDied as died:
        if died.ours:
            why = "the grader failed while it evaluated this formula; this answer needs review"
            return Finding(fault=Fault("broken", why))
        found = {"problem": "this formula ended the process that evaluates it, twice"}
    else:
        found = {"formula": raw[:LONGEST], **found}
    return Finding(outcomes=[Outcome(value=found)])


class ProgramRuns:
    """Runs the programs of one source.

    If a task reaches the time limit on one mesh, it is not run on later meshes. If a call of a task ends the process on
    one mesh, this call is not run on later meshes. This applies separately to runs on inputs that are not hidden and to
    runs on hidden inputs.
    """

    def __init__(self, workers: Workers, files: Sequence[str], cost: Cost) -> None:
        self._workers, self._files, self._cost = workers, files, cost
        self._ended: dict[tuple, Fault] = {}
        self._stuck: dict[tuple, str] = {}  # Task -> the reason why its program hung on real devices.

    def findings(self, asks: Sequence[Ask], reply: Reply) -> dict[Ask, Finding]:
        """Return the findings for requests that share one reply. After a fault, all later requests get this fault."""
        found: dict[Ask, Finding] = {}
        last = Finding()
        for ask in asks:
            if last.fault is None:
                last = self._finding(ask, reply, last.observation)
            found[ask] = last
        return found

    def _finding(self, ask: Ask, reply: Reply, before: Observation | None) -> Finding:
        """Return the finding for one request. The facts of ``before``, an earlier run of the program, are reused."""
        if reply.fault is not None:
            return Finding(fault=reply.fault)
        assert reply.program is not None
        task = ask.exercise, ask.task, ask.hidden_inputs
        call = (*task, id(ask.of))
        if fault := self._ended.get(task) or self._ended.get(call) or self._cost.no_more_runs:
            finding = Finding(fault=fault)
        else:
            finding = self._observed(ask, reply.program, before)
        if finding.fault and finding.fault.kind in ("timeout", "crashed"):
            self._ended[task if finding.fault.kind == "timeout" else call] = finding.fault
        return finding

    def _observed(self, ask: Ask, program: bytes, before: Observation | None) -> Finding:
        """Run a program, if its result is not in the cache. If two workers die, return a fault."""
        request, store, seconds = ask.for_runner(list(self._files)), self._workers.store, self._cost.limits.run_seconds
        program_run = ProgramRun(self._workers, ask, request, program, self._cost)
        key = store.keys.run(ask, self._files, program)
        try:
            result = store.find(RUNS, key)
            if result is None:
                result = store.keep(RUNS, key, program_run.run())
            self._cost.running += result.header.get("cpu", 0.0)
            finding = observed(ask, result, before)
            observation = finding.observation
            if observation is None:
                return finding
            if observation.outputs and observation.poison is None:
                poison = Poisoned(observation, program_run.run_changed, self._cost, store, key)
                observation = replace(observation, poison=poison)
            return Finding(self._with_devices(ask, observation, request, program))
        except WorkerDied as died:
            return Finding(fault=run_fault(died, seconds))

    def _with_devices(self, ask: Ask, observation: Observation, request: CallAsk, program: bytes) -> Observation:
        """Return ``observation`` with the program's results on real devices and, if measured, its times on them."""
        devices, task = self._workers.devices, (ask.exercise, ask.task)
        if devices is None:
            return observation
        if observation.outputs and task in self._stuck:
            return replace(observation, on_devices=[unseen(observation, self._stuck[task])])
        if observation.outputs:
            found = devices.outputs(ask, request, program, observation)
            if why := stuck(found):
                self._stuck[task] = why
            observation = replace(observation, on_devices=found)
        return replace(observation, measured=devices.seconds(ask, request, program)) if devices.times else observation


@dataclass(frozen=True)
class ProgramRun:
    """One program of a submission, the workers that run it, and the submission's cost."""

    workers: Workers
    ask: Ask
    request: CallAsk
    program: bytes
    cost: Cost

    def run(self) -> RunResult:
        """Run the program on the request's inputs. Raises WorkerDied."""
        with self._counted():
            return self.workers.run(self.ask, self.request, self.program)

    def run_changed(self, what: str, numbers: list[int]) -> Mapping[str, Any] | Fault:
        """Change operations of the program and return how much the results change, see ``runner.poison.moved``.

        The CPU time is added to the cost.

        Return a fault if the submission has no run time left. Raises WorkerDied.
        """
        if (over := self.cost.no_more_runs) is not None:
            return over
        with self._counted():
            header = self.workers.changed(self.ask, self.request, self.program, [what, numbers])
        self.cost.running += header.get("cpu", 0.0)
        return header

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Add the time limit of a run to the cost if the program reaches the limit or its devices wait too long."""
        seconds = self.cost.limits.run_seconds
        try:
            yield
        except WorkerDied as died:
            self.cost.running += seconds if run_fault(died, seconds).kind == "timeout" else 0.0
            raise
