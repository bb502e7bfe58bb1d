def one_neighbour(N, D, X, w):
    """halo_bytes: halo_one_side"""
    return 4 * w * D


def every_device(N, D, X, w):
    """halo_bytes: halo_of_all_devices"""
    return 2 * w * D * 4 * X


def rows_of_the_block(N, D, X, w):
    """halo_bytes: halo_of_blocks"""
    return 2 * 4 * D * N / X


def width_forgotten(N, D, X, w):
    """halo_bytes: halo_of_one_row"""
    return 2 * 4 * D
