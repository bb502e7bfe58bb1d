from grader.hardware import CHIPS


def gathers_b(chip, I, J, K, X):
    """gather_first_time: gather_time_of_b"""
    return 2 * J * K / CHIPS[chip].ici_both


def one_shard(chip, I, J, K, X):
    """gather_first_time: gather_time_of_shard"""
    return 2 * I / X * J / CHIPS[chip].ici_both


def one_direction(chip, I, J, K, X):
    """gather_first_time: gather_time_one_way"""
    return 2 * I * J / CHIPS[chip].ici


def as_a_gather(chip, I, J, K, X):
    """slice_first_time: reduce_time_once"""
    return 2 * I * K / CHIPS[chip].ici_both
