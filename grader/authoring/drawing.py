"""Write all values that an exercise computes for students as texts, to compare the values of two processes.

``python -m grader.authoring.drawing COURSE SECONDS NAME ...`` runs the authors' code within limits of time and memory.
It prints two JSON objects for each exercise: ``{"began": name}`` before the exercise's code runs, and then
``{"name": name, "drawn": [[what, where, value], ...]}`` or ``{"name": name, "problem": text}``.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from grader.common.layout import AxisSize
from grader.course.loading import load_course
from grader.exercise import AuthorError, Cases, Exercise, Question
from grader.expect import show_outcome
from grader.judging.answers import (
    kind_of,
    label_of,
    misconceptions_of,
    render_question,
    show_params,
    some_variants,
    type_and_text,
    wanted,
)
from grader.judging.plan import plan
from grader.judging.seen import reference_outcome

SEED = "verify"
DRAWS = 300
"""The largest number of draws of one question that are compared."""
CPU_SECONDS, SECONDS, MEMORY_MIB = 15, 300, 4096
"""Limits of one exercise: CPU time and elapsed time in seconds, address space in MiB. JAX needs 2 GiB."""
AHEAD = datetime.timedelta(days=401, hours=7)
LONGEST = 80
CONSTANT = "the constant"

DIGEST = "sha256:"
Drawn = tuple[str, str, str]
"""(what, where, value): ("time: the right answer", "X=4", "559 us")."""


def drawn_of(exercise: Exercise, backwards: bool = False) -> list[Drawn]:
    """Return the inputs, expected results, parameters, texts, answers and constants of an exercise.

    Args:
        backwards: True to compute a question's answers in reverse order, from the last random numbers to the first. If
            the author's function keeps state between calls, the answers then differ.

    Raises:
        AuthorError: an input cannot be drawn.
    """
    found = list(_of_asks(exercise))
    for question in exercise.questions.values():
        found += _of_question(exercise, question, backwards)
    found += _texts(exercise)
    found += [(CONSTANT, name, value) for space in exercise.spaces for name, value in constants(space)]
    return found


def _of_asks(exercise: Exercise) -> Iterator[Drawn]:
    for number, ask in enumerate(plan(exercise, public=False, seed=SEED)):
        if isinstance(ask.of, Question):
            continue
        yield f"{ask.task}: inputs", str(number), ask.digest + ask.request_digest
        if isinstance(ask.of, Cases):
            for case in ask.cases:
                outcome = show_outcome(reference_outcome(ask.of.task, case))
                yield f"{ask.task}: the expected outcome", _named(case), outcome


def _of_question(exercise: Exercise, question: Question, backwards: bool) -> Iterator[Drawn]:
    for name, values in question.params.items():
        yield f"{question.name}: the list of values of {name}", "", _short(repr(list(values)))
    yield f"{question.name}: the points and the tolerance", "", f"{question.points:g}, {question.rtol:g}"
    yield f"{question.name}: the list of draws", "", _digest(repr(list(question.variants())))
    draws = some_variants(question, DRAWS)
    misconceptions = misconceptions_of(question, exercise.misconceptions.values())
    wrong = [(f"the answer of {one.name}", one.fn) for one in misconceptions]
    for draw in reversed(draws) if backwards else draws:
        where = _named(draw)
        yield f"{question.name}: the text", where, _text(lambda d=draw: _digest(_asked(question, d)))
        for what, fn in [("the right answer", question.fn), *wrong]:
            yield f"{question.name}: {what}", where, _text(lambda f=fn, d=draw: _answer(question, f, d))


def _asked(question: Question, draw: Mapping[str, Any]) -> str:
    return f"{label_of(question, draw)}\n{render_question(question, draw)}"


def _answer(question: Question, fn: Callable[..., Any], draw: Mapping[str, Any]) -> str:
    kind = kind_of(question, draw)
    return _short(kind.shown(wanted(question, fn, draw, kind)))


def _texts(exercise: Exercise) -> Iterator[Drawn]:
    yield "the statement", "", _digest(exercise.statement + exercise.further)
    for name, task in {**exercise.tasks, **exercise.questions}.items():
        yield f"{name}: the hints", "", _digest(repr(task.hints))
    for name, check in exercise.checks.items():
        yield f"{name}: the check's label and points", "", _digest(f"{check.label}{check.points}")
    for name, misconception in exercise.misconceptions.items():
        yield f"{name}: the hint", "", _digest(misconception.hint)


def constants(space: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (name, value as text) for each number, text or collection in a file's namespace."""
    for name, value in space.items():
        if not name.startswith("__") and (text := _plain(value)) is not None:
            yield name, _short(text)


