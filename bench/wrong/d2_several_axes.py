from grader.hardware import CHIPS


def whole_array(chip, X, Y, Z, I, J):
    """gather_cut_elsewhere_time: gather_cut_ignored"""
    return 2 * I * J / CHIPS[chip].ici_both


def cut_by_x(chip, X, Y, Z, I, J):
    """gather_cut_elsewhere_time: gather_cut_by_its_own_axis"""
    return 2 * I * J / X / CHIPS[chip].ici_both


def one_axis(chip, X, Y, Z, I, J):
    """gather_two_axes_time: gather_two_on_one"""
    return 4 * I * J / Z / CHIPS[chip].ici_both


def one_phase(chip, X, Y, Z, I, J):
    """reduce_cut_elsewhere_time: reduce_cut_once"""
    return 4 * I * J / (X * Y) / CHIPS[chip].ici_both


def not_cut(chip, X, Y, Z, I, J):
    """reduce_cut_elsewhere_time: reduce_cut_ignored"""
    return 2 * 4 * I * J / CHIPS[chip].ici_both
