"""Files of one submission asked by several workers: what is seen of it is that one was asked after another."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from queue import Empty, LifoQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.batch.lending import Lending
from grader.batch.workers import Spent
from grader.course.config import Limits
from grader.intake.submission import Source

LIMITS = Limits(total_seconds=10.0, total_run_seconds=10.0)


def asked_in_order(costs: list[float], hosts: int, broken: int = -1) -> tuple[list[tuple[str, bool]], set[str]]:
    """What each source came to, and by whom it was asked. A source is refused where too much is spent, as by workers."""
    free: LifoQueue[str] = LifoQueue()
    for n in range(hosts - 1):
        free.put(f"host {n}")
    who, lock = set[str](), threading.Lock()

    def asked(workers: str, source: Source, spent: Spent) -> tuple[str, bool]:
        with lock:
            who.add(workers)
        number = int(source.name)
        if number == broken:
            raise OSError("of ours")
        refused = spent.tracing > LIMITS.total_seconds
        if not refused:
            spent.on_tracing(costs[number])
        return source.name, refused

    def idle() -> str | None:
        try:
            return free.get_nowait()
        except Empty:
            return None

    lending = Lending(asked, idle, free.put)
    with ThreadPoolExecutor(hosts) as pool:
        sources = [Source(str(n), ()) for n in range(len(costs))]
        with closing(lending.in_order(sources, "own", LIMITS, pool, hosts - 1)) as each:
            found = [came_to for _, came_to in each]
    assert free.qsize() == hosts - 1
    return found, who


@given(st.lists(st.sampled_from([0.5, 2.0, 4.0, 11.0]), max_size=12), st.integers(1, 4))
def test_order_and_what_is_refused_are_those_of_one_after_another(costs: list[float], hosts: int) -> None:
    spent, expected = 0.0, []
    for number, cost in enumerate(costs):
        expected.append((str(number), spent > LIMITS.total_seconds))
        spent += 0 if expected[-1][1] else cost
    assert asked_in_order(costs, hosts)[0] == expected


@pytest.mark.parametrize("hosts", [1, 3])
def test_an_error_of_ours_ends_it_and_everybody_is_free_again(hosts: int) -> None:
    with pytest.raises(OSError, match="of ours"):
        asked_in_order([1.0] * 8, hosts, broken=2)
