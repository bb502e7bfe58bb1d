"""Programs that ``verify`` tries: the solution with one task replaced by a misconception or an alternative.

An *alternative* is another right solution of a task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.authoring.first_cases import first_cases, separating, without_trials
from grader.authoring.together import AT_ONCE, tried
from grader.batch.grade import Grader
from grader.course.loading import Course
from grader.course.reference import answers, reference_source
from grader.course.statements import names_reached, statements
from grader.exercise import Alternative, Exercise, Misconception
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.plan import Ask
from grader.judging.seen import Answered, Finding


def submission_of(name: str, text: str, student: str = "verify") -> Submission:
    return Submission(student, {name: Source(f"{name}.py", (Chunk(f"{name}.py", text),))}, (), "")


@dataclass(frozen=True)
class Replaced:
    """The solution with one task replaced by a misconception, or by an alternative (another right solution).

    Attributes:
        text: the source code.
        known: the unchanged solution's results, for tasks that do not use the replaced task.
        found: results for the replaced task and the tasks that use it. Empty if another program in the same process may
            have changed the results.
    """

    by: Misconception | Alternative
    text: str
    known: list[Answered]
    found: list[Answered]


def replaced_texts(
    course: Course,
    grader: Grader,
    exercise: Exercise,
    others: Sequence[Misconception | Alternative],
    reference: list[Answered],
    *,
    first: bool = False,
) -> list[Replaced]:
    """Run the solution with one task replaced, once for each misconception and each alternative.

    Several programs run in one process, and the unchanged solution runs last. If its results differ from ``reference``,
    a program has changed something in the process, so all results of the process are dropped. Results of misconceptions
    are stored, because the grader compares submissions with them to choose hints.

    Args:
        others: the misconceptions and alternatives.
        reference: results of the unchanged solution, from a process that ran no other program.
        first: True to run misconceptions only with a few cases (see ``first_cases``), which takes less time.
    """
    given, replaced = answers(course, exercise, "verify"), []
    own = reference_source(exercise, given)
    every = separating(exercise, reference) if first else set()
    for start in range(0, len(others), AT_ONCE):
        some = others[start : start + AT_ONCE]
        texts = [reference_source(exercise, given, other) for other in some]
        reaching = [tasks_reaching(exercise, other.of.name) for other in some]
        cases = [_cases(exercise, reference, other, every if first else None) for other in some]
        asks = [[a.ask for a in of if a.ask.task in tasks] for of, tasks in zip(cases, reaching, strict=True)]
        found = _found(grader, list(zip(texts, asks, strict=True)), own, reference)
        for other, text, tasks, answered in zip(some, texts, reaching, found, strict=True):
            if isinstance(other, Misconception):
                grader.references.learn(exercise, other, answered)
                answered = without_trials(answered) if first else answered
            replaced.append(Replaced(other, text, [a for a in reference if a.ask.task not in tasks], answered))
    return replaced


def _cases(
    exercise: Exercise, reference: list[Answered], other: Misconception | Alternative, every: set[str] | None
) -> list[Answered]:
    """Return the reference's answers to the cases (calls with sizes and a mesh) with which ``other`` runs.

    An alternative runs with all cases. A misconception runs with all cases if ``every`` is None, otherwise with a few
    (see ``first_cases``).
    """
    if every is None or isinstance(other, Alternative):
        return reference
    return first_cases(exercise, reference, other.fails, every)


def _found(
    grader: Grader, texts: list[tuple[str, list[Ask]]], own: str, reference: list[Answered]
) -> list[list[Answered]]:
    asks = set[Ask]().union(*(asks for _, asks in texts))
    asked = [a for a in reference if a.ask in asks]
    *found, last = tried(grader, [*texts, (own, [a.ask for a in asked])])
    # The solution runs last. If its answers differ from its earlier answers in ``reference``, a program in this process
    # has changed the results of later programs.
    return found if alike(last, asked) else [[]] * len(texts)


def amounts(
    grader: Grader, exercise: Exercise, reference: list[Answered], texts: Sequence[Replaced]
) -> tuple[dict[str, list[Answered]], dict[str, list[Answered]]]:
    """Return the results of the right programs, and the results of the wrong programs, by name of the program."""
    right, wrong = {"the reference": reference}, {}
    for text in texts:
        found = [*text.known, *text.found]
        if not text.found:
            found = grader.ask(submission_of(exercise.id, text.text), exercise.id, text.known)
        if isinstance(text.by, Misconception):
            wrong[text.by.name] = found
        else:
            right[f"the alternative {text.by.name}"] = found
    return right, wrong


def alike(some: Sequence[Answered], others: Sequence[Answered]) -> bool:
    """Return True if both lists have equal programs (equal outcomes, for plain Python tasks) in equal order."""
    return [_made(a.finding) for a in some] == [_made(a.finding) for a in others]


def _made(finding: Finding) -> str:
    return finding.observation.program if finding.observation else repr(finding)


def tasks_reaching(exercise: Exercise, changed: str) -> set[str]:
    """Return the task ``changed`` and the tasks that use it, directly or through other functions."""
    parts = statements(exercise, grading=True)
    functions = {p.name: p.node for p in parts if p.kind in ("given", "helper", "task", "private") and p.name}
    return {changed, *(t for t in exercise.tasks if changed in names_reached([functions[t]], functions))}
