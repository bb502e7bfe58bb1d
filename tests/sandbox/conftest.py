"""Fixtures: a worker in each sandbox tier that works on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from grader.sandbox.worker import Worker
from tests.sandbox.submissions import CONFINED, LIMITS, WORKING


@pytest.fixture(scope="module", params=WORKING)
def worker(request: pytest.FixtureRequest) -> Iterator[Worker]:
    with Worker("trace", request.param, 8, LIMITS) as made:
        yield made


@pytest.fixture(scope="module", params=CONFINED)
def confined(request: pytest.FixtureRequest) -> Iterator[Worker]:
    with Worker("trace", request.param, 8, LIMITS) as made:
        yield made
