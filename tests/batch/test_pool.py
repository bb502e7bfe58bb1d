"""Queued work of threads ends together with the block that requested it."""

from __future__ import annotations

import threading

import pytest

from grader.batch.workers import pool_of


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
