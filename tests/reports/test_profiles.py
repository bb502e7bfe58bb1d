"""Compare the clock's two profiles, and name the part of a step that differs most from the compiler's step."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

from grader.clock import ASYNCHRONOUS, Timeline, timeline
from grader.reports.profiles import apart_text, other_profile, profiles_text, waits
from tests.clock.programs import read

CHIPS = {"v3": "v3:4x2", "v4p": "v4p:2x2x2", "v5e": "v5e:2x4", "v5p": "v5p:2x2x2", "v6e": "v6e:2x4", "7x": "7x:1x2x2"}


def three_kinds(a, w):
    """Compute a matmul, a permute, a gather and a sum. The matmul does not need the other results."""
    sent = lax.ppermute(a[:64], "x", [(i, (i + 1) % 8) for i in range(8)])
    return a @ w, sent, lax.all_gather(a[:8], "x"), lax.psum(w[:64], "x")


def without_collectives(a, w):
    return a @ w, jnp.tanh(w)


def of(local, on: str, profile: str = "ideal") -> Timeline:
    shapes = [((8 * 1024, 2048), P("x", None)), ((2048, 2048), P())]
    return timeline(read(local, shapes, P("x")), on, profile=profile)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_chips_profile_waits_for_the_kinds_that_its_compiler_does_not_overlap(chip: str) -> None:
    own = of(three_kinds, CHIPS[chip], chip)
    assert waits(own) == [kind for kind in ("permute", "all_gather", "all_reduce") if kind not in ASYNCHRONOUS[chip]]
    assert waits(of(three_kinds, CHIPS[chip])) == []


def test_the_text_on_two_profiles_does_not_depend_on_their_order() -> None:
    ideal, own = of(three_kinds, "v5p:2x2x2"), of(three_kinds, "v5p:2x2x2", "v5p")
    text = profiles_text(ideal, own)
    assert text == (
        "the step takes 19.112 us if every collective can overlap (as checks assume), "
        "and 28.112 us on v5p, where the core waits for all_gather and all_reduce"
    )
    assert profiles_text(own, ideal) == text


def test_equal_steps_give_no_text() -> None:
    for local in (without_collectives, lambda a, w: (lax.psum(w, "x"),) * 2):
        assert profiles_text(of(local, "v5e:2x4"), of(local, "v5e:2x4", "v5e")) == ""


@pytest.mark.parametrize(("profile", "other"), [("ideal", "v5e"), ("v5e", "ideal"), ("v4p", "ideal")])
def test_each_profile_is_compared_with_the_right_other_one(profile: str, other: str) -> None:
    assert other_profile(of(three_kinds, "v5e:2x4", profile)) == other


@pytest.mark.parametrize(
    ("matmuls", "other", "waiting", "text"),
    [
        (2, 0, 0, "matmuls take "),
        (0, 2, 1, "other kernels take "),
        (1, 0, 2, "the core waits for "),
        (-2, 1, 0, "matmuls take "),
        (0, 0, -2, "the core waits for "),
    ],
)
def test_the_text_names_the_part_that_differs_most_in_the_direction_of_the_step(
    matmuls: int, other: int, waiting: int, text: str
) -> None:
    """Change the clock's times of matmuls, other kernels and waiting by these microseconds."""
    clock = of(three_kinds, "v5p:2x2x2", "v5p")
    more = [10**6 * n for n in (matmuls, other, waiting)]
    compiled = clock.step + sum(more), clock.matmuls + more[0], clock.idle + more[2]
    found = apart_text(compiled, clock)
    assert found.startswith(f"most of the difference in step time: {text}") and found.endswith(" by the clock")


def test_equal_steps_have_no_part_that_differs() -> None:
    clock = of(three_kinds, "v5e:2x4")
    for moved in (0, 10**6):
        assert apart_text((clock.step, clock.matmuls - moved, clock.idle + moved), clock) == ""


def test_profiles_differ_in_nothing_but_what_the_core_waits_for() -> None:
    lines = [of(three_kinds, "v5e:2x4", profile) for profile in ASYNCHRONOUS]
    for one, other in itertools.combinations(lines, 2):
        assert (one.busy, one.matmuls, one.flops) == (other.busy, other.matmuls, other.flops)
        assert [(c.kind, c.each) for c in one.collectives] == [(c.kind, c.each) for c in other.collectives]
        if set(waits(one)) <= set(waits(other)):
            assert one.step <= other.step
