from a5_classify import axes_of


def j_cut_too(I, J, K, X, Y, Z):
    """partial_sum_bytes: partial_cut_by_y"""
    return 4 * (I / X) * (K / Z) / Y


def all_of_c(I, J, K, X, Y, Z):
    """partial_sum_bytes: partial_not_cut"""
    return 4 * I * K


def rows_only(I, J, K, X, Y, Z):
    """partial_sum_bytes: partial_rows_only"""
    return 4 * I / X * K


def all_axes_each(r, k):
    """how_many_shardings: shardings_in_any_order"""
    return (r + 1) ** k


def one_each(r, k):
    """how_many_shardings: none"""
    return r * k + 1


def _letters(eq, spec_a, spec_b):
    left, out = eq.split("->")
    a, b = left.split(",")
    cut_a = {l: axes_of(spec_a[i]) if i < len(spec_a) else () for i, l in enumerate(a)}
    cut_b = {l: axes_of(spec_b[i]) if i < len(spec_b) else () for i, l in enumerate(b)}
    return a, b, out, cut_a, cut_b


def _illegal(spec, letters):
    named = [axis for entry in spec for axis in axes_of(entry)]
    return len(spec) > len(letters) or len(named) != len(set(named))


def _case_4(a, b, out, cut_a, cut_b):
    cuts = {}
    for l in out:
        here = {c for c in (cut_a.get(l, ()), cut_b.get(l, ())) if c}
        if len(here) > 1:
            return True
        for axis in set(cut_a.get(l, ())) | set(cut_b.get(l, ())):
            if axis in cuts:
                return True
            cuts[axis] = l
    return False


def order_of_axes_ignored(eq, spec_a, spec_b):
    """classify: classify_in_any_order"""
    a, b, out, cut_a, cut_b = _letters(eq, spec_a, spec_b)
    if _illegal(spec_a, a) or _illegal(spec_b, b):
        return "illegal"
    cut_a = {l: tuple(sorted(c)) for l, c in cut_a.items()}
    cut_b = {l: tuple(sorted(c)) for l, c in cut_b.items()}
    if _case_4(a, b, out, cut_a, cut_b):
        return 4
    summed = [l for l in a if l in b and l not in out]
    if any(cut_a[l] and cut_a[l] == cut_b[l] for l in summed):
        return 3
    return 2 if any(cut_a[l] or cut_b[l] for l in summed) else 1


def one_cut_gives_partial_sums(eq, spec_a, spec_b):
    """classify: classify_one_cut_as_sum"""
    a, b, out, cut_a, cut_b = _letters(eq, spec_a, spec_b)
    if _illegal(spec_a, a) or _illegal(spec_b, b):
        return "illegal"
    if _case_4(a, b, out, cut_a, cut_b):
        return 4
    summed = [l for l in a if l in b and l not in out]
    if any(cut_a[l] or cut_b[l] for l in summed):
        return 3
    return 1


def axis_in_both_operands_illegal(eq, spec_a, spec_b):
    """classify: classify_shared_axis_illegal"""
    a, b, out, cut_a, cut_b = _letters(eq, spec_a, spec_b)
    named = [x for c in (*cut_a.values(), *cut_b.values()) for x in c]
    summed = [l for l in a if l in b and l not in out]
    same = any(cut_a[l] and cut_a[l] == cut_b[l] for l in summed)
    if _illegal(spec_a, a) or _illegal(spec_b, b) or (len(named) != len(set(named)) and not same):
        return "illegal"
    if _case_4(a, b, out, cut_a, cut_b):
        return 4
    if same:
        return 3
    return 2 if any(cut_a[l] or cut_b[l] for l in summed) else 1


def sums_before_kept_letters(eq, spec_a, spec_b):
    """classify: classify_no_clash"""
    a, b, out, cut_a, cut_b = _letters(eq, spec_a, spec_b)
    if _illegal(spec_a, a) or _illegal(spec_b, b):
        return "illegal"
    summed = [l for l in a if l in b and l not in out]
    if any(cut_a[l] and cut_a[l] == cut_b[l] for l in summed):
        return 3
    if any(cut_a[l] or cut_b[l] for l in summed):
        return 2
    return 4 if _case_4(a, b, out, cut_a, cut_b) else 1


def too_many_entries_cut_off(eq, spec_a, spec_b):
    """classify: classify_long_specs"""
    a, b, out, cut_a, cut_b = _letters(eq, spec_a, spec_b)
    for spec in (spec_a, spec_b):
        named = [axis for entry in spec for axis in axes_of(entry)]
        if len(named) != len(set(named)):
            return "illegal"
    if _case_4(a, b, out, cut_a, cut_b):
        return 4
    summed = [l for l in a if l in b and l not in out]
    if any(cut_a[l] and cut_a[l] == cut_b[l] for l in summed):
        return 3
    return 2 if any(cut_a[l] or cut_b[l] for l in summed) else 1


def kept_letter_in_one_operand(eq, spec_a, spec_b):
    """classify: classify_batch_in_one"""
    a, b, out, cut_a, cut_b = _letters(eq, spec_a, spec_b)
    if _illegal(spec_a, a) or _illegal(spec_b, b):
        return "illegal"
    if _case_4(a, b, out, cut_a, cut_b) or any(l in a and l in b and cut_a[l] != cut_b[l] for l in out):
        return 4
    summed = [l for l in a if l in b and l not in out]
    if any(cut_a[l] and cut_a[l] == cut_b[l] for l in summed):
        return 3
    return 2 if any(cut_a[l] or cut_b[l] for l in summed) else 1
