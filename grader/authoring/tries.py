"""Run the programs that ``verify`` tries, such as the solution with one task replaced by a misconception.

An *alternative* is another right solution of a task. Several programs run in one process, because starting a process
and tracing its first program is slow. Other programs in the process may change a program's result. If a result is not
the expected one, the caller must run this program again, alone in a process.

Trying all cases takes long, so a wrong program first runs with a few cases. A case is a call of a task on one mesh,
with one choice of sizes. A wrong program fails in most cases, so a few cases usually show that it fails the checks that
its author named. If they do not show this, ``verify`` runs the program with all cases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from grader.authoring.grading import graded_and_public
from grader.authoring.margins import Amounts, separates, uses_of
from grader.batch.grade import Grader
from grader.batch.running import collect
from grader.common.result import ExerciseReport
from grader.course.reference import answers, reference_source
from grader.course.statements import names_reached, statements
from grader.exercise import Alternative, Call, Check, Exercise, Misconception
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.judge import Together, together
from grader.judging.plan import Ask
from grader.judging.seen import AskFinding, Finding, partner

AT_ONCE = 12
"""The largest number of submissions in a batch."""
# Kinds of faults that only the submission itself can cause. Faults of other kinds may come from another submission in
# the process.
OWN_FAULTS = {"raised", "untraceable", "refused", "compile", "missing"}
# This code runs between two submissions, to remove all names that the first submission defined.
NOTHING_LEFT = (
    "for name in [name for name in globals() if not name.startswith('__')]:\n    del globals()[name]\ndel name\n"
)


def tried(grader: Grader, texts: Sequence[tuple[str, Sequence[Ask]]]) -> list[list[AskFinding]]:
    """Run several submissions in one process, and return each submission's answers to its requests.

    A submission's list of answers is empty if another submission may have changed the answers.

    Args:
        texts: (source code, requests) of each submission. A request is a call of a task with given inputs.
    """
    if not texts:
        return []
    chunks, ends = [], []
    for n, (text, _) in enumerate(texts):
        chunks += [Chunk(f"{n}.py", text), Chunk(f"after {n}", NOTHING_LEFT)]
        ends.append((str(n), f"{n}.py"))
    every = [[replace(ask, exercise=str(n)) for ask in asks] for n, (_, asks) in enumerate(texts)]
    in_order = sorted((ask for own in every for ask in own), key=lambda ask: ask.hidden_inputs)
    with grader.pool.lent() as workers:
        # Send all programs to one runner, so that no job waits for the programs of another job.
        workers = workers.with_runner(grader.pool.sets.index(workers))
        answered, _ = collect(workers, Source("several", tuple(chunks), tuple(ends)), in_order)
    found = {a.ask: a.finding for a in answered}
    return [_own(asks, [found[ask] for ask in own]) for (_, asks), own in zip(texts, every, strict=True)]


def each_tried(grader: Grader, texts: Sequence[tuple[str, Sequence[Ask]]]) -> Iterator[list[AskFinding]]:
    """Run submissions in batches, and yield each submission's answers to its requests. Arguments: see ``tried``.

    If other submissions may have changed an answer, the submission runs again, alone in a process. A submission
    that ends its own process has an empty list of answers.
    """
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        for text, found in zip(some, tried(grader, some), strict=True):
            yield found or tried(grader, [text])[0]


def _own(asks: Sequence[Ask], findings: Sequence[Finding]) -> list[AskFinding]:
    """Return one submission's answers; [] if an answer is a fault that another submission may have caused."""
    faults = {f.fault.kind for f in findings if f.fault and not f.fault.ran}
    return [AskFinding(ask, f) for ask, f in zip(asks, findings, strict=True)] if faults <= OWN_FAULTS else []


def first_cases(
    exercise: Exercise, reference: Sequence[AskFinding], fails: Collection[str] = (), every: Collection[str] = ()
) -> list[AskFinding]:
    """Return the reference solution's results for the first cases: each check on one mesh, with the public sizes.

    If learners cannot try one of a check's calls, the check has the hidden sizes. If a call runs in both modes of
    ``check_vma``, both results are included. A check that compares meshes has all meshes. For tasks that JAX traces,
    inputs from the course's seed are left out. For plain Python tasks, all cases are included.

    Args:
        fails: checks that the program fails. Checks that come after these are not judged, so they are left out.
        every: checks that need all meshes and all sizes. A check counts only if it is also in ``fails``.
    """
    chosen: set[Ask] = set()
    for check in _judged(exercise, fails):
        cases: dict[tuple, Together] = {}
        for group in together(check, list(reference)):
            ask = group.ask
            if not (ask.hidden_inputs and isinstance(ask.of, Call)):
                is_whole = check.name in fails and check.name in every
                cases.setdefault(ask.answer_key if is_whole else (ask.check_vma, ask.hidden_inputs), group)
        chosen |= {a.ask for group in cases.values() for a in group.each}
    timed = {partner(ask, reference).ask for ask in chosen if isinstance(ask.of, Call) and ask.of.timing}
    return [a for a in reference if a.ask in timed or a.ask in chosen]


def without_trials(answered: Sequence[AskFinding]) -> list[AskFinding]:
    """Return the answers without their field ``poison``.

    The object ``poison`` runs a program again with changed results of operations, to find the operations that affect
    the program's results. This is slow, because it compiles another program.
    """
    return [
        replace(a, finding=Finding(replace(a.finding.observation, poison=None))) if a.finding.observation else a
        for a in answered
    ]


