from grader.hardware import CHIPS


def larger_operand(chip, I, J, K, X):
    """cheaper_gather_time: dearer_gather"""
    return 2 * max(I, K) * J / CHIPS[chip].ici_both


def one_direction(chip, I, J, K, X):
    """cheaper_gather_time: gather_one_way"""
    return 2 * min(I, K) * J / CHIPS[chip].ici


def both(chip, I, J, K, X):
    """cheaper_gather_time: gather_of_both"""
    return 2 * (I + K) * J / CHIPS[chip].ici_both


def one_shard(chip, I, J, K, X):
    """cheaper_gather_time: gather_of_a_shard"""
    return 2 * min(I, K) * J / X / CHIPS[chip].ici_both
