"""Test a course: try the author's declarations with the code that traces, runs and judges submissions.

For every exercise:

- The reference (the author's solution) and every alternative (another right solution) get full marks on every mesh.
- The stub (the file with which learners start) and trivial programs earn nothing.
- Every misconception fails exactly the checks that it names and gets its own hint.
- Each rule of the statement has a misconception that breaks it, and each check has one that fails it.
- No misconception fails a check on public inputs and passes the same check on hidden inputs.
- Each budget is above the needs of right programs and below the needs of wrong programs.
- The learners' file has all public parts, and the reference passes the checks of the learners' file.
- Wrong and nearly right answers to a question differ from the right answer by more than the tolerance.
- The chip, mesh and arrays of a question can exist.
- A question's text changes with each parameter that changes the answer, and explains each symbol of a formula.
- No function that learners get is a whole solution.
- The sizes of dimensions in hidden inputs differ from each other. If a device's part of a dimension has an odd size in
  public inputs, it also has an odd size in hidden inputs.
- Each keyword argument that is not an array has several values.

For the course:

- Names are unique.
- The folder ``exercises/`` is up to date with the solutions, and contains no solution lines, hidden checks or seed.
- No text shows a right answer.
- The tables of sources in ``solutions/README.md`` are up to date, and name only exercises, tasks, checks and questions
  that exist.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed

from grader.authoring import inputs, keys, possible
from grader.authoring.declarations import declaration_problems, rule_problems
from grader.authoring.grading import graded_and_public
from grader.authoring.margins import margin_problems
from grader.authoring.redrawn import Redrawn, differences
from grader.authoring.seeds import SEEDS, is_luck, results_by_seed, with_those_before
from grader.authoring.timed_values import timed_problems
from grader.authoring.tries import Replaced, amounts, few_cases, replaced_texts, submission_of
from grader.authoring.trivial import given_away_problems, given_keys, trivial_problems
from grader.authoring.whole_course import course_problems, released_problems
from grader.batch.grade import Grader
from grader.batch.remembering import surroundings
from grader.batch.reporting import own_digest
from grader.batch.workers import pool_of
from grader.common.cache import Cache
from grader.common.result import ExerciseReport, Result
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.reference import answer_by, answers, reference_source
from grader.course.stubs import stub_source
from grader.exercise import AuthorError, Check, Exercise, Misconception, Question, Task
from grader.judging import answers as judging
from grader.judging.problems import question_problems
from grader.judging.seen import AskFinding

RIGHT = ("passed", "waiting")
"""Statuses of a right answer. The status "waiting" is for an answer in words, which a person grades."""


def verify(
    grader: Grader,
    names: list[str],
    tell: Callable[[str, list[str]], None],
    seeds: int = 1,
    cache: Cache | None = None,
) -> int:
    """Test these exercises, then the course, and return the number of problems.

    The last exercises in ``names`` start first: they usually take longest, and so all jobs end at about the same time.

    Args:
        tell: a function that is called with an exercise's name and problems when all tests of the exercise are done.
            The last call has the name "course" and all other problems.
        seeds: the number of seeds with which to try the reference and each misconception.
        cache: a cache that stores which exercises have no problems, and whether the course has none.
    """
    total, course = 0, grader.course
    usable = set(course.usable([name for name in names if name in course.module_of])[0])
    known = {name for name in usable if cache and cache.get(_key(grader, name, seeds)) is not None}
    redrawn = Redrawn(course, [name for name in names if name in usable - known])

    def proof(name: str) -> list[str]:
        if name in known:
            return []
        problems = list(exercise_problems(grader, name, seeds, redrawn))
        if cache and name in usable and not problems:
            cache.put(_key(grader, name, seeds), b"nothing to mend")
        return problems

    with pool_of(grader.jobs) as pool:
        proofs = {pool.submit(proof, name): name for name in reversed(names)}
        of_course = _of_course(grader, names, cache)  # while the workers are busy
        own = {name: [problem for problem in of_course if problem.startswith(f"{name}: ")] for name in names}
        for future in as_completed(proofs):
            name = proofs[future]
            problems = [*future.result(), *own[name]]
            tell(name, problems)
            total += len(problems)
    others = [problem for problem in of_course if problem not in itertools.chain(*own.values())]
    tell("course", others)
    return total + len(others)


def _key(grader: Grader, exercise: str, seeds: int) -> bytes:
    """Return the key under which the cache has an exercise without problems.

    The key depends on everything that the result of ``verify`` depends on: the exercise's files, ``course.yaml``, the
    number of seeds, the grader's code, the versions of Python and of packages, the machine and the kind of sandbox.
    """
    return _digest(grader, "proved", exercise, grader.course.digest([exercise]), grader.tier, seeds)


def _of_course(grader: Grader, names: Sequence[str], cache: Cache | None) -> list[str]:
    """Return the problems of the whole course. If the cache has a course without problems, do not test it again."""
    key = _key_of_course(grader, names)
    if cache and key and cache.get(key) is not None:
        return []
    problems = list(course_problems(grader.course, reported=names))
    if cache and key and not problems and key == _key_of_course(grader, names):
        cache.put(key, b"nothing to mend")
    return problems


def _key_of_course(grader: Grader, names: Sequence[str]) -> bytes | None:
    """Return the key under which the cache has a course without problems, or None if a part cannot be read.

    The key depends on the exercises whose texts are searched, on all exercises as they were loaded, and on all files of
    the course. So if you save a file meanwhile, the result does not count for the new file.
    """
    course, root = grader.course, grader.course.root
    paths = [path for folder in ("solutions", "exercises") for path in sorted(root.glob(f"{folder}/**/*"))]
    paths = [root / "course.yaml", *(path for path in paths if "__pycache__" not in path.parts)]
    try:
        loaded = course.digest([*course.module_of])
        files = [(path.relative_to(root).as_posix(), path.read_bytes()) for path in paths if path.is_file()]
    except (CourseError, OSError):
        return None
    return _digest(grader, "whole course", [*names], loaded, [(n, hashlib.sha256(b).hexdigest()) for n, b in files])


def _digest(grader: Grader, *about: object) -> bytes:
    """Return a digest of ``about``, the grader's code, the machine, and the versions of Python and of packages."""
    return hashlib.sha256(json.dumps([*about, own_digest(), grader.versions, surroundings()]).encode()).digest()


