def rolls_all_columns(S, D, X, Y, shift):
    """global_roll_bytes: roll_whole_rows"""
    return shift * D * 4


def rolls_the_block(S, D, X, Y, shift):
    """global_roll_bytes: roll_whole_block"""
    return S * D * 4 / X / Y


def all_devices(S, D, X, Y, shift):
    """global_roll_bytes: roll_of_all_devices"""
    return 4 * shift * D * X


def bfloat16(S, D, X, Y, shift):
    """global_roll_bytes: roll_two_bytes"""
    return 2 * shift * D / Y


def one_row(S, D, X, Y, shift):
    """global_roll_bytes: roll_one_row"""
    return 4 * D / Y
