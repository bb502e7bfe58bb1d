"""Prove the course: what an author promises is tried, with the real tracing, running and judging.

For every exercise: the reference passes everything with full marks on every mesh; the stub earns
nothing; every misconception fails exactly the checks it names and gets its own hint, with every seed tried, and passes
nothing that it fails in public; what learners get of it has all that is public, and the reference passes that, too; no two answers of a question lie within its tolerance, and what a question asks about
can exist; hidden dimensions are as awkward as public ones. For the course: names are unique, ``exercises/`` is current,
and what learners are given holds no line of a solution, no hidden check and no seed.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

from grader.authoring import inputs, modes, possible
from grader.authoring.released import released_problems
from grader.authoring.seeds import SEEDS, is_luck, luck, results_by_seed
from grader.batch.grade import Grader
from grader.common.result import Report, Result
from grader.course.answers import answer_by, answers
from grader.course.build import stale
from grader.course.config import GRADING, CourseError
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.course.release import products
from grader.course.statements import Statement, statements
from grader.course.stubs import stub_source
from grader.exercise import AuthorError, Call, Exercise, Misconception, Question
from grader.intake.submission import Chunk, Source, Submission
from grader.judging import answers as judging
from grader.judging.problems import question_problems

LEAST_HINTS = 1
PICTURE_WIDTH = 76


def verify(
    course: Course, grader: Grader, names: list[str], tell: Callable[[str, list[str]], None], seeds: int = 1
) -> int:
    """Prove these exercises, then the course; ``tell`` gets each exercise's problems. Returns their number.

    Args:
        seeds: with how many seeds the reference and each misconception are tried.
    """
    total = 0
    with ThreadPoolExecutor(grader.jobs) as pool:
        proofs = {name: pool.submit(lambda n=name: list(exercise_problems(course, grader, n, seeds))) for name in names}
        for name, proof in proofs.items():
            problems = proof.result()
            tell(name, problems)
            total += len(problems)
    problems = list(course_problems(course))
    tell("course", problems)
    return total + len(problems)


# -- one exercise ------------------------------------------------------------------------------


def exercise_problems(course: Course, grader: Grader, name: str, seeds: int = 1) -> Iterator[str]:
    try:
        exercise = course.exercise(name)
    except CourseError as error:
        yield str(error)
        return
    yield from declaration_problems(exercise)
    for call in dict.fromkeys(call for c in exercise.checks.values() for call in c.calls):
        if isinstance(call, Call) and not call.timing:
            yield from inputs.tame_dims(call)
    for question in exercise.questions.values():
        yield from question_problems(question, exercise.misconceptions.values())
        yield from possible.question_problems(question)
    try:
        yield from inputs.undecided_draws(exercise)
        yield from reference_problems(course, grader, exercise, seeds)
        yield from _stub(course, grader, exercise)
        for slip in exercise.misconceptions.values():
            yield from _slip(course, grader, exercise, slip, seeds)
    except (CourseError, AuthorError) as error:
        yield str(error)


def declaration_problems(exercise: Exercise) -> Iterator[str]:
    for line in wide_lines(exercise.statement):
        yield f"a picture is wider than {PICTURE_WIDTH} characters, which a terminal breaks: {line.strip()[:60]}..."
    if not exercise.tasks and not exercise.questions:
        yield "has neither a task to write nor a question to answer"
    if exercise.tasks and not any(c.public for c in exercise.checks.values()):
        yield "has no public check: learners could check nothing"
    for task in exercise.tasks.values():
        if len(task.hints) < LEAST_HINTS:
            yield f"{task.name} has no hint"
        if not exercise.checks_of(task):
            yield f"{task.name} is checked by nothing"
        if not any(s.of is task for s in exercise.misconceptions.values()):
            yield f"{task.name} has no misconception to prove its checks"
    yield from modes.undecided_modes(exercise)
    for check in exercise.checks.values():
        if check.points <= 0:
            yield f"{check.name} is worth nothing"


def wide_lines(statement: str) -> list[str]:
    """Lines of pictures and formulas (fenced, or indented by four) that do not fit a terminal of 80 columns."""
    found, fenced = [], False
    for line in statement.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif (fenced or line.startswith("    ")) and len(line) > PICTURE_WIDTH:
            found.append(line)
    return found


def _submission(name: str, text: str, student: str = "verify") -> Submission:
    return Submission(student, {name: Source(f"{name}.py", (Chunk(f"{name}.py", text),))}, (), "")


def _grade(grader: Grader, name: str, text: str, *, public: bool = False) -> Report:
    return grader.grade(_submission(name, text), [name], public=public)


def reference_problems(course: Course, grader: Grader, exercise: Exercise, seeds: int) -> Iterator[str]:
    text = reference_source(exercise, answers(course, exercise, "verify"))
    for public in (True, False):
        report = _grade(grader, exercise.id, text, public=public)
        for result in report.exercises[0].results:
            if result.status != "passed":
                yield f"the reference does not pass {result.name}: {result.reason}"
        for note in report.exercises[0].notes:
            yield f"the reference does not load: {note}"
    yield from released_problems(grader, exercise, _submission(exercise.id, text))
    for task in exercise.tasks if seeds > 1 else ():
        failed: dict[str, list[str]] = {}
        for of_seed in results_by_seed(grader, exercise, text, SEEDS[:seeds], task):
            for result in of_seed.values():
                if result.status not in ("passed", "blocked"):
                    failed.setdefault(result.name, []).append(result.reason)
        for name, reasons in failed.items():
            yield f"the reference does not pass {name} with {len(reasons)} of {seeds} seeds: {reasons[0]}"


def _stub(course: Course, grader: Grader, exercise: Exercise) -> Iterator[str]:
    report = _grade(grader, exercise.id, stub_source(course, exercise))
    for result in report.exercises[0].results:
        if result.status not in ("failed", "blocked"):
            yield f"the stub gets {result.status!r} for {result.name}"
    for note in report.exercises[0].notes:
        yield f"the stub does not load: {note}"


def _slip(course: Course, grader: Grader, exercise: Exercise, slip: Misconception, seeds: int) -> Iterator[str]:
    if isinstance(slip.of, Question):
        yield from _wrong_answer(course, exercise, slip)
        return
    text = reference_source(exercise, answers(course, exercise, "verify"), slip)
    results = {r.name: r for r in _grade(grader, exercise.id, text).exercises[0].results}
    failed = {n for n, r in results.items() if r.status == "failed"}
    broken = [f"{n} ({r.reason})" for n, r in results.items() if r.status == "broken"]
    if broken:
        yield f"the misconception {slip.name} breaks {', '.join(broken)}"
    if failed != set(slip.fails):
        reasons = "; ".join(f"{n}: {results[n].reason}" for n in sorted(failed - set(slip.fails)))
        yield (
            f"the misconception {slip.name} fails {_list(failed)}, it names {_list(slip.fails)}"
            + (f" ({reasons})" if reasons else "")
        )
    for name in sorted(failed & set(slip.fails)):
        if results[name].misconception != slip.name:
            yield f"the misconception {slip.name} gets the hint of {results[name].misconception or 'none'} in {name}"
    for result in _grade(grader, exercise.id, text, public=True).exercises[0].results:
        if result.status == "failed":
            yield from public_problems(slip, result, results[result.name])
    if seeds > 1 and any(is_luck(results[c.name]) for c in exercise.checks_of(slip.of)):
        by_seed = results_by_seed(grader, exercise, text, SEEDS[:seeds], slip.of.name)
        for name, lucky in luck(by_seed, set(slip.fails)).items():
            yield f"the misconception {slip.name} fails {name} by luck: not with {len(lucky)} of {seeds} seeds"
        failed = {r.name for of_seed in by_seed for r in of_seed.values() if r.status == "failed"}
        for name in sorted(failed - set(slip.fails)):
            yield f"the misconception {slip.name} fails {name} too, with some seeds"


def public_problems(slip: Misconception, shown: Result, graded: Result) -> Iterator[str]:
    """What is wrong with a misconception that fails this check in public."""
    if graded.status == "passed":
        yield f"the misconception {slip.name} fails {shown.name} in public and passes it when graded"
    if shown.name in slip.fails and shown.misconception != slip.name:
        yield f"the misconception {slip.name} gets the hint of {shown.misconception or 'none'} in {shown.name}, in public"


def _wrong_answer(course: Course, exercise: Exercise, slip: Misconception) -> Iterator[str]:
    question = slip.of
    assert isinstance(question, Question)
    params = course.params(question, "verify")
    given = answer_by(slip, question, params)
    result = judging.judge(question, params, exercise.misconceptions.values(), given)
    if result.status != "failed" or result.misconception != slip.name:
        yield f"the answer of {slip.name} gets {result.status}, hint {result.misconception or 'none'}"


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


# -- the whole course --------------------------------------------------------------------------


def course_problems(course: Course) -> Iterator[str]:
    usable, unusable = course.usable(course.module_of)
    yield from _names([course.exercise(name) for name in usable])
    for name in unusable:
        yield f"{name} cannot be used, so what learners are given was not proved; see: shardlings verify {name}"
    if unusable:
        return
    try:
        made = products(course)
    except CourseError as error:
        yield str(error)
        return
    for path in stale(course, made):
        yield f"exercises/{path} is not current; run `shardlings build`"
    yield from leaks(course, made)
    known = {f"{m}/{e}.py" for e, m in course.module_of.items()}
    known |= {f"{m}/{GRADING}/{e}.py" for e, m in course.module_of.items()}
    for path in sorted((course.root / "solutions").rglob("*.py")):
        name = path.relative_to(course.root / "solutions").as_posix()
        if name not in known and "__pycache__" not in name:
            what = "belongs to no exercise" if path.parent.name == GRADING else "is not listed"
            yield f"solutions/{name} {what} in course.yaml"


def _names(exercises: Iterable[Exercise]) -> Iterator[str]:
    """Tasks and questions share the namespace of a notebook, so their names are used once in the course."""
    owner: dict[str, str] = {}
    for exercise in exercises:
        for name in [*exercise.tasks, *exercise.questions]:
            if name in owner:
                yield f"the name {name} is used by {owner[name]} and by {exercise.id}"
            owner[name] = exercise.id


def leaks(course: Course, made: dict[str, str]) -> Iterator[str]:
    """Lines that learners must not get, found in what they are given."""
    secrets = dict(secret_lines(course))
    for path, text in made.items():
        for line in text.splitlines():
            found = secrets.get(normal_form(line))
            if found:
                yield f"exercises/{path} holds a line of {found}: {line.strip()[:80]}"
    seed = course.config.seed
    for path, text in made.items():
        if len(seed) > 3 and seed in text:
            yield f"exercises/{path} holds the course's seed"


def secret_lines(course: Course) -> Iterator[tuple[str, str]]:
    """Telling lines of solutions, hidden checks, hidden cases, answers and misconceptions, and whose they are.

    Lines that occur in what learners are meant to get are no secrets; nor are short ones, and those that
    three exercises share: they are idioms.
    """
    used = Counter(
        line
        for e in course.exercises.values()
        for line in {normal_form(text) for text in f"{e.source}\n{e.grading_source}".splitlines()}
    )
    shown = {normal_form(line) for e in course.exercises.values() for line in _public_checks(e)}
    for exercise in course.exercises.values():
        parts = statements(exercise, grading=True)
        public = {c.name for c in exercise.checks.values() if c.public}
        shown_lines = shown | {normal_form(line) for p in parts for line in _given(p, public).splitlines()}
        shown_lines |= {normal_form(hint) for task in exercise.tasks.values() for hint in task.hints}
        for part in parts:
            for line in _secret(part, public):
                if (
                    len(normal_form(line)) >= 16
                    and normal_form(line) not in shown_lines
                    and used[normal_form(line)] < 3
                ):
                    yield normal_form(line), f"{exercise.id}/{part.name}"


def _public_checks(exercise: Exercise) -> list[str]:
    """Lines of public checks: a hidden check of another exercise that says the same is no secret."""
    public = {c.name for c in exercise.checks.values() if c.public}
    return [line for p in statements(exercise, grading=True) if p.name in public for line in p.text.splitlines()]


def normal_form(line: str) -> str:
    """A line without blanks and comment, so that formatting does not hide it."""
    return "".join(line.split("  #")[0].split())


def _given(part: Statement, public: set[str]) -> str:
    """The text of a statement that learners are given."""
    if part.kind in ("given", "helper", "import", "exercise", "doc") or part.name in public:
        return part.text
    if part.kind in ("task", "question") and isinstance(part.node, ast.FunctionDef):
        node = part.node
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        body = node.body[0].end_lineno or node.lineno
        return "\n".join(part.text.splitlines()[: body - first + 1])
    return ""


def _secret(part: Statement, public: set[str]) -> list[str]:
    """Body lines of solutions, answers, misconceptions, hidden checks and private functions."""
    if not isinstance(part.node, ast.FunctionDef) or part.kind in ("given", "helper") or part.name in public:
        return []
    lines = part.text.splitlines()
    first = min([part.node.lineno, *(d.lineno for d in part.node.decorator_list)])
    start = part.node.body[0]
    skip = (
        (start.end_lineno or 0)
        if ast.get_docstring(part.node) and part.kind in ("task", "question")
        else part.node.lineno
    )
    return lines[skip - first + 1 :]