def exercise_problems(grader: Grader, name: str, seeds: int, redrawn: Redrawn) -> Iterator[str]:
    course = grader.course
    try:
        exercise = course.exercise(name)
    except CourseError as error:
        yield str(error)
        return
    yield from declaration_problems(exercise, course.config.statement_words)
    yield from rule_problems(exercise)
    yield from inputs.tame_sizes(exercise)
    yield from inputs.fixed_keywords(exercise)
    differing = list(differences(exercise, redrawn))
    yield from differing
    # If draws differ between runs, the other searches for problems give varying results, or never end.
    if not differing:
        yield from _proved(grader, exercise, seeds)


def _proved(grader: Grader, exercise: Exercise, seeds: int) -> Iterator[str]:
    """Yield the problems of an exercise. Its inputs, right answers and texts must be reproducible."""
    of_questions: list[str] = []
    for question in exercise.questions.values():
        found = list(question_problems(question, exercise.misconceptions.values()))
        of_questions += found
        if not found:  # the searches for problems below need a valid key
            yield from keys.key_problems(question)
            yield from possible.question_problems(question)
    yield from keys.text_problems(exercise)
    yield from given_keys(exercise)
    yield from of_questions
    try:
        yield from possible.near_miss_problems(exercise)
        yield from inputs.alike_inputs(exercise)
        of_cases = list(inputs.case_problems(exercise, grader.course.config.seed))
        yield from of_cases
        if of_cases:  # no solution can pass a check whose cases are invalid
            return
        found = yield from reference_problems(grader, exercise, seeds)
        if found is None:
            return
        yield from _stub(grader, exercise)
        yield from trivial_problems(grader, exercise, found)
        yield from timed_problems(exercise, found)
        yield from given_away_problems(grader, exercise, found)
        for misconception in exercise.misconceptions.values():
            if isinstance(misconception.of, Question) and not of_questions:
                yield from _wrong_answer(grader.course, exercise, misconception)
        others = [*exercise.alternatives.values(), *exercise.misconceptions.values()]
        of_tasks = [other for other in others if isinstance(other.of, Task)]
        cases = few_cases(exercise, of_tasks, found) if seeds == 1 else {}
        texts = replaced_texts(grader, exercise, of_tasks, found, cases)
        for text in texts:
            yield from text_problems(grader, exercise, text, seeds)
        yield from _budget_problems(grader, exercise, found, texts)
    except (CourseError, AuthorError) as error:
        # A question's problem may have caused this error. Such problems are already reported.
        if not of_questions:
            yield str(error)


