import math

SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1, "int32": 4}


def memory(shape, dtype, spec, mesh_shape):
    """Bytes on one device, and on all devices together."""
    nbytes = math.prod(shape) * SIZES[dtype]
    per_device = nbytes
    for entry in spec:
        if entry is None:
            continue
        if isinstance(entry, str):
            entry = (entry,)
        for ax in entry:
            per_device //= mesh_shape[ax]
    return per_device, nbytes


weights_in_all = 2 * 8192 * 4096 * 8 * 16 / 2**20


placed_and_unplaced = 2 * 8192 * 7168 * (1 + 8) / 1e6