def few_cases(
    exercise: Exercise, others: Iterable[Misconception | Alternative], reference: Sequence[AskFinding]
) -> dict[str, list[AskFinding]]:
    """Return, by name of each misconception, the reference's results for the first cases of the misconception.

    If a check's budget must separate right from wrong programs, the misconceptions that fail the check have all cases.
    """
    checks = exercise.checks.values()
    every = {c.name for c in checks if any(separates(use) for _, _, use in uses_of(c, reference, measuring=False))}
    wrong = [other for other in others if isinstance(other, Misconception)]
    return {one.name: first_cases(exercise, reference, one.fails, every) for one in wrong}


def _judged(exercise: Exercise, fails: Collection[str]) -> Iterable[Check]:
    blocked: set[str] = set()
    for check in exercise.checks.values():
        if blocked.isdisjoint(check.after):
            yield check
        if not blocked.isdisjoint(check.after) or check.name in fails:
            blocked.add(check.name)


def submission_of(name: str, text: str, student: str = "verify") -> Submission:
    return Submission(student, {name: Source(f"{name}.py", (Chunk(f"{name}.py", text),))}, (), "")


@dataclass
class Replaced:
    """The solution with one task replaced by a misconception, or by an alternative (another right solution).

    Attributes:
        text: the source code.
        known: the unchanged solution's results, for tasks that do not use the replaced task.
        answered: results for all tasks. Empty if another program in the same process may have changed the results.
    """

    by: Misconception | Alternative
    text: str
    known: list[AskFinding]
    answered: list[AskFinding]

    def run(self, grader: Grader, name: str) -> tuple[ExerciseReport, ExerciseReport]:
        """Run the program with all cases, alone in a process.

        Returns:
            The reports on all checks, and on public checks and inputs.
        """
        *both, self.answered = graded_and_public(grader, submission_of(name, self.text), name, self.known)
        return both[0], both[1]


def replaced_texts(
    grader: Grader,
    exercise: Exercise,
    others: Sequence[Misconception | Alternative],
    reference: list[AskFinding],
    cases: Mapping[str, Sequence[AskFinding]],
) -> list[Replaced]:
    """Run the solution with one task replaced, once for each misconception and each alternative.

    Several programs run in one process, and the unchanged solution runs last. If its results differ from ``reference``,
    a program has changed something in the process, so all results of the process are dropped. Results of misconceptions
    are stored, because the grader compares submissions with them to choose hints.

    Args:
        others: the misconceptions and alternatives.
        reference: results of the unchanged solution, from a process that ran no other program.
        cases: by name of a misconception or alternative, the reference's results for the cases with which the program
            runs. Other programs run with all cases.
    """
    given, replaced = answers(grader.course, exercise, "verify"), []
    own = reference_source(exercise, given)
    for start in range(0, len(others), AT_ONCE):
        some = others[start : start + AT_ONCE]
        texts = [reference_source(exercise, given, other) for other in some]
        reaching = [tasks_reaching(exercise, other.of.name) for other in some]
        asks = [
            [a.ask for a in cases.get(other.name, reference) if a.ask.task in tasks]
            for other, tasks in zip(some, reaching, strict=True)
        ]
        found = _found(grader, list(zip(texts, asks, strict=True)), own, reference)
        for other, text, tasks, answered in zip(some, texts, reaching, found, strict=True):
            if isinstance(other, Misconception):
                grader.references.learn(exercise, other, answered)
                answered = without_trials(answered)
            known = [a for a in reference if a.ask.task not in tasks]
            replaced.append(Replaced(other, text, known, [*known, *answered] if answered else []))
    return replaced


def _found(
    grader: Grader, texts: list[tuple[str, list[Ask]]], own: str, reference: list[AskFinding]
) -> list[list[AskFinding]]:
    asks = set[Ask]().union(*(asks for _, asks in texts))
    asked = [a for a in reference if a.ask in asks]
    *found, last = tried(grader, [*texts, (own, [a.ask for a in asked])])
    # The solution runs last. If its answers differ from its earlier answers in ``reference``, a program in this process
    # has changed the results of later programs.
    return found if alike(last, asked) else [[]] * len(texts)


def amounts(reference: list[AskFinding], texts: Sequence[Replaced]) -> tuple[Amounts, Amounts]:
    """Return the results of the right programs, and the results of the wrong programs, by name of the program."""
    right, wrong = {"the reference": without_trials(reference)}, {}
    for text in texts:
        if isinstance(text.by, Misconception):
            wrong[text.by.name] = text.answered
        else:
            right[f"the alternative {text.by.name}"] = without_trials(text.answered)
    return right, wrong


def alike(some: Sequence[AskFinding], others: Sequence[AskFinding]) -> bool:
    """Return True if both lists have equal programs (equal outcomes, for plain Python tasks) in equal order."""
    return [_made(a.finding) for a in some] == [_made(a.finding) for a in others]


def _made(finding: Finding) -> str:
    return finding.observation.program if finding.observation else repr(finding)


def tasks_reaching(exercise: Exercise, changed: str) -> set[str]:
    """Return the task ``changed`` and the tasks that use it, directly or through other functions."""
    parts = statements(exercise, grading=True)
    functions = {p.name: p.node for p in parts if p.kind in ("given", "helper", "task", "private") and p.name}
    return {changed, *(t for t in exercise.tasks if changed in names_reached([functions[t]], functions))}
