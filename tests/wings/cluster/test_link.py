"""The workers that Dask's scheduler reports, tested without a scheduler."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("distributed")

from grader.wings.cluster.link import PAUSED, Dask


def test_a_paused_worker_gives_no_sign_of_life() -> None:
    now: dict[str, object] = {
        "name": "w",
        "nthreads": 1,
        "local_directory": "/d",
        "last_seen": 1.0,
        "status": "running",
    }
    link = Dask.__new__(Dask)
    link.address, link._last = "tcp://s:1", {}
    link.client = SimpleNamespace(sync=lambda *_, **__: {"workers": {"tcp://w:1": now}})  # pyright: ignore[reportAttributeAccessIssue]

    def heard(**changes: object) -> tuple[float, str]:
        now.update(changes)
        state = link.workers()["tcp://w:1"]
        return state.heard, state.problem

    assert heard() == (1.0, "")
    assert heard(last_seen=2.0, status="paused") == (1.0, PAUSED)
    assert heard(last_seen=9.0) == (1.0, PAUSED)
    assert heard(status="running") == (9.0, "")
