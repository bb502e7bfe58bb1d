import math

SIZES = {"float32": 4, "bfloat16": 2, "int8": 1}


def names_in(spec):
    return [n for entry in spec if entry is not None for n in ([entry] if isinstance(entry, str) else entry)]


def total_is_the_array(shape, dtype, spec, mesh_shape):
    """memory: memory_one_copy"""
    total = SIZES[dtype]
    for size in shape:
        total *= size
    parts = 1
    for name in names_in(spec):
        parts *= mesh_shape[name]
    return total // parts, total


def always_float32(shape, dtype, spec, mesh_shape):
    """memory: memory_four_bytes"""
    parts = math.prod(mesh_shape[n] for n in names_in(spec))
    each = math.prod(shape) // parts * 4
    return each, each * math.prod(mesh_shape.values())


def over_all_devices(shape, dtype, spec, mesh_shape):
    """memory: memory_shared_by_all"""
    total = SIZES[dtype] * math.prod(shape)
    return total // math.prod(mesh_shape.values()), total


def first_dimension(shape, dtype, spec, mesh_shape):
    """memory: memory_cut_by_rows_only"""
    parts = math.prod(mesh_shape[n] for n in names_in(spec[:1]))
    each = math.prod(shape) * SIZES[dtype] // parts
    return each, each * math.prod(mesh_shape.values())


def copies_of_x(I, J, X, Y, Z):
    """weights_in_all: weights_copied_by_x"""
    return 2 * I * J * X


def copies_on_all(I, J, X, Y, Z):
    """weights_in_all: weights_on_every_chip"""
    return 2 * I * J * X * Y * Z


def no_copies(I, J, X, Y, Z):
    """weights_in_all: weights_one_copy"""
    return 2 * I * J


def without_the_first(I, J, X, Y):
    """placed_and_unplaced: placed_only"""
    return I * J * X * Y * 2


def one_each(I, J, X, Y):
    """placed_and_unplaced: replicated_once"""
    return 2 * I * J + 2 * I * J


def four_bytes(I, J, X, Y):
    """placed_and_unplaced: placed_in_float32"""
    return 4 * I * J * (1 + X * Y)
