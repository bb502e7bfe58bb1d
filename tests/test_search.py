"""Run ``tests.search`` for one minute. Other tests show that the search finds faults."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from grader.batch import replies
from grader.batch.cost import Cost
from grader.batch.grade import Grader
from grader.batch.replies import Reply
from grader.batch.running import ProgramRuns
from grader.common.intervals import Interval
from grader.common.observation import Fault, Observation
from grader.course.loading import load_course
from grader.sandbox.tiers import best_tier
from tests import search

TRIES = 60


@pytest.fixture(autouse=True)
def _devices(devices: int) -> None:
    """Start simulated devices. JAX reads programs in this process."""


@pytest.mark.slow
def test_a_minute_of_search_finds_nothing() -> None:
    found = search.search(0, most=TRIES)
    assert found.wrong == [], str(found)
    assert found.tried == {"programs": TRIES, "patches": TRIES}
    assert found.ran > TRIES // 4 and found.counted > TRIES // 8


def test_equal_seeds_give_equal_tries() -> None:
    code = search.bytecode(
        "module { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> } }"
    )
    assert code is not None
    once, again = ([search.changed(code, random.Random(seed), [code]) for seed in range(20)] for _ in range(2))
    assert once == again and len({how for _, how in once}) > 10


def test_names_are_those_that_tracing_touches() -> None:
    names = search.names()
    assert len(names) > 4000
    for name in [
        ("jax", (), "jit"),
        ("jax.lax", (), "psum"),
        ("jax.stages", ("Lowered",), "compiler_ir"),
        ("io", (), "BytesIO"),
    ]:
        assert name in names


@pytest.mark.slow
def test_the_search_reports_faults_that_count_as_the_graders(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test makes every fault count as the grader's fault. Both generators must then report faults."""

    def ours(*args: Any, **options: Any) -> Fault:
        return Fault("broken", "ours")

    monkeypatch.setattr(replies, "fault_of", ours)
    assert {kind for kind, *_ in search.search(1, most=12).wrong} == {"programs", "patches"}


def test_facts_that_do_not_hold_are_found() -> None:
    """The test removes a collective from a program's facts, or changes a result. ``miscounted`` reports this."""
    course = load_course(search.COURSE / "course.yaml")
    with Grader(course, best_tier("auto"), 1) as grader:
        taking = grader.worker_sets[0]
        ask = grader.plan(search.NAME, public=True)[0]
        code = search.traced(taking, ask, search.HEAD + search.HONEST["psum"], [f"{search.NAME}.py"])
        seen = ProgramRuns(taking, [], Cost(taking.limits)).findings([ask], Reply(program=code))[ask].observation
    assert seen is not None

    def wrong(seen: Observation) -> list[str]:
        return list(search.miscounted(code, ask, seen, search.Found()))

    assert wrong(seen) == []
    unseen = "device {} ran 1 all_reduce, but facts say {}".format
    assert wrong(replace(seen, collectives=[])) == [unseen(d, Interval.of(0)) for d in range(4)]
    ((array,),) = seen.outputs
    other = replace(array, shards=[shard + 1 for shard in array.shards])
    assert [problem[:11] for problem in wrong(replace(seen, outputs=[[other]]))] == ["it comes to"]
