"""Look for programs that earn points without the required work: ``python -m tests.skeletons --minutes N --seed S``.

``timed`` makes programs that run a fake (``tests.faking``) in timing calls and the honest program in all other calls.
It tries only fakes that the grader refuses if they run in all calls. A fake gains points in two cases:

- A check of a timing call passes although the timed program differs from the honest one.
- All checks pass with a shorter step than the honest program's.

A fake gains nothing if the grader also judged the fake's values and found them right. An example is a fake with
permutes in bfloat16, where all arrays are in bfloat16.

``disguised`` makes programs with work in disguise (``tests.disguises``). A program gains points if it passes a check
that the program with the undisguised work fails.
"""

from __future__ import annotations

import argparse
import ast
import math
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from grader.batch.grade import Grader
from grader.common.result import ExerciseReport
from grader.exercise import Call, Check, Exercise, Task
from grader.exercise.calls import mesh_beside
from grader.judging.plan import Ask
from grader.wire.trees import leaves
from tests.disguises import disguises
from tests.faking import BRANCHES, Shown, fakes, shown
from tests.rewriting import written_again
from tests.texts import Text, course_grader, graded, results_of, right_texts, traced_tasks, wrong_texts


@dataclass(frozen=True)
class Gain:
    """Points or a shorter step that a program earned without the required work.

    Attributes:
        text: the original program.
        kind: the name of the fake or disguise.
        by: the property that the fake's condition examines, or where the disguised work is added.
        what: what the program gains.
        program: the text of the changed program.
    """

    text: Text
    kind: str
    by: str
    what: str
    program: str

    def __str__(self) -> str:
        return f"- {self.text}, {self.kind}, by {self.by}: {self.what}"


@dataclass
class Found:
    """Results of a search.

    Attributes:
        tried: numbers of tried programs, by exercise, by kind and by condition.
        gained: numbers of programs with a gain, by exercise, by kind and by condition.
        timed: number of tried programs that ran a fake in a timing call.
        gains: one entry for each gain.
    """

    tried: Counter[tuple[str, str]] = field(default_factory=Counter)
    gained: Counter[tuple[str, str]] = field(default_factory=Counter)
    timed: int = 0
    gains: list[Gain] = field(default_factory=list)

    def note(self, text: Text, kind: str, by: str, gains: list[str], program: str) -> None:
        about = [("exercise", text.exercise.id), *(("kind", k) for k in kind.split(" + ")), ("by", by)]
        self.tried.update(about)
        if gains:
            self.gained.update(about)
            self.gains.append(Gain(text, kind, by, "; ".join(gains), program))

    def __str__(self) -> str:
        every = sum(n for (of, _), n in self.tried.items() if of == "exercise")
        lines = [f"tried {every}, of which the clock was shown a fake {self.timed} times; {len(self.gains)} gained"]
        for about in sorted(self.tried):
            lines.append(f"  {' '.join(about)}: {self.tried[about]} tried, {self.gained[about]} gained")
        return "\n".join([*lines, *map(str, self.gains)])


# -- programs that do other work in timing calls ----------------------------------------------

When = tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]


