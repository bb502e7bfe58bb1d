"""The verdict on one mutant: killed, or the reason why it survives."""

from __future__ import annotations

import ast
import re

from grader.authoring.mutants.grading import escaped, judge_mutant, results_of, unchecked
from grader.authoring.mutants.making import task_module
from grader.authoring.mutants.proving import impatient
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
