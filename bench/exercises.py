"""Show a table of all exercises: words, checks, hints, and the points that each known mistake costs.

    python bench/exercises.py            the table, in Markdown
    python bench/exercises.py --costly   the mistakes that cost more than half of an exercise's points

The points of a mistake are those of the checks in its ``fails``, and of the checks that are not judged because one of
these fails. ``verify`` proves ``fails``, so no program runs here. The table does not count mistakes in questions,
because a wrong answer costs exactly its question's points.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.authoring.declarations import words_in
from grader.course.finding import find_course
from grader.exercise import Check, Exercise, Misconception, Task


@dataclass(frozen=True)
class Cost:
    """What a known mistake costs.

    Attributes:
        points: points of the checks that fail or are not judged.
        share: ``points`` as a fraction of all points of the exercise.
        checks: the failed checks.
    """

    mistake: str
    points: float
    share: float
    checks: tuple[Check, ...]


def blocked(exercise: Exercise, failed: Iterable[str]) -> set[str]:
    """Return the checks that are not judged if the checks ``failed`` fail."""
    lost = set(failed)
    while more := {name for name, check in exercise.checks.items() if lost & {*check.after}} - lost:
        lost |= more
    return lost - set(failed)


def cost(exercise: Exercise, misconception: Misconception) -> Cost:
    lost = {*misconception.fails, *blocked(exercise, misconception.fails)}
    points = sum(exercise.checks[name].points for name in lost)
    failed = tuple(exercise.checks[name] for name in misconception.fails)
    return Cost(misconception.name, points, points / exercise.points, failed)


def costs(exercise: Exercise) -> list[Cost]:
    return [cost(exercise, m) for m in exercise.misconceptions.values() if isinstance(m.of, Task)]


def levels(exercise: Exercise) -> str:
    """Return the smallest and the largest number of hints of the exercise's tasks and questions."""
    each = [len(one.hints) for one in (*exercise.tasks.values(), *exercise.questions.values())]
    return f"{min(each)}" if min(each) == max(each) else f"{min(each)} to {max(each)}"


def row(exercise: Exercise) -> Sequence[str]:
    lost = [one.points for one in costs(exercise)]
    answers = sum(not isinstance(m.of, Task) for m in exercise.misconceptions.values())
    return (
        exercise.id.partition("_")[0].upper(), str(words_in(exercise.statement)), str(words_in(exercise.further)),
        str(len(exercise.checks)), str(len(exercise.questions)), f"{exercise.points:g}", levels(exercise),
        str(len(lost)), f"{statistics.median(lost):g}" if lost else "", f"{max(lost):g}" if lost else "", str(answers),
    )  # fmt: skip


HEAD = (
    "exercise", "words", "words below", "checks", "questions", "points", "hints each", "wrong programs",
    "median points lost", "most points lost", "wrong answers",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costly", action="store_true", help="list mistakes that cost more than half of the points")
    args = parser.parse_args()
    course = find_course(None)
    exercises = [course.exercise(name) for module in course.config.modules for name in module.exercises]
    if args.costly:
        for exercise in exercises:
            for one in costs(exercise):
                if one.share > 0.5:
                    print(f"{exercise.id} {one.mistake}: {one.points:g} of {exercise.points:g}")
                    print(*(f"    {check.name}: {check.label}" for check in one.checks), sep="\n")
        return
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for exercise in exercises:
        print("| " + " | ".join(row(exercise)) + " |")
    each = [words_in(one.statement) for one in exercises]
    print(f"\nWords of a statement: median {statistics.median(each):g}, at most {max(each)}.")


if __name__ == "__main__":
    main()
