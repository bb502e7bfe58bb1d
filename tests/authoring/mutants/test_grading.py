"""The verdict on one mutant: killed, or the reason why it survives. Many mutants run in one process."""

from __future__ import annotations

import ast
import re
import textwrap
from contextlib import ExitStack
from dataclasses import replace

import pytest

from grader.authoring.mutants.grading import escaped, first_asks, judge_mutant, killed_together, results_of, unchecked
from grader.authoring.mutants.making import Mutant, mutants_of, mutants_of_task, task_module
from grader.authoring.mutants.proving import impatient, look_for
from grader.batch.grade import Grader
from tests.mutated import EXERCISE, doubled, with_holes


def test_unchecked_sets_check_vma_to_false_unless_the_source_sets_it():
    assert "check_vma=False" in unchecked("f = partial(jax.shard_map, mesh=m)(g)")
    assert unchecked("f = jax.shard_map(g, check_vma=True)") == ""


def test_a_mutant_that_some_seeds_do_not_kill_survives(tmp_path):
    """Here n is 0 or, rarely, 1. The mutant doubles n, which changes the result only if n is not 0."""
    drawn = '[{"n": 0}], hidden=lambda rng: [{"n": int(rng.integers(0, 4) == 1)}])'
    course = with_holes(tmp_path, EXERCISE.replace('[{"n": 8}, {"n": 4}])', drawn))
    with Grader(impatient(course), "none") as grader:
        mutant = doubled(course)
        assert re.fullmatch(
            r"passes every check of pairs with \d+ of 20 seeds", escaped(grader, mutant, mutant.text, [], 20)
        )


def test_a_mutant_that_fails_in_public_but_passes_when_graded_survives(tmp_path):
    holes = with_holes(tmp_path)
    with Grader(impatient(holes), "none") as grader:
        right = ast.unparse(task_module(holes.exercise("two"), holes.exercise("two").tasks["pairs"])[0])
        graded = results_of(grader, "two", "pairs", right)
        mutant = doubled(holes)
        assert escaped(grader, mutant, mutant.text, graded, 1) == (
            "passes pairs_value with hidden inputs, but fails this check on public inputs"
        )
        assert judge_mutant(grader, mutant, seeds=3).fate == "killed"


@pytest.fixture(scope="module")
def grader(tmp_path_factory):
    with Grader(impatient(with_holes(tmp_path_factory.mktemp("course"))), "none") as grader:
        yield grader


def right(grader: Grader, task: str) -> Mutant:
    """Return a mutant without a change."""
    exercise = grader.course.exercise("two")
    text = ast.unparse(task_module(exercise, exercise.tasks[task])[0])
    return Mutant("two", task, "", 1, "", "", text)


@pytest.mark.parametrize("task", ["pairs", "total"])
def test_mutants_killed_together_are_killed_alone_by_the_same_checks(grader, task):
    mutants = mutants_of_task(grader.course.exercise("two"), grader.course.exercise("two").tasks[task])
    together = killed_together(grader, mutants)
    assert any(together)
    for mutant, verdict in zip(mutants, together, strict=True):
        alone = judge_mutant(grader, mutant)
        assert alone.fate == ("killed" if verdict else "survived")
        assert verdict is None or (set(verdict.seen_by) <= set(alone.seen_by) and verdict.reason)


@pytest.mark.parametrize("task", ["pairs", "total"])
def test_right_programs_tried_together_get_no_verdict(grader, task):
    assert killed_together(grader, [right(grader, task)] * 3) == [None] * 3


def test_mutants_are_killed_while_all_other_sets_of_workers_are_lent(grader):
    """``mutants`` grades single mutants in its main thread while all jobs try batches.

    It then uses a spare set of workers.
    """
    wrong = replace(right(grader, "pairs"), text="def pairs(n):\n    return 7\n")
    with ExitStack() as lent:
        for _ in grader.pool.sets[1:]:
            lent.enter_context(grader.pool.lent())
        assert [verdict and verdict.fate for verdict in killed_together(grader, [wrong])] == ["killed"]


def test_a_mutants_verdict_does_not_depend_on_mutants_beside_it(grader):
    """The first mutant defines a function that the second mutant calls. The second mutant must still fail.

    The fifth mutant never ends. It must not change the verdicts of the mutants before it.
    """
    fine = right(grader, "pairs")
    helper = replace(fine, text=fine.text + "\ndef spare(n):\n    return n // 2\n")
    lacks = replace(fine, text=fine.text.replace("return half(n)", "return spare(n)"))
    hangs = replace(fine, text=fine.text.replace("return half(n)", "while True: pass"))
    wrong = replace(fine, text=fine.text.replace("return half(n)", "return 7"))
    verdicts = killed_together(grader, [helper, lacks, wrong, fine, hangs, fine, wrong])
    assert [v and v.fate for v in verdicts[:4]] == [None, "killed", "killed", None]
    assert verdicts[4:] == [None, None, None]  # neither the mutant that hangs nor the mutants after it have a verdict


def test_a_mutant_that_fails_only_in_public_is_not_killed_together(tmp_path):
    """The check ``pairs_two`` fails only with public inputs. ``mutants`` then judges the mutant alone and reports it."""
    before, after = EXERCISE.split("@exercise.check(even, points=1, public=True)")
    checks = textwrap.dedent(
        """
        @exercise.check(even, points=1, public=True)
        def pairs_two(seen):
            'pairs: two are asked'
            if len(seen.outcomes) < 2 and seen.public:
                raise Failure("one")

        @exercise.check(even, points=1)
        def pairs_value(seen):
            'pairs: even numbers'
            expect_outcomes(seen)

        """
    )
    holes = before.replace('{"n": 4}])', "], hidden=lambda rng: [{'n': 6}])").replace(
        "expect_close", "Failure, expect_close"
    )
    holes += checks + "@exercise.check(summed" + after.split("@exercise.check(summed")[1]
    course = with_holes(tmp_path, holes)
    with Grader(impatient(course), "none") as grader:
        assert [len(asks) for asks in first_asks(grader, course.exercise("two"), "pairs")] == [1, 1]
        assert killed_together(grader, [doubled(course)]) == [None]
        told = judge_mutant(grader, doubled(course))
        assert (told.fate, told.reason) == (
            "survived",
            "passes pairs_two with hidden inputs, but fails this check on public inputs",
        )


def test_mutants_of_a_task_after_a_check_of_a_different_task_get_no_joint_verdict(tmp_path):
    course = with_holes(tmp_path, EXERCISE.replace("(summed, points=1)", "(summed, points=1, after=pairs_value)"))
    with Grader(impatient(course), "none") as grader:
        assert first_asks(grader, course.exercise("two"), "total") == ([], [])
        mutants = [m for m in mutants_of(course.exercise("two")) if m.task == "total"]
        assert killed_together(grader, mutants) == [None] * len(mutants)


@pytest.mark.slow
def test_look_for_grades_killed_mutants_again_until_one_fails_the_check(grader):
    exercise, mutant = grader.course.exercise("two"), doubled(grader.course)
    verdicts = [replace(judge_mutant(grader, mutant), seen_by=())]
    look_for("pairs_value", exercise, verdicts, lambda m: judge_mutant(grader, m))
    assert verdicts[0].seen_by == ("pairs_value",)