@dataclass(frozen=True)
class Target:
    """A task with timing calls."""

    exercise: Exercise
    task: Task
    texts: list[Text]

    @cached_property
    def timing(self) -> list[Check]:
        return [c for c in self.exercise.checks_of(self.task) if any(map(self._times, c.calls))]

    def _times(self, call: Any) -> bool:
        return isinstance(call, Call) and call.task is self.task and call.timing is not None

    def asks(self, grader: Grader, of: Any = None) -> list[Ask]:
        """Return the asks of the task's timing calls; with ``of``, only of this call."""
        plan = [a for a in grader.plan(self.exercise.id, False) if self._times(a.of)]
        return [a for a in plan if of is None or a.of is of]

    def judged(self, grader: Grader) -> dict[When, When]:
        """Return for each timing ask the ask (mesh and sizes) on which the grader judges the values of a program."""
        found = {}
        for ask in self.asks(grader):
            assert isinstance(ask.of, Call) and ask.of.small is not None
            mesh = mesh_beside(ask.of.small, ask.mesh)
            dims = ask.of.small.sizes(mesh, hidden=ask.hidden_sizes)
            found[_when(ask)] = tuple(mesh.items()), tuple(dims.items())
        return found

    def tests(self, grader: Grader, by: str) -> list[str]:
        """Return the conditions on the property ``by``, with the sizes of this task's public timing call filled in."""
        asks = [a for a in self.asks(grader) if not a.hidden_sizes] or self.asks(grader)
        shapes = {_shape(a) for a in asks}
        meshes = [dict(a.mesh) for a in asks]
        statics = {repr(dict(a.static)) for a in self.asks(grader)}
        names = {"{shapes}": repr(shapes), "{meshes}": repr(meshes), "{statics}": repr(statics)}
        found = BRANCHES[by]
        for name, known in names.items():
            found = [test.replace(name, known) for test in found]
        return found


def targets(grader: Grader, only: str) -> list[Target]:
    found = [Target(e, t, right_texts(e, t)) for e, t in traced_tasks(grader, only)]
    return [target for target in found if target.timing]


