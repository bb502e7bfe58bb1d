def x_first(I, X, Y, device):
    """first_row: first_row_x_major"""
    return device * (I / X / Y)


def coordinates_the_other_way(I, X, Y, device):
    """first_row: first_row_x_major"""
    y, x = divmod(device, X)
    return (y * X + x) * I / (X * Y) if x < X else 0


def only_y(I, X, Y, device):
    """first_row: first_row_of_group"""
    return device % Y * (I / Y)


def block_not_row(I, X, Y, device):
    """first_row: first_row_as_block"""
    x, y = divmod(device, Y)
    return y * X + x


def all_blocks_move(I, J, X, Y):
    """reorder_bytes: reorder_everything"""
    return I * J * 4


def only_the_first_stays(I, J, X, Y):
    """reorder_bytes: reorder_one_stays"""
    return 4 * I * J * (X * Y - 1) / (X * Y)


def one_device(I, J, X, Y):
    """reorder_bytes: reorder_of_one_device"""
    return 4 * I * J / (X * Y)
