from grader.hardware import CHIPS


def one_direction(chip, I, J, X):
    """bidi_gather_time: bidi_time_one_way"""
    return 2 * I * J * (X - 1) / X / CHIPS[chip].ici


def half_shards(chip, I, J, X):
    """bidi_gather_time: bidi_time_of_half_shards"""
    return I * J / CHIPS[chip].ici_both


def no_latency(chip, I, L, J, X):
    """bidi_time_saved: bidi_saved_in_bytes"""
    return (X - 1 - X // 2) * 2 * (I + L) * J / X / CHIPS[chip].ici


def half_of_the_hops(chip, I, L, J, X):
    """bidi_time_saved: bidi_saved_half_the_ring"""
    return X // 2 * sum(max(1e-6, 2 * rows * J / X / CHIPS[chip].ici) for rows in (I, L))