def _budget_problems(
    grader: Grader, exercise: Exercise, reference: list[AskFinding], texts: list[Replaced]
) -> Iterator[str]:
    """Yield the problems of budgets. If a few cases show a problem of a check, try all cases of this check."""
    doubtful = list(dict.fromkeys(check for check, _ in margin_problems(exercise, *amounts(reference, texts))))
    if doubtful:
        right = [text for text in texts if not isinstance(text.by, Misconception)]
        wrong = _with_all_cases(grader, exercise, reference, texts, doubtful)
        for check, problem in margin_problems(exercise, *amounts(reference, [*right, *wrong])):
            if check in doubtful:
                yield problem


def _with_all_cases(
    grader: Grader, exercise: Exercise, reference: list[AskFinding], texts: list[Replaced], checks: Sequence[Check]
) -> list[Replaced]:
    """Run the misconceptions that fail one of these checks, or an earlier check, with all cases of these checks."""
    calls = {id(call) for check in checks for call in check.calls}
    cases = [a for a in reference if id(a.ask.of) in calls and not a.ask.hidden_inputs]
    before = {check.name for check in with_those_before(exercise, checks)}
    wrong = [text.by for text in texts if isinstance(text.by, Misconception) and before & {*text.by.fails}]
    found = replaced_texts(grader, exercise, wrong, reference, {one.name: cases for one in wrong})
    for text in found:
        if not text.answered:
            text.run(grader, exercise.id)
    return found


def reference_problems(grader: Grader, exercise: Exercise, seeds: int) -> Generator[str, None, list[AskFinding] | None]:
    """Yield the reference solution's problems.

    Checks that were not judged because an earlier check failed are left out.

    Returns:
        The reference's results; None if the reference does not pass, because then no check can tell right programs from
        wrong ones.
    """
    text = reference_source(exercise, answers(grader.course, exercise, "verify"))
    submission = submission_of(exercise.id, text)
    graded, shown, found = graded_and_public(grader, submission, exercise.id)
    failed = {r.name: r for r in (*graded.results, *shown.results) if r.status not in RIGHT}
    # If a check failed on public and on hidden inputs, ``result`` is the public result.
    for name, result in failed.items():
        if name in exercise.checks and failed.keys() & set(exercise.checks[name].after):
            continue
        values = f"; expected {result.expected}, actual {result.actual}" if result.expected is not None else ""
        yield f"the reference does not pass {name}: {result.reason}{values}"
    for note in dict.fromkeys([*shown.notes, *graded.notes]):
        yield f"the reference does not load: {note}"
    if failed:
        return None
    grader.references.learn(exercise, None, found)
    yield from released_problems(grader, exercise, submission)
    yield from _unlucky(grader, exercise, text, exercise.tasks, seeds, "the reference")
    return found


def _stub(grader: Grader, exercise: Exercise) -> Iterator[str]:
    stub = submission_of(exercise.id, stub_source(grader.course, exercise))
    report = grader.grade(stub, [exercise.id]).exercises[0]
    for result in report.results:
        if result.status not in ("failed", "blocked"):
            what = f"gets {result.status!r} for {result.name}: the check accepts too much"
            yield f"the stub, which solves nothing, {what}"
    for note in report.notes:
        yield f"the stub does not load: {note}"


def text_problems(grader: Grader, exercise: Exercise, text: Replaced, seeds: int) -> Iterator[str]:
    """Yield the problems of a misconception or alternative.

    If results from a shared process show a problem, run the program again with all cases, alone in a process.
    """
    problems = _misconception if isinstance(text.by, Misconception) else _alternative
    if text.answered:
        submission = submission_of(exercise.id, text.text)
        both = graded_and_public(grader, submission, exercise.id, text.answered, only_known=True)[:2]
        if not any(problems(grader, exercise, text, *both, seeds)):
            return
    yield from problems(grader, exercise, text, *text.run(grader, exercise.id), seeds)


def _alternative(
    grader: Grader, exercise: Exercise, text: Replaced, graded: ExerciseReport, shown: ExerciseReport, seeds: int
) -> Iterator[str]:
    who = f"the alternative {text.by.name}"
    failed = {r.name: r.reason for r in (*shown.results, *graded.results) if r.status not in RIGHT}
    for name, reason in failed.items():
        yield (
            f"{who} does not pass {name}: {reason}; mend the alternative, or let the check require only what the "
            "statement requires"
        )
    yield from _unlucky(grader, exercise, text.text, [text.by.of.name], seeds, who)


