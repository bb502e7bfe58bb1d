"""The *canary*: before a batch, grade the course's own solutions. The batch stops unless all solutions get full marks.

The solutions run in the same workers and sandboxes as the submissions. A solution that got full marks is graded again
only after a change of the course, the software, the sandbox or the machine. To notice a change, the grader keeps
digests of everything that decides the verdicts (``key_of``) in ``$XDG_CACHE_HOME/shardlings/canary.json`` (``~/.cache``
when unset).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import secrets
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from grader.batch.grade import Grader
from grader.batch.reporting import own_digest, versions
from grader.batch.workers import pool_of
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.reference import answers, reference_source
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.answers import kind_name
from grader.reports.points import counted

STUDENT = "canary"
MOST_REMEMBERED = 2000


Step = Callable[[str], None]
Bar = Callable[[int, str], contextlib.AbstractContextManager[Step]]
"""Takes the number of items and a label, shows a progress bar, and yields a function to call after each item."""


def no_word(_: object) -> None:
    """Do nothing. Functions that report each step call this function by default."""


def no_bar(number: int, label: str) -> contextlib.AbstractContextManager[Step]:
    """Show no progress bar."""
    return contextlib.nullcontext(no_word)


class CanaryFailed(CourseError):
    """A reference solution does not get full marks on this machine. The message says why and what to do."""


def prove(grader: Grader, names: Iterable[str], bar: Bar = no_bar) -> None:
    """Grade the exercises' solutions that did not yet get full marks on this machine.

    If only the checks of an exercise changed since its solution got full marks (``run_key``), the cache may give the
    solution's answers. All other solutions are traced and run anew. ``bar`` shows a progress bar.

    If other machines grade the submissions, do nothing, because those machines also grade the solutions.

    Raises CanaryFailed if a solution does not get full marks.
    """
    known = remembered()
    left = [name for name in names if key_of(grader, name) not in known]
    if grader.proves_itself or not left:
        return
    runs = {name: run_key(grader, name) for name in left}
    with bar(len(left), "grading the course's solutions first") as step:
        problem = examine(grader, left, step, [name for name, key in runs.items() if key in known])
    if problem:
        raise CanaryFailed(problem)
    new = [*(key_of(grader, name) for name in left), *runs.values()]
    remember([*dict.fromkeys([*remembered(), *new])])


def examine(grader: Grader, names: list[str], step: Step = no_word, cached: Collection[str] = ()) -> str:
    """Grade the solutions of the exercises ``names``. Return '' if all get full marks.

    Otherwise return one line that names a failed solution and the remedy.

    Args:
        step: called with the name of each finished exercise.
        cached: the exercises for which the cache may give the solution's answers. All other solutions run anew.
    """
    problems: dict[str, str] = {}
    with pool_of(grader.jobs) as pool:
        graded = pool.map(lambda n: _problem(grader, n, fresh=n not in cached), names)
        for name, problem in zip(names, graded, strict=True):
            step(name)
            problems |= {name: problem} if problem else {}
    if not problems:
        return ""
    name, problem = next(iter(problems.items()))
    others = f" (in all, {len(problems)} of {len(names)} solutions do not get full marks)" if len(problems) > 1 else ""
    return (
        f"the test with the course's solutions failed: the solution of {name} {problem}{others}. "
        f"Nothing is graded, because this environment ({_environment(grader)}) cannot be trusted to grade; "
        f"run shardlings doctor, then shardlings verify {name}"
    )


def one_of_each_kind(course: Course) -> list[str]:
    """Return a few exercises, in course order, that together have all kinds of tasks and questions of the course."""
    chosen, seen = [], set()
    for name in course.module_of:
        exercise = course.exercise(name)
        kinds = {task.kind for task in exercise.tasks.values()} | {
            kind_name(question) for question in exercise.questions.values()
        }
        if kinds - seen:
            chosen.append(name)
            seen |= kinds
    return chosen


def _problem(grader: Grader, name: str, *, fresh: bool) -> str:
    """Return why the exercise's solution does not get full marks; '' for full marks."""
    try:
        exercise = grader.course.exercise(name)
        text = reference_source(exercise, answers(grader.course, exercise, STUDENT))
        source = Source(f"{name}.py", (Chunk(f"{name}.py", text),))
        report = grader.grade(Submission(STUDENT, {name: source}, (), ""), [name], fresh=fresh).exercises[0]
    # Treat an error of the grader like a failed solution, which stops the batch.
    except Exception as error:
        return f"cannot be graded on this machine ({type(error).__name__}: {error})"
    short = next((r for r in report.results if r.status not in ("passed", "waiting") and not r.unjudged), None)
    if short is None and report.results:
        return ""
    why = f" ({short.name}: {short.reason or short.status})" if short else ""
    return f"gets {report.earned:g} of {counted(report.points, 'point')} on this machine{why}"


# -- keys of solutions that got full marks ------------------------------------------------------


def _environment(grader: Grader) -> str:
    found = versions()
    return (
        f"Python {platform.python_version()}, jax {found['jax']}, jaxlib {found['jaxlib']}, isolation {grader.tier}"
        + (f", {grader.backend}" if grader.devices else "")
    )


def key_of(grader: Grader, name: str) -> str:
    """Return a digest (SHA-256) of everything that decides the verdicts of this exercise, including this machine."""
    return digest_of([grader.course.digest([name]), name, *_here(grader)])


def run_key(grader: Grader, name: str) -> str:
    """Return a digest (SHA-256) of the grader, this machine, and the exercise's requests (``Ask``).

    The digest does not depend on the exercise's checks, because checks do not change a solution's answers.
    """
    asks = [[ask.for_tracer([]), ask.digest, ask.hidden_inputs] for ask in grader.plan(name, False)]
    return digest_of(["ran", asks, name, *_here(grader)])


def _here(grader: Grader) -> list[object]:
    host = [*platform.uname(), platform.python_version(), sys.prefix]
    return [grader.versions, own_digest(), grader.tier, host, *([grader.backend] if grader.backend != "cpu" else [])]


def digest_of(value: object) -> str:
    """Return SHA-256 of a value's JSON."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def memory() -> Path:
    """Return the path of the file with the digests ``key_of`` and ``run_key`` of each solution that got full marks."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shardlings" / "canary.json"


def remembered() -> list[str]:
    """Return the digests in the canary's file, oldest first; [] if the file is missing or damaged."""
    try:
        data = json.loads(memory().read_text(encoding="utf-8"))
        whole = data["digest"] == digest_of(data["proved"])
        return [str(key) for key in data["proved"]] if whole else []
    # ``Path.home`` raises RuntimeError if the user has no home folder.
    except (OSError, ValueError, LookupError, TypeError, RuntimeError):
        return []


def remember(keys: list[str]) -> None:
    """Replace the digests in the canary's file. If two graders write at once, one grader's digests are lost."""
    keys = keys[-MOST_REMEMBERED:]
    with contextlib.suppress(OSError, RuntimeError):
        path = memory()
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".tmp-{secrets.token_hex(8)}")
        try:
            temporary.write_text(json.dumps({"proved": keys, "digest": digest_of(keys)}), encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
