"""Tests of ``slice_problem``, ``wraps`` and ``hops``. A simulated network gives the expected number of hops."""

from __future__ import annotations

import pytest

from grader import hardware
from grader.hardware import (
    slice_problem,
    wraps,
)
from tests import network

V = 12_582_912.0
SIZES = [2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16]


@pytest.mark.parametrize("topology", ["ring", "one_way_ring", "line", "switch"])
@pytest.mark.parametrize("n", SIZES)
def test_hops_are_the_steps_of_a_simulated_all_gather(topology, n):
    """Behind a switch, the number of hops is 1, although a device sends its messages one after another."""
    net = network.Network(1.0)
    network.all_gather(net, topology, n, V)
    assert hardware.hops(n, topology) == (1 if topology == "switch" else net.steps)


@pytest.mark.parametrize(
    ("chip", "asked", "problem"),
    [
        ("v4p", {"count": 1536}, ""),
        ("v4p", {"count": 2560}, "v4p has no slice of 2560 chips"),
        ("v4p", {"count": 640}, "v4p has no slice of 640 chips"),
        ("v5p", {"count": 2560}, ""),
        ("v5p", {"count": 6144}, ""),
        ("v5p", {"count": 8960}, "v5p has no slice of 8960 chips"),
        ("v5p", {"shape": (16, 20, 28)}, "v5p has no slice of 16x20x28"),
        ("v5e", {"shape": (16, 8), "rings": (16,), "lines": (8,)}, ""),
        ("v5e", {"shape": (4, 16)}, "v5e has no slice of 4x16"),
        ("v5e", {"rings": (8,)}, "v5e has no slice with rings of 8"),
        ("v5e", {"count": 512}, "v5e has no slice of 512 chips"),
        ("v5p", {"shape": (2, 4, 4), "lines": (4,)}, ""),
        ("v5p", {"shape": (2, 2, 4), "rings": (4,)}, "v5p has no slice of 2x2x4 with rings of 4"),
        ("v4p", {"rings": (4, 12, 16)}, ""),
        ("v4p", {"rings": (4, 4, 4, 4)}, "v4p has no slice with rings of 4, 4, 4, 4"),
        ("v4p", {"rings": (20,)}, "v4p has no slice with rings of 20"),
        ("7x", {"rings": (16, 4)}, ""),
    ],
)
def test_slice_problem_refuses_slices_that_do_not_exist(chip, asked, problem):
    assert slice_problem(chip, **asked) == problem


@pytest.mark.parametrize(
    ("chip", "size", "slice_shape", "want"),
    [
        ("v5e", 16, None, True),
        ("v5e", 8, None, False),
        ("v5e", 16, (8, 16), True),
        ("v5e", 8, (8, 16), False),
        ("v6e", 4, (4, 4), False),
        ("v4p", 4, None, True),
        ("v4p", 4, (2, 2, 4), False),
        ("v4p", 4, (4, 4), False),
        ("v5p", 8, (4, 4, 8), True),
        ("v5p", 6, None, False),
        ("7x", 576, (4, 4, 576), True),
        ("v3", 32, None, True),
        ("v3", 16, None, False),
    ],
)
def test_which_axes_wrap_around(chip, size, slice_shape, want):
    assert wraps(chip, size, slice_shape) is want
    assert hardware.axis_topology(chip, size, slice_shape) == ("ring" if want else "line")


def test_two_by_two_is_a_ring_although_no_axis_wraps():
    assert not wraps("v5e", 2, (2, 2))
    assert hardware.is_physical_ring("v5e", (2, 2))
    assert hardware.is_physical_ring("v4p", (2, 2, 1))
    assert not hardware.is_physical_ring("v5e", (2, 4))
    assert hardware.is_physical_ring("v5e", (16, 1))
    assert not hardware.is_physical_ring("v5e", (8, 1))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: wraps("H100", 8), "H100 is a GPU: it has a switch, not a torus"),
        (lambda: wraps("v5e", 4, (8, 16)), "no axis of size 4 in a slice of 8x16"),
    ],
)
def test_errors_are_one_clear_line(call, text):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(text)
    assert "\n" not in str(error.value)
