from grader.hardware import CHIPS


def as_a_gather(chip, N, I, J):
    """ring_exchange_time: ring_exchange_as_gather"""
    return 2 * I * J / CHIPS[chip].ici_both


def two_directions_forgotten(chip, N, I, J):
    """ring_exchange_time: ring_exchange_half"""
    return 2 * I * J / CHIPS[chip].ici / 4


def a_ring(chip, X, Y, I, J):
    """line_exchange_time: line_exchange_as_ring"""
    return 2 * I * J / 4 / CHIPS[chip].ici_both
