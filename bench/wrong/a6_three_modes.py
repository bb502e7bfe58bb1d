def y_steps(I, J, K, X, Y):
    """gather_of_c_bytes: gather_of_c_one_step_more"""
    return 4 * I / X * K / Y * Y


def one_step(I, J, K, X, Y):
    """gather_of_c_bytes: gather_of_c_one_block"""
    return 4 * I * K / X / Y


def gathers_b(I, J, K, X, Y):
    """gather_of_c_bytes: gather_of_b_instead"""
    return 4 * J * K * (Y - 1) / Y


def shared_by_all(I, J, K, X, Y):
    """flops_of_one_constraint: flops_still_shared"""
    return 2 * I * J * K / X / Y


def of_the_whole(I, J, K, X, Y):
    """flops_of_one_constraint: flops_of_the_whole"""
    return 2 * I * J * K
