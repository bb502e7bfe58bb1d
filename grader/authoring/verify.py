"""Prove the course: test the author's declarations with the real tracing, running and judging.

For every exercise:
- The reference and every alternative get full marks on every mesh. The stub and trivial programs earn nothing.
- Every misconception fails exactly the checks that it names and gets its own hint, with every seed.
- For every rule of the statement a misconception breaks the rule, and for every check a misconception fails the check.
- No misconception fails a check in public and passes it when graded.
- Each budget is between the needs of right and wrong programs.
- The release has all public parts, and the reference passes the checks of the release.
- A question's answers differ by more than its tolerance, and so do near misses. The question's situation can exist.
- Hidden dimensions are at least as uneven as public dimensions.
For the course:
- Names are unique.
- ``exercises/`` is current, and contains no solution lines, hidden checks or seed.
- All parts of the course that the tables of sources name exist.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass

from grader.authoring import inputs, possible
from grader.authoring.declarations import declaration_problems
from grader.authoring.keys import key_problems
from grader.authoring.margins import margin_problems
from grader.authoring.near_misses import near_miss_problems
from grader.authoring.proved import Proved
from grader.authoring.redrawn import Redrawn
from grader.authoring.released import released_problems
from grader.authoring.rules import rule_problems
from grader.authoring.seeds import SEEDS, is_luck, luck, results_by_seed
from grader.authoring.together import tried
from grader.authoring.trivial import trivial_problems
from grader.authoring.whole_course import course_problems
from grader.batch.grade import Grader
from grader.batch.workers import pool_of
from grader.common.cache import Cache
from grader.common.observation import Observation
from grader.common.result import ExerciseReport, Result
from grader.course.answers import answer_by, answers
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.course.statements import names_reached, statements
from grader.course.stubs import stub_source
from grader.exercise import Alternative, AuthorError, Exercise, Misconception, Question, Task
from grader.intake.submission import Chunk, Source, Submission
from grader.judging import answers as judging
from grader.judging.problems import question_problems
from grader.judging.seen import Answered, Finding

RIGHT = ("passed", "waiting")
"""Statuses of a right answer. The status "waiting" is for an answer in words, which a person grades."""
AT_ONCE = 12


def verify(
    course: Course,
    grader: Grader,
    names: list[str],
    tell: Callable[[str, list[str]], None],
    seeds: int = 1,
    cache: Cache | None = None,
) -> int:
    """Prove these exercises, then the course, and return the number of problems.

    The last exercises of a course are the largest. They start first, so that no job is idle at the end.

    Args:
        tell: called with each exercise's name and problems when its proof is done, then with the course's problems.
        seeds: the number of seeds with which to try the reference and each misconception.
        cache: stores which exercises were proved.
    """
    total, proved = 0, Proved(cache, grader, seeds)

    redrawn = Redrawn(course, names)

    def proof(name: str) -> list[str]:
        usable = name in course.module_of and bool(course.usable([name])[0])
        if usable and name in proved:
            return []
        problems = list(exercise_problems(course, grader, name, seeds, redrawn))
        if usable and not problems:
            proved.keep(name)
        return problems

    with pool_of(grader.jobs) as pool:
        proofs = {pool.submit(proof, name): name for name in reversed(names)}
        for future in as_completed(proofs):
            problems = future.result()
            tell(proofs[future], problems)
            total += len(problems)
    problems = list(course_problems(course))
    tell("course", problems)
    return total + len(problems)


def exercise_problems(
    course: Course, grader: Grader, name: str, seeds: int = 1, redrawn: Redrawn | None = None
) -> Iterator[str]:
    try:
        exercise = course.exercise(name)
    except CourseError as error:
        yield str(error)
        return
    yield from declaration_problems(exercise, course.config.statement_words)
    yield from rule_problems(exercise)
    yield from inputs.tame_sizes(exercise)
    of_questions: list[str] = []
    for question in exercise.questions.values():
        of_questions += question_problems(question, exercise.misconceptions.values())
        yield from key_problems(question)
        yield from possible.question_problems(question)
    yield from of_questions
    try:
        yield from near_miss_problems(exercise)
        undecided = list(inputs.undecided_draws(exercise))
        yield from undecided or (redrawn or Redrawn(course, [name])).problems(exercise)
        found = yield from reference_problems(course, grader, exercise, seeds)
        yield from _stub(course, grader, exercise)
        yield from trivial_problems(course, grader, exercise, found)
        for misconception in exercise.misconceptions.values():
            if isinstance(misconception.of, Question) and not of_questions:
                yield from _wrong_answer(course, exercise, misconception)
        others = [*exercise.alternatives.values(), *exercise.misconceptions.values()]
        texts = replaced_texts(course, grader, exercise, [o for o in others if isinstance(o.of, Task)], found)
        for text in texts:
            yield from text_problems(grader, exercise, text, seeds)
        yield from margin_problems(exercise, *amounts(grader, exercise, found, texts))
    except (CourseError, AuthorError) as error:
        if not of_questions:  # otherwise a question without an answer, already reported, is the cause
            yield str(error)


def _submission(name: str, text: str, student: str = "verify") -> Submission:
    return Submission(student, {name: Source(f"{name}.py", (Chunk(f"{name}.py", text),))}, (), "")


def _grade(grader: Grader, name: str, text: str) -> ExerciseReport:
    return grader.grade(_submission(name, text), [name]).exercises[0]


def reference_problems(
    course: Course, grader: Grader, exercise: Exercise, seeds: int
) -> Generator[str, None, list[Answered]]:
    """Yield the reference's problems. Returns the reference's findings, because other programs share parts of it."""
    text = reference_source(exercise, answers(course, exercise, "verify"))
    submission = _submission(exercise.id, text)
    graded, shown, found = grader.graded_and_public(submission, exercise.id)
    failed = {r.name: r for r in (*graded.results, *shown.results) if r.status not in RIGHT}
    for result in failed.values():  # for a check with a public and a graded result, this is the public one
        values = f"; expected {result.expected}, actual {result.actual}" if result.expected is not None else ""
        yield f"the reference does not pass {result.name}: {result.reason}{values}"
    for note in dict.fromkeys([*shown.notes, *graded.notes]):
        yield f"the reference does not load: {note}"
    yield from released_problems(grader, exercise, submission)
    yield from _unlucky(grader, exercise, text, exercise.tasks, seeds, "the reference")
    return found


def _stub(course: Course, grader: Grader, exercise: Exercise) -> Iterator[str]:
    report = _grade(grader, exercise.id, stub_source(course, exercise))
    for result in report.results:
        if result.status not in ("failed", "blocked"):
            yield f"the stub gets {result.status!r} for {result.name}"
    for note in report.notes:
        yield f"the stub does not load: {note}"


@dataclass(frozen=True)
class Replaced:
    """The solution with one task replaced by a misconception or an alternative.

    Attributes:
        text: the source code.
        known: the reference's findings for tasks that do not depend on the replaced task.
        found: findings for all other tasks, from a process shared with other programs; empty if the other programs may
            have changed these findings.
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
) -> list[Replaced]:
    """Try misconceptions and alternatives, several per process. The grader learns each misconception's results.

    The solution runs last in each process. If its findings differ from ``reference``, no findings of the process count.

    Args:
        others: the misconceptions and alternatives.
        reference: findings of the solution alone in a process.
    """
    given, replaced = answers(course, exercise, "verify"), []
    own = reference_source(exercise, given)
    for start in range(0, len(others), AT_ONCE):
        some = others[start : start + AT_ONCE]
        texts = [reference_source(exercise, given, other) for other in some]
        reaching = [tasks_reaching(exercise, other.of.name) for other in some]
        asked = [[a for a in reference if a.ask.task in tasks] for tasks in [*reaching, set().union(*reaching)]]
        asks = [[a.ask for a in answered] for answered in asked]
        *found, last = tried(grader, list(zip([*texts, own], asks, strict=True)))
        if not alike(last, asked[-1]):  # a program in this process has changed the results of later programs
            found = [[]] * len(some)
        for other, text, tasks, answered in zip(some, texts, reaching, found, strict=True):
            replaced.append(Replaced(other, text, [a for a in reference if a.ask.task not in tasks], answered))
            if isinstance(other, Misconception):
                grader.references.learn(exercise, other, answered)
    return replaced


