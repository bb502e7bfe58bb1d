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
