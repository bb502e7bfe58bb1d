"""verify names a memory budget that does not separate right programs from wrong ones, or says what is not so of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from grader.authoring import verify
from grader.batch.grade import Grader
from grader.batch.workers import Workers
from grader.course.loading import load_course
from tests.made_up import made_up

CHECK = '''\
@exercise.check(call, points=1, after=traffic)
def memory(seen):
    """the array is held once"""
    whole = 4 * seen.dims["I"] * seen.dims["J"]
    expect_memory(seen, at_most=BUDGET, by="program", arguments=False)


def more(a, rows):
    """The whole array, held beside a sorted copy of its first rows."""
    whole = secret_helper(a)
    copy = jax.lax.sort(whole[:rows], dimension=0)
    whole, copy = jax.lax.optimization_barrier((whole, copy))
    return whole.at[:rows].add(0 * copy)


def gathered(a, mesh, rows):
    local = lambda a: more(a, rows)
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(a)


'''
MISCONCEPTION = '''\
@exercise.misconception(fails=memory)
def held_twice(a, *, mesh):
    """You kept a copy of the whole array."""
    return gathered(a, mesh, a.shape[0])


'''
STYLE = '''\
@exercise.alternative()
def quarter_beside(a, *, mesh):
    """A quarter of the array is held twice."""
    return gathered(a, mesh, a.shape[0] // 4)


'''
Problems = Callable[..., list[str]]


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    made = Workers(made_up(tmp_path_factory.mktemp("course")), "none")
    yield made
    made.close()


@pytest.fixture
def problems(workers: Workers, tmp_path: Path) -> Problems:
    """What verify finds, by the check ``memory``, in a course with this budget and more declarations."""

    def problems(budget: str, *declared: str) -> list[str]:
        made_up(tmp_path)
        path = tmp_path / "solutions/01_gather/x1_gather.py"
        text = path.read_text().replace(
            "expect_close, expect_coll", "between, expect_close, expect_memory, expect_coll"
        )
        first = "@exercise.misconception(fails=value)\n"
        added = "".join([CHECK.replace("BUDGET", budget), *declared])
        path.write_text(text.replace(first, added + first, 1))
        grader = Grader(load_course(tmp_path / "course.yaml"), "none", here=cast(Any, workers))
        return list(verify.exercise_problems(grader.course, grader, "x1_gather"))

    return problems


def test_a_budget_with_room_on_both_sides_is_no_problem(problems: Problems) -> None:
    assert problems("between(whole, 2 * whole)", MISCONCEPTION, STYLE) == []


def test_a_budget_that_does_not_say_what_it_separates_is_named(problems: Problems) -> None:
    found = problems("1.5 * whole", MISCONCEPTION)
    told = "a memory budget is between(right, wrong), the least that a right and the wrong program need"
    assert found[0] == f"memory on (x=4) with I=8, J=3: {told}"
    assert len(found) == 4 and all(problem.endswith(told) for problem in found)  # two meshes, two sets of sizes


@pytest.mark.parametrize(
    ("budget", "problem"),
    [
        (
            "between(1.2 * whole, 2 * whole)",
            "between says that a right program needs 115 B at least; the reference takes 96 B, the least of all",
        ),
        (
            "between(whole, 3 * whole)",
            "between says that a wrong program needs 288 B at least; held_twice takes 192 B, the least of all",
        ),
        ("between(whole, 1.85 * whole)", "the alternative quarter_beside takes 120 B, too close to the budget, 130 B"),
    ],
    ids=["right-is-less", "wrong-is-less", "no-room-for-a-style"],
)
def test_a_budget_without_room_is_named(problems: Problems, budget: str, problem: str) -> None:
    found = problems(budget, MISCONCEPTION, STYLE)
    assert f"memory on (x=4) with I=8, J=3: {problem}" in found
    assert len(found) == 4


def test_a_budget_beyond_which_nothing_goes_is_named(problems: Problems) -> None:
    found = problems("between(whole, 2 * whole)")
    assert found[0] == "memory on (x=4) with I=8, J=3: no misconception goes beyond the budget, 135 B"
    assert len(found) == 4


def test_sizes_at_which_right_and_wrong_are_alike_are_named(problems: Problems) -> None:
    found = problems("between(whole, 1.4 * whole)", MISCONCEPTION)
    assert found[0].startswith(
        "the reference does not pass memory: the check itself failed: ValueError: between(96, 134"
    )
    assert "choose sizes where they differ more" in found[0]
