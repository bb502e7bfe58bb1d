"""Show each budget of the course's checks, and the amounts that right and wrong programs need.

    python bench/margins.py                     the whole course
    python bench/margins.py 06_overlap j2 m1    some modules and exercises

A budget limits an amount, such as the bytes that a device sends. A program's need is its amount. The ratio is the wrong
program's need, divided by the least need of a right program. For each budget, the table shows the wrong program with
the smallest need above the budget. For a budget declared with ``needed``, it shows only the mesh and sizes with the
smallest ratio, and only wrong programs that exceed the budget by a tenth. If other meshes have larger ratios, the last
column also shows the largest, because such a budget needs to separate right and wrong programs widely on one mesh only.
``exactly`` marks a budget that is an exact number of collectives, so that fewer collectives are wrong. The mark ``<``
means that no ratio is at least 1.5.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from grader.authoring.grading import graded_and_public
from grader.authoring.margins import EXACT, ROOM, SHOWN, Measured, differing, measured
from grader.authoring.tries import amounts, replaced_texts
from grader.batch.grade import Grader
from grader.common.budget import LEAST_RATIO, Budget
from grader.course.finding import find_course
from grader.course.loading import Course
from grader.course.reference import answers, reference_source
from grader.exercise import Task
from grader.intake.submission import Chunk, Source, Submission
from grader.sandbox.tiers import best_tier


@dataclass(frozen=True)
class Row:
    """A budget, the least need of the right programs, the need of a wrong program, and the wrong program's name."""

    exercise: str
    check: str
    what: str
    budget: str
    right: str
    wrong: str
    by: str
    ratio: float
    largest: float

    @property
    def low(self) -> bool:
        return self.largest < LEAST_RATIO - 1e-9

    def __str__(self) -> str:
        ratios = [f"{ratio:.2f}" for ratio in (self.ratio, self.largest)]
        words = (self.exercise, self.check, self.what, self.budget, self.right, self.wrong, self.by)
        return "| " + " | ".join([*words, " to ".join(dict.fromkeys(ratios)) + " <" * self.low]) + " |"


def rows_of(course: Course, grader: Grader, name: str) -> Iterator[Row]:
    """Yield the rows of an exercise's budgets."""
    exercise = course.exercise(name)
    text = reference_source(exercise, answers(course, exercise, "verify"))
    submission = Submission("verify", {name: Source(f"{name}.py", (Chunk(f"{name}.py", text),))}, (), "")
    found = graded_and_public(grader, submission, name)[2]
    others = [o for o in (*exercise.alternatives.values(), *exercise.misconceptions.values()) if isinstance(o.of, Task)]
    texts = replaced_texts(grader, exercise, others, found, {})
    for text in texts:
        if not text.answered:
            text.run(grader, name)
    for one in measured(exercise, *amounts(found, texts)):
        yield from _rows(name, one)


def _rows(name: str, one: Measured) -> Iterator[Row]:
    """Yield one row for each mesh and sizes if the budget is declared with ``between``, and otherwise a single row."""
    rows = [_row(name, one, sizes) for sizes in one.right]
    if isinstance(one.budget, Budget) and not one.budget.known:
        yield from rows
    else:
        largest = max(row.ratio for row in rows)
        yield replace(min(rows, key=lambda row: row.ratio or math.inf), largest=largest)


def _row(name: str, one: Measured, sizes: str) -> Row:
    show, right = SHOWN.get(one.key.word, lambda n: f"{n:g}"), one.right[sizes]
    wrong = (one.wrong if differing(one.wrong) else one.earlier).get(sizes, {})
    least = min(use.amount for use in right.values())
    budget = next(iter(right.values())).budget
    exact, known = one.key.word == EXACT, isinstance(budget, Budget) and budget.known
    more = budget * ROOM if known else budget
    beyond = {who: use.amount for who, use in wrong.items() if use.amount > budget and use.amount >= more}
    if exact:
        beyond = {who: use.amount for who, use in wrong.items() if use.amount != budget}
    by = min(beyond, key=lambda who: beyond[who], default="")
    amount = beyond.get(by, 0.0)
    ratio = math.inf if exact and by else amount / least if least else math.inf if by else 0.0
    word = "exactly" if exact else "at most" if known or not budget else "between"
    what, shown = f"{one.key} {sizes}", f"{word} {show(budget)}"
    return Row(name, one.check.name, what, shown, show(least), show(amount), by, ratio, ratio)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="modules and exercises, or beginnings of their names")
    asked = parser.parse_args()
    course = find_course(None)
    chosen = [
        name
        for name, module in course.module_of.items()
        if not asked.names or any(name.startswith(n) or module.startswith(n) for n in asked.names)
    ]
    print("| exercise | check | budget of | budget | right | wrong | wrong program | ratio |\n|" + "---|" * 8)
    total = low = 0
    with Grader(course, best_tier("auto"), 1) as grader:
        for name in chosen:
            for row in rows_of(course, grader, name):
                print(row, flush=True)
                total, low = total + 1, low + row.low
    print(f"\n{total} budgets, {low} with a ratio below {LEAST_RATIO:g}")


if __name__ == "__main__":
    main()
