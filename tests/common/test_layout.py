"""The slice of an array that each device holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.common.layout import coordinates, entries, owner_slices, show_device, show_spec, spec_of

MESHES = [{"x": 4, "y": 2}, {"x": 2, "y": 4}, {"x": 8}, {"x": 2, "y": 1, "z": 3}]


@st.composite
def layouts(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple, dict[str, int]]:
    """Draw a mesh, a spec that uses each axis at most once, and a shape that the spec divides."""
    mesh = draw(st.sampled_from(MESHES))
    axes = draw(st.permutations(list(mesh)))
    ndim = draw(st.integers(1, 3))
    cuts: list[list[str]] = [[] for _ in range(ndim)]
    for axis in axes:
        place = draw(st.integers(-1, ndim - 1))
        if place >= 0:
            cuts[place].append(axis)
    spec = tuple(None if not c else c[0] if len(c) == 1 else tuple(c) for c in cuts)
    shape = tuple(math.prod(mesh[a] for a in c) * draw(st.integers(2, 5)) for c in cuts)
    return shape, spec, mesh


@given(layouts())
@settings(max_examples=60)
def test_owner_slices_are_those_of_jax(devices: int, layout: tuple) -> None:
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    shape, spec, mesh = layout
    some = jax.devices()[: math.prod(mesh.values())]
    real = jax.make_mesh(tuple(mesh.values()), tuple(mesh), axis_types=(AxisType.Auto,) * len(mesh), devices=some)
    by_device = NamedSharding(real, PartitionSpec(*spec)).devices_indices_map(shape)
    ours = owner_slices(shape, spec, mesh)
    for device, where in zip(real.devices.flat, ours, strict=True):
        assert [s.indices(n)[:2] for s, n in zip(by_device[device], shape, strict=True)] == list(where)


@given(layouts())
@settings(max_examples=60)
def test_the_spec_is_read_back_from_the_slices(layout: tuple) -> None:
    """The returned spec may lack axes of size 1 and None at its end, because these cut nothing."""
    shape, spec, mesh = layout
    found = spec_of(owner_slices(shape, spec, mesh), shape, mesh)
    assert found is not None
    assert owner_slices(shape, found, mesh) == owner_slices(shape, spec, mesh)


def test_slices_in_an_order_that_no_spec_gives_have_no_spec() -> None:
    slices = owner_slices((8,), ("x",), {"x": 4})
    assert spec_of([slices[1], slices[0], *slices[2:]], (8,), {"x": 4}) is None


def test_the_order_of_axes_in_a_tuple_matters() -> None:
    mesh = {"x": 4, "y": 2}
    assert owner_slices((8,), (("x", "y"),), mesh) != owner_slices((8,), (("y", "x"),), mesh)


def test_a_dimension_that_does_not_divide_is_refused() -> None:
    with pytest.raises(ValueError, match="a dimension of 6 cannot be cut into 4 equal parts"):
        owner_slices((6,), ("x",), {"x": 4})


def test_a_spec_longer_than_the_array_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the spec has more entries \(2\) than the array has dimensions \(1\)"):
        owner_slices((8,), ("x", None), {"x": 4})


def test_devices_count_the_last_axis_fastest() -> None:
    assert coordinates({"x": 2, "y": 2})[1] == {"x": 0, "y": 1}


def test_show_spec_prints_a_spec_as_code() -> None:
    assert show_spec((None, ("x", "y"))) == "P(None, ('x', 'y'))"


@given(layouts())
@settings(max_examples=60)
def test_every_element_is_held_by_as_many_devices_as_the_unused_axes_have(layout: tuple) -> None:
    shape, spec, mesh = layout
    held = np.zeros(shape, int)
    for where in owner_slices(shape, spec, mesh):
        held[tuple(slice(*pair) for pair in where)] += 1
    used = {a for axes in entries(spec, len(shape)) for a in axes}
    assert (held == math.prod(n for a, n in mesh.items() if a not in used)).all()


@given(layouts())
@settings(max_examples=60)
def test_spec_of_returns_the_shortest_spec(layout: tuple) -> None:
    """The returned spec has no axis of size 1 and no trailing None. Its axes have the order of the drawn spec."""
    shape, spec, mesh = layout
    found = spec_of(owner_slices(shape, spec, mesh), shape, mesh)
    assert found is not None and found[-1:] != (None,)
    real = [tuple(a for a in axes if mesh[a] > 1) for axes in entries(spec, len(shape))]
    assert entries(found, len(shape)) == tuple(real)


@given(layouts(), st.data())
@settings(max_examples=60)
def test_swapped_slices_have_no_spec_unless_one_gives_them(layout: tuple, data: st.DataObject) -> None:
    """After a swap of two slices, ``spec_of`` returns None or a spec that gives the swapped slices."""
    shape, spec, mesh = layout
    slices = owner_slices(shape, spec, mesh)
    i, j = data.draw(st.lists(st.integers(0, len(slices) - 1), min_size=2, max_size=2, unique=True))
    slices[i], slices[j] = slices[j], slices[i]
    found = spec_of(slices, shape, mesh)
    assert found is None or owner_slices(shape, found, mesh) == slices


def test_every_device_holds_a_scalar() -> None:
    assert owner_slices((), (), {"x": 2}) == [(), ()]
    assert spec_of([(), ()], (), {"x": 2}) == ()


def test_entries_has_one_entry_for_every_dimension() -> None:
    assert entries(("x", ("x", "y")), 3) == (("x",), ("x", "y"), ())


def test_an_unknown_axis_in_a_spec_raises_key_error() -> None:
    with pytest.raises(KeyError, match="z"):
        owner_slices((8,), ("z",), {"x": 4})


def test_devices_and_missing_specs_are_shown() -> None:
    assert show_device({"x": 1, "y": 0}) == "(x=1, y=0)"
    assert show_spec(None) == "no PartitionSpec" and show_spec(()) == "P()"
