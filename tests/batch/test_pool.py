"""Threads that grade submissions, and the order of their turns. While a submission sleeps, the next turn begins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import pytest

from grader.batch.workers import Turns, pool_of


@pytest.mark.parametrize("end", [KeyboardInterrupt, ValueError])
def test_an_exception_in_the_block_cancels_queued_work(end: type[BaseException]) -> None:
    started, go, done = threading.Event(), threading.Event(), []

    def first() -> None:
        started.set()
        go.wait()
        done.append("first")

    with pytest.raises(end), pool_of(1) as pool:
        running, queued = pool.submit(first), pool.submit(done.append, "second")
        started.wait()
        if end is ValueError:  # after an error the pool waits for running work
            go.set()
        raise end
    assert queued.cancelled() and done == ([] if end is KeyboardInterrupt else ["first"])
    go.set()
    running.result()
    assert done == ["first"]


def test_a_block_that_ends_normally_completes_all_work() -> None:
    with pool_of(2) as pool:
        done = [pool.submit(lambda n=n: n * n) for n in range(5)]
    assert [d.result() for d in done] == [0, 1, 4, 9, 16]


class Submission:
    """A submission with a turn in a thread. The test decides when it sleeps and when it ends."""

    def __init__(self, threads: ThreadPoolExecutor, turns: Turns, number: int, order: list[int]) -> None:
        self.began, self.sleeps, self._sleep, self._end = (threading.Event() for _ in range(4))
        self._turns, self._number, self._order = turns, number, order
        self.result: Future[None] = threads.submit(self._work)

    def _work(self) -> None:
        with self._turns.turn(self._number):
            self._order.append(self._number)
            self.began.set()
            assert self._sleep.wait(60)
            with self._turns.asleep():
                self.sleeps.set()
                assert self._end.wait(60)

    def sleep(self) -> None:
        self._sleep.set()
        assert self.sleeps.wait(60)

    def end(self) -> None:
        self._sleep.set()
        self._end.set()
        self.result.result(60)


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


def test_turns_begin_in_order_whichever_thread_asks_first(threads: ThreadPoolExecutor) -> None:
    order: list[int] = []
    with Turns(1) as turns:
        third, second, first = (Submission(threads, turns, number, order) for number in (2, 1, 0))
        for one in (first, second, third):
            assert one.began.wait(60)
            one.end()
    assert order == [0, 1, 2]


def test_a_turn_that_sleeps_lets_the_next_one_begin_and_never_waits(threads: ThreadPoolExecutor) -> None:
    with Turns(1) as turns:
        sleeper, other, last = (Submission(threads, turns, number, []) for number in range(3))
        assert sleeper.began.wait(60) and not other.began.is_set()
        sleeper.sleep()
        assert other.began.wait(60) and not last.began.is_set()
        sleeper.end()  # the sleeper ends while ``other`` still has its turn
        assert not last.began.is_set()
        other.end()
        assert last.began.wait(60)
        last.end()


def test_no_turn_begins_after_the_end(threads: ThreadPoolExecutor) -> None:
    with Turns(1) as turns:
        first, waiting = (Submission(threads, turns, number, []) for number in range(2))
        assert first.began.wait(60)
    with pytest.raises(CancelledError):
        waiting.result.result(60)
    first.end()
    assert not waiting.began.is_set()