def _plain(value: Any) -> str | None:
    """Return a number, text, array or collection as text; None for functions, classes and other objects."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() | np.generic() | AxisSize():
            return repr(value)
        case np.ndarray():
            return _digest(f"{value.dtype}{value.shape}{value.tolist()}")
        case list() | tuple():
            return f"{type(value).__name__}({', '.join(map(str, map(_plain, value)))})"
        case set() | frozenset():
            return f"set({', '.join(sorted(map(str, map(_plain, value))))})"
        case dict():
            return f"dict({', '.join(f'{_plain(k)}: {_plain(v)}' for k, v in value.items())})"
    return None


def _text(made: Callable[[], str]) -> str:
    try:
        return made()
    except Exception as error:  # another part of ``verify`` reports the error
        return type_and_text(error)


def _named(values: Mapping[str, Any]) -> str:
    return _short(show_params(values))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 25]}... ({_digest(text)[: len(DIGEST) + 8]})"


def _digest(text: str) -> str:
    return DIGEST + hashlib.sha256(text.encode()).hexdigest()


# -- the other process -------------------------------------------------------------------------


def _limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _on_another_machine() -> None:
    """Change the number of processors that authors' code reads, to find values that depend on the machine."""
    count = os.cpu_count() or 1
    for name in ("cpu_count", "process_cpu_count"):
        if hasattr(os, name):
            setattr(os, name, lambda: count + 1)


def _on_another_day() -> None:
    """Move the clocks that authors' code reads to another day, to find values that depend on the day."""
    now, now_ns = time.time, time.time_ns

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return super().now(tz) + AHEAD

        @classmethod
        def utcnow(cls) -> Any:
            return cls.now(datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.now()

    class LaterDate(datetime.date):
        @classmethod
        def today(cls) -> Any:
            return super().today() + AHEAD

    for read in (time.gmtime, time.localtime, time.ctime):
        setattr(time, read.__name__, lambda at=None, read=read: read(time.time() if at is None else at))
    written = time.strftime
    time.strftime = lambda form, at=None: written(form, time.localtime() if at is None else at)
    time.time = lambda: now() + AHEAD.total_seconds()
    time.time_ns = lambda: now_ns() + int(AHEAD.total_seconds()) * 10**9
    datetime.datetime, datetime.date = Later, LaterDate  # pyright: ignore[reportAttributeAccessIssue]


def _draw(path: Path, seconds: float, names: Iterable[str], tell: Callable[[dict[str, Any]], None]) -> None:
    course = load_course(path)
    _on_another_day()
    _on_another_machine()
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, MEMORY_MIB << 20)
    for name in names:
        tell({"began": name})
        # A signal ends the process at a limit of time. ``Redrawn`` then starts another process for the other exercises.
        _limit(resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds))
        signal.alarm(SECONDS)
        try:
            drawn = drawn_of(course.exercise(name), backwards=True) if course.usable([name])[0] else []
            found: dict[str, Any] = {"drawn": drawn}
        except (AuthorError, MemoryError) as error:
            found = {"problem": too_large() if _without_memory(error) else str(error)}
        tell({"name": name, **found})


def _without_memory(error: BaseException | None) -> bool:
    """Return True if memory ran out, even if an author's function then raised a different error."""
    return error is not None and (isinstance(error, MemoryError) or _without_memory(error.__context__))


def too_long(seconds: float) -> str:
    return (
        f"the exercise's inputs and answers take more than {seconds:g} s of CPU time to compute: does a loop never end?"
    )


def too_large() -> str:
    return f"the exercise's inputs and answers need more than {MEMORY_MIB} MiB of memory"


def main() -> None:
    """Print the drawn values of each exercise in ``sys.argv``. Output of authors' code goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(found: dict[str, Any]) -> None:
        out.write(json.dumps(found) + "\n")
        out.flush()

    _draw(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:], tell)


if __name__ == "__main__":
    main()