def amounts(
    grader: Grader, exercise: Exercise, reference: list[Answered], texts: Sequence[Replaced]
) -> tuple[dict[str, list[Answered]], dict[str, list[Answered]]]:
    """Return (findings of right programs, findings of wrong programs), both by name."""
    right, wrong = {"the reference": reference}, {}
    for text in texts:
        found = [*text.known, *text.found]
        if not text.found:
            found = grader.graded_and_public(_submission(exercise.id, text.text), exercise.id, text.known)[2]
        if isinstance(text.by, Misconception):
            wrong[text.by.name] = found
        else:
            right[f"the alternative {text.by.name}"] = found
    return right, wrong


def alike(some: Sequence[Answered], others: Sequence[Answered]) -> bool:
    """Return True if all findings have equal programs or, for plain Python tasks, equal outcomes."""
    return [_made(a.finding) for a in some] == [_made(a.finding) for a in others]


def _made(finding: Finding) -> str:
    return finding.program if isinstance(finding, Observation) else repr(finding)


def tasks_reaching(exercise: Exercise, changed: str) -> set[str]:
    """Return the task ``changed`` and the tasks that use it, directly or through other functions."""
    parts = statements(exercise, grading=True)
    functions = {p.name: p.node for p in parts if p.kind in ("given", "helper", "task", "private") and p.name}
    return {changed, *(t for t in exercise.tasks if changed in names_reached([functions[t]], functions))}


def text_problems(grader: Grader, exercise: Exercise, text: Replaced, seeds: int) -> Iterator[str]:
    """Yield the problems of a misconception or alternative. If a shared process shows problems, try it again alone."""
    problems = _misconception if isinstance(text.by, Misconception) else _alternative
    if not text.found or any(problems(grader, exercise, text, [*text.known, *text.found], seeds)):
        yield from problems(grader, exercise, text, text.known, seeds)


