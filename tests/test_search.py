"""A minute of ``tests.search``, and that it would see what it looks for."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from grader import lane, program, worker
from grader.observation import Fault
from tests import search

TRIES = 60


@pytest.fixture(autouse=True)
def _devices(devices: int) -> None:
    """JAX reads programs here, too."""


def test_a_minute_of_search_finds_nothing() -> None:
    found = search.search(0, most=TRIES)
    assert found.wrong == [], str(found)
    assert found.tried == {"programs": TRIES, "patches": TRIES}
    assert found.ran > TRIES // 4 and found.counted > TRIES // 8


def test_the_same_seed_tries_the_same() -> None:
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


def test_what_learners_can_call_ours_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every fault is called ours, both generators say so."""

    def ours(*args: Any, **options: Any) -> Fault:
        return Fault("broken", "ours")

    monkeypatch.setattr(lane, "_fault", ours)
    assert {kind for kind, *_ in search.search(1, most=12).wrong} == {"programs", "patches"}


def test_a_program_that_is_not_what_is_read_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of a program whose loops are all said to run once: the interpreter counts more."""
    from tests.test_program import ARGUMENT, MESH, honest

    assert worker and program and honest and ARGUMENT and MESH
