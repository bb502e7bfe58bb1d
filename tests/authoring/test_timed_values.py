"""timed_values: a timed program earns points only if checks also judge its values, in a small call of the program."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from grader.authoring.timed_values import _moved, timed_problems
from grader.batch.grade import Grader
from grader.batch.replies import RunResult, observed
from grader.batch.workers import Workers
from grader.common.observation import Sharded
from grader.course.loading import Course, load_course
from grader.exercise import Call
from grader.judging.judge import judge_checks
from grader.judging.plan import plan
from grader.judging.seen import AskFinding
from grader.learner.answering import lower
from grader.runner import execution
from tests.made_up import COURSE
from tests.proved import problems_of

TEXT = '''\
"""# X1 Gather

Say what to do.
"""

import jax
from jax.sharding import PartitionSpec as P

from grader.exercise import Exercise, normal
from grader.expect import expect_close, expect_collectives

exercise = Exercise(meshes=[{"x": 4}])


@exercise.body(out_specs=(P("x"), P()), hints=["a nudge"])
def gather(a):
    """Double A[I_X, J], and gather A."""
    return 2 * a, jax.lax.all_gather(a, "x", tiled=True)


A = normal("I", "J", spec=P("x", None))
call = exercise.call(gather, a=A, dims={"I": 8, "J": 3})
narrow = exercise.call(gather, a=A, meshes=[{"x": 8}], dims={"I": 88, "J": 13}, hidden_dims={"I": 136, "J": 11})
large = exercise.timing(narrow, on="v5e:2x4", dims={"I": 4096, "J": 512}, hidden_dims={"I": 8192, "J": 512})
'''
CHECK = '''

@exercise.check({call}, points=1, public=True, after=[{after}])
def {name}(seen, *more):
    """{name}"""
    {line}
'''
FIRST = "expect_close(seen.out[0], 2 * seen.a)"
CLOSE = f"{FIRST}; expect_close(seen.out[1], seen.a)"
SENT = 'expect_collectives(seen, all_gather={"x": 1})'
WHERE = "gather is timed, but on (x=8) with I={}, J={} {}"
MEND = "add expect_close to a check of the call that exercise.timing names"
UNJUDGED = [f"no check fails if result {n} has other values: {MEND}" for n in (1, 2)]
INDEPENDENT = "{} passes if all results have other values: name a check of values in its after=..."


def course_of(folder: Path, *small: str) -> Course:
    """Return a course of one exercise with a timed call and a small call of the same program.

    ``small`` has the bodies of the small call's checks.
    """
    checks = [("value", "call", CLOSE), *((f"small{n}", "narrow", line) for n, line in enumerate(small))]
    timed = (
        [("gathers", "large", SENT)] if not small else [("gathers", "large", SENT), ("both", "[large, narrow]", SENT)]
    )
    text = TEXT + "".join(
        CHECK.format(call=call, name=name, line=line, after="" if name == "value" else "value")
        for name, call, line in (*checks, *timed)
    )
    place = folder / "solutions" / "01_gather"
    place.mkdir(parents=True)
    (place / "x1_gather.py").write_text(text, encoding="utf-8")
    (folder / "course.yaml").write_text(COURSE, encoding="utf-8")
    return load_course(folder / "course.yaml")


def problems(folder: Path, *small: str) -> list[str]:
    exercise = course_of(folder, *small).exercise("x1_gather")
    reference = []
    for ask in plan(exercise, public=False, seed="s"):
        assert isinstance(ask.of, Call)
        request = ask.for_runner([])
        code = lower(ask.of.task.fn, request)
        reference.append(AskFinding(ask, observed(ask, RunResult(*execution.execute(request, code, ask.arrays())))))
    assert {result.status for result in judge_checks(exercise, reference, public=False)} == {"passed"}
    return list(timed_problems(exercise, reference))


def test_a_timed_program_whose_values_are_judged_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, CLOSE, SENT) == []


@pytest.mark.parametrize("small", [(), (SENT,), ("pass",)])
def test_a_timed_program_without_a_check_of_its_values_is_reported(tmp_path: Path, small: Sequence[str]) -> None:
    """The check ``value`` judges the values of a different call, so it does not count."""
    assert problems(tmp_path, *small) == [WHERE.format(88, 13, problem) for problem in UNJUDGED]


def test_each_result_must_be_judged(tmp_path: Path) -> None:
    found = problems(tmp_path, FIRST)
    assert found == [WHERE.format(88, 13, UNJUDGED[1])]


def test_values_must_be_judged_at_all_sizes_of_a_timed_program(tmp_path: Path) -> None:
    found = problems(tmp_path, f'if seen.dims["J"] == 13:\n        {CLOSE}')
    assert found == [WHERE.format(136, 11, problem) for problem in UNJUDGED]


def test_a_check_of_a_timed_program_must_come_after_a_check_of_values(tmp_path: Path) -> None:
    """A timing check's ``after`` gets only the first check of the small call. Here that check judges no values."""
    found = problems(tmp_path, SENT, CLOSE)
    assert found == [WHERE.format(88, 13, INDEPENDENT.format(name)) for name in ("gathers", "both")]


def test_verify_reports_a_timed_program_without_judged_values(workers: Workers, tmp_path: Path) -> None:
    course = course_of(tmp_path, SENT)
    found = problems_of(Grader(course, "none", here=cast(Any, workers)))
    assert {WHERE.format(88, 13, problem) for problem in UNJUDGED} <= {*found}


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float32", "bfloat16", "complex64"])
def test_changed_values_differ_in_every_element_and_agree_in_copies(dtype: str) -> None:
    import jax.numpy as jnp

    kind = np.dtype(jnp.dtype(dtype))
    for values in ([0, 0, 0], [1, 0, 1], [1, 2, 3] if dtype != "bool" else [1, 1, 1]):
        part = np.asarray(values).astype(kind)
        moved = _moved(Sharded((3,), kind, {"x": 2}, [((0, 3),)] * 2, [part, part.copy()]))
        assert all(one.dtype == kind and np.all(one != part) for one in moved.shards)
        assert all(np.array_equal(a, b) for a, b in itertools.pairwise(moved.shards))