def _alternative(
    grader: Grader, exercise: Exercise, text: Replaced, known: list[Answered], seeds: int
) -> Iterator[str]:
    who = f"the alternative {text.by.name}"
    graded, shown, _ = grader.graded_and_public(_submission(exercise.id, text.text), exercise.id, known)
    failed = {r.name: r.reason for r in (*shown.results, *graded.results) if r.status not in RIGHT}
    for name, reason in failed.items():
        yield (
            f"{who} does not pass {name}: {reason}; if the alternative is right, the check asks for more than the "
            "statement does"
        )
    yield from _unlucky(grader, exercise, text.text, [text.by.of.name], seeds, who)


def _unlucky(
    grader: Grader, exercise: Exercise, text: str, tasks: Iterable[str], seeds: int, who: str
) -> Iterator[str]:
    """Yield a problem for each check that a right solution does not pass with every seed."""
    for task in tasks if seeds > 1 else ():
        failed: dict[str, list[str]] = {}
        for of_seed in results_by_seed(grader, exercise, text, SEEDS[:seeds], task):
            for result in of_seed.values():
                if result.status not in ("passed", "blocked"):
                    failed.setdefault(result.name, []).append(result.reason)
        for name, reasons in failed.items():
            yield f"{who} does not pass {name} with {len(reasons)} of {seeds} seeds: {reasons[0]}"


def _misconception(
    grader: Grader, exercise: Exercise, text: Replaced, known: list[Answered], seeds: int
) -> Iterator[str]:
    misconception = text.by
    assert isinstance(misconception, Misconception) and isinstance(misconception.of, Task)
    graded, shown, _ = grader.graded_and_public(_submission(exercise.id, text.text), exercise.id, known)
    results = {r.name: r for r in graded.results}
    yield from _graded_problems(misconception, results)
    for result in shown.results:
        if result.status == "failed":
            yield from public_problems(misconception, result, results[result.name])
    if seeds > 1 and any(is_luck(results[c.name]) for c in exercise.checks_of(misconception.of)):
        by_seed = results_by_seed(grader, exercise, text.text, SEEDS[:seeds], misconception.of.name)
        yield from _luck_problems(misconception, by_seed)


def _graded_problems(misconception: Misconception, results: Mapping[str, Result]) -> Iterator[str]:
    """Yield the problems that graded results show: the misconception fails wrong checks, or gets a wrong hint."""
    failed = {n for n, r in results.items() if r.status == "failed"}
    broken = [f"{n} ({r.reason})" for n, r in results.items() if r.status == "broken"]
    if broken:
        yield f"the misconception {misconception.name} breaks {', '.join(broken)}"
    if failed != set(misconception.fails):
        reasons = "; ".join(f"{n}: {results[n].reason}" for n in sorted(failed - set(misconception.fails)))
        yield (
            f"the misconception {misconception.name} fails {_list(failed)}, it names {_list(misconception.fails)}"
            + (f" ({reasons})" if reasons else "")
        )
        return  # hints matter only if exactly the expected checks fail
    for name in sorted(failed):
        if results[name].misconception != misconception.known_as:
            yield f"the misconception {misconception.name} fails {name} as expected, {_other_hint(results[name])}"


def _luck_problems(misconception: Misconception, by_seed: list[dict[str, Result]]) -> Iterator[str]:
    """Yield a problem for each check that a misconception fails with some seeds and passes with others."""
    seeds = len(by_seed)
    for name, lucky in luck(by_seed, set(misconception.fails)).items():
        passes = f"it does not fail with {len(lucky)} of {seeds} seeds"
        yield f"the misconception {misconception.name} fails {name} by luck: {passes}"
    failed = {r.name for of_seed in by_seed for r in of_seed.values() if r.status == "failed"}
    for name in sorted(failed - set(misconception.fails)):
        yield f"the misconception {misconception.name} fails {name} too, with some seeds"


def public_problems(misconception: Misconception, shown: Result, graded: Result) -> Iterator[str]:
    """Yield problems of a misconception that fails a check in public: it passes when graded, or gets a wrong hint."""
    if graded.status == "passed":
        yield f"the misconception {misconception.name} fails {shown.name} in public and passes it when graded"
    if shown.name in misconception.fails and shown.misconception != misconception.known_as:
        yield f"the misconception {misconception.name} fails {shown.name} in public, {_other_hint(shown)}"


def _wrong_answer(course: Course, exercise: Exercise, misconception: Misconception) -> Iterator[str]:
    question = misconception.of
    assert isinstance(question, Question)
    params = course.params(question, "verify")
    given = judging.kind_of(question, params).raw(answer_by(misconception, question, params))
    result = judging.judge(question, params, exercise.misconceptions.values(), given)
    if result.status != "failed":
        yield f"the answer of the misconception {misconception.name} is {result.status}, and should be wrong"
    elif result.misconception != misconception.name:
        yield f"the answer of the misconception {misconception.name} is wrong as expected, {_other_hint(result)}"


def _other_hint(result: Result) -> str:
    known = result.misconception
    return f"but the learner sees the hint of {known}" if known else "but the learner sees no hint"


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