def _shape(ask: Ask) -> tuple[int, ...]:
    """Return the shape of the first array with dimensions, as the task's function receives it (a shard for a body)."""
    assert isinstance(ask.of, Call)
    arrays = [array for name, tree in ask.of.args.items() for _, array in leaves(tree, name)]
    array = next(a for a in arrays if a.shape)
    shape = array.sized(ask.dims)
    if ask.of.task.kind != "body":
        return tuple(shape)
    cuts = [() if axis is None else axis if isinstance(axis, tuple) else (axis,) for axis in array.spec]
    cuts += [()] * (len(shape) - len(cuts))
    return tuple(n // math.prod(ask.mesh[a] for a in axes) for n, axes in zip(shape, cuts, strict=True))


def timed(grader: Grader, pick: random.Random, found: Found, only: str) -> Iterator[None]:
    """Try one program for each task in turn."""
    tasks = targets(grader, only)
    known: dict[tuple[str, str], ExerciseReport] = {}

    def report(target: Target, program: str) -> ExerciseReport:
        if (target.exercise.id, program) not in known:
            known[target.exercise.id, program] = graded(grader, target.exercise.id, program)
        return known[target.exercise.id, program]

    while tasks:
        for target in tasks:
            text = pick.choice(target.texts)
            by = pick.choice(sorted(BRANCHES))
            chosen = tuple(pick.sample(fakes(), pick.choice([1, 1, 2])))
            how = Shown(chosen, by, pick.choice(target.tests(grader, by)), pick.random() < 0.25)
            programs = [
                shown(text.module, target.task.name, Shown(chosen, by, test, how.patched)) for test in ("False", "True")
            ]
            program = shown(text.module, target.task.name, how)
            if program is None or None in programs:
                continue
            honest, always = (report(target, p) for p in programs if p)
            if all(r.status == "passed" for r in results_of(always, target.exercise, target.task).values()):
                continue  # it is right in all calls, so it is no fake
            gains, was_shown = gained(grader, target, graded(grader, target.exercise.id, program), honest)
            found.timed += was_shown
            found.note(text, how.kind + (", patched" if how.patched else ""), by, gains, program)
            yield


def gained(grader: Grader, target: Target, report: ExerciseReport, honest: ExerciseReport) -> tuple[list[str], bool]:
    """Return one line for each gain by a fake, and whether the fake ran in a timing call."""
    due, got = _steps(honest), _steps(report)
    judged, values, right = target.judged(grader), _programs(report), _programs(honest)
    other = {
        when
        for when, (program, _) in got.items()
        if when in due and due[when][0] != program and values.get(judged[when]) == right.get(judged[when])
    }
    results = results_of(report, target.exercise, target.task)
    found = []
    for check in target.timing:
        looked_at = {_when(a) for call in check.calls for a in target.asks(grader, call)}
        if looked_at & other and results[check.name].status == "passed":
            found.append(f"passes {check.name} ({results[check.name].points:g} points)")
    if all(r.status == "passed" for r in results.values()):
        shorter = [when for when in other if got[when][1] < due[when][1]]
        found += [
            f"a step of {got[w][1] / 1e9:.3f} ms, the honest program's takes {due[w][1] / 1e9:.3f}"
            for w in sorted(shorter)
        ]
    return found, any(when not in got or got[when][0] != program for when, (program, _) in due.items())


def _when(ask: Ask) -> When:
    return tuple(ask.mesh.items()), tuple(ask.dims.items())


def _programs(report: ExerciseReport) -> dict[When, str]:
    """Return the program of each ask on which the grader judged values, by mesh and sizes."""
    return {(tuple(e.mesh.items()), tuple(e.dims.items())): e.program for e in report.evidence if e.step is None}


def _steps(report: ExerciseReport) -> dict[When, tuple[str, int]]:
    """Return the program and the step's time of each timing ask, by mesh and sizes."""
    return {
        (tuple(e.mesh.items()), tuple(e.dims.items())): (e.program, e.step)
        for e in report.evidence
        if e.step is not None
    }


# -- work in disguise --------------------------------------------------------------------------


def disguised(grader: Grader, pick: random.Random, found: Found, only: str) -> Iterator[None]:
    """Try one program for each traced task in turn."""
    tasks = [(e, t, right_texts(e, t), wrong_texts(e, t)) for e, t in traced_tasks(grader, only)]
    passed: dict[tuple[str, str], set[str]] = {}

    def passes(text: Text, program: str) -> set[str]:
        key = text.exercise.id, program
        if key not in passed:
            results = results_of(graded(grader, text.exercise.id, program), text.exercise, text.task)
            passed[key] = {name for name, result in results.items() if result.status == "passed"}
        return passed[key]

    while tasks:
        for _, task, right, wrong in tasks:
            how = disguises(pick, body=task.kind == "body")
            text = pick.choice(wrong if how.of_wrong and wrong else right)
            program = written_again(text.module, [how.disguised], pick)
            plain = written_again(text.module, [how.plain], pick) if how.plain else ast.unparse(text.module)
            if program is None or plain is None:
                continue
            if not (known := passes(text, plain)):
                continue  # the other checks earn nothing without right values
            gains = passes(text, program) - known
            checks = [
                f"passes {n} ({text.exercise.checks[n].points:g} points), which it fails undisguised"
                for n in sorted(gains)
            ]
            found.note(text, how.kind, how.by, checks, program)
            yield


# -- all generators ----------------------------------------------------------------------------


def search(
    grader: Grader, seed: int, *, minutes: float = math.inf, most: int | None = None, only: str = "",
    kinds: str = "timed disguised", loud: bool = False,
) -> Found:  # fmt: skip
    """Try programs for ``minutes``, but at most ``most`` programs of each generator."""
    found, until = Found(), time.monotonic() + 60 * minutes
    tries = [
        one(grader, random.Random(f"{seed} {one.__name__}"), found, only)
        for one in (timed, disguised)
        if one.__name__ in kinds
    ]
    number = 0
    while time.monotonic() < until and (most is None or number < most):
        number += 1
        before = len(found.gains)
        for one in tries:
            next(one, None)
        for gain in found.gains[before:] if loud else ():
            print(gain, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, help="programs of each generator")
    parser.add_argument("--only", default="", help="exercises whose names begin with one of these words")
    parser.add_argument("--kinds", default="timed disguised")
    parser.add_argument("--programs", action="store_true", help="print each program that gained")
    asked = parser.parse_args()
    with course_grader() as grader:
        found = search(
            grader, asked.seed, minutes=asked.minutes, most=asked.most, only=asked.only, kinds=asked.kinds, loud=True
        )
    print(found)
    for gain in found.gains if asked.programs else ():
        print(f"\n{gain}\n{gain.program}")
    sys.exit(bool(found.gains))


if __name__ == "__main__":
    os.environ["JAX_PLATFORMS"] = "cpu"
    main()