def _unlucky(
    grader: Grader, exercise: Exercise, text: str, tasks: Iterable[str], seeds: int, who: str
) -> Iterator[str]:
    """Yield a problem for each check that a right solution fails with at least one seed."""
    for task in tasks if seeds > 1 else ():
        failed: dict[str, list[str]] = {}
        for of_seed in results_by_seed(grader, exercise, text, SEEDS[:seeds], task):
            for result in of_seed.values():
                if result.status not in ("passed", "blocked"):
                    failed.setdefault(result.name, []).append(result.reason)
        for name, reasons in failed.items():
            yield f"{who} does not pass {name} with {len(reasons)} of {seeds} seeds: {reasons[0]}"


def _misconception(
    grader: Grader, exercise: Exercise, text: Replaced, graded: ExerciseReport, shown: ExerciseReport, seeds: int
) -> Iterator[str]:
    misconception = text.by
    assert isinstance(misconception, Misconception) and isinstance(misconception.of, Task)
    results = {r.name: r for r in graded.results}
    yield from _graded_problems(misconception, results)
    for result in shown.results:
        if result.status == "failed":
            yield from public_problems(misconception, result, results[result.name])
    if seeds > 1 and any(is_luck(results[c.name]) for c in exercise.checks_of(misconception.of)):
        by_seed = results_by_seed(grader, exercise, text.text, SEEDS[:seeds], misconception.of.name)
        yield from _luck_problems(misconception, by_seed)


def _graded_problems(misconception: Misconception, results: Mapping[str, Result]) -> Iterator[str]:
    """Yield a problem if a misconception does not fail exactly the checks in ``fails``, or gets a wrong hint."""
    failed = {n for n, r in results.items() if r.status == "failed"}
    broken = [f"{n} ({r.reason})" for n, r in results.items() if r.status == "broken"]
    if broken:
        yield f"the grader cannot judge the misconception {misconception.name}: {', '.join(broken)}"
    if failed != set(misconception.fails):
        reasons = "; ".join(f"{n}: {results[n].reason}" for n in sorted(failed - set(misconception.fails)))
        yield (
            f"the misconception {misconception.name} fails {_list(failed)}, "
            f"but fails= names {_list(misconception.fails)}" + (f" ({reasons})" if reasons else "")
        )
        return  # if other checks fail, other hints may be right
    for name in sorted(failed):
        if results[name].misconception != misconception.known_as:
            yield f"the misconception {misconception.name} fails {name} as expected, {_other_hint(results[name])}"


def _luck_problems(misconception: Misconception, by_seed: list[dict[str, Result]]) -> Iterator[str]:
    """Yield a problem for each check that a misconception fails with some seeds and passes with others."""
    for name in sorted(misconception.fails):
        if lucky := sum(of_seed[name].status not in ("failed", "blocked") for of_seed in by_seed):
            passes = f"the misconception passes with {lucky} of {len(by_seed)} seeds"
            yield f"the misconception {misconception.name} fails {name} by luck: {passes}"
    failed = {r.name for of_seed in by_seed for r in of_seed.values() if r.status == "failed"}
    for name in sorted(failed - set(misconception.fails)):
        yield f"with some seeds, the misconception {misconception.name} also fails {name}"


def public_problems(misconception: Misconception, shown: Result, graded: Result) -> Iterator[str]:
    """Yield a problem if a misconception fails a check only on public inputs, or gets a wrong hint from this check.

    Args:
        shown: the failed result of the public check.
        graded: the result of this check with hidden inputs.
    """
    if graded.status == "passed":
        yield (
            f"the misconception {misconception.name} fails {shown.name} on public inputs "
            "but passes this check with hidden inputs"
        )
    if shown.name in misconception.fails and shown.misconception != misconception.known_as:
        yield f"the misconception {misconception.name} fails {shown.name} on public inputs, {_other_hint(shown)}"


def _wrong_answer(course: Course, exercise: Exercise, misconception: Misconception) -> Iterator[str]:
    question = misconception.of
    assert isinstance(question, Question)
    params = course.params(question, "verify")
    given = judging.kind_of(question, params).raw(answer_by(misconception, question, params))
    result = judging.judge_answer(question, params, exercise.misconceptions.values(), given)
    if result.status != "failed":
        yield f"the answer of the misconception {misconception.name} must be wrong, but gets {result.status!r}"
    elif result.misconception != misconception.name:
        yield f"the answer of the misconception {misconception.name} is wrong as expected, {_other_hint(result)}"


def _other_hint(result: Result) -> str:
    known = result.misconception
    return f"but the learner sees the hint of {known}" if known else "but the learner sees no hint"


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
