from grader.hardware import CHIPS


def of_a_shard(chip, N):
    """latency_bound_below: latency_bound_shard"""
    return 1e-6 / 2 * CHIPS[chip].ici_both


def one_direction(chip, N):
    """latency_bound_below: latency_bound_one_way"""
    return N / 2 * 1e-6 * CHIPS[chip].ici


def a_line(chip, N):
    """latency_bound_below: latency_bound_line, latency_bound_doubled, latency_bound_as_line"""
    return N * 1e-6 * CHIPS[chip].ici_both
