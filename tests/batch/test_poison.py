"""Find the operations that matter from the results of changed programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.batch.cost import Cost
from grader.batch.poison import MOST_DEATHS, Poisoned
from grader.batch.remembering import Keys, Store
from grader.batch.replies import run_fault
from grader.batch.running import collect
from grader.batch.workers import Workers
from grader.common.cache import Cache
from grader.common.dependency import COLLECTIVES, MATMULS
from grader.common.observation import Fault, Observation
from grader.course.loading import Course, load_course
from grader.sandbox.limits import Limits
from grader.sandbox.worker import WorkerDied
from tests.batch.test_workers import COURSE, TIER, array, source
from tests.seen import collective, sharded


class Asked:
    """A runner that reports how far a change of each operation moves the result.

    It dies at the operations in ``deadly``. ``asked`` lists its requests.
    """

    def __init__(self, far: dict[int, float], deadly: tuple[int, ...] = (), **more: Any) -> None:
        self.far, self.deadly, self.more = far, deadly, more
        self.asked: list[list[int]] = []

    def moved(self, what: str, numbers: list[int]) -> Any:
        self.asked.append(list(numbers))
        for number in numbers:
            if number in self.deadly:
                died = WorkerDied("timeout", "", f"poisoning {number}")
                died.ours = False
                raise died
        return {"largest": [2.0], "moved": [[self.far.get(n, 0.0)] for n in numbers]} | self.more


class Says:
    """A runner that always returns this answer. If the answer is an exception, the runner raises it."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def moved(self, what: str, numbers: list[int]) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def poisoned(asked: Any, count: int = 3, dtype: str = "float32") -> Poisoned:
    result = sharded(np.full((8, 4), 2.0), ("x",), dtype=dtype)
    talks = [collective("permute", "x", number=n) for n in range(count)]
    return Poisoned(Observation([[result]], talks, 0), asked.moved, Cost(Limits()), Store(Keys(None)))


@pytest.mark.parametrize(
    ("dtype", "far", "matters"),
    [
        ("float32", 2e-5, False),  # the result changes by less than twice the tolerance
        ("float32", 1e-4, True),
        ("bfloat16", 5e-4, False),
        ("bfloat16", 4e-3, True),
        ("float8_e5m2", 0.6, True),  # a change of 0.6 counts even in a coarse dtype
        ("int32", 1e-9, True),
        ("bool", 1.0, True),
    ],
)
def test_an_operation_that_moves_a_result_beyond_its_tolerance_matters(dtype: str, far: float, matters: bool) -> None:
    assert poisoned(Asked({1: far}), dtype=dtype).matter(COLLECTIVES) == [False, matters, False]


def test_any_change_of_a_result_of_zeros_matters() -> None:
    assert poisoned(Asked({0: 1e-30}, largest=[0.0])).matter(COLLECTIVES) == [True, False, False]


def test_the_runner_is_asked_once_for_each_kind_of_operation() -> None:
    asked = Asked({0: 1.0})
    made = poisoned(asked)
    assert made.matter(COLLECTIVES) == made.matter(COLLECTIVES) == [True, False, False]
    assert asked.asked == [[0, 1, 2]]
    assert made.matter(MATMULS) == [] and len(asked.asked) == 1


def test_an_operation_whose_change_kills_the_program_matters() -> None:
    asked = Asked({2: 1.0}, deadly=(1,))
    made = poisoned(asked)
    assert made.matter(COLLECTIVES) == [False, True, True]
    assert asked.asked == [[0, 1, 2], [0, 2]] and made.lasting


def test_a_program_that_dies_of_every_change_is_the_learners_fault() -> None:
    count = MOST_DEATHS + 2
    made = poisoned(Asked({}, deadly=tuple(range(count))), count)
    died = WorkerDied("timeout", "", "poisoning 2")
    assert made.matter(COLLECTIVES) == run_fault(died, 60) and not made.lasting


def test_unreadable_answers_about_changes_are_the_graders_fault() -> None:
    ours = poisoned(Says(WorkerDied("died", "no room", "compiling"))).matter(COLLECTIVES)
    assert isinstance(ours, Fault) and ours.kind == "broken"
    for answer in ({"broken": "ValueError: x"}, {"largest": [2.0]}, {"largest": [2.0], "moved": [[1.0]]}):
        found = poisoned(Says(answer)).matter(COLLECTIVES)
        assert isinstance(found, Fault) and found.kind == "broken", answer
    late = Fault("timeout", "all programs together did not finish within 180 s")
    assert poisoned(Says(late)).matter(COLLECTIVES) == late


def test_a_program_that_xla_compiles_only_unchanged_is_not_refused() -> None:
    found = poisoned(Says({"fault": {"kind": "compile", "message": "XLA cannot compile the program"}})).matter(
        COLLECTIVES
    )
    assert found == [True, True, True]


def test_a_changed_program_that_needs_too_much_memory_is_refused() -> None:
    """Otherwise a useless operation counts as required if the change of its result fills the memory."""
    answer = {
        "fault": {"kind": "refused", "message": "the program needs 668 MiB over all devices; 512 MiB are the limit"}
    }
    found = poisoned(Says(answer)).matter(COLLECTIVES)
    assert isinstance(found, Fault) and (found.kind, found.message) == ("refused", answer["fault"]["message"])


# -- with workers ------------------------------------------------------------------------------

TEXT = """
import jax
from jax import lax
from jax.sharding import PartitionSpec as P

def f(a, *, mesh):
    def local(a):
        return lax.psum(a, "x") + 0 * lax.pmax(a, "x")
    return jax.shard_map(local, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)(a)
"""


@pytest.fixture
def course(tmp_path: Path) -> Course:
    (tmp_path / "course.yaml").write_text(COURSE)
    return load_course(tmp_path / "course.yaml")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Cache(tmp_path / "store", 1 << 26) as cache:
        yield Store(Keys("these tests"), cache)


def test_a_worker_tries_changes_on_demand_and_only_once(
    course: Course, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = Workers(course, TIER, store=store)
    run, told = workers.runners[0].run, []

    def ran(*about: Any, **more: Any) -> Any:
        told.append(more)
        return run(*about, **more)

    monkeypatch.setattr(workers.runners[0], "run", ran)
    try:
        for asked in ([{}, {"poison": ["collectives", [0, 1]]}], []):
            (found,), _ = collect(workers, source(TEXT), [array()])
            assert found.finding.observation is not None and found.finding.observation.poison is not None
            assert found.finding.observation.poison.matter(COLLECTIVES) == [True, False]
            assert told == asked
            told.clear()
    finally:
        for worker in workers.each_worker:
            worker.kill()
