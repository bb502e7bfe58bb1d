"""Before a class is graded in an environment, the course's own solutions are: anything but full marks stops the batch.

They take the very path that submissions take (the same grader, tier and workers). What was proved is remembered for
the course's content, the versions of everything that decides, the tier and the host, in
``$XDG_CACHE_HOME/shardlings/canary.json`` (``~/.cache`` when unset). Without that file, or with a damaged one, the
canary runs again, which costs a second or two for a module and nothing else.
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
from grader.course.answers import answers
from grader.course.config import CourseError
from grader.course.loading import Course
from grader.course.reference import reference_source
from grader.intake.submission import Chunk, Source, Submission
from grader.judging.answers import kind_name

STUDENT = "canary"
MOST_REMEMBERED = 2000


Step = Callable[[str], None]


def no_word(name: str) -> None:
    """Says nothing of what is done."""


class CanaryFailed(CourseError):
    """A reference does not get full marks here; the message says what is wrong and what to do."""


def unproved(grader: Grader, names: Iterable[str]) -> list[str]:
    """Exercises whose references did not get full marks here before; none where others grade, and prove it."""
    if grader.proves_itself:
        return []
    known = remembered()
    return [name for name in names if key_of(grader, name) not in known]


def prove(grader: Grader, names: Iterable[str], step: Step = no_word) -> None:
    """Grade the references of these exercises, unless that went well here before. Raises CanaryFailed.

    They are traced and run, whatever is remembered of them. Only where that went well before, and what is asked of them is as
    it was, another check is judged on what is remembered. ``step`` is called with each that is done.
    """
    left = unproved(grader, names)
    if not left:
        return
    known, ran = remembered(), {name: ran_key(grader, name) for name in left}
    if problem := examine(grader, left, step, [name for name, key in ran.items() if key in known]):
        raise CanaryFailed(problem)
    new = [*(key_of(grader, name) for name in left), *ran.values()]
    remember([*dict.fromkeys([*remembered(), *new])])


def examine(grader: Grader, names: list[str], step: Step = no_word, ran: Collection[str] = ()) -> str:
    """Grade the references of these exercises now. Empty, or one line saying what is wrong and what to do.

    Args:
        ran: those that may be judged on what is remembered.
    """
    problems: dict[str, str] = {}
    with pool_of(grader.jobs) as pool:
        graded = pool.map(lambda n: _problem(grader, n, fresh=n not in ran), names)
        for name, problem in zip(names, graded, strict=True):
            step(name)
            problems |= {name: problem} if problem else {}
    if not problems:
        return ""
    name, problem = next(iter(problems.items()))
    others = f", and {len(problems) - 1} more of {len(names)} fail" if len(problems) > 1 else ""
    return (
        f"the canary failed: the reference of {name} {problem}{others}; this environment ({_environment(grader)}) "
        f"cannot be trusted to grade, so nothing is graded; see: shardlings doctor, then shardlings verify {name}"
    )


def one_of_each_kind(course: Course) -> list[str]:
    """The first exercises that together ask for every kind of task and of answer."""
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
    """What keeps the reference from full marks."""
    try:
        exercise = grader.course.exercise(name)
        text = reference_source(exercise, answers(grader.course, exercise, STUDENT))
        source = Source(f"{name}.py", (Chunk(f"{name}.py", text),))
        report = grader.grade(Submission(STUDENT, {name: source}, (), ""), [name], fresh=fresh).exercises[0]
    except Exception as error:  # our own, whatever it is: no submission may meet it
        return f"cannot be graded here ({type(error).__name__}: {error})"
    short = next((r for r in report.results if r.status not in ("passed", "waiting") and not r.unjudged), None)
    if short is None and report.results:
        return ""
    why = f" ({short.name}: {short.reason or short.status})" if short else ""
    return f"gets {report.earned:g} of {report.points:g} points here{why}"


# -- what was proved ---------------------------------------------------------------------------


def _environment(grader: Grader) -> str:
    found = versions()
    return (
        f"Python {platform.python_version()}, jax {found['jax']}, jaxlib {found['jaxlib']}, isolation {grader.tier}"
        + (f", {grader.backend}" if grader.devices else "")
    )


def key_of(grader: Grader, name: str) -> str:
    """SHA-256 over all that a verdict on this exercise depends on, and where it was reached."""
    return digest_of([grader.course.digest([name]), name, *_here(grader)])


def ran_key(grader: Grader, name: str) -> str:
    """The same over what is asked of it, and not over what judges the answers."""
    asks = [[ask.for_tracer([]), ask.digest, ask.secret] for ask in grader.plan(name, False)]
    return digest_of(["ran", asks, name, *_here(grader)])


def _here(grader: Grader) -> list[object]:
    host = [*platform.uname(), platform.python_version(), sys.prefix]
    return [grader.versions, own_digest(), grader.tier, host, *([grader.backend] if grader.backend != "cpu" else [])]


def digest_of(value: object) -> str:
    """SHA-256 of a value's JSON."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def memory() -> Path:
    """The file that remembers."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shardlings" / "canary.json"


def remembered() -> list[str]:
    """Keys of what was proved, oldest first; none when the file is not as it was written."""
    try:
        data = json.loads(memory().read_text(encoding="utf-8"))
        whole = data["digest"] == digest_of(data["proved"])
        return [str(key) for key in data["proved"]] if whole else []
    except (OSError, ValueError, LookupError, TypeError, RuntimeError):  # RuntimeError: this user has no home
        return []


def remember(keys: list[str]) -> None:
    """Write down what was proved. Of two graders that write at once one is forgotten, and proves again what it needs."""
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
