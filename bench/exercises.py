"""Show a table of all exercises: words, checks, hints, and the points that each known mistake costs.

    python bench/exercises.py            the table, in Markdown
    python bench/exercises.py --costly   the mistakes that cost more than half of an exercise's points

No program runs here, because ``verify`` proves which checks a mistake fails. *Points lost* has no wrong answers, because
a wrong answer costs exactly its question's points.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

from grader.authoring.declarations import lost_points, words_in
from grader.course.finding import find_course
from grader.exercise import Exercise, Misconception, Task


def wrong_programs(exercise: Exercise) -> list[Misconception]:
    return [wrong for wrong in exercise.misconceptions.values() if isinstance(wrong.of, Task)]


def levels(exercise: Exercise) -> str:
    """Return the smallest and the largest number of hints of the exercise's tasks and questions."""
    each = [len(one.hints) for one in (*exercise.tasks.values(), *exercise.questions.values())]
    return f"{min(each)}" if min(each) == max(each) else f"{min(each)} to {max(each)}"


def row(exercise: Exercise) -> Sequence[str]:
    lost = [lost_points(exercise, wrong) for wrong in wrong_programs(exercise)]
    answers = len(exercise.misconceptions) - len(lost)
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
            for wrong in wrong_programs(exercise):
                if (lost := lost_points(exercise, wrong)) > exercise.points / 2:
                    print(f"{exercise.id} {wrong.name}: {lost:g} of {exercise.points:g}")
                    print(*(f"    {name}: {exercise.checks[name].label}" for name in wrong.fails), sep="\n")
        return
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD))
    for exercise in exercises:
        print("| " + " | ".join(row(exercise)) + " |")
    each = [words_in(one.statement) for one in exercises]
    print(f"\nWords of a statement: median {statistics.median(each):g}, at most {max(each)}.")


if __name__ == "__main__":
    main()
