"""The reference solution."""

from jax.sharding import PartitionSpec as P


def axes_of(entry):
    """None -> (), "x" -> ("x",), ("x", "y") -> ("x", "y")."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def spec_of(names, rules, mesh):
    """Return the PartitionSpec of an array whose dimensions have these names.

    Args:
        names: a tuple with a name or None for each dimension.
        rules: a list of (name, axis or tuple of axes or None), tried from first to last.
        mesh: a dict from axis to size.
    Raises ValueError for a name that has no rule.
    """
    if unknown := {name for name in names if name} - {name for name, _ in rules}:
        raise ValueError(f"no rule for {unknown}")
    served, taken = {}, set()
    for name, entry in rules:
        axes = axes_of(entry)
        if name in names and name not in served and all(axis in mesh and axis not in taken for axis in axes):
            served[name] = entry
            taken.update(axes)
    return P(*[served.get(name) for name in names])
