"""The checker runs one request at a time, the newest first, and stops an endless check for the next request."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any, cast

from grader.batch.grade import Grader
from grader.watching import checker
from grader.watching.checker import Checker, Done


class Empty:
    """A grader without workers, with only the methods that a Checker uses."""

    def __init__(self) -> None:
        self.retired = threading.Event()

    def __enter__(self) -> Empty:
        return self

    def __exit__(self, *error: object) -> None:
        self.retire()

    def warm(self) -> None: ...

    def retire(self) -> None:
        self.retired.set()


def made(told: SimpleQueue[Done]) -> Checker:
    return Checker(lambda: cast(Grader, Empty()), told.put)


def test_the_newest_request_replaces_those_that_wait() -> None:
    told: SimpleQueue[Done] = SimpleQueue()
    begun, go_on = threading.Event(), threading.Event()

    def first(_: Any) -> str:
        begun.set()
        go_on.wait(60)
        return "first"

    one = made(told)
    one.ask("a", first)
    assert begun.wait(60) and one.busy
    for number in range(5):
        one.ask(str(number), lambda _, number=number: number)
    go_on.set()
    assert [told.get(timeout=60).value for _ in range(2)] == ["first", 4]
    one.close()
    assert told.empty()


def test_an_endless_check_is_dropped_for_the_next_request(monkeypatch: Any) -> None:
    monkeypatch.setattr(checker, "PATIENCE", 0.0)
    told: SimpleQueue[Done] = SimpleQueue()
    begun, ended = threading.Event(), threading.Event()

    def for_ever(grader: Any) -> str:
        begun.set()
        grader.retired.wait(60)
        ended.set()
        return "late"

    one = made(told)
    one.ask("loop", for_ever)
    assert begun.wait(60)
    one.ask("next", lambda _: "next")
    assert told.get(timeout=60).value == "next" and ended.wait(60)
    one.close()
    assert told.empty()


def test_an_error_in_a_check_is_reported_and_the_next_request_runs() -> None:
    told: SimpleQueue[Done] = SimpleQueue()
    one = made(told)

    def broken(_: Any) -> None:
        raise OSError("the disk is gone")

    one.ask("a", broken)
    assert str(told.get(timeout=60).error) == "the disk is gone"
    one.ask("b", lambda _: 1)
    assert told.get(timeout=60).value == 1
    one.close()
