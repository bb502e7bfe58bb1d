from jax.sharding import PartitionSpec as P

from k5_logical_names import axes_of


def in_the_order_of_dimensions(names, rules, mesh):
    """spec_of: dimensions_first
    Statement: the order of the dimensions decides, not the order of the rules."""
    used, spec = set(), []
    for name in names:
        entry = None
        if name is not None and name not in [rule for rule, _ in rules]:
            raise ValueError(name)
        for rule, axes in rules:
            if rule == name and set(axes_of(axes)) <= set(mesh) - used:
                entry = axes
                break
        used |= set(axes_of(entry))
        spec.append(entry)
    return P(*spec)


def walk(names, rules, mesh, fit, skipped_counts=False, none_counts=True):
    for name in names:
        if name and all(name != rule for rule, _ in rules):
            raise ValueError(f"no rule for {name}")
    result, done, used = [None] * len(names), set(), set()
    for name, entry in rules:
        if name not in names or name in done:
            continue
        kept = fit(entry, mesh, used)
        if kept is None:
            done |= {name} if skipped_counts else set()
            continue
        if entry is None and not none_counts:
            continue
        done.add(name)
        used |= set(axes_of(kept))
        result[names.index(name)] = kept if kept != () else None
    return P(*result)


def all_or_none(entry, mesh, used):
    axes = axes_of(entry)
    return (entry if axes else ()) if all(a in mesh and a not in used for a in axes) else None


def packed(axes):
    return axes[0] if len(axes) == 1 else axes


def missing_axes_left_out(names, rules, mesh):
    """spec_of: part_of_a_rule, missing_axes_left_out
    Statement: a tuple's missing axis is left out, and the others apply."""

    def fit(entry, mesh, used):
        axes = tuple(a for a in axes_of(entry) if a in mesh)
        return None if any(a in used for a in axes) or (entry and not axes) else packed(axes) if axes else ()

    return walk(names, rules, mesh, fit)


def taken_axes_left_out(names, rules, mesh):
    """spec_of: part_of_a_rule, taken_axes_left_out
    Statement: a tuple's taken axis is left out, and the others apply."""

    def fit(entry, mesh, used):
        axes = axes_of(entry)
        free = tuple(a for a in axes if a not in used)
        return None if any(a not in mesh for a in axes) or (entry and not free) else packed(free) if free else ()

    return walk(names, rules, mesh, fit)


def axes_used_twice(names, rules, mesh):
    """spec_of: axis_used_twice
    Statement: an axis may cut two dimensions."""
    return walk(names, rules, mesh, lambda entry, mesh, used: all_or_none(entry, mesh, set()))


def first_rule_decides(names, rules, mesh):
    """spec_of: first_rule_alone
    Statement: if the first rule of a name is skipped, later rules of the name do not apply."""
    return walk(names, rules, mesh, all_or_none, skipped_counts=True)


def none_is_skipped(names, rules, mesh):
    """spec_of: none_is_no_rule
    Statement: a rule with None is passed over, and later rules apply."""
    return walk(names, rules, mesh, all_or_none, none_counts=False)


def unknown_names_whole(names, rules, mesh):
    """spec_of: unknown_is_whole
    Statement: a name without a rule stays whole."""
    known = tuple(name if any(name == rule for rule, _ in rules) else None for name in names)
    return walk(known, rules, mesh, all_or_none)


def last_rule_wins(names, rules, mesh):
    """spec_of: last_rule_wins
    Statement: the rules are tried from last to first."""
    return walk(names, rules[::-1], mesh, all_or_none)


def _apply(names, rules, mesh, *, missing=True, none=True, known=True, taken=True, part=False):
    got, used = {}, set()
    for name in names:
        if known and name is not None and name not in [n for n, _ in rules]:
            raise ValueError(name)
    for name, entry in rules:
        if name not in names or name in got:
            continue
        axes = axes_of(entry)
        if not axes:
            if none:
                got[name] = None
            continue
        if missing:
            if any(a not in mesh for a in axes):
                continue
        else:
            axes = tuple(a for a in axes if a in mesh)
        if part:
            axes = tuple(a for a in axes if a not in used)
        elif taken and any(a in used for a in axes):
            continue
        if not axes:
            continue
        used |= set(axes)
        got[name] = axes[0] if len(axes) == 1 else axes
    return P(*[got.get(name) for name in names])


def dimension_by_dimension(names, rules, mesh):
    """spec_of: dimensions_first"""
    used, entries = set(), []
    for name in names:
        if name is None:
            entries.append(None)
            continue
        mine = [axes_of(entry) for n, entry in rules if n == name]
        if not mine:
            raise ValueError(name)
        for axes in mine:
            if all(a in mesh and a not in used for a in axes):
                used |= set(axes)
                entries.append(axes[0] if len(axes) == 1 else axes or None)
                break
        else:
            entries.append(None)
    return P(*entries)


def axes_that_exist(names, rules, mesh):
    """spec_of: missing_axes_left_out"""
    return _apply(names, rules, mesh, missing=False)


def none_is_no_rule(names, rules, mesh):
    """spec_of: none_is_no_rule"""
    return _apply(names, rules, mesh, none=False)


def unknown_names_stay_whole(names, rules, mesh):
    """spec_of: unknown_is_whole"""
    return _apply(names, rules, mesh, known=False)


def axes_used_again(names, rules, mesh):
    """spec_of: axis_used_twice"""
    return _apply(names, rules, mesh, taken=False)


def free_axes_of_a_tuple(names, rules, mesh):
    """spec_of: taken_axes_left_out"""
    return _apply(names, rules, mesh, part=True)


def embed_of_x_cut_too(B, S, E, F, mesh):
    """bytes_by_rules: fsdp_used_twice"""
    dp, fsdp, tp = mesh
    return 2 * B * S * E / (dp * fsdp * tp * fsdp) + 2 * E * F / (fsdp * tp)


def rows_of_w_whole(B, S, E, F, mesh):
    """bytes_by_rules: embed_left_whole"""
    dp, fsdp, tp = mesh
    return 2 * B * S * E / (dp * fsdp * tp) + 2 * E * F / tp


def sequence_of_x_whole(B, S, E, F, mesh):
    """bytes_by_rules: seq_left_whole"""
    dp, fsdp, tp = mesh
    return 2 * B * S * E / (dp * fsdp) + 2 * E * F / (fsdp * tp)
